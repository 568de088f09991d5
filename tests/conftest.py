# SPDX-License-Identifier: Apache-2.0
"""Fixtures of these tests."""

from mini_library import suite  # noqa: F401
