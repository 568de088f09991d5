# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the random generators, of the gen4 functions of the vector and scalar engines, and of topk."""

import math

import ml_dtypes
import numpy as np
import oracle_random as random
from case import isa
from cases_engines import exact
from oracle import BF16, F32, alu, cast, f32, reduce_rows

U32 = np.uint32
INF = np.inf


def gen4(name, file, title, *comments):
    return isa(name, file, title, *comments, target="trn3")


def rng():
    c = isa("rng", "lfsr", "32 steps of an LFSR for each word; every lane has its own", "oracle_random.py")
    c.tensor("d", "uint32", (3, 5))("rng dst=%d").expect("d", random.vector_words(3, 5)).write()
    c = gen4("rng", "xorwow", "four XORWOW states take turns, from the first in every instruction", "oracle_random.py")
    c.tensor("d", "uint32", (2, 6)).tensor("e", "uint32", (2, 2))("rng dst=%d")("rng dst=%e")
    lanes = [random.VectorLane(lane, xorwow=True) for lane in range(2)]
    c.expect("d", np.array([lane.draw(6) for lane in lanes], U32))
    c.expect("e", np.array([lane.draw(2) for lane in lanes], U32)).write()
    c = isa("rng", "gpsimd", "GpSimd has one XORWOW state a lane; narrow types take the low bits", "oracle_random.py")
    words = random.gpsimd_words(2, 4)
    c.tensor("d", "int8", (2, 4))("rng dst=%d engine=gpsimd").expect("d", words.astype(np.uint8).view(np.int8)).write()
    c = isa("rng", "lanes_are_partitions", "rows of a tile draw from the lanes of their partitions, in program order")
    c.tensor("d", "uint16", (4, 3))("rng dst=%d[2:4, :]")("rng dst=%d[0:4, 0:1]")
    lanes = [random.VectorLane(lane) for lane in range(4)]
    later = [lane.draw(3) for lane in lanes[2:]]
    first = [lane.draw(1)[0] for lane in lanes]
    rows = [f"{first[0] & 0xFFFF} ? ?", f"{first[1] & 0xFFFF} ? ?"]
    rows += [" ".join(str(w & 0xFFFF) for w in (first[2 + i], *later[i][1:])) for i in range(2)]
    c.section("values %d", *rows).write()
    c = isa("rng", "type", "random bits are integers")
    c.tensor("d", "float32", (1, 4))("rng dst=%d").fault("RND1", "float32").write()
    c = isa("rng", "no_gpsimd_generator", "the GpSimd engine of trn1 has no generator", target="trn1")
    c.tensor("d", "uint32", (1, 4))("rng dst=%d engine=gpsimd").fault("RND3", "GpSimd").write()


def set_rng_seed():
    for target, xorwow in (("trn2", False), ("trn3", True)):
        c = isa("set_rng_seed", f"seeds_{target}", "the seed decides what follows, whatever came before", target=target)
        c.tile("s", np.array([[42]], np.int32)).tensor("d", "uint32", (3, 4)).tensor("e", "uint32", (3, 4))
        c("rng dst=%d")("set_rng_seed src_seeds=%s")("rng dst=%d")("rng dst=%e")("set_rng_seed src_seeds=%s")(
            "rng dst=%e"
        )
        want = random.vector_words(3, 4, seed=42, xorwow=xorwow)
        c.expect("d", want).expect("e", want).write()
    c = isa("set_rng_seed", "shape", "one number of 32 bits")
    c.tile("s", np.array([[1, 2]], np.int32))("set_rng_seed src_seeds=%s").fault("RND5", "[1, 1]").write()
    c = isa("set_rng_seed", "width", "one number of 32 bits")
    c.tile("s", np.array([[1]], np.int16))("set_rng_seed src_seeds=%s").fault("RND5", "int16").write()


