# SPDX-License-Identifier: Apache-2.0
"""`sterna run` from outside: the program is left alone, the report is on stderr, exit statuses are as documented."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import sterna
from sterna import options, run

COMMAND = [sys.executable, "-m", "sterna.run"]
KERNEL = """\
import numpy as np
import nki
import nki.language as nl


@nki.jit
def double(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    nl.store(out, nl.add(tile, tile))
    return out


def call(columns=64):
    return double(np.ones((128, columns), np.float32))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


def sterna_run(folder, *words, command=None, **changes):
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("STERNA_STRICT", "NEURON_", "NKI_"))
    }
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment.update(changes)
    return subprocess.run(
        [*(command or COMMAND), *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def script(folder, text, name="script.py"):
    (folder / name).write_text(text)
    return name


def test_the_report_is_on_stderr_and_stdout_is_the_programs(folder):
    script(folder, "from kernel import call\nprint(call().sum())\ncall()\ncall(32)\n")
    done = sterna_run(folder, "script.py")
    assert (done.returncode, done.stdout) == (0, "16384.0\n")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("sterna: target trn2, NKI 0.6: 2 kernels, 3 calls, ")
    assert lines[2].startswith("double(float32[128, 64])") and lines[2].endswith(" 2 calls")
    assert "double(float32[128, 32])" in done.stderr
    assert "kernel.py:9  tile = nl.load(a)" in done.stderr
    assert "\x1b" not in done.stderr


def test_the_command_in_cpp_does_the_same(folder):
    beside = pathlib.Path(sys.executable).parent / "sterna"
    found = str(beside) if beside.exists() else shutil.which("sterna")
    assert found is not None, "the command is part of the package, and it is not installed: run `make build`"
    script(folder, "from kernel import call\ncall()\nraise SystemExit(5)\n")
    done = sterna_run(folder, "run", "script.py", command=[found], STERNA_PYTHON=sys.executable)
    assert done.returncode == 5 and done.stderr.startswith("sterna: target trn2")


@pytest.mark.parametrize(
    ("end", "status"), [("", 0), ("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('no')", 1), ("1 / 0", 1)]
)
def test_the_exit_status_is_the_programs(folder, end, status):
    script(folder, f"import sys\nfrom kernel import call\ncall()\n{end}\n")
    done = sterna_run(folder, "script.py")
    assert done.returncode == status
    assert "double(float32[128, 64])" in done.stderr


def test_what_sys_exit_says_comes_before_the_report(folder):
    script(folder, "import sys\nsys.exit('no more')\n")
    assert sterna_run(folder, "script.py").stderr == "no more\nsterna: target trn2, NKI 0.6: no kernel was run\n"


def test_a_traceback_is_what_python_prints(folder):
    script(folder, "def f():\n    raise ValueError('bad')\n\n\nf()\n")
    plain = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True)
    done = sterna_run(folder, "--quiet", "script.py")
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)
    assert sterna_run(folder, "script.py").stderr.startswith(plain.stderr)


def test_a_syntax_error_is_what_python_prints(folder):
    script(folder, "x = (1,\n")
    plain = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True)
    done = sterna_run(folder, "--quiet", "script.py")
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)


def test_the_programs_own_hook_gets_the_exception(folder):
    script(
        folder,
        "import sys\nsys.excepthook = lambda kind, value, tb: print('mine', value, tb.tb_lineno)\nraise KeyError(3)\n",
    )
    done = sterna_run(folder, "--quiet", "script.py")
    assert (done.returncode, done.stdout, done.stderr) == (1, "mine 3 3\n", "")


SHOW = "import sys\nprint(__name__, sys.argv, sys.path[0], sys.modules['__main__'].__dict__ is globals(), __file__)\n"


def test_a_script_sees_what_python_gives_it(folder):
    (folder / "deep").mkdir()
    script(folder / "deep", SHOW)
    plain = subprocess.run(
        [sys.executable, "deep/script.py", "--trace", "x"], cwd=folder, capture_output=True, text=True
    )
    done = sterna_run(folder, "--quiet", "deep/script.py", "--trace", "x")
    assert done.stdout == plain.stdout and "--trace" in done.stdout


def test_a_module_sees_what_python_gives_it(folder):
    (folder / "package").mkdir()
    (folder / "package/__init__.py").touch()
    (folder / "package/__main__.py").write_text(SHOW)
    plain = subprocess.run([sys.executable, "-m", "package", "-v"], cwd=folder, capture_output=True, text=True)
    assert sterna_run(folder, "--quiet", "-m", "package", "-v").stdout == plain.stdout


