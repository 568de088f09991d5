# SPDX-License-Identifier: Apache-2.0
"""Collectives over ranks, with the signatures of nki.collectives (SDK 2.32).

`sterna.launch(kernel, arguments)` runs a kernel on several ranks; a kernel called by itself is rank 0 of 1.
"""

from nki import language as nl
from nki._declare import instruction
from nki._objects import NKIObject
from nki._remarks import fail as _fail
from nki._version import missing as _missing
from sterna import _core


class ReplicaGroup(NKIObject):
    """Lists of ranks that communicate; a rank is in one of them."""

    def __init__(self, groups):
        self.groups = [[int(rank) for rank in group] for group in groups]

    def __repr__(self):
        return f"ReplicaGroup({self.groups})"


@instruction
def _all_reduce(dst, src, group, op, priority=None, name=None):
    """dst = op over the ranks' src."""


@instruction
def _all_gather(dst, src, group, dim, priority=None, name=None):
    """dst = the ranks' src one behind the other."""


@instruction
def _reduce_scatter(dst, src, group, op, dim, priority=None, name=None):
    """dst = a part of the reduction of the ranks' src."""


@instruction
def _all_to_all(dst, src, group, dim, priority=None, name=None):
    """Ranks exchange parts."""


@instruction
def _all_to_all_v(dst, src, metadata, group, counts_known, has_places, uniform, priority=None, name=None):
    """Ranks exchange chunks of sizes known at run time."""


@instruction
def _collective_permute(dst, src, pairs, priority=None, name=None):
    """dst of each target = src of its source."""


@instruction
def _collective_permute_implicit(dst, src, group, channel, priority=None, name=None):
    """dst of each rank's successor = src."""


_permute_reduce = _core.instruction(
    "collective_permute_implicit",
    ("dst", "src", "src1", "group", "op", "channel", "priority", "name"),
    (None, None),
    lambda: None,
)


@instruction
def _rank_id(dst, name=None):
    """dst = this rank."""


@instruction
def _ring_rank_id(dst, group, iteration, channel, name=None):
    """dst = the rank whose data is here."""


def _lists(group):
    return group.groups if isinstance(group, ReplicaGroup) else group


def _text(group):
    return str([[int(rank) for rank in ranks] for ranks in _lists(group)])


def _pairs(what, srcs, dsts, many=True):
    """(src, dst) of each tensor of a coalesced collective; a single tensor stands for a list of one."""
    srcs = srcs if isinstance(srcs, (list, tuple)) else [srcs]
    dsts = dsts if isinstance(dsts, (list, tuple)) else [dsts]
    if len(srcs) != len(dsts) or not srcs:
        _fail(
            "CC11", f"{what} has {len(srcs)} sources and {len(dsts)} destinations; give as many of each.", "rule broken"
        )
    if len(srcs) > 1 and (not many or any(_on_chip(tensor) for tensor in srcs)):
        _fail("CC12", f"{what} takes one tensor here: several in one call must be in HBM.", "rule broken")
    return zip(srcs, dsts)


def _on_chip(tensor):
    return tensor.buffer in (nl.sbuf, nl.psum)


def _check_op(op):
    if op is None:
        _fail("CC6", "Collectives reduce by add, minimum or maximum; 'op' is missing.", "rule broken")


def all_reduce(srcs, dsts, replica_group, op, priority=None, name=None):
    """Each dst = op (add, minimum, maximum) over the ranks' src, in the order of the group."""
    _check_op(op)
    for src, dst in _pairs("all_reduce", srcs, dsts):
        _all_reduce(dst, src, _text(replica_group), op, priority, name)


def all_gather(srcs, dsts, replica_group, collective_dim, priority=None, name=None):
    """Each dst = the ranks' src one behind the other along collective_dim."""
    for src, dst in _pairs("all_gather", srcs, dsts):
        _all_gather(dst, src, _text(replica_group), collective_dim, priority, name)


def reduce_scatter(srcs, dsts, replica_group, collective_dim, op, priority=None, name=None):
    """Each dst = this rank's part along collective_dim of the reduction of the ranks' src."""
    _check_op(op)
    for src, dst in _pairs("reduce_scatter", srcs, dsts):
        _reduce_scatter(dst, src, _text(replica_group), op, collective_dim, priority, name)


