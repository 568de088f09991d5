# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the vector engine's instructions."""

import numpy as np
from case import Case
from oracle import BF16, F32, LOWEST, alu, cast, f32, reduce_row, reduce_rows

INF = np.inf


def isa(mnemonic, name, title, *comments, **more):
    return Case(f"isa/{mnemonic}", name, title, *comments, **more)


def tensor_tensor():
    x, y = f32([[1, -2, 3.5, 0.1], [1e30, -1, 0.3, 7]]), f32([[4, 5, -0.25, 0.2], [1e30, -1, 0.7, -7]])
    for op in ("add", "subtract", "multiply", "divide", "less", "not_equal", "logical_or"):
        c = isa(
            "tensor_tensor", f"fp32_{op}", f"{op} of fp32 operands, rounded once", "values: the oracle's fp32 formula"
        )
        c.tile("x", x).tile("y", y).tensor("d", "float32", x.shape)
        c(f"tensor_tensor dst=%d data1=%x data2=%y op={op}").expect("d", alu(op, x, y)).write()
    zeros = f32([[0.0, -0.0, 0.0, -0.0, np.nan, 1, INF]])
    other = f32([[-0.0, 0.0, 0.0, -0.0, 1, np.nan, -INF]])
    c = isa(
        "tensor_tensor", "min_max_zeros_and_nan", "minimum and maximum order -0 below +0 and propagate NaN as 7fc00000"
    )
    c.tile("x", zeros).tile("y", other).tensor("low", "float32", zeros.shape).tensor("high", "float32", zeros.shape)
    c("tensor_tensor dst=%low data1=%x data2=%y op=minimum")("tensor_tensor dst=%high data1=%x data2=%y op=maximum")
    c.expect("low", f32([[-0.0, -0.0, 0.0, -0.0, np.nan, np.nan, -INF]])).expect(
        "high", f32([[0.0, 0.0, 0.0, -0.0, np.nan, np.nan, INF]])
    ).write()
    c = isa(
        "tensor_tensor",
        "nan_is_canonical",
        "arithmetic writes every NaN as 7fc00000, whatever the payload or sign that goes in",
    )
    c.tensor("x", "float32", (1, 3)).tensor("y", "float32", (1, 3)).tensor("d", "float32", (1, 3))
    c("tensor_tensor dst=%d data1=%x data2=%y op=add")
    c.data("x", "0x7fc00001 0xffc00000 inf").data("y", "1 0x7f800001 -inf").expect("d", "0x7fc00000*3").write()
    c = isa("tensor_tensor", "column_broadcast", "an operand of one element a partition repeats along the row")
    col = f32([[10], [20]])
    c.tile("x", x).tile("y", col).tensor("d", "float32", x.shape)
    c("tensor_tensor dst=%d data1=%x data2=%y op=add").expect("d", alu("add", x, col)).write()
    big = np.array([[2**31 - 1, -(2**31), 16777217, 123456789]], np.int32)
    two = np.array([[1, -1, 16777217, 2]], np.int32)
    c = isa(
        "tensor_tensor",
        "int32_on_gpsimd_is_exact",
        "32-bit integers throughout go to GpSimd, whose arithmetic is exact and wraps",
        "16777217 + 16777217 = 33554434 is no sum of fp32 numbers",
    )
    c.tile("x", big).tile("y", two).tensor("sum", "int32", big.shape).tensor("product", "int32", big.shape)
    c("tensor_tensor dst=%sum data1=%x data2=%y op=add")("tensor_tensor dst=%product data1=%x data2=%y op=multiply")
    wrap = lambda v: v.astype(np.int64).astype(np.uint32).view(np.int32)  # noqa: E731
    c.expect("sum", wrap(big.astype(np.int64) + two)).expect("product", wrap(big.astype(np.int64) * two)).write()
    c = isa(
        "tensor_tensor",
        "int32_on_vector_goes_through_fp32",
        "the vector engine computes int32 in fp32: 16777217 is 16777216 there",
    )
    c.tile("x", big).tile("y", two).tensor("sum", "int32", big.shape)
    c("tensor_tensor dst=%sum data1=%x data2=%y op=add engine=vector")
    c.expect("sum", cast(alu("add", big.astype(F32), two.astype(F32)), np.int32)).write()
    bits = np.array([[0xFFFFFFFF, 0x80000001, 0x01020304]], np.uint32)
    mask = np.array([[0x0F0F0F0F, 0x80000001, 0x00FF00FF]], np.uint32)
    c = isa(
        "tensor_tensor",
        "uint32_bit_operations_are_exact",
        "bit operators keep all 32 bits; they do not go through fp32",
    )
    c.tile("x", bits).tile("y", mask)
    for name, op, value in (
        ("and", "bitwise_and", bits & mask),
        ("or", "bitwise_or", bits | mask),
        ("xor", "bitwise_xor", bits ^ mask),
    ):
        c.tensor(name, "uint32", bits.shape)(f"tensor_tensor dst=%{name} data1=%x data2=%y op={op}").expect(name, value)
    c.write()
    whole = np.arange(128 * 1024, dtype=np.float32).reshape(128, 1024)
    c = isa("tensor_tensor", "large_enough_for_threads", "131072 elements, which threads share: 2 x is exact")
    c.tile("x", whole.astype(np.int32)).tensor("f", "float32", whole.shape).tensor("d", "int32", whole.shape)
    c("tensor_copy dst=%f src=%x")("tensor_tensor dst=%f data1=%f data2=%f op=add")(
        "tensor_scalar dst=%d data=%f op0=multiply operand0=0.5"
    )
    c.expect("d", whole.astype(np.int32)).write()
    c = isa("tensor_tensor", "different_columns", "operands of different lengths are refused")
    c.tensor("x", "float32", (2, 3)).tensor("d", "float32", (2, 4))
    c("tensor_tensor dst=%d data1=%x data2=%d op=add").fault("SHAPE2", "data1", "3 elements").write()
    c = isa("tensor_tensor", "two_inputs_in_psum", "both inputs in PSUM are refused")
    c.tensor("x", "float32", (2, 3), "psum").tensor("d", "float32", (2, 3))
    c("tensor_tensor dst=%d data1=%x data2=%x op=add").fault("BUF1").write()
    c = isa("tensor_tensor", "bits_of_floats", "bit operators take integers only")
    c.tensor("x", "float32", (2, 3))("tensor_tensor dst=%x data1=%x data2=%x op=bitwise_and").fault(
        "TYPE1", "float32"
    ).write()
    c = isa("tensor_tensor", "hbm_operand", "a compute engine does not reach HBM")
    c.tensor("h", "float32", (2, 3), "hbm").tensor("d", "float32", (2, 3))
    c("tensor_tensor dst=%d data1=%h data2=%d op=add").fault("P1", "HBM").write()


