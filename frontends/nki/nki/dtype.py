# SPDX-License-Identifier: Apache-2.0
"""Number formats by name, as a module: `nki.dtype.bfloat16`."""

from nki._dtypes import ALL, DType

globals().update({name: dtype for name, dtype in ALL.items() if name != "bool"})
bool_ = ALL["bool"]
__all__ = ["DType", "bool_", *(name for name in ALL if name != "bool")]
