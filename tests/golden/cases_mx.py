# SPDX-License-Identifier: Apache-2.0
"""Golden cases of block-scaled (MX) matmuls and quantisation.

The oracle: an element is its ml_dtypes value times 2^(scale - 127), exact in fp32; contraction place 4 p + j. Scales come from Fractions.
"""

import math

import ml_dtypes
import numpy as np
from case import isa
from oracle import BF16, F32, alu, cast, matmul

E4, E5, FP4 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn
NAMES = {E4: "float8_e4m3fn_x4", E5: "float8_e5m2_x4", FP4: "float4_e2m1fn_x4"}
LARGEST = {E4: (8, 448), E5: (15, 57344)}


def packed(elements):
    """[P, N, 4] small elements as lines of hexadecimal x4 words."""
    bits = elements.view(np.uint8).astype(np.uint64)
    width = 4 if elements.dtype == FP4 else 8
    words = sum(bits[..., j] << np.uint64(width * j) for j in range(4))
    return "\n".join(" ".join(f"0x{w:0{width}x}" for w in row) for row in words)


def random_elements(rng, dtype, shape):
    values = rng.standard_normal((*shape, 4)).astype(F32) * (1 if dtype == FP4 else 16)
    return values.astype(dtype)


def scattered(scales, rows, offset=0):
    """Four rows of scales for each 32 partitions; the others were never written."""
    out = [["?"] * scales.shape[1] for _ in range(rows)]
    for i, row in enumerate(scales):
        out[32 * (i // 4) + i % 4 + offset] = [str(s) for s in row]
    return "\n".join(" ".join(row) for row in out)


def dequantised(elements, scales):
    """[4 P, N] fp32."""
    p, n, _ = elements.shape
    factor = np.exp2(scales.astype(np.float64) - 127).repeat(8, 0)[:, :, None]
    with np.errstate(over="ignore"):
        return (elements.astype(np.float64) * factor).astype(F32).transpose(0, 2, 1).reshape(4 * p, n)


def product_case(
    name, title, s_type, m_type, partitions=32, rows=2, cols=3, dst="float32", scale="uint8", offset=0, seed=0
):
    rng = np.random.default_rng(seed)
    s, m = random_elements(rng, s_type, (partitions, rows)), random_elements(rng, m_type, (partitions, cols))
    s_scale, m_scale = (rng.integers(120, 132, (partitions // 8, n)) for n in (rows, cols))
    height = offset + (4 if partitions == 32 else partitions)
    c = isa("nc_matmul_mx", name, title, target="trn3")
    for tile, data, scales in (("s", s, s_scale), ("m", m, m_scale)):
        c.tensor(tile, NAMES[data.dtype.type], data.shape[:2]).data(tile, packed(data))
        c.tensor(f"{tile}_scale", scale, (height, data.shape[1]))
        text = scattered(scales, height, offset)
        if scale != "uint8":
            text = "\n".join(
                " ".join(w if w == "?" else f"0x{int(w):02x}" for w in r.split()) for r in text.split("\n")
            )
        c.data(f"{tile}_scale", text)
    c.tensor("p", dst, (rows, cols), "psum")
    part = f"[{offset}:{height}, 0:{{}}]" if offset else ""
    line = f"nc_matmul_mx dst=%p stationary=%s moving=%m stationary_scale=%s_scale{part.format(rows)} moving_scale=%m_scale{part.format(cols)}"
    return c, line, matmul(dequantised(s, s_scale), dequantised(m, m_scale))


def nc_matmul_mx():
    c, line, value = product_case(
        "fp8", "dst = stationary^T @ moving of dequantised elements, place 4 p + j ascending", E4, E5
    )
    c(line).expect("p", value).write()
    c, line, value = product_case(
        "fp4_with_fp8",
        "formats mix: fp4 against fp8; scales as float8_e8m0fnu",
        FP4,
        E4,
        scale="float8_e8m0fnu",
        seed=1,
    )
    c(line).expect("p", value).write()
    c, line, value = product_case(
        "four_quadrants",
        "128 partitions: scales in the quadrant of their data; the other rows are not read",
        E5,
        E5,
        128,
        4,
        3,
        seed=2,
    )
    c(line).expect("p", value).write()
    c, line, value = product_case(
        "packed_scales",
        "scales from partition 8 of each quadrant: up to four tensors share a scale tile",
        E4,
        E4,
        64,
        2,
        2,
        offset=8,
        seed=3,
    )
    c(line).expect("p", value).write()
    c, line, value = product_case(
        "accumulates", "the second product adds once, rounded to bfloat16 in PSUM", E4, FP4, dst="bfloat16", seed=4
    )
    once = cast(value, BF16)
    c(line)(line).expect("p", cast(alu("add", once.astype(F32), value), BF16)).write()
    c, line, _ = product_case(
        "extremes", "scale ff is NaN; 2 times 2^127 is beyond fp32; 2^-9 times 2^-127 is exact", E4, E4
    )
    c.sections = [
        "---- data %s",
        *["0x38383838 0x38383838"] * 32,
        "---- data %s_scale",
        *["127 127"] * 4,
        "---- data %m",
        "0x40 0x38 0x1",
        *["0 0 0"] * 31,
        "---- data %m_scale",
        "254 255 0",
        *["127 127 127"] * 3,
    ]
    for i, text in enumerate(c.sections):
        c.sections[i] = text.replace("0 0 0", "0x0 0x0 0x0")
    tiny = f"{2.0**-136:.9g}"
    c(line).expect("p", f"inf nan {tiny}\ninf nan {tiny}").write()

    def refused(
        name,
        title,
        rule,
        *fragments,
        s=(32, 2),
        m=(32, 3),
        s_scale=(4, 2),
        m_scale=(4, 3),
        s_type="float8_e4m3fn_x4",
        more="",
        dst="float32",
        memory="psum",
    ):
        c = isa("nc_matmul_mx", name, title, target="trn3")
        c.tensor("s", s_type, s).tensor("m", "float8_e5m2_x4", m)
        c.tensor("ss", "uint8", s_scale).tensor("ms", "uint8", m_scale).tensor("p", dst, (s[1], m[1]), memory)
        c(f"nc_matmul_mx dst=%p stationary=%s moving=%m stationary_scale=%ss moving_scale=%ms{more}").fault(
            rule, *fragments
        ).write()

    refused("not_packed", "operands are x4 elements", "MX7", "float8_e4m3fn", s_type="float8_e4m3fn")
    refused("partitions", "a multiple of 32 partitions", "MX2", "multiple of 32", s=(48, 2), m=(48, 3))
    refused("odd_stationary", "an even number of stationary columns", "MX9", "even", s=(32, 3), s_scale=(4, 3))
    refused("too_many_columns", "at most 4096 columns for float32", "MX10", "4096", m=(32, 4097), m_scale=(4, 4097))
    refused(
        "scales_in_a_row",
        "scales of several quadrants are spread, not packed",
        "MX4",
        "36",
        s=(64, 2),
        m=(64, 3),
        s_scale=(8, 2),
    )
    refused("wrong_number_of_scales", "one scale for each x4 element of a row", "MX5", "3", s_scale=(4, 3))
    refused("into_sbuf", "results go to PSUM", "MX8", "sbuf", memory="sbuf")
    refused("float16_result", "results are float32 or bfloat16", "MX8", "float16", dst="float16")
    refused("column_tile", "row tiles only", "TILE2", "128", more=" tile_position=[0, 0] tile_size=[32, 64]")
    refused(
        "tile_too_small",
        "the operands fit the row tile",
        "TILE4",
        "64",
        s=(64, 2),
        m=(64, 3),
        s_scale=(36, 2),
        m_scale=(36, 3),
        more=" tile_position=[32, 0] tile_size=[32, 128]",
    )


def quantised(block, dtype, ocp=False):
    """One block of 32 numbers: scale bits, elements."""
    e_max, largest = LARGEST[dtype]
    amax = max(abs(float(x)) for x in block)
    bits = 0 if amax == 0 else max(0, math.frexp(amax)[1] - 1 - (e_max if ocp else e_max - 1) + 127)
    exact = [min(max(math.ldexp(float(x), 127 - bits), -largest), largest) for x in block]
    return bits, np.array(exact, dtype=np.float64).astype(F32).astype(dtype)


def quantise_case(name, title, x, dtype, more="", ocp=False, scale="uint8"):
    p, n = x.shape[0], x.shape[1] // 4
    elements, scales = np.zeros((p, n, 4), dtype), np.zeros((p // 8, n), np.int64)
    for g in range(p // 8):
        for i in range(n):
            block = x[8 * g : 8 * g + 8, 4 * i : 4 * i + 4].astype(F32)
            scales[g, i], flat = quantised(block.ravel(), dtype, ocp)
            elements[8 * g : 8 * g + 8, i] = flat.reshape(8, 4)
    rows = 4 if p == 32 else p
    c = isa("quantize_mx", name, title, target="trn3")
    c.tile("x", x).tensor("d", NAMES[dtype], (p, n)).tensor("e", scale, (rows, n))
    return (
        c(f"quantize_mx dst=%d src=%x dst_scale=%e{more}")
        .expect("d", packed(elements))
        .expect("e", scattered(scales, rows))
    )


def quantize_mx():
    rng = np.random.default_rng(7)
    x = cast(rng.standard_normal((32, 8)).astype(F32) * np.exp2(rng.integers(-8, 8, (32, 8))), BF16)
    quantise_case("e4m3fn", "blocks of 8 partitions x 4 elements; scale 2^(floor(log2 amax) - 7)", x, E4).write()
    quantise_case("e5m2_of_float16", "scale 2^(floor(log2 amax) - 14); float16 input", x.astype(np.float16), E5).write()
    quantise_case(
        "before_nki_0_5", "ocp_scale: half the scale, so the largest numbers saturate", x, E4, " ocp_scale=true", True
    ).write()
    wide = cast(rng.standard_normal((64, 4)).astype(F32), BF16)
    quantise_case(
        "two_quadrants",
        "scales go to the first four partitions of each quadrant; other rows stay as they are",
        wide,
        E5,
    ).write()
    c = quantise_case(
        "zero_padding",
        "before NKI 0.6: rows of scales that nobody wrote become 0; those of other tensors stay",
        wide,
        E5,
        " zero_padding=true",
    )
    c.body.insert(-1, "memset dst=%e[5:6, 0:1] value=9")
    c.sections[c.sections.index("---- values %e") + 1 :] = [
        "9" if i == 5 else w if w != "?" else "0"
        for i, w in enumerate(c.sections[c.sections.index("---- values %e") + 1 :])
    ]
    c.write()
    edges = np.zeros((32, 4), F32)
    edges[8, :] = [np.exp2(-133), 0, -0.0, 0]
    edges[16, :] = [np.exp2(127), -np.exp2(120), 1, 0]
    edges[24, :] = [1.9921875, -1.9921875, np.exp2(-9), 0]
    quantise_case(
        "zeros_and_extremes",
        "zeros take 2^-127, and so do blocks below it; rounding never saturates",
        cast(edges, BF16),
        E4,
    ).write()
    c = isa(
        "quantize_mx",
        "infinity_and_nan",
        "both count as 2^128: infinity saturates, NaN stays NaN",
        "values: as the published references do; the documents are silent",
        target="trn3",
    )
    special = np.zeros((32, 4), F32)
    special[0] = [np.inf, -np.inf, np.nan, np.exp2(120)]
    c.tile("x", cast(special, BF16)).tensor("d", NAMES[E4], (32, 1)).tensor("e", "uint8", (4, 1))
    c("quantize_mx dst=%d src=%x dst_scale=%e").expect("d", "0x307ffe7e\n" + "\n".join(["0x0"] * 31)).expect(
        "e", "248\n0\n0\n0"
    ).write()

    def refused(
        name,
        title,
        rule,
        *fragments,
        x=(32, 8),
        d=(32, 2),
        e=(4, 2),
        x_type="bfloat16",
        d_type="float8_e4m3fn_x4",
        memory="sbuf",
    ):
        c = isa("quantize_mx", name, title, target="trn3")
        c.tensor("x", x_type, x, memory).tensor("d", d_type, d).tensor("e", "uint8", e)
        c("quantize_mx dst=%d src=%x dst_scale=%e").fault(rule, *fragments).write()

    refused("float32_source", "src is float16 or bfloat16", "QMX1", "float32", x_type="float32")
    refused("fp4_result", "there is no fp4 result", "QMX3", "fp4", d_type="float4_e2m1fn_x4")
    refused("not_a_multiple_of_four", "four elements make one", "QMX2", "6", x=(32, 6))
    refused("psum", "everything is in SBUF", "MX1", "psum", memory="psum")


def moves():
    """What x4 elements may do besides being multiplied."""
    words = "0x01020304 0xff7f8001\n0x0 0xdeadbeef"
    c = isa("tensor_copy", "packed_elements", "x4 elements keep their bits", target="trn3")
    c.tensor("x", NAMES[E4], (2, 2)).data("x", words).tensor("d", NAMES[E4], (2, 2))(
        "tensor_copy dst=%d src=%x"
    ).expect("d", words).write()
    c = isa("tensor_copy", "packed_to_float", "packed elements are not converted", target="trn3")
    c.tensor("x", NAMES[E4], (2, 2)).data("x", words).tensor("d", "float32", (2, 2))("tensor_copy dst=%d src=%x").fault(
        "PACK1", "converted"
    ).write()
    c = isa("tensor_tensor", "packed_operand", "no arithmetic on packed elements", target="trn3")
    c.tensor("x", NAMES[E4], (2, 2)).data("x", words).tensor("d", "float32", (2, 2))(
        "tensor_tensor dst=%d data1=%x data2=%x op=add"
    ).fault("PACK1", "nc_matmul_mx").write()
    c = isa("dma_copy", "packed_to_integer", "packed elements move to their own type", target="trn3")
    c.tensor("x", NAMES[E4], (2, 2)).data("x", words).tensor("d", "uint32", (2, 2))("dma_copy dst=%d src=%x").fault(
        "PACK1", "uint32"
    ).write()
    c = isa("memset", "packed_zero", "x4 tiles are set to 0, and to nothing else", target="trn3")
    c.tensor("x", NAMES[FP4], (2, 2))("memset dst=%x value=0").expect("x", "0x0 0x0\n0x0 0x0").write()
    c = isa("memset", "packed_one", "x4 tiles are set to 0, and to nothing else", target="trn3")
    c.tensor("x", NAMES[FP4], (2, 2))("memset dst=%x value=1").fault("MEMSET1", "0 only").write()


ALL = [nc_matmul_mx, quantize_mx, moves]