def tensor_scalar():
    x = f32([[1, -2, 3.5], [0.1, 1e38, -1e38]])
    c = isa(
        "tensor_scalar",
        "two_steps_each_rounded",
        "(x * 3) + 0.1 rounds after each step; a fused multiply-add would give other bits",
    )
    c.tile("x", x).tensor("d", "float32", x.shape)
    c("tensor_scalar dst=%d data=%x op0=multiply operand0=3 op1=add operand1=0.1")
    c.expect("d", alu("add", alu("multiply", x, F32(3)), F32(0.1))).write()
    col = f32([[2], [-4]])
    c = isa("tensor_scalar", "per_partition_and_reversed", "operand0 - x with one operand for each partition")
    c.tile("x", x).tile("s", col).tensor("d", "float32", x.shape)
    c("tensor_scalar dst=%d data=%x op0=subtract operand0=%s reverse0=true").expect(
        "d", alu("subtract", col, x)
    ).write()
    c = isa("tensor_scalar", "in_place", "dst may be data itself")
    c.tile("x", x)("tensor_scalar dst=%x data=%x op0=maximum operand0=0").expect("x", alu("maximum", x, F32(0))).write()
    u = np.array([[1, 2, 0x80000000]], np.uint32)
    c = isa("tensor_scalar", "shift_and_mask", "(x << 3) | 5 on bits; what leaves the word is lost")
    c.tile("x", u).tensor("d", "uint32", u.shape)
    c("tensor_scalar dst=%d data=%x op0=left_shift operand0=3 op1=bitwise_or operand1=5").expect(
        "d", (u << np.uint32(3)) | np.uint32(5)
    ).write()
    c = isa(
        "tensor_scalar",
        "overlap_in_part",
        "a destination that is shifted against the source reads everything first, and warns",
        "x[1:] = x[:-1] + 1",
    )
    row = np.arange(8, dtype=F32).reshape(1, 8)
    c.tile("x", row)("tensor_scalar dst=%x[0:1, 1:8] data=%x[0:1, 0:7] op0=add operand0=1").warn("ALIAS1")
    c.expect("x", np.concatenate([row[:, :1], row[:, :7] + 1], axis=1)).write()
    c = isa("tensor_scalar", "mixed_classes", "a bit operator does not go with an arithmetic one")
    c.tensor("x", "uint32", (1, 2))("tensor_scalar dst=%x data=%x op0=add operand0=1 op1=bitwise_and operand1=1").fault(
        "OPS1"
    ).write()
    c = isa("tensor_scalar", "missing_operand", "a binary operator needs its operand")
    c.tensor("x", "float32", (1, 2))("tensor_scalar dst=%x data=%x op0=add").fault("ARG2", "operand0").write()
    c = isa("tensor_scalar", "operand_of_two_columns", "an operand tile holds one value for each partition")
    c.tensor("x", "float32", (2, 2))("tensor_scalar dst=%x data=%x op0=add operand0=%x").fault(
        "SHAPE3", "operand0"
    ).write()
    c = isa(
        "tensor_scalar",
        "undefined_input",
        "an arithmetic read of what was never written stops the run and names the place",
    )
    c.tensor("x", "float32", (2, 4)).tensor("d", "float32", (2, 4))("memset dst=%x[0:2, 0:2] value=1")(
        "memset dst=%x[0:1, 2:4] value=1"
    )
    c("tensor_scalar dst=%d data=%x op0=add operand0=1").fault("UNINIT1", "'x'", "partition 1", "element 2").write()


