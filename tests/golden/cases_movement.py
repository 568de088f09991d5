# SPDX-License-Identifier: Apache-2.0
"""Golden cases of DMA, GpSimd and the records that steer a run."""

import numpy as np
from cases_vector import isa
from oracle import BF16, F32, affine, alu, cast, f32

I32, U32, U16 = np.int32, np.uint32, np.uint16


def dma_copy():
    x = np.arange(24, dtype=F32).reshape(4, 6)
    c = isa("dma_copy", "in_and_out", "HBM to SBUF and back in another shape: elements keep their order")
    c.param("x", x, " read_only").tensor("y", "float32", (3, 8), "hbm", " shared").tensor("a", "float32", (4, 6))
    c("dma_copy dst=%a src=%x")("dma_copy dst=%y src=%a")("result %y").expect("a", x).expect(
        "y", x.reshape(3, 8)
    ).write()
    c = isa("dma_copy", "converts", "types that differ are converted through fp32, rounded once")
    c.param("x", f32([[1 + 2**-8, 3.1, -70000]])).tensor("b", "bfloat16", (1, 3)).tensor("i", "int16", (1, 3))
    c("dma_copy dst=%b src=%x")("dma_copy dst=%i src=%x")
    c.expect("b", cast(f32([[1 + 2**-8, 3.1, -70000]]), BF16)).expect("i", np.array([[1, 3, -32768]], np.int16)).write()
    c = isa("dma_copy", "strides_and_steps", "every second column of every second row")
    c.param("x", x).tensor("a", "float32", (2, 3))("dma_copy dst=%a src=%x[0:4:2, 1:6:2]").expect(
        "a", x[::2, 1::2]
    ).write()
    index = np.array([[3], [0], [3]], I32)
    c = isa("dma_copy", "gathers_rows", "rows found by an offset tensor, the same one twice")
    c.param("x", x).tile("i", index).tensor("a", "float32", (3, 6))(
        "dma_copy dst=%a src=%x{[6, 3], [1, 6]}+rows(%i * 6 < 4)"
    )
    c.expect("a", x[index.ravel()]).write()
    c = isa("dma_copy", "scatters_rows", "rows written where an offset tensor says; the others keep their values")
    c.param("y", np.zeros((4, 2), F32)).tile("i", np.array([[2], [0]], I32)).tile("a", f32([[1, 2], [3, 4]]))
    c("dma_copy dst=%y{[2, 2], [1, 2]}+rows(%i * 2 < 4) src=%a").expect(
        "y", f32([[3, 4], [0, 0], [1, 2], [0, 0]])
    ).write()
    outside = np.array([[3], [4], [-1]], I32)
    c = isa(
        "dma_copy",
        "skips_rows_outside",
        "oob_mode skip leaves rows alone whose index is outside: their bits and their definedness",
    )
    c.param("x", x).tile("i", outside).tensor("a", "float32", (3, 6))("memset dst=%a[1:2, 0:6] value=7")
    c("dma_copy dst=%a src=%x{[6, 3], [1, 6]}+rows(%i * 6 < 4) oob_mode=skip").expect(
        "a", "18 19 20 21 22 23\n7*6\n?*6"
    ).write()
    c = isa("dma_copy", "row_outside", "an index outside is a fault without skip")
    c.param("x", x).tile("i", outside).tensor("a", "float32", (3, 6))
    c("dma_copy dst=%a src=%x{[6, 3], [1, 6]}+rows(%i * 6 < 4)").fault("DMA4", "row 1", "0 to 3").write()
    c = isa("dma_copy", "register_offset", "a register moves the view: row 2", registers=1)
    c.param("x", x).tensor("a", "float32", (1, 6))("register_move dst=$0 value=2")(
        "dma_copy dst=%a src=%x[0:1, 0:6]+($0 * 6 < 4)"
    )
    c.expect("a", x[2:3]).section("path 12").write()
    c = isa("dma_copy", "register_offset_outside", "a dynamic offset outside its limit stops the run", registers=1)
    c.param("x", x).tensor("a", "float32", (1, 6))("register_move dst=$0 value=4")
    c("dma_copy dst=%a src=%x[0:1, 0:6]+($0 * 6 < 4)").fault("DYN1", "is 4", "0 to 3").write()
    c = isa(
        "dma_copy",
        "window_outside_is_skipped",
        "oob_mode skip: a view that would leave its tensor moves nothing",
        registers=1,
    )
    c.param("x", x).tile("a", -x[:2])("register_move dst=$0 value=3")(
        "dma_copy dst=%a src=%x[0:2, 0:6]+($0 * 6 < 4) oob_mode=skip"
    ).expect("a", -x[:2]).section("path 18").write()
    c = isa("dma_copy", "tensor_offset", "a tensor of one element moves the view")
    c.param("x", x).tile("i", np.array([[3]], I32)).tensor("a", "float32", (1, 6))(
        "dma_copy dst=%a src=%x[0:1, 0:6]+(%i * 6 < 4)"
    ).expect("a", x[3:]).write()
    c = isa("dma_copy", "psum", "a DMA does not reach PSUM")
    c.param("x", x).tensor("a", "float32", (4, 6), "psum")("dma_copy dst=%a src=%x").fault("DMA1", "PSUM").write()
    c = isa("dma_copy", "counts_differ", "both sides have as many elements")
    c.param("x", x).tensor("a", "float32", (4, 5))("dma_copy dst=%a src=%x").fault("DMA2", "20 elements", "24").write()
    c = isa("dma_copy", "read_only_parameter", "a read-only argument is not written")
    c.param("x", x, " read_only").tile("a", x)("dma_copy dst=%x src=%a").fault("ARG1", "read-only").expect(
        "x", x
    ).write()
    c = isa("dma_copy", "hardware_does_not_convert", "hardware descriptor generation needs equal types")
    c.param("x", x).tensor("a", "bfloat16", (4, 6))("dma_copy dst=%a src=%x dge_mode=hwdge").fault("DMA3").write()


