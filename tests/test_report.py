# SPDX-License-Identifier: Apache-2.0
"""The report of `sterna run` as text: figures, widths, what is left out. Input is plain data; nothing is run."""

import json

import pytest

from sterna import report


def prediction(**changes):
    out = {
        "time_us": 244.2,
        "kernel_us": 230.0,
        "bound": "tensor",
        "instructions": 1234,
        "engines": {name: {"busy_us": 1.0, "active": 0.5, "instructions": 1} for name in report.ENGINES},
        "critical_path": {"tensor": 1.0},
        "waits": {},
        "lines": [
            {
                "file": "/srv/me/k.py",
                "line": n,
                "function": "k",
                "time_us": 1.0,
                "share": n / 10,
                "text": f"line {n}()",
            }
            for n in (6, 3, 1, 0)
        ],
        "dma_bytes": 6 * 2**20,
        "hbm_read_bytes": 4 * 2**20,
        "hbm_written_bytes": 2 * 2**20,
        "multiply_adds": 0,
        "sbuf_peak_bytes": 6144,
        "sbuf_capacity_bytes": 196608,
        "psum_peak_bytes": 0,
        "psum_capacity_bytes": 16384,
        "uncertain": [],
        "notes": [],
    }
    return {**out, **changes}


def kernel(name="k", calls=1, predicted=None, refused=None, **changes):
    out = {
        "name": name,
        "qualname": name,
        "file": "/srv/me/k.py",
        "line": 1,
        "arguments": "float32[128, 512]",
        "target": "trn2",
        "nki": "0.6",
        "calls": calls,
        "depends_on_data": False,
        "warnings": 0,
        "host_s": {"record": 0.0, "execute": 0.0, "predict": 0.0},
        "refused": refused,
        "predicted": predicted if predicted or refused else prediction(),
    }
    return {**out, **changes}


def text(*kernels, **options):
    return report.as_text(
        report.document(list(kernels), "trn2", "0.6", "0.1.0", ["x.py"], 0), folder="/srv/me", **options
    )


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (0, "0.000 ns"),
        (0.0125, "12.50 ns"),
        (0.8504, "850.4 ns"),
        (1, "1.000 us"),
        (26.4, "26.40 us"),
        (244.2, "244.2 us"),
        (999.96, "1.000 ms"),
        (28200, "28.20 ms"),
        (1.5e6, "1.500 s"),
        (7.2e9, "7200.0 s"),
    ],
)
def test_times_have_four_figures(us, said):
    assert report.time_text(us) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (512, "512 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (24 * 2**20, "24 MiB"), (2**51, "2048 TiB")],
)
def test_bytes(count, said):
    assert report.bytes_text(count) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "0 %"),
        (0.001, "<1 %"),
        (0.005, "0 %"),
        (0.006, "1 %"),
        (0.984, "98 %"),
        (0.998, "99 %"),
        (1, "100 %"),
        (1.2, "120 %"),
    ],
)
def test_shares_do_not_round_to_nothing_or_all(share, said):
    assert report.percent(share) == said


def test_the_first_line_names_target_and_release():
    assert text().splitlines() == ["sterna: target trn2, NKI 0.6: no kernel was run"]
    first = text(kernel(calls=3), kernel("other")).splitlines()[0]
    assert first == "sterna: target trn2, NKI 0.6: 2 kernels, 4 calls, 976.8 us predicted in all"


def test_a_block_says_everything_once():
    lines = text(kernel(calls=2)).splitlines()
    assert lines[2].startswith("k(float32[128, 512])") and lines[2].endswith("  2 calls")
    assert lines[3] == "  time     244.2 us, bound by tensor, 1,234 instructions"
    assert lines[4] == "  active   tensor 50 %  vector 50 %  scalar 50 %  gpsimd 50 %  sync 50 %  dma 50 %  hbm 50 %"
    assert (
        lines[5]
        == "  memory   DMA 6 MiB; HBM 4 MiB read, 2 MiB written; peak 6 KiB of 192 KiB SBUF, 0 B of 16 KiB PSUM"
    )
    assert lines[6:] == [
        "  lines     60 % k.py:6  line 6()",
        "            30 % k.py:3  line 3()",
        "            10 % k.py:1  line 1()",
    ]


def test_a_time_that_depends_on_data_says_so():
    assert "244.2 us (of the first call; it depends on the data), bound" in text(kernel(depends_on_data=True))


