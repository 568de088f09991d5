# SPDX-License-Identifier: Apache-2.0
"""The closed modules that nki-library imports, as the plug-in stands in for them."""

import numpy as np
import pytest

pytest.importorskip("sterna.nki_library")

import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402
from sterna.faults import RuleError  # noqa: E402
from sterna.nki_library import compiler, remote_locks  # noqa: E402
from sterna.nki_library import neuron_dtypes as dt  # noqa: E402


def test_compiling_records_and_writes_the_program(tmp_path):
    ran = []

    def kernel(x):
        ran.append(True)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x)
        return out

    x = np.ones((4, 4), np.float32)
    made = compiler.ParserFrontend().compile(kernel, inputs={"x": x}, target="trn2", lnc=1, output_names=["out"])
    options = compiler.CompileOptions(target="trn2", output_path=str(tmp_path / "deep" / "file.neff"))
    done = compiler.CompiledKernel.from_frontend(made, options.disable_backend_optimizations())
    assert ran == [True]
    with open(done.neff_path, encoding="utf-8") as file:
        assert "dma_copy" in file.read()


def test_compiling_refuses_what_the_chip_refuses():
    def wide(x):
        nl.ndarray((256, 4), nl.float32, buffer=nl.sbuf)

    with pytest.raises(RuleError):
        compiler.ParserFrontend().compile(wide, inputs={"x": np.ones((4, 4), np.float32)}, target="trn2")


def test_compiling_refuses_what_does_not_fit_into_memory():
    def large(x):
        tiles = [nl.ndarray((128, 16 * 1024), nl.float32, buffer=nl.sbuf) for _ in range(8)]
        for tile in tiles:
            nisa.memset(tile, 0.0)
        total = nl.ndarray((128, 16 * 1024), nl.float32, buffer=nl.sbuf)
        for tile in tiles:
            nisa.tensor_tensor(total, tiles[0], tile, nl.add)

    with pytest.raises(RuleError, match="CAP1"):
        compiler.ParserFrontend().compile(large, inputs={"x": np.ones((4, 4), np.float32)}, target="trn2")


def test_a_lock_result_survives_its_text_form():
    result = remote_locks.LockResult(status=remote_locks.LockStatus.DRAINED, max_lock_expiry=12)
    assert remote_locks.LockResult.from_json(result.to_json()) == result
    for status in remote_locks.LockStatus:
        assert remote_locks.LockStatus.from_exit_code(status.exit_code) is status
    assert remote_locks.LockStatus.from_exit_code(99) is None


def test_static_cast_takes_names_types_and_dtypes():
    values = np.array([1.0, 2.5, -3.0, 0.125], np.float32)
    for dtype in ("bfloat16", nl.bfloat16, dt.bfloat16, np.dtype(dt.bfloat16)):
        got = dt.static_cast(values, dtype)
        assert got.dtype == np.dtype(dt.bfloat16)
        np.testing.assert_array_equal(got.astype(np.float32), values)
    assert float(dt.finfo(nl.float16).max) == 65504.0
    assert [dt.is_float_type(x) for x in (nl.float8_e4m3, np.int8, "float32", np.dtype(bool))] == [
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("name", ["float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4"])
def test_static_cast_packs_four_into_one(name):
    values = np.array(
        [[1.0, 2.0, -4.0, 0.5, 6.0, -1.5, 0.0, 3.0]], np.float32
    )  # every one is exact in each of the types
    packed = dt.static_cast(values, getattr(nl, name))
    assert packed.shape == (1, 2) and str(packed.dtype) == name
    np.testing.assert_array_equal(dt.static_cast(packed, np.float32), values)
    with pytest.raises(TypeError):
        packed.astype(np.float32)