def dma_transpose():
    x = np.arange(12, dtype=F32).reshape(3, 4)
    c = isa("dma_transpose", "two_dimensions", "dst = src^T")
    c.param("x", x).tensor("a", "float32", (4, 3))("dma_transpose dst=%a src=%x").expect("a", x.T).write()
    y = np.arange(24, dtype=F32).reshape(2, 3, 4).astype(BF16)
    c = isa("dma_transpose", "three_dimensions", "axes (2, 1, 0)")
    c.param("x", y).tensor("a", "bfloat16", (4, 3, 2))("dma_transpose dst=%a src=%x axes=[2, 1, 0]").expect(
        "a", y.transpose(2, 1, 0)
    ).write()
    z = np.arange(48, dtype=I32).reshape(2, 3, 2, 4)
    c = isa("dma_transpose", "four_dimensions", "axes (3, 1, 2, 0)")
    c.param("x", z).tensor("a", "int32", (4, 3, 2, 2))("dma_transpose dst=%a src=%x axes=[3, 1, 2, 0]").expect(
        "a", z.transpose(3, 1, 2, 0)
    ).write()
    c = isa("dma_transpose", "converts_nothing", "types must be equal")
    c.param("x", x).tensor("a", "bfloat16", (4, 3))("dma_transpose dst=%a src=%x").fault("DT4").write()
    c = isa("dma_transpose", "other_axes", "other axes are refused")
    c.param("x", y).tensor("a", "bfloat16", (3, 2, 4))("dma_transpose dst=%a src=%x axes=[1, 0, 2]").fault(
        "DT1"
    ).write()
    c = isa("dma_transpose", "hardware_takes_16_rows", "hardware descriptors: 16 rows of a tile of rank 2")
    c.param("x", np.zeros((8, 4), BF16)).tensor("a", "bfloat16", (4, 8))(
        "dma_transpose dst=%a src=%x dge_mode=hwdge"
    ).fault("DT5", "16 rows", "[8, 4]").write()
    c = isa("dma_transpose", "into_hbm", "dst is in SBUF")
    c.param("x", x).tensor("a", "float32", (4, 3), "hbm")("dma_transpose dst=%a src=%x").fault("DT2").write()


