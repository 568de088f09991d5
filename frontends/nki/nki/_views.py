# SPDX-License-Identifier: Apache-2.0
"""Views of tensors that are made of several others: methods of NkiTensor."""

import math

from nki._remarks import fail
from sterna import _core


def _names(pattern):
    return [name for item in pattern for name in ((item,) if isinstance(item, str) else item)]


def _sizes(group, total, known):
    """The sizes of a group of named dimensions; at most one is not known, and follows from the total."""
    sizes = [known.get(name, -1) for name in group]
    product = math.prod(n for n in sizes if n != -1)
    if sizes.count(-1) > 1 or product == 0 or total % product or (-1 not in sizes and product != total):
        fail(
            "VIEW8",
            f"rearrange: dimensions {group} of sizes {sizes} do not make up {total}; give all but one in fixed_sizes.",
        )
    return [total // product if n == -1 else n for n in sizes]


def rearrange(self, src_pattern, dst_pattern, fixed_sizes=None):
    """A view with dimensions split, reordered and merged: ('b', ('h', 'w')) to ('b', 'w', 'h'), {'h': 4}."""
    before, after = _names(src_pattern), _names(dst_pattern)
    if len(src_pattern) != self.ndim or len(set(before)) != len(before) or sorted(before) != sorted(after):
        fail(
            "VIEW8",
            f"rearrange: {src_pattern} must name the {self.ndim} dimensions of {list(self.shape)}, each name once, and "
            f"{dst_pattern} the same names.",
        )
    view, at = self, 0
    for item, total in zip(src_pattern, self.shape):
        group = (item,) if isinstance(item, str) else item
        sizes = _sizes(group, total, fixed_sizes or {})
        if len(group) > 1:
            view = view.reshape_dim(at, tuple(sizes))
        at += len(group)
    order = tuple(before.index(name) for name in after)
    if order != tuple(range(len(order))):
        view = view.permute(order)
    for at, item in enumerate(dst_pattern):
        if not isinstance(item, str) and len(item) > 1:
            view = view.flatten_dims(at, at + len(item) - 1)
    return view


_core.Tensor.rearrange = rearrange
