# SPDX-License-Identifier: Apache-2.0
"""The instructions, with the signatures of nki.isa (SDK 2.32). Each records one instruction and returns its handle.

Semantics, shapes, types and rules of each are documented with the instruction in Sterna's core and in its reference.
"""

from numbers import Real as _Real

from nki import language as nl
from nki._declare import instruction
from nki._objects import NKIObject as NKIObject
from nki._remarks import fail as _fail
from nki._version import before as _before
from nki._version import missing as _missing
from nki.isa.constants import (
    dge_mode,
    dma_engine,
    engine,
    gpsimd_engine,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
    scalar_engine,
    tensor_engine,
    unknown_engine,
    vector_engine,
)
from sterna import _core, settings
from sterna.faults import RuleError as NkiValidationError

VirtualRegister = _core.Register
NkiInstruction = _core.NkiInstruction

_FP32_MIN = -3.4028234663852886e38

# --- tensor engine


@instruction
def nc_matmul(
    dst,
    stationary,
    moving,
    is_stationary_onezero=False,
    is_moving_onezero=False,
    is_transpose=False,
    accumulate=None,
    tile_position=(),
    tile_size=(),
    perf_mode=matmul_perf_mode.none,
    name=None,
):
    """dst[m, n] (+)= sum over k of stationary[k, m] * moving[k, n]; accumulate: overwrite, add, or by the PSUM location (None)."""


@instruction
def nc_matmul_mx(
    dst,
    stationary,
    moving,
    stationary_scale,
    moving_scale,
    tile_position=None,
    tile_size=None,
    accumulate=None,
    name=None,
):
    """dst[m, n] (+)= sum over k of stationary[k, m] * moving[k, n] of x4 elements, each times its block's scale."""


@instruction
def nc_transpose(dst, data, engine=engine.unknown, name=None):
    """dst[n, p] = data[p, n], free axes flattened."""


# --- vector engine


@instruction
def tensor_tensor(dst, data1, data2, op, engine=engine.unknown, name=None):
    """dst = data1 op data2."""


@instruction
def tensor_scalar(
    dst, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, engine=engine.unknown, name=None
):
    """dst = (data op0 operand0) op1 operand1; operands immediate or (P, 1)."""


@instruction
def scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, name=None):
    """dst = (data op0 operand0) op1 operand1; operand0 immediate or (P, 1), operand1 a tile."""


@instruction
def tensor_copy(dst, src, engine=engine.unknown, name=None, dtype=None):
    """dst = src, converted to dst's type. `dtype` is of NKI 0.2 and has no effect: dst's own type decides."""


@instruction
def tensor_copy_predicated(dst, src, predicate, reverse_pred=False, name=None):
    """dst = src where the predicate holds; other elements keep what they have."""


@instruction
def tensor_reduce(dst, op, data, axis, negate=False, keepdims=False, name=None):
    """dst = reduction of data over trailing free axes."""


@instruction
def tensor_scalar_reduce(
    dst,
    data,
    op0,
    operand0,
    reduce_op,
    reduce_res=None,
    reverse0=False,
    reduce_cmd=reduce_cmd.reset_reduce,
    reduce_init=None,
    reduce_res_negate=False,
    name=None,
):
    """dst = data op0 operand0, and its reduction over the free axes."""


@instruction
def tensor_scalar_cumulative(dst, src, op0, op1, imm0, imm1=None, reduce_cmd=reduce_cmd.reset_reduce, name=None):
    """Running op1 over (src op0 imm0)."""


@instruction
def tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False, name=None):
    """r[i] = (data0[i] op0 r[i-1]) op1 data1[i]."""


@instruction
def select_reduce(
    dst,
    predicate,
    on_true,
    on_false,
    reduce_res=None,
    reduce_cmd=reduce_cmd.idle,
    reduce_op=nl.maximum,
    reverse_pred=False,
    name=None,
):
    """dst = on_true where the predicate holds, else on_false; optionally its maximum."""


@instruction
def range_select(
    dst,
    on_true_tile,
    comp_op0,
    comp_op1,
    bound0,
    bound1,
    reduce_cmd=reduce_cmd.reset_reduce,
    reduce_res=None,
    reduce_op=nl.maximum,
    range_start=0,
    on_false_value=_FP32_MIN,
    name=None,
):
    """dst = tile where the element's index is within bounds, else the least fp32; optionally its maximum."""


