# SPDX-License-Identifier: Apache-2.0
"""Golden cases of GpSimd's instructions."""

import numpy as np
from case import isa
from oracle import BF16, F32, affine, f32

I32, U32, U16 = np.int32, np.uint32, np.uint16


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


ALL = [iota, affine_select, tensor_partition_reduce, sequence_bounds, nonzero_with_count, nc_n_gather, local_gather]
