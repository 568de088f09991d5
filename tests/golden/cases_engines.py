# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the scalar and tensor engines."""

import math

import ml_dtypes
import numpy as np
from case import isa
from oracle import BF16, F32, alu, cast, f32, matmul, reduce_rows

INF = np.inf
E4M3 = ml_dtypes.float8_e4m3


def exact(function, x):
    """A function in fp64, rounded to fp32."""
    with np.errstate(all="ignore"):
        return np.vectorize(function, otypes=[np.float64])(f32(x).astype(np.float64)).astype(F32)


FUNCTIONS = {
    "exp": math.exp,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "silu": lambda v: v / (1 + math.exp(-v)),
    "gelu": lambda v: 0.5 * v * math.erfc(-v / math.sqrt(2)),
    "softplus": lambda v: math.log1p(math.exp(v)),
    "arctan": math.atan,
    "sin": math.sin,
}
POSITIVE = {"log": math.log, "sqrt": math.sqrt, "rsqrt": lambda v: 1 / math.sqrt(v), "reciprocal": lambda v: 1 / v}


def activation():
    x = f32([[-1.5, -0.5, -0.001, 0.25, 1, 1.5]])
    for name, function in FUNCTIONS.items():
        c = isa(
            "activation",
            f"function_{name}",
            f"{name}, within one unit in the last place of the correctly rounded value",
            "values: fp64 formula, rounded to fp32",
        )
        c.tile("x", x).tensor("d", "float32", x.shape)(f"activation dst=%d op={name} data=%x").expect(
            "d", exact(function, x), nearly=True
        ).write()
    y = f32([[0.001, 0.5, 1, 3, 1e6]])
    for name, function in POSITIVE.items():
        c = isa(
            "activation",
            f"function_{name}",
            f"{name}, within one unit in the last place of the correctly rounded value",
            "values: fp64 formula, rounded to fp32",
        )
        c.tile("x", y).tensor("d", "float32", y.shape)(f"activation dst=%d op={name} data=%x").expect(
            "d", exact(function, y), nearly=True
        ).write()
    z = f32([[-2, -0.0, 0.0, 3, INF, np.nan]])
    c = isa(
        "activation",
        "exact_functions",
        "copy, relu, square, abs and sign are exact; NaN is 7fc00000",
        "relu is max(x, 0); sign of -0 is 0",
    )
    c.tile("x", z)
    for name, value in (
        ("relu", [[0, 0, 0, 3, INF, np.nan]]),
        ("square", [[4, 0, 0, 9, INF, np.nan]]),
        ("abs", [[2, 0, 0, 3, INF, np.nan]]),
        ("sign", [[-1, 0, 0, 1, 1, np.nan]]),
    ):
        c.tensor(name, "float32", z.shape)(f"activation dst=%{name} op={name} data=%x").expect(name, f32(value))
    c.write()
    w, scale, bias = f32([[1, 2, 3], [4, 5, 6]]), f32([[0.1], [3]]), f32([[0.7], [-1]])
    c = isa(
        "activation",
        "scale_and_bias_round_separately",
        "op(data * scale + bias): the product rounds before the bias is added",
    )
    c.tile("x", w).tile("s", scale).tile("b", bias).tensor("d", "float32", w.shape)(
        "activation dst=%d op=copy data=%x bias=%b scale=%s"
    )
    c.expect("d", alu("add", alu("multiply", w, scale), bias)).write()
    c = isa("activation", "accumulates", "reset_reduce, then reduce: the sum of each row of the fp32 results, twice")
    c.tile("x", w).tensor("d", "bfloat16", w.shape).tensor("r", "float32", (2, 1))
    c("activation dst=%d op=copy data=%x scale=0.1 reduce_op=add reduce_cmd=reset_reduce")
    c("activation dst=%d op=copy data=%x scale=0.1 reduce_op=add reduce_cmd=reduce reduce_res=%r")
    tenth = alu("multiply", w, F32(0.1))
    once = alu("add", F32(0), reduce_rows("add", tenth))
    c.expect("d", cast(tenth, BF16)).expect("r", alu("add", once, reduce_rows("add", tenth))).write()
    c = isa("activation", "from_psum_in_place", "PSUM in, PSUM out, in place")
    c.tile("x", w, "psum")("activation dst=%x op=square data=%x").expect("x", w * w).write()
    c = isa(
        "activation", "outside_the_documented_range", "the mathematical value, and a warning that names the first input"
    )
    c.tile("x", f32([[1, 4], [0.25, -1]])).tensor("d", "float32", (2, 2))("activation dst=%d op=sqrt data=%x")
    c.warn("ACT3", "sqrt", "-1 in partition 1").expect("d", f32([[1, 2], [0.5, np.nan]])).write()
    c = isa("activation", "maximum", "the scalar engine adds only")
    c.tile("x", w)("activation dst=%x op=exp data=%x reduce_op=maximum").fault("ACT1", "maximum").write()
    c = isa("activation", "prelu", "the slope of prelu has no operand in NKI 0.6, so nobody knows its result")
    c.tile("x", w)("activation dst=%x op=prelu data=%x").fault("ACT2", "relu_param").write()
    whole = np.array([[16777217, -5]], dtype=np.int32)
    c = isa(
        "activation",
        "plain_copy_keeps_bits",
        "a copy of equal types without scale and bias keeps bits: 2^24 + 1 is no fp32 value",
        "source: nki.isa, bit-exact copies when types match",
    )
    c.tile("x", whole).tensor("d", "int32", whole.shape)("activation dst=%d op=copy data=%x").expect("d", whole).write()
    c = isa("activation", "wide_scale", "scale is one value, or one for each partition")
    c.tile("x", w)("activation dst=%x op=exp data=%x scale=%x").fault("SHAPE3", "scale").write()
    c = isa("activation", "unknown_function", "a name that is no function is refused by the text form")
    c.tile("x", w)("activation dst=%x op=exponent data=%x").fault("TEXT3", "exponent").write()


