# SPDX-License-Identifier: Apache-2.0
"""Collectives over ranks in one process. Sources: nki.collectives (SDK 2.32); the order of sums: design, section 4."""

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import sterna
from sterna.faults import BadInput, NotOnThisChip, RuleError

RANKS = 4
GROUP = ncc.ReplicaGroup([list(range(RANKS))])


def hbm(shape, dtype, name=""):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm, name=name)


def data(shape, dtype=np.float32, ranks=RANKS, seed=0):
    return np.random.default_rng(seed).standard_normal((ranks, *shape)).astype(dtype)


@nki.jit
def reduce_kernel(x, group, op):
    out = hbm(x.shape, x.dtype)
    ncc.all_reduce(srcs=[x], dsts=[out], replica_group=group, op=op)
    return out


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("op", [nl.add, nl.minimum, nl.maximum], ids=["add", "minimum", "maximum"])
def test_all_reduce(op, lnc):
    x = data((8, 16))
    step = {nl.add: np.add, nl.minimum: np.minimum, nl.maximum: np.maximum}[op]
    want = x[0]
    for rank in range(1, RANKS):
        want = step(want, x[rank])  # in the order of the group
    for got in sterna.launch(reduce_kernel[lnc], [{"x": one, "group": GROUP, "op": op} for one in x]):
        np.testing.assert_array_equal(got, want)


def test_all_reduce_of_bfloat16_rounds_once():
    x = data((4, 64), ml_dtypes.bfloat16)
    want = x.astype(np.float32)
    want = (((want[0] + want[1]) + want[2]) + want[3]).astype(ml_dtypes.bfloat16)
    got = sterna.launch(reduce_kernel, [{"x": one, "group": GROUP, "op": nl.add} for one in x])
    np.testing.assert_array_equal(got[2].view(np.uint16), want.view(np.uint16))


def test_all_reduce_of_whole_numbers_is_exact():
    x = np.random.default_rng(1).integers(-(2**31), 2**31, (RANKS, 4, 8)).astype(np.int32)
    want = x.sum(0, dtype=np.int32)
    got = sterna.launch(reduce_kernel, [{"x": one, "group": GROUP, "op": nl.add} for one in x])
    np.testing.assert_array_equal(got[0], want)


def test_all_reduce_in_place():
    @nki.jit
    def kernel(x, group):
        ncc.all_reduce(srcs=[x], dsts=[x], replica_group=group, op=nl.add)
        return x

    x = np.ones((RANKS, 2, 4), np.float32)
    for got in sterna.launch(kernel[2], [{"x": one, "group": GROUP} for one in x]):
        assert (got == RANKS).all()


def test_groups_are_apart():
    group = ncc.ReplicaGroup([[0, 2], [3, 1]])
    x = data((2, 4))
    got = sterna.launch(reduce_kernel, [{"x": one, "group": group, "op": nl.add} for one in x])
    np.testing.assert_array_equal(got[0], x[0] + x[2])
    np.testing.assert_array_equal(got[1], x[3] + x[1])


@pytest.mark.parametrize("lnc", [1, 2])
def test_all_gather_along_dimension_0(lnc):
    @nki.jit
    def kernel(x, group):
        out = hbm((RANKS * x.shape[0], x.shape[1]), x.dtype)
        ncc.all_gather(srcs=[x], dsts=[out], replica_group=group, collective_dim=0)
        return out

    x = data((3, 5))
    for got in sterna.launch(kernel[lnc], [{"x": one, "group": GROUP} for one in x]):
        np.testing.assert_array_equal(got, x.reshape(-1, 5))


