# SPDX-License-Identifier: Apache-2.0
"""`sterna run`: a Python program as it is, with the NKI names resolved, and a report of its kernels on stderr at the end.

The program runs as `__main__` with its own sys.argv and sys.path[0]; its output, its traceback and its exit status are what plain
Python gives.
"""

import builtins
import importlib.machinery
import io
import os
import runpy
import sys
import threading
import types

import sterna
from sterna import options, profiler, progress, report, settings
from sterna.faults import Fault

USAGE_ERROR = 2
NOT_WRITTEN = 3


def main(words=None):
    """The whole command. Returns the exit status, or raises KeyboardInterrupt when the program was interrupted."""
    try:
        chosen = options.parse(sys.argv[1:] if words is None else words)
        if chosen.help:
            sys.stdout.write(options.help_text())
            return 0
        _check(chosen)
    except options.UsageError as error:
        return _complain(error, USAGE_ERROR)
    except Fault as fault:
        return _complain(fault.message, USAGE_ERROR)
    _resolve_names()
    _set_environment(chosen)
    profile = profiler.Profile().everywhere(predict=chosen.timing, keep_programs=bool(chosen.trace))
    process = os.getpid()
    with progress.Progress() if chosen.progress else _Nothing():
        status, interrupt = _run(chosen)
        if os.getpid() == process:
            _wait_for_threads()
    if os.getpid() != process:
        return status  # a child that the program forked: only the parent reports
    try:
        written = _report(chosen, profile, status)
    except Exception as error:  # a mistake of ours must not change how the program ended
        _complain(f"the report failed, please tell us: {type(error).__name__}: {error}", NOT_WRITTEN)
        written = False
    if interrupt is not None:
        # Python itself ends as a process that was interrupted does; its traceback is already there.
        sys.excepthook = lambda *about: None
        raise interrupt
    return NOT_WRITTEN if status == 0 and not written else status


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def _complain(message, status):
    print(f"sterna run: {message}", file=sys.stderr)
    return status


# --- before the program


def _check(chosen):
    """What can be refused before anything runs: an unknown chip, a file that cannot be written, a script that is not there."""
    if chosen.target:
        sterna.chip(chosen.target)
    for option, path in (("--trace", chosen.trace), ("--json", chosen.json_file)):
        folder = os.path.dirname(os.path.abspath(path)) if path else None
        if folder and (os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK)):
            raise options.UsageError(f"{option} {path}: cannot write there; the folder must exist and be writable.")
    if chosen.kind == "script" and chosen.program != "-" and not os.path.exists(chosen.program):
        raise options.UsageError(
            f"no file {chosen.program!r}; `sterna run -m NAME` runs a module, `sterna run -c CODE` a line of code."
        )


def _resolve_names():
    """`import nki` works although the .pth file was skipped, by `python -S` or a plain folder on PYTHONPATH."""
    try:
        import _sterna_hook
    except ImportError:
        return  # the names are on the path by themselves, in a checkout
    _sterna_hook.install()


def _set_environment(chosen):
    """The variables also reach the processes that the program starts."""
    if chosen.target:
        settings.forced_target = os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = chosen.target
    if chosen.strict:
        os.environ["STERNA_STRICT"] = "1"
    if chosen.threads is not None:
        os.environ["STERNA_THREADS"] = str(chosen.threads)


# --- the program


def _run(chosen):
    """(exit status, KeyboardInterrupt or None). Tracebacks are printed here, by sys.excepthook as Python would."""
    try:
        {"script": _run_script, "module": _run_module, "code": _run_code}[chosen.kind](chosen)
    except SystemExit as end:
        return _status_of(end.code), None
    except BaseException as error:
        error.__traceback__ = _of_the_program(error.__traceback__)
        if chosen.kind == "module" and isinstance(error, ImportError) and error.__traceback__ is None:
            return _complain(error, 1), None
        _flush(sys.stdout)
        sys.excepthook(type(error), error, error.__traceback__)
        return (130, error) if isinstance(error, KeyboardInterrupt) else (1, None)
    return 0, None


