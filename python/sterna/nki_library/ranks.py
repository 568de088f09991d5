# SPDX-License-Identifier: Apache-2.0
"""Kernels of several ranks, each with inputs of its own, as the collectives tests have them."""

import sterna


def launch(kernel, lnc, inputs):
    """Runs `kernel[lnc]` on every rank's inputs (a list of dicts, rank 0 first); gives a list of what the ranks return."""
    import nki

    return sterna.launch(nki.cpu_simulate(kernel)[lnc], inputs)