def test_all_gather_of_tiles_by_each_core():
    """Each core of a rank gathers its own half, in SBUF along the free dimension."""

    @nki.jit
    def kernel(x, group):
        rows = nl.ds(nl.program_id(0) * 64, 64)
        tile = nl.ndarray((64, x.shape[1]), dtype=x.dtype)
        wide = nl.ndarray((64, RANKS * x.shape[1]), dtype=x.dtype)
        nisa.dma_copy(tile, x[rows, :])
        ncc.all_gather(srcs=[tile], dsts=[wide], replica_group=group, collective_dim=1)
        out = hbm((128, RANKS * x.shape[1]), x.dtype)
        nisa.dma_copy(out[rows, :], wide)
        return out

    x = data((128, 6))
    want = np.concatenate(list(x), axis=1)
    for got in sterna.launch(kernel[2], [{"x": one, "group": GROUP} for one in x]):
        np.testing.assert_array_equal(got, want)


def test_each_core_reduces_its_own_half_of_hbm():
    @nki.jit
    def kernel(x, group):
        out = hbm(x.shape, x.dtype)
        half = nl.ds(nl.program_id(0) * 2, 2)
        ncc.all_reduce(srcs=[x[half, :]], dsts=[out[half, :]], replica_group=group, op=nl.add)
        return out

    x = data((4, 8))
    want = ((x[0] + x[1]) + x[2]) + x[3]
    for got in sterna.launch(kernel[2], [{"x": one, "group": GROUP} for one in x]):
        np.testing.assert_array_equal(got, want)


def test_a_collective_of_one_core_only():
    """The other core of each rank never comes: those of one number go on by themselves."""

    @nki.jit
    def kernel(x, group):
        out = hbm(x.shape, x.dtype)
        if nl.program_id(0) == 0:
            ncc.all_reduce(srcs=[x], dsts=[out], replica_group=group, op=nl.add)
        nisa.core_barrier(out, (0, 1))
        return out

    x = data((4, 8))
    for got in sterna.launch(kernel[2], [{"x": one, "group": GROUP} for one in x]):
        np.testing.assert_array_equal(got, ((x[0] + x[1]) + x[2]) + x[3])