@instruction
def memset(dst, value, engine=engine.unknown, name=None):
    """Every element of dst becomes value."""


@instruction
def reciprocal(dst, data, name=None):
    """dst = 1 / data."""


@instruction
def bn_stats(dst, data, name=None):
    """Count, mean and count * variance of the even and of the odd elements of each partition."""


@instruction
def bn_aggr(dst, data, name=None):
    """Mean and variance from the triples of bn_stats."""


@instruction
def max8(dst, src, name=None):
    """The eight largest elements of each partition, in descending order."""


@instruction
def nc_find_index8(dst, data, vals, name=None):
    """The index of each of eight values in each partition."""


@instruction
def nc_match_replace8(dst, data, vals, imm, dst_idx=None, name=None):
    """Replaces the first occurrence of each of eight values."""


@instruction
def _quantize_mx(dst, src, dst_scale, ocp_scale=False, zero_padding=False, name=None):
    """dst, dst_scale = src in blocks of 8 partitions x 4 elements."""


def quantize_mx(dst, src, dst_scale, name=None):
    """dst, dst_scale = src in blocks of 8 partitions x 4 elements; before NKI 0.5 with a scale half as large."""
    return _quantize_mx(dst, src, dst_scale, ocp_scale=_before("0.5"), zero_padding=_before("0.6"), name=name)


@instruction
def nc_stream_shuffle(dst, src, shuffle_mask, name=None):
    """Within each 32 partitions dst[i] = src[mask[i]]; 255 keeps dst."""


@instruction
def exponential(dst, src, max_value=0.0, reduce_res=None, reduce_cmd=reduce_cmd.idle, reduce_init=0.0, name=None):
    """dst = exp(src - max_value), optionally summed over the free axes."""


@instruction
def rng(dst, engine=engine.vector, name=None):
    """dst = random bits, as many as its integers hold."""


@instruction
def rand2(dst, min, max, name=None):
    """dst = uniform random numbers from min to max; each immediate or (P, 1)."""


@instruction
def set_rng_seed(src_seeds, name=None):
    """Seeds the vector engine's generator with the one 32-bit element of src_seeds."""


@instruction
def rand_set_state(src_seeds, engine=engine.gpsimd, name=None):
    """Each lane's generator takes the state in its partition of src_seeds: 6 words (GpSimd) or 24 (vector)."""


@instruction
def rand_get_state(dst, engine=engine.gpsimd, name=None):
    """dst = the state of each lane's generator, as rand_set_state takes it."""


@instruction
def dropout(dst, data, prob, name=None):
    """dst = data, with zeros instead of elements drawn with probability prob: immediate or (P, 1)."""


# --- scalar engine


@instruction
def activation(
    dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle, name=None
):
    """dst = op(data * scale + bias), optionally summed over the free axes."""


@instruction
def activation_reduce(dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0, name=None):
    """dst = op(data * scale + bias), and its sum over the free axes."""


@instruction
def activate2(
    dst,
    op,
    data,
    imm0,
    imm1,
    op0,
    op1,
    relu_param=0.0,
    reverse0=False,
    reverse1=False,
    reduce_op=None,
    reduce_res=None,
    reduce_cmd=reduce_cmd.idle,
    name=None,
):
    """dst = op((data op0 imm0) op1 imm1), optionally reduced over the free axes."""


# --- GpSimd engine


@instruction
def iota(dst, pattern, offset=0, channel_multiplier=0, name=None):
    """dst = offset + p * channel_multiplier + affine pattern."""


@instruction
def affine_select(dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op=nl.equal, offset=0, name=None):
    """dst = tile where cmp_op(affine value, 0) holds, else on_false_value."""


@instruction
def tensor_partition_reduce(dst, op, data, name=None):
    """dst = reduction of data over partitions."""


@instruction
def nc_n_gather(dst, data, indices, name=None):
    """dst = elements of each partition, by index."""


@instruction
def local_gather(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, name=None):
    """Gathers by indices shared by 16 partitions."""


@instruction
def sequence_bounds(dst, segment_ids, name=None):
    """dst[0, 0], dst[0, 1] = where each element's segment begins and ends; (n, -1) for padding, id 0."""


@instruction
def nonzero_with_count(dst, src, index_offset=0, padding_val=-1, name=None):
    """On partitions 0, 16, ...: the places of src's non-zero elements, then padding_val; last, how many there are."""


@instruction
def topk(val_dst, idx_dst, src, n, name=None):
    """The largest elements of each 16 partitions, ascending, and where they are; src's n elements run down its columns."""


