# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the records that steer a run."""

import numpy as np
from case import isa
from oracle import BF16, F32, cast, f32

I32, U32, U16 = np.int32, np.uint32, np.uint16


def registers():
    c = isa("register_move", "immediate_and_copy", "a number, and another register", registers=2)
    c("register_move dst=$0 value=-7")("register_move dst=$1 src=$0")("register_move dst=$0 value=2147483647").section(
        "registers 2147483647 -7"
    ).write()
    c = isa("register_move", "never_written", "a register that nobody wrote holds whatever was there", registers=2)
    c("register_move dst=$0 src=$1").fault("UNINIT2", "$1").write()
    c = isa("register_move", "no_register", "the destination must be there", registers=1)
    c("register_move value=1").fault("REG2", "dst").write()
    c = isa("register_load", "from_hbm_and_sbuf", "one element of HBM or SBUF", registers=2)
    c.param("x", np.array([[5, -6]], I32)).tile("f", f32([[41.6]]))("register_load dst=$0 src=%x[0:1, 1:2]")(
        "register_load dst=$1 src=%f"
    ).warn("REG4", "becomes 42").section("registers -6 42").write()
    c = isa("register_load", "negative_numbers", "whole numbers of 32 bits, signed or not", registers=4)
    c.tile("f", f32([[-2]])).tile("b", cast(f32([[-7]]), BF16)).tile("u", np.array([[2**32 - 1]], np.uint32)).tile(
        "c", np.array([[-3]], np.int8)
    )
    for number, name in enumerate("fbuc"):
        c(f"register_load dst=${number} src=%{name}")
    c.section("registers -2 -7 -1 -3").write()
    c = isa("register_load", "no_number_of_32_bits", "what a register cannot hold", registers=1)
    c.tile("f", f32([[6e9]]))("register_load dst=$0 src=%f").fault("REG4", "32 bits").write()
    c = isa("register_load", "from_psum", "a register is loaded from HBM or SBUF", registers=1)
    c.tile("p", f32([[1]]), "psum")("register_load dst=$0 src=%p").fault("REG5", "PSUM").write()
    c = isa(
        "register_load",
        "undefined",
        "an undefined element never reaches a register, whatever the switch says",
        registers=1,
    )
    c.tensor("x", "int32", (1, 1))("register_load dst=$0 src=%x").fault("UNINIT1").section(
        "options uninit=fill"
    ).write()
    c = isa("register_load", "two_elements", "a register holds one element", registers=1)
    c.tensor("x", "int32", (1, 2))("register_load dst=$0 src=%x").fault("REG1", "2").write()
    c = isa("register_store", "integers_and_floats", "integers exactly, floats rounded once", registers=1)
    c.tensor("i", "int32", (1, 1)).tensor("f", "float32", (1, 1)).tensor("y", "int32", (2,), "hbm")(
        "register_move dst=$0 value=16777217"
    )
    c("register_store dst=%i src=$0")("register_store dst=%f src=$0")("register_store dst=%y[1] src=$0")
    c.expect("i", "16777217").expect("f", "16777216").expect("y", "? 16777217").write()
    c = isa("register_store", "two_elements", "a register fills one element", registers=1)
    c.tensor("x", "int32", (2, 1))("register_store dst=%x src=$0").fault("REG1").write()
    c = isa("register_store", "no_register", "the source must be there", registers=1)
    c.tensor("x", "int32", (1, 1))("register_store dst=%x").fault("REG2", "src").write()