def dma_compute():
    a, b, d = f32([[1, 2], [0.1, 1e8]]), f32([[10, 20], [0.2, 1]]), f32([[100, 200], [0.3, -1e8]])
    c = isa(
        "dma_compute",
        "adds_in_order",
        "sources are added in fp32 in their order, converted once",
        "(1e8 + 1) - 1e8 is 0 in fp32",
    )
    c.param("a", a).param("b", b).param("c", d).tensor("d", "float32", (2, 2))(
        "dma_compute dst=%d src0=%a src1=%b src2=%c"
    )
    c.expect("d", alu("add", alu("add", a, b), d)).write()
    c = isa("dma_compute", "scatter_add", "read-modify-write: rows found by an offset tensor grow by a tile")
    c.param("y", f32([[1, 1], [2, 2], [3, 3]])).tile("i", np.array([[2], [0]], I32)).tile(
        "a", f32([[10, 20], [30, 40]])
    )
    c("dma_compute dst=%y{[2, 2], [1, 2]}+rows(%i * 2 < 3) src0=%y{[2, 2], [1, 2]}+rows(%i * 2 < 3) src1=%a")
    c.expect("y", f32([[31, 41], [2, 2], [13, 23]])).write()
    c = isa("dma_compute", "bfloat16_result", "the sum is rounded once to dst's type")
    c.param("a", f32([[1, 256]])).param("b", f32([[2**-9, 1]])).tensor("d", "bfloat16", (1, 2))(
        "dma_compute dst=%d src0=%a src1=%b"
    )
    c.expect("d", cast(f32([[1 + 2**-9, 257]]), BF16)).write()
    c = isa("dma_compute", "multiply", "a DMA adds only")
    c.param("a", a).tensor("d", "float32", (2, 2))("dma_compute dst=%d src0=%a src1=%a reduce_op=multiply").fault(
        "DC1", "multiply"
    ).write()
    c = isa("dma_compute", "scatter_of_two_tiles", "with an offset tensor one source is where dst is")
    c.param("y", f32([[1, 1], [2, 2], [3, 3]])).tile("i", np.array([[2], [0]], I32)).tile("a", a)
    c("dma_compute dst=%y{[2, 2], [1, 2]}+rows(%i * 2 < 3) src0=%a src1=%a").fault("DC6").write()
    c = isa("dma_compute", "dynamic_start", "addresses are known when the kernel is compiled", registers=1)
    c.param("a", a).tensor("d", "float32", (1, 2))("register_move dst=$0 value=1")(
        "dma_compute dst=%d src0=%a[0:1, 0:2]+($0 * 2 < 2) src1=%a[0:1, 0:2]"
    ).fault("DC5").write()
    c = isa("dma_compute", "counts_differ", "every source has dst's element count")
    c.param("a", a).tensor("d", "float32", (2, 3))("dma_compute dst=%d src0=%a src1=%a").fault("DMA2").write()


def iota():
    c = isa("iota", "two_dimensional_pattern", "offset + p * channel_multiplier + 10 i + j")
    c.tensor("d", "int32", (3, 2, 4))("iota dst=%d pattern=[[10, 2], [1, 4]] offset=5 channel_multiplier=100")
    c.expect("d", affine(5, 100, [(10, 2), (1, 4)], 3).reshape(3, 2, 4).astype(I32)).write()
    c = isa("iota", "exact_beyond_fp32", "32-bit results are exact where fp32 is not: 16777217")
    c.tensor("d", "int32", (1, 4)).tensor("f", "float32", (1, 4))("iota dst=%d pattern=[[1, 4]] offset=16777216")(
        "iota dst=%f pattern=[[1, 4]] offset=16777216"
    )
    whole = affine(16777216, 0, [(1, 4)], 1)
    c.expect("d", whole.astype(I32)).expect("f", whole.astype(F32)).write()
    c = isa("iota", "descending_from_a_tensor", "negative steps; the start from a tensor of one element")
    c.tile("s", np.array([[7]], I32)).tensor("d", "bfloat16", (2, 3))(
        "iota dst=%d pattern=[[-3, 3]] offset=%s channel_multiplier=-1"
    )
    c.expect("d", affine(7, -1, [(-3, 3)], 2).astype(F32).astype(BF16)).write()
    c = isa("iota", "pattern_too_short", "the pattern covers a partition of dst")
    c.tensor("d", "int32", (1, 5))("iota dst=%d pattern=[[1, 4]]").fault("IOTA1", "4 elements").write()
    c = isa("iota", "wraps", "32-bit integers wrap: 2^31 - 1 plus 1 is -2^31")
    c.tensor("d", "int32", (1, 2))("iota dst=%d pattern=[[1, 2]] offset=2147483647")
    c.expect("d", np.array([[2**31 - 1, -(2**31)]], I32)).write()
    c = isa("iota", "offset_out_of_range", "an offset is a whole number of 32 bits")
    c.tensor("d", "int32", (1, 2))("iota dst=%d pattern=[[1, 2]] offset=inf").fault("IOTA3", "offset", "inf").write()
    c = isa("iota", "psum", "the GpSimd engine does not reach PSUM")
    c.tensor("d", "int32", (1, 4), "psum")("iota dst=%d pattern=[[1, 4]]").fault("ENG2").write()
    c = isa("iota", "no_elements", "counts are positive")
    c.tensor("d", "int32", (1, 4))("iota dst=%d pattern=[[1, 0]]").fault("IOTA2").write()


