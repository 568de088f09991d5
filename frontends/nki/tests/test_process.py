# SPDX-License-Identifier: Apache-2.0
"""What concerns the whole process: threads, Ctrl-C, settings read at start, the same bytes everywhere."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl

F32 = np.float32


@nki.jit
def mixed(x, w):
    """A little of every engine."""
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x), nl.load(w)
    psum = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
    for _ in range(3):
        nisa.nc_matmul(psum, a, b)
    t = nl.ndarray((128, 512), nl.float32)
    total = nl.ndarray((128, 1), nl.float32)
    nisa.activation(
        t, nl.gelu, psum, scale=0.01, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce
    )
    nisa.tensor_scalar(t, t, nl.subtract, total, op1=nl.multiply, operand1=1.7)
    nl.store(out, nl.softmax(t))
    return out


def inputs(seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((128, 128), dtype=F32), rng.standard_normal((128, 512), dtype=F32)


def test_kernels_called_from_several_threads():
    wants = [mixed(*inputs(i)) for i in range(4)]
    failures = []

    def work(index):
        try:
            for _ in range(10):
                np.testing.assert_array_equal(mixed(*inputs(index)), wants[index])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_thread_does_not_see_the_recording_of_another():
    inside, leave = threading.Event(), threading.Event()
    errors = []

    def kernel(x):
        inside.set()
        leave.wait(10)
        return x

    def outside():
        inside.wait(10)
        try:
            nl.ndarray((1, 1), nl.float32)
        except RuntimeError as error:
            errors.append(str(error))
        mixed(*inputs())  # and may run its own meanwhile
        leave.set()

    other = threading.Thread(target=outside)
    other.start()
    nki.jit(kernel)(np.ones((1, 1), F32))
    other.join()
    assert len(errors) == 1 and "no kernel" in errors[0]


HASH = """
import hashlib, sys
sys.path.insert(0, {folder!r})
import test_process as t
print(hashlib.sha256(t.mixed(*t.inputs()).tobytes()).hexdigest())
"""


def digest(**environment):
    script = HASH.format(folder=os.path.dirname(os.path.abspath(__file__)))
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_the_same_bytes_with_any_number_of_threads_and_any_vector_unit():
    want, _ = digest(STERNA_THREADS="1")
    assert len(want) == 64
    for threads in ("2", "7"):
        assert digest(STERNA_THREADS=threads)[0] == want
    for simd in ("scalar", "avx2", "avx512", "neon"):
        got, errors = digest(STERNA_SIMD=simd, STERNA_THREADS="2")
        assert got == want, simd
        assert errors == "" or "not available" in errors


LONG = """
import numpy as np, signal, time
import nki, nki.isa as nisa, nki.language as nl

signal.signal(signal.SIGINT, signal.default_int_handler)

@nki.jit
def long(x):
    a = nl.load(x)
    big = nl.ndarray((128, 4096), nl.float32)
    nisa.memset(big, 1.0)
    {loop}
    return x

@nki.jit
def short(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.load(x), 1.0))
    return out

x = np.ones((128, 128), np.float32)
short(x)
print("ready", flush=True)
try:
    long(x)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", flush=True)
assert (short(x) == 2).all()
print("usable", flush=True)
"""
LOOPS = {
    "instructions": "for _ in range(200): pass\n    for _ in nl.dynamic_range(1 << 30): nisa.activation(big, nl.exp, big, scale=0.0)",
    "an empty loop": "for _ in nl.dynamic_range(1 << 30): pass",
    "a loop without end": "nl.while_loop(1, lambda condition: condition)",
}


@pytest.mark.parametrize("loop", LOOPS)
def test_ctrl_c_within_a_second(loop):
    process = subprocess.Popen(
        [sys.executable, "-c", LONG.format(loop=LOOPS[loop])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        line = process.stdout.readline()
        waited = time.monotonic() - start
        assert line == "interrupted\n", process.stderr.read()
        assert process.stdout.readline() == "usable\n", process.stderr.read()
        assert process.wait(10) == 0
        assert waited < 1
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_while_python_records(python):
    script = """
import numpy as np, nki, nki.language as nl
def kernel(x):
    raise KeyboardInterrupt
try:
    nki.jit(kernel)(np.ones((1, 1), np.float32))
except KeyboardInterrupt:
    pass
print(nki.jit(lambda x: x)(np.ones((1, 1), np.float32)))
"""
    done = python(script)
    assert done.stdout.strip() == "[[1.]]", done.stderr


def test_a_forked_child_may_call_kernels(python):
    script = """
import os, numpy as np, nki, nki.language as nl
k = nki.jit(lambda x: nl.ones((128, 512), nl.float32, buffer=nl.shared_hbm))
k(np.ones((1, 1), np.float32))
pid = os.fork()
if pid == 0:
    k(np.ones((1, 1), np.float32))
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = python(script)
    assert done.stdout.strip() == "7", done.stderr


def test_memory_does_not_grow_with_calls():
    import gc
    import resource

    for _ in range(20):
        mixed(*inputs())
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    x, w = inputs()
    for _ in range(200):
        mixed(x, w)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000  # KiB; one call's tensors are about a megabyte
