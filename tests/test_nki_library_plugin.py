# SPDX-License-Identifier: Apache-2.0
"""The pytest plug-in for nki-library, on a made-up suite of a few lines with the same imports and the same harness methods."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pytest.importorskip("sterna.nki_library")

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402
from sterna.nki_library import figures, ranks  # noqa: E402

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

RANKS = """
    def test_ranks(monkeypatch, tmp_path):
        from sterna.nki_library import ranks
        seen = []

        def launch(kernel, lnc, inputs):
            seen.extend(inputs)
            return [double(**one) for one in inputs]

        monkeypatch.setattr(ranks, "launch", launch)
        arrays = [np.full((2, 2), rank, np.float32) for rank in range(2)]
        manager = Orchestrator()
        manager.fs_config.artifacts_output_directory_path = str(tmp_path)
        manager.execute(arguments(PerRank(lambda r: {"x.must_alias_input": arrays[r]}), PerRank(lambda r: {"out": 2 * arrays[r]}), 2))
        assert [list(one) for one in seen] == [["x"], ["x"]]
        for rank in range(2):
            got = np.fromfile(tmp_path / "infer_result" / f"output_worker_{rank}" / "out.bin", np.float32)
            np.testing.assert_array_equal(got, np.full(4, 2 * rank))
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


def test_a_suite_with_these_imports_runs(suite):
    done = suite(CASES)
    assert "1 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    assert "test_wrong_values" in done.stdout
    summary = done.stdout[done.stdout.index(" sterna ") :]
    assert "5 cases, 5 kernel calls, 1 process(es)" in summary
    assert "bound" in summary
    assert "references 0.0" in summary  # never more than the time in which they could have been made


def test_workers_report_to_one_summary(suite):
    pytest.importorskip("xdist")
    done = suite(CASES, "-n", "2")
    assert "5 cases, 5 kernel calls, 2 process(es)" in done.stdout, done.stdout + done.stderr


DRAWN = """
    import os, random
    import pytest

    random.seed(os.environ.get("NEURON_PYTHONHASHSEED"))

    @pytest.mark.parametrize("size", random.sample(range(10**6), 3))
    def test_drawn(size): pass
"""


def test_the_suite_draws_the_same_cases_in_one_process(suite):
    """A sweep is a random sample; the suite seeds it in workers only, and a case found there must be there alone too."""

    def names(**environment):
        return [
            line for line in suite(DRAWN, "--collect-only", **environment).stdout.splitlines() if "test_drawn" in line
        ]

    drawn = names()
    assert len(drawn) == 3 and names() == drawn
    assert names(NEURON_PYTHONHASHSEED="1") != drawn


def test_inputs_of_ranks_are_launched_and_their_results_written(suite):
    done = suite(CASES.split("    @pytest.mark.parametrize")[0] + RANKS)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_without_the_suite_nothing_is_reported(tmp_path):
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "sterna.pytest_nki_library", "-p", "no:cacheprovider", "-q"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert " sterna " not in done.stdout


def test_ranks_get_their_own_inputs():
    @nki.jit
    def double(x):
        tile = nl.load(x)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(tile, 2.0))
        return out

    got = ranks.launch(double, 1, [{"x": np.full((2, 2), rank, np.float32)} for rank in range(3)])
    for rank, array in enumerate(got):
        np.testing.assert_array_equal(array, np.full((2, 2), 2 * rank))


GROWS = """
    import os
    import pytest
    from sterna.nki_library import machine

    attempts = []

    def test_grows(pytestconfig):
        cases = pytestconfig.pluginmanager.get_plugin("sterna-nki-library")
        attempts.append(cases.share.alone)
        if len(attempts) == 1:
            waiting = machine.Share()
            machine.fcntl.flock(waiting._gate, machine.fcntl.LOCK_EX)
            try:
                cases.wait_until_alone()
            finally:
                os.close(waiting._gate)

    def test_saw_it_begin_again_alone():
        assert attempts == [False, True]
"""


def test_a_case_that_gives_way_begins_again_alone_and_is_reported_once(suite):
    done = suite(GROWS)
    assert "2 passed" in done.stdout and "failed" not in done.stdout, done.stdout + done.stderr


# --- figures


def test_the_summary_adds_up():
    totals = figures.Totals()
    sums = figures.empty()
    sums.update(record=1.0, values=5.0, predict=0.5, reference=2.0, compare=0.25, case=10.0, calls=2, predicted=1)
    sums.update(instructions=3000, multiply_adds=4_000_000)
    totals.add_case(sums)
    totals.add_case(sums)
    totals.add_worker("gw0", 30.0, 4.0)
    text = "\n".join(totals.lines({"sgemm": 4e6, "record": 1000.0}))
    assert "kernels               13.0 s  43.3%" in text
    assert "everything else       17.0 s  56.7%" in text
    assert "references 4.0, comparison 0.5, inputs and files 2.5, collection 4.0" in text
    assert "start and pytest 6.0" in text
    assert "2 calls have no predicted time" in text
    # 8e6 / (0.5 * 4e6) + 6000 / 1000 = 4 + 6 seconds; 12 s were spent on recording and values.
    assert "10.0 s" in text and "took 1.20 times" in text


def test_kernel_calls_are_counted():
    counter = figures.Counter()

    @nki.jit
    def product(a, b):
        x, y = nl.load(a), nl.load(b)
        psum = nl.ndarray((16, 32), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(psum, x, y)
        tile = nl.ndarray((16, 32), nl.float32)
        nisa.tensor_copy(tile, psum)
        out = nl.ndarray((16, 32), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    with counter:
        product(np.ones((8, 16), np.float32), np.ones((8, 32), np.float32))
    sums = counter.take()
    assert (sums["calls"], sums["multiply_adds"], sums["predicted"]) == (1, 8 * 16 * 32, 1)
    assert sums["instructions"] >= 5 and sums["record"] > 0 and sums["values"] > 0
    assert counter.take()["calls"] == 0