def affine_select():
    x = np.arange(1, 17, dtype=F32).reshape(4, 4)
    c = isa("affine_select", "causal_mask", "keep where p - j >= 0, else the fill value: a causal mask")
    c.tile("x", x).tensor("d", "float32", (4, 4))
    c(
        "affine_select dst=%d pattern=[[-1, 4]] channel_multiplier=1 on_true_tile=%x on_false_value=-1e30 cmp_op=greater_equal"
    )
    keep = affine(0, 1, [(-1, 4)], 4) >= 0
    c.expect("d", np.where(keep, x, F32(-1e30))).write()
    c = isa("affine_select", "diagonal_with_offset", "keep where 1 + p - j == 0: the diagonal above the main one")
    c.tile("x", x).tensor("d", "float32", (4, 4))(
        "affine_select dst=%d pattern=[[-1, 4]] offset=1 channel_multiplier=1 on_true_tile=%x on_false_value=0 cmp_op=equal"
    )
    c.expect("d", np.where(affine(1, 1, [(-1, 4)], 4) == 0, x, F32(0))).write()
    c = isa("affine_select", "keeps_bits", "kept elements keep their bits, NaN payloads too")
    c.tensor("x", "float32", (1, 2)).tensor("d", "float32", (1, 2))(
        "affine_select dst=%d pattern=[[1, 2]] on_true_tile=%x on_false_value=nan cmp_op=less_equal"
    )
    c.data("x", "0x7f800001 5").expect("d", "0x7f800001 nan").write()
    c = isa("affine_select", "not_a_comparison", "cmp_op compares with 0")
    c.tile("x", x)("affine_select dst=%x pattern=[[1, 4]] on_true_tile=%x cmp_op=add").fault("AFF1", "add").write()
    c = isa("affine_select", "pattern_too_short", "the pattern covers a partition of dst")
    c.tile("x", x)("affine_select dst=%x pattern=[[1, 3]] on_true_tile=%x").fault("IOTA1").write()


def tensor_partition_reduce():
    x = f32([[1e8, 1], [1, -5], [-1e8, 3], [1, 2]])
    c = isa(
        "tensor_partition_reduce",
        "ascending_sum",
        "partitions are added in ascending order",
        "((1e8 + 1) - 1e8) + 1 = 1 in fp32, since 1e8 + 1 is 1e8",
    )
    c.tile("x", x).tensor("d", "float32", (1, 2))("tensor_partition_reduce dst=%d op=add data=%x").expect(
        "d", f32([[1, 1]])
    ).write()
    c = isa("tensor_partition_reduce", "average_and_maximum", "the average divides the sum by the number of partitions")
    c.tile("x", f32([[1, 2], [3, 5], [5, 2]])).tensor("a", "float32", (1, 2)).tensor("m", "float32", (1, 2))
    c("tensor_partition_reduce dst=%a op=average data=%x")("tensor_partition_reduce dst=%m op=maximum data=%x").expect(
        "a", f32([[3, 3]])
    ).expect("m", f32([[5, 5]])).write()
    c = isa("tensor_partition_reduce", "exact_integers", "int32 throughout adds exactly; bit operators work on bits")
    c.tile("x", np.array([[16777217], [16777217]], I32)).tensor("d", "int32", (1, 1)).tensor("o", "int32", (1, 1))
    c("tensor_partition_reduce dst=%d op=add data=%x")("tensor_partition_reduce dst=%o op=bitwise_or data=%x")
    c.expect("d", np.array([[33554434]], I32)).expect("o", np.array([[16777217]], I32)).write()
    c = isa("tensor_partition_reduce", "two_partitions_left", "dst has one partition")
    c.tile("x", x).tensor("d", "float32", (2, 2))("tensor_partition_reduce dst=%d op=add data=%x").fault(
        "PRED3"
    ).write()
    c = isa("tensor_partition_reduce", "minimum", "minimum is not among the reductions")
    c.tile("x", x).tensor("d", "float32", (1, 2))("tensor_partition_reduce dst=%d op=minimum data=%x").fault(
        "RED1", "minimum"
    ).write()


