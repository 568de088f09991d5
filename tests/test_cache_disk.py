# SPDX-License-Identifier: Apache-2.0
"""The kernel cache on disk: which process finds what another one recorded. docs/decisions/0014-kernel-cache.md."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import nki
import nki.language as nl
import sterna

# A program that runs `kernel` twice over and says what came of it: values as bytes, the predicted time, whether the kernel's Python
# ran, what the cache on disk did. Names in capitals are filled in.
MAIN = """\
import dataclasses, enum, json, sys, warnings
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
import sterna
from sterna import cache_disk
from helpers import scaled

SCALE = 2.0
TABLE = {"factor": 1.0, "used": {"b", "a", "c"}}

class Mode(enum.Enum):
    PLAIN = "plain"
    DOUBLE = "double"

    def factor(self):
        return 2.0 if self is Mode.DOUBLE else 1.0

@dataclasses.dataclass
class Config:
    mode: Mode = Mode.PLAIN
    offset: float = 0.0

def make(factor):
    def inner(a):
        return scaled(a, factor)
    return inner

closed = make(1.0)

def kernel(a, b, config, more=1.0):
    x = closed(scaled(a, SCALE * TABLE["factor"] * more * config.mode.factor()))
    out = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.shared_hbm)
    tile = nl.load(b)
    nl.store(out, nl.add(tile, config.offset))
    nl.store(b, nl.multiply(tile, 3.0))
    return {"x": x, "rest": [out, b]}

def arguments():
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    return a, a + 1, Config()

def entered(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "kernel":
        report["python"] += 1

report = {"python": 0, "values": []}

def call():
    given = arguments()
    try:
        got = nki.jit(kernel)(*given)
        arrays = [got["x"], *got["rest"], given[1]]
        report["values"].append([array.tobytes().hex() for array in arrays])
    except Exception as fault:
        report["values"].append(f"{type(fault).__name__}: {fault}")

sys.setprofile(entered)
with warnings.catch_warnings(record=True) as remarks:
    warnings.simplefilter("always")
    call()
    with sterna.profile() as p:
        call()
sys.setprofile(None)
if p.kernels:
    timing = p.kernels[0].timing
    report["time"] = [timing.total_ns, timing.bound, timing.engines, timing.lines, timing.notes, p.kernels[0].warnings]
report["remarks"] = [[str(remark.message), remark.filename, remark.lineno] for remark in remarks]
report["disk"] = vars(cache_disk.counts)
print(json.dumps(report))
"""
HELPERS = """\
import nki.isa as nisa
import nki.language as nl

def unit():
    return 1.0

def scaled(a, factor):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, dtype=a.dtype)
    nisa.dma_copy(tile, a)
    nisa.tensor_scalar(tile, tile, op0=nl.multiply, operand0=factor * unit())
    nisa.dma_copy(out, tile)
    return out
"""


class Folder:
    """A program in a folder, and a cache."""

    def __init__(self, path, cache, made=True):
        self.path, self.cache = path, cache
        if made:
            self.write("main.py", MAIN)
            self.write("helpers.py", HELPERS)

    def write(self, name, text):
        (self.path / name).write_text(text)

    def replace(self, name, old, new):
        text = (self.path / name).read_text()
        assert text.count(old) == 1, (old, text.count(old))
        self.write(name, text.replace(old, new))

    def start(self, seed=0, **environment):
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("STERNA_")},
            "PYTHONHASHSEED": str(seed),
            "PYTHONDONTWRITEBYTECODE": "1",
            "STERNA_CACHE_DIR": str(self.cache),
            **environment,
        }
        command = [sys.executable, str(self.path / "main.py")]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, seed=0, **environment):
        return report_of(self.start(seed, **environment))

    def files(self):
        return sorted(self.cache.glob("*.sternak")) if self.cache.exists() else []


def report_of(process):
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return json.loads(out)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path, tmp_path / "cache")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder after its first process."""
    path = tmp_path_factory.mktemp("recorded")
    folder = Folder(path, path / "cache")
    folder.report = folder.run(seed=1)
    return folder


