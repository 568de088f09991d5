# SPDX-License-Identifier: Apache-2.0
"""Loops, registers, and looking at values while a kernel runs."""

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import BadInput, RuleError, SternaWarning, _core

F32 = np.float32
EAGER = pytest.mark.parametrize("eager", ["0", "1"])


@pytest.fixture
def mode(monkeypatch, eager):
    monkeypatch.setenv("STERNA_EAGER", eager)


@pytest.mark.parametrize("name", ["affine_range", "static_range", "sequential_range", "range"])
def test_ranges_are_pythons(name):
    made = getattr(nl, name)
    assert list(made(4)) == [0, 1, 2, 3] and list(made(2, 9, 3)) == [2, 5, 8]
    assert all(type(i) is int for i in made(3))


@pytest.mark.parametrize("name", ["affine_range", "static_range", "sequential_range"])
def test_ranges_take_keywords(name):
    """The stub's signature: (start, stop=None, step=1)."""
    made = getattr(nl, name)
    assert list(made(0, 6, step=2)) == [0, 2, 4] and list(made(start=3)) == [0, 1, 2]
    assert list(made(start=1, stop=8, step=3)) == [1, 4, 7] and list(made(5, step=2)) == [0, 2, 4]
    assert list(made(np.int64(2))) == [0, 1] and len(made(2)) == 2


def test_axes_of_the_grid(apply):
    """kernel[n] has one axis; another one does not exist. num_programs without axes is that of the entire grid."""

    def ask(t):
        assert nl.num_programs() == nl.num_programs(axes=0) == nl.num_programs((0,)) == nl.num_programs(None) == 1
        assert nl.program_id() == nl.program_id(axis=0) == nl.program_id(np.int64(0)) == 0
        for ask_for, wrong in [(nl.program_id, w) for w in (1, 5, -1, "x", None)] + [
            (nl.num_programs, w) for w in (1, -1, "x", (0, 1))
        ]:
            with pytest.raises(IndexError, match="LNC9.*axis 0.*test_control.py"):
                ask_for(wrong)
        return t

    apply(ask, np.zeros((2, 2), F32))


def test_program_is_one_core(apply):
    def ask(t):
        assert (nl.program_id(0), nl.num_programs(0), nl.num_programs(), nl.program_ndim()) == (0, 1, 1, 0)
        with nl.no_reorder():
            nisa.memset(t, 5.0)
        return t

    np.testing.assert_array_equal(apply(ask, np.zeros((2, 2), F32)), np.full((2, 2), 5, F32))


def count_up(body):
    """A kernel: x plus what `body(t, one)` adds to it."""

    @nki.jit
    def kernel(x, start):
        t = nl.load(x)
        body(t, start)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, t)
        return out

    return kernel


def add(t, value):
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=value)


X = np.arange(8, dtype=F32).reshape(2, 4)
START = np.array([[3]], np.int32)


@EAGER
def test_dynamic_range(mode):
    def body(t, start):
        for _ in nl.dynamic_range(5):
            add(t, 1.0)
        for _ in nl.dynamic_range(1, 10, 4):
            add(t, 10.0)
        stop = nisa.register_alloc(start)
        for _ in nl.dynamic_range(stop):
            add(t, 100.0)
        for _ in nl.dynamic_range(stop, 3):
            add(t, 1000.0)
        for i in nl.dynamic_range(2):
            for _ in nl.dynamic_range(i):
                add(t, 10000.0)

    # 5 turns of 1, then i = 1, 5, 9, then 3 turns, none, then 0 + 1.
    np.testing.assert_array_equal(count_up(body)(X, START), X + F32(5 + 30 + 300 + 10000))


@EAGER
def test_the_register_of_a_loop_indexes(mode):
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for i in nl.dynamic_range(0, 6, 2):
            assert isinstance(i, nisa.VirtualRegister)
            nl.store(out[i], nl.load(x[i]))
            nl.store(out[nl.ds(i, 2)][1:2], nl.load(x[i]))
        return out

    x = np.arange(24, dtype=F32).reshape(6, 4)
    np.testing.assert_array_equal(kernel(x), x[[0, 0, 2, 2, 4, 4]])