def test_code_and_stdin(folder):
    done = sterna_run(folder, "--quiet", "-c", "import sys; print(__name__, sys.argv)", "-x")
    assert done.stdout == "__main__ ['-c', '-x']\n"
    done = subprocess.run(
        [*COMMAND, "--quiet", "-", "a"], cwd=folder, input="import sys; print(sys.argv)", capture_output=True, text=True
    )
    assert done.stdout == "['-', 'a']\n"


def test_pytest_runs_with_its_own_status(folder):
    script(folder, "from kernel import call\ndef test_good():\n    assert call().sum() == 16384\n", "test_good.py")
    script(folder, "def test_bad():\n    assert False\n", "test_bad.py")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = sterna_run(folder, *words, "test_good.py")
    assert done.returncode == 0 and "1 passed" in done.stdout and "double(float32[128, 64])" in done.stderr
    done = sterna_run(folder, *words)
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout


def test_a_module_that_is_not_there(folder):
    done = sterna_run(folder, "--quiet", "-m", "no_such_module")
    assert (done.returncode, done.stderr) == (1, "sterna run: No module named no_such_module\n")


def test_json_replaces_the_text_or_goes_to_a_file(folder):
    script(folder, "from kernel import call\ncall()\ncall()\nraise SystemExit(4)\n")
    doc = json.loads(sterna_run(folder, "--json", "script.py").stderr)
    assert (doc["schema"], doc["schema_version"], doc["target"], doc["exit_status"]) == ("sterna.run", 1, "trn2", 4)
    (kernel,) = doc["kernels"]
    assert (kernel["name"], kernel["calls"], kernel["arguments"]) == ("double", 2, "float32[128, 64]")
    assert kernel["predicted"]["time_us"] > 0 and kernel["predicted"]["hbm_read_bytes"] == 128 * 64 * 4
    assert kernel["predicted"]["lines"][0]["text"] in KERNEL
    done = sterna_run(folder, "--json=out.json", "script.py")
    assert done.stderr.startswith("sterna: target") and json.loads((folder / "out.json").read_text())["kernels"]


def test_the_target_is_chosen_by_option_then_environment(folder):
    script(folder, "from kernel import call\ncall()\n")
    assert sterna_run(folder, "--target", "trn1", "script.py").stderr.startswith("sterna: target trn1,")
    assert sterna_run(folder, "script.py", NEURON_PLATFORM_TARGET_OVERRIDE="trn3").stderr.startswith(
        "sterna: target trn3,"
    )
    done = sterna_run(folder, "--target=trn1", "script.py", NEURON_PLATFORM_TARGET_OVERRIDE="trn3")
    assert done.stderr.startswith("sterna: target trn1,")


def test_without_timing_calls_are_counted(folder):
    script(folder, "from kernel import call\ncall()\n")
    done = sterna_run(folder, "--no-timing", "script.py")
    assert done.stderr.startswith("sterna: target trn2, NKI 0.6: 1 kernel, 1 call\n") and " us" not in done.stderr


def test_a_prediction_that_is_refused_does_not_end_the_run(folder):
    text = "import numpy as np\nimport nki, nki.language as nl\n"
    text += "@nki.jit\ndef large(a):\n    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n"
    text += (
        "    x, y, z = nl.load(a), nl.load(a), nl.load(a)\n    nl.store(out, nl.add(nl.add(x, y), z))\n    return out\n"
    )
    text += "print(large(np.ones((128, 25000), np.float32)).max())\n"
    script(folder, text)
    done = sterna_run(folder, "script.py")
    assert (done.returncode, done.stdout) == (0, "3.0\n")
    assert "no prediction: [CAP1]" in done.stderr and "script.py:6" in done.stderr


def test_kernels_of_threads_are_seen(folder):
    script(folder, "import threading\nfrom kernel import call\nthreading.Thread(target=call).start()\n")
    assert "1 kernel, 1 call" in sterna_run(folder, "script.py").stderr


def test_a_forked_child_does_not_report(folder):
    script(
        folder, "import os\nfrom kernel import call\ncall()\nchild = os.fork()\nif child:\n    os.waitpid(child, 0)\n"
    )
    assert sterna_run(folder, "script.py").stderr.count("sterna: target") == 1