def rand_state():
    words = np.array([[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 4294967295]], U32)
    c = isa("rand_set_state", "gpsimd", "a state is x, y, z, w, v, d of XORWOW", "oracle_random.py")
    c.tile("s", words).tensor("d", "uint32", (2, 3))("rand_set_state src_seeds=%s")("rng dst=%d engine=gpsimd")
    states = [random.Xorwow(row) for row in words]
    c.expect("d", np.array([[state() for _ in range(3)] for state in states], U32)).write()
    c = isa("rand_get_state", "after_drawing", "what is read is the state after the last word", "oracle_random.py")
    c.tile("s", words).tensor("d", "uint32", (2, 3)).tensor("g", "uint32", (2, 6))
    c("rand_set_state src_seeds=%s")("rng dst=%d engine=gpsimd")("rand_get_state dst=%g")
    c.expect("g", np.array([state.words for state in states], U32)).write()
    four = np.arange(1, 49, dtype=U32).reshape(2, 24)
    c = gen4(
        "rand_set_state", "vector", "four states of six words for each lane of the vector engine", "oracle_random.py"
    )
    c.tile("s", four).tensor("d", "uint32", (2, 5)).tensor("g", "uint32", (2, 24), memory="psum")
    c("rand_set_state src_seeds=%s engine=vector")("rng dst=%d")("rand_get_state dst=%g engine=vector")
    lanes = [[random.Xorwow(row[6 * k : 6 * k + 6]) for k in range(4)] for row in four]
    c.expect("d", np.array([[lane[i % 4]() for i in range(5)] for lane in lanes], U32))
    c.expect("g", np.array([sum((state.words for state in lane), []) for lane in lanes], U32)).write()
    c = gen4("rand_get_state", "restores", "a state that is read and set again gives the same words again")
    c.tensor("g", "uint32", (2, 24)).tensor("d", "uint32", (2, 7)).tensor("e", "uint32", (2, 7))
    c("rand_get_state dst=%g engine=vector")("rng dst=%d")("rand_set_state src_seeds=%g engine=vector")("rng dst=%e")
    want = random.vector_words(2, 7, xorwow=True)
    c.expect("d", want).expect("e", want).write()
    c = isa("rand_set_state", "no_vector_state", "the LFSR of trn2's vector engine has no state to set")
    c.tile("s", four)("rand_set_state src_seeds=%s engine=vector").fault("RND3", "set_rng_seed").write()
    c = isa("rand_get_state", "words", "six words on GpSimd")
    c.tensor("g", "uint32", (2, 24))("rand_get_state dst=%g").fault("RND6", "[P, 6]").write()
    c = gen4("rand_set_state", "in_sbuf", "the state is set from SBUF")
    c.tile("s", four, memory="psum")("rand_set_state src_seeds=%s engine=vector").fault("RND7").write()


def rand2():
    u = random.fraction(random.vector_words(2, 6, xorwow=True))
    c = gen4(
        "rand2", "uniform", "min + u * (max - min), each step rounded; one bound for each partition", "oracle_random.py"
    )
    low = f32([[-1], [10]])
    c.tile("low", low).tensor("d", "float32", u.shape)("rand2 dst=%d min=%low max=20")
    c.expect("d", alu("add", low, alu("multiply", u, F32(20) - low))).write()
    c = gen4("rand2", "converts", "the numbers are converted to dst: integers to nearest", "oracle_random.py")
    c.tensor("d", "int8", u.shape)("rand2 dst=%d min=0 max=100").expect("d", cast(u * F32(100), np.int8)).write()
    c = gen4("rand2", "bounds", "min is below max")
    c.tensor("d", "float32", (1, 4))("rand2 dst=%d min=1 max=1").fault("RND4", "min below max").write()
    c = gen4("rand2", "bounds_at_run_time", "min is below max, which only the run knows here")
    c.tile("m", f32([[2]])).tensor("d", "float32", (1, 4))("rand2 dst=%d min=%m max=1").fault("RND4", "2", "1").write()
    c = gen4("rand2", "type", "not every type is written")
    c.tensor("d", "float8_e4m3fn", (1, 4))("rand2 dst=%d min=0 max=1").fault("RND2", "float8_e4m3fn").write()
    c = isa("rand2", "later_chips", "rand2 came with trn3")
    c.tensor("d", "float32", (1, 4))("rand2 dst=%d min=0 max=1").fault("ISA1", "rand2").write()


