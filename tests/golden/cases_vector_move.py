# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the vector engine: copies, fills and shuffles."""

import numpy as np
from case import isa
from oracle import BF16, F32, cast, f32

INF = np.inf


def tensor_copy():
    x = f32([[1.5, 2.5, -2.5, 300, -300, np.nan, INF, -INF]])
    c = isa("tensor_copy", "to_integers", "to integers: nearest, ties to even; saturating; NaN gives 0")
    c.tile("x", x)
    for t in (np.int8, np.uint8, np.int16, np.int32, np.uint32):
        name = np.dtype(t).name
        c.tensor(name, name, x.shape)(f"tensor_copy dst=%{name} src=%x").expect(name, cast(x, t))
    c.write()
    y = f32([[1 + 2**-8, 1 + 3 * 2**-8, 65519, 65520, 1e-7, -0.0, 3.4e38]])
    c = isa(
        "tensor_copy",
        "to_narrow_floats",
        "to bfloat16 and float16: nearest even, overflow to infinity, subnormals kept",
    )
    c.tile("x", y)
    for t in (BF16, np.float16):
        name = np.dtype(t).name
        c.tensor(name, name, y.shape)(f"tensor_copy dst=%{name} src=%x").expect(name, cast(y, t))
    c.write()
    c = isa("tensor_copy", "keeps_bits", "equal types keep every bit, NaN payloads too")
    c.tensor("x", "float32", (1, 3)).tensor("d", "float32", (1, 3))("tensor_copy dst=%d src=%x")
    c.data("x", "0x7f800001 0xffc12345 0x80000000").expect("d", "0x7f800001 0xffc12345 0x80000000").write()
    c = isa("tensor_copy", "moves_definedness", "a copy of undefined elements is no fault, and they stay undefined")
    c.tensor("x", "float32", (2, 3)).tensor("d", "float32", (2, 3))("tensor_copy dst=%d src=%x").data(
        "x", "1 ? 3\n? 5 6"
    ).expect("d", "1 ? 3\n? 5 6").write()
    c = isa("tensor_copy", "strided_views", "every second element backwards in two dimensions of a reinterpreted tile")
    grid = np.arange(24, dtype=F32).reshape(1, 24)
    c.tile("x", grid).tensor("d", "float32", (1, 6))("tensor_copy dst=%d src=%x{offset 23, [1, 1], [-8, 3], [-2, 2]}")
    c.expect("d", f32([[23, 21, 15, 13, 7, 5]])).write()
    c = isa(
        "tensor_copy",
        "one_partition_for_many",
        "one partition for many is beyond the documents: accepted with a warning",
    )
    c.tile("x", f32([[1, 2]])).tensor("d", "float32", (3, 2))("tensor_copy dst=%d src=%x").warn("COMPAT1").expect(
        "d", f32([[1, 2]] * 3)
    ).write()
    c = isa("tensor_copy", "strict_refuses_it", "and refused when strict")
    c.tensor("x", "float32", (1, 2)).tensor("d", "float32", (3, 2))("tensor_copy dst=%d src=%x").fault(
        "COMPAT1"
    ).section("options strict").write()
    c = isa("tensor_copy", "engine", "the tensor engine does not copy")
    c.tensor("x", "float32", (1, 2))("tensor_copy dst=%x src=%x engine=tensor").fault("ENG1", "tensor").write()
    c = isa("tensor_copy", "gpsimd_and_psum", "the GpSimd engine does not reach PSUM")
    c.tensor("x", "float32", (1, 2), "psum").tensor("d", "float32", (1, 2))(
        "tensor_copy dst=%d src=%x engine=gpsimd"
    ).fault("ENG2").write()


def memset():
    c = isa("memset", "every_type", "a value is rounded once to dst's type")
    for t, value in (("float32", 0.1), ("bfloat16", cast(f32(0.1), BF16)), ("float16", cast(f32(0.1), np.float16))):
        c.tensor(t, t, (2, 3))(f"memset dst=%{t} value=0.1").expect(
            t, np.full((2, 3), value, np.dtype(value.dtype if t != "float32" else F32))
        )
    c.tensor("i", "int32", (2, 3))("memset dst=%i value=-16777217").expect("i", np.full((2, 3), -16777217, np.int32))
    c.tensor("u", "uint32", (2, 3))("memset dst=%u value=4294967295").expect(
        "u", np.full((2, 3), 2**32 - 1, np.uint32)
    ).write()
    c = isa("memset", "fractions_round_to_even", "a fraction is no integer: to nearest even, with a warning")
    for i, (value, whole) in enumerate((("2.5", 2), ("3.5", 4), ("-2.7", -3), ("nan", 0))):
        c.tensor(f"t{i}", "int32", (1, 1))(f"memset dst=%t{i} value={value}").warn("MEMSET2")
        c.expect(f"t{i}", np.full((1, 1), whole, np.int32))
    c.write()
    c = isa("memset", "out_of_range", "a number beyond dst's range is refused")
    c.tensor("x", "int8", (1, 1))("memset dst=%x value=300").fault("MEMSET2", "-128 to 127", "300").write()
    c = isa("memset", "part_of_a_tile", "only the view is written; the rest stays undefined")
    c.tensor("x", "float32", (3, 4))("memset dst=%x[1:3, 0:4:2] value=-0").expect(
        "x", "? ? ? ?\n-0 ? -0 ?\n-0 ? -0 ?"
    ).write()
    c = isa("memset", "infinity_in_psum", "PSUM can be set, to infinity too")
    c.tensor("x", "float32", (2, 2), "psum")("memset dst=%x value=-inf").expect("x", f32([[-INF, -INF]] * 2)).write()
    c = isa("memset", "tile_for_a_value", "the value is a number, not a tile")
    c.tensor("x", "float32", (2, 1))("memset dst=%x value=%x").fault("ARG3").write()
    c = isa("memset", "outside", "a view outside its tensor is refused")
    c.tensor("x", "float32", (2, 4))("memset dst=%x{[1, 2], [1, 5]} value=0").fault("IDX4", "'x'").write()