def activation_reduce():
    x = f32([[0, 1, -1, 0.5], [2, 2, 2, 2]])
    c = isa("activation_reduce", "square_and_sum", "squares, and the sum of each row")
    c.tile("x", x).tensor("d", "float32", x.shape).tensor("r", "float32", (2, 1))(
        "activation_reduce dst=%d op=square data=%x reduce_op=add reduce_res=%r"
    )
    c.expect("d", x * x).expect("r", f32([[2.25], [16]])).write()
    c = isa("activation_reduce", "starts_anew", "the accumulators start at zero each time")
    c.tile("x", x).tensor("d", "float32", x.shape).tensor("r", "float32", (2, 1))
    c("activation dst=%d op=copy data=%x reduce_op=add reduce_cmd=reset_reduce")(
        "activation_reduce dst=%d op=relu data=%x reduce_res=%r bias=1"
    )
    up = alu("maximum", alu("add", x, F32(1)), F32(0))
    c.expect("d", up).expect("r", reduce_rows("add", up)).write()
    c = isa("activation_reduce", "no_result", "without reduce_res the sums stay in the accumulators")
    c.tile("x", x).tensor("d", "float32", x.shape).tensor("r", "float32", (2, 1))
    c("activation_reduce dst=%d op=copy data=%x")(
        "activation dst=%d op=copy data=%x reduce_op=add reduce_cmd=reduce reduce_res=%r"
    )
    c.expect("r", F32(2) * reduce_rows("add", x)).write()
    c = isa("activation_reduce", "result_of_one_partition", "reduce_res has dst's partitions")
    c.tile("x", x).tensor("r", "float32", (1, 1))("activation_reduce dst=%x op=exp data=%x reduce_res=%r").fault(
        "SHAPE3"
    ).write()


