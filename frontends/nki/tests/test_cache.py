# SPDX-License-Identifier: Apache-2.0
"""The kernel cache: what is run again without Python, and what must not be. Design, section 3; docs/decisions/0014-kernel-cache.md."""

import dataclasses
import enum

import numpy as np
import pytest
from cached_kernel import scaled, x

import nki
import nki.isa as nisa
import nki.language as nl
from sterna.cache import cache
from sterna.faults import Fault

pytestmark = pytest.mark.usefixtures("empty_cache")


def warm(call, times=3):
    """Calls until the program is kept and used."""
    for _ in range(times):
        result = call()
    assert cache.hits > 0
    cache.hits = 0
    return result


def test_new_data_runs_without_python():
    calls = []

    def kernel(a):
        _ = calls  # a list that stays as it is
        return scaled(a, 3.0)

    run = nki.jit(kernel)
    for turn in range(5):
        a = x() + turn
        np.testing.assert_array_equal(run(a), a * 3)
    assert cache.hits == 3


def test_shapes_types_and_constants_are_the_key():
    run = nki.jit(scaled)
    warm(lambda: run(x(), 2.0))
    for a, factor in ((x((4, 9)), 2.0), (x(dtype=np.float16), 2.0), (x(), 3.0), (x(), -0.0), (x(), 2)):
        np.testing.assert_array_equal(run(a, factor), (a.astype(np.float32) * np.float32(factor)).astype(a.dtype))
        assert cache.hits == 0


class Level(enum.IntEnum):
    low = 2


class Depth(enum.IntEnum):
    low = 2


class Text(str, enum.Enum):
    none = "none"


@pytest.mark.parametrize(
    "first, second", [(Level.low, Depth.low), (nisa.matmul_perf_mode.none, Text.none), (Level.low, 2)]
)
def test_equal_members_of_two_enumerations_are_two_constants(first, second):
    run = nki.jit(lambda a, kind: scaled(a, 3.0 if type(kind) is type(first) else 5.0))
    warm(lambda: run(x(), first))
    np.testing.assert_array_equal(run(x(), second), x() * 5)


def test_an_enumeration_is_kept_whatever_others_note_on_the_enum_module(monkeypatch):
    """PyTorch's compiler marks enum.Enum.__new__, which every enumeration has."""
    monkeypatch.setitem(vars(enum.Enum.__new__), "noted", True)
    first = Level.low
    run = nki.jit(lambda a, kind: scaled(a, 3.0 if type(kind) is type(first) else 5.0))
    warm(lambda: run(x(), first))
    np.testing.assert_array_equal(run(x(), Depth.low), x() * 5)


def test_minus_zero_is_not_zero():
    run = nki.jit(scaled)
    a = np.abs(x())
    warm(lambda: run(a, 0.0))
    assert np.signbit(run(a, -0.0)).all() and not np.signbit(run(a, 0.0)).any()


def test_functions_among_the_arguments():
    def twice(a):
        return scaled(a, 2.0)

    def thrice(a):
        return scaled(a, 3.0)

    run = nki.jit(lambda a, f: f(a))
    a = x()
    warm(lambda: run(a, twice))
    np.testing.assert_array_equal(run(a, thrice), a * 3)
    np.testing.assert_array_equal(run(a, twice), a * 2)
    twice.__code__ = thrice.__code__
    np.testing.assert_array_equal(run(a, twice), a * 3)


def test_objects_among_the_arguments():
    class Config(nl.NKIObject):
        factor = 2.0

    run = nki.jit(lambda a, config: scaled(a, config.factor))
    a, config = x(), Config()
    warm(lambda: run(a, config))
    config.factor = 5.0
    np.testing.assert_array_equal(run(a, config), a * 5)


@dataclasses.dataclass(slots=True)
class Slotted:
    factor: float
    held: object = None


def test_fields_in_slots_are_the_key_and_arrays_in_them_are_not_kept():
    run = nki.jit(lambda a, config: scaled(a, config.factor))
    config = Slotted(2.0)
    warm(lambda: run(x(), config))
    config.factor = 3.0
    a = x()
    np.testing.assert_array_equal(run(a, config), a * 3)
    config.held = x()
    for _ in range(3):
        np.testing.assert_array_equal(run(a, config), a * 3)
    assert cache.hits == 0


def test_kernels_with_effects_run_each_time(capsys):
    seen = []

    @nki.jit
    def counts(a):
        seen.append(a.shape)
        return scaled(a, 2.0)

    @nki.jit
    def prints(a):
        print("recorded")
        return scaled(a, 2.0)

    for _ in range(4):
        counts(x())
        prints(x())
    assert len(seen) == 4 and capsys.readouterr().out.count("recorded") == 4


def test_values_read_by_python_are_not_kept():
    @nki.jit
    def kernel(a, n):
        turns = nisa.register_alloc(0)
        nisa.register_load(turns, n)
        factor = 1.0
        while turns:
            factor *= 2
            nisa.register_move(turns, int(turns) - 1)
        return scaled(a, factor)

    a = x()
    for n in (1, 1, 1, 3):
        np.testing.assert_array_equal(kernel(a, np.int32([[n]])), a * 2**n)


