# SPDX-License-Identifier: Apache-2.0
"""Recording a kernel for several cores: one after the other, in the order of their ranks.

A core whose Python needs a value that another core must produce first hands over; the other core then records in a thread of
its own until it ends or needs a value in turn. Only one thread runs at a time, so the recording does not depend on timing.
"""

import threading

from sterna import _core


class Abandoned(BaseException):
    """Ends the function of a core that waits while another core's function raised."""


class Recorder:
    """Records `record()` once for each core of `recording`. Core 0 records in the caller's thread, as do the others if they can."""

    def __init__(self, recording, record):
        count = recording.cores
        self._recording, self._record, self._count = recording, record, count
        self._turns = [threading.Semaphore(0) for _ in range(count)]
        self._givers = [0] * count  # by core: who gave it the turn
        self._threads = [None] * count
        self._ended = [False] * count
        self._returned = [None] * count
        self._error = None
        self._abandoned = False

    def run(self):
        """What the function returned, by core."""
        _recorders[threading.get_ident()] = self
        try:
            for core in range(self._count):
                if self._threads[core] is None:
                    self._recording.set_core(core)
                    self._returned[core] = self._record()
                    self._end(core)
                while not self._ended[core]:
                    self._give_turn(0, core)
                    self._raise_error()
            return self._returned
        finally:
            self._abandon()
            del _recorders[threading.get_ident()]

    def hand_over(self):
        """Lets another core record; returns when the turn comes back."""
        me = self._recording.core
        after = [(me + k) % self._count for k in range(1, self._count)]
        self._give_turn(me, next(core for core in after if not self._ended[core]))
        if self._abandoned and self._threads[me] is not None:
            raise Abandoned
        if self._error is None:
            return
        if self._threads[me] is not None:
            raise Abandoned
        self._raise_error()

    def _end(self, core):
        self._ended[core] = True
        self._recording.core_ended(core)

    def _give_turn(self, me, other):
        self._givers[other] = me
        if self._threads[other] is None and other != 0:
            self._threads[other] = threading.Thread(target=self._run_in_thread, args=(other,), daemon=True)
            self._threads[other].start()
        else:
            self._turns[other].release()
        self._turns[me].acquire()

    def _run_in_thread(self, core):
        _recorders[threading.get_ident()] = self
        try:
            with self._recording:
                self._recording.set_core(core)
                self._returned[core] = self._record()
        except Abandoned:
            pass
        except BaseException as error:
            self._error = error
        finally:
            del _recorders[threading.get_ident()]
            self._end(core)
            giver = self._givers[core]
            self._turns[0 if self._ended[giver] else giver].release()

    def _raise_error(self):
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _abandon(self):
        self._abandoned = True
        for core, thread in enumerate(self._threads):
            if thread is not None and not self._ended[core]:
                self._give_turn(0, core)


_recorders = {}  # by thread: what records in it


def _hand_over():
    _recorders[threading.get_ident()].hand_over()


_core.set_hook("hand_over", _hand_over)
