# SPDX-License-Identifier: Apache-2.0
"""The kernel cache: what a kernel's code sees is part of the key, or the kernel is not kept. docs/decisions/0014-kernel-cache.md."""

import types

import numpy as np
import pytest
from cached_kernel import scaled, x

import nki

pytestmark = pytest.mark.usefixtures("empty_cache")

SCALE = 2.0
TABLE = [1.0, 2.0]


def changed_global():
    global SCALE

    def kernel(a):
        return scaled(a, SCALE)

    def change():
        global SCALE
        SCALE = 5.0

    SCALE = 2.0
    return kernel, change, 5.0


def changed_closure():
    factor = 2.0

    def kernel(a):
        return scaled(a, factor)

    def change():
        nonlocal factor
        factor = 5.0

    return kernel, change, 5.0


def changed_list():
    TABLE[:] = [1.0, 2.0]

    def kernel(a):
        return scaled(a, TABLE[1])

    def change():
        TABLE[1] = 5.0

    return kernel, change, 5.0


def changed_default():
    def kernel(a, factor=2.0):
        return scaled(a, factor)

    def change():
        kernel.__defaults__ = (5.0,)

    return kernel, change, 5.0


def changed_helper():
    space = {"scaled": scaled}
    exec("def factor(): return 2.0\ndef helper(a): return scaled(a, factor())\ndef kernel(a): return helper(a)", space)

    def change():
        exec("def factor(): return 5.0", space)

    return space["kernel"], change, 5.0


def changed_code():
    def factor():
        return 2.0

    def kernel(a):
        return scaled(a, factor())

    def change():
        factor.__code__ = (lambda: 5.0).__code__

    return kernel, change, 5.0


def changed_module():
    module = types.ModuleType("constants")
    module.factor = 2.0

    def kernel(a):
        return scaled(a, module.factor)

    def change():
        module.factor = 5.0

    return kernel, change, 5.0


def changed_class():
    class Config:
        factor = 2.0

        def get(self):
            return self.factor

    def kernel(a):
        return scaled(a, Config().get())

    def change():
        Config.factor = 5.0

    return kernel, change, 5.0


def changed_method():
    class Config:
        def get(self):
            return 2.0

    def kernel(a):
        return scaled(a, Config().get())

    def change():
        Config.get = lambda self: 5.0

    return kernel, change, 5.0


CHANGES = [
    changed_global,
    changed_closure,
    changed_list,
    changed_default,
    changed_helper,
    changed_code,
    changed_module,
    changed_class,
    changed_method,
]


@pytest.mark.parametrize("make", CHANGES, ids=lambda f: f.__name__)
def test_what_the_code_sees_is_noticed(make):
    kernel, change, after = make()
    run = nki.jit(kernel)
    a = x()
    for _ in range(3):
        np.testing.assert_array_equal(run(a), a * np.float32(2))
    change()
    for _ in range(3):
        np.testing.assert_array_equal(run(a), a * np.float32(after))


def changed_array():
    factors = np.array([2.0], np.float32)

    def kernel(a):
        return scaled(a, float(factors[0]))

    def change():
        factors[0] = 5.0

    return kernel, change, 5.0


def changed_mutable_default():
    settings = {"factor": 2.0}

    def kernel(a, given=settings):
        return scaled(a, given["factor"])

    def change():
        settings["factor"] = 5.0

    return kernel, change, 5.0


def changed_function_attribute():
    def helper():
        return helper.factor

    helper.factor = 2.0

    def kernel(a):
        return scaled(a, helper())

    def change():
        helper.factor = 5.0

    return kernel, change, 5.0


def changed_nested_class():
    class Outer:
        class Inner:
            factor = 2.0

    def kernel(a):
        return scaled(a, Outer.Inner.factor)

    def change():
        Outer.Inner.factor = 5.0

    return kernel, change, 5.0


def changed_bound_object():
    class Config:
        def __init__(self):
            self.factor = 2.0

        def kernel(self, a):
            return scaled(a, self.factor)

    config = Config()

    def change():
        config.factor = 5.0

    return config.kernel, change, 5.0


def changed_inside_import():
    import sys

    module = sys.modules["constants_for_a_test"] = types.ModuleType("constants_for_a_test")
    module.factor = 2.0

    def kernel(a):
        import constants_for_a_test

        return scaled(a, constants_for_a_test.factor)

    def change():
        module.factor = 5.0

    return kernel, change, 5.0


def changed_by_name():
    module = types.ModuleType("constants")
    module.factor = 2.0

    def kernel(a):
        return scaled(a, getattr(module, "fac" + "tor"))

    def change():
        module.factor = 5.0

    return kernel, change, 5.0


HARDER = [
    changed_array,
    changed_mutable_default,
    changed_function_attribute,
    changed_nested_class,
    changed_bound_object,
    changed_inside_import,
    changed_by_name,
]


@pytest.mark.parametrize("make", HARDER, ids=lambda f: f.__name__)
def test_what_is_hard_to_see_is_noticed_or_not_kept(make):
    test_what_the_code_sees_is_noticed(make)