def all_to_all(srcs, dsts, replica_group, collective_dim, priority=None, name=None):
    """Part j of rank i's dst = part i of rank j's src, along collective_dim."""
    for src, dst in _pairs("all_to_all", srcs, dsts):
        _all_to_all(dst, src, _text(replica_group), collective_dim, priority, name)


def _chunks(what, uniform, srcs, dsts, group, metadata, counts_known, has_places, priority, name):
    for src, dst in _pairs(what, srcs, dsts, many=False):
        _all_to_all_v(dst, src, metadata, _text(group), counts_known, has_places, uniform, priority, name)


def all_gather_v(
    srcs,
    dsts,
    replica_group,
    metadata_tensor,
    recv_counts_known=False,
    has_rdispls=False,
    priority=None,
    name=None,
):
    """Every rank sends one chunk, of a size known at run time, to all; rows of metadata_tensor: count, place, received, places."""
    # Of the document's "current limitations" the one about the lists; the core sees to the others.
    if any(len(ranks) != 4 for ranks in _lists(replica_group)):
        _fail("CC17", f"all_gather_v takes lists of exactly 4 ranks, not {_text(replica_group)}.", "rule broken")
    _chunks(
        "all_gather_v", True, srcs, dsts, replica_group, metadata_tensor, recv_counts_known, has_rdispls, priority, name
    )


def all_to_all_v(
    srcs,
    dsts,
    replica_group,
    metadata_tensor,
    recv_counts_known=False,
    has_rdispls=False,
    priority=None,
    name=None,
):
    """Ranks send each other chunks of sizes known at run time; rows of metadata_tensor: counts, places, received, places."""
    _chunks(
        "all_to_all_v",
        False,
        srcs,
        dsts,
        replica_group,
        metadata_tensor,
        recv_counts_known,
        has_rdispls,
        priority,
        name,
    )


def collective_permute(srcs, dsts, source_target_pairs, priority=None, name=None):
    """dst of each target rank = src of its source rank."""
    for src, dst in _pairs("collective_permute", srcs, dsts, many=False):
        _collective_permute(dst, src, _text(source_target_pairs), priority, name)


def _channels(what, channel_ids, *lists):
    if len(channel_ids) == 0 or list(channel_ids) != list(range(len(channel_ids))):
        message = f"{what}: the channel_ids {list(channel_ids)} are not 0, 1, ... without a gap."
        _fail("CC16", message, "rule broken")
    if any(len(one) != len(channel_ids) for one in lists):
        _fail("CC11", f"{what} takes one list of tensors for each of its {len(channel_ids)} channels.", "rule broken")
    for channel, *tensors in zip(channel_ids, *lists):
        if any(len(inner) != 1 for inner in tensors):
            _fail("CC12", f"{what} takes one tensor a channel.", "rule broken")
        yield channel, [inner[0] for inner in tensors]


def collective_permute_implicit(
    srcs_by_channel, dsts_by_channel, replica_group, channel_ids=(0,), priority=None, name=None
):
    """Each rank's src goes to the dst of its successor in the ring of its group."""
    what = "collective_permute_implicit"
    for channel, (src, dst) in _channels(what, channel_ids, srcs_by_channel, dsts_by_channel):
        _collective_permute_implicit(dst, src, _text(replica_group), channel, priority, name)


def collective_permute_implicit_reduce(
    srcs0_by_channel, srcs1_by_channel, dsts_by_channel, replica_group, op, channel_ids=(0,), priority=None, name=None
):
    """Each rank's op(src0, src1) goes to the dst of its successor in the ring of its group."""
    what = "collective_permute_implicit_reduce"
    _check_op(op)
    lists = (srcs0_by_channel, srcs1_by_channel, dsts_by_channel)
    for channel, (src0, src1, dst) in _channels(what, channel_ids, *lists):
        _permute_reduce(dst, src0, src1, _text(replica_group), op, channel, priority, name)


def rank_id(name=None):
    """This rank, in a register."""
    register = _core.current().register()
    _rank_id(register, name)
    return register


def collective_permute_implicit_current_processing_rank_id(iteration_id, replica_group, channel_id=0, name=None):
    """The rank whose data is here after `iteration_id` turns of the ring, in a register."""
    register = _core.current().register()
    _ring_rank_id(register, _text(replica_group), iteration_id, channel_id, name)
    return register


def __getattr__(name):
    raise _missing("nki.collectives", name)
