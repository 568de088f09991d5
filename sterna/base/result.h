// SPDX-License-Identifier: Apache-2.0
// Result<T> and Fault: how every layer says that something went wrong. Nothing below the Python
// bindings throws, exits or aborts on user input.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sterna {

/// What a user can do about a fault. The Python layer maps each kind to an exception class.
enum class FaultKind : uint8_t {
  kBadInput,          ///< a file, option or value that cannot be used as given
  kWrongType,         ///< an argument of the wrong type, an unknown keyword
  kOutOfBounds,       ///< an index outside its tensor
  kRuleBroken,        ///< a documented rule of the instruction or the chip
  kNotOnThisChip,     ///< exists, but not on the target
  kNotImplemented,    ///< Sterna cannot do this yet; the message says why
  kUnknownBehaviour,  ///< no public source says what the hardware does
  kBug,               ///< our own broken invariant
};

std::string_view name(FaultKind kind);

/// Where in the user's source. An empty file means "not known".
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  std::string function;
};

/// A refusal: what, which rule, where, what to do.
struct Fault {
  FaultKind kind = FaultKind::kBug;
  std::string rule;     ///< stable id such as "TT1"; empty where no rule applies
  std::string message;  ///< full sentences: expected, found, what to do
  Place where = {};
  uint32_t site = 0;  ///< site id of the instruction at fault; 0 = none. See program/site.h

  Fault() = default;
  Fault(FaultKind k, std::string r, std::string m) : kind(k), rule(std::move(r)), message(std::move(m)) {}
  /// One line: "[rule TT1] message (file:line)".
  std::string text() const;
};

/// A value or a Fault. Check with `if (!result)`, then `error()`. The value is default-constructed beside the fault, so
/// that a function can fill `*result` in place and return it without a copy.
template <class T>
class [[nodiscard]] Result {
 public:
  Result() = default;
  Result(T value) : value_(std::move(value)) {}
  Result(Fault fault) : fault_(new Fault(std::move(fault))) {}
  explicit operator bool() const { return fault_ == nullptr; }
  T& value() { return value_; }
  const T& value() const { return value_; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }
  Fault& error() { return *fault_; }
  const Fault& error() const { return *fault_; }
  /// Turns a result that is being filled in place into a refusal.
  void fail(Fault fault) { fault_ = std::make_unique<Fault>(std::move(fault)); }

 private:
  T value_{};
  std::unique_ptr<Fault> fault_;
};

/// Success or a Fault. The success path is one pointer wide, since instructions return it.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Fault fault) : fault_(new Fault(std::move(fault))) {}
  Result(Result&& other) noexcept : fault_(std::exchange(other.fault_, nullptr)) {}
  Result& operator=(Result&& other) noexcept {
    std::swap(fault_, other.fault_);
    return *this;
  }
  ~Result() { delete fault_; }
  explicit operator bool() const { return fault_ == nullptr; }
  Fault& error() { return *fault_; }
  const Fault& error() const { return *fault_; }

 private:
  Fault* fault_ = nullptr;
};

using Status = Result<void>;

// Returns early with the fault of EXPR (a Status) or of EXPR (a Result<T>), binding the value.
#define STERNA_TRY(expr)                                                                                       \
  do {                                                                                                         \
    if (auto sterna_status = (expr); !sterna_status) return ::sterna::Fault(std::move(sterna_status.error())); \
  } while (false)
#define STERNA_CONCAT_INNER(a, b) a##b
#define STERNA_CONCAT(a, b) STERNA_CONCAT_INNER(a, b)
#define STERNA_ASSIGN(declaration, expr) STERNA_ASSIGN_IMPL(STERNA_CONCAT(sterna_result_, __LINE__), declaration, expr)
#define STERNA_ASSIGN_IMPL(temporary, declaration, expr)                \
  auto temporary = (expr);                                              \
  if (!temporary) return ::sterna::Fault(std::move(temporary.error())); \
  declaration = std::move(*temporary)
// The same, but NAME refers to the value inside the result: a large value is not copied.
#define STERNA_BIND(name, expr) STERNA_BIND_IMPL(STERNA_CONCAT(sterna_result_, __LINE__), name, expr)
#define STERNA_BIND_IMPL(temporary, name, expr)                         \
  auto temporary = (expr);                                              \
  if (!temporary) return ::sterna::Fault(std::move(temporary.error())); \
  auto& name = *temporary

}  // namespace sterna
