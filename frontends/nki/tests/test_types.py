# SPDX-License-Identifier: Apache-2.0
"""Types as values: dtype objects, NKIObject classes, enumerations, annotations."""

import dataclasses
import inspect
import typing

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.dtype
import nki.isa as nisa
import nki.isa.constants
import nki.language as nl
import nki.typing as nt

NUMPY = {
    "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2, "float8_e3m4": ml_dtypes.float8_e3m4,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu, "float4_e2m1fn": ml_dtypes.float4_e2m1fn, "int8": np.int8, "int16": np.int16,
    "int32": np.int32, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "bool_": np.bool_,
}  # fmt: skip


@pytest.mark.parametrize("name", NUMPY)
def test_a_dtype_is_a_string_and_a_numpy_dtype(name):
    dtype = getattr(nl, name)
    assert isinstance(dtype, str) and str(dtype) == name.rstrip("_") == dtype.name
    assert np.dtype(NUMPY[name]) == dtype and dtype == np.dtype(NUMPY[name]) and dtype == NUMPY[name]
    assert np.zeros(3, dtype).dtype == NUMPY[name] and np.zeros(3, NUMPY[name]).dtype == dtype
    assert dtype.itemsize == np.dtype(NUMPY[name]).itemsize
    assert {dtype: 1}[getattr(nl, name)] == {str(dtype): 1}[dtype] == 1
    assert getattr(nki.dtype, name) is dtype
    assert dtype != nl.tfloat32 and dtype is not None and dtype != 3


def test_other_types():
    assert (
        isinstance(nl.int8, nl.DType)
        and isinstance(nl.int8, nki.dtype.DType)
        and set(nki.dtype.ALL) > set(NUMPY) - {"bool_"}
    )
    assert (
        nl.tfloat32.itemsize,
        nl.float8_e4m3fn_x4.itemsize,
        nl.float8_e5m2_x4.itemsize,
        nl.float4_e2m1fn_x4.itemsize,
    ) == (4, 4, 4, 2)
    assert nl.bool is nl.bool_ and nl.float32(3) == np.float32(3) and repr(nl.int8) == "nl.int8"
    assert (nl.fp32.max, nl.fp32.min) == (np.finfo(np.float32).max, np.finfo(np.float32).min)


@pytest.mark.parametrize("name", [n for n in NUMPY if n not in ("bool_", "float4_e2m1fn", "float8_e8m0fnu")])
def test_every_type_passes_through_a_kernel(name, apply, rng, monkeypatch):
    if name == "float8_e4m3fn":
        monkeypatch.setenv("NKI_NC_VERSION", "gen4")  # OCP e4m3fn is of that generation
    x = rng.integers(0, 100, (8, 4)).astype(NUMPY[name])
    got = apply(nl.copy, x)
    assert got.dtype == NUMPY[name]
    np.testing.assert_array_equal(got, x)


def test_dtype_may_be_spelled_in_any_way(apply, rng):
    x = rng.standard_normal((8, 4), dtype=np.float32)
    for dtype in (nl.bfloat16, "bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)):
        assert apply(lambda t, d=dtype: nl.copy(t, dtype=d), x).dtype == ml_dtypes.bfloat16
    assert apply(lambda t: nl.copy(t, dtype=np.int32), x).dtype == np.int32
    with pytest.raises(TypeError, match="float64"):
        apply(lambda t: nl.copy(t, dtype=np.float64), x)


def test_nki_object_rules():
    class Config(nl.NKIObject):
        width: int
        height: int = 4
        section = None
        label = "a"

    plain = Config(3)
    assert (plain.width, plain.height, plain.section, plain.label) == (3, 4, None, "a")
    named = Config(height=7, section="b")
    assert (named.width, named.height, named.section) == (None, 7, "b")
    assert Config().width is None
    with pytest.raises(TypeError, match="colour"):
        Config(colour=1)
    with pytest.raises(TypeError, match="at most 4"):
        Config(1, 2, 3, 4, 5)


def test_nki_object_with_own_init_methods_and_inheritance():
    class Base(nl.NKIObject):
        a: int = 1

        def double(self):
            return 2 * self.a

        @staticmethod
        def fixed():
            return 5

        @property
        def next(self):
            return self.a + 1

    class Derived(Base):
        b: int

        def __post_init__(self):
            self.c = (self.a, self.b)

    made = Derived(10, 20)
    assert (made.double(), made.fixed(), made.next, made.c) == (20, 5, 11, (10, 20))

    class Own(nl.NKIObject):
        x: int

        def __init__(self, y):
            self.y = y

    assert (Own(5).y, Own(5).x) == (5, None)


def test_an_nki_object_inside_a_kernel(rng):
    class Tile(nl.NKIObject):
        data: nl.ndarray
        scale: float = 1.0

        def store(self, out):
            nl.store(out, nl.multiply(self.data, self.scale))

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        Tile(nl.load(x), scale=2.0).store(out)
        return out

    x = rng.standard_normal((8, 4), dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), x * 2)