def sequence_bounds():
    ids = np.array([[1, 1, 2, 2, 2, 0, 3, 0]], I32)
    c = isa(
        "sequence_bounds",
        "runs",
        "where each element's run of equal ids begins and ends (one past the last); id 0 is padding: n and -1",
    )
    c.tile("s", ids).tensor("d", "int32", (1, 2, 8))("sequence_bounds dst=%d segment_ids=%s")
    c.expect("d", np.array([[[0, 0, 2, 2, 2, 8, 6, 8], [2, 2, 5, 5, 5, -1, 7, -1]]], I32)).write()
    c = isa("sequence_bounds", "floats", "fp32 ids and bounds")
    c.tile("s", f32([[4, 4, 4]])).tensor("d", "float32", (1, 2, 3))("sequence_bounds dst=%d segment_ids=%s").expect(
        "d", f32([[[0, 0, 0], [3, 3, 3]]])
    ).write()
    c = isa("sequence_bounds", "two_partitions", "it works on one partition")
    c.tensor("s", "int32", (2, 4)).tensor("d", "int32", (2, 2, 4))("sequence_bounds dst=%d segment_ids=%s").fault(
        "SEQ1", "2"
    ).write()
    c = isa("sequence_bounds", "sixteen_bits", "fp32 and int32 only")
    c.tensor("s", "int16", (1, 4)).tensor("d", "int32", (1, 2, 4))("sequence_bounds dst=%d segment_ids=%s").fault(
        "SEQ2", "int16"
    ).write()


def nonzero_with_count():
    x = f32([[0, 5, 0, -1, 0.5]])
    c = isa("nonzero_with_count", "places_and_count", "the places of what is not zero, then padding, then how many")
    c.tile("x", x).tensor("d", "int32", (1, 6))("nonzero_with_count dst=%d src=%x").expect(
        "d", np.array([[1, 3, 4, -1, -1, 3]], I32)
    ).write()
    c = isa("nonzero_with_count", "offset_and_padding", "index_offset is added to each place; -0 is zero")
    c.tile("x", f32([[-0.0, 1, 0]])).tensor("d", "int32", (1, 4))(
        "nonzero_with_count dst=%d src=%x index_offset=100 padding_val=7"
    )
    c.expect("d", np.array([[101, 7, 7, 1]], I32)).write()
    wide = np.zeros((17, 2), I32)
    wide[0, 0] = wide[5, 0] = wide[16, 1] = 9
    c = isa(
        "nonzero_with_count", "every_sixteenth_partition", "partitions 0, 16, ... only; the others keep what they have"
    )
    c.tile("x", wide).tile("d", np.full((17, 3), 77, I32))("nonzero_with_count dst=%d src=%x")
    out = np.full((17, 3), 77, I32)
    out[0], out[16] = [0, -1, 1], [1, -1, 1]
    c.expect("d", out).write()
    c = isa("nonzero_with_count", "too_short", "dst is one element longer than src")
    c.tile("x", x).tensor("d", "int32", (1, 5))("nonzero_with_count dst=%d src=%x").fault("SHAPE4").write()
    c = isa("nonzero_with_count", "float_result", "the result is int32")
    c.tile("x", x).tensor("d", "float32", (1, 6))("nonzero_with_count dst=%d src=%x").fault("NZ1", "float32").write()


def nc_n_gather():
    x = np.arange(12, dtype=F32).reshape(2, 2, 3)
    index = np.array([[5, 0, 5, 2], [1, 1, 4, 3]], U32)
    c = isa("nc_n_gather", "flattened_free_axes", "dst[p, i] = data[p, indices[p, i]], free axes of data flattened")
    c.tile("x", x).tile("i", index).tensor("d", "float32", (2, 4))("nc_n_gather dst=%d data=%x indices=%i")
    c.expect("d", np.take_along_axis(x.reshape(2, 6), index.astype(int), axis=1)).write()
    c = isa("nc_n_gather", "moves_definedness", "bits and definedness go along")
    c.tensor("x", "float32", (1, 3)).tile("i", np.array([[2, 1, 0]], U32)).tensor("d", "float32", (1, 3))(
        "nc_n_gather dst=%d data=%x indices=%i"
    )
    c.data("x", "0x7f800001 ? 3").expect("d", "3 ? 0x7f800001").write()
    c = isa("nc_n_gather", "index_outside", "an index outside the partition stops the run")
    c.tile("x", x).tile("i", np.array([[0, 6], [0, 0]], U32)).tensor("d", "float32", (2, 2))(
        "nc_n_gather dst=%d data=%x indices=%i"
    ).fault("GAT2", "index 6", "0 to 5").write()
    c = isa("nc_n_gather", "types_differ", "a gather does not convert")
    c.tile("x", x).tile("i", index).tensor("d", "bfloat16", (2, 4))("nc_n_gather dst=%d data=%x indices=%i").fault(
        "GAT1"
    ).write()
    c = isa("nc_n_gather", "float_indices", "indices are uint32")
    c.tile("x", x).tensor("i", "float32", (2, 4)).tensor("d", "float32", (2, 4))(
        "nc_n_gather dst=%d data=%x indices=%i"
    ).fault("GAT3").write()


