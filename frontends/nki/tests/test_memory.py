# SPDX-License-Identifier: Apache-2.0
"""Tensors, views and all forms of an index, against NumPy."""

import warnings

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import BadInput, OutOfBounds, RuleError, SternaWarning, WrongType

F32 = np.float32


def numbers(*shape, dtype=F32):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def read(f):
    """A kernel that loads f(x) and returns it."""

    @nki.jit
    def kernel(x):
        t = nl.load(f(x))
        out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm)
        nl.store(out, t)
        return out

    return kernel


HBM_INDICES = {
    "slices": lambda x: x[2:7, 1:3],
    "rows": lambda x: x[2:7],
    "int drops a dimension": lambda x: x[3],
    "int in the middle": lambda x: x[:, 2, :],
    "trailing int": lambda x: x[1:9, 1:4, 3],
    "negative int": lambda x: x[-1],
    "negative slice": lambda x: x[-3:, :-1],
    "ellipsis first": lambda x: x[..., 1:3],
    "ellipsis last": lambda x: x[4:6, ...],
    "ellipsis alone": lambda x: x[...],
    "step": lambda x: x[::2, 0:4:3],
    "clipped": lambda x: x[8:20],
    "chained": lambda x: x[2:9][1:3, :, 2:5],
}


@pytest.mark.parametrize("form", HBM_INDICES)
def test_index_of_an_argument(form):
    x = numbers(10, 4, 6)
    want = HBM_INDICES[form](x)
    got = read(HBM_INDICES[form])(x)
    np.testing.assert_array_equal(got.reshape(want.shape), want)


@pytest.mark.parametrize("form", HBM_INDICES)
def test_store_at_an_index_of_a_result(form):
    @nki.jit
    def kernel(start, value):
        out = nl.ndarray(start.shape, start.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, start)
        nl.store(HBM_INDICES[form](out), nl.load(value))
        return out

    start = numbers(10, 4, 6)
    want = -start
    value = -HBM_INDICES[form](start)
    want = start.copy()
    HBM_INDICES[form](want)[...] = value
    np.testing.assert_array_equal(kernel(start, np.ascontiguousarray(value)), want)


def test_ds_is_a_slice_by_size():
    x = numbers(10, 8)
    np.testing.assert_array_equal(read(lambda t: t[nl.ds(2, 5), nl.ds(1, 3)])(x), x[2:7, 1:4])
    np.testing.assert_array_equal(read(lambda t: t[nl.ds(4, 2)])(x), x[4:6])


def test_index_of_a_tile(apply):
    x = numbers(16, 3, 8)
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t[4:8, :, 2:6]), x), x[4:8, :, 2:6])
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t[:, 1]), x), x[:, 1])
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t[..., -1]), x), x[..., -1])
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t[:, 0:3:2, ::4]), x), x[:, ::2, ::4])
    # On chip dimension 0 is the partition: an int keeps it, and a tile stays two-dimensional.
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t[5]), x), x[5:6])
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t[:, 1, 2]), x), x[:, 1, 2:3])


def test_shape_attributes():
    @nki.jit
    def kernel(x):
        t = nl.ndarray((16, 3, 8), nl.bfloat16, name="tile")
        assert (x.shape, x.strides, x.ndim, x.size, x.offset) == ((4, 5), (5, 1), 2, 20, 0)
        assert (x.buffer, x.dtype, x.name) == (nl.hbm, nl.float32, "x")
        assert (x[1:3, 2:4].offset, x[1:3, 2:4].strides) == (7, (5, 1))
        assert (t.shape, t.dtype, t.buffer, t.name, t.itemsize) == ((16, 3, 8), nl.bfloat16, nl.sbuf, "tile", 2)
        assert t.get_pattern() == [[24, 16], [8, 3], [1, 8]]
        assert t.is_contiguous() and not t[:, :, 0:2].is_contiguous() and not t.is_indirect()
        assert len(t) == 16 and isinstance(t, nl.ndarray) and not isinstance(3, nl.ndarray)
        assert nl.ndarray((4, 4), nl.float32, buffer=nl.psum).buffer is nl.psum
        assert nl.ndarray(7, nl.float32, buffer=nl.hbm).shape == (7,)
        return x

    kernel(numbers(4, 5))


