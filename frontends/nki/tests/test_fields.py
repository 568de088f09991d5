# SPDX-License-Identifier: Apache-2.0
"""What the parameters of instructions take, and what they do not."""

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import RuleError

F32 = np.float32


def test_none_is_no_value_of_what_has_no_default():
    """A parameter without a default is given; None stands for the default of those that have one."""

    def select(t, value):
        nisa.affine_select(t, [[1, 4]], 0, t, value)

    refused = {
        "'value'": lambda t: nisa.memset(t, None),
        "'on_false_value'": lambda t: select(t, None),
        "'channel_multiplier'": lambda t: nisa.affine_select(t, [[1, 4]], None, t, 0.0),
        "'pattern'": lambda t: nisa.iota(t, None),
        "'op'": lambda t: nisa.activation(t, None, t),
        "'op0'": lambda t: nisa.tensor_scalar(t, t, None, 1.0),
        "'src'": lambda t: nisa.register_move(nisa.register_alloc(), None),
        "'axis'": lambda t: nisa.tensor_reduce(t[:, 0:1], nl.add, t, None),
        "'cores'": lambda t: nisa.core_barrier(t, None),
    }

    def body(x, name):
        refused[name](nl.load(x))

    for name in refused:
        with pytest.raises(TypeError, match=f"ARG2.*{name} is None.*test_fields.py"):
            nki.jit(body)(np.ones((4, 4), F32), name)


def test_what_is_no_number():
    def refused(error, match, call):
        with pytest.raises(error, match=match):
            nki.jit(lambda x: call(nl.load(x)))(np.ones((4, 4), F32))

    for text in ("3", b"3", bytearray(b"3")):
        refused(TypeError, "'value' must be a number", lambda t, text=text: nisa.memset(t, text))
        refused(TypeError, "'operand0' must be a number", lambda t, text=text: nisa.tensor_scalar(t, t, nl.add, text))
    refused(ValueError, "ARG7.*'value'.*range.*test_fields.py", lambda t: nisa.memset(t, 10**400))
    refused(ValueError, "ARG7.*'pattern' has 5 ", lambda t: nisa.iota(t, [[1, 1]] * 4 + [[1, 4]]))


def test_numbers_that_none_stands_for():
    """priority is 0 to 3, num_valid_indices a number of indices; the core's own number for None is none to give."""

    def gather(count):
        def body(x, index):
            at = nl.ndarray((16, 1), nl.uint16)
            nisa.dma_copy(at, index)
            nisa.local_gather(nl.ndarray((16, 16), nl.float32), nl.load(x), at, num_valid_indices=count)

        nki.jit(body)(np.ones((16, 4), F32), np.zeros((16, 1), np.uint16))

    gather(None)
    gather(16)
    for count in (-1, -3):
        with pytest.raises(ValueError, match=f"ARG7.*'num_valid_indices' is {count}"):
            gather(count)
    with pytest.raises(RuleError, match="GAT6"):
        gather(0)
    for call in (nisa.dma_copy, nisa.dma_transpose):
        with pytest.raises(ValueError, match="ARG7.*'priority' is -1"):
            nki.jit(lambda x, call=call: call(nl.ndarray((4, 4), nl.float32), x, priority=-1))(np.ones((4, 4), F32))


def test_names_and_axes_are_taken_as_python_means_them(apply):
    x = np.arange(32, dtype=np.float32).reshape(4, 8)

    def largest(t):
        out = nl.ndarray((4, 1), nl.float32)
        nisa.tensor_reduce(out, nl.max, t, axis=np.int64(1))  # the stub names nl.max as an operator
        return out

    np.testing.assert_array_equal(apply(largest, x), x.max(1, keepdims=True))
    with pytest.raises(TypeError, match="name"):
        apply(lambda t: nisa.tensor_copy(t, t, name=3), x)


def refused(error, match, call):
    with pytest.raises(error, match=match):
        nki.jit(lambda x: call(nl.load(x)))(np.ones((4, 4), F32))


