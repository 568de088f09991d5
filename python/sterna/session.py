# SPDX-License-Identifier: Apache-2.0
"""One kernel call, for any front end: arguments in, recording, results out."""

import sys
import time
import warnings

from sterna import _core, arrays, cache, cache_disk, forms, profiler, settings
from sterna.cache import cache as kernels
from sterna.call import Call
from sterna.cores import Recorder
from sterna.faults import BadInput, RuleError, SternaWarning, WrongType


def _new_recording(function, cores, grid, target):
    settings.check()
    return _core.Recording(
        settings.target(target),
        name=getattr(function, "__name__", "kernel"),
        strict=settings.strict(),
        uninit=settings.uninit(),
        eager=settings.eager(),
        threads=settings.threads(),
        nki_version=settings.nki_version(),
        cores=cores,
        grid=grid,
        rounding_seed=settings.rounding_seed(),
    )


def run(function, args, kwargs, bind_names, schedule=None, cores=1, grid=0, target=None):
    """Records `function` on tensors in place of arrays, executes, and returns results of the caller's kind.

    cores: how many run it together; grid: dimensions of the grid that the caller gave, 0 without one; target: the chip
    that the kernel names.
    """
    profile = profiler.active()
    # Who profiles keeps the recordings, so these cannot be shared in memory.
    signature = None
    if not profile or (profile.values and cache_disk.folder()):
        signature = _signature(function, args, kwargs, schedule, cores, grid, target)
    entry = kernels.take(signature.key) if signature and not profile else None
    if entry:
        return _run_again(entry, signature)
    wanted = signature and not profile and kernels.wants(signature.key)
    seen = _dependencies(function, signature) if signature and (wanted or cache_disk.folder()) else None
    recording = _new_recording(function, cores, grid, target)
    clock = profiler.Clock(recording) if profile else None
    place = cache_disk.place(signature, seen) if seen else None
    entry = place.load(recording, seen, signature) if place else None
    if entry:
        return _run_loaded(entry, signature, lambda: profile.add(recording, function, args, kwargs, clock), clock)
    call = Call(recording)
    values = profile is None or profile.values
    with recording:
        results = []
        try:
            form = _record_call(call, function, args, kwargs, bind_names, schedule, results)
            if clock:
                clock.recorded()
            recording.finish(results, values)
        finally:
            if values:
                call.copy_back()
        call.check_overlaps()
    if clock:
        clock.executed()
    shaped = forms.fill(form, [call.result(tensor, values) for tensor in results])
    if profile:
        profile.add(recording, function, args, kwargs, clock)
    # A recording that changed what it sees, or its arguments, is not kept.
    if seen and not recording.host_read and seen.hold() and _same_call(signature, function, args, kwargs):
        if place:
            place.store(recording, len(signature.arrays), results, form)
        if wanted:
            _keep(signature, call, seen, results, form)
    return shaped


def _signature(function, args, kwargs, schedule, cores, grid, target):
    """The key of a call in the kernel cache; None when it is not cached."""
    if schedule or not cache.enabled() or settings.eager():
        return None
    options = (
        settings.target(target),
        cores,
        grid,
        settings.nki_version(),
        settings.strict(),
        settings.uninit(),
        settings.rounding_seed(),
        settings.threads(),
    )
    try:
        signature = cache.Signature(function, options, args, kwargs, arrays.kind_of)
        hash(signature.key)
    except (cache.Uncacheable, TypeError):
        return None
    return signature


def _same_call(before, function, args, kwargs):
    """The constants among the arguments are what they were before the recording."""
    try:
        return cache.Signature(function, before.key[1], args, kwargs, arrays.kind_of).key == before.key
    except cache.Uncacheable:
        return False


def _run_again(entry, signature):
    try:
        settings.check()
        return _replay(entry, signature)
    finally:
        kernels.give_back(entry)


def _replay(entry, signature):
    """The recorded program on the caller's arrays."""
    call = Call(entry.recording)
    for (original, array), tensor in zip(signature.arrays, entry.parameters):
        call.add_known(original, array, tensor)
    memories = [(a.__array_interface__["data"][0], a.flags.writeable, a) for _, a in signature.arrays]
    try:
        entry.recording.run_again(memories)
    finally:
        call.copy_back()
    return forms.fill(entry.form, [call.result(tensor) for tensor in entry.results])


def _run_loaded(entry, signature, add, clock):
    """A program from the cache on disk; it stays in memory, or with the profile."""
    if clock:
        clock.recorded()
        shaped = _replay(entry, signature)
        clock.executed()
        add()
        return shaped
    try:
        return _run_again(entry, signature)
    finally:
        kernels.keep(signature.key, entry)


def _dependencies(function, signature):
    try:
        return cache.Dependencies(function, *signature.objects)
    except cache.Uncacheable:
        return None