def test_shared_hbm_is_hbm():
    assert nl.is_hbm(nl.hbm) and nl.is_hbm(nl.shared_hbm) and nl.private_hbm is nl.hbm
    assert nl.is_sbuf(nl.sbuf) and nl.is_psum(nl.psum) and nl.is_on_chip(nl.psum) and not nl.is_on_chip(nl.hbm)
    assert nl.MemoryRegion.psum is nl.psum


def test_memory_regions_are_those_of_the_stub():
    """class MemoryRegion(Enum): sbuf, psum, private_hbm, shared_hbm, each with its name as value; hbm: "alias of private_hbm"."""
    assert {region.name: region.value for region in nl.MemoryRegion} == {
        "sbuf": "sbuf",
        "psum": "psum",
        "private_hbm": "private_hbm",
        "shared_hbm": "shared_hbm",
    }
    assert nl.MemoryRegion("psum") is nl.psum and nl.MemoryRegion("private_hbm") is nl.hbm is nl.MemoryRegion.hbm

    @nki.jit
    def kernel(x):
        for region in (nl.sbuf, nl.psum):
            assert nl.ndarray((2, 2), nl.float32, buffer=region).buffer is region
        for region in (nl.hbm, nl.shared_hbm):
            made = nl.ndarray((2, 2), nl.float32, buffer=region)
            assert nl.is_hbm(made.buffer) and "in hbm" in repr(made)
        return x

    kernel(numbers(2, 2))


def test_a_result_may_be_written_through_a_reshape():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out.reshape((24, 2)), nl.load(x.reshape((24, 2))))
        return out

    np.testing.assert_array_equal(kernel(numbers(4, 12)), numbers(4, 12))


def test_dynamic_index_by_register_and_by_tensor():
    @nki.jit
    def kernel(x, where):
        out = nl.ndarray((4, 1, 6), x.dtype, buffer=nl.shared_hbm)
        at = nl.load(where)
        reg = nisa.register_alloc(where)
        nisa.dma_copy(out[0], x[reg])
        nisa.dma_copy(out[1], x[nl.ds(reg, 1)])
        nisa.dma_copy(out[2], x[at])
        nisa.dma_copy(out[3], x.ap([[6, 1], [1, 6]], scalar_offset=at, indirect_dim=0))
        return out

    x = numbers(10, 6)
    got = kernel(x, np.array([[7]], np.int32))
    np.testing.assert_array_equal(got, np.broadcast_to(x[7], (4, 1, 6)))


def test_dynamic_index_of_a_free_dimension(apply):
    def pick(t):
        reg = nisa.register_alloc(3)
        return nl.copy(t[:, nl.ds(reg, 2)])

    np.testing.assert_array_equal(apply(pick, numbers(8, 10)), numbers(8, 10)[:, 3:5])


def test_a_dynamic_index_out_of_bounds_is_an_index_error():
    @nki.jit
    def kernel(x):
        reg = nisa.register_alloc(10)
        t = nl.load(x[reg])
        out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm)
        nl.store(out, t)
        return out

    with pytest.raises(IndexError):
        kernel(numbers(10, 6))