def local_gather():
    x = np.arange(32 * 6, dtype=F32).reshape(32, 6)
    index = (np.arange(64).reshape(32, 2) * 5 % 6).astype(U16)
    c = isa(
        "local_gather",
        "sixteen_partitions_share",
        "each group of 16 partitions shares its indices, read down the partitions, then along the row",
    )
    c.tile("x", x).tile("i", index).tensor("d", "float32", (32, 32))("local_gather dst=%d src_buffer=%x index=%i")
    flat = [index[g : g + 16].T.ravel() for g in (0, 16)]
    c.expect("d", np.concatenate([x[0:16][:, flat[0]], x[16:32][:, flat[1]]])).write()
    c = isa("local_gather", "pairs_and_few", "two adjoining elements for each index, three indices of the group")
    few = np.full((16, 1), 99, U16)
    few[:3, 0] = [4, 0, 2]
    c.tile("x", x[:16]).tile("i", few).tensor("d", "float32", (16, 6))(
        "local_gather dst=%d src_buffer=%x index=%i num_elem_per_idx=2 num_valid_indices=3"
    )
    c.expect("d", x[:16][:, [4, 5, 0, 1, 2, 3]]).write()
    c = isa("local_gather", "eight_partitions", "groups are of 16")
    c.tensor("x", "float32", (8, 6)).tensor("i", "uint16", (8, 1)).tensor("d", "float32", (8, 16))(
        "local_gather dst=%d src_buffer=%x index=%i"
    ).fault("GAT4", "8").write()
    c = isa("local_gather", "three_elements", "num_elem_per_idx is a power of two")
    c.tensor("x", "float32", (16, 6)).tensor("i", "uint16", (16, 1)).tensor("d", "float32", (16, 48))
    c("local_gather dst=%d src_buffer=%x index=%i num_elem_per_idx=3").fault("GAT5", "3").write()
    c = isa("local_gather", "index_outside", "an index outside the partition stops the run")
    c.tile("x", x[:16]).tile("i", np.full((16, 1), 6, U16)).tensor("d", "float32", (16, 16))(
        "local_gather dst=%d src_buffer=%x index=%i"
    ).fault("GAT2", "6").write()


def registers():
    c = isa("register_move", "immediate_and_copy", "a number, and another register", registers=2)
    c("register_move dst=$0 value=-7")("register_move dst=$1 src=$0")("register_move dst=$0 value=2147483647").section(
        "registers 2147483647 -7"
    ).write()
    c = isa("register_move", "never_written", "a register that nobody wrote holds whatever was there", registers=2)
    c("register_move dst=$0 src=$1").fault("UNINIT2", "$1").write()
    c = isa("register_move", "no_register", "the destination must be there", registers=1)
    c("register_move value=1").fault("REG2", "dst").write()
    c = isa("register_load", "from_hbm_and_sbuf", "one element of HBM or SBUF", registers=2)
    c.param("x", np.array([[5, -6]], I32)).tile("f", f32([[41.6]]))("register_load dst=$0 src=%x[0:1, 1:2]")(
        "register_load dst=$1 src=%f"
    ).warn("REG4", "becomes 42").section("registers -6 42").write()
    c = isa("register_load", "negative_numbers", "whole numbers of 32 bits, signed or not", registers=4)
    c.tile("f", f32([[-2]])).tile("b", cast(f32([[-7]]), BF16)).tile("u", np.array([[2**32 - 1]], np.uint32)).tile(
        "c", np.array([[-3]], np.int8)
    )
    for number, name in enumerate("fbuc"):
        c(f"register_load dst=${number} src=%{name}")
    c.section("registers -2 -7 -1 -3").write()
    c = isa("register_load", "no_number_of_32_bits", "what a register cannot hold", registers=1)
    c.tile("f", f32([[6e9]]))("register_load dst=$0 src=%f").fault("REG4", "32 bits").write()
    c = isa("register_load", "from_psum", "a register is loaded from HBM or SBUF", registers=1)
    c.tile("p", f32([[1]]), "psum")("register_load dst=$0 src=%p").fault("REG5", "PSUM").write()
    c = isa(
        "register_load",
        "undefined",
        "an undefined element never reaches a register, whatever the switch says",
        registers=1,
    )
    c.tensor("x", "int32", (1, 1))("register_load dst=$0 src=%x").fault("UNINIT1").section(
        "options uninit=fill"
    ).write()
    c = isa("register_load", "two_elements", "a register holds one element", registers=1)
    c.tensor("x", "int32", (1, 2))("register_load dst=$0 src=%x").fault("REG1", "2").write()
    c = isa("register_store", "integers_and_floats", "integers exactly, floats rounded once", registers=1)
    c.tensor("i", "int32", (1, 1)).tensor("f", "float32", (1, 1)).tensor("y", "int32", (2,), "hbm")(
        "register_move dst=$0 value=16777217"
    )
    c("register_store dst=%i src=$0")("register_store dst=%f src=$0")("register_store dst=%y[1] src=$0")
    c.expect("i", "16777217").expect("f", "16777216").expect("y", "? 16777217").write()
    c = isa("register_store", "two_elements", "a register fills one element", registers=1)
    c.tensor("x", "int32", (2, 1))("register_store dst=%x src=$0").fault("REG1").write()
    c = isa("register_store", "no_register", "the source must be there", registers=1)
    c.tensor("x", "int32", (1, 1))("register_store dst=%x").fault("REG2", "src").write()