def test_reduce_scatter():
    @nki.jit
    def kernel(x, group):
        out = hbm((x.shape[0] // RANKS, x.shape[1]), x.dtype)
        ncc.reduce_scatter(srcs=[x], dsts=[out], replica_group=group, collective_dim=0, op=nl.add)
        return out

    x = data((8, 4))
    want = ((x[0] + x[1]) + x[2]) + x[3]
    for rank, got in enumerate(sterna.launch(kernel, [{"x": one, "group": GROUP} for one in x])):
        np.testing.assert_array_equal(got, want[2 * rank : 2 * rank + 2])


def test_all_to_all_several_tensors():
    @nki.jit
    def kernel(x, y, group):
        outs = hbm(x.shape, x.dtype), hbm(y.shape, y.dtype)
        ncc.all_to_all(srcs=[x, y], dsts=list(outs), replica_group=group, collective_dim=0)
        return outs

    x, y = data((8, 4)), data((4, 3), seed=5)
    got = sterna.launch(kernel, [{"x": x[r], "y": y[r], "group": GROUP} for r in range(RANKS)])
    for rank in range(RANKS):
        np.testing.assert_array_equal(
            got[rank][0], np.concatenate([x[r][2 * rank : 2 * rank + 2] for r in range(RANKS)])
        )
        np.testing.assert_array_equal(got[rank][1], np.stack([y[r][rank] for r in range(RANKS)]))


def test_permute_by_pairs():
    @nki.jit
    def kernel(x):
        out = hbm(x.shape, x.dtype)
        nisa.dma_copy(out, x)
        ncc.collective_permute(srcs=[x], dsts=[out], source_target_pairs=[(0, 2), (2, 0), (1, 3)])
        return out

    x = data((2, 4))
    got = sterna.launch(kernel, [{"x": one} for one in x])
    for rank, source in enumerate([2, 1, 0, 1]):
        np.testing.assert_array_equal(got[rank], x[source])


def test_a_ring_brings_every_ranks_data():
    @nki.jit
    def kernel(x, table, group):
        out = hbm((RANKS, *x.shape), x.dtype)
        ranks = hbm((RANKS, 1), nl.int32)
        buffers = [hbm(x.shape, x.dtype, name=f"ring{i}") for i in range(RANKS)]
        nisa.dma_copy(buffers[0], x)
        for turn in range(RANKS):
            here = ncc.collective_permute_implicit_current_processing_rank_id(turn, group)
            nisa.dma_copy(
                out.ap([[x.shape[1], x.shape[0]], [1, x.shape[1]]], scalar_offset=here, indirect_dim=0), buffers[turn]
            )
            nisa.dma_copy(ranks[turn : turn + 1, :], table.ap([[1, 1], [1, 1]], scalar_offset=here, indirect_dim=0))
            if turn + 1 < RANKS:
                ncc.collective_permute_implicit([[buffers[turn]]], [[buffers[turn + 1]]], group)
        return out, ranks

    x = data((2, 4))
    table = np.arange(RANKS, dtype=np.int32)[:, None]
    for rank, (got, ranks) in enumerate(
        sterna.launch(kernel[2], [{"x": one, "table": table, "group": GROUP} for one in x])
    ):
        np.testing.assert_array_equal(got, x)
        np.testing.assert_array_equal(ranks[:, 0], [(rank - turn) % RANKS for turn in range(RANKS)])


def test_a_ring_that_reduces():
    @nki.jit
    def kernel(x, y, group):
        out = hbm(x.shape, x.dtype)
        ncc.collective_permute_implicit_reduce([[x]], [[y]], [[out]], group, op=nl.add)
        return out

    x, y = data((2, 4)), data((2, 4), seed=3)
    got = sterna.launch(kernel, [{"x": x[r], "y": y[r], "group": GROUP} for r in range(RANKS)])
    for rank in range(RANKS):
        before = (rank - 1) % RANKS
        np.testing.assert_array_equal(got[rank], x[before] + y[before])


def test_rank_id():
    @nki.jit
    def kernel(x):
        out = hbm((1, 4), x.dtype)
        nisa.dma_copy(out, x.ap([[4, 1], [1, 4]], scalar_offset=ncc.rank_id(), indirect_dim=0))
        return out

    x = data((4,))
    for rank, got in enumerate(sterna.launch(kernel, [{"x": x}] * RANKS)):
        np.testing.assert_array_equal(got[0], x[rank])


@pytest.mark.parametrize("in_sbuf", [False, True])
def test_all_to_all_v(in_sbuf):
    @nki.jit
    def kernel(x, meta, group):
        out = hbm((RANKS, 8), x.dtype)
        nisa.dma_copy(out, x)
        if in_sbuf:
            tile = nl.ndarray((1, 3, RANKS), dtype=nl.uint32)
            nisa.dma_copy(tile, meta.reshape((1, 3, RANKS)))
            ncc.all_to_all_v([x], [out], group, tile)
            nisa.dma_copy(meta.reshape((1, 3, RANKS)), tile)
        else:
            ncc.all_to_all_v([x], [out], group, meta)
        return out, meta

    x = np.arange(RANKS * RANKS * 8, dtype=np.float32).reshape(RANKS, RANKS, 8)
    counts = np.random.default_rng(2).integers(0, 9, (RANKS, RANKS))
    metas = [np.stack([counts[r], np.arange(RANKS) * 8, np.full(RANKS, 77)]).astype(np.uint32) for r in range(RANKS)]
    got = sterna.launch(kernel, [{"x": x[r], "meta": metas[r], "group": GROUP} for r in range(RANKS)])
    for to in range(RANKS):
        want = x[to].copy()
        for source in range(RANKS):
            want[source, : counts[source, to]] = x[source, to, : counts[source, to]]
        np.testing.assert_array_equal(got[to][0], want)
        np.testing.assert_array_equal(got[to][1][2], counts[:, to])


def test_all_gather_v():
    @nki.jit
    def kernel(x, meta, group):
        out = hbm((RANKS, 4), x.dtype)
        nisa.dma_copy(out, x)
        ncc.all_gather_v([x], [out], group, meta, recv_counts_known=True)
        return out

    x = data((RANKS, 4))
    metas = [np.full((3, RANKS), 9, np.uint32) for _ in range(RANKS)]
    for rank, meta in enumerate(metas):
        meta[0, 0], meta[1, 0] = rank, 4  # `rank` elements from the second row on
    got = sterna.launch(kernel[2], [{"x": x[r], "meta": metas[r], "group": GROUP} for r in range(RANKS)])
    for to in range(RANKS):
        want = x[to].copy()
        for source in range(RANKS):
            want[source, :source] = x[source].reshape(-1)[4 : 4 + source]
        np.testing.assert_array_equal(got[to], want)
        assert (metas[to][2] == 9).all()


def chunks(call, cores=1, group=GROUP, **options):
    """The collective `call` of flat buffers on every rank."""

    @nki.jit
    def kernel(x, meta):
        out = hbm(x.shape, x.dtype)
        nisa.dma_copy(out, x)
        call([x], [out], group, meta, **options)
        return out

    meta = np.zeros((4 if options.get("has_rdispls") else 3, len(group.groups[0])), np.uint32)
    return sterna.launch(kernel[cores], [{"x": one, "meta": meta.copy()} for one in data((RANKS, 4))])


def test_limits_of_all_gather_v():
    """The stub's "current limitations": no has_rdispls, LNC=2 only, exactly four ranks in each list."""
    assert len(chunks(ncc.all_gather_v, cores=2)) == RANKS
    with pytest.raises(RuleError, match="CC17.*has_rdispls"):
        chunks(ncc.all_gather_v, cores=2, has_rdispls=True)
    with pytest.raises(RuleError, match=r"CC17.*kernel\[2\]"):
        chunks(ncc.all_gather_v)
    with pytest.raises(RuleError, match="CC17.*4 ranks"):
        chunks(ncc.all_gather_v, cores=2, group=ncc.ReplicaGroup([[0, 1], [2, 3]]))


def test_places_of_received_chunks_exist_on_trn3_only(monkeypatch):
    """all_to_all_v's has_rdispls: "only supported on NeuronSwitch-based instances (trn3 today)"."""
    with pytest.raises(NotOnThisChip, match="CC17.*has_rdispls"):
        chunks(ncc.all_to_all_v, has_rdispls=True)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert len(chunks(ncc.all_to_all_v, has_rdispls=True)) == RANKS


PRIORITY_CALLS = {
    "all_reduce": lambda x, y, p: ncc.all_reduce([x], [y], GROUP, nl.add, priority=p),
    "all_to_all": lambda x, y, p: ncc.all_to_all([x], [y], GROUP, 0, priority=p),
    "collective_permute": lambda x, y, p: ncc.collective_permute([x], [y], [(0, 1)], priority=p),
    "collective_permute_implicit": lambda x, y, p: ncc.collective_permute_implicit([[x]], [[y]], GROUP, priority=p),
    "collective_permute_implicit_reduce": lambda x, y, p: ncc.collective_permute_implicit_reduce(
        [[x]], [[x]], [[y]], GROUP, nl.add, priority=p
    ),
}


@pytest.mark.parametrize("call", PRIORITY_CALLS)
def test_priorities(call, monkeypatch):
    """ "DMA quality-of-service priority level 0-3 ... (NeuronCore-v4+ only)"."""

    @nki.jit
    def kernel(x, priority):
        out = hbm(x.shape, x.dtype)
        nisa.dma_copy(out, x)
        PRIORITY_CALLS[call](x, out, priority)
        return out

    def run(priority):
        return sterna.launch(kernel, [{"x": one, "priority": priority} for one in data((RANKS, 4))])

    with pytest.raises(NotOnThisChip, match="DMA5.*test_collectives.py"):
        run(0)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    for got, want in zip(run(3), run(None)):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(RuleError, match="DMA5.*0 to 3"):
        run(4)
    with pytest.raises(BadInput, match="ARG7.*not negative"):
        run(-1)
    with pytest.raises(TypeError, match="priority"):
        run("high")


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: ncc.all_reduce([x], [y], GROUP, None),
        lambda x, y: ncc.reduce_scatter([x], [y], GROUP, 0, None),
        lambda x, y: ncc.collective_permute_implicit_reduce([[x]], [[x]], [[y]], GROUP, None),
    ],
    ids=["all_reduce", "reduce_scatter", "permute_reduce"],
)
def test_a_reduction_needs_its_operator(call):
    """op: "nl.add, nl.minimum, or nl.maximum"."""

    @nki.jit
    def kernel(x):
        out = hbm(x.shape, x.dtype)
        call(x, out)
        return out

    with pytest.raises(RuleError, match="CC6.*maximum"):
        sterna.launch(kernel, [{"x": one} for one in data((RANKS, 4))])


