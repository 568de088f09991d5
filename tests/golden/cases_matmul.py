# SPDX-License-Identifier: Apache-2.0
"""Golden cases of sparse matmuls, and of nc_matmul's formats, tiles and modes."""

import ml_dtypes
import numpy as np
from case import isa
from oracle import BF16, F32, alu, cast, f32, matmul

E4, E5, FP4 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn


def sparse(kept, of, k, rows, cols, seed):
    """Operands of a sparse product, and the product: places ascending, absent ones left out."""
    rng = np.random.default_rng(seed)
    c = of // kept
    s, m = (
        cast(rng.standard_normal((k, rows)).astype(F32), BF16),
        cast(rng.standard_normal((k, c, cols)).astype(F32), BF16),
    )
    tags = np.zeros((k, rows), np.int64)
    for g in range(k // kept):
        for i in range(rows):
            tags[g * kept : (g + 1) * kept, i] = rng.permutation(of)[:kept]
    places = m.reshape(k * c, cols)
    out = np.zeros((rows, cols), F32)
    for i in range(rows):
        index = np.arange(k) // kept * of + tags[:, i]
        order = np.argsort(index)
        out[i : i + 1] = matmul(s[order, i : i + 1], places[index[order]])
    words = np.zeros((k, (rows + 3) // 4), np.uint16)
    for i in range(rows):
        words[:, i // 4] |= (tags[:, i] << (4 * (i % 4))).astype(np.uint16)
    return s, m, words, out


def nc_matmul_sparse():
    for name, kept, of in (
        ("four_of_sixteen", 4, 16),
        ("four_of_eight", 4, 8),
        ("one_of_two", 1, 2),
        ("four_of_twelve", 4, 12),
    ):
        s, m, tags, out = sparse(kept, of, 8, 5, 3, of)
        c = isa(
            "nc_matmul_sparse",
            name,
            f"{kept} of every {of} contraction places are kept",
            "layout and order: Sterna's own",
        )
        c.tile("s", s).tile("m", m).tile("t", tags).tensor("p", "float32", out.shape, "psum")
        more = "" if (kept, of) == (4, 16) else f" pattern=[{kept}, {of}]"
        c(f"nc_matmul_sparse dst=%p stationary=%s moving=%m tags=%t{more}").expect("p", out).write()
    s, m, tags, out = sparse(2, 4, 4, 2, 2, 9)
    m[...] = 1
    c = isa("nc_matmul_sparse", "accumulates", "a second product adds once; what is not kept is not multiplied")
    c.tile("s", s).tile("m", m).tile("t", tags).tensor("p", "float32", out.shape, "psum")
    line = "nc_matmul_sparse dst=%p stationary=%s moving=%m tags=%t pattern=[2, 4]"
    once = np.zeros((2, 2), F32)
    for i in range(2):
        index = np.arange(4) // 2 * 4 + (tags[:, 0] >> (4 * i) & 15)
        order = np.argsort(index)
        once[i] = matmul(s[order, i : i + 1], np.ones((4, 1), F32))[0, 0]
    c(line)(line).expect("p", alu("add", once, once)).write()
    c = isa("nc_matmul_sparse", "absent_infinity", "an infinity at a place that is not kept does not count")
    c.tile("s", cast(f32([[2.0]]), BF16)).tile("m", cast(f32([[[3.0], [np.inf]]]), BF16)).tile(
        "t", np.array([[0]], np.uint16)
    )
    c.tensor("p", "float32", (1, 1), "psum")(
        "nc_matmul_sparse dst=%p stationary=%s moving=%m tags=%t pattern=[1, 2]"
    ).expect("p", "6").write()
    c = isa("nc_matmul_sparse", "tag_outside", "a tag names a place of its group")
    c.tile("s", cast(f32([[2.0]]), BF16)).tile("m", cast(f32([[[3.0], [1.0]]]), BF16)).tile(
        "t", np.array([[2]], np.uint16)
    )
    c.tensor("p", "float32", (1, 1), "psum")(
        "nc_matmul_sparse dst=%p stationary=%s moving=%m tags=%t pattern=[1, 2]"
    ).fault("SP5", "2 places").write()
    c = isa("nc_matmul_sparse", "same_place_twice", "tags of one group and column differ")
    c.tile("s", cast(f32([[2.0], [1.0]]), BF16)).tile("m", cast(f32([[[1], [2]], [[3], [4]]]), BF16)).tile(
        "t", np.array([[3], [3]], np.uint16)
    )
    c.tensor("p", "float32", (1, 1), "psum")(
        "nc_matmul_sparse dst=%p stationary=%s moving=%m tags=%t pattern=[2, 4]"
    ).fault("SP5", "same place").write()
    c = isa("nc_matmul_sparse", "unknown_pattern", "seven patterns")
    c.tensor("s", "bfloat16", (4, 2)).tensor("m", "bfloat16", (4, 2, 2)).tensor("t", "uint16", (4, 1)).tensor(
        "p", "float32", (2, 2), "psum"
    )
    c("nc_matmul_sparse dst=%p stationary=%s moving=%m tags=%t pattern=[3, 6]").fault("SP2", "4:16").write()
    c = isa("nc_matmul_sparse", "not_on_trn1", "trn1 has no sparse matmul", target="trn1")
    c.tensor("s", "bfloat16", (4, 2)).tensor("m", "bfloat16", (4, 4, 2)).tensor("t", "uint16", (4, 1)).tensor(
        "p", "float32", (2, 2), "psum"
    )
    c("nc_matmul_sparse dst=%p stationary=%s moving=%m tags=%t").fault("ISA1", "trn1").write()


def matmul_modes():
    """Rules of nc_matmul that depend on formats, tiles and the chip."""
    bf = BF16
    s, m = cast(f32([[1, 2], [3, 4]]), bf), cast(f32([[1, 0.5, -1], [2, 3, 0.0078125]]), bf)
    product = matmul(s, m)
    c = isa(
        "nc_matmul",
        "bfloat16_result",
        "PSUM holds bfloat16: added in fp32, rounded to nearest even each time",
        target="trn3",
    )
    c.tile("s", s).tile("m", m).tensor("p", "bfloat16", product.shape, "psum")(
        "nc_matmul dst=%p stationary=%s moving=%m"
    )("nc_matmul dst=%p stationary=%s moving=%m")
    once = cast(product, bf)
    c.expect("p", cast(alu("add", once.astype(F32), product), bf)).write()
    e4, e5 = cast(f32([[1, 2], [3, 448]]), E4), cast(f32([[1, 0.5, 57344], [2, 3, 1]]), E5)
    c = isa("nc_matmul", "float8_formats_mix", "OCP float8_e4m3fn against float8_e5m2", target="trn3")
    c.tile("s", e4).tile("m", e5).tensor("p", "float32", (2, 3), "psum")(
        "nc_matmul dst=%p stationary=%s moving=%m"
    ).expect("p", matmul(e4, e5)).write()

    def refused(
        name,
        title,
        rule,
        *fragments,
        s=("bfloat16", (32, 2)),
        m=("bfloat16", (32, 3)),
        p=("float32", (2, 3)),
        more="",
        target="trn3",
        warns=False,
    ):
        c = isa("nc_matmul", name, title, target=target)
        c.tensor("s", *s).tensor("m", *m).tensor("p", *p, "psum")(f"nc_matmul dst=%p stationary=%s moving=%m{more}")
        c.fault(rule, *fragments).write()

    refused(
        "two_kinds_of_e4m3",
        "the legacy float8_e4m3 and OCP's do not mix",
        "MM7",
        "mixed",
        s=("float8_e4m3", (32, 2)),
        m=("float8_e4m3fn", (32, 3)),
    )
    refused("scales_are_no_operand", "float8_e8m0fnu is for scales", "MM7", "e8m0", s=("float8_e8m0fnu", (32, 2)))
    refused("packed_operand", "x4 elements are for nc_matmul_mx", "MM7", "nc_matmul_mx", s=("float8_e5m2_x4", (32, 2)))
    refused(
        "double_row_e3m4",
        "double_row takes e4m3 and e5m2",
        "MM8",
        "e3m4",
        s=("float8_e3m4", (32, 2, 2)),
        m=("float8_e5m2", (32, 2, 3)),
        more=" perf_mode=double_row",
    )
    refused(
        "double_row_on_trn1",
        "trn1 has no double_row",
        "MM8",
        "chip",
        s=("float8_e5m2", (32, 2, 2)),
        m=("float8_e5m2", (32, 2, 3)),
        more=" perf_mode=double_row",
        target="trn1",
    )
    refused(
        "double_row_column_tile",
        "double_row does not go with column tiles",
        "MM8",
        "column",
        s=("float8_e5m2", (32, 2, 2)),
        m=("float8_e5m2", (32, 2, 3)),
        more=" perf_mode=double_row tile_position=[0, 0] tile_size=[32, 32]",
    )
    refused(
        "wide_moving_trn3",
        "4096 columns for float32 results",
        "MM5",
        "4096",
        m=("bfloat16", (32, 4097)),
        p=("float32", (2, 4097)),
    )
    refused(
        "wide_moving_bfloat16",
        "8192 columns for bfloat16 results",
        "MM5",
        "8192",
        m=("bfloat16", (32, 8193)),
        p=("bfloat16", (2, 8193)),
    )
    refused(
        "tile_position_alone", "position and size are given together", "TILE1", "together", more=" tile_position=[0, 0]"
    )
    refused("tile_of_48", "tiles are 32, 64 or 128", "TILE2", "48", more=" tile_position=[0, 0] tile_size=[48, 128]")
    refused(
        "tile_of_32_on_trn1",
        "trn1 halves the array once",
        "TILE2",
        "64",
        more=" tile_position=[0, 0] tile_size=[32, 128]",
        target="trn1",
    )
    refused(
        "tile_off_grid",
        "a tile starts at a multiple of its size",
        "TILE3",
        "32",
        more=" tile_position=[32, 0] tile_size=[64, 128]",
    )
    refused(
        "tile_too_narrow",
        "stationary fits the tile",
        "TILE4",
        "64",
        s=("bfloat16", (32, 64)),
        p=("float32", (64, 3)),
        more=" tile_position=[0, 32] tile_size=[32, 32]",
    )
    c = isa("nc_matmul", "row_and_column_tile", "a tile of the array computes what the whole array does")
    c.tile("s", s).tile("m", m).tensor("p", "float32", product.shape, "psum")(
        "nc_matmul dst=%p stationary=%s moving=%m tile_position=[96, 64] tile_size=[32, 32]"
    ).expect("p", product).write()
    halves = isa(
        "nc_matmul",
        "double_row_flat",
        "double_row operands without their dimension of 2 are taken as halves, with a remark",
    )
    d = cast(f32([[1, 2, 3, 4]]), E5), cast(f32([[1, 0.5, 2, 1]]), E5)
    halves.tile("s", d[0]).tile("m", d[1]).tensor("p", "float32", (2, 2), "psum")(
        "nc_matmul dst=%p stationary=%s moving=%m perf_mode=double_row"
    )
    halves.warn("MM8", "halves").expect("p", matmul(d[0].reshape(2, 2), d[1].reshape(2, 2))).write()


ALL = [nc_matmul_sparse, matmul_modes]