def regions():
    c = isa(
        "loop",
        "counts_and_moves",
        "the region runs for 0, 2, 4; the register moves a view; the Path holds bounds and places",
        registers=1,
    )
    c.param("x", np.arange(6, dtype=F32).reshape(6, 1)).tensor("a", "float32", (1, 1)).param("y", np.zeros((6, 1), F32))
    c("loop reg=$0 high=6 step=2")("  dma_copy dst=%a src=%x[0:1, 0:1]+($0 * 1 < 6)")(
        "  tensor_scalar dst=%a data=%a op0=add operand0=10"
    )
    c("  dma_copy dst=%y[0:1, 0:1]+($0 * 1 < 6) src=%a")("end")
    c.expect("y", f32([[10], [0], [12], [0], [14], [0]])).section("path 0 6 2 0 0 2 2 4 4").section(
        "registers 4"
    ).write()
    c = isa(
        "loop",
        "bounds_from_registers",
        "bounds may be registers; a loop that does not run leaves its register alone",
        registers=4,
    )
    c("register_move dst=$1 value=3")("register_move dst=$2 value=5").tensor("x", "int32", (1, 8))(
        "memset dst=%x value=0"
    )
    c("loop reg=$0 low_reg=$1 high_reg=$2")("  register_store dst=%x[0:1, 0:1]+($0 * 1 < 8) src=$0")("end")
    c("register_move dst=$3 value=7")("loop reg=$3 low=5 high=5")("  memset dst=%x value=9")("end").expect(
        "x", "0 0 0 3 4 0 0 0"
    ).section("registers 4 3 5 7").write()
    c = isa("loop", "nested", "regions nest", registers=2)
    c.tile("x", f32([[0]]))("loop reg=$0 high=3")("  loop reg=$1 high=4")(
        "    tensor_scalar dst=%x data=%x op0=add operand0=1"
    )("  end")("end").expect("x", "12").write()
    c = isa("loop", "backwards", "a step is positive", registers=1)
    c("loop reg=$0 low=3 high=0 step=-1").fault("LOOP1", "-1").write()
    c = isa("loop", "left_open", "a region is closed", registers=1)
    c("loop reg=$0 high=3").fault("REGION2").write()
    c = isa(
        "loop", "allocates_each_time", "a tile allocated in the region is new, and undefined, each time", registers=1
    )
    c.tensor("d", "float32", (1, 1))("loop reg=$0 high=2")("  tensor %a sbuf float32 [1, 1]")(
        "  if reg=$0"
    ).body.append("    tensor_scalar dst=%d data=%a op0=add operand0=1")
    c.fault("UNINIT1", "'data'")("  end")("  memset dst=%a value=1")("end").write()
    c = isa("while", "until_zero", "the region runs as long as the register is not zero", registers=1)
    c.tile("x", np.array([[3]], I32))("register_load dst=$0 src=%x").tensor("n", "float32", (1, 1))(
        "memset dst=%n value=0"
    )
    c("while reg=$0")("  tensor_scalar dst=%x data=%x op0=subtract operand0=1")(
        "  tensor_scalar dst=%n data=%n op0=add operand0=1"
    )("  register_load dst=$0 src=%x")("end")
    c.expect("n", "3").expect("x", "0").section("path 1 1 1 0").write()
    c = isa("while", "not_at_all", "a register that is zero at the start", registers=1)
    c.tensor("x", "float32", (1, 1))("register_move dst=$0")("while reg=$0")("  memset dst=%x value=1")("end").expect(
        "x", "?"
    ).section("path 0").write()
    c = isa("while", "no_register", "the condition must be there", registers=1)
    c("while").fault("REG2").write()
    c = isa("if", "taken_and_not", "the region runs if the register is not zero", registers=2)
    c("register_move dst=$0 value=-1")("register_move dst=$1").tensor("x", "float32", (1, 2))("if reg=$0")(
        "  memset dst=%x[0:1, 0:1] value=1"
    )("end")
    c("if reg=$1")("  memset dst=%x[0:1, 1:2] value=1")("end").expect("x", "1 ?").section("path 1 0").write()
    c = isa("if", "inside_a_loop", "only the second time round", registers=2)
    c.tensor("x", "int32", (1, 1))("loop reg=$0 low=0 high=2")("  if reg=$0")("    register_store dst=%x src=$0")(
        "  end"
    )("end").expect("x", "1").section("path 0 2 1 0 1").write()
    c = isa("if", "no_register", "the condition must be there", registers=1)
    c("if").fault("REG2").write()
    c = isa(
        "end",
        "closes_the_innermost",
        "end closes the innermost region: the last line belongs to the outer one",
        registers=2,
    )
    c.tile("x", f32([[0]]))("register_move dst=$0 value=1")("register_move dst=$1")("if reg=$0")("  if reg=$1")(
        "    tensor_scalar dst=%x data=%x op0=add operand0=100"
    )("  end")
    c("  tensor_scalar dst=%x data=%x op0=add operand0=1")("end").expect("x", "1").write()
    c = isa("end", "empty_region", "a region may be empty", registers=1)
    c("loop reg=$0 high=3")("end").section("path 0 3 1").section("registers 2").write()
    c = isa("end", "without_a_region", "an end needs a region")
    c("end").fault("REGION1").write()


def alloc():
    c = isa("alloc", "starts_undefined", "a new tensor holds nothing")
    c.tensor("x", "float32", (1, 3)).tensor("h", "float32", (2,), "hbm").expect("x", "? ? ?").expect("h", "? ?").write()
    c = isa("alloc", "again", "allocating again makes everything undefined")
    c.tensor("x", "float32", (1, 2))("memset dst=%x value=1")("alloc tensor=%x").expect("x", "? ?").write()
    c = isa(
        "alloc",
        "shared_address",
        "tensors at one address share their bytes: the second allocation makes them undefined, the write is seen through both",
    )
    c.tensor("a", "float32", (2, 4), more=" at (0, 64)")("memset dst=%a value=1").tensor(
        "b", "float32", (2, 2), more=" at (0, 64)"
    )
    c("memset dst=%b[0:2, 0:1] value=2").expect("a", "2 ? 1 1\n2 ? 1 1").expect("b", "2 ?\n2 ?").write()
    c = isa("alloc", "parameter", "a parameter has its storage from the caller")
    c.param("x", f32([[1]]))("alloc tensor=%x").fault("TEN4").write()
    c = isa("alloc", "too_many_partitions", "at most 128 partitions")
    c.tensor("x", "float32", (129, 1)).fault("TEN2", "129").write()
    c = isa("alloc", "psum_address", "a PSUM address is a bank's")
    c.tensor("x", "float32", (1, 4), "psum", " at (0, 100)").fault("TEN3").write()
    c = isa("alloc", "outside_sbuf", "an address beyond the memory stops the run")
    c.tensor("x", "float32", (2, 4), more=" at (127, 0)").fault("ADDR1", "128 partitions").write()


def device_print():
    c = isa("device_print", "values", "prints what the tensor holds when the program comes there")
    c.tile("x", f32([[1, -0.5], [3, np.inf]]))('device_print src=%x prefix="x: "')
    c.section("printed", "x: float32[2, 2]", "  [1, -0.5]", "  [3, inf]").write()
    c = isa("device_print", "in_a_loop", "once each time round", registers=1)
    c.tensor("x", "int32", (1, 1))("loop reg=$0 high=2")("  register_store dst=%x src=$0")("  device_print src=%x")(
        "end"
    )
    c.section("printed", "int32[1, 1]", "  [0]", "int32[1, 1]", "  [1]").write()
    c = isa("device_print", "nothing", "there must be something to print")
    c("device_print").fault("ARG2").write()


ALL = [registers, regions, alloc, device_print]