def _status_of(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    _flush(sys.stdout)
    print(code, file=sys.stderr)
    return 1


def _new_main(path):
    """An empty __main__ like the one that `python FILE` makes."""
    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    module.__spec__ = None
    if path:
        module.__file__ = path
        module.__cached__ = None
        module.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    sys.modules["__main__"] = module
    return module.__dict__


def _set_first_path(folder):
    # With -P or PYTHONSAFEPATH there is no first entry to replace.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _run_script(chosen):
    path = chosen.program
    sys.argv = [path, *chosen.arguments]
    if path == "-":
        _set_first_path("")
        exec(compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True), _new_main(None))
        return
    if os.path.isdir(path) or path.endswith((".zip", ".pyz", ".pyc")):
        if sys.path and not getattr(sys.flags, "safe_path", False):
            del sys.path[0]
        runpy.run_path(path, run_name="__main__")
        return
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    path = os.path.abspath(path)
    with io.open_code(path) as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), _new_main(path))


def _run_module(chosen):
    sys.argv = ["-m", *chosen.arguments]
    runpy.run_module(chosen.program, run_name="__main__", alter_sys=True)


def _run_code(chosen):
    sys.argv = ["-c", *chosen.arguments]
    _set_first_path("")
    exec(compile(chosen.program + "\n", "<string>", "exec", dont_inherit=True), _new_main(None))


_OURS = {__file__, runpy.__file__, runpy.run_module.__code__.co_filename}


def _of_the_program(traceback):
    """The traceback without the frames of this file, of runpy and of the search for a module."""
    while traceback is not None and _is_ours(traceback.tb_frame.f_code.co_filename):
        traceback = traceback.tb_next
    return traceback


def _is_ours(file):
    return file in _OURS or file.startswith("<frozen ")


def _wait_for_threads():
    """Threads that Python would wait for at its end may still run kernels."""
    me = threading.current_thread()
    try:
        for thread in threading.enumerate():
            if thread is not me and not thread.daemon:
                thread.join()
    except KeyboardInterrupt:
        pass


# --- after the program


def _report(chosen, profile, status):
    """Writes what was asked for; False when something could not be written."""
    _flush(sys.stdout)
    kernels, problems = [], []
    for kernel in profile.kernels:
        kernels.append(kernel.as_dict() if chosen.timing else kernel.without_prediction())
    traces = _save_traces(chosen, profile.kernels, kernels, problems)
    target = _target_of(profile.kernels, chosen)
    nki = profile.kernels[0].nki_version if profile.kernels else settings.nki_version()
    doc = report.document(kernels, target, nki, sterna.__version__, chosen.words, status, problems)
    if chosen.json_file:
        _write(chosen.json_file, report.as_json(doc), problems)
    if chosen.json and not chosen.json_file:
        _say(report.as_json(doc))  # with the problems, so that all of stderr's last part is one document
        return not problems
    if not chosen.quiet:
        _say(report.as_text(doc, colour=_wants_colour(sys.stderr), folder=os.getcwd()) + traces)
    for problem in problems:
        _complain(problem, NOT_WRITTEN)
    return not problems


def _say(text):
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass  # nobody reads it


def _target_of(kernels, chosen):
    targets = list(dict.fromkeys(kernel.target for kernel in kernels))
    return ", ".join(targets) or settings.target()


def _save_traces(chosen, kernels, records, problems):
    """Saves one trace for each kernel; the text that says where."""
    if not chosen.trace:
        return ""
    saved = []
    names = trace_names(chosen.trace, len(kernels))
    for kernel, record, path in zip(kernels, records, names):
        try:
            if kernel.refused:
                continue
            kernel.trace.save(path)
        except (Fault, OSError) as error:
            problems.append(f"the trace {path} was not written: {error}")
            continue
        record["trace"] = path
        saved.append((path, kernel.name))
    if not saved:
        return "" if problems else f"trace: nothing to write to {chosen.trace}\n"
    return "".join(f"trace: {path}" + (f" ({name})" if len(names) > 1 else "") + "\n" for path, name in saved)


def trace_names(path, count):
    """FILE for one kernel; for more, the number goes before the suffix: out-1.trace, out-2.trace."""
    if count <= 1:
        return [path] * count
    stem, suffix = os.path.splitext(path)
    return [f"{stem}-{i}{suffix}" for i in range(1, count + 1)]


def _write(path, text, problems):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        problems.append(f"{path} was not written: {error.strerror}")


def _wants_colour(stream):
    return (
        stream is not None and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def _flush(stream):
    try:
        stream.flush()
    except (AttributeError, OSError, ValueError):
        pass


if __name__ == "__main__":
    sys.exit(main())