def test_an_enumeration_takes_its_own_members():
    """ "engine" of a memset is a nki.isa.engine; a number is taken as it is, a member of another enumeration is not."""
    wrong = "'engine' must be a member of nki.isa.engine, not "
    refused(TypeError, wrong + "dge_mode", lambda t: nisa.memset(t, 0.0, engine=nisa.dge_mode.swdge))
    refused(TypeError, wrong + "bool", lambda t: nisa.memset(t, 0.0, engine=True))
    refused(TypeError, wrong + "str", lambda t: nisa.memset(t, 0.0, engine="vector"))
    refused(TypeError, wrong + "float", lambda t: nisa.memset(t, 0.0, engine=5.0))
    refused(TypeError, wrong + "sterna._core.Register", lambda t: nisa.memset(t, 0.0, engine=nisa.register_alloc(5)))
    refused(
        TypeError,
        "'perf_mode' must be a member of nki.isa.matmul_perf_mode, not str",
        lambda t: nisa.nc_matmul(nl.ndarray((4, 4), nl.float32, buffer=nl.psum), t, t, perf_mode="bogus"),
    )
    refused(
        TypeError,
        "'reduce_cmd' must be a member of nki.isa.reduce_cmd, not oob_mode",
        lambda t: nisa.activation(t, nl.exp, t, reduce_cmd=nisa.oob_mode.skip),
    )
    refused(
        ValueError, "ARG7.*'engine' is 77.*nki.isa.engine.*test_fields.py", lambda t: nisa.memset(t, 0.0, engine=77)
    )

    def body(x):
        for right in (nisa.engine.vector, 5, np.int64(5)):
            nisa.memset(nl.load(x), 0.0, engine=right)

    nki.jit(body)(np.ones((4, 4), F32))


def twice(accumulate):
    """A product of ones, then the same with `accumulate`."""

    @nki.jit
    def kernel(x):
        t, sums = nl.load(x), nl.ndarray((4, 4), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(sums, t, t, accumulate=False)
        nisa.nc_matmul(sums, t, t, accumulate=accumulate)
        out = nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(sums))
        return out

    return kernel(np.ones((4, 4), F32))


def test_a_text_or_a_tensor_is_neither_true_nor_false():
    for wrong in ("no", b"", ""):
        refused(
            TypeError, "'reverse0' must be True or False", lambda t, w=wrong: nisa.tensor_scalar(t, t, nl.add, 1.0, w)
        )

    def accumulate(value):
        def body(t):
            nisa.nc_matmul(nl.ndarray((4, 4), nl.float32, buffer=nl.psum), t, t, accumulate=value(t))

        return body

    refused(TypeError, "'accumulate' must be True or False, not str", accumulate(lambda t: "False"))
    refused(TypeError, "'accumulate' must be True or False", accumulate(lambda t: t))
    for wrong in (nl.add, bytearray(b"no"), [1], nisa.register_alloc):
        refused(TypeError, "'accumulate' must be True or False", accumulate(lambda t, w=wrong: w))
    refused(TypeError, "'accumulate' must be True or False", accumulate(lambda t: nisa.register_alloc(1)))
    for given, factor in ((False, 1), (0, 1), (np.bool_(0), 1), (None, 2), (True, 2), (1, 2), (np.bool_(1), 2)):
        np.testing.assert_array_equal(twice(given), np.full((4, 4), 4.0 * factor))


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        (7, ValueError, r"ARG7.*dma_engine.*member of nki\.isa\.dma_engine"),
        (0, ValueError, "SR6.*dma_engine.*gpsimd_dma"),
        (nisa.dge_mode.swdge, TypeError, r"dma_engine.*member of nki\.isa\.dma_engine"),
        (nisa.engine.tensor, TypeError, r"dma_engine.*member of nki\.isa\.dma_engine"),
    ],
)
def test_the_engine_of_sendrecv_is_one_of_two(given, error, match):
    def kernel(x):
        t = nl.load(x)
        nisa.sendrecv(
            t, nl.ndarray((4, 4), nl.float32), 1 - nl.program_id(0), 1 - nl.program_id(0), 0, dma_engine=given
        )

    with pytest.raises(error, match=match):
        nki.jit(kernel)[2](np.ones((4, 4), F32))