def scalar_tensor_tensor():
    x, y, col = f32([[1, 2, 3], [4, 5, 6]]), f32([[0.1, 0.2, 0.3], [-1, -2, -3]]), f32([[10], [0.5]])
    c = isa("scalar_tensor_tensor", "multiply_add", "(x * scalar) + y, rounded after each step")
    c.tile("x", x).tile("y", y).tile("s", col).tensor("d", "float32", x.shape)
    c("scalar_tensor_tensor dst=%d data=%x op0=multiply operand0=%s op1=add operand1=%y")
    c.expect("d", alu("add", alu("multiply", x, col), y)).write()
    c = isa("scalar_tensor_tensor", "reversed_in_place", "y - (2 - x), written over y")
    c.tile("x", x).tile("y", y)
    c(
        "scalar_tensor_tensor dst=%y data=%x op0=subtract operand0=2 reverse0=true op1=subtract operand1=%y reverse1=true"
    )
    c.expect("y", alu("subtract", y, alu("subtract", F32(2), x))).write()
    c = isa("scalar_tensor_tensor", "bfloat16", "16-bit operands compute in fp32 and round once at the end")
    xb, yb = cast(x, BF16), cast(y, BF16)
    c.tile("x", xb).tile("y", yb).tensor("d", "bfloat16", x.shape)
    c("scalar_tensor_tensor dst=%d data=%x op0=subtract operand0=0.5 op1=multiply operand1=%y")
    c.expect("d", cast(alu("multiply", alu("subtract", xb.astype(F32), F32(0.5)), yb.astype(F32)), BF16)).write()
    c = isa("scalar_tensor_tensor", "bit_operator", "bit operators are refused")
    c.tensor("x", "uint32", (1, 2))(
        "scalar_tensor_tensor dst=%x data=%x op0=bitwise_and operand0=1 op1=add operand1=%x"
    ).fault("OPS2", "op0").write()
    c = isa("scalar_tensor_tensor", "missing_tile", "operand1 is a tile and must be there")
    c.tensor("x", "float32", (1, 2))("scalar_tensor_tensor dst=%x data=%x op0=add operand0=1 op1=add").fault(
        "ARG2", "operand1"
    ).write()


def reciprocal():
    x = f32([[1, 3, -7, 1e-38, 0.0, -0.0, INF, np.nan]])
    c = isa("reciprocal", "correctly_rounded", "1 / x is correctly rounded; 1 / -0 is -inf")
    c.tile("x", x).tensor("d", "float32", x.shape)("reciprocal dst=%d data=%x").expect(
        "d", alu("divide", F32(1), x)
    ).write()
    h = cast(f32([[3, 10, 65504]]), np.float16)
    c = isa("reciprocal", "float16", "float16 in and out, computed in fp32")
    c.tile("x", h).tensor("d", "float16", h.shape)("reciprocal dst=%d data=%x").expect(
        "d", cast(alu("divide", F32(1), h.astype(F32)), np.float16)
    ).write()
    c = isa("reciprocal", "rows_differ", "dst and data have equal partitions")
    c.tensor("x", "float32", (3, 2)).tensor("d", "float32", (4, 2))("reciprocal dst=%d data=%x").fault(
        "SHAPE1", "3 partitions"
    ).write()


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