def regions():
    c = isa(
        "loop",
        "counts_and_moves",
        "the region runs for 0, 2, 4; the register moves a view; the Path holds bounds and places",
        registers=1,
    )
    c.param("x", np.arange(6, dtype=F32).reshape(6, 1)).tensor("a", "float32", (1, 1)).param("y", np.zeros((6, 1), F32))
    c("loop reg=$0 high=6 step=2")("  dma_copy dst=%a src=%x[0:1, 0:1]+($0 * 1 < 6)")(
        "  tensor_scalar dst=%a data=%a op0=add operand0=10"
    )
    c("  dma_copy dst=%y[0:1, 0:1]+($0 * 1 < 6) src=%a")("end")
    c.expect("y", f32([[10], [0], [12], [0], [14], [0]])).section("path 0 6 2 0 0 2 2 4 4").section(
        "registers 4"
    ).write()
    c = isa(
        "loop",
        "bounds_from_registers",
        "bounds may be registers; a loop that does not run leaves its register alone",
        registers=4,
    )
    c("register_move dst=$1 value=3")("register_move dst=$2 value=5").tensor("x", "int32", (1, 8))(
        "memset dst=%x value=0"
    )
    c("loop reg=$0 low_reg=$1 high_reg=$2")("  register_store dst=%x[0:1, 0:1]+($0 * 1 < 8) src=$0")("end")
    c("register_move dst=$3 value=7")("loop reg=$3 low=5 high=5")("  memset dst=%x value=9")("end").expect(
        "x", "0 0 0 3 4 0 0 0"
    ).section("registers 4 3 5 7").write()
    c = isa("loop", "nested", "regions nest", registers=2)
    c.tile("x", f32([[0]]))("loop reg=$0 high=3")("  loop reg=$1 high=4")(
        "    tensor_scalar dst=%x data=%x op0=add operand0=1"
    )("  end")("end").expect("x", "12").write()
    c = isa("loop", "backwards", "a step is positive", registers=1)
    c("loop reg=$0 low=3 high=0 step=-1").fault("LOOP1", "-1").write()
    c = isa("loop", "left_open", "a region is closed", registers=1)
    c("loop reg=$0 high=3").fault("REGION2").write()
    c = isa(
        "loop", "allocates_each_time", "a tile allocated in the region is new, and undefined, each time", registers=1
    )
    c.tensor("d", "float32", (1, 1))("loop reg=$0 high=2")("  tensor %a sbuf float32 [1, 1]")(
        "  if reg=$0"
    ).body.append("    tensor_scalar dst=%d data=%a op0=add operand0=1")
    c.fault("UNINIT1", "'data'")("  end")("  memset dst=%a value=1")("end").write()
    c = isa("while", "until_zero", "the region runs as long as the register is not zero", registers=1)
    c.tile("x", np.array([[3]], I32))("register_load dst=$0 src=%x").tensor("n", "float32", (1, 1))(
        "memset dst=%n value=0"
    )
    c("while reg=$0")("  tensor_scalar dst=%x data=%x op0=subtract operand0=1")(
        "  tensor_scalar dst=%n data=%n op0=add operand0=1"
    )("  register_load dst=$0 src=%x")("end")
    c.expect("n", "3").expect("x", "0").section("path 1 1 1 0").write()
    c = isa("while", "not_at_all", "a register that is zero at the start", registers=1)
    c.tensor("x", "float32", (1, 1))("register_move dst=$0")("while reg=$0")("  memset dst=%x value=1")("end").expect(
        "x", "?"
    ).section("path 0").write()
    c = isa("while", "no_register", "the condition must be there", registers=1)
    c("while").fault("REG2").write()
    c = isa("if", "taken_and_not", "the region runs if the register is not zero", registers=2)
    c("register_move dst=$0 value=-1")("register_move dst=$1").tensor("x", "float32", (1, 2))("if reg=$0")(
        "  memset dst=%x[0:1, 0:1] value=1"
    )("end")
    c("if reg=$1")("  memset dst=%x[0:1, 1:2] value=1")("end").expect("x", "1 ?").section("path 1 0").write()
    c = isa("if", "inside_a_loop", "only the second time round", registers=2)
    c.tensor("x", "int32", (1, 1))("loop reg=$0 low=0 high=2")("  if reg=$0")("    register_store dst=%x src=$0")(
        "  end"
    )("end").expect("x", "1").section("path 0 2 1 0 1").write()
    c = isa("if", "no_register", "the condition must be there", registers=1)
    c("if").fault("REG2").write()
    c = isa(
        "end",
        "closes_the_innermost",
        "end closes the innermost region: the last line belongs to the outer one",
        registers=2,
    )
    c.tile("x", f32([[0]]))("register_move dst=$0 value=1")("register_move dst=$1")("if reg=$0")("  if reg=$1")(
        "    tensor_scalar dst=%x data=%x op0=add operand0=100"
    )("  end")
    c("  tensor_scalar dst=%x data=%x op0=add operand0=1")("end").expect("x", "1").write()
    c = isa("end", "empty_region", "a region may be empty", registers=1)
    c("loop reg=$0 high=3")("end").section("path 0 3 1").section("registers 2").write()
    c = isa("end", "without_a_region", "an end needs a region")
    c("end").fault("REGION1").write()