def dropout():
    x = f32([[1, -2, 3, np.nan, 5, 6, 7, 8], [9, 10, 11, 12, -0.0, 14, 15, 16]])
    u = random.fraction(random.vector_words(2, 8))
    c = isa(
        "dropout", "half", "elements whose number is below prob become zero; others keep their bits", "oracle_random.py"
    )
    c.tile("x", x).tensor("d", "float32", x.shape)("dropout dst=%d data=%x prob=0.5")
    c.expect("d", np.where(u < F32(0.5), F32(0), x)).write()
    c = isa("dropout", "never_and_always", "prob 0 keeps everything, prob 1 nothing; one for each partition")
    w = np.arange(1, 9, dtype=np.int16).reshape(2, 4)
    c.tile("x", w).tile("p", f32([[0], [1]])).tensor("d", "int16", w.shape)("dropout dst=%d data=%x prob=%p")
    c.expect("d", np.array([[1, 2, 3, 4], [0, 0, 0, 0]], np.int16)).write()
    c = isa("dropout", "types", "dst has data's type")
    c.tile("x", x).tensor("d", "bfloat16", x.shape)("dropout dst=%d data=%x prob=0.5").fault("DRP1", "bfloat16").write()
    c = isa("dropout", "type_of_prob", "prob is float32 for integers")
    c.tile("x", w).tile("p", cast([[0], [1]], BF16)).tensor("d", "int16", w.shape)
    c("dropout dst=%d data=%x prob=%p").fault("DRP2", "float32").write()
    c = isa("dropout", "no_probability", "what is no probability is remarked on")
    c.tile("x", x).tensor("d", "float32", x.shape)("dropout dst=%d data=%x prob=1.5").warn("DRP3", "1.5")
    c.expect("d", np.zeros_like(x)).write()


def stochastic():
    x = f32([[1 + 2**-9, 1 + 2**-8, -(1 + 2**-10), 1.5, 0.1, 3.3], [7.7] * 6])
    words = random.rounding_words(2, 12, seed=7)
    c = isa("tensor_copy", "stochastic_rounding", "one word of the lane for each element stored", "oracle_random.py")
    c.tile("x", x).tensor("d", "bfloat16", x.shape).tensor("e", "bfloat16", x.shape)
    c("tensor_copy dst=%d src=%x")("tensor_scalar dst=%e data=%x op0=multiply operand0=3")
    c.expect("d", random.round_to_bfloat16(x, words[:, :6]).view(ml_dtypes.bfloat16))
    c.expect("e", random.round_to_bfloat16(x * F32(3), words[:, 6:]).view(ml_dtypes.bfloat16))
    c.section("options rounding=7").write()
    c = isa("dma_copy", "no_stochastic_rounding", "DMA rounds to nearest whatever the engines do")
    c.param("x", x).tensor("d", "bfloat16", x.shape)("dma_copy dst=%d src=%x").expect("d", cast(x, BF16))
    c.section("options rounding=7").write()


def exponential():
    x, top = f32([[0, 1, -1, 2.5], [3, -4, 0.25, 1e-3]]), f32([[2.5], [3]])
    shifted = alu("subtract", x, top)
    c = gen4("exponential", "shifted", "exp(src - max_value)", "values: fp64 formula, rounded to fp32")
    c.tile("x", x).tile("m", top).tensor("d", "float32", x.shape)("exponential dst=%d src=%x max_value=%m")
    c.expect("d", exact(math.exp, shifted), nearly=True).write()
    powers = f32([[0, -200], [0, 0]])  # exp is exact there: 1 and 0
    one = np.where(powers == 0, F32(1), F32(0))
    c = gen4("exponential", "sums", "the accumulators: reset, reduce, load", "exp(0) is 1, exp(-200) is 0 in fp32")
    c.tile("x", powers).tile("i", f32([[10], [20]])).tensor("d", "bfloat16", powers.shape)
    for name in "abc":
        c.tensor(name, "float32", (2, 1))
    c("exponential dst=%d src=%x reduce_res=%a reduce_cmd=reset_reduce")
    c("exponential dst=%d src=%x reduce_res=%b reduce_cmd=reduce")
    c("exponential dst=%d src=%x reduce_res=%c reduce_cmd=load_reduce reduce_init=%i")
    c.expect("d", cast(one, BF16)).expect("a", f32([[1], [2]])).expect("b", f32([[2], [4]])).expect(
        "c", f32([[11], [22]])
    )
    c.write()
    c = gen4("exponential", "initial_value", "an initial value goes with load_reduce")
    c.tile("x", x).tensor("d", "float32", x.shape)
    c("exponential dst=%d src=%x reduce_cmd=reset_reduce reduce_init=1").fault("EXP3", "load_reduce").write()
    c = gen4("exponential", "command", "there is no reset alone")
    c.tile("x", x).tensor("d", "float32", x.shape)("exponential dst=%d src=%x reduce_cmd=reset").fault("EXP2").write()
    c = gen4("exponential", "type", "not every type is taken")
    c.tile("x", x).tensor("d", "uint32", x.shape)("exponential dst=%d src=%x").fault("EXP1", "uint32").write()
    c = isa("exponential", "later_chips", "exponential came with trn3")
    c.tile("x", x).tensor("d", "float32", x.shape)("exponential dst=%d src=%x").fault("ISA1").write()