def test_an_interrupt_ends_as_in_python_and_reports(folder):
    script(folder, "import time\nfrom kernel import call\ncall()\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [*COMMAND, "script.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts what it runs in the background with the interrupt ignored, and the tests may be run so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert stderr.count("KeyboardInterrupt") == 1 and "double(float32[128, 64])" in stderr


# --- usage


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to run"),
        (["--tagret", "trn2", "x.py"], "unknown option --tagret; did you mean --target?"),
        (["--target"], "--target needs CHIP after it"),
        (["--target", "trn9", "kernel.py"], "trn1"),
        (["--quiet=1", "kernel.py"], "--quiet takes no value"),
        (["--threads", "two", "kernel.py"], "--threads takes a whole number, not 'two'"),
        (["--json=", "kernel.py"], "--json= needs FILE after it"),
        (["-m"], "-m needs the name of a module after it"),
        (["no_such.py"], "no file 'no_such.py'"),
        (["--trace", "no/such/folder/x.trace", "kernel.py"], "cannot write there"),
        (["--trace", "x", "--no-timing", "kernel.py"], "--trace needs the prediction"),
    ],
)
def test_a_command_line_that_cannot_be_used(folder, words, said):
    done = sterna_run(folder, *words)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("sterna run: ") and said in done.stderr


def test_help_says_every_option_and_status(folder):
    done = sterna_run(folder, "--help")
    assert done.returncode == 0 and done.stderr == ""
    for option in options.OPTIONS:
        assert option.name in done.stdout
    assert all(f"\n  {status} " in done.stdout for status in (1, 2, 3, 130))


def test_options_end_at_the_program():
    chosen = options.parse(["--quiet", "x.py", "--quiet", "-m"])
    assert (chosen.kind, chosen.program, chosen.arguments, chosen.quiet) == ("script", "x.py", ["--quiet", "-m"], True)
    assert options.parse(["--", "--odd.py"]).program == "--odd.py"


def test_strict_and_threads_reach_the_environment(folder):
    code = "import os; print(os.environ['STERNA_STRICT'], os.environ['STERNA_THREADS'])"
    assert sterna_run(folder, "--strict", "--threads=3", "-c", code).stdout == "1 3\n"


# --- traces


def test_the_names_of_traces():
    assert run.trace_names("out.trace", 0) == []
    assert run.trace_names("out.trace", 1) == ["out.trace"]
    assert run.trace_names("a.b/out.json", 2) == ["a.b/out-1.json", "a.b/out-2.json"]
    assert run.trace_names("out", 2) == ["out-1", "out-2"]


def test_one_trace_for_each_kernel(folder):
    script(folder, "from kernel import call\ncall()\ncall(32)\ncall()\n")
    done = sterna_run(folder, "--trace", "out.json", "script.py")
    assert done.returncode == 0, done.stderr
    assert "trace: out-1.json (double)\ntrace: out-2.json (double)\n" in done.stderr
    events = json.loads((folder / "out-1.json").read_text())["traceEvents"]
    # Two transfers and one addition at least, each with a start and a duration.
    assert sum(event["ph"] == "X" for event in events) >= 3
    assert (folder / "out-2.json").exists() and not (folder / "out.json").exists()


def test_a_binary_trace_reads_back(folder):
    script(folder, "from kernel import call\ncall()\n")
    done = sterna_run(folder, "--trace", "out.trace", "--json", "script.py")
    kernel = json.loads(done.stderr)["kernels"][0]
    assert kernel["trace"] == "out.trace"
    trace = sterna.load_trace(folder / "out.trace")
    assert (trace.program, trace.target, len(trace)) == ("double", "trn2", kernel["predicted"]["instructions"])
    assert trace.total_ns == pytest.approx(kernel["predicted"]["time_us"] * 1000)
    places = [trace.place(site) for site in np.frombuffer(trace.columns["site"], trace.column_types["site"])]
    assert {pathlib.Path(place).name for place in places} == {"kernel.py:9", "kernel.py:10"}


def test_a_trace_that_cannot_be_written_is_said_with_status_3(folder):
    script(folder, "import os\nfrom kernel import call\ncall()\nos.mkdir('out.json')\n")
    done = sterna_run(folder, "--json=out.json", "script.py")
    assert done.returncode == 3 and "sterna run: out.json was not written: Is a directory" in done.stderr