ENUMS = {
    "engine": {"unknown": 0, "tensor": 1, "scalar": 2, "gpsimd": 3, "dma": 4, "vector": 5, "sync": 6},
    "reduce_cmd": {"idle": 0, "reset": 1, "reduce": 2, "reset_reduce": 3, "load_reduce": 4},
    "dge_mode": {"unknown": 0, "swdge": 1, "hwdge": 2, "none": 3},
    "oob_mode": {"error": 0, "skip": 1},
    "matmul_perf_mode": {"none": "none", "double_row": "double_row"},
    "nc_version": {"gen2": 2, "gen3": 3, "gen4": 4},
    "dma_engine": {"dma": 1, "gpsimd_dma": 2},
}


@pytest.mark.parametrize("name", ENUMS)
def test_enumerations_have_the_documented_values(name):
    kind = getattr(nisa, name)
    assert kind is getattr(nki.isa.constants, name)
    assert {member.name: member.value for member in kind} == ENUMS[name]


def test_old_names_of_engines():
    assert (nisa.tensor_engine, nisa.vector_engine, nisa.scalar_engine) == (
        nisa.engine.tensor,
        nisa.engine.vector,
        nisa.engine.scalar,
    )
    assert (nisa.gpsimd_engine, nisa.unknown_engine) == (nisa.engine.gpsimd, nisa.engine.unknown)


@pytest.mark.parametrize(
    ("variable", "value", "version"),
    [(None, "", 3), ("NKI_NC_VERSION", "gen2", 2), ("NKI_NC_VERSION", "gen4", 4), ("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1", 2),
     ("NEURON_PLATFORM_TARGET_OVERRIDE", "inf2", 2), ("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3", 4)],
)  # fmt: skip
def test_target_by_environment(variable, value, version, monkeypatch):
    if variable:
        monkeypatch.setenv(variable, value)
    assert nisa.get_nc_version() == version and nisa.get_nc_version() is nisa.nc_version(version)
    assert nisa.get_nc_sub_version() == 0
    seen = []
    nki.jit(lambda x: seen.append(nisa.get_nc_version()))(np.zeros((1, 1), np.float32))
    assert seen == [version]


def test_platform_override_goes_before_nc_version_and_a_profile_before_both(monkeypatch):
    import sterna

    monkeypatch.setenv("NKI_NC_VERSION", "gen2")
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    assert nisa.get_nc_version() == nisa.nc_version.gen3 > nisa.nc_version.gen2
    with sterna.profile(target="trn3"):
        assert nisa.get_nc_version() == nisa.nc_version.gen4
    assert nisa.get_nc_version() == nisa.nc_version.gen3
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn9")
    with pytest.raises(ValueError, match="trn9"):
        nisa.get_nc_version()


def test_annotations():
    def kernel(
        x: nt.tensor[128, 512],
        y: nt.mutable_tensor,
        z: nl.ndarray | None = None,
        w: nl.NkiTensor | None = None,
        d: nki.dtype = None,
    ):
        return nt.tensor | None

    kernel(1, 2)
    assert "tensor" in repr(inspect.signature(kernel).parameters["x"].annotation)


def test_a_frozen_dataclass_may_be_an_nki_object():
    @dataclasses.dataclass(frozen=True)
    class Limits(nl.NKIObject):
        low: float
        high: float

    limits = Limits(-1.0, high=2.0)
    assert (limits.low, limits.high) == (-1.0, 2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.low = 0.0


def test_a_dataclass_makes_its_own_initialiser():
    @dataclasses.dataclass
    class Config(nl.NKIObject):
        sizes: list = dataclasses.field(default_factory=list)
        name = "plain"

    one, other = Config(), Config(name="named")
    one.sizes.append(1)
    assert other.sizes == []
    assert (one.name, other.name) == ("plain", "named")


def test_perf_mode_may_be_a_name():
    @nki.jit
    def kernel(a, b, mode):
        psum = nl.ndarray((16, 32), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(psum, nl.load(a), nl.load(b), perf_mode=mode)
        tile = nl.ndarray((16, 32), nl.float32)
        nisa.tensor_copy(tile, psum)
        out = nl.ndarray((16, 32), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    a, b = np.ones((8, 16), np.float32), np.ones((8, 32), np.float32)
    np.testing.assert_array_equal(kernel(a, b, "none"), np.full((16, 32), 8.0))
    with pytest.raises(TypeError):
        kernel(a, b, "triple_row")
