# SPDX-License-Identifier: Apache-2.0
"""NKI on Sterna: `nki.jit` kernels run on any Linux machine, with values and a predicted time.

The names and defaults are NKI's (SDK 2.32, NKI 0.6); everything is recorded and checked by Sterna's C++ core.
"""

import os as _os

from sterna import _core

_core.internal_prefix(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from nki import collectives as collectives  # noqa: E402
from nki import dtype as dtype  # noqa: E402
from nki import isa as isa  # noqa: E402
from nki import language as language  # noqa: E402
from nki import typing as typing  # noqa: E402
from nki._kernel import Kernel, cpu_simulate, jit, simulate  # noqa: E402
from nki._unavailable import removed as _removed  # noqa: E402
from nki._version import follow as _follow  # noqa: E402

__version__ = "0.6.0"
__all__ = ["Kernel", "collectives", "cpu_simulate", "dtype", "isa", "jit", "language", "simulate", "typing"]

_follow()


def __getattr__(name):
    return _removed("nki", name)
