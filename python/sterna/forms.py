# SPDX-License-Identifier: Apache-2.0
"""The shape of what a kernel returns: which result stands where. Plain data, so that a program that is kept can have it beside it.

A form is None, the number of a result, or (kind, items): "tuple" with forms, "dict" with (key, form), a named tuple's class with
forms.
"""


def flatten(returned, results):
    """Appends the tensors in `returned` to `results`; gives the form. Lists become tuples, as with the official simulator."""
    if returned is None:
        return None
    if isinstance(returned, (list, tuple)):
        kind = type(returned) if hasattr(returned, "_fields") else "tuple"
        return kind, [flatten(item, results) for item in returned]
    if isinstance(returned, dict):
        return "dict", [(key, flatten(item, results)) for key, item in returned.items()]
    results.append(returned)
    return len(results) - 1


def fill(form, made):
    """What the kernel returns, with the arrays `made` in place of its results."""
    if form is None:
        return None
    if isinstance(form, int):
        return made[form]
    kind, items = form
    if kind == "dict":
        return {key: fill(item, made) for key, item in items}
    filled = [fill(item, made) for item in items]
    return tuple(filled) if kind == "tuple" else kind(*filled)


def can_be_saved(form):
    """True for a form that JSON gives back: no class, and no key of a dict but texts and whole numbers."""
    if form is None or isinstance(form, int):
        return True
    kind, items = form
    if kind == "dict":
        return all(type(key) in (str, int) and can_be_saved(item) for key, item in items)
    return kind == "tuple" and all(can_be_saved(item) for item in items)