def activate2():
    x, s = f32([[1, -2, 3], [4, 0.1, -6]]), f32([[0.3], [-3]])
    three = F32(3)
    pairs = {
        "multiply_add": ("imm0=%s imm1=3 op0=multiply op1=add", alu("add", alu("multiply", x, s), three)),
        "multiply_subtract": (
            "imm0=%s imm1=3 op0=multiply op1=subtract reverse1=true",
            alu("subtract", three, alu("multiply", x, s)),
        ),
        "multiply": ("imm0=%s op0=multiply", alu("multiply", x, s)),
        "add": ("imm0=%s op0=add", alu("add", x, s)),
        "subtract": ("imm0=%s op0=subtract reverse0=true", alu("subtract", s, x)),
        "none": ("", x),
    }
    c = gen4("activate2", "six_pairs", "(op0, op1): six pairs, each step rounded, sides exchanged by the reverse flags")
    c.tile("x", x).tile("s", s)
    for name, (text, want) in pairs.items():
        c.tensor(name, "float32", x.shape)(f"activate2 dst=%{name} op=copy data=%x {text}".strip()).expect(name, want)
    c.write()
    c = gen4("activate2", "reductions", "add, maximum, minimum, abs_max and abs_min of the fp32 results")
    c.tile("x", x).tensor("d", "bfloat16", x.shape)
    for op in ("add", "maximum", "minimum", "abs_max", "abs_min"):
        c.tensor(op, "float32", (2, 1))
        c(f"activate2 dst=%d op=copy data=%x reduce_op={op} reduce_res=%{op} reduce_cmd=reset_reduce")
    c.expect("add", alu("add", F32(0), reduce_rows("add", x))).expect("maximum", f32([[3], [4]]))
    c.expect("minimum", f32([[-2], [-6]])).expect("abs_max", f32([[3], [-6]])).expect(
        "abs_min", f32([[1], [0.1]])
    ).write()
    c = gen4("activate2", "accumulates", "reduce goes on, reset empties, idle leaves alone")
    c.tile("x", x).tensor("d", "float32", x.shape).tensor("r", "float32", (2, 1)).tensor("z", "float32", (2, 1))
    c("activate2 dst=%d op=copy data=%x reduce_op=maximum reduce_cmd=reset_reduce")
    c("activate2 dst=%d op=copy data=%x imm0=2 op0=multiply")
    c("activate2 dst=%d op=copy data=%x imm0=-1 op0=multiply reduce_op=maximum reduce_res=%r reduce_cmd=reduce")
    c("activate2 dst=%d op=copy data=%x reduce_op=add reduce_res=%z reduce_cmd=reset")
    c.expect("r", f32([[3], [6]])).expect("z", f32([[0], [0]])).write()
    y = f32([[-2, -0.5, 0, 3, INF, np.nan]])
    c = gen4("activate2", "prelu", "prelu takes its slope from relu_param")
    c.tile("x", y).tensor("d", "float32", y.shape)("activate2 dst=%d op=prelu data=%x relu_param=0.25")
    c.expect("d", f32([[-0.5, -0.125, 0, 3, INF, np.nan]])).write()
    for name, text, rule in (
        ("pair", "imm0=1 imm1=1 op0=add op1=multiply", "AC1"),
        ("reverse", "reverse0=true", "AC2"),
        ("no_immediate", "op0=multiply", "ARG2"),
        ("command", "reduce_op=add reduce_cmd=load_reduce", "AC4"),
        ("reduction", "reduce_op=multiply reduce_cmd=reduce", "RED1"),
    ):
        c = gen4("activate2", f"no_such_{name}", "refused")
        c.tile("x", x).tensor("d", "float32", x.shape)(f"activate2 dst=%d op=copy data=%x {text}").fault(rule).write()