@EAGER
def test_fori_loop_and_while_loop(mode):
    def body(t, start):
        nl.fori_loop(0, 4, lambda i: add(t, 1.0))
        nl.fori_loop(0, nisa.register_alloc(start), lambda i: add(t, 10.0), step=2)
        left = nl.ndarray((1, 1), nl.int32)
        nisa.dma_copy(left, start)

        def turn(condition):
            add(t, 100.0)
            add(left, -1)
            after = nisa.register_alloc()
            nisa.register_load(after, left)
            return after

        nl.while_loop(nisa.register_alloc(start), turn)
        nl.while_loop(0, lambda condition: add(t, 1e6))

    np.testing.assert_array_equal(count_up(body)(X, START), X + F32(4 + 20 + 300))


UNWRITTEN = {
    "bound": lambda r, t: nl.fori_loop(0, r, lambda i: add(t, 1.0)),
    "condition": lambda r, t: nl.while_loop(r, lambda c: c),
    "value": lambda r, t: nisa.register_move(nisa.register_alloc(), r),
    "store": lambda r, t: nisa.register_store(nl.ndarray((1, 1), nl.int32), r),
    "offset": lambda r, t: nisa.tensor_copy(t[:, 0:1], t.ap([[4, 2], [1, 1]], 0, scalar_offset=r, indirect_dim=1)),
    "python": lambda r, t: int(r),
}


@EAGER
@pytest.mark.parametrize("use", UNWRITTEN)
def test_a_register_is_written_before_it_is_read(use, mode, monkeypatch):
    """register_alloc: "optionally initialize it"; without that it holds whatever was there."""

    @nki.jit
    def kernel(x):
        t = nl.load(x)
        UNWRITTEN[use](nisa.register_alloc(), t)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, t)
        return out

    with pytest.raises(RuleError, match=r"UNINIT2.*\$0.*register_move.*test_control.py"):
        kernel(X)
    for policy in ("warn", "zero"):
        monkeypatch.setenv("STERNA_UNINIT", policy)
        with pytest.warns(SternaWarning, match="UNINIT2") as remarks:
            kernel(X)
        assert (remarks[0].filename, remarks[0].lineno) == (__file__, UNWRITTEN[use].__code__.co_firstlineno)


@EAGER
def test_writing_the_counter_of_fori_loop_has_no_effect_on_the_loop(mode):
    """The stub: "passed by value ... writing to `i` has no effect on the loop"; within its turn `i` is a register."""

    @nki.jit
    def kernel(x):
        out = nl.ndarray((4, 2), nl.int32, buffer=nl.shared_hbm)
        rows = nl.ndarray((4, 4), nl.int32)
        nisa.dma_copy(rows, x)

        def body(i):
            place = out.ap([[2, 1], [1, 1]], scalar_offset=i, indirect_dim=0)
            nisa.register_store(place, i)
            again = nisa.register_alloc()
            nisa.register_move(again, i)
            nisa.register_move(i, 90)
            nisa.register_store(out.ap([[2, 1], [1, 1]], 1, scalar_offset=again, indirect_dim=0), i)
            nisa.register_load(i, x[3:4, 3:4])

        nl.fori_loop(0, 4, body)
        return out

    x = np.arange(16, dtype=np.int32).reshape(4, 4)
    np.testing.assert_array_equal(kernel(x), [[0, 90], [1, 90], [2, 90], [3, 90]])


def test_the_counter_of_fori_loop_costs_nothing():
    """It may be written, but nothing is recorded for that: one body is as many records as before."""
    sizes = []

    @nki.jit
    def kernel(x):
        t = nl.load(x)
        before = _core.current().size
        nl.fori_loop(0, 4, lambda i: add(t, 1.0))
        sizes.append(_core.current().size - before)

    kernel(X)
    assert sizes == [3]  # the loop, the addition, the end