@pytest.fixture
def filled(recorded, tmp_path):
    """The same, with a cache that the test may change. The sources stay where they are: their folder is in the key."""
    folder = Folder(recorded.path, tmp_path / "copy", made=False)
    shutil.copytree(recorded.cache, folder.cache)
    folder.report = recorded.report
    return folder


def is_hit(report):
    return report["disk"]["hits"] == 2 and report["disk"]["misses"] == 0 and report["python"] == 0


def same(one, two):
    """What a kernel gave: values, remarks, predicted time."""
    return all(one[name] == two[name] for name in ("values", "remarks", "time"))


def test_it_is_off_by_default(folder):
    report = folder.run(STERNA_CACHE_DIR="")
    assert report["disk"] == {"hits": 0, "misses": 0, "written": 0} and report["python"] == 2
    assert not folder.files() and sorted(os.listdir(folder.path)) == ["helpers.py", "main.py"]


def test_the_next_process_runs_it_without_python(filled):
    # The first call is recorded and written; the second, under a profile, finds the file.
    first = filled.report
    assert first["disk"] == {"hits": 1, "misses": 1, "written": 1} and first["python"] == 1
    assert len(filled.files()) == 1
    for seed in (1, 2, 77):
        again = filled.run(seed=seed)
        assert is_hit(again) and again["disk"]["written"] == 0
        assert same(again, first)
    fresh = filled.run(STERNA_CACHE_DIR="")
    assert fresh["python"] == 2 and same(fresh, first)
    expected = [2 * i for i in range(32)]
    assert memoryview(bytes.fromhex(first["values"][0][0])).cast("f").tolist() == expected
    assert memoryview(bytes.fromhex(first["values"][0][3])).cast("f").tolist() == [3 * (i + 1) for i in range(32)]


def test_cache_off_turns_it_off_too(filled):
    report = filled.run(STERNA_CACHE="off")
    assert report["python"] == 2 and report["disk"]["hits"] == 0


