# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the vector engine: the eight largest, where they are, and replacing them."""

import numpy as np
from case import isa
from oracle import F32, f32

INF = np.inf


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


ALL = [max8, nc_find_index8, nc_match_replace8]
