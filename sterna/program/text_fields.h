// SPDX-License-Identifier: Apache-2.0
// Reads the values of an instruction's fields from the text form. Internal to program/text*.
#pragma once

#include <string>
#include <unordered_map>

#include "sterna/base/result.h"
#include "sterna/program/builder.h"
#include "sterna/program/text_cursor.h"

namespace sterna::text {

/// `%name`, `%name.3` or `%5`: the whole spelling, and the name in it.
struct Reference {
  std::string key, name;
};
Result<Reference> reference(Cursor& c);
Result<DType> dtype(Cursor& c);

using TensorTable = std::unordered_map<std::string, uint32_t>;

class FieldReader {
 public:
  FieldReader(Builder& builder, const TensorTable& tensors) : builder_(builder), tensors_(tensors) {}
  /// The value after `name=`, into the instruction at `body`.
  Status field(Cursor& c, const FieldSpec& spec, void* body);
  Result<uint32_t> tensor(Cursor& c);

 private:
  Result<View> view(Cursor& c, int nesting);
  Status slices(Cursor& c, View* view, const TensorInfo& tensor);
  Status pattern_of(Cursor& c, View* view);
  Status dynamic(Cursor& c, View* view, int nesting);
  Result<Scalar> scalar(Cursor& c);
  Result<uint32_t> reg(Cursor& c);
  Status pattern(Cursor& c, Pattern* out);
  template <class T>
  Status list(Cursor& c, T* out, int most, int64_t low, int64_t high, int32_t* count);
  template <class Parse>
  auto named(Cursor& c, std::string_view what, const Parse& parse)
      -> Result<typename decltype(parse(std::string_view()))::value_type>;

  Builder& builder_;
  const TensorTable& tensors_;
};

}  // namespace sterna::text
