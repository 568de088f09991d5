# SPDX-License-Identifier: Apache-2.0
"""The kernel cache on disk: recorded programs in STERNA_CACHE_DIR, for the next process. Off unless that is set.

One file a program, named by its key (`cache_digest`), so that whoever finds it needs no further check:

    b"sterna kernel\\n"  SHA-256 of all that follows  length of the JSON (8 bytes)  JSON  the program in its binary form

A file appears whole, by renaming, and never changes. One that is damaged, or that this Sterna cannot use, counts as missing and is
written anew. Nothing in a file is code, and a program is checked like one that a stranger wrote.
"""

import contextlib
import hashlib
import json
import math
import os
import secrets
import time

from sterna import forms
from sterna.arrays import numpy_dtype
from sterna.cache import Entry
from sterna.cache_digest import key_of
from sterna.faults import BadInput, warn_caller

_MAGIC = b"sterna kernel\n"
_SUFFIX = ".sternak"
_HEAD = len(_MAGIC) + 32
_ABANDONED = 3600  # seconds after which a file that was never renamed goes


class Counts:
    """What happened in this process."""

    def __init__(self):
        self.hits = self.misses = self.written = 0


counts = Counts()
_told = set()


def folder():
    """STERNA_CACHE_DIR; None when the cache on disk is off."""
    return os.environ.get("STERNA_CACHE_DIR") or None


def most_bytes():
    """STERNA_CACHE_DISK_MB: what the files may take together."""
    text = os.environ.get("STERNA_CACHE_DISK_MB", "1024")
    if not (text.isascii() and text.isdigit()):
        raise BadInput("bad input", "ENV1", f"STERNA_CACHE_DISK_MB={text!r} is not a whole number.")
    return int(text) << 20


def place(signature, dependencies):
    """Where the program of a call is kept, or None when it is not."""
    if folder() is None or dependencies is None:
        return None
    most_bytes()  # a setting that is wrong is told before the kernel runs
    function, options, *passed = signature.key
    try:
        # Without the number of threads, which stands last: no program depends on it.
        key = key_of(function, options[:-1], tuple(passed), dependencies)
    except Exception:  # Uncacheable, a file of ours that is gone, or an object of the user's that cannot be looked at
        return None
    return Place(os.path.abspath(folder()), key)


class Place:
    """One key in one folder."""

    def __init__(self, folder, key):
        self._folder, self._key = folder, key
        self._path = os.path.join(folder, key + _SUFFIX)

    def load(self, recording, dependencies, signature):
        """An entry on `recording`, in which nothing was recorded yet; None, and it is as before, when there is none."""
        entry = None
        try:
            with open(self._path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            pass
        except OSError as error:
            _tell(self._folder, error)
        else:
            entry = self._entry(data, recording, dependencies, [array for _, array in signature.arrays])
            if entry is None:
                with contextlib.suppress(OSError):
                    os.unlink(self._path)
        if entry is None:
            counts.misses += 1
        else:
            counts.hits += 1
            with contextlib.suppress(OSError):
                os.utime(self._path)  # the oldest used go first
        return entry

    def _entry(self, data, recording, dependencies, arrays):
        about = _opened(data, self._key)
        if about is None:
            return None
        head, program = about
        try:
            parameters = recording.load(program, [tuple(remark) for remark in head["warnings"]])
            if parameters is None or not _fit(parameters, arrays):
                return None
            results = [recording.whole(number, shape) for number, shape in head["results"]]
            return Entry(recording, dependencies, parameters, results, head["form"])
        except (KeyError, TypeError, ValueError):
            return None

    def store(self, recording, parameters, results, form):
        """Writes the program; what cannot be written is left, with one remark a process."""
        if recording.parameters != parameters or not forms.can_be_saved(form):
            return
        program, warnings = recording.saved()
        head = {
            "key": self._key,
            "kernel": recording.name,
            "results": [(tensor.tensor_id, tensor.shape) for tensor in results],
            "form": form,
            "warnings": warnings,
        }
        text = json.dumps(head).encode()
        body = b"".join((len(text).to_bytes(8, "little"), text, program))
        data = b"".join((_MAGIC, hashlib.sha256(body).digest(), body))
        if len(data) > most_bytes():
            return
        try:
            os.makedirs(self._folder, exist_ok=True)
            self._write(data)
            counts.written += 1
            _make_room(self._folder, most_bytes(), self._path)
        except OSError as error:
            _tell(self._folder, error)

    def _write(self, data):
        path = os.path.join(self._folder, f".{self._key[:16]}-{os.getpid()}-{secrets.token_hex(8)}.tmp")
        try:
            with open(path, "xb") as file:
                file.write(data)
            os.replace(path, self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise


def _opened(data, key):
    """(JSON, program) of a file; None when it is damaged, cut short, of another form or of another key."""
    if data[: len(_MAGIC)] != _MAGIC or len(data) < _HEAD + 8:
        return None
    body = memoryview(data)[_HEAD:]
    if hashlib.sha256(body).digest() != data[len(_MAGIC) : _HEAD]:
        return None
    length = int.from_bytes(body[:8], "little")
    try:
        head = json.loads(bytes(body[8 : 8 + length]))
        return (head, bytes(body[8 + length :])) if head["key"] == key else None
    except (KeyError, TypeError, ValueError):
        return None


def _fit(parameters, arrays):
    """The program takes arrays of just these shapes and types: it will work on their memory."""
    return len(parameters) == len(arrays) and all(
        tensor.shape == _held(array.shape) and numpy_dtype(str(tensor.dtype)) == array.dtype
        for tensor, array in zip(parameters, arrays)
    )


def _held(shape):
    """The shape as programs hold it: at most five dimensions, those before the last four as one."""
    return (math.prod(shape[:-4]), *shape[-4:]) if len(shape) > 5 else shape


def _make_room(folder, most, keep):
    """Removes the files that were not used for longest until the rest fits; other processes may do so at the same time."""
    found, total, now = [], 0, time.time()
    with os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):
                about = file.stat()
                if file.name.endswith(_SUFFIX):
                    found.append((about.st_mtime_ns, file.path, about.st_size))
                    total += about.st_size
                elif file.name.startswith(".") and file.name.endswith(".tmp") and now - about.st_mtime > _ABANDONED:
                    os.unlink(file.path)
    for _, path, size in sorted(found):
        if total <= most:
            return
        if path != keep:
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size


def _tell(folder, error):
    if folder not in _told:
        _told.add(folder)
        warn_caller(f"[ENV3] The kernel cache in {folder} cannot be used: {error.strerror or error}.")
