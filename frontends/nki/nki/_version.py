# SPDX-License-Identifier: Apache-2.0
"""The release of NKI that is shown. The modules are written as the newest one; `_older` turns them into another."""

from sterna import _core, settings

_shown = settings.NKI_VERSIONS[-1]


def follow():
    """Shows the release that STERNA_NKI_VERSION chooses now: when nki is imported, and at each call of a kernel."""
    global _shown
    wanted = settings.nki_version()
    if wanted != _shown:
        from nki import _older

        _older.show(wanted)
        _shown = wanted


def before(release):
    """True while a kernel is recorded whose NKI is older than `release`, given as "0.5"."""
    return _number(_core.current().nki_version) < _number(release)


def _number(release):
    return tuple(int(part) for part in release.split(".")[:2])


def missing(module, name):
    """The error for a name that `module` does not have; it says which release of NKI has it."""
    text = f"module {module!r} has no attribute {name!r}"
    if not name.startswith("_"):
        from nki import _older

        text += _older.where_it_is(f"{module}.{name}", _shown)
    return AttributeError(text)