# --- DMA


@instruction
def dma_copy(
    dst, src, priority=None, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown, engine=engine.unknown, name=None
):
    """dst takes src's elements in order, between HBM and SBUF in any shape."""


@instruction
def dma_transpose(dst, src, axes=None, priority=None, dge_mode=dge_mode.unknown, oob_mode=oob_mode.error, name=None):
    """dst = src with its axes reversed as `axes` says."""


@instruction
def _dma_compute(
    dst,
    src0=None,
    src1=None,
    src2=None,
    src3=None,
    src4=None,
    src5=None,
    src6=None,
    src7=None,
    src8=None,
    src9=None,
    src10=None,
    src11=None,
    src12=None,
    src13=None,
    src14=None,
    src15=None,
    reduce_op=nl.add,
    unique_indices=True,
    oob_mode=oob_mode.error,
    name=None,
):
    """dst = src0 + src1 + ..."""


_MOST_SOURCES = 16


def dma_compute(dst, srcs, reduce_op, scales=None, unique_indices=True, oob_mode=oob_mode.error, name=None):
    """dst = sum of srcs, element by element in fp32, by DMA; with an offset tensor, what dst or a source holds is added to."""
    if not isinstance(srcs, (list, tuple)):
        raise TypeError(f"'srcs' must be a list of tensors, not {type(srcs).__name__}")
    for i, source in enumerate(srcs):
        if source is None:
            _fail("ARG2", f"dma_compute: srcs[{i}] is None; each source is a tensor.", "wrong type")
    if not 0 < len(srcs) <= _MOST_SOURCES:
        _fail("DC2", f"dma_compute takes 1 to {_MOST_SOURCES} sources, not {len(srcs)}.", "rule broken")
    single = scales is None or isinstance(scales, _Real)
    if not single and (not hasattr(scales, "__iter__") or isinstance(scales, _core.Tensor)):
        raise TypeError(f"'scales' must be a list of numbers, not {type(scales).__name__}")
    factors = (scales,) * len(srcs) if single else tuple(scales)
    if len(factors) != len(srcs) or not all(f is None or (isinstance(f, _Real) and f == 1) for f in factors):
        _fail(
            "DC4",
            f"dma_compute takes each source times 1, as NKI does; scales={scales} must be 1 for each.",
            "rule broken",
        )
    return _dma_compute(dst, *srcs, reduce_op=reduce_op, unique_indices=unique_indices, oob_mode=oob_mode, name=name)


# --- cores of one kernel


@instruction
def sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine=dma_engine.dma, name=None):
    """Sends src to one core and takes into dst what another sends; both sides name the same pipe."""


@instruction
def core_barrier(data, cores, engine=engine.gpsimd, name=None):
    """The cores listed wait for each other; what they wrote into data is then there for all."""


# --- registers


def register_alloc(x=None):
    """A new register, holding `x` if given (a whole number or a tensor of one element)."""
    register = _core.current().register()
    if isinstance(x, _core.Tensor):
        register_load(register, x)
    elif x is not None:
        register_move(register, x)
    return register


def _check_not_frozen(register):
    if isinstance(register, _core.Register) and register.frozen:
        _fail("REG3", "The register of a loop cannot be written inside the loop.", "rule broken")


@instruction
def _register_move(dst, src=None, value=None):
    """dst = src or value."""


def register_move(dst, src):
    """dst = src, a register or a whole number."""
    _check_not_frozen(dst)
    if src is None:
        _fail("ARG2", "register_move: 'src' is None; it is a register or a whole number.", "wrong type")
    return _register_move(dst, src) if isinstance(src, _core.Register) else _register_move(dst, None, src)


@instruction
def _register_load(dst, src):
    """dst = the one element of src."""


def register_load(dst, src):
    """dst = the one element of src."""
    _check_not_frozen(dst)
    return _register_load(dst, src)


@instruction
def register_store(dst, src):
    """The one element of dst = src."""


# --- the target


def get_nc_version():
    """Generation of the target, as nc_version."""
    target = _core.current().target if _core.is_recording() else settings.target()
    generation = settings.chip(target)["generation"]
    return nc_version(generation) if generation in list(nc_version) else nc_version.gen4


def get_nc_sub_version():
    """Variant of the generation: always 0, since no document tells them apart."""
    return 0


def __getattr__(name):
    raise _missing("nki.isa", name)
