# SPDX-License-Identifier: Apache-2.0
"""`nki.jit`, `nki.simulate` and the Kernel object."""

import functools
import inspect

from nki._version import follow
from sterna import _core, session, settings
from sterna.faults import BadInput


class Kernel:
    """A function that runs as a kernel: calling it with arrays executes it on the simulated core.

    `kernel[2](...)` runs it on two cores that share HBM (LNC2); `kernel[1](...)` on one, as `kernel(...)` does. Inside another
    kernel a call is simply part of that kernel.
    """

    def __init__(self, function, lnc=None, options=None):
        functools.update_wrapper(self, function)
        self.func = function
        self.lnc = lnc
        self.options = options or {}
        self._schedule = []
        self._names = None

    def __call__(self, *args, **kwargs):
        if _core.is_recording():
            return self.func(*args, **kwargs)
        follow()
        return session.run(self.func, args, kwargs, **self._launch_options())

    def launch(self, arguments):
        """Runs one rank for each mapping of keyword arguments in `arguments`; ranks meet in nki.collectives.

        Returns a list of the ranks' results. `sterna.launch(kernel, arguments)` is the same.
        """
        follow()
        return session.launch(self.func, list(arguments), **self._launch_options())

    def _launch_options(self):
        return {
            "bind_names": self._argument_names,
            "schedule": self._apply_schedule if self._schedule else None,
            "cores": self.lnc or 1,
            "grid": 0 if self.lnc is None else 1,
            "target": self.options.get("platform_target"),
        }

    def __getitem__(self, lnc):
        count = lnc[0] if isinstance(lnc, tuple) and len(lnc) == 1 else lnc
        if count not in (1, 2):
            raise BadInput("bad input", "LNC1", f"kernel[{lnc}]: a logical core joins 1 or 2 physical cores.")
        return Kernel._with(self, lnc=count)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def with_schedule(self, pairs):
        """Adds edges: pairs of (consumer, producer or [producers]), by the `name=` of instructions."""
        made = Kernel._with(self)
        made._schedule = self._schedule + [(consumer, producers) for consumer, producers in pairs]
        return made

    @staticmethod
    def _with(kernel, lnc=None):
        made = Kernel(kernel.func, lnc or kernel.lnc, kernel.options)
        made._schedule = kernel._schedule
        return made

    def _argument_names(self, args, kwargs):
        if self._names is None:
            try:
                self._names = [p.name for p in inspect.signature(self.func).parameters.values()]
            except (TypeError, ValueError):
                self._names = []
        return self._names + [f"arg{i}" for i in range(len(self._names), len(args))]

    def _apply_schedule(self, recording):
        for consumer, producers in self._schedule:
            for producer in producers if isinstance(producers, (list, tuple)) else [producers]:
                recording.edge_by_name(producer, consumer)


def jit(fn=None, **options):
    """Makes a kernel of a function; also `@nki.jit(mode=..., ...)`. `mode` and unknown options are accepted and ignored.

    Before NKI 0.3 `platform_target` names the chip.
    """
    # Sources: the quickstart of Neuron SDK 2.27 (the argument sets what the environment variable sets); the update guide of
    # NKI 0.3 (it raises an error).
    if "platform_target" in options and not settings.nki_before((0, 3)):
        raise BadInput(
            "bad input",
            "JIT1",
            "nki.jit(platform_target=...) is not accepted since NKI 0.3: set NEURON_PLATFORM_TARGET_OVERRIDE, or use "
            "sterna run --target; STERNA_NKI_VERSION=0.2 accepts it.",
        )
    fn = options.pop("func", fn)  # its name in NKI 0.3
    if fn is None:
        return lambda function: jit(function, **options)
    return fn if isinstance(fn, Kernel) else Kernel(fn, options=options)


def simulate(kernel):
    """A callable that runs `kernel` (a plain function is wrapped) on arrays and gives arrays of the same kind."""
    return kernel if isinstance(kernel, Kernel) else _wrap(kernel)


def _wrap(kernel):
    if callable(kernel):
        return Kernel(kernel)
    # An object that is only subscriptable, such as a library's own launcher.
    return kernel


cpu_simulate = simulate
