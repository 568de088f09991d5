# SPDX-License-Identifier: Apache-2.0
"""What changed from release to release of NKI. Data only; loaded when another release than the newest is chosen.

Source: the API stubs and pages of the Neuron SDK 2.27 to 2.32 (NKI 0.2 to 0.6), its release notes and migration guides.
"""

# The release in whose public API a name first stands; what is not listed stands there since 0.2, the first of this dialect.
# ap, view and reshape of a tensor got pages in 0.4, but the guides of 0.2 use them. The sizes of tile_size are those of the
# notes of 0.4 and 0.5.
SINCE = {
    "0.3": {
        "nki.collectives": "all_to_all_v",
        "nki.isa": "NKIObject NkiValidationError VirtualRegister",
        "nki.language": (
            "MemoryRegion NkiTensor all arctan broadcast_to ceil copy cos dropout dynamic_range empty_like erf "
            "erf_dx exp expand_dims floor fmod full gather_flattened gelu gelu_apprx_tanh gelu_dx is_hbm "
            "is_on_chip is_psum is_sbuf load load_transpose2d log matmul max mean min mish mod negative "
            "no_reorder ones prod rand random_seed relu rms_norm sigmoid sign silu silu_dx sin softmax softplus "
            "sqrt square store sum tan tanh transpose trunc var where zeros_like"
        ),
        "nki": "simulate",
    },
    "0.4": {
        "nki.isa": "activate2",
        "nki.language.NkiTensor": "get_pattern",
        "nki.language": "abs_max abs_min bypass prelu",
        "nki.language.tile_size": "psum_bank_fmax psum_bank_fmax_bytes sbuf_fmax sbuf_fmax_bytes sbuf_size_bytes",
    },
    "0.5": {
        "nki.isa": "get_nc_sub_version",
        "nki.language.NkiTensor": (
            "broadcast expand_dim flatten_dims indirect is_contiguous is_indirect permute rearrange "
            "reinterpret_cast reshape_dim select slice squeeze_dim vector_select"
        ),
        "nki.language": "average float8_e8m0fnu",
        "nki.language.tile_size": "psum_num_banks",
    },
    "0.6": {
        "nki.collectives": "all_gather_v",
        "nki.isa": "NkiInstruction topk",
        "nki.isa.NkiInstruction": "depends_on",
        "nki.language": "DType fori_loop while_loop",
    },
}

# Operators of instructions in 0.2; the names became functions on tiles in 0.3. Source: the table of activation functions of
# Neuron SDK 2.28, nki.api.shared.
OPERATORS_OF_0_2 = frozenset(
    (
        "arctan copy erf erf_dx exp gelu gelu_apprx_tanh gelu_dx log mish relu sigmoid sign silu silu_dx sin softplus "
        "sqrt square tanh"
    ).split()
)

# name: (release that no longer has it, what to use instead)
REMOVED = {
    "nki.isa.tensor_copy_dynamic_src": ("0.4", "nki.isa.tensor_copy with .ap(scalar_offset=...)"),
    "nki.isa.tensor_copy_dynamic_dst": ("0.4", "nki.isa.tensor_copy with .ap(scalar_offset=...)"),
}

# Parameters that came later than their function: {function: {parameter: release}}. Those in the middle of a signature came
# in there, so that arguments by position mean something else before.
PARAMETERS = {
    "nki.isa.dma_compute": {"unique_indices": "0.3", "oob_mode": "0.4"},
    "nki.isa.dma_copy": {"engine": "0.3", "priority": "0.4"},
    "nki.isa.dma_transpose": {"priority": "0.4"},
    "nki.isa.exponential": {"name": "0.3"},
    "nki.isa.nc_matmul": {"accumulate": "0.3"},
    "nki.isa.nc_matmul_mx": {"accumulate": "0.3"},
    "nki.isa.nonzero_with_count": {"name": "0.3"},
    "nki.isa.sendrecv": {"dma_engine": "0.3"},
    "nki.isa.tensor_scalar_cumulative": {"name": "0.3"},
    "nki.isa.tensor_scalar_reduce": {"reduce_cmd": "0.4", "reduce_init": "0.4", "reduce_res_negate": "0.6"},
    **{
        f"nki.collectives.{name}": {"priority": "0.4", "name": "0.5"}
        for name in (
            "all_gather all_reduce all_to_all all_to_all_v collective_permute collective_permute_implicit "
            "collective_permute_implicit_reduce reduce_scatter"
        ).split()
    },
    "nki.collectives.collective_permute_implicit_current_processing_rank_id": {"name": "0.5"},
    "nki.collectives.rank_id": {"name": "0.5"},
}

# Defaults before a release: {function: {parameter: (release, default, or None where it had to be given)}}.
DEFAULTS = {
    "nki.isa.rand_get_state": {"engine": ("0.5", "unknown")},
    "nki.isa.rand_set_state": {"engine": ("0.5", "unknown")},
    "nki.isa.rng": {"engine": ("0.5", "unknown")},
    "nki.isa.tensor_scalar_reduce": {"reduce_res": ("0.6", None)},
}

# Other behaviour: (name, release from which it holds, since then, before).
BEHAVIOUR = (
    ("nki.isa.dma_transpose", "0.4", "dst has src's rank (else a remark)", "a dst of lower rank is padded with 1"),
    (
        "nki.isa.dma_transpose",
        "0.6",
        "by hardware descriptors: 16 rows, or 1, 2, 4 or 8 of more than two axes; a last axis of at most 128",
        "16 rows, a last axis of a multiple of 128",
    ),
    (
        "nki.isa.quantize_mx",
        "0.5",
        "the scale is twice that of the OCP sample algorithm",
        "the scale of that algorithm",
    ),
    ("nki.isa.quantize_mx", "0.6", "scales between the blocks' rows are not written", "they become 0"),
    ("nki.isa.sendrecv", "0.4", "any number of partitions", "a multiple of 16 by dma_engine.gpsimd_dma"),
    ("nki.isa.tensor_scalar", "0.4", "op0 may be square or relu (trn3)", "it may not"),
    ("nki.isa.tensor_scalar_reduce", "0.4", "op0 may be square or relu (trn3)", "it may not"),
    (
        "nki.language.copy",
        "0.6",
        "by the vector engine: bits are kept where types match",
        "by the scalar engine, through float32; a remark on a tile in PSUM",
    ),
    ("nki.language.dynamic_range", "0.6", "deprecated: a remark; use fori_loop", "no remark"),
    ("nki.language.NkiTensor.reshape", "0.5", "takes shape", "takes new_shape too"),
    ("nki.language.rsqrt", "0.5", "by GpSimd, not from PSUM", "by the scalar engine"),
)
