# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the vector engine: reductions, scans and statistics of rows."""

import numpy as np
from case import isa
from oracle import BF16, F32, LOWEST, alu, cast, f32, reduce_row, reduce_rows


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
    c = isa("select_reduce", "wide_predicate", "predicates are of 8 or 16 bits; what has 32 is a remark")
    c.tile("x", x).tile("p", p.astype(np.int32)).tensor("d", "float32", x.shape)
    c("select_reduce dst=%d predicate=%p on_true=%x on_false=0").warn("PRED1", "int32")
    c.expect("d", np.where(p != 0, x, F32(0))).write()
    c = isa("select_reduce", "whole_result", "the maximum goes to a float; an integer is a remark")
    c.tile("x", x).tile("p", p).tensor("d", "float32", x.shape).tensor("r", "int32", (2, 1))
    c("select_reduce dst=%d predicate=%p on_true=%x on_false=0 reduce_res=%r reduce_cmd=reset_reduce")
    c.warn("SEL2", "int32").expect("r", np.array([[3], [0]], np.int32)).write()
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


def operators_of_later_chips():
    """What no ALU of trn2 has (nki.language: "NeuronCore-v4") is a remark, wherever an operator is named."""
    x = f32([[1, -2, 3, 0.5]])
    for instruction, line, out in (
        ("tensor_reduce", "tensor_reduce dst=%r op=abs_max data=%x axis=[1]", {"r": [[3]]}),
        ("tensor_scalar_reduce", "tensor_scalar_reduce dst=%d data=%x op0=square", {"d": x * x}),
        (
            "tensor_scalar_cumulative",
            "tensor_scalar_cumulative dst=%d src=%x op0=relu op1=add reduce_cmd=reset_reduce",
            {"d": [[1, 1, 4, 4.5]]},
        ),
        (
            "tensor_tensor_scan",
            "tensor_tensor_scan dst=%d data0=%x data1=%x initial=0 op0=multiply op1=abs_max",
            {"d": [[1, -2, -6, -3]]},
        ),
    ):
        c = isa(instruction, "operator_of_later_chips", "an operator that came with trn3 is a remark before")
        c.tile("x", x).tensor("d", "float32", (1, 4)).tensor("r", "float32", (1, 1))
        c(line).warn("ALU1", "trn2")
        for name, values in out.items():
            c.expect(name, f32(values))
        c.write()


ALL = [
    operators_of_later_chips,
    tensor_reduce,
    tensor_scalar_reduce,
    tensor_scalar_cumulative,
    tensor_tensor_scan,
    select_reduce,
    range_select,
    bn_stats,
    bn_aggr,
]