def test_aliased_arguments_are_another_kernel():
    @nki.jit
    def kernel(a, b):
        tile = nl.ndarray(a.shape, dtype=a.dtype)
        nisa.dma_copy(tile, a)
        nisa.tensor_scalar(tile, tile, op0=nl.add, operand0=1.0)
        nisa.dma_copy(b, tile)
        nisa.dma_copy(tile, a)
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    for _ in range(4):
        a, b = np.zeros((2, 4), np.float32), np.zeros((2, 4), np.float32)
        assert (kernel(a, b) == 0).all() and (b == 1).all() and (a == 0).all()
    for _ in range(4):
        a = np.zeros((2, 4), np.float32)
        assert (kernel(a, a) == 1).all() and (a == 1).all()


def test_inplace_arguments_come_back_as_themselves():
    @nki.jit
    def kernel(a):
        tile = nl.ndarray(a.shape, dtype=a.dtype)
        nisa.dma_copy(tile, a)
        nisa.tensor_scalar(tile, tile, op0=nl.add, operand0=1.0)
        nisa.dma_copy(a, tile)
        return a

    a = np.zeros((2, 4), np.float32)
    for turn in range(5):
        assert kernel(a) is a and (a == turn + 1).all()
    assert cache.hits == 3


def test_results_of_one_call_survive_the_next():
    run = nki.jit(scaled)
    kept = [run(np.full((2, 4), i, np.float32), 1.0) for i in range(6)]
    assert [one[0, 0] for one in kept] == list(range(6))


def test_readonly_arrays_are_another_kernel():
    run = nki.jit(lambda a: nisa.dma_copy(a, nl.zeros(a.shape, a.dtype)) and None)
    a = np.ones((2, 4), np.float32)
    warm(lambda: run(a))
    a[...] = 1
    a.flags.writeable = False
    with pytest.raises(Fault):
        run(a)
    assert (a == 1).all()


def test_faults_that_depend_on_data_name_the_line():
    @nki.jit
    def kernel(a, i):
        out = nl.ndarray((1, a.shape[1]), dtype=a.dtype, buffer=nl.shared_hbm)
        row = nl.ndarray((1, 1), dtype=nl.int32)
        nisa.dma_copy(row, i)
        nisa.dma_copy(out, a.ap([[a.shape[1], 1], [1, a.shape[1]]], scalar_offset=row, indirect_dim=0))
        return out

    a = x()
    warm(lambda: kernel(a, np.int32([[1]])))
    np.testing.assert_array_equal(kernel(a, np.int32([[3]]))[0], a[3])
    with pytest.raises(IndexError) as caught:
        kernel(a, np.int32([[4]]))
    assert "test_cache.py" in str(caught.value)
    np.testing.assert_array_equal(kernel(a, np.int32([[2]]))[0], a[2])


def test_settings_are_the_key(monkeypatch):
    run = nki.jit(scaled)
    warm(lambda: run(x(), 2.0))
    monkeypatch.setenv("STERNA_STRICT", "1")
    run(x(), 2.0)
    assert cache.hits == 0
    monkeypatch.delenv("STERNA_STRICT")
    run(x(), 2.0)
    assert cache.hits == 1
    monkeypatch.setenv("STERNA_CACHE", "off")
    run(x(), 2.0)
    assert cache.hits == 1


def test_two_cores_are_kept_too():
    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        half = nl.ds(nl.program_id(0) * 2, 2)
        tile = nl.ndarray((2, a.shape[1]), dtype=a.dtype)
        nisa.dma_copy(tile, a[half, :])
        got = nl.ndarray(tile.shape, dtype=a.dtype)
        other = 1 - nl.program_id(0)
        nisa.sendrecv(tile, got, send_to_rank=other, recv_from_rank=other, pipe_id=0)
        nisa.dma_copy(out[half, :], got)
        return out

    for _ in range(4):
        a = x()
        np.testing.assert_array_equal(kernel[2](a), np.roll(a, 2, axis=0))
    assert cache.hits == 2


def test_the_oldest_go_first(monkeypatch):
    monkeypatch.setattr("sterna.cache.MOST_PROGRAMS", 2)
    run = nki.jit(scaled)
    for factor in (1.0, 2.0, 3.0):
        for _ in range(2):
            run(x(), factor)
    assert len(cache) == 2


def test_random_numbers_are_drawn_each_time():
    import random

    uniform = random.random

    @nki.jit
    def of_numpy(a):
        return scaled(a, float(np.random.rand()))

    @nki.jit
    def of_a_name(a):
        return scaled(a, uniform())

    a = np.ones((2, 4), np.float32)
    for run in (of_numpy, of_a_name):
        assert len({run(a)[0, 0] for _ in range(5)}) == 5


def test_an_argument_that_the_kernel_changes_is_not_kept():
    class Counter(nl.NKIObject):
        n = 0

    @nki.jit
    def kernel(a, counter):
        counter.n += 1
        return scaled(a, float(counter.n))

    a, counter = np.ones((2, 4), np.float32), Counter()
    assert [kernel(a, counter)[0, 0] for _ in range(5)] == [1, 2, 3, 4, 5]
    fresh = [kernel(a, Counter()) for _ in range(4)]
    assert all((one == 1).all() for one in fresh)


def test_signs_of_zero_of_numpy_numbers():
    run = nki.jit(scaled)
    a = np.abs(x())
    warm(lambda: run(a, np.float32(0.0)))
    assert np.signbit(run(a, np.float32(-0.0))).all()


def test_kernels_that_are_gone_are_let_go():
    import gc
    import weakref

    def make():
        data = np.zeros(1000, np.float32)

        def kernel(a):
            return scaled(a, float(data.size))

        nki.jit(kernel)(x())
        return weakref.ref(data)

    held = [make() for _ in range(20)]
    gc.collect()
    assert not any(ref() is not None for ref in held)
