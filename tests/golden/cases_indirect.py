# SPDX-License-Identifier: Apache-2.0
"""Golden cases of views with .indirect(): columns of on-chip tensors that an index tensor finds (trn3)."""

import ml_dtypes
import numpy as np
from case import isa
from cases_mx import NAMES, dequantised, packed, random_elements, scattered
from oracle import BF16, F32, cast, f32, matmul, reduce_rows

U32 = np.uint32
E4, E5 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def gen4(name, file, title, *comments):
    return isa(name, file, title, *comments, target="trn3")


def snake(index, rows, n, group=16):
    """The places of each row: number i of a group of partitions is in partition i mod 16 of the group, column i / 16."""
    out = np.empty((rows, n), np.int64)
    for r in range(rows):
        first = r - r % group
        for i in range(n):
            out[r, i] = index[first + i % group, i // group]
    return out


def vector_and_scalar_engines():
    g = np.random.default_rng(5)
    x = f32(g.standard_normal((32, 40)))
    index = g.permuted(np.tile(np.arange(40), (32, 1)), axis=1)[:, :2].astype(U32)
    places = snake(index, 32, 20)
    picked = np.take_along_axis(x, places, 1)
    view = "+columns(%i * 1 < 40 by 16)"
    c = gen4("tensor_copy", "gathers_columns", "src[p, i] = x[p, index]: 16 partitions share a list, in snake order")
    c.tile("x", x).tile("i", index).tensor("d", "float32", (32, 20))
    c(f"tensor_copy dst=%d src=%x[:, 0:20]{view}").expect("d", picked).write()
    c = gen4(
        "tensor_tensor",
        "gathers_columns",
        "data1 and dst take columns by index; an element that repeats is written last",
    )
    y = f32(g.standard_normal((32, 20)))
    c.tile("x", x).tile("y", y).tile("i", index).tile("d", np.zeros((32, 40), F32))
    c(f"tensor_tensor dst=%d[:, 0:20]{view} data1=%x[:, 0:20]{view} data2=%y op=multiply")
    want = np.zeros((32, 40), F32)
    for r in range(32):
        for i, at in enumerate(places[r]):
            want[r, at] = picked[r, i] * y[r, i]
    c.expect("d", want).write()
    c = gen4("tensor_scalar", "gathers_columns", "data by index")
    c.tile("x", x).tile("i", index).tensor("d", "bfloat16", (32, 20))
    c(f"tensor_scalar dst=%d data=%x[:, 0:20]{view} op0=add operand0=1").expect(
        "d", cast(picked + F32(1), BF16)
    ).write()
    c = gen4("tensor_reduce", "gathers_columns", "data by index")
    c.tile("x", x).tile("i", index).tensor("d", "float32", (32, 1))
    c(f"tensor_reduce dst=%d op=add data=%x[:, 0:20]{view} axis=[1]").expect("d", reduce_rows("add", picked)).write()
    c = gen4("activation", "gathers_columns", "data by index, dst by the same")
    c.tile("x", x).tile("i", index).tile("d", np.ones((32, 40), F32))
    c(f"activation dst=%d[:, 0:20]{view} op=relu data=%x[:, 0:20]{view}")
    want = np.ones((32, 40), F32)
    for r in range(32):
        want[r, places[r]] = np.maximum(x[r, places[r]], 0)
    c.expect("d", want).write()
    c = gen4("tensor_copy", "gathers_in_place", "everything is read before anything is written")
    c.tile("x", x).tile("i", index).expect("x", np.hstack([picked, x[:, 20:]]))
    c(f"tensor_copy dst=%x[:, 0:20] src=%x[:, 0:20]{view}").warn("ALIAS1").write()
    c = gen4("tensor_copy", "scatters_definedness", "what is scattered is defined, the rest is not")
    small = np.array([[3, 1]] * 16, U32)
    c.tile("x", f32(np.arange(16).reshape(16, 1))).tile("i", small[:, :1]).tensor("d", "float32", (16, 4))
    c("tensor_copy dst=%d[:, 0:1]+columns(%i * 1 < 4 by 16) src=%x")
    c.section("values %d", *[f"? ? ? {r}" for r in range(16)]).write()
    c = gen4("tensor_copy", "index_out_of_bounds", "an index outside the row")
    c.tile("x", x).tile("i", index + U32(21)).tensor("d", "float32", (32, 20))
    c(f"tensor_copy dst=%d src=%x[:, 0:20]{view}").fault("DYN1", "allowed are 0 to 39").write()
    c = gen4("iota", "takes_no_columns_by_index", "only some instructions take such views")
    c.tile("i", index).tensor("d", "float32", (32, 40))
    c(f"iota dst=%d[:, 0:20]{view} pattern=[[1, 20]]").fault("TI2", "iota").write()
    c = gen4("tensor_tensor", "data2_takes_no_columns_by_index", "only some operands take such views")
    c.tile("x", x).tile("i", index).tensor("d", "float32", (32, 20))
    c(f"tensor_tensor dst=%d data1=%d data2=%x[:, 0:20]{view} op=add").fault("TI2", "data2").write()
    c = gen4("tensor_copy", "index_too_short", "16 partitions of two numbers have 32 places")
    c.tile("x", x).tile("i", index).tensor("d", "float32", (32, 33))
    c("tensor_copy dst=%d src=%x[:, 0:33]+columns(%i * 1 < 40 by 16)").fault("TI3", "33").write()
    for name, engine, memory in (
        ("scalar_scatter_to_psum", "scalar", "psum"),
        ("gpsimd_columns_by_index", "gpsimd", "sbuf"),
    ):
        c = gen4("tensor_copy", name, "an engine that does not take such a view there")
        c.tile("x", x[:, :20]).tile("i", index).tensor("d", "float32", (32, 40), memory=memory)
        c(f"tensor_copy dst=%d[:, 0:20]{view} src=%x engine={engine}").fault("TI5", engine).write()
    c = isa("tensor_copy", "columns_by_index_are_later", "trn3 has them")
    c.tile("x", x).tile("i", index).tensor("d", "float32", (32, 20))
    c(f"tensor_copy dst=%d src=%x[:, 0:20]{view}").fault("TI1", "trn2").write()


def operands(rows, cols, seed):
    """Two bf16 tiles of 64 partitions and their indices, two numbers a partition."""
    g = np.random.default_rng(seed)
    s, m = (cast(g.standard_normal((64, n)).astype(F32), BF16) for n in (rows, cols))
    return s, m, *(g.integers(0, n, (64, 2)).astype(U32) for n in (rows, cols))


def picked_by_array(x, index, n):
    """32 partitions share a list where the tensor engine reads it."""
    return np.take_along_axis(x, snake(index, len(x), n, 32), 1)


def nc_matmul():
    s, m, si, mi = operands(50, 60, 1)
    c = gen4("nc_matmul", "gathers_columns", "stationary and moving by index: 32 partitions share a list")
    c.tile("s", s).tile("m", m).tile("si", si).tile("mi", mi).tensor("p", "float32", (34, 40), "psum")
    c(
        "nc_matmul dst=%p stationary=%s[:, 0:34]+columns(%si * 1 < 50 by 32) "
        "moving=%m[:, 0:40]+columns(%mi * 1 < 60 by 32)"
    )
    c.expect("p", matmul(picked_by_array(s, si, 34), picked_by_array(m, mi, 40))).write()

    for flag, title in (("false", "overwrites"), ("true", "adds"), ("none", "overwrites, then adds")):
        index = np.array([[2], [0], [2], [3]] + [[9]] * 28, U32)
        stationary, moving = s[:, :32], m[:, :4]
        c = gen4("nc_matmul", f"scatters_{flag}", f"dst by index; a place that comes again: {title}")
        before = f32(np.arange(32 * 5).reshape(32, 5))
        c.tile("s", stationary).tile("m", moving).tile("i", index).tile("p", before, "psum")
        line = "nc_matmul dst=%p[:, 0:4]+columns(%i * 1 < 5 by 32) stationary=%s moving=%m accumulate="
        product, want = matmul(stationary, moving), before.copy()
        written = np.zeros(5, bool)
        for column, at in enumerate((2, 0, 2, 3)):
            adds = flag == "true" or (flag == "none" and written[at])
            want[:, at] = (want[:, at] if adds else F32(0)) + product[:, column]
            written[at] = True
        c(line + flag)
        (c.warn("MM10") if flag == "true" else c).expect("p", want).write()

    def refused(name, title, rule, *fragments, s="bfloat16", m="bfloat16", by=32, of="stationary", more=""):
        c = gen4("nc_matmul", name, title)
        c.tensor("s", s, (32, 8)).tensor("m", m, (32, 8)).tensor("p", "float32", (8, 8), "psum")
        c.tensor("i", "uint16", (32, 1))
        views = {n: f"%{n[0]}" for n in ("stationary", "moving")}
        views[of] += f"+columns(%i * 1 < 8 by {by})"
        c(f"nc_matmul dst=%p stationary={views['stationary']} moving={views['moving']}{more}")
        c.fault(rule, *fragments).write()

    refused("index_of_the_vector_engine", "the array reads an index by 32 partitions", "TI6", "16", "32", by=16)
    refused("gathers_no_float32", "16-bit and 8-bit floats by index", "TI8", "float32", s="float32", m="float32")
    refused(
        "transpose_gathers_no_moving", "moving is the identity", "TI8", "moving", of="moving", more=" is_transpose=true"
    )
    refused(
        "gathers_in_no_tile",
        "an index does not go with tiles of the array",
        "TI8",
        "(0, 0)",
        more=" tile_position=[32, 0] tile_size=[32, 128]",
    )


def nc_matmul_mx():
    rng = np.random.default_rng(3)
    c = gen4("nc_matmul_mx", "gathers_columns", "data and scales by one index; a quadrant has a list of its own")
    operands, views = [], []
    for tile, kind, cols, n in (("s", E4, 9, 6), ("m", E5, 12, 35)):
        data, scales = random_elements(rng, kind, (64, cols)), rng.integers(120, 132, (8, cols))
        index = rng.integers(0, cols, (64, 2)).astype(U32)
        c.tensor(tile, NAMES[kind], (64, cols)).data(tile, packed(data)).tile(f"{tile}i", index)
        c.tensor(f"{tile}_scale", "uint8", (64, cols)).data(f"{tile}_scale", scattered(scales, 64, 0))
        lists = snake(index, 64, n, 32)
        rows_of_scales = np.concatenate([lists[:4], lists[32:36]])
        picked = np.take_along_axis(data, lists[:, :, None], 1), np.take_along_axis(scales, rows_of_scales, 1)
        operands.append(dequantised(*picked))
        views.append(f"{{[1, 64], [1, {n}]}}+columns(%{tile}i * 1 < {cols} by 32)")
    c.tensor("p", "float32", (6, 35), "psum")
    s, m = views
    c(f"nc_matmul_mx dst=%p stationary=%s{s} moving=%m{m} stationary_scale=%s_scale{s} moving_scale=%m_scale{m}")
    c.expect("p", matmul(*operands)).write()

    c = gen4("nc_matmul_mx", "data_alone_by_index", "data and scales are one tensor: both by one index, or neither")
    for name in "sm":
        c.tensor(name, "float8_e5m2_x4", (32, 8)).tensor(f"{name}_scale", "uint8", (32, 8))
    c.tensor("i", "uint16", (32, 1)).tensor("p", "float32", (8, 8), "psum")
    c(
        "nc_matmul_mx dst=%p stationary=%s moving=%m+columns(%i * 1 < 8 by 32) "
        "stationary_scale=%s_scale moving_scale=%m_scale"
    ).fault("TI8", "'moving'", "same index").write()


ALL = [vector_and_scalar_engines, nc_matmul, nc_matmul_mx]
