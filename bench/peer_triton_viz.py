# SPDX-License-Identifier: Apache-2.0
"""triton-viz's NKI interpreter as a peer, in a process of its own.

PEER_TRITON_VIZ names the folder of a clone; the interpreter and its example kernels are imported from there. `Peer` is the side of the
benchmark: it starts this file and asks for one timed repetition at a time. The interpreter needs AWS's `nki` package for its enumerations
only, so that a stand-in of those names is enough.
"""

import enum
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import types

from measure import seconds

NAME = "triton-viz"


class Peer:
    """The other process; None for times when there is no clone or it does not start."""

    def __init__(self):
        self.process = None
        if os.environ.get("PEER_TRITON_VIZ"):
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "STERNA_COMPAT": "off"}
            self.process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )

    def run(self, case):
        """Seconds of one repetition, or None."""
        if self.process is None:
            return None
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            print(f"bench: {NAME} stopped at {case}", file=sys.stderr)
            self.process = None
            return None
        return json.loads(answer)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


# --- the process


def stand_in():
    """Modules `nki`, `nki.language`, `nki.isa` with the names that the interpreter reads before it patches its own functions over them."""
    nki, nl, nisa = (types.ModuleType(n) for n in ("nki", "nki.language", "nki.isa"))
    nki.jit = lambda function=None, **options: function if function else (lambda f: f)
    nki.language, nki.isa, nki.__path__ = nl, nisa, []
    nisa.engine = enum.Enum("engine", "unknown tensor scalar gpsimd dma vector sync", start=0)
    for name in ("unknown", "tensor", "scalar", "gpsimd", "vector"):
        setattr(nisa, name + "_engine", nisa.engine[name])
    nisa.reduce_cmd = enum.Enum("reduce_cmd", "idle reset reduce reset_reduce load_reduce", start=0)
    nisa.dge_mode = enum.Enum("dge_mode", "unknown swdge hwdge none", start=0)
    nisa.oob_mode = enum.Enum("oob_mode", "error skip", start=0)
    nisa.matmul_perf_mode = enum.Enum("matmul_perf_mode", "none double_row", start=0)
    nisa.nc_version = enum.IntEnum("nc_version", "gen2 gen3 gen4", start=2)
    nisa.get_nc_version = lambda: nisa.nc_version.gen3
    nl.shared_hbm = nl.private_hbm = "hbm"
    for name in "bool_ int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 float8_e4m3 float8_e5m2".split():
        setattr(nl, name, name)
    sys.modules.update({"nki": nki, "nki.language": nl, "nki.isa": nisa})


def interpreter(clone):
    """The interpreter's module alone: its packages are empty shells, so that Triton and PyTorch are not needed."""
    import numpy as np

    for name in ("triton_viz", "triton_viz.core", "triton_viz.core.simulation", "triton_viz.utils"):
        shell = types.ModuleType(name)
        shell.__path__ = [os.path.join(clone, *name.split("."))]
        sys.modules[name] = shell
    # It counts the parameters of NumPy's functions, which older versions do not tell.
    signature = inspect.signature
    inspect.signature = lambda f, *a, **k: (
        types.SimpleNamespace(parameters=range(f.nin)) if isinstance(f, np.ufunc) else signature(f, *a, **k)
    )
    found = importlib.import_module("triton_viz.core.simulation.nki_beta2")
    found.nki_patch_lang()
    sys.modules.setdefault("torch", types.ModuleType("torch"))  # the examples import it for their own main only
    return found


def example(clone, name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(clone, "examples", "nki_beta2", name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small_ops(x, out, rounds):
    """The kernel of small_ops.py in this interpreter's dialect: the output is an argument."""
    import nki.isa as nisa
    import nki.language as nl

    a = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    b = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=x)
    for i in nl.affine_range(rounds):
        s = (i % 4) * 16
        nisa.tensor_tensor(dst=b[:, s : s + 16], data1=a[:, s : s + 16], data2=b[:, s : s + 16], op=nl.add)
        nisa.activation(dst=b[:, s : s + 16], op=nl.exp, data=b[:, s : s + 16], scale=-1.0)
        nisa.tensor_scalar(dst=b[:, s : s + 16], data=b[:, s : s + 16], op0=nl.multiply, operand0=0.5)
        nisa.tensor_copy(dst=b[:, s : s + 16], src=b[:, s : s + 16])
    nisa.dma_copy(dst=out, src=b)


def make_cases(clone):
    """Case name -> (kernel, arguments)."""
    import numpy as np

    rng = np.random.default_rng(0)
    heads, length, dim = 4, 2048, 128
    q, k, v = (rng.standard_normal((1, heads, length, dim), np.float32) for _ in range(3))
    x = rng.standard_normal((128, 64), np.float32)
    attention = example(clone, "tiled_attention").tiled_attention_kernel
    return {
        "attention": (attention, [q, k, v, np.zeros_like(q), 1, heads, heads, heads, length, length, dim, dim]),
        "small_ops": (small_ops, [x, np.zeros_like(x), 25000]),
    }


def serve():
    clone = os.environ["PEER_TRITON_VIZ"]
    stand_in()
    simulator = interpreter(clone)
    cases = make_cases(clone)
    for line in sys.stdin:
        kernel, arguments = cases[line.strip()]
        fresh = [a.copy() if hasattr(a, "copy") else a for a in arguments]  # arguments are written in place
        run = simulator.NKIBeta2InterpretedFunction(kernel).run
        print(json.dumps(seconds(lambda run=run, fresh=fresh: run(*fresh, grid=(1,)))), flush=True)


if __name__ == "__main__":
    serve()
