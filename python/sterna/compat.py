# SPDX-License-Identifier: Apache-2.0
"""The names of the AWS packages, for callers who start without `site-packages` start-up files.

A normal installation needs nothing from here: `sterna_compat.pth` puts the finder in place. `python -S`, and
`pip install --target`, skip such files; there, `import sterna.compat; sterna.compat.install()` does the same.
"""

from _sterna_hook import Finder, install, is_placeholder

__all__ = ["Finder", "install", "is_placeholder"]
