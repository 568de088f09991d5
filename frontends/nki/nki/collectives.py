# SPDX-License-Identifier: Apache-2.0
"""`nki.collectives`: named, not there yet."""

from nki._unavailable import later

_WHY = "collectives over ranks come with the next release; this one runs a single core."


class ReplicaGroup:
    """Lists of ranks that communicate."""

    def __init__(self, groups):
        self.groups = [list(group) for group in groups]


for _name in (
    "all_reduce all_gather reduce_scatter all_to_all all_gather_v all_to_all_v collective_permute collective_permute_implicit "
    "collective_permute_implicit_reduce collective_permute_implicit_current_processing_rank_id rank_id"
).split():
    globals()[_name] = later(f"nki.collectives.{_name}", _WHY)
