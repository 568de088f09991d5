# SPDX-License-Identifier: Apache-2.0
"""The compile modes of the suite: a kernel is recorded and checked against the chip's rules, but not executed."""

import dataclasses
import os

import sterna
from sterna.faults import Fault, RuleError


class NKIFrontend:
    """Base class of front ends."""


class ParserFrontend(NKIFrontend):
    """`compile` gives the recorded program of a kernel."""

    def compile(
        self, function, *, inputs, target, lnc=1, artifacts_dir=None, dump_python_ast=False, output_names=None, **unused
    ):
        """Records `function` on arrays; raises what the recording or the program's placement in memory raises."""
        import nki

        with sterna.profile(target, values=False) as profile:
            nki.simulate(function)[lnc](**inputs)
        kernel = profile.kernels[0] if profile.kernels else None
        if kernel is not None and isinstance(kernel.refused, RuleError):
            raise kernel.refused
        return Compiled(kernel, output_names)


class TracerFrontend(ParserFrontend):
    """The same here: both record."""


class Compiled:
    """What a front end gives: the program, and the names of its results."""

    def __init__(self, kernel, output_names):
        self.kernel = kernel
        self.output_names = output_names
        self.module = self
        self.operation = self

    def text(self):
        """The program in its text form."""
        try:
            return self.kernel.recording.text() if self.kernel is not None else ""
        except Fault as fault:
            return f"# {fault}\n"

    def print(self, file=None, **options):
        print(self.text(), file=file)


@dataclasses.dataclass
class CompileOptions:
    """Where the result goes; what an optimiser would want is kept and not looked at."""

    target: str = "trn2"
    lnc: int = 1
    output_path: str = "file.neff"
    artifacts_dir: str = None
    neuronx_cc_args: tuple = ()

    def disable_backend_optimizations(self):
        return self


class CompiledKernel:
    """A program on disk. In place of a binary for the chip, the file holds the program's text form."""

    def __init__(self, neff_path, output_specs=None, input_output_aliases=None):
        self.neff_path = neff_path
        self.output_specs = output_specs
        self.input_output_aliases = input_output_aliases

    @classmethod
    def from_frontend(cls, compiled, options):
        os.makedirs(os.path.dirname(os.path.abspath(options.output_path)), exist_ok=True)
        with open(options.output_path, "w", encoding="utf-8") as file:
            file.write(compiled.text())
        return cls(options.output_path)
