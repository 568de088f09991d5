# SPDX-License-Identifier: Apache-2.0
"""Modules that nki-library and its tests import and that are not public, as far as they use them.

All of them are made here, in memory, and put into `sys.modules`; a module that is really installed is left alone.
"""

import importlib
import importlib.util
import sys
import types

#: parts of `nki` that the suite also asks for under `nki_cpu_simulator.nki`
_PARTS = "builtin collectives compiler dtype isa isa.constants language tensor typing".split()


def register():
    """Puts every module in place. Calling it twice does no harm."""
    import nki
    import nki.isa.constants

    _nki_parts(nki)
    _simulator(nki)
    _neuronxcc()
    if not _installed("neuron_dtypes"):
        sys.modules["neuron_dtypes"] = importlib.import_module("sterna.nki_library.neuron_dtypes")
    _missing_from_the_suite()
    _nkilib()


def ours(nki):
    """True when `nki` is the front end of Sterna and not another installation."""
    return getattr(nki, "Kernel", None) is not None and hasattr(sys.modules.get("nki._kernel"), "session")


def _installed(name):
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _module(name, **names):
    """A module made of `names`; also an attribute of its parent package."""
    made = types.ModuleType(name)
    made.__dict__.update(names)
    made.__path__ = []  # a package, so that submodules may be imported
    _place(name, made)
    return made


def _place(name, module):
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)


def _nki_parts(nki):
    from sterna.nki_library import compiler

    if not _installed("nki.builtin"):
        _module("nki.builtin", __doc__="Names that the compiler adds to a kernel's builtins: none here.")
    if not _installed("nki.tensor"):
        _module("nki.tensor", NkiTensor=nki.language.NkiTensor)
    if not _installed("nki.compiler"):
        _module("nki.compiler")
        _module(
            "nki.compiler.frontend",
            NKIFrontend=compiler.NKIFrontend,
            ParserFrontend=compiler.ParserFrontend,
            TracerFrontend=compiler.TracerFrontend,
        )
        _module(
            "nki.compiler.ncc_driver", CompiledKernel=compiler.CompiledKernel, CompileOptions=compiler.CompileOptions
        )
    if "dtypes" not in vars(nki.language):
        _place("nki.language.dtypes", nki.dtype)


def _simulator(nki):
    if _installed("nki_cpu_simulator"):
        return
    _module("nki_cpu_simulator")
    _place("nki_cpu_simulator.nki", nki)
    for part in _PARTS:
        sys.modules[f"nki_cpu_simulator.nki.{part}"] = importlib.import_module(f"nki.{part}")
    sys.modules["nki_cpu_simulator.nki.language.dtypes"] = nki.dtype


def _neuronxcc():
    from sterna.nki_library.neuron_dtypes import static_cast

    for name in ("neuronxcc", "neuronxcc.nki", "neuronxcc.starfish", "neuronxcc.starfish.support"):
        if not _installed(name):
            _module(name)
    if not _installed("neuronxcc.starfish.support.dtype"):
        _module("neuronxcc.starfish.support.dtype", static_cast=static_cast)
    if not _installed("neuronxcc.nki.typing"):
        _place("neuronxcc.nki.typing", importlib.import_module("nki.typing"))


def _missing_from_the_suite():
    """Two modules of the suite's own package `test` that its repository lacks.

    Their parents are not touched: `import test.utils` finds the clone's folder, and the module itself in `sys.modules`.
    """
    from sterna.nki_library import remote_locks

    def analyze_trace(**arguments):
        raise NotImplementedError("the analysis of hardware profiles is not part of the public suite")

    for name, module in (
        ("test.utils.perf_analysis_private", types.ModuleType("test.utils.perf_analysis_private")),
        ("test.utils.scripts", types.ModuleType("test.utils.scripts")),
        ("test.utils.scripts.remote_lock_scripts", remote_locks),
    ):
        sys.modules.setdefault(name, module)
    sys.modules["test.utils.perf_analysis_private"].analyze_trace = analyze_trace


class _Nkilib:
    """Finds `nkilib`, the bundled name of the library, in the clone's `nkilib_src.nkilib`, when it is first imported."""

    busy = False

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "nkilib" or cls.busy:
            return None
        cls.busy = True
        try:
            if importlib.util.find_spec("nkilib") is not None or not _installed("nkilib_src.nkilib"):
                return None
        except (ImportError, ValueError):
            return None
        finally:
            cls.busy = False
        return importlib.util.spec_from_loader(name, cls, is_package=True)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        # One module under both names, as the library itself does where both are installed.
        sys.modules["nkilib"] = importlib.import_module("nkilib_src.nkilib")
        for name in list(sys.modules):
            if name.startswith("nkilib_src.nkilib."):
                sys.modules.setdefault(name.removeprefix("nkilib_src."), sys.modules[name])


def _nkilib():
    if _Nkilib not in sys.meta_path:
        sys.meta_path.append(_Nkilib)