@pytest.mark.parametrize("select", ["vector_select", "ap"])
def test_gather_and_scatter_of_rows(select, rng):
    rows = rng.permutation(16)[:8].astype(np.int32).reshape(8, 1)

    def chosen(x, at):
        return x.vector_select(0, at) if select == "vector_select" else x.ap([[6, 8], [1, 6]], vector_offset=at)

    @nki.jit
    def kernel(x, where):
        at = nl.load(where)
        t = nl.ndarray((8, 6), x.dtype)
        nisa.dma_copy(t, chosen(x, at))
        back = nl.zeros(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(chosen(back, at), t)
        out = nl.ndarray((8, 6), x.dtype, buffer=nl.shared_hbm)
        nl.store(out, t)
        return out, back

    x = numbers(16, 6)
    got, back = kernel(x, rows)
    np.testing.assert_array_equal(got, x[rows[:, 0]])
    want = np.zeros_like(x)
    want[rows[:, 0]] = x[rows[:, 0]]
    np.testing.assert_array_equal(back, want)


def test_assignment_casts_broadcasts_and_stores(apply):
    def fill(t):
        t[0:4, 1:3] = 2.5
        t[4:8, :] = t[0:4, :]
        t[8:9] = nl.full((1, 6), 9, nl.int32)
        t[9:, ...] = t[0:1, 0:1]
        return t

    want = numbers(16, 6)
    want[0:4, 1:3] = 2.5
    want[4:8] = want[0:4]
    want[8] = 9
    want[9:] = want[0, 0]
    np.testing.assert_array_equal(apply(fill, numbers(16, 6)), want)

    @nki.jit
    def into_hbm(x):
        out = nl.ndarray((4, 3), nl.float32, buffer=nl.shared_hbm)
        t = nl.ndarray((4, 1), nl.float32)
        t[...] = x[:, 0:1]
        for c in range(2):
            out[:, c : c + 1] = t
        out[:, 2:3] = 7
        return out

    with pytest.warns(SternaWarning, match="COMPAT2"):
        got = into_hbm(numbers(4, 3).astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(got, np.array([[0, 0, 7], [3, 3, 7], [6, 6, 7], [9, 9, 7]], F32))


def test_assignment_is_refused_when_strict(apply, monkeypatch):
    monkeypatch.setenv("STERNA_STRICT", "1")

    def fill(t):
        t[...] = 0.0

    with pytest.raises(RuleError, match="COMPAT2"):
        apply(fill, numbers(4, 4))


@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum, nl.shared_hbm], ids=lambda b: b.name)
def test_constructors(buffer):
    @nki.jit
    def kernel(x):
        made = [
            nl.zeros((4, 6), nl.float32, buffer=buffer),
            nl.ones((4, 6), dtype=nl.float32, buffer=buffer),
            nl.full((4, 6), 2.5, nl.float32, buffer=buffer),
            nl.zeros_like(nl.load(x), buffer=buffer),
        ]
        empty = nl.empty_like(nl.load(x))
        assert (empty.shape, empty.dtype, empty.buffer) == ((4, 6), nl.float32, nl.sbuf)
        out = nl.ndarray((4, 4, 6), nl.float32, buffer=nl.shared_hbm)
        for i, t in enumerate(made):
            nl.store(out[i], nl.load(t) if nl.is_hbm(t.buffer) else t)
        return out

    got = kernel(numbers(4, 6))
    for value, block in zip([0, 1, 2.5, 0], got):
        np.testing.assert_array_equal(block, np.full((4, 6), value, F32))


def test_full_keeps_every_bit_of_an_integer(apply):
    got = apply(lambda t: nl.full((4, 1), 0x9E3779B9, dtype=nl.uint32), numbers(4, 1))
    np.testing.assert_array_equal(got, np.full((4, 1), 0x9E3779B9, np.uint32))


def test_a_large_hbm_tensor_is_filled():
    @nki.jit
    def kernel(x):
        return nl.full((300, 5), 3, nl.int32, buffer=nl.shared_hbm), nl.ones((7,), nl.float32, buffer=nl.shared_hbm)

    a, b = kernel(numbers(1, 1))
    np.testing.assert_array_equal(a, np.full((300, 5), 3, np.int32))
    np.testing.assert_array_equal(b, np.ones(7, F32))


