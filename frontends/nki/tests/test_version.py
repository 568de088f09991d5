# SPDX-License-Identifier: Apache-2.0
"""Releases of NKI, chosen by STERNA_NKI_VERSION. Expectations: API stubs, release notes and migration guides of the Neuron SDK."""

import inspect
import warnings

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.collectives as nc
import nki.isa as nisa
import nki.language as nl
from nki import _kernel, _version
from sterna.faults import BadInput, RuleError, SternaWarning

F32 = np.float32
BF16 = ml_dtypes.bfloat16
MODULES = {"nki": nki, "nki.isa": nisa, "nki.language": nl, "nki.collectives": nc}


@pytest.fixture
def release(monkeypatch):
    """release("0.3") shows that release until the end of the test."""

    def choose(version):
        monkeypatch.setenv("STERNA_NKI_VERSION", version)
        _version.follow()

    yield choose
    monkeypatch.delenv("STERNA_NKI_VERSION", raising=False)
    _version.follow()


def named(path):
    module = max((name for name in MODULES if path.startswith(name + ".")), key=len)
    value = MODULES[module]
    for part in path[len(module) + 1 :].split("."):
        value = getattr(value, part)
    return value


# --- which release


@pytest.mark.parametrize("text", ["0.7", "0.1", "1", "0", "0.3.x", "0.3.0.0", "newest", "0.3 "])
def test_a_release_that_is_not_known(text, monkeypatch, apply, python):
    monkeypatch.setenv("STERNA_NKI_VERSION", text)
    with pytest.raises(BadInput, match=r"STERNA_NKI_VERSION=.* is not known: use .*0\.3, 0\.4, 0\.5, 0\.6\."):
        apply(nl.copy, np.zeros((1, 1), F32))


@pytest.mark.parametrize(("text", "shown"), [("", "0.6"), ("0.6.0", "0.6"), ("0.4.1", "0.4"), ("0.3", "0.3")])
def test_a_release_that_is_known(text, shown, release):
    release(text)
    assert hasattr(nl, "fori_loop") == (shown == "0.6")
    assert hasattr(nl, "abs_max") == (shown != "0.3")


def test_it_is_followed_at_import_and_at_each_call(monkeypatch, apply, python):
    done = python("import nki.language as nl; print(hasattr(nl, 'fori_loop'))", STERNA_NKI_VERSION="0.5")
    assert done.stdout == "False\n", done.stderr
    done = python("import nki", STERNA_NKI_VERSION="0.9")
    assert done.returncode != 0 and "STERNA_NKI_VERSION='0.9' is not known: use" in done.stderr
    seen = []
    x = np.zeros((1, 1), F32)
    for version in ("0.3", "0.6"):
        monkeypatch.setenv("STERNA_NKI_VERSION", version)
        apply(lambda t: (seen.append(hasattr(nl, "fori_loop")), t)[1], x)
    assert seen == [False, True]


def test_the_newest_release_loads_no_history(python):
    done = python(
        "import sys, nki, nki.language; print([m for m in sys.modules if m in ('nki._older', 'nki._history')])"
    )
    assert done.stdout == "[]\n", done.stderr


# --- names


@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("nki.isa.activate2", "0.4"),
        ("nki.language.abs_max", "0.4"),
        ("nki.language.bypass", "0.4"),
        ("nki.language.tile_size.sbuf_fmax_bytes", "0.4"),
        ("nki.language.tile_size.psum_bank_fmax", "0.4"),
        ("nki.isa.get_nc_sub_version", "0.5"),
        ("nki.language.float8_e8m0fnu", "0.5"),
        ("nki.language.tile_size.psum_num_banks", "0.5"),
        ("nki.isa.topk", "0.6"),
        ("nki.isa.NkiInstruction", "0.6"),
        ("nki.language.fori_loop", "0.6"),
        ("nki.language.while_loop", "0.6"),
        ("nki.collectives.all_gather_v", "0.6"),
    ],
)
def test_a_name_of_a_later_release(name, since, release):
    wanted = named(name)
    for version in ("0.3", "0.4", "0.5", "0.6"):
        release(version)
        if version >= since:
            named(name)
            continue
        with pytest.raises(AttributeError) as caught:
            named(name)
        last = name.rpartition(".")[2]
        assert f"no attribute {last!r} in NKI {version}: it is new in NKI {since}." in str(caught.value)
        assert f"STERNA_NKI_VERSION, which is {version}" in str(caught.value)
    if not isinstance(wanted, int):
        assert named(name) is wanted


def test_names_of_every_release_stay(release):
    """total_available_sbuf_size is deprecated since 0.4 and continues to work."""
    release("0.3")
    for (
        name
    ) in "tile_size.total_available_sbuf_size tile_size.pmax dynamic_range rsqrt float8_e4m3fn NKIObject".split():
        named(f"nki.language.{name}")
    with pytest.raises(AttributeError, match=r"^module 'nki.language' has no attribute 'nothing'$"):
        nl.nothing  # noqa: B018
    with pytest.raises(ImportError, match="fori_loop"):
        exec("from nki.language import fori_loop")