@EAGER
def test_bounds_of_fori_loop_may_be_numpys(mode):
    def body(t, start):
        nl.fori_loop(np.int64(1), np.int32(7), lambda i: add(t, 1.0), step=np.uint8(2))

    np.testing.assert_array_equal(count_up(body)(X, START), X + F32(3))


@pytest.mark.parametrize("loop", ["fori_loop", "while_loop", "dynamic_range"])
@EAGER
def test_no_dynamic_loop_inside_no_reorder(mode, loop, apply):
    """The stub: loops on registers are not supported inside a no_reorder block, static ones are allowed."""

    def run(t):
        if loop == "fori_loop":
            nl.fori_loop(0, 2, lambda i: add(t, 1.0))
        elif loop == "while_loop":
            nl.while_loop(nisa.register_alloc(0), lambda r: r)
        else:
            for _ in nl.dynamic_range(2):
                add(t, 1.0)

    def kernel(t):
        with nl.no_reorder():
            for _ in nl.affine_range(2):
                add(t, 1.0)
            with nl.no_reorder():
                add(t, 1.0)
            run(t)
        return t

    with pytest.raises(RuleError, match=rf"LOOP2.*nl.{loop}.*no_reorder.*test_control.py"):
        apply(kernel, np.zeros((2, 2), F32))

    def behind(t):
        with nl.no_reorder():
            add(t, 1.0)
        run(t)
        return t

    assert apply(behind, np.zeros((2, 2), F32))[0, 0] == (1 if loop == "while_loop" else 3)


def test_while_and_if_on_a_register():
    def body(t, start):
        left = nl.load(start)
        reg = nisa.register_alloc(start)
        assert int(reg) == 3
        while reg:
            add(t, 1.0)
            add(left, -1)
            nisa.register_load(reg, left)
        if reg:
            add(t, 1000.0)
        assert list(range(nisa.register_alloc(start))) == [0, 1, 2]

    np.testing.assert_array_equal(count_up(body)(X, START), X + F32(3))


def test_registers():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((1, 4), nl.int32, buffer=nl.shared_hbm)
        a, b = nisa.register_alloc(7), nisa.register_alloc(x[0:1, 1:2])
        c = nisa.register_alloc()
        nisa.register_move(c, b)
        tile = nl.ndarray((1, 1), nl.int32)
        nisa.register_store(tile, c)
        nisa.register_store(out[0:1, 0:1], a)
        nisa.register_store(out[0:1, 1:2], b)
        nl.store(out[0:1, 2:3], tile)
        nisa.register_move(a, -5)
        nisa.register_store(out[0:1, 3:4], a)
        return out

    np.testing.assert_array_equal(kernel(np.array([[10, 20]], np.int32)), [[7, 20, 20, -5]])


def test_rules_of_registers(apply):
    def kernel(f):
        return lambda: apply(f, np.zeros((2, 2), F32))

    def write_loop_register(t):
        for i in nl.dynamic_range(3):
            nisa.register_move(i, 1)

    def load_loop_register(t):
        for i in nl.dynamic_range(3):
            nisa.register_load(i, t[0:1, 0:1])

    def too_many(t):
        nisa.register_alloc(t)

    def bad_step(t):
        for _ in nl.dynamic_range(0, 3, 0):
            pass

    def bad_bound(t):
        for _ in nl.dynamic_range(1.5):
            pass

    for f in (write_loop_register, load_loop_register):
        with pytest.raises(AssertionError, match="REG3"):
            kernel(f)()
    with pytest.raises(RuleError, match="REG1"):
        kernel(too_many)()
    with pytest.raises(RuleError, match="LOOP1"):
        kernel(bad_step)()
    with pytest.raises(TypeError, match="bound"):
        kernel(bad_bound)()


def test_a_value_inside_a_recorded_loop_is_a_type_error_with_advice(apply):
    def look(t):
        for i in nl.dynamic_range(3):
            if i:
                add(t, 1.0)

    with pytest.raises(TypeError, match="STERNA_EAGER"):
        apply(look, np.zeros((2, 2), F32))


