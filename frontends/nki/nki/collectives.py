# SPDX-License-Identifier: Apache-2.0
"""Collectives over ranks, with the signatures of nki.collectives (SDK 2.32).

`sterna.launch(kernel, arguments)` runs a kernel on several ranks; a kernel called by itself is rank 0 of 1.
"""

import numbers

from nki import language as nl
from nki._declare import instruction
from nki._objects import NKIObject
from nki._remarks import fail as _fail
from nki._version import missing as _missing
from sterna import _core, settings


class ReplicaGroup(NKIObject):
    """Lists of ranks that communicate; a rank is in one of them."""

    def __init__(self, groups):
        self.groups = [[int(rank) for rank in group] for group in groups]

    def __repr__(self):
        return f"ReplicaGroup({self.groups})"


@instruction
def _all_reduce(dst, src, group, op, name=None):
    """dst = op over the ranks' src."""


@instruction
def _all_gather(dst, src, group, dim, name=None):
    """dst = the ranks' src one behind the other."""


@instruction
def _reduce_scatter(dst, src, group, op, dim, name=None):
    """dst = a part of the reduction of the ranks' src."""


@instruction
def _all_to_all(dst, src, group, dim, name=None):
    """Ranks exchange parts."""


@instruction
def _all_to_all_v(dst, src, metadata, group, counts_known, has_places, uniform, name=None):
    """Ranks exchange chunks of sizes known at run time."""


@instruction
def _collective_permute(dst, src, pairs, name=None):
    """dst of each target = src of its source."""


@instruction
def _collective_permute_implicit(dst, src, group, channel, name=None):
    """dst of each rank's successor = src."""


