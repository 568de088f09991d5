# SPDX-License-Identifier: Apache-2.0
"""Arrays that go into a kernel: ways to call, kinds, in-place updates, overlaps, objects that hold them."""

import collections
import dataclasses

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import BadInput, NotImplementedFault, RuleError, SternaWarning, WrongType

F32 = np.float32


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    nl.store(out, t)
    return out


@nki.jit
def double_in_place(x):
    t = nl.load(x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    nl.store(x, t)
    return x


CALLS = {
    "itself": lambda k, x: k(x),
    "by keyword": lambda k, x: k(x=x),
    "simulate": lambda k, x: nki.simulate(k)(x),
    "simulate a function": lambda k, x: nki.simulate(k.func)(x),
    "cpu_simulate": lambda k, x: nki.cpu_simulate(k)[1](x),
    "one core": lambda k, x: k[1](x),
    "grid of one": lambda k, x: k[(1,)](x),
}


@pytest.mark.parametrize("call", CALLS)
def test_ways_to_call(call):
    x = np.arange(8, dtype=F32).reshape(2, 4)
    got = CALLS[call](double, x)
    assert type(got) is np.ndarray and got.flags.writeable and got.dtype == F32
    np.testing.assert_array_equal(got, x * 2)


def test_kernel_object_looks_like_the_function():
    @nki.jit(mode="trace", debug_kernel=True)
    def named(x, y=1):
        """What it does."""

    import inspect

    assert (named.__name__, named.__doc__, named.__wrapped__) == ("named", "What it does.", named.func)
    assert str(inspect.signature(named)) == "(x, y=1)"
    assert nki.jit(named) is named and isinstance(named, nki.Kernel)
    with pytest.raises(BadInput, match="platform_target"):
        nki.jit(platform_target="trn1")


@pytest.fixture
def nki_0_2(monkeypatch):
    monkeypatch.setenv("STERNA_NKI_VERSION", "0.2")
    yield
    monkeypatch.undo()
    double(np.zeros((2, 2), F32))  # the modules follow at the next call


def test_the_chip_that_a_kernel_named_before_nki_0_3(monkeypatch, nki_0_2):
    """`platform_target` is NEURON_PLATFORM_TARGET_OVERRIDE for one kernel (quickstart of SDK 2.27); the variable overrides it."""

    def generation(x):
        out = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
        tile = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
        nisa.memset(tile, value=nisa.get_nc_version().value)
        nisa.dma_copy(dst=out, src=tile)
        return out

    for variable in ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION"):
        monkeypatch.delenv(variable, raising=False)
    x = np.zeros((1, 1), F32)
    kernels = [nki.jit(generation)] + [nki.jit(generation, platform_target=chip) for chip in ("trn1", "trn3")]
    # The second round may come from the kernel cache.
    for _ in range(2):
        assert [int(kernel(x)[0, 0]) for kernel in kernels] == [3, 2, 4]
        assert [int(kernel[1](x)[0, 0]) for kernel in kernels] == [3, 2, 4]
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    assert [int(kernel(x)[0, 0]) for kernel in kernels] == [3, 3, 3]


def test_nl_exp_is_an_operator_in_nki_0_2(nki_0_2):
    """The table of activation functions of SDK 2.28 has it; functions on tiles, as nl.load, came with 0.3."""

    @nki.jit
    def kernel(x):
        tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.activation(tile, nl.copy, tile, scale=0.5)
        nisa.activation(tile, nl.exp, tile)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.array([[-1, 0, 2]], F32)
    np.testing.assert_allclose(kernel(x), np.exp(x / 2), rtol=1e-6)
    assert not hasattr(nl, "load") and not hasattr(nl, "ceil")


def test_a_launcher_that_is_only_subscriptable():
    class Launcher:
        __name__ = "launcher"

        def __getitem__(self, lnc):
            return double[lnc]

    np.testing.assert_array_equal(nki.cpu_simulate(Launcher())[1](np.ones((2, 2), F32)), np.full((2, 2), 2, F32))


def test_a_method_is_a_kernel_too():
    class Model:
        factor = 3.0

        @nki.jit
        def run(self, x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.multiply(nl.load(x), self.factor))
            return out

    np.testing.assert_array_equal(Model().run(np.ones((2, 2), F32)), np.full((2, 2), 3, F32))


@pytest.mark.parametrize("dtype", [F32, np.float16, ml_dtypes.bfloat16, np.int32, np.uint8, np.int16])
def test_numpy_types(dtype):
    x = np.arange(8).reshape(2, 4).astype(dtype)
    got = double(x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, (x * 2).astype(dtype))


NON_CONTIGUOUS = {
    "transposed": lambda: np.arange(8, dtype=F32).reshape(4, 2).T,
    "every other": lambda: np.arange(16, dtype=F32).reshape(2, 8)[:, ::2],
    "reversed": lambda: np.arange(8, dtype=F32).reshape(2, 4)[::-1],
    "Fortran": lambda: np.asfortranarray(np.arange(8, dtype=F32).reshape(2, 4)),
    "big-endian": lambda: np.arange(8, dtype=">f4").reshape(2, 4),
    "plain": lambda: np.arange(8, dtype=F32).reshape(2, 4),
}


@pytest.mark.parametrize("layout", NON_CONTIGUOUS)
def test_a_written_argument_is_updated_in_place(layout):
    x = NON_CONTIGUOUS[layout]()
    want = x * 2
    assert double_in_place(x) is x  # the caller's own object
    np.testing.assert_array_equal(x, want)
    fresh = NON_CONTIGUOUS[layout]()
    np.testing.assert_array_equal(double(fresh), fresh * 2)
    np.testing.assert_array_equal(fresh, NON_CONTIGUOUS[layout]())  # an argument that is only read stays


@pytest.mark.parametrize("layout", ["plain", "transposed"])
@pytest.mark.parametrize("eager", ["0", "1"])
@pytest.mark.parametrize("how", ["execution", "recording", "python"])
def test_an_update_before_a_fault_stays(how, eager, layout, monkeypatch):
    monkeypatch.setenv("STERNA_EAGER", eager)

    @nki.jit
    def kernel(x):
        t = nl.load(x)
        nl.store(x, nl.add(t, 1.0))
        if how == "execution":
            nl.store(x, nl.add(nl.ndarray(t.shape, t.dtype), 1.0))  # reads what was never written
        if how == "recording":
            nisa.tensor_tensor(t, t, x, nl.add)  # an operand in HBM
        raise ZeroDivisionError

    x = NON_CONTIGUOUS[layout]()
    want = x + 1
    with pytest.raises({"execution": RuleError, "recording": RuleError, "python": ZeroDivisionError}[how]):
        kernel(x)
    np.testing.assert_array_equal(x, want)


def test_the_first_fault_in_program_order_is_raised():
    @nki.jit
    def kernel(x):
        nl.add(nl.ndarray(x.shape, x.dtype), 1.0)
        raise ZeroDivisionError

    with pytest.raises(RuleError, match="UNINIT1") as caught:
        kernel(np.ones((2, 2), F32))
    assert isinstance(caught.value.__context__, ZeroDivisionError)


@pytest.mark.parametrize("layout", ["plain", "transposed"])
def test_a_read_only_array_may_be_read_but_not_written(layout):
    x = NON_CONTIGUOUS[layout]()
    x.flags.writeable = False
    np.testing.assert_array_equal(double(x), x * 2)
    with pytest.raises(BadInput, match="ARG1.*read-only"):
        double_in_place(x)
    np.testing.assert_array_equal(x, NON_CONTIGUOUS[layout]())


def test_a_part_of_an_argument_is_written():
    @nki.jit
    def kernel(cache, new):
        nl.store(cache[2:4, 1:3], nl.load(new))
        return cache

    cache, new = np.zeros((6, 4), F32), np.ones((2, 2), F32)
    got = kernel(cache, new)
    assert got is cache and cache.sum() == 4 and (cache[2:4, 1:3] == 1).all()


def test_the_same_array_twice_is_one_tensor():
    seen = []

    @nki.jit
    def kernel(x, y, z):
        seen.append((x.tensor_id == y.tensor_id, x.tensor_id == z.tensor_id))
        nl.store(x, nl.add(nl.load(x), 1.0))
        out = nl.ndarray(y.shape, y.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(y))
        return out

    for layout in ("plain", "transposed"):
        x = NON_CONTIGUOUS[layout]()
        want = x + 1
        np.testing.assert_array_equal(kernel(x, x, x.copy()), want)
    assert seen == [(True, False)] * 2


def test_overlapping_arguments_are_found_and_share_their_bytes():
    @nki.jit
    def kernel(a, b):
        nl.store(a, nl.add(nl.load(a), 1.0))
        out = nl.ndarray(b.shape, b.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(b))
        return out

    base = np.zeros((4, 4), F32)
    with pytest.warns(SternaWarning, match="ARG4.*'b'.*'a'") as seen:
        got = kernel(base[0:3], base[1:4])
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(got, np.array([[1] * 4, [1] * 4, [0] * 4], F32))


def test_overlapping_arguments_that_must_be_copied_are_refused_when_written():
    @nki.jit
    def kernel(a, b, write):
        if write:
            nl.store(a, nl.load(b))
        return

    base = np.zeros((4, 4), F32)
    kernel(base[:, 0:3], base[:, 1:4], False)
    with pytest.raises(BadInput, match="ARG5"):
        kernel(base[:, 0:3], base[:, 1:4], True)


def test_no_remark_on_arrays_side_by_side(recwarn):
    @nki.jit
    def kernel(a, b):
        nl.store(a, nl.load(b))

    base = np.zeros((4, 4), F32)
    assert kernel(base[0:2], base[2:4]) is None
    assert not [w for w in recwarn if "ARG4" in str(w.message)]


def test_arguments_that_are_not_arrays_pass_through():
    Config = collections.namedtuple("Config", "left right")

    @nki.jit
    def kernel(x, n, name, pair, mapping, config, scalar, *rest, flag=False):
        assert (n, name, flag, scalar) == (3, "a", True, 2.5) and type(n) is int and type(scalar) is float
        assert type(pair) is list and type(config) is Config
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        total = nl.load(x)
        for t in (pair[0], pair[1], mapping["t"], config.right, *rest):
            total = nl.add(total, nl.load(t))
        nl.store(out, total)
        return out

    one = lambda: np.ones((2, 2), F32)  # noqa: E731
    got = kernel(one(), 3, "a", [one(), one()], {"t": one()}, Config(1, one()), np.array(2.5), one(), one(), flag=True)
    np.testing.assert_array_equal(got, np.full((2, 2), 7, F32))


@dataclasses.dataclass
class Plain:
    left: np.ndarray
    scale: float = 2.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    left: np.ndarray
    scale: float = 2.0


@dataclasses.dataclass(slots=True)
class Slotted:
    left: np.ndarray
    scale: float = 2.0


class Object(nl.NKIObject):
    left: object
    scale: float = 2.0


@pytest.mark.parametrize("kind", [Plain, Frozen, Slotted, Object])
@pytest.mark.parametrize("place", ["left", "inside a list", "inside another"])
def test_arrays_inside_an_object(kind, place):
    """As inside tuples and dicts: the kernel sees tensors, what it writes is written, the caller's object stays."""

    @nki.jit
    def kernel(config):
        assert type(config) is kind and config.scale == 2.0
        held = config.left
        held = held[1]["t"] if place == "inside a list" else held.left if place == "inside another" else held
        assert isinstance(held, nl.NkiTensor)
        t = nl.load(held)
        nl.store(held, nl.multiply(t, config.scale))
        return held

    x = np.arange(4, dtype=F32).reshape(2, 2)
    left = [1, {"t": x}] if place == "inside a list" else kind(x) if place == "inside another" else x
    config = kind(left)
    for turn in (1, 2, 3):  # from the second call on a program could be kept
        assert kernel(config) is x and config.left is left
        np.testing.assert_array_equal(x, np.arange(4).reshape(2, 2) * 2.0**turn)


def test_objects_without_arrays_are_passed_as_they_are():
    config, knot = Plain(None), Plain(None)
    knot.left = [knot]

    @nki.jit
    def kernel(x, one, two, kind):
        assert one is config and two is knot and kind is Plain
        return x

    x = np.ones((2, 2), F32)
    assert kernel(x, config, knot, Plain) is x


def test_an_array_in_an_object_that_holds_itself():
    knot = Object(np.ones((2, 2), F32))
    knot.scale = knot

    @nki.jit
    def kernel(config):
        assert config.scale is config and isinstance(config.left, nl.NkiTensor)
        return config.left

    assert kernel(knot) is knot.left


def test_types_that_no_core_has():
    with pytest.raises(WrongType, match="'x'.*float64"):
        double(np.ones((2, 2)))
    with pytest.raises(TypeError, match="not int"):
        nki.jit(lambda x: 3)(np.ones((2, 2), F32))


def test_a_tensor_of_another_call_is_refused():
    kept = []
    nki.jit(lambda x: kept.append(nl.load(x)))(np.ones((2, 2), F32))
    with pytest.raises(ValueError, match="another kernel call"):
        nki.jit(lambda x: nisa.memset(kept[0], 1.0))(np.ones((2, 2), F32))


def test_an_array_that_speaks_dlpack():
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = np.arange(4, dtype=F32).reshape(2, 2)
    got = double(Foreign(x))
    assert type(got) is np.ndarray
    np.testing.assert_array_equal(got, x * 2)


def test_an_empty_array():
    x = np.zeros((0, 4), F32)

    @nki.jit
    def kernel(x, y):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        return out, y

    out, y = kernel(x, x)
    assert out.shape == (0, 4) and y is x
