# SPDX-License-Identifier: Apache-2.0
"""What the public nki-library test suite needs around the `nki` package, so that a clean clone runs as it is.

Loaded by the pytest plug-in ``sterna.pytest_nki_library`` only; see docs/nki-library.md.

* :mod:`modules` registers the modules that the suite imports and that are not public;
* :mod:`harness` joins the suite's own harness: figures, ranks, cases that need much memory;
* :mod:`figures` counts kernel time and work, and writes the summary;
* :mod:`record` keeps a run in a file, from which another goes on.
"""
