# SPDX-License-Identifier: Apache-2.0
"""A made-up suite of a few lines with nki-library's imports and harness methods, and a way to run it under the plug-in."""

import os
import subprocess
import sys
import textwrap

import pytest

HARNESS = """
    import enum, os
    import numpy as np
    from test.utils.perf_analysis_private import analyze_trace
    from test.utils.scripts.remote_lock_scripts import LockResult, LockStatus

    INF_ARTIFACT_DIR_NAME = "infer_result"

    class InferenceException(Exception): pass

    class Mode(enum.Enum):
        simulation = "simulation"

    class PerRank:
        def __init__(self, make): self.make = make
        def for_rank(self, rank): return self.make(rank)

    def normalize_golden_output(golden, rank=0):
        return golden.for_rank(rank) if hasattr(golden, "for_rank") else golden.output_ndarray

    class Files:
        artifacts_output_directory_path = os.environ.get("MINI_OUT", "out")

    class Orchestrator:
        def __init__(self):
            self.trace_mode, self.fs_config, self.dumped = Mode.simulation, Files(), False

        def execute(self, args):
            self.__dump_kernel_inputs__("out", args)
            self.folder = self._run_simulator_inference(args)
            if not self._compiled_kernel:
                self._run_validation(args, self.folder)

        def __dump_kernel_inputs__(self, folder, args):
            self.dumped = True
            return {}

        def __dump_tensors__(self, folder, tensors, name_of):
            os.makedirs(folder, exist_ok=True)
            for name, value in tensors.items():
                value.tofile(os.path.join(folder, name_of(name) + ".bin"))

        def _run_simulator_inference(self, args):
            from test.utils import simulation_setup
            got = simulation_setup.simulate_kernel(
                args.kernel_func, args.kernel_input, args.compiler_input.logical_nc_config
            )[0]
            expected = normalize_golden_output(args.validation_args.golden_output)["out"]
            self.got = np.asarray(got, dtype=expected.dtype)
            return "out"

        def _run_validation(self, args, folder):
            expected = normalize_golden_output(args.validation_args.golden_output)
            if hasattr(self, "got"):
                np.testing.assert_array_equal(self.got, expected["out"])
"""

SETUP = """
    def simulate_kernel(kernel, inputs, lnc):
        import nki
        return [nki.cpu_simulate(kernel)[lnc](**inputs)]
"""

CONFTEST = """
    import builtins, sys
    import pytest
    from .utils import test_orchestrator

    def pytest_addoption(parser):
        parser.addoption("--platform-target", default="trn2")

    def pytest_configure(config):
        import nki_cpu_simulator.nki.builtin as builtin
        import nki_cpu_simulator.nki.compiler
        import nki_cpu_simulator.nki.isa as isa
        import nki_cpu_simulator.nki.isa.constants
        import nki_cpu_simulator.nki.language as language
        import nki_cpu_simulator.nki.language.dtypes as dtypes
        import nki_cpu_simulator.nki.tensor as tensor
        import nki_cpu_simulator.nki.typing
        from nki_cpu_simulator import nki
        builtins.builtin = builtin
        sys.modules["nki"], sys.modules["nki.isa"], sys.modules["nki.language"] = nki, isa, language
        sys.modules["nki.dtype"], sys.modules["nki.tensor"] = dtypes, tensor
"""

CASES = """
    import os, types
    import numpy as np, pytest
    import neuron_dtypes as dt
    import neuronxcc.nki.typing as nt
    from neuronxcc.starfish.support.dtype import static_cast
    from nki.compiler.frontend import NKIFrontend, ParserFrontend
    from nki.compiler.ncc_driver import CompiledKernel, CompileOptions
    import nki, nki.isa as nisa, nki.language as nl
    from test.utils.test_orchestrator import Orchestrator, PerRank

    @nki.jit
    def double(x):
        tile = nl.ndarray(x.shape, x.dtype, nl.sbuf)
        nisa.dma_copy(tile, x)
        nisa.tensor_scalar(tile, tile, op0=nl.multiply, operand0=2.0)
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    def arguments(inputs, golden, count=1, kernel=double):
        space = types.SimpleNamespace
        platform = space(get_nc_gen=lambda: "gen3")
        return space(kernel_func=kernel, kernel_input=inputs, compiler_input=space(logical_nc_config=1, platform_target=platform),
                     inference_args=space(collective_ranks=count), validation_args=space(golden_output=golden))

    def golden(expected):
        return types.SimpleNamespace(output_ndarray={"out": expected}, computation_time=0.25)

    @pytest.mark.parametrize("n", [8, 16])
    def test_values(n):
        x = np.arange(4 * n, dtype=np.float32).reshape(4, n)
        manager = Orchestrator()
        manager.execute(arguments({"x": x}, golden(2 * x)))
        assert not manager.dumped
        assert os.environ["STERNA_NKI_VERSION"] == "0.3" and os.environ["NKI_NC_VERSION"] == "gen3"

    def test_wrong_values():
        x = np.ones((4, 4), np.float32)
        Orchestrator().execute(arguments({"x": x}, golden(x)))

    @nki.jit
    def copied(x):
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nisa.dma_copy(out, x)
        return out

    def test_packed_results_are_bits_in_another_type(monkeypatch):
        monkeypatch.setenv("NKI_NC_VERSION", "gen4")
        bits = np.arange(32, dtype=np.uint8).view(np.uint32).reshape(2, 4)
        x = bits.view(nl.float8_e4m3fn_x4)
        manager = Orchestrator()
        manager.execute(arguments({"x": x}, golden(bits.view(np.float32)), kernel=copied))
        manager.execute(arguments({"x": x}, golden(x), kernel=copied))
        assert manager.got.dtype == x.dtype

    def test_types():
        x = dt.static_cast(np.ones((2, 4), np.float32), nl.bfloat16)
        assert x.dtype == dt.bfloat16 and dt.sizeinbytes(nl.bfloat16) == 2 and dt.is_float_type(x.dtype)
        assert static_cast is dt.static_cast
"""


@pytest.fixture
def suite(tmp_path):
    """suite(case file, *options): runs the made-up suite; gives the completed process."""

    def run(cases, *options, **environment):
        for path, text in (
            ("test/__init__.py", ""),
            ("test/conftest.py", CONFTEST),
            ("test/utils/__init__.py", ""),
            ("test/utils/test_orchestrator.py", HARNESS),
            ("test/utils/simulation_setup.py", SETUP),
            ("test/test_cases.py", cases),
        ):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("STERNA_", "NKI_", "NEURON_", "PYTEST"))}
        paths = [str(tmp_path), *(path for path in sys.path if path)]
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "sterna.pytest_nki_library",
                "-p",
                "no:cacheprovider",
                "-q",
                "test",
                *options,
            ],
            cwd=tmp_path,
            env={**inherited, "PYTHONPATH": os.pathsep.join(paths), **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run
