# SPDX-License-Identifier: Apache-2.0
"""Golden cases of DMA."""

import numpy as np
from case import isa
from oracle import BF16, F32, alu, cast, f32

I32, U32, U16 = np.int32, np.uint32, np.uint16


def dma_copy():
    x = np.arange(24, dtype=F32).reshape(4, 6)
    c = isa("dma_copy", "in_and_out", "HBM to SBUF and back in another shape: elements keep their order")
    c.param("x", x, " read_only").tensor("y", "float32", (3, 8), "hbm", " shared").tensor("a", "float32", (4, 6))
    c("dma_copy dst=%a src=%x")("dma_copy dst=%y src=%a")("result %y").expect("a", x).expect(
        "y", x.reshape(3, 8)
    ).write()
    c = isa("dma_copy", "converts", "types that differ are converted through fp32, rounded once")
    c.param("x", f32([[1 + 2**-8, 3.1, -70000]])).tensor("b", "bfloat16", (1, 3)).tensor("i", "int16", (1, 3))
    c("dma_copy dst=%b src=%x")("dma_copy dst=%i src=%x")
    c.expect("b", cast(f32([[1 + 2**-8, 3.1, -70000]]), BF16)).expect("i", np.array([[1, 3, -32768]], np.int16)).write()
    c = isa("dma_copy", "strides_and_steps", "every second column of every second row")
    c.param("x", x).tensor("a", "float32", (2, 3))("dma_copy dst=%a src=%x[0:4:2, 1:6:2]").expect(
        "a", x[::2, 1::2]
    ).write()
    index = np.array([[3], [0], [3]], I32)
    c = isa("dma_copy", "gathers_rows", "rows found by an offset tensor, the same one twice")
    c.param("x", x).tile("i", index).tensor("a", "float32", (3, 6))(
        "dma_copy dst=%a src=%x{[6, 3], [1, 6]}+rows(%i * 6 < 4)"
    )
    c.expect("a", x[index.ravel()]).write()
    c = isa("dma_copy", "scatters_rows", "rows written where an offset tensor says; the others keep their values")
    c.param("y", np.zeros((4, 2), F32)).tile("i", np.array([[2], [0]], I32)).tile("a", f32([[1, 2], [3, 4]]))
    c("dma_copy dst=%y{[2, 2], [1, 2]}+rows(%i * 2 < 4) src=%a").expect(
        "y", f32([[3, 4], [0, 0], [1, 2], [0, 0]])
    ).write()
    outside = np.array([[3], [4], [-1]], I32)
    c = isa(
        "dma_copy",
        "skips_rows_outside",
        "oob_mode skip leaves rows alone whose index is outside: their bits and their definedness",
    )
    c.param("x", x).tile("i", outside).tensor("a", "float32", (3, 6))("memset dst=%a[1:2, 0:6] value=7")
    c("dma_copy dst=%a src=%x{[6, 3], [1, 6]}+rows(%i * 6 < 4) oob_mode=skip").expect(
        "a", "18 19 20 21 22 23\n7*6\n?*6"
    ).write()
    c = isa("dma_copy", "row_outside", "an index outside is a fault without skip")
    c.param("x", x).tile("i", outside).tensor("a", "float32", (3, 6))
    c("dma_copy dst=%a src=%x{[6, 3], [1, 6]}+rows(%i * 6 < 4)").fault("DMA4", "row 1", "0 to 3").write()
    c = isa("dma_copy", "register_offset", "a register moves the view: row 2", registers=1)
    c.param("x", x).tensor("a", "float32", (1, 6))("register_move dst=$0 value=2")(
        "dma_copy dst=%a src=%x[0:1, 0:6]+($0 * 6 < 4)"
    )
    c.expect("a", x[2:3]).section("path 12").write()
    c = isa("dma_copy", "register_offset_outside", "a dynamic offset outside its limit stops the run", registers=1)
    c.param("x", x).tensor("a", "float32", (1, 6))("register_move dst=$0 value=4")
    c("dma_copy dst=%a src=%x[0:1, 0:6]+($0 * 6 < 4)").fault("DYN1", "is 4", "0 to 3").write()
    c = isa(
        "dma_copy",
        "window_outside_is_skipped",
        "oob_mode skip: a view that would leave its tensor moves nothing",
        registers=1,
    )
    c.param("x", x).tile("a", -x[:2])("register_move dst=$0 value=3")(
        "dma_copy dst=%a src=%x[0:2, 0:6]+($0 * 6 < 4) oob_mode=skip"
    ).expect("a", -x[:2]).section("path 18").write()
    c = isa("dma_copy", "tensor_offset", "a tensor of one element moves the view")
    c.param("x", x).tile("i", np.array([[3]], I32)).tensor("a", "float32", (1, 6))(
        "dma_copy dst=%a src=%x[0:1, 0:6]+(%i * 6 < 4)"
    ).expect("a", x[3:]).write()
    c = isa("dma_copy", "psum", "a DMA does not reach PSUM")
    c.param("x", x).tensor("a", "float32", (4, 6), "psum")("dma_copy dst=%a src=%x").fault("DMA1", "PSUM").write()
    c = isa("dma_copy", "counts_differ", "both sides have as many elements")
    c.param("x", x).tensor("a", "float32", (4, 5))("dma_copy dst=%a src=%x").fault("DMA2", "20 elements", "24").write()
    c = isa("dma_copy", "read_only_parameter", "a read-only argument is not written")
    c.param("x", x, " read_only").tile("a", x)("dma_copy dst=%x src=%a").fault("ARG1", "read-only").expect(
        "x", x
    ).write()
    c = isa("dma_copy", "hardware_does_not_convert", "hardware descriptor generation needs equal types")
    c.param("x", x).tensor("a", "bfloat16", (4, 6))("dma_copy dst=%a src=%x dge_mode=hwdge").fault("DMA3").write()


