# SPDX-License-Identifier: Apache-2.0
"""Buffers used in turn, so that a load can run while an earlier tile is still in use."""

import nki.language as nl


class Ring:
    """`count` tiles of one shape; next() gives the one that was given longest ago."""

    def __init__(self, count, shape, dtype, buffer=nl.sbuf):
        self.tiles = [nl.ndarray(shape, dtype=dtype, buffer=buffer) for _ in range(count)]
        self.given = 0

    def next(self):
        tile = self.tiles[self.given % len(self.tiles)]
        self.given += 1
        return tile
