# SPDX-License-Identifier: Apache-2.0
"""Writes the golden cases that NumPy can work out: python tests/golden/make.py

Only instructions' own cases come from here; those of tests/golden/semantics are written by hand.
"""

import case
import cases_control
import cases_dma
import cases_engines
import cases_gpsimd
import cases_indirect
import cases_matmul
import cases_mx
import cases_random
import cases_vector
import cases_vector_move
import cases_vector_reduce
import cases_vector_search

MODULES = [
    cases_control,
    cases_dma,
    cases_engines,
    cases_gpsimd,
    cases_indirect,
    cases_matmul,
    cases_mx,
    cases_random,
    cases_vector,
    cases_vector_move,
    cases_vector_reduce,
    cases_vector_search,
]

if __name__ == "__main__":
    for module in MODULES:
        for write in module.ALL:
            write()
    print(f"{len(case.WRITTEN)} files written")