def mixed_widths():
    wide = np.array([[0x12345600, -(2**31), 0x100]], np.int32)
    narrow = np.array([[0xF0, 0x80, 1]], np.uint8)
    c = isa(
        "tensor_tensor",
        "bits_of_mixed_widths",
        "operands of a bit operator are extended by their own types to the widest",
        "uint8 extends zeros, int8 its sign",
    )
    c.tile("a", narrow).tile("s", narrow.view(np.int8)).tile("b", wide)
    c.tensor("d", "int32", (1, 3))("tensor_tensor dst=%d data1=%a data2=%b op=bitwise_or").warn("BITS1", "uint8", "32")
    c.tensor("e", "int32", (1, 3))("tensor_tensor dst=%e data1=%s data2=%b op=bitwise_or").warn("BITS1")
    c.expect("d", narrow.astype(np.int32) | wide).expect("e", narrow.view(np.int8).astype(np.int32) | wide).write()
    c = isa("tensor_scalar", "shift_into_a_wider_type", "bits shifted out of uint8 stay in an int32 result")
    c.tile("a", narrow).tensor("d", "int32", (1, 3))("tensor_scalar dst=%d data=%a op0=left_shift operand0=8")
    c.warn("BITS1").expect("d", narrow.astype(np.int32) << 8).write()
    c = isa("tensor_scalar", "fraction_for_bits", "a bit operator takes whole numbers")
    c.tile("a", narrow)("tensor_scalar dst=%a data=%a op0=bitwise_or operand0=3.7").fault(
        "TYPE1", "operand0", "3.7"
    ).write()
    c = isa("tensor_scalar", "float_column_for_bits", "and no floats from memory")
    c.tile("a", narrow).tile("f", f32([[3]]))("tensor_scalar dst=%a data=%a op0=bitwise_or operand0=%f").fault(
        "TYPE1", "float32"
    ).write()


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


def tensor_reduce():
    big = f32([[1e8, 1.0] + [0.0] * 14 + [-1e8, 1.0] + [0.0] * 14])
    c = isa(
        "tensor_reduce",
        "order_of_the_sum",
        "element i joins partial sum i mod 16; a tree 8, 4, 2, 1 joins those",
        "left to right, 1e8 + 1 - 1e8 + 1 would lose a 1; here 1e8 meets -1e8 in partial 0 and both ones meet in partial 1: 2",
    )
    assert reduce_row("add", big) == 2
    c.tile("x", big).tensor("d", "float32", (1, 1))("tensor_reduce dst=%d data=%x op=add axis=[1]").expect(
        "d", f32([[2]])
    ).write()
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 37)).astype(F32)
    for op in ("add", "multiply", "maximum", "minimum"):
        c = isa("tensor_reduce", f"rows_{op}", f"{op} over 37 elements of three partitions, in the documented order")
        c.tile("x", x).tensor("d", "float32", (3, 1))(f"tensor_reduce dst=%d data=%x op={op} axis=[1]").expect(
            "d", reduce_rows(op, x)
        ).write()
    y = rng.standard_normal((2, 3, 5)).astype(F32)
    c = isa(
        "tensor_reduce", "last_axis_of_three_negated", "one result for each index that remains; negate multiplies by -1"
    )
    c.tile("x", y).tensor("d", "float32", (2, 3))("tensor_reduce dst=%d data=%x op=add axis=[2] negate=true")
    c.expect("d", -f32([[reduce_row("add", r) for r in p] for p in y])).write()
    c = isa("tensor_reduce", "both_free_axes", "the last two axes, named from the end")
    c.tile("x", y).tensor("d", "float32", (2, 1))("tensor_reduce dst=%d data=%x op=maximum axis=[-1, -2]").expect(
        "d", reduce_rows("maximum", y)
    ).write()
    n = f32([[1, np.nan, -5, 3]])
    c = isa("tensor_reduce", "maximum_of_nan", "a NaN anywhere makes the maximum NaN")
    c.tile("x", n).tensor("d", "float32", (1, 1))("tensor_reduce dst=%d data=%x op=maximum axis=[1]").expect(
        "d", f32([[np.nan]])
    ).write()
    u = np.array([[0xF0, 0x3C, 0xFF]], np.uint32)
    c = isa("tensor_reduce", "bits", "bit operators reduce on bits")
    c.tile("x", u).tensor("d", "uint32", (1, 1))("tensor_reduce dst=%d data=%x op=bitwise_and axis=[1]").expect(
        "d", np.array([[0x30]], np.uint32)
    ).write()
    c = isa("tensor_reduce", "partition_axis", "the partition is not reduced here")
    c.tensor("x", "float32", (2, 3)).tensor("d", "float32", (2, 1))(
        "tensor_reduce dst=%d data=%x op=add axis=[0]"
    ).fault("RED4", "partition").write()
    c = isa("tensor_reduce", "wrong_result_shape", "dst holds one element for each index that remains")
    c.tensor("x", "float32", (2, 3)).tensor("d", "float32", (2, 2))(
        "tensor_reduce dst=%d data=%x op=add axis=[1]"
    ).fault("RED5").write()
    c = isa("tensor_reduce", "subtract", "subtract is no reduction")
    c.tensor("x", "float32", (2, 3)).tensor("d", "float32", (2, 1))(
        "tensor_reduce dst=%d data=%x op=subtract axis=[1]"
    ).fault("RED1", "subtract").write()