def alloc():
    c = isa("alloc", "starts_undefined", "a new tensor holds nothing")
    c.tensor("x", "float32", (1, 3)).tensor("h", "float32", (2,), "hbm").expect("x", "? ? ?").expect("h", "? ?").write()
    c = isa("alloc", "again", "allocating again makes everything undefined")
    c.tensor("x", "float32", (1, 2))("memset dst=%x value=1")("alloc tensor=%x").expect("x", "? ?").write()
    c = isa(
        "alloc",
        "shared_address",
        "tensors at one address share their bytes: the second allocation makes them undefined, the write is seen through both",
    )
    c.tensor("a", "float32", (2, 4), more=" at (0, 64)")("memset dst=%a value=1").tensor(
        "b", "float32", (2, 2), more=" at (0, 64)"
    )
    c("memset dst=%b[0:2, 0:1] value=2").expect("a", "2 ? 1 1\n2 ? 1 1").expect("b", "2 ?\n2 ?").write()
    c = isa("alloc", "parameter", "a parameter has its storage from the caller")
    c.param("x", f32([[1]]))("alloc tensor=%x").fault("TEN4").write()
    c = isa("alloc", "too_many_partitions", "at most 128 partitions")
    c.tensor("x", "float32", (129, 1)).fault("TEN2", "129").write()
    c = isa("alloc", "psum_address", "a PSUM address is a bank's")
    c.tensor("x", "float32", (1, 4), "psum", " at (0, 100)").fault("TEN3").write()
    c = isa("alloc", "outside_sbuf", "an address beyond the memory stops the run")
    c.tensor("x", "float32", (2, 4), more=" at (127, 0)").fault("ADDR1", "128 partitions").write()


def device_print():
    c = isa("device_print", "values", "prints what the tensor holds when the program comes there")
    c.tile("x", f32([[1, -0.5], [3, np.inf]]))('device_print src=%x prefix="x: "')
    c.section("printed", "x: float32[2, 2]", "  [1, -0.5]", "  [3, inf]").write()
    c = isa("device_print", "in_a_loop", "once each time round", registers=1)
    c.tensor("x", "int32", (1, 1))("loop reg=$0 high=2")("  register_store dst=%x src=$0")("  device_print src=%x")(
        "end"
    )
    c.section("printed", "int32[1, 1]", "  [0]", "int32[1, 1]", "  [1]").write()
    c = isa("device_print", "nothing", "there must be something to print")
    c("device_print").fault("ARG2").write()


ALL = [
    dma_copy,
    dma_transpose,
    dma_compute,
    iota,
    affine_select,
    tensor_partition_reduce,
    sequence_bounds,
    nonzero_with_count,
    nc_n_gather,
    local_gather,
    registers,
    regions,
    alloc,
    device_print,
]
