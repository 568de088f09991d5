# SPDX-License-Identifier: Apache-2.0
"""The report of `sterna run` as text and as JSON, from plain data (`KernelProfile.as_dict`). Pure: nothing is read or printed here."""

import json
import os
import textwrap

WIDTH = 100
SCHEMA = 1
#: up to so many kernels each gets a block of its own; more are a table, with blocks for those that take most time
BLOCKS = 8
BLOCKS_BELOW_A_TABLE = 3
LINES = 3
UNCERTAIN = 4

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync", "dma", "hbm")
#: shown in a block where something goes between cores or ranks
EXCHANGE = "exchange"
_TRUST = ("assumed", "estimated", "claimed")


def document(kernels, target, nki, version, command, status, problems=()):
    """What --json writes."""
    return {
        "schema": "sterna.run",
        "schema_version": SCHEMA,
        "sterna": version,
        "target": target,
        "nki": nki,
        "command": command,
        "exit_status": status,
        "warnings": sum(kernel["warnings"] for kernel in kernels),
        "problems": list(problems),
        "kernels": kernels,
    }


def as_json(doc):
    return json.dumps(doc, indent=2, allow_nan=False) + "\n"


def as_text(doc, width=WIDTH, colour=False, folder=None):
    """The report, for people. Files below `folder` are shown relative to it."""
    page = _Page(width, colour, folder)
    kernels = doc["kernels"]
    page.add(page.bold(_head(doc)))
    if len(kernels) > BLOCKS:
        page.add("")
        page.table(kernels)
        shown = sorted(kernels, key=_total_us, reverse=True)[:BLOCKS_BELOW_A_TABLE]
        page.add("", f"The {len(shown)} that take most time:")
    else:
        shown = kernels
    for kernel in shown:
        page.add("")
        page.block(kernel)
    foot = _uncertain(kernels)
    if doc["warnings"]:
        foot.append(
            f"{_counted(doc['warnings'], 'warning')} about these kernels; PYTHONWARNINGS=always shows each of them"
        )
    if foot:
        page.add("", *foot)
    return "\n".join(page.lines) + "\n"


def _head(doc):
    kernels = doc["kernels"]
    head = f"sterna: target {doc['target']}, NKI {doc['nki']}"
    if not kernels:
        return f"{head}: no kernel was run"
    calls = sum(kernel["calls"] for kernel in kernels)
    total = sum(_total_us(kernel) for kernel in kernels)
    counted = f"{_counted(len(kernels), 'kernel')}, {_counted(calls, 'call')}"
    return f"{head}: {counted}" + (f", {time_text(total)} predicted in all" if total else "")


def _total_us(kernel):
    return kernel["calls"] * kernel["predicted"]["time_us"] if kernel["predicted"] else 0


def _active(kernel, engine):
    return kernel["predicted"]["engines"].get(engine, {"active": 0})["active"] if kernel["predicted"] else 0


class _Page:
    def __init__(self, width, colour, folder):
        self.width, self.colour, self.folder = width, colour, folder
        self.lines = []

    def add(self, *lines):
        self.lines.extend(lines)

    def bold(self, text):
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def block(self, kernel):
        calls = _counted(kernel["calls"], "call")
        title = shortened(f"{kernel['name']}({kernel['arguments']})", self.width - len(calls) - 2)
        self.add(f"{self.bold(title)}{' ' * (self.width - len(title) - len(calls))}{calls}")
        if kernel["refused"]:
            self.refusal(kernel["refused"])
        if kernel["predicted"]:
            self.prediction(kernel["predicted"], kernel["depends_on_data"])

    def refusal(self, refused):
        text = "no prediction: " + (f"[{refused['rule']}] " if refused["rule"] else "") + refused["message"]
        if refused["file"]:
            text += f" ({self.place(refused)})"
        self.add(*textwrap.wrap(text, self.width, initial_indent="  time     ", subsequent_indent=" " * 11))

    def prediction(self, p, depends_on_data):
        first = " (of the first call; it depends on the data)" if depends_on_data else ""
        self.add(
            f"  time     {time_text(p['time_us'])}{first}, bound by {p['bound']}, {_counted(p['instructions'], 'instruction')}"
        )
        cores = p.get("cores", ())
        self.active("active", p["engines"], f"(mean of {len(cores)} cores)" if len(cores) > 1 else "")
        if len(cores) > 1:
            for number, core in enumerate(cores):
                self.active(f"core {number}", core["engines"], f"ends at {time_text(core['end_us'])}")
        self.add(
            f"  memory   DMA {bytes_text(p['dma_bytes'])}; "
            f"HBM {bytes_text(p['hbm_read_bytes'])} read, {bytes_text(p['hbm_written_bytes'])} written; "
            f"peak {_peak(p, 'sbuf')} SBUF, {_peak(p, 'psum')} PSUM"
        )
        label = "  lines    "
        for line in p["lines"][:LINES]:
            head = f"{label}{percent(line['share']):>5} {self.place(line)}  "
            self.add((head + shortened(line["text"], self.width - len(head))).rstrip())
            label = " " * 11

    def active(self, label, engines, more):
        names = [*ENGINES[:-1], EXCHANGE, ENGINES[-1]]
        parts = [f"{name} {percent(engines[name]['active'])}" for name in names if name in engines]
        line = f"  {label:<9}"
        for part in filter(None, [*parts, more]):
            if len(line) + len(part) > self.width:
                self.add(line.rstrip())
                line = " " * 11
            line += part + "  "
        self.add(line.rstrip())

    def place(self, at):
        return f"{shown_path(at['file'], self.folder)}:{at['line']}" if at["file"] else "(source not known)"

    def table(self, kernels):
        names = [name for name in ENGINES if any(_active(kernel, name) for kernel in kernels)]
        head = f"{'calls':>6} {'time':>9} {'bound':<8}" + "".join(f"{name:>7}" for name in names) + "  kernel"
        self.add(head)
        for kernel in kernels:
            p = kernel["predicted"]
            if p:
                middle = f"{time_text(p['time_us']):>9} {p['bound']:<8}"
                middle += "".join(f"{percent(_active(kernel, name)):>7}" for name in names)
            elif kernel["refused"]:
                room = 7 * len(names) + 8
                middle = f"{'none:':>9} {shortened(kernel['refused']['message'], room):<{room}}"
            else:
                middle = f"{'-':>9} {'':<{7 * len(names) + 8}}"
            row = f"{kernel['calls']:>6} {middle}  "
            self.add(row + shortened(f"{kernel['name']}({kernel['arguments']})", self.width - len(row)))


