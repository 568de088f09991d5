# SPDX-License-Identifier: Apache-2.0
"""Two cores of one kernel (LNC2): ranks, shared HBM, exchange, barriers, and what happens without a partner.

Sources: nki.isa.sendrecv, nki.isa.core_barrier, nki.language.program_id (SDK 2.32); design, sections 3 and 4.
"""

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import sterna
from sterna.faults import RuleError


def filled(value, shape=(128, 4), dtype=nl.float32):
    tile = nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)
    nisa.memset(tile, value)
    return tile


def exchanged(tile, pipe=0):
    got = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
    other = 1 - nl.program_id(0)
    nisa.sendrecv(tile, got, send_to_rank=other, recv_from_rank=other, pipe_id=pipe)
    return got


def test_each_core_writes_its_half_of_a_shared_result():
    @nki.jit
    def kernel(x):
        assert (nl.num_programs(0), nl.program_ndim()) == (2, 1)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        half = x.shape[0] // 2
        rows = nl.ds(nl.program_id(0) * half, half)
        tile = nl.ndarray((half, x.shape[1]), dtype=x.dtype)
        nisa.dma_copy(tile, x[rows, :])
        nisa.tensor_scalar(tile, tile, nl.add, float(nl.program_id(0)))
        nisa.dma_copy(out[rows, :], tile)
        return out

    x = np.arange(64 * 8, dtype=np.float32).reshape(64, 8)
    want = x + np.repeat([0, 1], 32)[:, None]
    np.testing.assert_array_equal(kernel[2](x), want)
    np.testing.assert_array_equal(nki.simulate(kernel[2])(x), want)


def test_each_core_zeroes_all_of_a_shared_result_and_writes_its_half():
    """Cores run side by side (docs/decisions/0018): one core's zeros do not come after the other's half. The second call
    runs the kept program."""

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, filled(0.0, x.shape))
        half = x.shape[0] // 2
        rows = nl.ds(nl.program_id(0) * half, half)
        tile = nl.ndarray((half, x.shape[1]), dtype=x.dtype)
        nisa.dma_copy(tile, x[rows, :])
        nisa.dma_copy(out[rows, :], tile)
        return out

    x = np.arange(64 * 8, dtype=np.float32).reshape(64, 8) + 1
    for _ in range(3):
        np.testing.assert_array_equal(kernel[2](x), x)