def tensor_copy_predicated():
    x, p, d = (
        f32([[1, 2, 3], [4, 5, 6]]),
        np.array([[1, 0, 7], [0, 0, 255]], np.uint8),
        f32([[-1, -2, -3], [-4, -5, -6]]),
    )
    for reverse in (False, True):
        c = isa(
            "tensor_copy_predicated",
            "reversed" if reverse else "where_not_zero",
            f"dst takes src where the predicate is {'zero' if reverse else 'not zero'}, and keeps its value elsewhere",
        )
        c.tile("x", x).tile("p", p).tile("d", d)(
            "tensor_copy_predicated dst=%d src=%x predicate=%p" + (" reverse_pred=true" if reverse else "")
        )
        c.expect("d", np.where((p != 0) ^ reverse, x, d)).write()
    c = isa("tensor_copy_predicated", "undefined_stays", "elements left alone may be undefined and stay so")
    c.tensor("d", "float32", (2, 3)).tile("p", p)("tensor_copy_predicated dst=%d src=5 predicate=%p").expect(
        "d", "5 ? 5\n? ? 5"
    ).write()
    c = isa(
        "tensor_copy_predicated", "undefined_source", "a move: what is not chosen is not read, what is stays undefined"
    )
    c.tensor("x", "float32", (2, 3))("memset dst=%x[0:1, 0:1] value=9").tile("p", p).tile("d", d)(
        "tensor_copy_predicated dst=%d src=%x predicate=%p"
    ).expect("d", "9 -2 ?\n-4 -5 ?").write()
    c = isa("tensor_copy_predicated", "float_predicate", "a predicate is an unsigned integer")
    c.tensor("x", "float32", (1, 2))("tensor_copy_predicated dst=%x src=%x predicate=%x").fault(
        "PRED1", "float32"
    ).write()
    c = isa("tensor_copy_predicated", "no_source", "src must be there")
    c.tensor("x", "float32", (1, 2)).tensor("p", "uint8", (1, 2))("tensor_copy_predicated dst=%x predicate=%p").fault(
        "ARG2", "src"
    ).write()


def nc_stream_shuffle():
    x = np.arange(64, dtype=F32).reshape(64, 1)
    mask = [31 - i for i in range(32)]
    c = isa("nc_stream_shuffle", "reverse_each_quadrant", "each group of 32 partitions is permuted by the same mask")
    c.tile("x", x).tensor("d", "float32", x.shape)(f"nc_stream_shuffle dst=%d src=%x shuffle_mask={mask}")
    c.expect("d", np.concatenate([x[31::-1], x[63:31:-1]])).write()
    mask = [255 if i % 2 else 0 for i in range(32)]
    c = isa(
        "nc_stream_shuffle",
        "lane_255_is_left_alone",
        "255 leaves a partition of dst as it is; here odd ones, which stay undefined",
    )
    c.tile("x", x[:32]).tensor("d", "float32", (32, 1))(f"nc_stream_shuffle dst=%d src=%x shuffle_mask={mask}")
    c.expect("d", " ".join("?" if i % 2 else "0" for i in range(32))).write()
    c = isa("nc_stream_shuffle", "keeps_bits", "bits are kept")
    c.tensor("x", "float32", (32, 1)).tensor("d", "float32", (32, 1))(
        f"nc_stream_shuffle dst=%d src=%x shuffle_mask={[0] * 32}"
    )
    c.data("x", "0x7f800001 0*31").expect("d", "0x7f800001*32").write()
    c = isa("nc_stream_shuffle", "types_differ", "it does not convert")
    c.tensor("x", "float32", (32, 1)).tensor("d", "bfloat16", (32, 1))(
        f"nc_stream_shuffle dst=%d src=%x shuffle_mask={[0] * 32}"
    ).fault("SHUF1").write()
    c = isa("nc_stream_shuffle", "mask_outside", "the mask stays inside src")
    c.tensor("x", "float32", (16, 1)).tensor("d", "float32", (16, 1))(
        f"nc_stream_shuffle dst=%d src=%x shuffle_mask={[20] * 32}"
    ).fault("SHUF3").write()


ALL = [tensor_copy, memset, tensor_copy_predicated, nc_stream_shuffle]
