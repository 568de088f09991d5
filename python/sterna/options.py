# SPDX-License-Identifier: Apache-2.0
"""The command line of `sterna run`. Each option is one entry below; parsing and help follow from it.

Options end at the program: everything after it belongs to the program, also what looks like an option.
"""

import dataclasses


class UsageError(Exception):
    """A command line that cannot be used; the text says what to do."""


@dataclasses.dataclass
class Options:
    """What was asked for. kind is "script", "module" or "code"."""

    kind: str = ""
    program: str = ""
    arguments: list = dataclasses.field(default_factory=list)
    words: list = dataclasses.field(default_factory=list)
    target: str = ""
    trace: str = ""
    json: bool = False
    json_file: str = ""
    quiet: bool = False
    timing: bool = True
    strict: bool = False
    threads: int = None
    progress: bool = True
    help: bool = False


@dataclasses.dataclass(frozen=True)
class Option:
    """name: as typed; value: what stands for its value in the help, empty for a switch; "=FILE" may only follow an equals sign."""

    name: str
    value: str
    help: str
    apply: object


def _threads(options, text):
    if not text.isdigit():
        raise UsageError(f"--threads takes a whole number, not {text!r}; 0 takes every processor.")
    options.threads = int(text)


def _json(options, text):
    options.json, options.json_file = True, text


def _set(field, fixed=None):
    def apply(options, text):
        setattr(options, field, text if fixed is None else fixed[0])

    return apply


OPTIONS = (
    Option(
        "--target",
        "CHIP",
        "chip to predict for; `sterna chip` lists them (default trn2, or what the environment says)",
        _set("target"),
    ),
    Option(
        "--trace",
        "FILE",
        "write the trace of each kernel's first call; FILE.json for Perfetto. Several kernels: FILE-1, FILE-2, ...",
        _set("trace"),
    ),
    Option("--json", "=FILE", "report as JSON, to stderr in place of the text, or to FILE beside it", _json),
    Option("--quiet", "", "no report; --json=FILE and --trace are still written", _set("quiet", (True,))),
    Option("--no-timing", "", "values only: predict nothing", _set("timing", (False,))),
    Option(
        "--strict",
        "",
        "what only the official simulator accepts is an error, as STERNA_STRICT=1",
        _set("strict", (True,)),
    ),
    Option(
        "--threads", "N", "threads for computing values; 0 takes every processor. Results do not depend on it", _threads
    ),
    Option("--no-progress", "", "no progress line on a terminal", _set("progress", (False,))),
    Option("--help", "", "print this", _set("help", (True,))),
)
_BY_NAME = {option.name: option for option in OPTIONS}
_KINDS = {"-m": "module", "-c": "code"}

_USAGE = """\
usage: sterna run [options] SCRIPT [ARGS]
       sterna run [options] -m MODULE [ARGS]      for example -m pytest tests/
       sterna run [options] -c CODE [ARGS]

Runs a Python program as `python` would, with NKI kernels on the simulated chip. At the end a report on stderr says for each
kernel, and each shape of its arguments, how long one call would take, and why. A SCRIPT of `-` is read from stdin.

"""
_STATUS = """
exit status:
  that of the program; and
  1    the program ended with an exception, or Python was not found
  2    the command line cannot be used: unknown option or chip, no such script, a file that cannot be written
  3    the program ended well, but the trace or JSON file could not be written
  130  interrupted (reported as the signal SIGINT)
"""


def help_text():
    lines = []
    for option in OPTIONS:
        shown = option.name + (
            f"[{option.value}]" if option.value.startswith("=") else f" {option.value}" if option.value else ""
        )
        lines.append(f"  {shown:<16} {option.help}")
    return _USAGE + "options:\n" + "\n".join(lines) + "\n" + _STATUS


def parse(words):
    """Options from the words after `sterna run`; raises UsageError."""
    options = Options(words=list(words))
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in _KINDS:
            if not rest:
                raise UsageError(f"{word} needs {'the name of a module' if word == '-m' else 'code'} after it.")
            return _finished(options, _KINDS[word], rest)
        if word == "--":
            if not rest:
                break
            return _finished(options, "script", rest)
        if not word.startswith("-") or word == "-":
            return _finished(options, "script", [word, *rest])
        _take(options, word, rest)
        if options.help:
            return options
    raise UsageError("nothing to run: give a SCRIPT, -m MODULE or -c CODE. `sterna run --help` says more.")


def _finished(options, kind, words):
    options.kind, options.program, options.arguments = kind, words[0], words[1:]
    if options.trace and not options.timing:
        raise UsageError("--trace needs the prediction that --no-timing leaves out.")
    return options


def _take(options, word, rest):
    """Applies one option, with its value from behind "=" or from the next word."""
    name, equals, value = word.partition("=")
    option = _BY_NAME.get({"-h": "--help", "-q": "--quiet"}.get(name, name))
    if option is None:
        raise UsageError(f"unknown option {name}{_nearest(name)}. Options of the program itself go after its name.")
    if not option.value:
        if equals:
            raise UsageError(f"{name} takes no value.")
    elif not option.value.startswith("="):
        if not equals:
            if not rest:
                raise UsageError(f"{name} needs {option.value} after it.")
            value = rest.pop(0)
        if not value:
            raise UsageError(f"{name} needs {option.value} after it.")
    elif equals and not value:
        raise UsageError(f"{name}= needs {option.value[1:]} after it.")
    option.apply(options, value)


def _nearest(name):
    import difflib

    near = difflib.get_close_matches(name, _BY_NAME, 1)
    return f"; did you mean {near[0]}?" if near else ""
