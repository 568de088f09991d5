# SPDX-License-Identifier: Apache-2.0
"""Faults and remarks: their classes, the line that they name, and the settings that change them."""

import sys
import traceback
import warnings

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import sterna

F32 = np.float32
ONE = np.ones((2, 2), F32)


def here(offset=0):
    return sys._getframe(1).f_lineno + offset


def check_place(error, line):
    """The message and the end of the traceback name this file and line."""
    assert (error.file, error.line) == (__file__, line)
    assert f"{__file__}:{line}" in str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert (last.filename, last.lineno) == (__file__, line)


def caught(kernel, *arrays):
    with pytest.raises(sterna.Fault) as info:
        nki.jit(kernel)(*arrays)
    return info.value


def test_classes():
    assert nisa.NkiValidationError is sterna.RuleError and issubclass(sterna.RuleError, AssertionError)
    assert issubclass(sterna.OutOfBounds, IndexError) and issubclass(sterna.WrongType, TypeError)
    assert issubclass(sterna.BadInput, ValueError) and issubclass(sterna.NotImplementedFault, NotImplementedError)
    assert issubclass(sterna.SternaWarning, UserWarning)


def test_a_fault_survives_pickling():
    import pickle

    error = caught(lambda x: nisa.tensor_copy(x, x), ONE)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.rule, again.line) == (type(error), str(error), error.rule, error.line)


LINES = {}


def recording_fault(x):
    LINES["recording"] = here(1)
    nisa.tensor_tensor(nl.load(x), nl.load(x), x, nl.add)


def language_fault(x):
    LINES["language"] = here(1)
    nl.sum(nl.load(x.reshape((1, 2, 2))), axis=1)


def index_fault(x):
    LINES["index"] = here(1)
    x[5]


def view_fault(x):
    LINES["view"] = here(1)
    x.reshape((5, 5))


def tensor_fault(x):
    LINES["tensor"] = here(1)
    nl.ndarray((200, 1), nl.float32)


def flush_fault(x):
    t = nl.ndarray((2, 2), nl.float32, name="empty")
    LINES["flush"] = here(1)
    nisa.tensor_scalar(t, t, nl.add, 1.0)
    nl.load(x)


def print_fault(x):
    t = nl.ndarray((2, 2), nl.float32)
    LINES["print"] = here(1)
    nl.add(t, 1.0)
    print(x)


def nested_fault(x):
    helper(x)


def helper(x):
    t = nl.ndarray((2, 2), nl.float32)
    LINES["nested"] = here(1)
    nl.add(t, 1.0)


def later_fault(x):
    LINES["later"] = here(1)
    nisa.rng(nl.load(x))


def result_fault(x):
    LINES["result"] = here(1)
    return nl.ndarray((2, 2), nl.float32, buffer=nl.shared_hbm)


KERNELS = {f.__name__.removesuffix("_fault"): f for f in (recording_fault, language_fault, index_fault, view_fault, tensor_fault,
                                                         flush_fault, print_fault, nested_fault, later_fault, result_fault)}  # fmt: skip


@pytest.mark.parametrize("eager", ["0", "1"])
@pytest.mark.parametrize("kind", KERNELS)
def test_a_fault_names_the_line_of_the_kernel(kind, eager, monkeypatch):
    monkeypatch.setenv("STERNA_EAGER", eager)
    error = caught(KERNELS[kind], ONE)
    check_place(error, LINES[kind])


def test_the_traceback_of_a_flush_has_the_whole_way_to_the_line():
    error = caught(nested_fault, ONE)
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-2:] == ["nested_fault", "helper"] and error.function == "helper"


def test_eager_stops_at_the_instruction(monkeypatch):
    reached = []

    def kernel(x):
        nl.add(nl.ndarray((2, 2), nl.float32), 1.0)
        reached.append(1)

    caught(kernel, ONE)
    assert reached == [1]  # recorded first, executed at the end
    monkeypatch.setenv("STERNA_EAGER", "1")
    reached.clear()
    caught(kernel, ONE)
    assert reached == []