def dma_transpose():
    x = np.arange(12, dtype=F32).reshape(3, 4)
    c = isa("dma_transpose", "two_dimensions", "dst = src^T")
    c.param("x", x).tensor("a", "float32", (4, 3))("dma_transpose dst=%a src=%x").expect("a", x.T).write()
    y = np.arange(24, dtype=F32).reshape(2, 3, 4).astype(BF16)
    c = isa("dma_transpose", "three_dimensions", "axes (2, 1, 0)")
    c.param("x", y).tensor("a", "bfloat16", (4, 3, 2))("dma_transpose dst=%a src=%x axes=[2, 1, 0]").expect(
        "a", y.transpose(2, 1, 0)
    ).write()
    z = np.arange(48, dtype=I32).reshape(2, 3, 2, 4)
    c = isa("dma_transpose", "four_dimensions", "axes (3, 1, 2, 0)")
    c.param("x", z).tensor("a", "int32", (4, 3, 2, 2))("dma_transpose dst=%a src=%x axes=[3, 1, 2, 0]").expect(
        "a", z.transpose(3, 1, 2, 0)
    ).write()
    c = isa("dma_transpose", "converts_nothing", "types must be equal")
    c.param("x", x).tensor("a", "bfloat16", (4, 3))("dma_transpose dst=%a src=%x").fault("DT4").write()
    c = isa("dma_transpose", "other_axes", "other axes are refused")
    c.param("x", y).tensor("a", "bfloat16", (3, 2, 4))("dma_transpose dst=%a src=%x axes=[1, 0, 2]").fault(
        "DT1"
    ).write()
    c = isa("dma_transpose", "hardware_takes_16_rows", "hardware descriptors: 16 rows of a tile of rank 2")
    c.param("x", np.zeros((8, 4), BF16)).tensor("a", "bfloat16", (4, 8))(
        "dma_transpose dst=%a src=%x dge_mode=hwdge"
    ).fault("DT5", "16 rows", "[8, 4]").write()
    c = isa("dma_transpose", "into_hbm", "dst is in SBUF")
    c.param("x", x).tensor("a", "float32", (4, 3), "hbm")("dma_transpose dst=%a src=%x").fault("DT2").write()


def dma_compute():
    a, b, d = f32([[1, 2], [0.1, 1e8]]), f32([[10, 20], [0.2, 1]]), f32([[100, 200], [0.3, -1e8]])
    c = isa(
        "dma_compute",
        "adds_in_order",
        "sources are added in fp32 in their order, converted once",
        "(1e8 + 1) - 1e8 is 0 in fp32",
    )
    c.param("a", a).param("b", b).param("c", d).tensor("d", "float32", (2, 2))(
        "dma_compute dst=%d src0=%a src1=%b src2=%c"
    )
    c.expect("d", alu("add", alu("add", a, b), d)).write()
    c = isa("dma_compute", "scatter_add", "read-modify-write: rows found by an offset tensor grow by a tile")
    c.param("y", f32([[1, 1], [2, 2], [3, 3]])).tile("i", np.array([[2], [0]], I32)).tile(
        "a", f32([[10, 20], [30, 40]])
    )
    c("dma_compute dst=%y{[2, 2], [1, 2]}+rows(%i * 2 < 3) src0=%y{[2, 2], [1, 2]}+rows(%i * 2 < 3) src1=%a")
    c.expect("y", f32([[31, 41], [2, 2], [13, 23]])).write()
    c = isa("dma_compute", "bfloat16_result", "the sum is rounded once to dst's type")
    c.param("a", f32([[1, 256]])).param("b", f32([[2**-9, 1]])).tensor("d", "bfloat16", (1, 2))(
        "dma_compute dst=%d src0=%a src1=%b"
    )
    c.expect("d", cast(f32([[1 + 2**-9, 257]]), BF16)).write()
    c = isa("dma_compute", "multiply", "a DMA adds only")
    c.param("a", a).tensor("d", "float32", (2, 2))("dma_compute dst=%d src0=%a src1=%a reduce_op=multiply").fault(
        "DC1", "multiply"
    ).write()
    c = isa("dma_compute", "scatter_of_two_tiles", "with an offset tensor one source is where dst is")
    c.param("y", f32([[1, 1], [2, 2], [3, 3]])).tile("i", np.array([[2], [0]], I32)).tile("a", a)
    c("dma_compute dst=%y{[2, 2], [1, 2]}+rows(%i * 2 < 3) src0=%a src1=%a").fault("DC6").write()
    c = isa("dma_compute", "dynamic_start", "addresses are known when the kernel is compiled", registers=1)
    c.param("a", a).tensor("d", "float32", (1, 2))("register_move dst=$0 value=1")(
        "dma_compute dst=%d src0=%a[0:1, 0:2]+($0 * 2 < 2) src1=%a[0:1, 0:2]"
    ).fault("DC5").write()
    c = isa("dma_compute", "counts_differ", "every source has dst's element count")
    c.param("a", a).tensor("d", "float32", (2, 3))("dma_compute dst=%d src0=%a src1=%a").fault("DMA2").write()


ALL = [dma_copy, dma_transpose, dma_compute]