def test_a_refused_prediction_has_its_reason_and_place():
    refused = {
        "kind": "rule broken",
        "rule": "CAP1",
        "message": "Tensor 't' does not fit.",
        "file": "/srv/me/k.py",
        "line": 9,
    }
    said = text(kernel(refused=refused), kernel("other"))
    assert "  time     no prediction: [CAP1] Tensor 't' does not fit. (k.py:9)\n" in said
    assert "1 kernel" not in said and "244.2 us predicted in all" in said


def test_two_cores_have_a_line_each():
    rows = {name: {"busy_us": 1.0, "active": 0.25, "instructions": 1} for name in (*report.ENGINES, "exchange")}
    cores = [{"end_us": us, "engines": {"vector": {**rows["vector"], "active": us / 100}}} for us in (10, 90)]
    lines = text(kernel(predicted=prediction(engines=rows, cores=cores))).splitlines()
    assert lines[4:6] == [
        "  active   tensor 25 %  vector 25 %  scalar 25 %  gpsimd 25 %  sync 25 %  dma 25 %  exchange 25 %",
        "           hbm 25 %  (mean of 2 cores)",
    ]
    assert lines[6:8] == [
        "  core 0   vector 10 %  ends at 10.00 us",
        "  core 1   vector 90 %  ends at 90.00 us",
    ]


def test_nothing_is_wider_than_the_page():
    refused = {
        "kind": "",
        "rule": "CAP1",
        "message": "a tensor does not fit, " * 20,
        "file": "/srv/me/k.py",
        "line": 9,
    }
    wide = kernel("n" * 80, arguments="float32[1, 2], " * 20)
    wide["predicted"]["lines"][0]["text"] = "x = " + "y + " * 60
    for kernels in ([wide, kernel(refused=refused)], [wide] * 12 + [kernel(refused=refused)]):
        assert max(len(line) for line in text(*kernels).splitlines()) <= 100


def test_many_kernels_are_a_table_with_blocks_for_the_slowest():
    kernels = [kernel(f"k{n}", predicted=prediction(time_us=10.0 * n)) for n in range(1, 11)]
    kernels[2]["calls"] = 100
    lines = text(*kernels).splitlines()
    rows = [line.split()[-2] for line in lines[3:13]]
    assert rows == [f"k{n}(float32[128," for n in range(1, 11)]
    blocks = [line.split("(")[0] for line in lines[13:] if line.endswith(("call", "calls")) and "(" in line]
    assert blocks == ["k3", "k10", "k9"]


def test_a_table_has_no_column_of_zeros():
    idle = prediction()
    idle["engines"] = {
        name: {"busy_us": 0, "active": 0.0 if name == "gpsimd" else 0.5, "instructions": 0} for name in report.ENGINES
    }
    header = text(*[kernel(predicted=idle)] * 9).splitlines()[2]
    assert "gpsimd" not in header and "vector" in header


def test_uncertain_numbers_are_counted_once_worst_first():
    numbers = [
        {"key": f"e{n}", "value": f"{n} ns", "trust": "estimated" if n < 4 else "assumed", "source": "guess"}
        for n in range(6)
    ]
    said = text(
        kernel(predicted=prediction(uncertain=numbers, notes=["n"])),
        kernel(predicted=prediction(uncertain=numbers[:2])),
    )
    assert "These predictions use 6 numbers that are not documented (2 assumed, 4 estimated):" in said
    assert "  e4 = 4 ns (assumed)\n  e5 = 5 ns (assumed)\n  e0 = 0 ns (estimated)\n  e1 = 1 ns (estimated)\n" in said
    assert "  2 more and 1 assumption of the model: all with --json; sources with `sterna chip trn2 --sources`" in said


def test_warnings_are_counted():
    assert "2 warnings about these kernels" in text(kernel(warnings=2))
    assert "warning" not in text(kernel())


def test_colour_is_only_there_when_asked_for():
    assert "\x1b" not in text(kernel())
    assert "\x1b[1mk(float32[128, 512])\x1b[0m" in text(kernel(), colour=True)


def test_json_holds_the_data_and_its_version():
    doc = json.loads(report.as_json(report.document([kernel(warnings=2)], "trn2", "0.6", "0.1.0", ["x.py"], 7)))
    assert (doc["schema"], doc["schema_version"], doc["exit_status"], doc["warnings"]) == ("sterna.run", 1, 7, 2)
    assert doc["kernels"][0]["predicted"]["time_us"] == 244.2


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/srv/me/k.py", "k.py"),
        ("/srv/me/a/k.py", "a/k.py"),
        ("/usr/lib/x/y/k.py", ".../y/k.py"),
        ("k.py", "k.py"),
        ("<string>", "<string>"),
    ],
)
def test_paths_are_short(path, shown):
    assert report.shown_path(path, "/srv/me") == shown