def _keep(signature, call, dependencies, results, form):
    if len(call.arguments) != len(signature.arrays) or len(call.arguments) != call.recording.parameters:
        return  # a constant that the kernel made is bound to the memory that it had
    parameters = [argument.tensor for argument in call.arguments]
    entry = cache.Entry(call.recording, dependencies, parameters, results, form)
    call.recording.release()
    kernels.keep(signature.key, entry)


def launch(function, arguments, bind_names, schedule=None, cores=1, grid=0, target=None):
    """The same for several ranks, which meet in collectives. `arguments`: keyword arguments, one mapping a rank.

    Returns a list of what each rank's call returns. Ranks are recorded one after the other and executed together.
    """
    profile = profiler.active()
    ranks = []
    for kwargs in arguments:
        if not isinstance(kwargs, dict):
            raise WrongType(
                "wrong type",
                "CC15",
                f"launch takes a dict of keyword arguments for each rank, not a {type(kwargs).__name__}.",
            )
        recording = _new_recording(function, cores, grid, target)
        recording.as_rank()
        call = Call(recording)
        clock = profiler.Clock(recording) if profile else None
        results = []
        with recording:
            form = _record_call(call, function, (), kwargs, bind_names, schedule, results, alone=False)
            if clock:
                clock.recorded()
            recording.finish(results, False)
        ranks.append((recording, call, form, results, clock, kwargs))
    start = time.perf_counter()
    try:
        _core.Recording.launch([rank[0] for rank in ranks])
    finally:
        for rank in ranks:
            rank[1].copy_back()
    _check_ranks_apart([rank[1] for rank in ranks])
    share = (time.perf_counter() - start) / max(len(ranks), 1)
    shaped = []
    for recording, call, form, results, clock, kwargs in ranks:
        call.check_overlaps()
        if clock:
            clock.executed(share)
        shaped.append(forms.fill(form, [call.result(tensor) for tensor in results]))
        if profile:
            profile.add(recording, function, (), kwargs, clock)
    return shaped


def _check_ranks_apart(calls):
    """Each rank has its own memory: an array that one of them writes may not be another's argument too."""
    users = {}
    for rank, call in enumerate(calls):
        for argument in call.arguments:
            users.setdefault(argument.memory.__array_interface__["data"][0], []).append((rank, call, argument))
    for group in users.values():
        written = next((rank for rank, call, a in group if call.recording.written(a.tensor)), None)
        if written is not None and len(group) > 1 and group[0][2].array.size:
            raise BadInput(
                "bad input",
                "ARG6",
                f"the argument '{group[0][2].tensor.name}' is one array for ranks {[rank for rank, _, _ in group]}, and rank "
                f"{written} writes it. Each rank has its own memory: pass each a copy.",
            )


def _record_call(call, function, args, kwargs, bind_names, schedule, results, alone=True):
    """Records on tensors in place of arrays; appends the kernel's results and gives their form.

    alone: this is no rank of a launch, which could not run without the others.
    """
    tensors = [call.argument(name, value) for name, value in zip(bind_names(args, kwargs), args)]
    named = {name: call.argument(name, value) for name, value in kwargs.items()} if kwargs else kwargs
    return _record_cores(
        call.recording, lambda: _record(call.recording, function, tensors, named, schedule, alone), results
    )


def _record(recording, function, tensors, named, schedule, alone):
    try:
        returned = enter(function, tensors, named)
        if schedule:
            schedule(recording)
        return returned
    except Exception:
        # What stands before the fault has happened: it is executed, and a fault there comes first.
        if alone:
            recording.settle()
        raise


def _record_cores(recording, record, results):
    """Records every core; appends the kernel's results to `results` and gives their form."""
    if recording.cores == 1:
        return forms.flatten(record(), results)
    of_cores = []
    for core, returned in enumerate(Recorder(recording, record).run()):
        of_core = []
        if returned is None and core > 0:
            continue
        of_cores.append(forms.flatten(returned, of_core))
        if core == 0:
            results.extend(of_core)
        elif [tensor.tensor_id for tensor in of_core] != [tensor.tensor_id for tensor in results]:
            raise RuleError(
                "rule broken",
                "LNC8",
                f"Core {core} returns other tensors than core 0. Every core returns the same tensors in nl.shared_hbm.",
            )
    return of_cores[0]


def enter(function, args, kwargs):
    """Call trees of sites end at this frame."""
    return function(*args, **kwargs)


_core.set_hook("entry", enter.__code__)


def _show_warning(rule, message, file, line):
    file = file or "<kernel>"
    warnings.warn_explicit(f"[{rule}] {message}", SternaWarning, file, line or 1, registry=_shown.setdefault(file, {}))


_shown = {}  # by file: what the warnings module remembers of it


def _print(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


_core.set_hook("warn", _show_warning)
_core.set_hook("print", _print)