def tensor_scalar_reduce():
    x = f32([[1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4]])
    doubled = alu("multiply", x, F32(2))
    c = isa("tensor_scalar_reduce", "reset_reduce", "dst = x * 2, and the sum of each row of that")
    c.tile("x", x).tensor("d", "float32", x.shape).tensor("r", "float32", (2, 1))
    c("tensor_scalar_reduce dst=%d data=%x op0=multiply operand0=2 reduce_op=add reduce_res=%r").expect(
        "d", doubled
    ).expect("r", reduce_rows("add", doubled)).write()
    c = isa(
        "tensor_scalar_reduce",
        "accumulates_over_instructions",
        "reduce goes on from what is there; load_reduce starts at a given value",
        "(10 + 10) + 10 for the first partition: each row sums to 10; then load_reduce from 5: 5 + 10",
    )
    ten = f32([[1, 2, 3, 4], [4, 3, 2, 1]])
    c.tile("x", ten).tensor("d", "float32", ten.shape).tensor("r", "float32", (2, 1)).tensor("s", "float32", (2, 1))
    c("tensor_scalar_reduce dst=%d data=%x op0=bypass reduce_op=add reduce_cmd=reset_reduce")
    c("tensor_scalar_reduce dst=%d data=%x op0=bypass reduce_op=add reduce_cmd=reduce")
    c("tensor_scalar_reduce dst=%d data=%x op0=bypass reduce_op=add reduce_cmd=reduce reduce_res=%r")
    c(
        "tensor_scalar_reduce dst=%d data=%x op0=bypass reduce_op=add reduce_cmd=load_reduce reduce_init=5 reduce_res=%s reduce_res_negate=true"
    )
    c.expect("r", f32([[30], [30]])).expect("s", f32([[-15], [-15]])).write()
    c = isa(
        "tensor_scalar_reduce",
        "sum_is_of_fp32",
        "the reduction takes the fp32 values, not what dst's type made of them",
    )
    xb = f32([[1 / 3, 1 / 3, 1 / 3]])
    c.tile("x", xb).tensor("d", "bfloat16", xb.shape).tensor("r", "float32", (1, 1))
    c("tensor_scalar_reduce dst=%d data=%x op0=add operand0=0 reduce_op=add reduce_res=%r").expect(
        "d", cast(xb, BF16)
    ).expect("r", reduce_rows("add", xb)).write()
    c = isa("tensor_scalar_reduce", "wrong_reduction", "add, multiply, maximum and minimum reduce")
    c.tensor("x", "float32", (1, 2))("tensor_scalar_reduce dst=%x data=%x op0=add operand0=0 reduce_op=abs_max").fault(
        "RED1"
    ).write()
    c = isa("tensor_scalar_reduce", "load_without_value", "load_reduce needs the value")
    c.tensor("x", "float32", (1, 2))(
        "tensor_scalar_reduce dst=%x data=%x op0=add operand0=0 reduce_cmd=load_reduce"
    ).fault("RED2").write()


def running(op, x, start):
    out = np.zeros_like(x)
    for r in range(x.shape[0]):
        value = start
        for i in range(x.shape[1]):
            value = out[r, i] = F32(alu(op, x[r, i], value))
    return out


def tensor_scalar_cumulative():
    x = f32([[0.1, 0.2, 0.3, 0.4], [1, -2, 3, -4]])
    c = isa("tensor_scalar_cumulative", "running_sum", "the running sum of x * 2, each step rounded")
    c.tile("x", x).tensor("d", "float32", x.shape)("tensor_scalar_cumulative dst=%d src=%x op0=multiply op1=add imm0=2")
    c.expect("d", running("add", alu("multiply", x, F32(2)), F32(-0.0))).write()
    c = isa(
        "tensor_scalar_cumulative", "running_maximum_from_a_value", "load_reduce starts the running maximum at imm1"
    )
    c.tile("x", x).tensor("d", "float32", x.shape)(
        "tensor_scalar_cumulative dst=%d src=%x op0=add op1=maximum imm0=0 imm1=0.25 reduce_cmd=load_reduce"
    )
    c.expect("d", running("maximum", x, F32(0.25))).write()
    c = isa("tensor_scalar_cumulative", "goes_on", "reduce goes on where the instruction before stopped")
    c.tile("x", x).tensor("d", "float32", x.shape).tensor("e", "float32", x.shape)
    c("tensor_scalar_cumulative dst=%d src=%x op0=add op1=add imm0=0")(
        "tensor_scalar_cumulative dst=%e src=%x op0=add op1=add imm0=0 reduce_cmd=reduce"
    )
    both = running("add", np.concatenate([x, x], axis=1), F32(-0.0))
    c.expect("d", both[:, :4]).expect("e", both[:, 4:]).write()
    c = isa("tensor_scalar_cumulative", "int32", "32-bit integers are refused")
    c.tensor("x", "int32", (1, 2))("tensor_scalar_cumulative dst=%x src=%x op0=add op1=add imm0=0").fault(
        "CUM1", "int32"
    ).write()


