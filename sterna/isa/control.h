// SPDX-License-Identifier: Apache-2.0
// Records that steer a run rather than compute: allocation, registers, regions, printing. Regions are opened and closed
// by records in the stream; the executor walks them.
#pragma once

#include <cmath>

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"

namespace sterna::control {

/// REG2: an instruction has the register that it writes or asks.
inline Status check_register(RegisterRef reg, std::string_view what) {
  if (reg.id != UINT32_MAX) return {};
  return Fault(FaultKind::kWrongType, "REG2", cat("'", what, "' must be a register."));
}

/// REG5: a register is loaded from and stored into HBM and SBUF.
inline Status check_register_memory(const View& view, std::string_view what) {
  if (view.memory != Memory::kPsum) return {};
  return Fault(FaultKind::kRuleBroken, "REG5",
               cat("'", what, "' is in PSUM; registers are loaded from and stored into HBM and SBUF. Copy it first."));
}

/// The tensor gets its storage here; its bytes become undefined.
struct Alloc {
  static constexpr Info info{"alloc", 0x01, "a tensor gets its storage; its bytes become undefined",
                             "nki.language.ndarray"};
  TensorRef tensor;
  static constexpr auto fields() { return std::tuple{option("tensor", &Alloc::tensor, "the tensor")}; }
  Status check(const Rules& r) {
    if (tensor.id >= r.tensors->size()) return Fault(FaultKind::kWrongType, "ARG2", "'tensor' is missing.");
    if ((*r.tensors)[tensor.id].role == TensorRole::kParameter)
      return Fault(FaultKind::kRuleBroken, "TEN4", "A parameter has its storage from the caller and is not allocated.");
    return {};
  }
  Status execute(Machine& m) const { return m.allocate(tensor.id); }
  Work work(const Rules&) const { return {}; }
};

/// reg = value (an immediate or another register).
struct RegisterMove {
  static constexpr Info info{"register_move", 0x02, "reg = value", "nki.isa.register_move"};
  RegisterRef dst, src;
  int32_t value = 0;
  static constexpr auto fields() {
    using I = RegisterMove;
    return std::tuple{option("dst", &I::dst, "register"), option("src", &I::src, "register, or none"),
                      option("value", &I::value, "immediate when src is none")};
  }
  Status check(const Rules&) { return check_register(dst, "dst"); }
  Status execute(Machine& m) const {
    int32_t given = value;
    if (src.id != UINT32_MAX) {
      STERNA_ASSIGN(given, m.read_reg(src.id));
    }
    m.set_reg(dst.id, given);
    return {};
  }
  Work work(const Rules&) const { return {}; }
};

/// reg = the one element of src.
struct RegisterLoad {
  static constexpr Info info{"register_load", 0x03, "reg = the one element of src", "nki.isa.register_load"};
  RegisterRef dst;
  View src;
  static constexpr auto fields() {
    return std::tuple{option("dst", &RegisterLoad::dst, "register"),
                      in("src", &RegisterLoad::src, "tensor of one element, HBM or SBUF")};
  }
  Status check(const Rules&) {
    STERNA_TRY(check_register(dst, "dst"));
    if (src.empty()) return Fault(FaultKind::kWrongType, "ARG2", "'src' is missing.");
    if (src.elements() != 1)
      return Fault(FaultKind::kRuleBroken, "REG1",
                   cat("A register holds one element; src ", shape_text(src), " has ", src.elements(), "."));
    return check_register_memory(src, "src");
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read_certain(src, "src"));
    if (is_float(src.dtype)) {
      float number;
      load_row(a, 0, 0, 1, &number);
      return load_number(m, number);
    }
    uint32_t word;
    load_bits(a, 0, 0, 1, &word);
    m.set_reg(dst.id, static_cast<int32_t>(word));
    return {};
  }
  /// Registers hold whole numbers of 32 bits.
  Status load_number(Machine& m, float number) const {
    const float whole = std::nearbyint(number);
    if (!(whole >= -0x1p31f && whole < 0x1p32f))
      return Fault(FaultKind::kOutOfBounds, "REG4",
                   cat("A register holds whole numbers of 32 bits, not ", number, "."));
    if (whole != number) m.warn("REG4", cat("A register holds whole numbers: ", number, " becomes ", whole, "."));
    const auto wide = static_cast<int64_t>(whole);
    m.set_reg(dst.id, static_cast<int32_t>(static_cast<uint32_t>(wide)));
    return {};
  }
  Work work(const Rules&) const { return {}; }
};

