# SPDX-License-Identifier: Apache-2.0
"""Serves the import names of the AWS packages (`nki`, `neuronxcc`, ...) from Sterna, unless real ones are installed.

`sterna_compat.pth` imports this module at every start of the interpreter, so it must stay small: it imports nothing but
`os` and `sys`, which are loaded by then, and never the package `sterna`.

The finder stands at the front of `sys.meta_path`, because a folder that happens to be called `nki/` would otherwise
win as a namespace package. When it is asked for one of the names, it asks the other finders first and yields to

* a spec with a loader that is not a namespace package (somebody's real module or package),
* unless its distribution is a placeholder: the public index holds an empty `nki` 0.0.1, for example.

`STERNA_COMPAT=off` never serves the names; `STERNA_COMPAT=force` serves them even where a real package is installed.
"""

import os
import sys

_NAMES_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sterna", "_names")

# Empty packages on the public index that only hold a name. Versions with this beginning were never real releases.
_PLACEHOLDER_VERSIONS = {"nki": ("0.0.",), "neuronxcc": ("0.0.", "1.0.post"), "torch_neuronx": ("0.0.",)}
_PLACEHOLDER_EXACT = {"torch_neuronx": ("1.0",)}
_DISTRIBUTIONS = {"neuronxcc": "neuronx-cc"}


class Finder:
    """A meta path finder for the folders in `folder`: one folder, one top-level name."""

    def __init__(self, folder):
        self.folder = folder
        try:
            self.names = frozenset(name for name in os.listdir(folder) if "." not in name and name[0] != "_")
        except OSError:
            self.names = frozenset()

    def find_spec(self, fullname, path=None, target=None):
        # Submodules need no help: once the package is ours, its __path__ leads to them.
        if fullname not in self.names:
            return None
        mode = os.environ.get("STERNA_COMPAT", "").strip().lower()
        if mode == "off":
            return None
        if mode not in ("", "auto", "force"):
            raise ImportError(f"STERNA_COMPAT={mode!r} is not known: use off, force or auto")
        if mode != "force":
            other = self._ask_others(fullname, path, target)
            if other is not None and not is_placeholder(fullname, other):
                return other
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(fullname, [self.folder])

    def _ask_others(self, fullname, path, target):
        """The first spec of another finder that stands for real code, or None."""
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            if isinstance(finder, Finder) or find_spec is None:
                continue
            spec = find_spec(fullname, path, target)
            if spec is not None and not _is_namespace(spec):
                return spec
        return None


def _is_namespace(spec):
    # Python 3.10 gives a namespace package no loader, later versions give it a NamespaceLoader; neither has an origin.
    return spec.loader is None or type(spec.loader).__name__ in ("NamespaceLoader", "_NamespaceLoader")


def is_placeholder(name, spec):
    """True where `spec` belongs to an installed distribution that only holds the name."""
    from importlib import metadata

    if not spec.origin:
        return False
    try:
        distribution = metadata.distribution(_DISTRIBUTIONS.get(name, name.replace("_", "-")))
        version = distribution.version or ""
        home = os.path.realpath(distribution.locate_file(""))
    except (metadata.PackageNotFoundError, TypeError):
        return False
    # Somebody's own module of that name, found earlier on the path, is not the distribution's.
    found = os.path.realpath(spec.origin)
    if found not in (os.path.join(home, name, "__init__.py"), os.path.join(home, name + ".py")):
        return False
    return version.startswith(_PLACEHOLDER_VERSIONS.get(name, ("0.0.",))) or version in _PLACEHOLDER_EXACT.get(name, ())


def install(folder=_NAMES_FOLDER):
    """Puts the finder at the front of `sys.meta_path`; a second call changes nothing."""
    for finder in sys.meta_path:
        if type(finder).__name__ == "Finder" and getattr(finder, "folder", None) == folder:
            return
    sys.meta_path.insert(0, Finder(folder))