def topk():
    g = np.random.default_rng(3)
    n, k = 42, 8
    x = cast(g.permutation(32 * 3).reshape(32, 3), BF16)
    values, indices = [], []
    for group in range(2):
        flat = x[16 * group : 16 * group + 16].T.ravel()[:n]
        order = np.argsort(-flat.astype(F32), kind="stable")[:k][::-1]
        values += [flat[order]] * 16
        indices += [order.astype(U32)] * 16
    c = isa("topk", "two_groups", "element i lies in partition i mod 16, column i / 16; ascending, with places")
    c.tile("x", x).tensor("v", "bfloat16", (32, k)).tensor("i", "uint32", (32, k))
    c(f"topk val_dst=%v idx_dst=%i src=%x n={n}").expect("v", np.array(values, BF16)).expect(
        "i", np.array(indices, U32)
    )
    c.write()
    y = cast(np.tile(f32([[1], [-INF], [np.nan], [1]]), (4, 1)), BF16)
    c = isa("topk", "ties_and_nan", "NaN is above everything; of equal elements the one with the lower index is larger")
    c.tile("x", y).tensor("v", "bfloat16", (16, 6)).tensor("i", "uint32", (16, 6))(
        "topk val_dst=%v idx_dst=%i src=%x n=16"
    )
    want = np.array([3, 0, 14, 10, 6, 2])
    c.expect("v", np.tile(y[want, 0], (16, 1))).expect("i", np.tile(want.astype(U32), (16, 1))).write()
    c = isa("topk", "what_counts_is_defined", "only the first n elements are read")
    c.tensor("x", "bfloat16", (16, 2)).tensor("v", "bfloat16", (16, 2)).tensor("i", "uint32", (16, 2))
    c("memset dst=%x[:, 0:1] value=2")("topk val_dst=%v idx_dst=%i src=%x n=17").fault("UNINIT1").write()
    c = isa("topk", "what_does_not_count", "elements from n on need not be defined")
    c.tensor("x", "bfloat16", (16, 2)).tensor("v", "bfloat16", (16, 2)).tensor("i", "uint32", (16, 2))
    c("memset dst=%x[:, 0:1] value=2")("topk val_dst=%v idx_dst=%i src=%x n=16")
    c.expect("v", np.full((16, 2), 2, BF16)).expect("i", np.tile(np.array([1, 0], U32), (16, 1))).write()
    for name, shape, k, n, rule in (
        ("partitions", (8, 2), 2, 16, "TOPK3"),
        ("too_few", (16, 2), 2, 7, "TOPK2"),
        ("more_than_there_are", (16, 2), 9, 8, "TOPK2"),
        ("narrow", (16, 2), 2, 33, "TOPK4"),
    ):
        c = isa("topk", f"refused_{name}", "refused")
        c.tensor("x", "bfloat16", shape).tensor("v", "bfloat16", (shape[0], k)).tensor("i", "uint32", (shape[0], k))
        c(f"topk val_dst=%v idx_dst=%i src=%x n={n}").fault(rule).write()
    c = isa("topk", "refused_type", "bfloat16 only")
    c.tensor("x", "float32", (16, 2)).tensor("v", "bfloat16", (16, 2)).tensor("i", "uint32", (16, 2))
    c("topk val_dst=%v idx_dst=%i src=%x n=16").fault("TOPK1").write()


ALL = [rng, set_rng_seed, rand_state, rand2, dropout, stochastic, exponential, activate2, topk]


def alu_of_trn3():
    x, y = f32([[1, -2, 3, 0.5]]), f32([[-3, 1, -3, 0.25]])
    want = f32([[-3, -2, -3, 0.5]])  # the second on ties
    for name, target in (("abs_max", "trn3"), ("abs_max_before_trn3", "trn2")):
        c = isa("tensor_tensor", name, "abs_max keeps the sign; before trn3 no ALU has it", target=target)
        c.tile("x", x).tile("y", y).tensor("d", "float32", (1, 4))("tensor_tensor dst=%d data1=%x data2=%y op=abs_max")
        (c if target == "trn3" else c.warn("ALU1", "abs_max")).expect("d", want).write()
    c = isa("tensor_scalar", "square_before_trn3", "an operator that no ALU of trn2 has: a fault when strict")
    c.tile("x", x).tensor("d", "float32", (1, 4))("tensor_scalar dst=%d data=%x op0=square").fault("ALU1", "square")
    c.section("options strict").write()


ALL.append(alu_of_trn3)