def _uncertain(kernels):
    """One line each for the numbers behind the predictions that nobody documented or measured."""
    numbers, notes = {}, []
    for kernel in kernels:
        for number in (kernel["predicted"] or {}).get("uncertain", ()):
            numbers.setdefault((kernel["target"], number["key"]), number)
        for note in (kernel["predicted"] or {}).get("notes", ()):
            if note not in notes:
                notes.append(note)
    if not numbers:
        return []
    trusts = [number["trust"] for number in numbers.values()]
    counts = ", ".join(f"{trusts.count(trust)} {trust}" for trust in _TRUST if trust in trusts)
    out = [
        f"These predictions use {_counted(len(numbers), 'number')} that {'is' if len(numbers) == 1 else 'are'} not documented ({counts}):"
    ]
    ordered = sorted(
        numbers.values(), key=lambda number: _TRUST.index(number["trust"]) if number["trust"] in _TRUST else 0
    )
    out += [f"  {number['key']} = {number['value']} ({number['trust']})" for number in ordered[:UNCERTAIN]]
    rest = len(ordered) - UNCERTAIN
    assumptions = f"{_counted(len(notes), 'assumption')} of the model" if notes else ""
    more = " and ".join(filter(None, [f"{rest} more" if rest > 0 else "", assumptions]))
    target = next(iter(numbers))[0]
    out.append(f"  {more + ': ' if more else ''}all with --json; sources with `sterna chip {target} --sources`")
    return out


def _peak(p, memory):
    peak, capacity = p[f"{memory}_peak_bytes"], p[f"{memory}_capacity_bytes"]
    return f"{bytes_text(peak)} of {bytes_text(capacity)}"


def _counted(count, noun):
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def time_text(us):
    """Four figures with the unit that suits: 850.0 ns, 244.2 us, 28.20 ms, 1.500 s."""
    for limit, factor, unit in ((1, 1e3, "ns"), (1e3, 1, "us"), (1e6, 1e-3, "ms"), (float("inf"), 1e-6, "s")):
        value = us * factor
        digits = 3 if value < 10 else 2 if value < 100 else 1
        # 999.96 us would be printed as 1000.0 us.
        if us < limit and round(value, digits) < 1000 or unit == "s":
            return f"{value:.{digits}f} {unit}"
    raise AssertionError


def bytes_text(count):
    """Binary units, at most one decimal: 512 B, 1.5 KiB, 24 MiB."""
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f}".removesuffix(".0") + f" {units[0]}"


def percent(share):
    """Whole per cent; what is there but less than half a per cent is not nothing."""
    if 0 < share < 0.005:
        return "<1 %"
    # 100 % is only what is never idle.
    return f"{min(round(100 * share), 99 if share < 0.9999 else 1000)} %"


def shortened(text, width):
    text = " ".join(text.split())
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."


def shown_path(path, folder):
    """Relative to `folder` where it lies below it; else the last two parts."""
    if folder and path.startswith(folder.rstrip(os.sep) + os.sep):
        return path[len(folder.rstrip(os.sep)) + 1 :]
    parts = path.split(os.sep)
    return path if len(parts) <= 3 else os.sep.join(["...", *parts[-2:]])
