# SPDX-License-Identifier: Apache-2.0
"""Kernels of several ranks, each with inputs of its own, as the collectives tests have them."""

from sterna.faults import NotImplementedFault


def launch(kernel, lnc, inputs):
    """Runs `kernel[lnc]` once on each rank's inputs (a list of dicts, rank 0 first); gives a list of what the ranks return.

    A kernel that uses no collectives may run rank after rank; one that does needs all ranks at once.
    """
    try:
        from sterna import ranks
    except ImportError:
        raise NotImplementedFault(
            "not implemented", "NYI1", f"{len(inputs)} ranks with inputs of their own: only one rank can be run."
        ) from None
    return ranks.launch(kernel, lnc, inputs)