@pytest.mark.parametrize("name", ["tensor_copy_dynamic_src", "tensor_copy_dynamic_dst"])
def test_a_name_that_was_removed(name, release):
    """Notes of 0.4."""
    for version in ("0.4", "0.6"):
        release(version)
        with pytest.raises(
            AttributeError, match=rf"{name}' in NKI {version}: it was removed in NKI 0.4\. Use nki.isa.tensor_copy "
        ):
            getattr(nisa, name)
    release("0.3")
    assert list(inspect.signature(getattr(nisa, name)).parameters) == ["dst", "src", "engine", "name"]


def test_copies_at_an_offset_in_nki_0_3(release):
    release("0.3")

    @nki.jit
    def kernel(x, at):
        tile, start = nl.load(x), nl.load(at)
        out = nl.ndarray((4, 2), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy_dynamic_src(out, tile.ap([[8, 4], [1, 2]], scalar_offset=start, indirect_dim=1))
        result = nl.ndarray((4, 2), nl.float32, buffer=nl.shared_hbm)
        nl.store(result, out)
        return result

    x = np.arange(32, dtype=F32).reshape(4, 8)
    np.testing.assert_array_equal(kernel(x, np.array([[3]], np.int32)), x[:, 3:5])


def test_methods_of_tensors(release, apply):
    """Views came in 0.5; ap, view and reshape are older, and what is built of the newer ones goes on working."""
    x = np.arange(12, dtype=F32).reshape(2, 6)
    release("0.4")
    with pytest.raises(AttributeError, match=r"'NkiTensor' has no attribute 'slice' in NKI 0.4: it is new in NKI 0.5"):
        apply(lambda t: t.slice(1, 0, 2), x)
    np.testing.assert_array_equal(apply(lambda t: nl.copy(nl.expand_dims(t, 1)), x), x[:, None])
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t.reshape(new_shape=(2, 3, 2))), x), x.reshape(2, 3, 2))
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t.ap([[6, 2], [2, 3]])), x), x[:, ::2])
    release("0.5")
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t.slice(1, 0, 2)), x), x[:, :2])
    with pytest.raises(AttributeError, match=r"'NkiInstruction' has no attribute 'depends_on' in NKI 0.5"):
        _depend(apply, x)
    release("0.6")
    assert _depend(apply, x).all()


def _depend(apply, x):
    def body(tile):
        first = nisa.memset(tile, 0.0)
        nisa.memset(tile, 1.0).depends_on(first)
        return tile

    return apply(body, x)


# --- parameters


PARAMETERS = {
    # stubs of the SDK 2.29 (NKI 0.3), 2.30 (0.4), 2.31 (0.5) and 2.32 (0.6)
    ("nki.isa.dma_copy", "0.3"): "dst src oob_mode dge_mode engine name",
    ("nki.isa.dma_copy", "0.4"): "dst src priority oob_mode dge_mode engine name",
    ("nki.isa.dma_transpose", "0.3"): "dst src axes dge_mode oob_mode name",
    ("nki.isa.dma_transpose", "0.4"): "dst src axes priority dge_mode oob_mode name",
    ("nki.isa.dma_compute", "0.3"): "dst srcs reduce_op scales unique_indices name",
    ("nki.isa.dma_compute", "0.4"): "dst srcs reduce_op scales unique_indices oob_mode name",
    ("nki.isa.tensor_scalar_reduce", "0.3"): "dst data op0 operand0 reduce_op reduce_res reverse0 name",
    ("nki.isa.tensor_scalar_reduce", "0.5"): (
        "dst data op0 operand0 reduce_op reduce_res reverse0 reduce_cmd reduce_init name"
    ),
    ("nki.isa.tensor_scalar_reduce", "0.6"): (
        "dst data op0 operand0 reduce_op reduce_res reverse0 reduce_cmd reduce_init reduce_res_negate name"
    ),
    ("nki.isa.nc_matmul", "0.2"): (
        "dst stationary moving is_stationary_onezero is_moving_onezero is_transpose tile_position tile_size perf_mode name"
    ),
    ("nki.collectives.all_reduce", "0.3"): "srcs dsts replica_group op",
    ("nki.collectives.all_reduce", "0.4"): "srcs dsts replica_group op priority",
    ("nki.collectives.all_reduce", "0.5"): "srcs dsts replica_group op priority name",
    ("nki.collectives.rank_id", "0.4"): "",
    ("nki.collectives.rank_id", "0.5"): "name",
}