/// The one element of dst = reg.
struct RegisterStore {
  static constexpr Info info{"register_store", 0x04, "the one element of dst = reg", "nki.isa.register_store"};
  View dst;
  RegisterRef src;
  static constexpr auto fields() {
    return std::tuple{out("dst", &RegisterStore::dst, "tensor of one element, HBM or SBUF"),
                      option("src", &RegisterStore::src, "register")};
  }
  Status check(const Rules&) {
    STERNA_TRY(check_register(src, "src"));
    if (dst.empty()) return Fault(FaultKind::kWrongType, "ARG2", "'dst' is missing.");
    if (dst.elements() != 1)
      return Fault(FaultKind::kRuleBroken, "REG1",
                   cat("A register holds one element; dst ", shape_text(dst), " has ", dst.elements(), "."));
    return check_register_memory(dst, "dst");
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    STERNA_ASSIGN(const int32_t held, m.read_reg(src.id));
    const auto word = static_cast<uint32_t>(held);
    const auto number = static_cast<float>(held);
    if (is_integer(dst.dtype))
      store_bits(d, 0, 0, 1, &word);
    else
      store_row(d, 0, 0, 1, &number);
    return {};
  }
  Work work(const Rules&) const { return {}; }
};

inline Status walked_by_executor() { return Fault(FaultKind::kBug, "", "region records are walked by the executor"); }

/// The records up to the matching end run for reg = low, low + step, ... below high; low and high are immediates or
/// registers.
struct Loop {
  static constexpr Info info{"loop", 0x05, "the region runs for reg = low .. high by step", "nki.language.fori_loop"};
  RegisterRef reg, low_reg, high_reg;
  int32_t low = 0, high = 0, step = 1;
  static constexpr auto fields() {
    using I = Loop;
    return std::tuple{option("reg", &I::reg, "induction register"),
                      option("low", &I::low, "first value"),
                      option("high", &I::high, "bound"),
                      option("step", &I::step, "positive step"),
                      option("low_reg", &I::low_reg, "register instead of low"),
                      option("high_reg", &I::high_reg, "register instead of high")};
  }
  Status check(const Rules&) {
    STERNA_TRY(check_register(reg, "reg"));
    if (step <= 0)
      return Fault(FaultKind::kRuleBroken, "LOOP1", cat("The step of a loop is a positive number, not ", step, "."));
    return {};
  }
  Status execute(Machine&) const { return walked_by_executor(); }
  Work work(const Rules&) const { return {}; }
};

/// The records up to the matching end run as long as reg is not zero.
struct While {
  static constexpr Info info{"while", 0x06, "the region runs as long as reg is not zero", "nki.language.while_loop"};
  RegisterRef reg;
  static constexpr auto fields() { return std::tuple{option("reg", &While::reg, "condition register")}; }
  Status check(const Rules&) { return check_register(reg, "reg"); }
  Status execute(Machine&) const { return walked_by_executor(); }
  Work work(const Rules&) const { return {}; }
};

/// The records up to the matching end run if reg is not zero.
struct If {
  static constexpr Info info{"if", 0x07, "the region runs if reg is not zero", "design, program regions"};
  RegisterRef reg;
  static constexpr auto fields() { return std::tuple{option("reg", &If::reg, "condition register")}; }
  Status check(const Rules&) { return check_register(reg, "reg"); }
  Status execute(Machine&) const { return walked_by_executor(); }
  Work work(const Rules&) const { return {}; }
};

struct End {
  static constexpr Info info{"end", 0x08, "closes the innermost region", "design, program regions"};
  int32_t unused = 0;
  static constexpr auto fields() { return std::tuple{option("unused", &End::unused, "0")}; }
  Status check(const Rules&) { return {}; }
  Status execute(Machine&) const { return walked_by_executor(); }
  Work work(const Rules&) const { return {}; }
};

/// Prints a tensor when the program runs (also on replay).
struct DevicePrint {
  static constexpr Info info{"device_print", 0x09, "prints a tensor", "nki.language.device_print"};
  View src;
  NameRef prefix;
  static constexpr auto fields() {
    return std::tuple{in("src", &DevicePrint::src, "what to print"),
                      option("prefix", &DevicePrint::prefix, "text before it")};
  }
  Status check(const Rules&) {
    if (src.empty()) return Fault(FaultKind::kWrongType, "ARG2", "'src' is missing.");
    return {};
  }
  Status execute(Machine&) const { return walked_by_executor(); }
  Work work(const Rules&) const { return {}; }
};

using Instructions =
    InstructionList<Alloc, RegisterMove, RegisterLoad, RegisterStore, Loop, While, If, End, DevicePrint>;

/// A record of this opcode opens a region, which an End closes.
inline bool opens_region(uint8_t opcode) {
  return opcode == Loop::info.opcode || opcode == While::info.opcode || opcode == If::info.opcode;
}

}  // namespace sterna::control