def test_shared_constant_and_identity(tmp_path, rng):
    values = rng.standard_normal((8, 4), dtype=F32)
    np.save(tmp_path / "c.npy", values)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, 8, 4), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[0], nl.load(nl.shared_constant(values)))
        nl.store(out[1], nl.load(nl.shared_constant(str(tmp_path / "c.npy"))))
        eye = nl.ndarray((8, 8), nl.uint8, buffer=nl.shared_hbm)
        nl.store(eye, nl.shared_identity_matrix(8))
        wide = nl.ndarray((8, 8), nl.bfloat16, buffer=nl.shared_hbm)
        nl.store(wide, nl.shared_identity_matrix(8, dst=nl.ndarray((8, 8), nl.bfloat16)))
        return out, eye, wide

    out, eye, wide = kernel(numbers(1, 1))
    np.testing.assert_array_equal(out, np.stack([values, values]))
    np.testing.assert_array_equal(eye, np.eye(8, dtype=np.uint8))
    np.testing.assert_array_equal(wide, np.eye(8).astype(ml_dtypes.bfloat16))


def test_tile_size(monkeypatch):
    # Architecture pages: 128 partitions, PSUM of 8 banks of 2 KiB a partition, matmul tiles of 128 x 512.
    size = nl.tile_size
    assert (size.pmax, size.psum_num_banks, size.psum_bank_fmax_bytes) == (128, 8, 2048)
    assert size.psum_fmax == size.psum_bank_fmax == size.gemm_moving_fmax == size.bn_stats_fmax == 512
    assert size.gemm_stationary_fmax == 128
    assert size.sbuf_size_bytes == size.sbuf_fmax_bytes * 128 == size.total_available_sbuf_size * 128
    trn2 = size.sbuf_fmax_bytes
    assert 192 * 1024 <= trn2 <= 224 * 1024
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert trn2 < size.sbuf_fmax_bytes <= 256 * 1024


def test_transposes_on_the_tensor_engine_keep_a_bank(monkeypatch):
    monkeypatch.setenv("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", "1")
    assert nl.tile_size.psum_num_banks == 7


@pytest.mark.parametrize("form", [lambda x: x[8:20], lambda x: x[nl.ds(8, 12)]], ids=["slice", "ds"])
def test_a_slice_past_the_end_is_clipped_with_a_remark(form):
    x = numbers(10, 8)
    with pytest.warns(SternaWarning, match="IDX5"):
        np.testing.assert_array_equal(read(form)(x), x[8:])


def test_tensors_with_an_address_alias():
    @nki.jit
    def kernel(x):
        a = nl.ndarray((4, 8), nl.float32, address=(0, 64))
        b = nl.ndarray((4, 2), nl.float32, address=(0, 72))
        nisa.dma_copy(a, x)
        nisa.memset(b, -1.0)
        out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, a)
        return out

    want = numbers(4, 8)
    want[:, 2:4] = -1
    np.testing.assert_array_equal(kernel(want.copy() * 0 + numbers(4, 8)), want)


def refused(f, x=None):
    @nki.jit
    def kernel(x):
        f(x)
        return x

    return kernel, numbers(10, 6) if x is None else x