_permute_reduce = _core.instruction(
    "collective_permute_implicit", ("dst", "src", "src1", "group", "op", "channel", "name"), (None,), lambda: None
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


def _check_priority(priority):
    """DMA5, as of a DMA: 0 to 3, on NeuronCore-v4 and later."""
    if priority is None:
        return
    if not isinstance(priority, numbers.Integral):
        raise TypeError(f"'priority' must be a whole number or None, not {type(priority).__name__}")
    if not _is_gen4():
        _fail("DMA5", "DMA priorities do not exist on this chip; leave 'priority' out.", "not on this chip")
    if not 0 <= priority <= 3:
        _fail("DMA5", f"A DMA priority is 0 to 3, not {priority}.", "rule broken")


def _is_gen4():
    return settings.chip(_core.current().target)["generation"] >= 4


def _check_op(op):
    if op is None:
        _fail("CC6", "Collectives reduce by add, minimum or maximum; 'op' is missing.", "rule broken")


def all_reduce(srcs, dsts, replica_group, op, priority=None, name=None):
    """Each dst = op (add, minimum, maximum) over the ranks' src, in the order of the group."""
    _check_op(op)
    _check_priority(priority)
    for src, dst in _pairs("all_reduce", srcs, dsts):
        _all_reduce(dst, src, _text(replica_group), op, name)


def all_gather(srcs, dsts, replica_group, collective_dim, priority=None, name=None):
    """Each dst = the ranks' src one behind the other along collective_dim."""
    _check_priority(priority)
    for src, dst in _pairs("all_gather", srcs, dsts):
        _check_concatenated(dst, src, collective_dim)
        _all_gather(dst, src, _text(replica_group), collective_dim, name)


def _check_concatenated(dst, src, dim):
    """CC5: along the other dimensions dst is as src. The core sees to `dim` and to the size along it.

    In HBM another number of dimensions, as of a dst with one for the ranks, is a view of the same elements; in SBUF
    tensors have two.
    """
    for tensor in (src, dst):
        if _on_chip(tensor) and tensor.ndim != 2:
            message = f"all_gather in SBUF takes tensors of two dimensions, not {list(tensor.shape)}."
            _fail("CC5", message, "rule broken")
    if not 0 <= dim < src.ndim or dst.ndim != src.ndim:
        return
    if any(have != want for d, (have, want) in enumerate(zip(dst.shape, src.shape)) if d != dim):
        _fail(
            "CC5",
            f"all_gather joins tensors {list(src.shape)} along dimension {dim}; dst {list(dst.shape)} differs in another "
            "dimension.",
            "rule broken",
        )


def reduce_scatter(srcs, dsts, replica_group, collective_dim, op, priority=None, name=None):
    """Each dst = this rank's part along collective_dim of the reduction of the ranks' src."""
    _check_op(op)
    _check_priority(priority)
    for src, dst in _pairs("reduce_scatter", srcs, dsts):
        _reduce_scatter(dst, src, _text(replica_group), op, collective_dim, name)


def all_to_all(srcs, dsts, replica_group, collective_dim, priority=None, name=None):
    """Part j of rank i's dst = part i of rank j's src, along collective_dim."""
    _check_priority(priority)
    for src, dst in _pairs("all_to_all", srcs, dsts):
        _all_to_all(dst, src, _text(replica_group), collective_dim, name)


def _chunks(what, uniform, srcs, dsts, group, metadata, counts_known, has_places, name):
    for src, dst in _pairs(what, srcs, dsts, many=False):
        _all_to_all_v(dst, src, metadata, _text(group), counts_known, has_places, uniform, name)


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
    # The document's "current limitations".
    if has_rdispls:
        _fail("CC17", "all_gather_v does not support has_rdispls=True; leave it out.", "rule broken")
    if _core.current().cores != 2:
        _fail("CC17", "all_gather_v runs on two cores only (LNC=2): call kernel[2].", "rule broken")
    if any(len(ranks) != 4 for ranks in _lists(replica_group)):
        _fail("CC17", f"all_gather_v takes lists of exactly 4 ranks, not {_text(replica_group)}.", "rule broken")
    _check_priority(priority)
    _chunks("all_gather_v", True, srcs, dsts, replica_group, metadata_tensor, recv_counts_known, has_rdispls, name)


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
    if has_rdispls and not _is_gen4():
        message = "all_to_all_v supports has_rdispls=True with a NeuronSwitch only (trn3); leave it out."
        _fail("CC17", message, "not on this chip")
    _check_priority(priority)
    _chunks("all_to_all_v", False, srcs, dsts, replica_group, metadata_tensor, recv_counts_known, has_rdispls, name)


def collective_permute(srcs, dsts, source_target_pairs, priority=None, name=None):
    """dst of each target rank = src of its source rank."""
    _check_priority(priority)
    for src, dst in _pairs("collective_permute", srcs, dsts, many=False):
        _collective_permute(dst, src, _text(source_target_pairs), name)


#: "for replica groups containing all devices inside a node"; others have 2, which depends on how chips are connected
_MOST_CHANNELS = 4


def _channels(what, channel_ids, *lists):
    if not 0 < len(channel_ids) <= _MOST_CHANNELS or list(channel_ids) != list(range(len(channel_ids))):
        _fail(
            "CC16",
            f"{what}: the channel_ids {list(channel_ids)} are not 0, 1, ... without a gap, up to {_MOST_CHANNELS} channels.",
            "rule broken",
        )
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
    _check_priority(priority)
    for channel, (src, dst) in _channels(what, channel_ids, srcs_by_channel, dsts_by_channel):
        _collective_permute_implicit(dst, src, _text(replica_group), channel, name)


def collective_permute_implicit_reduce(
    srcs0_by_channel, srcs1_by_channel, dsts_by_channel, replica_group, op, channel_ids=(0,), priority=None, name=None
):
    """Each rank's op(src0, src1) goes to the dst of its successor in the ring of its group."""
    what = "collective_permute_implicit_reduce"
    _check_op(op)
    _check_priority(priority)
    lists = (srcs0_by_channel, srcs1_by_channel, dsts_by_channel)
    for channel, (src0, src1, dst) in _channels(what, channel_ids, *lists):
        _permute_reduce(dst, src0, src1, _text(replica_group), op, channel, name)


def rank_id(name=None):
    """This rank, in a register."""
    register = _core.current().register()
    _rank_id(register, name)
    return register


def collective_permute_implicit_current_processing_rank_id(iteration_id, replica_group, channel_id=0, name=None):
    """The rank whose data is here after `iteration_id` turns of the ring, in a register."""
    if isinstance(channel_id, numbers.Integral) and not 0 <= channel_id < _MOST_CHANNELS:
        _fail("CC16", f"channel_id={channel_id}: channels are 0 to {_MOST_CHANNELS - 1}.", "rule broken")
    register = _core.current().register()
    _ring_rank_id(register, _text(replica_group), iteration_id, channel_id, name)
    return register


def __getattr__(name):
    raise _missing("nki.collectives", name)