def test_the_same_look_is_possible_step_by_step(apply, monkeypatch):
    monkeypatch.setenv("STERNA_EAGER", "1")

    def look(t):
        for i in nl.dynamic_range(3):
            if i:
                add(t, 1.0)
        return t

    np.testing.assert_array_equal(apply(look, np.zeros((2, 2), F32)), np.full((2, 2), 2, F32))


def test_leaving_a_recorded_loop_is_refused(apply):
    def leave(t):
        for _ in nl.dynamic_range(3):
            break
        return t

    with pytest.raises(BadInput, match="break"):
        apply(leave, np.zeros((2, 2), F32))


def test_print_shows_values_and_the_kernel_goes_on(apply, capsys):
    def body(t):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        print(t)
        part = nl.ndarray((2, 3), nl.float32, name="part")
        nisa.memset(part[:, 0:1], 7.5)
        print(part, f"{t[0:1, 3:4]}")
        add(t, 1.0)
        return t

    np.testing.assert_array_equal(apply(body, X), X * 2 + 1)
    text = capsys.readouterr().out
    assert "[0, 2, 4, 6]" in text and "[8, 10, 12, 14]" in text
    assert "part = " in text and "[7.5, ?, ?]" in text  # ? was never written
    assert "[6]" in text


def test_whole_numbers_are_printed_in_full(apply, capsys):
    def body(t):
        print(t, t.view(nl.uint32))
        return t

    apply(body, np.array([[16777217, -3]], np.int32))
    assert "[16777217, -3]" in (out := capsys.readouterr().out) and "4294967293" in out


def test_a_debugger_sees_values(apply):
    seen = []

    def body(t):
        add(t, 1.0)
        seen.append(repr(t))  # what `p t` shows at a breakpoint
        add(t, 1.0)
        seen.append(t)
        return t

    apply(body, X)
    assert "[1, 2, 3, 4]" in seen[0] and "tensor" in seen[0]
    assert "[" in repr(seen[1]) and "2, 4" in str(seen[1])  # after the call: what it is, without values


def test_repr_inside_a_recorded_loop_does_not_fail(apply):
    seen = []

    def body(t):
        for _ in nl.dynamic_range(2):
            seen.append(repr(t))
        return t

    apply(body, X)
    assert "tensor" in seen[0]


def test_device_print_prints_when_the_program_runs(capsys):
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        t = nl.load(x)
        nl.device_print("before ", t)
        assert capsys.readouterr().out == ""
        for _ in nl.dynamic_range(2):
            add(t, 1.0)
            nl.device_print("turn ", t[0:1, :])
        nl.store(out, t)
        return out

    kernel(X)
    text = capsys.readouterr().out
    assert (
        text.index("before")
        < text.index("[0, 1, 2, 3]")
        < text.index("turn")
        < text.index("[1, 2, 3, 4]")
        < text.index("[2, 3, 4, 5]")
    )
    assert text.count("turn ") == 2


def test_nested_kernels(rng):
    @nki.jit
    def scale(t, by):
        made = nl.ndarray(t.shape, t.dtype)
        nisa.tensor_scalar(dst=made, data=t, op0=nl.multiply, operand0=by)
        return made

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, scale(scale(nl.load(x), 2.0), by=3.0))
        return out

    np.testing.assert_array_equal(kernel(X), X * 6)


@pytest.mark.parametrize("compare", [lambda r: r == 0, lambda r: r != 1, lambda r: r == nisa.register_alloc(0)])
def test_a_register_is_not_compared_in_python(compare):
    """Dynamic loops guide: "You cannot use it in host-side Python expressions (e.g., if i == 0:)"."""

    @nki.jit
    def kernel(x):
        register = nisa.register_alloc(0)
        assert register != None and register == register and len({register, nisa.register_alloc(0)}) == 2  # noqa: E711
        compare(register)

    with pytest.raises(TypeError, match="cannot be compared"):
        kernel(np.zeros((1, 1), np.float32))