def test_messages_name_tensor_index_and_advice():
    def kernel(x):
        t = nl.ndarray((4, 8), nl.float32, name="acc")
        nisa.memset(t[:, 0:3], 0.0)
        nl.add(t, 1.0)

    message = str(caught(kernel, ONE))
    for part in ("UNINIT1", "'acc'", "[4, 8]", "partition 0", "element 3", "STERNA_UNINIT"):
        assert part in message


@pytest.mark.parametrize(("setting", "result", "integer"), [("warn", np.nan, 5), ("fill", np.nan, 5), ("zero", 1, 1)])
def test_uninitialised_reads_by_setting(setting, result, integer, monkeypatch):
    @nki.jit
    def kernel(x):
        floats = nl.add(nl.ndarray((2, 2), nl.float32), 1.0)
        whole = nl.add(nl.ndarray((2, 2), nl.int32), 1)
        out, other = (nl.ndarray((2, 2), t.dtype, buffer=nl.shared_hbm) for t in (floats, whole))
        nl.store(out, floats)
        nl.store(other, whole)
        return out, other

    monkeypatch.setenv("STERNA_UNINIT", setting)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        floats, whole = kernel(ONE)
    assert len([w for w in seen if "UNINIT1" in str(w.message)]) == (0 if setting == "fill" else 2)
    np.testing.assert_array_equal(floats, np.full((2, 2), result, F32))
    np.testing.assert_array_equal(whole, np.full((2, 2), integer, np.int32))  # the fill value of integers is 4


def test_a_copy_of_undefined_bytes_is_no_fault_and_stays_undefined():
    def kernel(x):
        t = nl.copy(nl.ndarray((2, 2), nl.float32))
        LINES["copy"] = here(1)
        nl.add(t, 1.0)

    error = caught(kernel, ONE)
    assert error.rule == "UNINIT1" and error.line == LINES["copy"]


@pytest.mark.parametrize("returned", [True, False])
@pytest.mark.parametrize("setting", ["error", "warn", "fill", "zero"])
def test_an_argument_written_from_undefined_bytes(setting, returned, monkeypatch):
    """The write has happened; the undefined bytes follow the setting, whether the argument is a result or not."""

    @nki.jit
    def kernel(x):
        t = nl.ndarray((2, 4), nl.float32)
        nisa.memset(t[:, 0:2], 1.0)
        nisa.dma_copy(x, t)
        return x if returned else None

    monkeypatch.setenv("STERNA_UNINIT", setting)
    x = np.zeros((2, 4), F32)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if setting == "error":
            with pytest.raises(
                sterna.RuleError, match=r"OUT2.*'x'.* at index \[0, 2\].*from bytes that were never written"
            ):
                kernel(x)
        else:
            kernel(x)
    assert len([w for w in seen if "never written" in str(w.message)]) == (setting in ("warn", "zero"))
    np.testing.assert_array_equal(x[:, 0:2], np.ones((2, 2)))
    if setting != "error":
        np.testing.assert_array_equal(x[:, 2:4], np.zeros((2, 2)))


@pytest.mark.parametrize("setting", ["error", "fill"])
def test_undefined_bytes_in_a_register_or_address_are_always_a_fault(setting, monkeypatch):
    monkeypatch.setenv("STERNA_UNINIT", setting)
    with pytest.raises(sterna.Fault):
        nki.jit(lambda x: nisa.register_alloc(nl.ndarray((1, 1), nl.int32)) and None)(ONE)
    with pytest.raises(sterna.Fault):
        nki.jit(lambda x: nl.load(x[nl.ndarray((1, 1), nl.int32)]) and None)(ONE)


def test_wrong_settings_are_faults(monkeypatch):
    monkeypatch.setenv("STERNA_UNINIT", "maybe")
    with pytest.raises(sterna.BadInput, match="STERNA_UNINIT"):
        nki.jit(lambda x: None)(ONE)