def nc_matmul():
    s, m = (
        cast(f32([[1, 2], [3, 4], [0.5, -1]]), BF16),
        cast(f32([[1, 0, 2, -1], [0.25, 1, 1, 3], [7, 8, 9, 10]]), BF16),
    )
    product = matmul(s, m)

    def start(name, title, *comments, dtype=None):
        c = isa("nc_matmul", name, title, *comments)
        return c.tile("s", s).tile("m", m).tensor("p", dtype or "float32", product.shape, "psum")

    c = start("bfloat16", "dst = stationary^T @ moving")
    c("nc_matmul dst=%p stationary=%s moving=%m").expect("p", product).write()
    c = start("every_other_partition", "partitions that do not follow one another are a remark")
    c("nc_matmul dst=%p stationary=%s[0:3:2] moving=%m[0:3:2]").warn("P3", "'stationary'", "every 2.").warn("P3")
    c.expect("p", matmul(s[::2], m[::2])).write()
    c = start(
        "accumulate_none",
        "without accumulate the first matmul to a place overwrites, later ones add",
        "after allocation again it overwrites: the bit 'written by a matmul' is reset",
    )
    c("nc_matmul dst=%p stationary=%s moving=%m")("nc_matmul dst=%p stationary=%s moving=%m")
    c.tensor("q", "float32", product.shape, "psum")("nc_matmul dst=%q stationary=%s moving=%m")("alloc tensor=%q")(
        "nc_matmul dst=%q stationary=%s moving=%m"
    )
    c.expect("p", product + product).expect("q", product).write()
    c = start("accumulate_false_overwrites", "accumulate=false overwrites what a matmul wrote")
    c("nc_matmul dst=%p stationary=%s moving=%m")("nc_matmul dst=%p stationary=%s moving=%m accumulate=false").expect(
        "p", product
    ).write()
    c = start(
        "accumulate_true_adds_to_memset",
        "accumulate=true adds to data that no matmul wrote, and warns: on the chip that is undefined",
    )
    c("memset dst=%p value=100")("nc_matmul dst=%p stationary=%s moving=%m accumulate=true").warn("MM10").expect(
        "p", alu("add", F32(100), product)
    ).write()
    c = start("accumulate_none_over_memset", "without accumulate, data that no matmul wrote is overwritten")
    c("memset dst=%p value=100")("nc_matmul dst=%p stationary=%s moving=%m").expect("p", product).write()
    c = start("accumulate_true_of_nothing", "accumulate=true reads PSUM, so it must be defined")
    c("nc_matmul dst=%p stationary=%s moving=%m accumulate=true").fault("UNINIT1", "'p'").warn("MM10").write()
    c = start(
        "partly_written",
        "without accumulate each place decides for itself: the left half was written by a matmul, the right half not",
    )
    c("nc_matmul dst=%p[0:2, 0:2] stationary=%s moving=%m[0:3, 0:2]")("nc_matmul dst=%p stationary=%s moving=%m")
    both = product.copy()
    both[:, :2] = alu("add", both[:, :2], both[:, :2])
    c.expect("p", both).write()
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((9, 3)).astype(F32), rng.standard_normal((9, 5)).astype(F32)
    c = isa(
        "nc_matmul",
        "fp32_chain",
        "fp32: one chain of fused multiply-adds, contraction index ascending from zero",
        "values: exact fractions, rounded once a step",
    )
    c.tile("s", a).tile("m", b).tensor("p", "float32", (3, 5), "psum")(
        "nc_matmul dst=%p stationary=%s moving=%m"
    ).expect("p", matmul(a, b)).write()
    k = 128
    big = cast(f32([[2**12] if i == 0 else [1] for i in range(k)]), BF16)
    ones = cast(f32([[2**12] if i == 0 else ([2**-1] if i < k - 1 else [-(2**12)]) for i in range(k)]), BF16)
    c = isa(
        "nc_matmul",
        "order_is_visible",
        "2^24 first swallows the halves that follow one by one: a tree would keep some of them",
        "the chain: 2^24 + 126 * 0.5, each rounded to even (no change), then - 2^12",
    )
    c.tile("s", big).tile("m", ones).tensor("p", "float32", (1, 1), "psum")(
        "nc_matmul dst=%p stationary=%s moving=%m"
    ).expect("p", f32([[2**24 - 2**12]])).write()
    f8s, f8m = (
        cast(f32([[1, 1.5, -2, 240]]), E4M3).reshape(1, 2, 2),
        cast(f32([[0.5, 2, 3, 1, 4, -8]]), E4M3).reshape(1, 2, 3),
    )
    c = isa(
        "nc_matmul",
        "fp8_double_row",
        "double_row: [K, 2, M] and [K, 2, N] contract over 2 K",
        "values: row 0 is index 0, row 1 index 1",
    )
    c.tile("s", f8s).tile("m", f8m).tensor("p", "float32", (2, 3), "psum")(
        "nc_matmul dst=%p stationary=%s moving=%m perf_mode=double_row"
    )
    c.expect("p", matmul(f8s.reshape(2, 2), f8m.reshape(2, 3))).write()
    c = isa("nc_matmul", "nan_and_infinity", "inf - inf in the chain is the canonical NaN")
    c.tile("s", f32([[1], [1]])).tile("m", f32([[INF, 1], [-INF, 2]])).tensor("p", "float32", (1, 2), "psum")
    c("nc_matmul dst=%p stationary=%s moving=%m").expect("p", f32([[np.nan, 3]])).write()
    large_s, large_m = (
        np.ones((128, 128), F32).astype(BF16),
        np.tile(np.arange(512, dtype=F32) // 64, (128, 1)).astype(BF16),
    )
    c = isa("nc_matmul", "full_size", "128 x 128 x 512, which threads share: 128 times each column's number")
    c.tile("s", large_s).tile("m", large_m).tensor("p", "float32", (128, 512), "psum")(
        "nc_matmul dst=%p stationary=%s moving=%m"
    )
    c.expect("p", np.tile(128 * (np.arange(512, dtype=F32) // 64), (128, 1))).write()
    c = start("into_sbuf", "a matmul writes PSUM")
    c.tensor("d", "float32", product.shape)("nc_matmul dst=%d stationary=%s moving=%m").fault("MM2", "sbuf").write()
    c = start("wrong_result_shape", "dst is [M, N]")
    c("nc_matmul dst=%p[0:2, 0:3] stationary=%s moving=%m").fault("MM6").write()
    c = start("contraction_differs", "both inputs have as many partitions")
    c("nc_matmul dst=%p stationary=%s[0:2, 0:2] moving=%m").fault("MM3").write()
    c = start("fp32_with_bfloat16", "fp32 goes with fp32")
    c.tensor("f", "float32", (3, 4))("nc_matmul dst=%p stationary=%s moving=%f").fault("MM7").write()
    c = isa("nc_matmul", "input_in_psum", "inputs are in SBUF")
    c.tensor("x", "float32", (2, 2), "psum").tensor("p", "float32", (2, 2), "psum")(
        "nc_matmul dst=%p stationary=%x moving=%x"
    ).fault("MM1", "psum").write()
    c = isa("nc_matmul", "too_many_columns", "moving has at most 512 columns")
    c.tensor("s", "bfloat16", (2, 2)).tensor("m", "bfloat16", (2, 513)).tensor("p", "float32", (2, 513), "psum")
    c("nc_matmul dst=%p stationary=%s moving=%m").fault("MM5", "513").write()


def nc_transpose():
    x = np.arange(12, dtype=F32).reshape(3, 4)
    c = isa("nc_transpose", "tensor_engine", "SBUF to PSUM goes to the tensor engine")
    c.tile("x", x).tensor("d", "float32", (4, 3), "psum")("nc_transpose dst=%d data=%x").expect("d", x.T).write()
    c = isa("nc_transpose", "vector_engine_keeps_bits", "SBUF to SBUF goes to the vector engine; equal types keep bits")
    c.tensor("x", "float32", (1, 2)).tensor("d", "float32", (2, 1))("nc_transpose dst=%d data=%x").data(
        "x", "0x7f800001 -0"
    ).expect("d", "0x7f800001\n-0").write()
    y = np.arange(12, dtype=F32).reshape(2, 2, 3).astype(BF16)
    c = isa("nc_transpose", "flattens_free_axes", "free axes are flattened; 16-bit elements")
    c.tile("x", y).tensor("d", "bfloat16", (6, 2))("nc_transpose dst=%d data=%x").expect("d", y.reshape(2, 6).T).write()
    c = isa("nc_transpose", "wrong_shape", "dst has the transposed shape")
    c.tile("x", x).tensor("d", "float32", (3, 4))("nc_transpose dst=%d data=%x").fault("TR1").write()
    c = isa("nc_transpose", "tensor_engine_into_sbuf", "the tensor engine writes PSUM")
    c.tile("x", x).tensor("d", "float32", (4, 3))("nc_transpose dst=%d data=%x engine=tensor").fault("TR2").write()
    c = isa("nc_transpose", "scalar_engine", "the scalar engine does not transpose")
    c.tile("x", x).tensor("d", "float32", (4, 3))("nc_transpose dst=%d data=%x engine=scalar").fault(
        "ENG1", "scalar"
    ).write()


ALL = [activation, activation_reduce, nc_matmul, nc_transpose]
