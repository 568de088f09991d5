# SPDX-License-Identifier: Apache-2.0
"""Annotations: `nt.tensor[shape]`. They have no effect."""


class _Annotation:
    def __init__(self, name):
        self.__name__ = name

    def __getitem__(self, shape):
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __repr__(self):
        return f"nki.typing.{self.__name__}"


tensor = _Annotation("tensor")
mutable_tensor = _Annotation("mutable_tensor")