@pytest.mark.parametrize(("name", "version"), PARAMETERS)
def test_parameters(name, version, release):
    release(version)
    assert list(inspect.signature(named(name)).parameters) == PARAMETERS[name, version].split()


def test_a_parameter_of_a_later_release(release):
    def copies(**options):
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(out, x, **options)
            return out

        return kernel(np.ones((2, 2), F32))

    release("0.3")
    with pytest.raises(
        TypeError, match=r"'priority' in NKI 0.3: it is new in NKI 0.4\. .*STERNA_NKI_VERSION, which is 0.3"
    ):
        copies(priority=1)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'nothing'$"):
        copies(nothing=1)
    assert copies(dge_mode=nisa.dge_mode.swdge).all()


def test_arguments_by_position_have_their_older_places(release):
    """dma_copy(dst, src, oob_mode) in 0.3, (dst, src, priority) since 0.4; a gather outside leaves what is there."""

    def gathers(*options):
        @nki.jit
        def kernel(x, at):
            rows = nl.ndarray((4, 2), nl.float32, buffer=nl.sbuf)
            nisa.memset(rows, -1.0)
            picked = x.ap([[2, 4], [1, 2]], vector_offset=nl.load(at), indirect_dim=0)
            nisa.dma_copy(rows, picked, *options)
            out = nl.ndarray((4, 2), nl.float32, buffer=nl.shared_hbm)
            nl.store(out, rows)
            return out

        return kernel(np.arange(8, dtype=F32).reshape(4, 2), np.array([[0], [9], [2], [3]], np.int32))

    skipped = [[0, 1], [-1, -1], [4, 5], [6, 7]]
    release("0.3")
    assert gathers(nisa.oob_mode.skip).tolist() == skipped
    with pytest.raises(TypeError, match="at most 6 arguments in NKI 0.3, 7 given"):
        gathers(nisa.oob_mode.skip, nisa.dge_mode.unknown, nisa.engine.unknown, None, None)
    release("0.6")
    assert gathers(None, nisa.oob_mode.skip).tolist() == skipped


def test_defaults(release):
    """Stubs: rng and the states of generators chose an engine by themselves before 0.5; reduce_res had to be given before 0.6."""
    for version, default in (("0.4", nisa.engine.unknown), ("0.5", nisa.engine.gpsimd)):
        release(version)
        for function in (nisa.rand_get_state, nisa.rand_set_state):
            assert inspect.signature(function).parameters["engine"].default is default
    release("0.5")
    with pytest.raises(TypeError, match="missing the argument 'reduce_res', which NKI 0.5 asks for"):
        nisa.tensor_scalar_reduce(None, None, nl.add, 1.0, nl.add)
    assert inspect.signature(nisa.rng).parameters["engine"].default is nisa.engine.vector


# --- behaviour


def test_a_lower_rank_of_a_transposed_tile(release, monkeypatch):
    """The guide to 0.4: a 3-D dst against a 4-D src was padded before; since then the ranks must match."""
    monkeypatch.setenv("STERNA_STRICT", "1")

    @nki.jit
    def kernel(x):
        tile = nl.ndarray((4, 1, 6), nl.float32, buffer=nl.sbuf)
        nisa.dma_transpose(dst=tile, src=x, axes=(3, 1, 2, 0))
        out = nl.ndarray((4, 6), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, tile.reshape((4, 6)))
        return out

    x = np.arange(24, dtype=F32).reshape(6, 1, 1, 4)
    release("0.3")
    np.testing.assert_array_equal(kernel(x), x.reshape(6, 4).T)
    release("0.4")
    with pytest.raises(RuleError, match="DT3"):
        kernel(x)