def test_channels_are_numbered_from_zero():
    """channel_ids: "must be consecutive integers starting from 0"; "the maximum number of channels is 4"."""

    @nki.jit
    def kernel(x, ids):
        outs = [hbm(x.shape, x.dtype, name=f"to{i}") for i in range(len(ids))]
        ncc.collective_permute_implicit(
            [[x]] * len(ids), [[out] for out in outs], GROUP, channel_ids=np.array(ids) if len(ids) == 2 else ids
        )
        return outs[-1]

    def run(ids):
        return sterna.launch(kernel, [{"x": one, "ids": ids} for one in x])

    x = data((2, 4))
    for ids in ([0], [0, 1], [0, 1, 2, 3]):
        for rank, got in enumerate(run(ids)):
            np.testing.assert_array_equal(got, x[rank - 1])
    for ids in ([1], [0, 2], [1, 0], [0, 0], [0, 1, 2, 3, 4]):
        with pytest.raises(RuleError, match="CC16.*channel"):
            run(ids)


def test_the_channel_of_the_rank_whose_data_is_here():
    """channel_id: "0 to num_channels-1", of at most 4 channels."""

    @nki.jit
    def kernel(x, channel):
        ncc.collective_permute_implicit_current_processing_rank_id(1, GROUP, channel_id=channel)
        return x

    assert len(sterna.launch(kernel, [{"x": one, "channel": 3} for one in data((2, 4))])) == RANKS
    for wrong in (4, -1):
        with pytest.raises(RuleError, match="CC16.*channel"):
            sterna.launch(kernel, [{"x": one, "channel": wrong} for one in data((2, 4))])