def test_sendrecv_exchanges_tiles_and_keeps_bits():
    @nki.jit
    def kernel(x):
        me = nl.program_id(0)
        out = nl.ndarray((2, 128, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        mine = nl.ndarray((128, 8), dtype=x.dtype)
        nisa.dma_copy(mine, x[me])
        nisa.dma_copy(out[me], exchanged(mine))
        return out

    x = np.random.default_rng(0).integers(0, 2**32, (2, 128, 8), dtype=np.uint32)
    np.testing.assert_array_equal(kernel[2](x), x[::-1])


def test_sendrecv_within_one_tile():
    """A core may receive beside what it sends, as a running maximum does."""

    @nki.jit
    def kernel():
        me = nl.program_id(0)
        out = nl.ndarray((2, 128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        both = filled(7.0)
        nisa.memset(both[:, 2 * me : 2 * me + 2], float(me))
        nisa.sendrecv(
            both[:, nl.ds(2 * me, 2)],
            both[:, nl.ds(2 * (1 - me), 2)],
            send_to_rank=1 - me,
            recv_from_rank=1 - me,
            pipe_id=3,
        )
        nisa.dma_copy(out[me], both)
        return out

    np.testing.assert_array_equal(kernel[2](), np.broadcast_to(np.float32([0, 0, 1, 1]), (2, 128, 4)))


def test_a_barrier_makes_the_others_writes_visible():
    @nki.jit
    def kernel():
        me = nl.program_id(0)
        scratch = nl.ndarray((2, 128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        out = nl.ndarray((2, 128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        for turn in range(3):
            nisa.dma_copy(scratch[me], filled(10.0 * turn + me))
            nisa.core_barrier(scratch, cores=(0, 1))
            tile = nl.ndarray((128, 4), dtype=nl.float32)
            nisa.dma_copy(tile, scratch[1 - me])
            nisa.core_barrier(scratch, cores=[0, 1])
            nisa.dma_copy(out[me], tile)
        return out

    got = kernel[2]()
    assert (got[0] == 21).all() and (got[1] == 20).all()


def test_a_register_loop_on_both_cores():
    @nki.jit
    def kernel():
        me = nl.program_id(0)
        out = nl.ndarray((2, 128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        total = filled(0.0)
        for _ in nl.dynamic_range(0, 3):
            got = exchanged(filled(float(me + 1)))
            nisa.tensor_tensor(total, total, got, nl.add)
        nisa.dma_copy(out[me], total)
        return out

    got = kernel[2]()
    assert (got[0] == 6).all() and (got[1] == 3).all()


def test_a_value_read_by_python_may_come_from_the_other_core():
    @nki.jit
    def kernel():
        me = nl.program_id(0)
        out = nl.ndarray((2, 128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        count = filled(2 + me, (1, 1), nl.int32)
        other = exchanged(count)
        turns = nisa.register_alloc(other)
        done = 0
        while turns:
            nisa.register_move(turns, int(turns) - 1)
            done += 1
        back = exchanged(filled(float(done)), pipe=1)
        nisa.dma_copy(out[me], back)
        return out

    got = kernel[2]()
    assert (got[0] == 2).all() and (got[1] == 3).all()  # each counts to the other's number and sends that back


def test_an_exchange_at_a_place_known_at_run_time_is_predicted_too():
    @nki.jit
    def kernel(at):
        me = nl.program_id(0)
        out = nl.ndarray((2, 128, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        index = nl.ndarray((1, 1), dtype=nl.int32)
        nisa.dma_copy(index, at)
        place = nisa.register_alloc(index)
        both = filled(7.0, (128, 16))
        nisa.memset(both[:, 0:8], float(me))
        got = filled(0.0, (128, 8))
        other = 1 - me
        source = both.ap([[16, 128], [1, 8]], scalar_offset=place, indirect_dim=1)
        nisa.sendrecv(source, got, send_to_rank=other, recv_from_rank=other, pipe_id=0)
        nisa.dma_copy(out[me], got)
        return out

    with sterna.profile() as profile:
        got = kernel[2](np.int32([[8]]))
    assert (got == 7).all() and profile.kernels[0].time_us > 0


def test_private_tensors_are_each_cores_own():
    @nki.jit
    def kernel():
        me = nl.program_id(0)
        out = nl.ndarray((2, 128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        mine = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.private_hbm, name="mine")
        nisa.dma_copy(mine, filled(float(me)))
        nisa.core_barrier(out, (0, 1))
        nisa.dma_copy(out[me], mine)
        return out

    got = kernel[2]()
    assert (got[0] == 0).all() and (got[1] == 1).all()


def test_shared_tensors_are_matched_by_name():
    @nki.jit
    def kernel():
        me = nl.program_id(0)
        made = {}
        for name in ("a", "b") if me == 0 else ("b", "a"):
            made[name] = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm, name=name)
        if me == 1:
            nisa.dma_copy(made["a"], filled(1.0))
            nisa.dma_copy(made["b"], filled(2.0))
        return made["a"], made["b"]

    a, b = kernel[2]()
    assert (a == 1).all() and (b == 2).all()


@pytest.mark.parametrize("name", ["sendrecv", "barrier"])
def test_a_missing_partner_is_a_deadlock_that_names_both_sides(name):
    @nki.jit
    def kernel():
        out = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = filled(1.0)
        nisa.dma_copy(out, tile)
        if name == "sendrecv":
            exchanged(tile, pipe=nl.program_id(0))
        elif nl.program_id(0) == 0:
            nisa.core_barrier(out, (0, 1))
        return out

    with pytest.raises(RuleError, match="LNC7") as caught:
        kernel[2]()
    text = str(caught.value)
    assert "core 0" in text and "core 1" in text and "test_cores.py" in text
    assert ("pipe 0" in text and "pipe 1" in text) if name == "sendrecv" else "has ended" in text


def test_a_deadlock_while_python_reads():
    @nki.jit
    def kernel():
        out = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0:
            turns = nisa.register_alloc(exchanged(filled(1, (1, 1), nl.int32)))
            while turns:
                nisa.register_move(turns, 0)
        return out

    with pytest.raises(RuleError, match="LNC7"):
        kernel[2]()


@pytest.mark.parametrize("where", [0, 1])
def test_an_error_of_one_cores_python_ends_the_call(where):
    @nki.jit
    def kernel():
        turns = nisa.register_alloc(exchanged(filled(1, (1, 1), nl.int32)))
        if nl.program_id(0) == where:
            raise KeyError("mine")
        while turns:
            nisa.register_move(turns, 0)
        return nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)

    with pytest.raises(KeyError, match="mine"):
        kernel[2]()


def test_tiles_of_another_core_are_refused():
    kept = []

    @nki.jit
    def kernel():
        out = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0:
            kept.append(filled(1.0))
        nisa.dma_copy(out, kept[0])
        return out

    with pytest.raises(RuleError, match="LNC6"):
        kernel[2]()


def test_shared_tensors_of_different_shapes_are_refused():
    @nki.jit
    def kernel():
        return nl.ndarray((128, 4 + nl.program_id(0)), dtype=nl.float32, buffer=nl.shared_hbm)

    with pytest.raises(RuleError, match="LNC5"):
        kernel[2]()


def test_a_rank_that_is_not_there():
    @nki.jit
    def kernel():
        exchanged(filled(1.0))

    with pytest.raises(RuleError, match="LNC3"):
        kernel()


def test_trn1_has_one_core():
    @nki.jit
    def kernel():
        return nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)

    with pytest.raises(RuleError, match="LNC1"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
        kernel[2]()


def test_an_inplace_parameter_is_shared():
    @nki.jit
    def kernel(x):
        me = nl.program_id(0)
        nisa.dma_copy(x[me], filled(float(me + 1), (1, 4)))
        return x

    x = np.zeros((2, 1, 4), np.float32)
    assert kernel[2](x) is x
    np.testing.assert_array_equal(x[:, 0, 0], [1, 2])