@pytest.mark.parametrize(
    ("shape", "older"), [((16, 2, 128), True), ((8, 2, 128), False), ((16, 2, 64), False), ((4, 4, 64), False)]
)
def test_what_hardware_descriptors_transpose(shape, older, release):
    """Page of dma_transpose: src.shape[0] == 16 and src.shape[-1] % 128 == 0 before 0.6; then 1, 2, 4, 8, 16 and <= 128."""

    @nki.jit
    def kernel(x):
        tile = nl.ndarray(x.shape[::-1], x.dtype, buffer=nl.sbuf)
        nisa.dma_transpose(tile, x, axes=(2, 1, 0), dge_mode=nisa.dge_mode.hwdge)
        out = nl.ndarray(tile.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    x = np.arange(np.prod(shape)).reshape(shape).astype(BF16)
    for version in ("0.3", "0.5", "0.6"):
        release(version)
        if older or version == "0.6":
            np.testing.assert_array_equal(kernel(x), x.transpose(2, 1, 0))
        else:
            with pytest.raises(RuleError, match="NKI1.*before NKI 0.6"):
                kernel(x)


def test_partitions_that_gpsimd_sends(release):
    """Page of sendrecv in 0.3: a multiple of 16 in this mode; notes of 0.4: no longer."""

    @nki.jit
    def kernel(x):
        mine = nl.load(x)
        theirs = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        other = 1 - nl.program_id(0)
        nisa.sendrecv(mine, theirs, other, other, 0, dma_engine=nisa.dma_engine.gpsimd_dma)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0:
            nl.store(out, theirs)
        return out

    release("0.3")
    with pytest.raises(RuleError, match="NKI2.*16 partitions before NKI 0.4"):
        kernel[2](np.ones((8, 2), F32))
    assert kernel[2](np.ones((16, 2), F32)).all()
    release("0.4")
    assert kernel[2](np.ones((8, 2), F32)).all()


@pytest.mark.parametrize("name", ["square", "relu"])
def test_operators_of_tensor_scalar(name, release, apply, monkeypatch):
    """Notes of 0.4: square and relu are accepted as op0 on trn3."""
    monkeypatch.setenv("NKI_NC_VERSION", "gen4")

    def body(tile):
        nisa.tensor_scalar(tile, tile, getattr(nl, name), 0.0)
        return tile

    x = np.array([[-2, 3]], F32)
    release("0.3")
    with pytest.raises(RuleError, match=f"NKI3.*nl.{name} since NKI 0.4"):
        apply(body, x)
    release("0.4")
    assert apply(body, x).tolist() == [[4, 9] if name == "square" else [0, 3]]


@pytest.mark.parametrize("chip", ["gen2", "gen3", "gen4"])
def test_copy_was_lossy(chip, release, apply, monkeypatch):
    """Known issue of 0.3 and 0.4: through float32, which has 24 bits; notes of 0.6: bit-accurate."""
    monkeypatch.setenv("NKI_NC_VERSION", chip)
    x = np.array([[2**24 + 1, 7]], np.int32)
    for version in ("0.3", "0.5"):
        release(version)
        assert apply(nl.copy, x).tolist() == [[2**24, 7]]
    release("0.6")
    assert apply(nl.copy, x).tolist() == x.tolist()


def test_copy_of_psum(release, monkeypatch):
    """The same places: copies from PSUM are not supported before 0.6."""
    monkeypatch.setenv("STERNA_STRICT", "1")

    @nki.jit
    def kernel(x):
        tile = nl.ndarray(x.shape, nl.float32, buffer=nl.psum)
        nisa.tensor_copy(tile, nl.load(x))
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(tile))
        return out

    release("0.5")
    with pytest.raises(RuleError, match="NKI4"):
        kernel(np.ones((2, 2), F32))
    release("0.6")
    assert kernel(np.ones((2, 2), F32)).all()


def test_rsqrt_moved_to_gpsimd(release, apply):
    """Guide to 0.5: on GpSimd, and no longer from PSUM; before, the scalar engine's activation."""

    def from_psum(tile):
        made = nl.ndarray(tile.shape, nl.float32, buffer=nl.psum)
        nisa.tensor_copy(made, tile)
        return nl.rsqrt(made)

    x = np.array([[4, 16, 0.25]], F32)
    for version in ("0.4", "0.5", "0.6"):
        release(version)
        np.testing.assert_allclose(apply(nl.rsqrt, x), [[0.5, 0.25, 2]], rtol=1e-6)
        np.testing.assert_allclose(apply(lambda t: _activated(t, nl.rsqrt), x), [[0.5, 0.25, 2]], rtol=1e-6)
        if version == "0.4":
            np.testing.assert_allclose(apply(from_psum, x), [[0.5, 0.25, 2]], rtol=1e-6)
        else:
            with pytest.raises(RuleError, match="PSUM"):
                apply(from_psum, x)


def _activated(tile, op):
    nisa.activation(tile, op, tile)
    return tile


def test_dynamic_range_is_deprecated(release):
    """Notes of 0.6: a deprecation warning; fori_loop has none."""

    def remarks(loop):
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            loop(tile)
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nl.store(out, tile)
            return out

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SternaWarning)
            assert kernel(np.zeros((1, 1), F32)).tolist() == [[3]]
        return [(w.filename, str(w.message)[:6]) for w in caught]

    def add(tile):
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)

    def older(tile):
        for _ in nl.dynamic_range(3):
            add(tile)

    release("0.6")
    assert remarks(older) == [(__file__, "[OLD1]")]
    assert remarks(lambda tile: nl.fori_loop(0, 3, lambda i: add(tile))) == []
    release("0.5")
    assert remarks(older) == []


def test_the_function_of_jit(release):
    """Stubs: jit(func=None, mode='auto') in 0.3, jit(fn=None) since 0.4."""

    def kernel():
        pass

    assert nki.jit(func=kernel).func is nki.jit(fn=kernel).func is nki.jit()(kernel).func is kernel
    assert isinstance(nki.jit(fn=kernel), _kernel.Kernel)