# (what changes, file, old text, new text): each is another program, whatever it computes
CHANGES = {
    "global": ("main.py", "SCALE = 2.0", "SCALE = 3.0"),
    "sign of zero": ("main.py", "offset: float = 0.0", "offset: float = -0.0"),
    "table": ("main.py", '"factor": 1.0', '"factor": 4.0'),
    "set": ("main.py", '"b", "a", "c"', '"b", "a", "d"'),
    "closure": ("main.py", "closed = make(1.0)", "closed = make(5.0)"),
    "default": ("main.py", "more=1.0", "more=2.0"),
    "keyword default": ("main.py", "config, more=1.0", "config, *, more=2.0"),
    "code": ("main.py", "nl.add(tile", "nl.subtract(tile"),
    "helper": ("helpers.py", "op0=nl.multiply", "op0=nl.add"),
    "helper's helper": ("helpers.py", "return 1.0", "return 6.0"),
    "method": ("main.py", "return 2.0 if", "return 7.0 if"),
    "method not taken": ("main.py", "else 1.0", "else 8.0"),
    "member": ("main.py", "mode: Mode = Mode.PLAIN", "mode: Mode = Mode.DOUBLE"),
    "value of a member": ("main.py", 'PLAIN = "plain"', 'PLAIN = "other"'),
    "field": ("main.py", "a + 1, Config()", "a + 1, Config(offset=9.0)"),
    "shape": ("main.py", "reshape(4, 8)", "reshape(8, 4)"),
    "type": ("main.py", "dtype=np.float32", "dtype=np.float16"),
    "aliasing": ("main.py", "return a, a + 1", "return a, a"),
    "constant": ("main.py", "nki.jit(kernel)(*given)", "nki.jit(kernel)(*given, 1)"),
    "moved lines": ("main.py", "def kernel(", "\n\ndef kernel("),
    "moved lines of a helper": ("helpers.py", "def unit(", "\n\ndef unit("),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_recording_sees_is_the_key(filled, change):
    name, old, new = CHANGES[change]
    before = (filled.path / name).read_text()
    try:
        filled.replace(name, old, new)
        changed = filled.run()
        fresh = filled.run(STERNA_CACHE_DIR="")
    finally:
        filled.write(name, before)
    assert changed["disk"] == {"hits": 1, "misses": 1, "written": 1} and changed["python"] == 1
    assert same(changed, fresh)
    assert len(filled.files()) == 2
    assert is_hit(filled.run())  # the first one is still there


def test_another_folder_of_sources_is_another_program(filled, folder):
    """The places of faults and remarks hold the path."""
    report = folder.run(STERNA_CACHE_DIR=str(filled.cache))
    assert report["disk"]["misses"] == 1


@pytest.mark.parametrize(
    "setting",
    [
        {"NEURON_PLATFORM_TARGET_OVERRIDE": "trn3"},
        {"STERNA_STRICT": "1"},
        {"STERNA_NKI_VERSION": "0.3"},
        {"STERNA_UNINIT": "warn"},
        {"STERNA_STOCHASTIC_ROUNDING": "7"},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_settings_are_the_key(filled, setting):
    report = filled.run(**setting)
    assert report["disk"]["misses"] >= 1 and report["python"] >= 1
    assert is_hit(filled.run())


def test_the_number_of_threads_is_not(filled):
    assert is_hit(filled.run(STERNA_THREADS="1"))


def test_the_description_of_the_chip_is_the_key(filled, tmp_path):
    hardware = tmp_path / "hardware"
    package = pathlib.Path(sterna.__file__).parent
    shutil.copytree(package / "hardware", hardware)
    file = hardware / "chips" / "trn2.toml"
    file.write_text(file.read_text() + "\n# another description\n")
    os.utime(file, (1, 1))
    assert filled.run(STERNA_HARDWARE=str(hardware))["disk"]["misses"] == 1
    assert is_hit(filled.run(STERNA_HARDWARE=str(hardware)))


def test_another_sterna_is_another_key(filled, tmp_path):
    """The package with one more comment, in front of this one on the path."""
    package = pathlib.Path(sterna.__file__).parent
    shutil.copytree(package, tmp_path / "sterna", symlinks=False, ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "sterna" / "session.py"
    file.write_text(file.read_text() + "\n# another release\n")
    os.utime(file, (1, 1))
    path = os.pathsep.join([str(tmp_path), str(tmp_path / "sterna" / "_names"), *sys.path])
    report = filled.run(PYTHONPATH=path)
    assert report["disk"]["misses"] == 1
    assert is_hit(filled.run(PYTHONPATH=path)) and is_hit(filled.run())


def damage_empty(data):
    return b""


def damage_cut_short(data):
    return data[: len(data) // 2]


def damage_one_byte_of_the_program(data):
    return data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]


def damage_another_form(data):
    return b"sterna kernel of 2031\n" + data


def damage_something_else(data):
    return b"\x00" * 4096


DAMAGE = [
    damage_empty,
    damage_cut_short,
    damage_one_byte_of_the_program,
    damage_another_form,
    damage_something_else,
]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda f: f.__name__)
def test_a_damaged_file_is_written_anew(filled, damage):
    (file,) = filled.files()
    sound = file.read_bytes()
    file.write_bytes(damage(sound))
    report = filled.run()
    assert report["disk"] == {"hits": 1, "misses": 1, "written": 1} and same(report, filled.report)
    assert file.read_bytes() == sound
    assert is_hit(filled.run())


def test_a_file_under_another_name_is_not_taken(filled):
    """Whoever renames files, or finds two keys with one name, gets a recording."""
    (file,) = filled.files()
    report = filled.run(NEURON_PLATFORM_TARGET_OVERRIDE="trn3")
    (other,) = [one for one in filled.files() if one != file]
    shutil.copy(file, other)
    again = filled.run(NEURON_PLATFORM_TARGET_OVERRIDE="trn3")
    assert again["disk"]["written"] == 1 and same(again, report)


def test_a_folder_that_cannot_be_written_costs_one_remark(folder):
    folder.write("cache", "a file where the folder should be")
    report = folder.run()
    remarks = [text for text, _, _ in report["remarks"] if "ENV3" in text]
    assert len(remarks) == 1 and str(folder.cache) in remarks[0]
    assert report["python"] == 2 and len(report["values"][0]) == 4
    assert same({**report, "remarks": 0}, {**folder.run(STERNA_CACHE_DIR=""), "remarks": 0})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_costs_one_remark(folder):
    folder.cache.mkdir(mode=0o500)
    report = folder.run()
    assert sum("ENV3" in text for text, _, _ in report["remarks"]) == 1 and report["python"] == 2


def test_processes_at_the_same_time(folder):
    folder.cache.mkdir()
    reports = [report_of(one) for one in [folder.start(seed) for seed in range(4)]]
    assert all(same(report, reports[0]) for report in reports)
    assert len(folder.files()) == 1 and len(os.listdir(folder.cache)) == 1  # no file is left half-written
    assert is_hit(folder.run())


def test_the_oldest_used_go_first(folder):
    """Programs of 300 kB each where one megabyte is allowed: three fit."""
    folder.replace("main.py", "def kernel(", "LONG = 'TEXT' * 75_000\n\ndef kernel(")
    folder.replace("main.py", "    out = nl.ndarray", "    nl.device_print(LONG, a[0:1, 0:1])\n    out = nl.ndarray")
    folder.replace("main.py", "print(json.dumps(report))", "print('\\n' + json.dumps(report))")

    def run(**setting):
        out, errors = folder.start(STERNA_CACHE_DISK_MB="1", **setting).communicate()
        return json.loads(out.splitlines()[-1])

    keys = [{"STERNA_STOCHASTIC_ROUNDING": str(seed)} for seed in range(4)]
    for key in keys[:3]:
        assert run(**key)["disk"]["written"] == 1
    sizes = [file.stat().st_size for file in folder.files()]
    assert len(sizes) == 3 and min(sizes) > 300_000
    assert is_hit(run(**keys[0]))
    assert run(**keys[3])["disk"]["written"] == 1
    assert len(folder.files()) == 3
    assert [is_hit(run(**keys[i])) for i in (0, 2, 3)] == [True, True, True]
    assert not is_hit(run(**keys[1]))


def test_a_program_larger_than_the_bound_is_not_written(folder):
    assert folder.run(STERNA_CACHE_DISK_MB="0")["disk"]["written"] == 0
    assert not folder.files()


def test_files_that_were_never_renamed_go(folder):
    folder.cache.mkdir()
    old, new, foreign = (folder.cache / name for name in (".a-1-b.tmp", ".c-2-d.tmp", "notes.txt"))
    for file in (old, new, foreign):
        file.write_text("x")
    os.utime(old, (1, 1))
    os.utime(foreign, (1, 1))
    folder.run()
    assert not old.exists() and new.exists() and foreign.exists()


def test_faults_of_the_recording_are_the_same(folder):
    folder.replace("main.py", "nl.add(tile, config.offset)", "nisa.dma_copy(tile, nl.load(a)[:, 0:3])")
    first = folder.run()
    again = folder.run(seed=5)
    assert again["values"] == first["values"] == folder.run(STERNA_CACHE_DIR="")["values"]
    assert "main.py:" in first["values"][0] and not folder.files()


def test_faults_that_depend_on_data_name_the_line(folder):
    folder.replace(
        "main.py",
        '    return {"x"',
        '    row = nl.ndarray((1, 1), dtype=nl.int32)\n    nisa.dma_copy(row, b.view(nl.int32)[0:1, 0:1])\n    return {"x"',
    )
    folder.replace("main.py", '"rest": [out, b]', '"rest": [pick(a, row), b]')
    folder.replace(
        "main.py",
        "def kernel(",
        "def pick(a, row):\n"
        "    out = nl.ndarray((1, 8), dtype=a.dtype, buffer=nl.shared_hbm)\n"
        "    nisa.dma_copy(out, a.ap([[8, 1], [1, 8]], scalar_offset=row, indirect_dim=0))  # here\n"
        "    return out\n\n"
        "def kernel(",
    )
    folder.replace(
        "main.py",
        "    return a, a + 1,",
        "    b = a + 1\n    b.view(np.int32)[0, 0] = int(sys.argv[1]) if sys.argv[1:] else 2\n    return a, b,",
    )
    folder.replace("main.py", "nl.store(b, nl.multiply(tile, 3.0))", "pass")
    good = folder.run()
    assert len(good["values"][0]) == 4, good["values"]
    assert len(folder.files()) == 1
    # The other row lies outside: the same program, and the fault of a fresh recording.
    main = str(folder.path / "main.py")
    reports = []
    for cache in (str(folder.cache), ""):
        environment = {**os.environ, "STERNA_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, main, "99"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        reports.append(json.loads(done.stdout))
    cached, fresh = reports
    assert cached["disk"]["hits"] == 2 and cached["python"] == 0 and fresh["python"] == 2
    line = 1 + (folder.path / "main.py").read_text().splitlines().index(
        "    nisa.dma_copy(out, a.ap([[8, 1], [1, 8]], scalar_offset=row, indirect_dim=0))  # here"
    )
    assert cached["values"] == fresh["values"] and f"main.py:{line})" in cached["values"][0]


def test_remarks_come_again(folder):
    folder.replace("main.py", "nl.add(tile, config.offset)", "nl.divide(tile, tile)")
    first, again = folder.run(), folder.run(seed=3)
    assert is_hit(again) and same(again, first)
    assert any("main.py" in file for _, file, _ in again["remarks"])


UNHASHABLE = {
    "an object": (
        "main.py",
        "SCALE = 2.0",
        "class Two:\n    def __mul__(self, other):\n        return 2.0 * other\nSCALE = Two()",
    ),
    "an array": ("main.py", "SCALE = 2.0", "SCALE = np.float32([[2.0]]).reshape(1, 1)"),
    "a module with state": ("main.py", "    x = closed(", "    import os\n    x = closed("),
    "a print": ("helpers.py", "    tile = nl", "    print(end='')\n    tile = nl"),
    "a key that JSON has not": (
        "main.py",
        'return {"x": x, "rest": [out, b]}',
        'return {2.5: 1, "x": x, "rest": [out, b]}',
    ),
}


@pytest.mark.parametrize("what", UNHASHABLE)
def test_what_cannot_be_hashed_is_not_kept(folder, what):
    name, old, new = UNHASHABLE[what]
    folder.replace(name, old, new)
    report = folder.run()
    assert report["python"] == 2 and report["disk"]["written"] == 0 and not folder.files()


def test_constants_that_the_kernel_makes_are_not_kept(folder):
    """Such a constant is bound to memory of the recording process."""
    folder.replace(
        "main.py",
        "nl.add(tile, config.offset)",
        "nl.add(tile, nl.load(nl.shared_constant(np.full((4, 8), 2.0, np.float32))))",
    )
    first, again = folder.run(), folder.run()
    assert again["python"] == 2 and not folder.files() and same(again, first)


def test_constants_that_the_kernel_makes_are_not_kept_in_memory_either():
    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.add(nl.load(a), nl.load(nl.shared_constant(np.full((2, 4), 2.0, np.float32)))))
        return out

    for turn in range(4):
        assert (kernel(np.full((2, 4), turn, np.float32)) == turn + 2).all()


def test_two_cores(folder):
    folder.replace("main.py", "nki.jit(kernel)(", "nki.jit(kernel)[2](")
    first, again = folder.run(), folder.run(seed=9)
    assert is_hit(again) and same(again, first) and same(first, folder.run(STERNA_CACHE_DIR=""))
