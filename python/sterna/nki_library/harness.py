# SPDX-License-Identifier: Apache-2.0
"""Joins the suite's own harness, `test.utils.test_orchestrator`, once its conftest.py has loaded it.

Methods of its Orchestrator are wrapped, with three differences in simulation mode: inputs that differ from rank to rank, which
the official simulation cannot run, go to :func:`sterna.nki_library.ranks.launch`, inputs are not written to files, and packed
results are taken as the bits that a reference of another type of their size holds.
"""

import functools
import importlib
import os
import sys
import time

import numpy as np

from sterna.nki_library import machine, ranks

HARNESS = "test.utils.test_orchestrator"
SETUP = "test.utils.simulation_setup"


def is_there():
    """True when the suite's conftest.py has been loaded."""
    return hasattr(sys.modules.get(HARNESS), "Orchestrator")


def join(case, keep_inputs=False):
    """Wraps the harness's methods; `case` is told what happens.

    keep_inputs: simulation writes every input to a file, too, which nothing reads again.
    """
    orchestrator = sys.modules[HARNESS].Orchestrator
    if getattr(orchestrator, "_sterna", None):
        return
    orchestrator._sterna = True
    if not hasattr(orchestrator, "_compiled_kernel"):
        orchestrator._compiled_kernel = None  # simulation mode compiles nothing, yet asks for it
    if not keep_inputs:
        orchestrator.__dump_kernel_inputs__ = _not_in_simulation(orchestrator.__dump_kernel_inputs__)
    orchestrator.execute = _executed(orchestrator.execute, case)
    orchestrator._run_simulator_inference = _simulated(orchestrator._run_simulator_inference, case)
    setup = importlib.import_module(SETUP)
    setup.simulate_kernel = _with_packed_bits(setup.simulate_kernel)
    orchestrator._run_validation = _validated(orchestrator._run_validation, case)


def _not_in_simulation(dump):
    @functools.wraps(dump)
    def wrapped(self, target_directory, kernel_under_test):
        if self.trace_mode.value == "simulation":
            return {}
        return dump(self, target_directory, kernel_under_test)

    return wrapped


def _executed(execute, case):
    @functools.wraps(execute)
    def wrapped(self, kernel_under_test):
        need = _estimate(kernel_under_test)
        if need > case.heavy_bytes:
            case.wait_until_alone()
        return execute(self, kernel_under_test)

    return wrapped


def _estimate(kernel_under_test):
    arguments = kernel_under_test.validation_args
    golden = getattr(arguments, "golden_output", None)
    inputs = kernel_under_test.kernel_input
    count = 1
    if hasattr(inputs, "for_rank"):
        count, inputs = kernel_under_test.inference_args.collective_ranks, inputs.for_rank(0)
    outputs = getattr(golden, "output_ndarray", golden if isinstance(golden, dict) else {})
    return count * machine.case_bytes(inputs or {}, outputs)


def _simulated(simulate, case):
    @functools.wraps(simulate)
    def wrapped(self, kernel_under_test):
        many = kernel_under_test.inference_args.collective_ranks > 1
        per_rank = hasattr(kernel_under_test.kernel_input, "for_rank")
        with case.kernel():
            if not many and not per_rank:
                return simulate(self, kernel_under_test)
            try:
                return _simulate_ranks(self, kernel_under_test)
            except Exception as error:
                raise sys.modules[HARNESS].InferenceException(str(error)) from error

    return wrapped


class _PackedBits:
    """A result of four packed numbers an element. As another type of the same size it is its bits: the suite's references
    for some kernels hold bits of fp8 x4 as float32, since a file from a chip has no type."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None or dtype == self.array.dtype else self.array.view(dtype)


def _packed(result):
    dtype = getattr(result, "dtype", None)
    return _PackedBits(np.asarray(result)) if str(dtype).endswith("_x4") else result


def _with_packed_bits(simulate_kernel):
    @functools.wraps(simulate_kernel)
    def wrapped(*arguments, **named):
        return [_packed(result) for result in simulate_kernel(*arguments, **named)]

    return wrapped


def _simulate_ranks(self, kernel_under_test):
    """Runs every rank and writes its results where the harness looks for those of real chips."""
    harness = sys.modules[HARNESS]
    compiler = kernel_under_test.compiler_input
    count = kernel_under_test.inference_args.collective_ranks
    os.environ["NKI_NC_VERSION"] = compiler.platform_target.get_nc_gen()
    results = ranks.launch(
        kernel_under_test.kernel_func, compiler.logical_nc_config, [_inputs(kernel_under_test, r) for r in range(count)]
    )
    folder = os.path.join(self.fs_config.artifacts_output_directory_path, harness.INF_ARTIFACT_DIR_NAME)
    for rank, returned in enumerate(results):
        golden = harness.normalize_golden_output(kernel_under_test.validation_args.golden_output, rank)
        arrays = returned if isinstance(returned, (list, tuple)) else [] if returned is None else [returned]
        if len(arrays) != len(golden):
            raise RuntimeError(
                f"rank {rank} returned {len(arrays)} results, {len(golden)} are expected: {list(golden)}"
            )
        named = {
            name: np.asarray(_packed(array), dtype=expected.dtype)
            for (name, expected), array in zip(golden.items(), arrays, strict=True)
        }
        place = os.path.join(folder, f"output_worker_{rank}") if count > 1 else folder
        self.__dump_tensors__(place, named, lambda name: name)
    return folder


def _inputs(kernel_under_test, rank):
    inputs = kernel_under_test.kernel_input
    mine = inputs.for_rank(rank) if hasattr(inputs, "for_rank") else inputs
    # Ranks that share one array would write into each other's memory.
    return {
        name.removesuffix(".must_alias_input"): value.copy() if isinstance(value, np.ndarray) else value
        for name, value in (mine or {}).items()
    }


def _validated(validate, case):
    @functools.wraps(validate)
    def wrapped(self, kernel_under_test, *arguments, **named):
        start = time.perf_counter()
        try:
            return validate(self, kernel_under_test, *arguments, **named)
        finally:
            golden = getattr(kernel_under_test.validation_args, "golden_output", None)
            case.validated(time.perf_counter() - start, _reference_seconds(golden))

    return wrapped


def _reference_seconds(golden):
    """What the suite measured itself while it made the reference."""
    times = getattr(golden, "computation_times", None)
    return sum(times.values()) if times else getattr(golden, "computation_time", None) or 0.0
