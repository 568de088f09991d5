# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the vector engine: element by element."""

import numpy as np
from case import isa
from oracle import BF16, F32, alu, cast, f32

INF = np.inf


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


ALL = [tensor_tensor, tensor_scalar, mixed_widths, scalar_tensor_tensor, reciprocal]
