# SPDX-License-Identifier: Apache-2.0
"""NKIObject: classes that kernels pass around, under the compiler's rules rather than Python's.

* a bare class attribute (`section = None`) is a field like an annotated one;
* an annotated field without a value is None;
* a subclass that is not a dataclass and has no `__init__` gets one that takes its fields by position or keyword, and then
  calls `__post_init__` if there is one.
"""

import types


class NKIObject:
    """Base class of objects that a kernel may hold; see the module."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        fields = dict(cls.__dict__.get("__annotations__", {}))
        for name, value in list(vars(cls).items()):
            if name.startswith("__") or name in fields or not _is_field(value):
                continue
            fields[name] = type(value)
        cls.__annotations__ = fields
        for name in fields:
            if name not in cls.__dict__:
                setattr(cls, name, None)

    def __init__(self, *args, **kwargs):
        # Here and not in the subclass, where `@dataclass` would take it for one that the user wrote, and make none.
        cls = type(self)
        names = [name for base in reversed(cls.__mro__) for name in base.__dict__.get("__annotations__", {})]
        names = list(dict.fromkeys(names))
        if len(args) > len(names):
            raise TypeError(f"{cls.__name__}() takes at most {len(names)} arguments, {len(args)} given")
        for name, value in zip(names, args):
            setattr(self, name, value)
        for name, value in kwargs.items():
            if name not in names:
                raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {name!r}")
            setattr(self, name, value)
        if hasattr(self, "__post_init__"):
            self.__post_init__()


def _is_field(value):
    return not isinstance(
        value,
        (types.FunctionType, classmethod, staticmethod, property, type, types.MethodType, types.MemberDescriptorType),
    )