def tensor_tensor_scan():
    a, b = f32([[0.5, 2, -1, 0.1], [1, 1, 1, 1]]), f32([[1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4]])

    def scan(first):
        out = np.zeros_like(a)
        for r in range(2):
            value = first[r]
            for i in range(4):
                value = out[r, i] = F32(alu("add", alu("multiply", a[r, i], value), b[r, i]))
        return out

    c = isa(
        "tensor_tensor_scan",
        "linear_recurrence",
        "r[i] = data0[i] * r[i-1] + data1[i], starting at 1, each step rounded",
    )
    c.tile("a", a).tile("b", b).tensor("d", "float32", a.shape)(
        "tensor_tensor_scan dst=%d data0=%a data1=%b initial=1 op0=multiply op1=add"
    )
    c.expect("d", scan(f32([1, 1]))).write()
    c = isa(
        "tensor_tensor_scan",
        "initial_of_each_partition",
        "the start may differ by partition; the running value stays in fp32 though dst is bfloat16",
    )
    c.tile("a", a).tile("b", b).tile("s", f32([[3], [-2]])).tensor("d", "bfloat16", a.shape)
    c("tensor_tensor_scan dst=%d data0=%a data1=%b initial=%s op0=multiply op1=add").expect(
        "d", cast(scan(f32([3, -2])), BF16)
    ).write()
    c = isa("tensor_tensor_scan", "no_initial", "initial must be there")
    c.tensor("x", "float32", (1, 2))("tensor_tensor_scan dst=%x data0=%x data1=%x op0=multiply op1=add").fault(
        "ARG2", "initial"
    ).write()
    c = isa("tensor_tensor_scan", "both_psum", "two inputs in PSUM are refused")
    c.tensor("x", "float32", (1, 2), "psum")(
        "tensor_tensor_scan dst=%x data0=%x data1=%x initial=0 op0=multiply op1=add"
    ).fault("BUF1").write()


def select_reduce():
    x, p = f32([[1, 2, 3], [-4, -5, -6]]), np.array([[1, 0, 1], [0, 2, 0]], np.uint8)
    c = isa("select_reduce", "where_and_maximum", "where(predicate, tile, -10), and the maximum of each row of that")
    c.tile("x", x).tile("p", p).tensor("d", "float32", x.shape).tensor("r", "float32", (2, 1))
    c(
        "select_reduce dst=%d predicate=%p on_true=%x on_false=-10 reduce_res=%r reduce_cmd=reset_reduce reduce_op=maximum"
    )
    out = np.where(p != 0, x, F32(-10))
    c.expect("d", out).expect("r", out.max(axis=1, keepdims=True)).write()
    c = isa("select_reduce", "reversed_per_partition", "reverse_pred swaps the choice; on_false differs by partition")
    col = f32([[100], [200]])
    c.tile("x", x).tile("p", p).tile("f", col).tensor("d", "float32", x.shape)
    c("select_reduce dst=%d predicate=%p on_true=%x on_false=%f reverse_pred=true").expect(
        "d", np.where(p != 0, col, x)
    ).write()
    c = isa(
        "select_reduce", "idle_read_out", "reading out accumulators that this instruction does not fill is a remark"
    )
    c.tile("x", x).tile("p", p).tensor("d", "float32", x.shape).tensor("r", "float32", (2, 1))
    c("select_reduce dst=%d predicate=%p on_true=%x on_false=0 reduce_res=%r").warn("RED3").expect(
        "d", np.where(p != 0, x, F32(0))
    ).write()
    c = isa("select_reduce", "sum", "only maximum reduces")
    c.tensor("x", "float32", (1, 2)).tensor("p", "uint8", (1, 2))
    c("select_reduce dst=%x predicate=%p on_true=%x on_false=0 reduce_op=add").fault("RED1").write()
    c = isa("select_reduce", "no_on_false", "on_false must be there")
    c.tensor("x", "float32", (1, 2)).tensor("p", "uint8", (1, 2))("select_reduce dst=%x predicate=%p on_true=%x").fault(
        "ARG2", "on_false"
    ).write()