def test_unknown_keywords_and_missing_arguments():
    def check(f, match):
        with pytest.raises(TypeError, match=match):
            nki.jit(f)(ONE)

    check(lambda x: nisa.memset(nl.load(x), value=1.0, colour=2), "colour")
    check(lambda x: nisa.memset(nl.load(x)), "value")
    check(lambda x: nisa.memset(nl.load(x), 1.0, value=2.0), "multiple values")
    check(lambda x: nisa.memset(*[nl.load(x)] * 9), "at most")
    check(lambda x: nisa.memset(3, 1.0), r"\[ARG8\] 'dst' must be a tensor, not int\. \(.*test_faults\.py:\d+\)")
    check(lambda x: nl.load(x, mask=None), "mask")
    check(lambda x, y: None, "y")


def test_numbers_that_do_not_fit():
    with pytest.raises(ValueError, match="no meaning"):
        nki.jit(lambda x: nisa.memset(nl.load(x), 1.0, engine=77))(ONE)
    with pytest.raises(sterna.BadInput, match="channel_multiplier"):
        nki.jit(lambda x: nisa.iota(nl.load(x), [[1, 2]], channel_multiplier=1 << 40))(ONE)


def test_a_remark_is_shown_once_a_line_with_its_place():
    def kernel(x):
        t = nl.load(x)
        for _ in range(3):
            t[...] = 1.0
        t[...] = 2.0

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(2):
            nki.jit(kernel)(ONE)
    found = [w for w in seen if issubclass(w.category, sterna.SternaWarning)]
    first = kernel.__code__.co_firstlineno
    assert [(w.filename, w.lineno) for w in found] == [(__file__, first + 3), (__file__, first + 4)]


def test_a_remark_may_be_an_error():
    def kernel(x):
        t = nl.load(x)
        t[...] = 1.0

    with warnings.catch_warnings():
        warnings.simplefilter("error", sterna.SternaWarning)
        with pytest.raises(sterna.SternaWarning, match="COMPAT2"):
            nki.jit(kernel)(ONE)
    nki.jit(kernel)(ONE)


def test_accumulating_into_psum_that_no_matmul_wrote_is_remarked():
    @nki.jit
    def kernel(x):
        a = nl.load(x)
        psum = nl.zeros((2, 2), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(psum, a, a, accumulate=True)
        nisa.nc_matmul(psum, a, a, accumulate=True)
        out = nl.ndarray((2, 2), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, psum)
        return out

    with pytest.warns(sterna.SternaWarning, match="MM10"):
        np.testing.assert_array_equal(kernel(ONE), np.full((2, 2), 4, F32))


def test_precise_fp_is_ignored_with_one_remark(python):
    script = (
        "import numpy as np, nki, nki.language as nl\n"
        "k = nki.jit(lambda x: x)\n"
        "for _ in range(3): k(np.ones((1, 1), np.float32))\n"
    )
    assert python(script, NKI_PRECISE_FP="0").stderr.count("ENV2") == 1
    assert "ENV2" not in python(script).stderr


REMOVED = ["baremetal", "benchmark", "profile", "simulate_kernel"]


@pytest.mark.parametrize("name", REMOVED)
def test_removed_names_say_what_to_use(name):
    with pytest.raises(NotImplementedError, match="removed in NKI 0.2"):
        getattr(nki, name)
    with pytest.raises(AttributeError):
        nki.nothing  # noqa: B018


def test_replica_group():
    assert nki.collectives.ReplicaGroup([[0, 1], (2, 3)]).groups == [[0, 1], [2, 3]]


def test_a_fault_leaves_the_next_call_untouched():
    caught(flush_fault, ONE)
    caught(recording_fault, ONE)
    with pytest.raises(ZeroDivisionError):
        nki.jit(lambda x: 1 / 0)(ONE)
    np.testing.assert_array_equal(nki.jit(lambda x: nl.ones((1, 1), nl.float32, buffer=nl.shared_hbm))(ONE), [[1]])
