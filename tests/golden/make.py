# SPDX-License-Identifier: Apache-2.0
"""Writes the golden cases that NumPy can work out: python tests/golden/make.py

Only instructions' own cases come from here; those of tests/golden/semantics are written by hand.
"""

import case
import cases_engines
import cases_movement
import cases_mx
import cases_random
import cases_vector

MODULES = [cases_vector, cases_engines, cases_movement, cases_mx, cases_random]

if __name__ == "__main__":
    for module in MODULES:
        for write in module.ALL:
            write()
    print(f"{len(case.WRITTEN)} files written")
