# SPDX-License-Identifier: Apache-2.0
"""Writes golden cases (golden_case.h says what a file holds)."""

import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
WRITTEN = []


def number(value):
    """One element: the shortest decimal of its fp32 value, or its bits where that says less."""
    value = np.asarray(value)
    if value.dtype == np.bool_:
        return "1" if value else "0"
    if value.dtype.kind in "iu":
        return str(int(value))
    wide = np.float32(value)
    if np.isnan(wide):
        bits = int(value.view(f"u{value.dtype.itemsize}"))
        return "nan" if wide.view(np.uint32) == 0x7FC00000 or value.dtype.itemsize < 4 else f"0x{bits:08x}"
    if np.isinf(wide):
        return "inf" if wide > 0 else "-inf"
    if wide == 0:
        return "-0" if np.signbit(wide) else "0"
    if 1e-4 <= abs(wide) < 1e9:
        return np.format_float_positional(wide, unique=True, trim="-")
    return np.format_float_scientific(wide, unique=True, trim="-")


def compress(words):
    """Runs of one word as word*n, ascending whole numbers as a..b."""
    out, i = [], 0
    while i < len(words):
        j = i
        while j + 1 < len(words) and words[j + 1] == words[i]:
            j += 1
        if j - i >= 3:
            out.append(f"{words[i]}*{j - i + 1}")
            i = j + 1
            continue
        j = i
        while (
            j + 1 < len(words)
            and words[j].isdigit()
            and words[j + 1].isdigit()
            and int(words[j + 1]) == int(words[j]) + 1
        ):
            j += 1
        if j - i >= 4:
            out.append(f"{words[i]}..{words[j]}")
            i = j + 1
            continue
        out.append(words[i])
        i += 1
    return out


def lines_of(values, nearly=False):
    if isinstance(values, str):
        return values.strip().split("\n")
    values = np.asarray(values)
    words = [("~" if nearly else "") + number(v) for v in values.ravel()]
    if len(words) > 4096:
        return [" ".join(compress(words))]
    width = values.shape[-1] if values.ndim else 1
    return [" ".join(compress(words[i : i + width])) for i in range(0, len(words), max(width, 1))]


class Case:
    def __init__(self, folder, name, title, *comments, target="trn2", registers=0):
        self.path = HERE / folder / f"{name}.sterna"
        self.body = ["# SPDX-License-Identifier: Apache-2.0", f"# golden: {title}"]
        self.body += [f"# {c}" for c in comments]
        self.body += ["sterna program 1", f"target {target}"]
        if registers:
            self.body.append(f"registers {registers}")
        self.sections = []

    def __call__(self, line):
        self.body.append(line)
        return self

    def tensor(self, name, dtype, shape, memory="sbuf", more="", role="tensor"):
        self.body.append(f"{role} %{name} {memory} {dtype} [{', '.join(map(str, shape))}]{more}")
        return self

    def tile(self, name, values, memory="sbuf", more="", role="tensor"):
        """Declares a tensor that holds these values at the start."""
        values = np.asarray(values)
        self.tensor(name, values.dtype.name, values.shape, memory, more, role)
        return self.data(name, values)

    def param(self, name, values, more=""):
        return self.tile(name, values, "hbm", more, "param")

    def data(self, name, values):
        self.sections += [f"---- data %{name}", *lines_of(values)]
        return self

    def expect(self, name, values, nearly=False):
        self.sections += [f"---- values %{name}", *lines_of(values, nearly)]
        return self

    def fault(self, rule, *fragments):
        """The line written last is refused, or stops the run."""
        self.sections += [f"---- fault {rule} line {len(self.body)}", *fragments]
        return self

    def warn(self, rule, *fragments):
        self.sections += [f"---- warning {rule} line {len(self.body)}", *fragments]
        return self

    def section(self, line, *below):
        self.sections += [f"---- {line}", *below]
        return self

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("\n".join(self.body + self.sections) + "\n")
        WRITTEN.append(self.path)


def isa(mnemonic, name, title, *comments, **more):
    return Case(f"isa/{mnemonic}", name, title, *comments, **more)
