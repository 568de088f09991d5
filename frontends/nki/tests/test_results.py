# SPDX-License-Identifier: Apache-2.0
"""Arrays that come out of a kernel: their places, shapes and aliases, and what is no result."""

import collections

import numpy as np
import pytest

import nki
import nki.language as nl
from sterna import RuleError, SternaWarning

F32 = np.float32


def test_results_keep_their_places():
    Pair = collections.namedtuple("Pair", "a b")

    @nki.jit
    def kernel(x, form):
        made = []
        for i in range(3):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.add(nl.load(x), float(i)))
            made.append(out)
        return form(made)

    x = np.zeros((1, 2), F32)
    got = kernel(x, lambda m: m)
    assert type(got) is tuple and [g[0, 0] for g in got] == [0, 1, 2]
    got = kernel(x, lambda m: (m[2], [m[0], None], {"k": m[1]}))
    assert got[0][0, 0] == 2 and got[1][0][0, 0] == 0 and got[1][1] is None and got[2]["k"][0, 0] == 1
    got = kernel(x, lambda m: Pair(m[1], m[0]))
    assert type(got) is Pair and got.a[0, 0] == 1
    assert kernel(x, lambda m: None) is None and kernel(x, lambda m: []) == ()


def test_a_result_given_twice_is_one_array():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return out, out, out.reshape((4, 2))

    x = np.arange(8, dtype=F32).reshape(2, 4)
    a, b, c = kernel(x)
    assert a is b and np.shares_memory(a, c)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(c, x.reshape(4, 2))


def test_a_result_in_another_shape():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, 6), x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return out.reshape((3, 4)), x.reshape((12,))

    x = np.arange(12, dtype=F32).reshape(2, 6)
    out, same = kernel(x)
    np.testing.assert_array_equal(out, x.reshape(3, 4))
    assert np.shares_memory(same, x) and same.shape == (12,)


WRONG_RESULTS = {
    "OUT1": lambda x: nl.ndarray((2, 2), nl.float32, buffer=nl.shared_hbm),
    "OUT2": lambda x: _half(),
    "OUT3": lambda x: nl.load(x),
    "OUT4": lambda x: nl.zeros((4, 4), nl.float32, buffer=nl.shared_hbm)[0:2],
}


def _half():
    out = nl.ndarray((4, 2), nl.float32, buffer=nl.shared_hbm)
    nl.store(out[0:2], 1.0)
    return out


@pytest.mark.parametrize("rule", WRONG_RESULTS)
def test_wrong_results(rule):
    with pytest.raises(RuleError, match=rule):
        nki.jit(WRONG_RESULTS[rule])(np.ones((2, 2), F32))


def test_a_result_written_in_part_follows_the_switch(monkeypatch):
    with pytest.raises(RuleError, match=r"OUT2.*index \[2, 0\]"):
        nki.jit(lambda x: _half())(np.ones((2, 2), F32))
    monkeypatch.setenv("STERNA_UNINIT", "warn")
    with pytest.warns(SternaWarning, match="UNINIT1"):
        got = nki.jit(lambda x: _half())(np.ones((2, 2), F32))
    np.testing.assert_array_equal(got, [[1, 1], [1, 1], [0, 0], [0, 0]])
    monkeypatch.setenv("STERNA_UNINIT", "fill")
    np.testing.assert_array_equal(nki.jit(lambda x: _half())(np.ones((2, 2), F32)), got)


def test_a_result_never_written_is_a_fault_whatever_the_switch(monkeypatch):
    monkeypatch.setenv("STERNA_UNINIT", "fill")
    with pytest.raises(RuleError, match="OUT1"):
        nki.jit(WRONG_RESULTS["OUT1"])(np.ones((2, 2), F32))


def test_private_hbm_is_accepted_as_a_result_with_a_remark(monkeypatch):
    make = nki.jit(lambda x: nl.ones((2, 2), nl.float32, buffer=nl.hbm))
    with pytest.warns(SternaWarning, match="OUT5"):
        np.testing.assert_array_equal(make(np.ones((1, 1), F32)), np.ones((2, 2), F32))
    monkeypatch.setenv("STERNA_STRICT", "1")
    with pytest.raises(RuleError, match="OUT5"):
        make(np.ones((1, 1), F32))