def test_all_gather_keeps_the_other_dimensions():
    """ "Dimension along which output tensors are concatenated": the others are the source's."""

    @nki.jit
    def kernel(x):
        out = hbm((x.shape[0], RANKS * x.shape[1]), x.dtype)
        ncc.all_gather([x], [out], GROUP, 0)
        return out

    with pytest.raises(RuleError, match="CC5.*along dimension 0"):
        sterna.launch(kernel, [{"x": one} for one in data((4, 4))])


def test_all_gather_in_sbuf_is_of_two_dimensions():
    """ "SBUF collectives currently only operate on 2D tensors with a single free dimension"."""

    @nki.jit
    def kernel(x):
        tile, wide = nl.ndarray(x.shape, x.dtype), nl.ndarray((RANKS * x.shape[0], *x.shape[1:]), x.dtype)
        nisa.dma_copy(tile, x)
        ncc.all_gather([tile], [wide], GROUP, 0)
        out = hbm(wide.shape, x.dtype)
        nisa.dma_copy(out, wide)
        return out

    x = data((4, 6))
    for got in sterna.launch(kernel, [{"x": one} for one in x]):
        np.testing.assert_array_equal(got, x.reshape(-1, 6))
    with pytest.raises(RuleError, match=r"CC5.*SBUF.*, 2, 3\]"):
        sterna.launch(kernel, [{"x": one.reshape(4, 2, 3)} for one in x])