def range_select():
    x = f32([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
    low, high = f32([[1], [0]]), f32([[4], [2]])
    c = isa(
        "range_select",
        "inside_a_range",
        "element i stays where bound0 <= i < bound1, else the lowest fp32; and the maximum of each row",
    )
    c.tile("x", x).tile("a", low).tile("b", high).tensor("d", "float32", x.shape).tensor("r", "float32", (2, 1))
    c("range_select dst=%d on_true_tile=%x comp_op0=greater_equal comp_op1=less bound0=%a bound1=%b reduce_res=%r")
    i = np.arange(5)[None, :]
    out = np.where((i >= low) & (i < high), x, LOWEST).astype(F32)
    c.expect("d", out).expect("r", out.max(axis=1, keepdims=True)).write()
    c = isa("range_select", "start_of_the_range", "range_start is the index of the first element; equal compares too")
    c.tile("x", x).tile("a", f32([[12], [10]])).tile("b", f32([[100], [100]])).tensor("d", "float32", x.shape)
    c("range_select dst=%d on_true_tile=%x comp_op0=equal comp_op1=less_equal bound0=%a bound1=%b range_start=10")
    c.expect("d", np.where(i + 10 == f32([[12], [10]]), x, LOWEST).astype(F32)).write()
    c = isa("range_select", "not_a_comparison", "comp_op0 compares")
    c.tile("x", x).tensor("a", "float32", (2, 1))(
        "range_select dst=%x on_true_tile=%x comp_op0=add bound0=%a bound1=%a"
    ).fault("RNG1", "add").write()
    c = isa("range_select", "bfloat16_bound", "bounds are fp32")
    c.tile("x", x).tensor("a", "bfloat16", (2, 1))("range_select dst=%x on_true_tile=%x bound0=%a bound1=%a").fault(
        "RNG2", "bfloat16"
    ).write()


def max8():
    rng = np.random.default_rng(3)
    x = rng.permutation(40).astype(F32).reshape(2, 20)
    c = isa("max8", "eight_largest_descending", "the eight largest of each partition, descending")
    c.tile("x", x).tensor("d", "float32", (2, 8))("max8 dst=%d src=%x").expect("d", -np.sort(-x, axis=1)[:, :8]).write()
    y = f32([[5, 5, 5, -0.0, 0.0, -1, -2, -INF, INF, 5]])
    c = isa("max8", "repeated_and_zeros", "repeated values count each time; +0 stands before -0")
    c.tile("x", y).tensor("d", "float32", (1, 8))("max8 dst=%d src=%x").expect(
        "d", f32([[INF, 5, 5, 5, 5, 0.0, -0.0, -1]])
    ).write()
    c = isa("max8", "too_few", "fewer than eight elements are refused")
    c.tensor("x", "float32", (1, 7)).tensor("d", "float32", (1, 8))("max8 dst=%d src=%x").fault(
        "TOP1", "7 elements"
    ).write()
    c = isa("max8", "result_of_seven", "dst holds eight")
    c.tensor("x", "float32", (1, 9)).tensor("d", "float32", (1, 7))("max8 dst=%d src=%x").fault("SHAPE4").write()


def nc_find_index8():
    x = f32([[9, 1, 8, 2, 7, 3, 6, 4, 5, 0]])
    v = f32([[9, 8, 7, 6, 5, 4, 3, 2]])
    c = isa("nc_find_index8", "places_of_eight", "where each of eight values is")
    c.tile("x", x).tile("v", v).tensor("d", "uint32", (1, 8))("nc_find_index8 dst=%d data=%x vals=%v")
    c.expect("d", np.array([[0, 2, 4, 6, 8, 7, 5, 3]], np.uint32)).write()
    c = isa(
        "nc_find_index8",
        "repeated_and_absent",
        "a repeated value gets its next place each time; an absent one all ones",
    )
    c.tile("x", f32([[5, 1, 5, 2, 5, 0, 0, 0]])).tile("v", f32([[5, 5, 5, 5, 2, 1, 42, 42]])).tensor(
        "d", "uint16", (1, 8)
    )
    c("nc_find_index8 dst=%d data=%x vals=%v").expect(
        "d", np.array([[0, 2, 4, 65535, 3, 1, 65535, 65535]], np.uint16)
    ).write()
    c = isa("nc_find_index8", "float_result", "indices are unsigned integers")
    c.tensor("x", "float32", (1, 8))("nc_find_index8 dst=%x data=%x vals=%x").fault("TOP2", "float32").write()


def nc_match_replace8():
    x = f32([[5, 1, 5, 2, 5, 3, 4, 6]])
    v = f32([[5, 5, 1, 2, 3, 4, 6, 42]])
    c = isa(
        "nc_match_replace8",
        "replace_and_say_where",
        "each value takes the first place nobody took, slots 7 down to 0; the place of an absent one is all ones",
        "slot 1 comes before slot 0, so slot 1 finds the first 5 and slot 0 the second",
    )
    c.tile("x", x).tile("v", v).tensor("d", "float32", (1, 8)).tensor("i", "uint32", (1, 8))
    c("nc_match_replace8 dst=%d data=%x vals=%v imm=-1 dst_idx=%i")
    c.expect("d", f32([[-1, -1, -1, -1, 5, -1, -1, -1]])).expect(
        "i", np.array([[2, 0, 1, 3, 5, 6, 7, 2**32 - 1]], np.uint32)
    ).write()
    c = isa("nc_match_replace8", "without_places", "dst_idx may be left out; dst may be data")
    c.tile("x", x).tile("v", f32([[6, 6, 6, 6, 6, 6, 6, 6]]))("nc_match_replace8 dst=%x data=%x vals=%v imm=inf")
    c.expect("x", f32([[5, 1, 5, 2, 5, 3, 4, INF]])).write()
    c = isa("nc_match_replace8", "nine_values", "vals holds eight")
    c.tensor("x", "float32", (1, 9))("nc_match_replace8 dst=%x data=%x vals=%x imm=0").fault("SHAPE4", "vals").write()


def bn_stats():
    x = f32([[1, 10, 2, 20, 3, 30], [4, 4, 4, 4, 4, 4]])
    c = isa(
        "bn_stats",
        "even_and_odd",
        "count, mean and variance * count of the even elements, then of the odd ones",
        "1, 2, 3: mean 2, (1 + 0 + 1) = 2; 10, 20, 30: mean 20, 200",
    )
    c.tile("x", x).tensor("d", "float32", (2, 6))("bn_stats dst=%d data=%x").expect(
        "d", f32([[3, 2, 2, 3, 20, 200], [3, 4, 0, 3, 4, 0]])
    ).write()
    c = isa("bn_stats", "odd_length", "five elements: three even ones, two odd ones")
    c.tile("x", f32([[1, 0, 2, 4, 3]])).tensor("d", "float32", (1, 6))("bn_stats dst=%d data=%x").expect(
        "d", f32([[3, 2, 2, 2, 2, 8]])
    ).write()
    c = isa("bn_stats", "too_long", "at most 512 elements in a partition")
    c.tensor("x", "float32", (1, 513)).tensor("d", "float32", (1, 6))("bn_stats dst=%d data=%x").fault(
        "BN1", "513"
    ).write()
    c = isa("bn_stats", "result_of_five", "dst holds six")
    c.tensor("x", "float32", (1, 8)).tensor("d", "float32", (1, 5))("bn_stats dst=%d data=%x").fault("SHAPE4").write()


def bn_aggr():
    c = isa(
        "bn_aggr",
        "joins_two_halves",
        "mean and variance of everything that went in",
        "1, 2, 3 and 10, 20, 30: mean 11; variance ((2 + 200) + 3 * 81 + 3 * 81) / 6 = 688 / 6",
    )
    c.tile("x", f32([[3, 2, 2, 3, 20, 200]])).tensor("d", "float32", (1, 2))("bn_aggr dst=%d data=%x").expect(
        "d", f32([[11, F32(688) / F32(6)]])
    ).write()
    c = isa("bn_aggr", "one_triple", "one triple: its mean, its variance")
    c.tile("x", f32([[4, 2.5, 5]])).tensor("d", "float32", (1, 2))("bn_aggr dst=%d data=%x").expect(
        "d", f32([[2.5, 1.25]])
    ).write()
    c = isa("bn_aggr", "not_triples", "data holds triples")
    c.tensor("x", "float32", (1, 4)).tensor("d", "float32", (1, 2))("bn_aggr dst=%d data=%x").fault(
        "BN2", "triples"
    ).write()


ALL = [
    tensor_tensor,
    tensor_scalar,
    mixed_widths,
    scalar_tensor_tensor,
    reciprocal,
    tensor_copy,
    memset,
    tensor_copy_predicated,
    nc_stream_shuffle,
    tensor_reduce,
    tensor_scalar_reduce,
    tensor_scalar_cumulative,
    tensor_tensor_scan,
    select_reduce,
    range_select,
    max8,
    nc_find_index8,
    nc_match_replace8,
    bn_stats,
    bn_aggr,
]