REFUSED = {
    "int past the end": (lambda x: x[10], IndexError),
    "negative int past the start": (lambda x: x[-11], IndexError),
    "too many indices": (lambda x: x[0, 0, 0], IndexError),
    "not an index": (lambda x: x["a"], TypeError),
    "None": (lambda x: x[None], TypeError),
    "negative step": (lambda x: x[::-1], ValueError),
    "two registers": (lambda x: x[nisa.register_alloc(0), nisa.register_alloc(0)], TypeError),
    "register on partitions": (lambda x: nl.load(x)[nisa.register_alloc(0)], TypeError),
    "string buffer": (lambda x: nl.ndarray((2, 2), nl.float32, buffer="sbuf"), WrongType),
    "unknown keyword": (lambda x: nl.ndarray((2, 2), nl.float32, shared=True), TypeError),
    "no type": (lambda x: nl.ndarray((2, 2), "float7"), TypeError),
    "six dimensions": (lambda x: nl.ndarray((1, 1, 1, 1, 1, 1), nl.float32), ValueError),
    "129 partitions": (lambda x: nl.ndarray((129, 1), nl.float32), RuleError),
    "negative size": (lambda x: nl.ndarray((2, -1), nl.float32), BadInput),
    "PSUM between banks": (lambda x: nl.ndarray((2, 2), nl.float32, buffer=nl.psum, address=(0, 64)), RuleError),
    "reshape count": (lambda x: x.reshape((7, 7)), BadInput),
    "permute the partition": (lambda x: nl.load(x).permute((1, 0)), BadInput),
    "deletion": (lambda x: x.__delitem__(0), (TypeError, AttributeError)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    f, error = REFUSED[case]
    kernel, x = refused(f)
    with pytest.raises(error):
        kernel(x)


def test_the_truth_of_a_tensor_is_that_it_is_there():
    seen = []
    kernel, x = refused(lambda x: seen.append(bool(x)))
    with pytest.warns(SternaWarning, match="TRUTH1"):
        kernel(x)
    assert seen == [True]


def test_the_truth_of_a_tensor_with_one_element_is_not_its_value():
    seen = []
    kernel, x = refused(lambda x: seen.append(bool(x[0, 0])))
    with pytest.warns(SternaWarning, match="its one element is not looked at"):
        kernel(np.zeros_like(x))
    assert seen == [True]


def test_the_truth_of_a_tensor_is_refused_in_strict_mode(monkeypatch):
    monkeypatch.setenv("STERNA_STRICT", "1")
    kernel, x = refused(lambda x: bool(x))
    with pytest.raises(WrongType, match="TRUTH1"):
        kernel(x)


def test_the_buffer_may_stand_third():
    buffers = []

    def make(x):
        buffers.extend(
            t.buffer for t in (nl.ndarray((2, 2), nl.float32, nl.psum), nl.zeros((2, 2), nl.float32, nl.hbm))
        )

    kernel, x = refused(make)
    kernel(x)
    assert buffers == [nl.psum, nl.hbm]


def test_an_address_outside_the_memory_is_refused():
    kernel, x = refused(lambda x: nisa.memset(nl.ndarray((2, 2), nl.float32, address=(0, 1 << 20)), 0))
    with pytest.raises(OutOfBounds, match="ADDR1"):
        kernel(x)


def test_the_base_of_a_view_is_the_whole_tensor():
    @nki.jit
    def kernel(x):
        part = x[1:3, 2:4]
        assert part.base_tensor.shape == x.shape and x.base_tensor.dtype == x.dtype
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, part.base_tensor)
        return out

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_array_equal(kernel(x), x)


@pytest.mark.parametrize("cores", [1, 2])
def test_the_buffer_of_shared_hbm_is_shared_hbm(cores):
    """shared_constant: "an NkiTensor in shared_hbm"; empty_like: "default: same as x"; simulator guide: arrays are in
    shared_hbm under LNC2, in HBM otherwise."""
    seen = []

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        seen.append(
            (x.buffer, out.buffer, nl.shared_constant(np.ones(2, np.float32)).buffer, nl.empty_like(out).buffer)
        )
        assert nl.is_hbm(out.buffer) and nl.ndarray((2, 2), nl.float32, buffer=nl.hbm).buffer is nl.hbm
        made = nl.zeros_like(out)
        nisa.dma_copy(made, x)
        return made

    x = np.ones((4, 4), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel[cores](x)
    argument = nl.hbm if cores == 1 else nl.shared_hbm
    assert seen == [(argument, nl.shared_hbm, nl.shared_hbm, nl.shared_hbm)] * cores


@pytest.mark.parametrize("address", [64, (0, 0, 0), (0, -4), ("0", 0)])
def test_an_address_is_a_partition_and_a_byte(address):
    @nki.jit
    def kernel(x):
        nl.ndarray((2, 2), nl.float32, buffer=nl.sbuf, address=address)

    with pytest.raises((TypeError, BadInput), match="address"):
        kernel(np.ones((2, 2), np.float32))