@pytest.mark.parametrize("lnc", [1, 2])
def test_an_error_of_the_kernel_after_a_collective_is_that_error(lnc):
    @nki.jit
    def kernel(x):
        out = hbm(x.shape, x.dtype)
        ncc.all_reduce([x], [out], GROUP, nl.add)
        if lnc == 1 or nl.program_id(0) == 1:
            raise ValueError("the user's own")
        return out

    with pytest.raises(ValueError, match="^the user's own$"):
        sterna.launch(kernel[lnc], [{"x": one} for one in data((2, 4))])


def test_a_rank_that_never_comes_is_a_deadlock():
    @nki.jit
    def kernel(x, group, comes):
        out = hbm(x.shape, x.dtype)
        nisa.dma_copy(out, x)
        if comes:
            ncc.all_reduce([x], [out], group, nl.add)
        return out

    x = data((2, 4))
    with pytest.raises(RuleError, match="CC10") as caught:
        sterna.launch(kernel, [{"x": x[r], "group": GROUP, "comes": r != 2} for r in range(RANKS)])
    text = str(caught.value)
    assert "rank 0 at" in text and "test_collectives.py" in text and "rank 2" in text and "has ended" in text


def test_ranks_that_ask_for_different_things():
    x = data((2, 4))
    for other in ({"op": nl.maximum}, {"group": ncc.ReplicaGroup([[0, 1, 2, 3], [4]])}):
        arguments = [{"x": one, "group": GROUP, "op": nl.add} for one in x]
        arguments[2].update(other)
        with pytest.raises(RuleError, match="CC13|CC9|CC10"):
            sterna.launch(reduce_kernel, arguments)


def test_stochastic_rounding_leaves_collectives_alone(monkeypatch):
    monkeypatch.setenv("STERNA_STOCHASTIC_ROUNDING", "7")
    x = data((4, 64), ml_dtypes.bfloat16)
    got = sterna.launch(reduce_kernel, [{"x": one, "group": GROUP, "op": nl.add} for one in x])
    assert len({one.tobytes() for one in got}) == 1


def test_python_cannot_look_at_values_of_a_launch(monkeypatch, capsys):
    @nki.jit
    def kernel(x):
        text = f"a message with a tensor is no look: {x}"
        print(text)
        return x if int(nisa.register_alloc(0)) == 0 else None

    with pytest.raises(sterna.NotImplementedFault, match="CC14.*test_collectives.py"):
        sterna.launch(kernel, [{"x": one} for one in data((2, 4))])
    assert "[2, 4] float32 in hbm> (values by nl.device_print)" in capsys.readouterr().out
    monkeypatch.setenv("STERNA_EAGER", "1")
    x = data((2, 4))
    assert len(sterna.launch(reduce_kernel, [{"x": one, "group": GROUP, "op": nl.add} for one in x])) == RANKS
    with pytest.raises(TypeError, match="CC15"):
        sterna.launch(reduce_kernel, [(x[0], GROUP, nl.add)] * RANKS)


def test_an_array_that_two_ranks_write_is_refused():
    @nki.jit
    def kernel(x, group):
        ncc.all_reduce(srcs=[x], dsts=[x], replica_group=group, op=nl.add)
        return x

    x = np.ones((2, 4), np.float32)
    with pytest.raises(ValueError, match="ARG6.*ranks"):
        sterna.launch(kernel, [{"x": x, "group": GROUP}] * RANKS)


def test_a_group_larger_than_the_launch():
    with pytest.raises(RuleError, match="CC9"):
        reduce_kernel(data((2, 4))[0], GROUP, nl.add)


def test_a_single_rank():
    x = data((2, 4))[0]
    np.testing.assert_array_equal(reduce_kernel(x, ncc.ReplicaGroup([[0]]), nl.add), x)


def test_results_do_not_depend_on_threads(monkeypatch):
    x = data((64, 512), ml_dtypes.bfloat16)
    got = []
    for threads in "1", "2", "7":
        monkeypatch.setenv("STERNA_THREADS", threads)
        outs = sterna.launch(reduce_kernel[2], [{"x": one, "group": GROUP, "op": nl.add} for one in x])
        got.append(b"".join(one.tobytes() for one in outs))
    assert got[0] == got[1] == got[2]
