// SPDX-License-Identifier: Apache-2.0
// Program to text. Everything about instructions comes from their fields.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>

#include "sterna/base/text.h"
#include "sterna/isa/control.h"
#include "sterna/machine/view_ops.h"
#include "sterna/program/text.h"
#include "sterna/program/text_names.h"

namespace sterna {
namespace {

/// An index of an offset tensor may itself be dynamic; deeper nesting than this is not a program.
constexpr int kMaxNesting = 4;

/// The index items that give `view` when the dims in `dropped` are whole numbers and the others slices; false if there
/// are none.
bool items_of(const View& view, const TensorInfo& tensor, const View& whole, unsigned dropped,
              IndexItem (&items)[kMaxDims]) {
  int64_t rest = view.offset;
  int at = 0;
  for (int d = 0; d < tensor.ndim; ++d) {
    const int64_t stride = whole.dims[d].stride;
    const bool partition = d == 0 && view.on_chip();
    if (stride <= 0) return false;
    items[d] = {IndexItem::Kind::kInt, partition ? view.partition : rest / stride, 0, 1};
    if (!partition) rest %= stride;
    if (dropped >> d & 1) continue;
    const Dim dim = view.dims[at++];
    if (dim.stride <= 0 || dim.stride % stride != 0) return false;
    items[d].kind = IndexItem::Kind::kSlice;
    items[d].step = dim.stride / stride;
    if (dim.count > 0 && items[d].start + items[d].step * (dim.count - 1) >= tensor.shape[d]) return false;
    items[d].stop = std::min(items[d].start + items[d].step * dim.count, tensor.shape[d]);
  }
  const Result<View> made = index_view(whole, {items, tensor.ndim});
  return made && *made == view;
}

/// The name of an enumerator, or "?" for a value outside.
template <class E>
std::string_view name_or_mark(E value, int count) {
  return static_cast<int>(value) < count ? name(value) : std::string_view("?");
}
std::string_view dtype_name(DType t) { return name_or_mark(t, kDTypeCount); }

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program), tensors_(text::tensor_references(program)) {}

  std::string print() {
    head();
    for (size_t core = 0; core < program_.cores.size(); ++core) {
      if (core > 0) line(cat("core ", core));
      records(program_.cores[core]);
    }
    declare_up_to(static_cast<uint32_t>(program_.tensors.size()));
    for (uint32_t id : program_.results) line(cat("result ", tensor(id)));
    for (const ExtraEdge& e : program_.edges)
      line(cat("edge ", e.producer, " -> ", e.consumer, e.core == 0 ? std::string() : cat(" core ", e.core)));
    return std::move(out_);
  }

 private:
  void line(std::string_view text) {
    out_.append(static_cast<size_t>(2 * depth_), ' ');
    out_ += text;
    out_ += '\n';
  }
  std::string tensor(uint32_t id) const { return id < tensors_.size() ? tensors_[id] : std::string("none"); }

  void head() {
    line(cat("sterna program ", kProgramVersion));
    if (!program_.name.empty()) line(cat("name ", text::quoted_if_needed(program_.name)));
    line(cat("target ", text::quoted_if_needed(program_.target)));
    line(cat("nki ", text::quoted(program_.nki_version)));
    if (program_.cores.size() > 1) line(cat("cores ", program_.cores.size()));
    if (program_.register_count != 0) line(cat("registers ", program_.register_count));
    for (uint32_t id = 1; id < program_.sites.size(); ++id) {
      const Site& s = program_.sites[id];
      std::string text = cat("site ", id, ' ', text::quoted(program_.names[s.file]), ':', s.line);
      if (s.function != 0) text += cat(" in ", text::quoted_if_needed(program_.names[s.function]));
      if (s.parent != 0) text += cat(" from ", s.parent);
      line(text);
    }
  }

  void records(const Stream& stream) {
    declare_parameters();
    for (size_t i = 0; i < stream.size(); ++i) {
      const RecordHeader& header = stream[i];
      const TableRow& row = instruction_table()[header.opcode];
      if (header.opcode == control::Alloc::info.opcode) {  // the smallest struct, so its words cannot be short
        const uint32_t id = static_cast<const control::Alloc*>(header.body())->tensor.id;
        if (id == declared_ && id < program_.tensors.size()) {
          declare(id, cat(site_text(header)));
          declare_parameters();
          continue;
        }
      }
      if (header.opcode == control::End::info.opcode && depth_ > 0) --depth_;
      if (row.info.mnemonic.empty() || header.words < (sizeof(RecordHeader) + row.bytes + 7) / 8) {
        line("?");
        continue;
      }
      line(cat(row.info.mnemonic, fields(row, header.body()), label_text(header), site_text(header)));
      if (control::opens_region(header.opcode)) ++depth_;
    }
    depth_ = 0;
  }

  std::string label_text(const RecordHeader& header) const {
    return header.label == 0 ? std::string() : cat(" label=", text::quoted_if_needed(program_.names[header.label]));
  }
  static std::string site_text(const RecordHeader& header) {
    if (header.site == 0 && header.iteration == 0) return {};
    return header.iteration == 0 ? cat(" @", header.site) : cat(" @", header.site, ':', header.iteration);
  }

  // Tensors are declared in the order of their numbers: a local one where it is allocated, a parameter as early as
  // possible.
  void declare_parameters() {
    while (declared_ < program_.tensors.size() && program_.tensors[declared_].role == TensorRole::kParameter) {
      const uint32_t site = program_.tensors[declared_].site;
      declare(declared_, site == 0 ? std::string() : cat(" @", site));
    }
  }
  void declare_up_to(uint32_t count) {
    while (declared_ < count) declare(declared_, "");
  }
  void declare(uint32_t id, std::string_view place) {
    const TensorInfo& t = program_.tensors[id];
    std::string text = cat(t.role == TensorRole::kParameter ? "param " : "tensor ", tensor(id), ' ', name(t.memory),
                           ' ', dtype_name(t.dtype), ' ',
                           shape_text(std::vector<int64_t>(t.shape, t.shape + std::min<int>(t.ndim, kMaxDims))));
    if (t.has_address) text += cat(" at (", t.address_partition, ", ", t.address_byte, ')');
    if (t.shared) text += " shared";
    if (t.read_only) text += " read_only";
    line(cat(text, place));
    declared_ = id + 1;
  }

  std::string fields(const TableRow& row, const void* body) {
    std::vector<std::string>& defaults = defaults_[row.info.opcode];
    if (defaults.empty() && row.construct != nullptr) {
      std::vector<std::max_align_t> made(row.bytes / sizeof(std::max_align_t) + 1);
      row.construct(made.data());
      for (const FieldSpec& spec : row.field_list()) defaults.push_back(value(spec, made.data()));
    }
    std::string out;
    for (size_t i = 0; i < row.field_list().size(); ++i) {
      const FieldSpec& spec = row.field_list()[i];
      const std::string text = value(spec, body);
      if (text != defaults[i]) out += cat(' ', spec.name, '=', text);
    }
    return out;
  }

  std::string value(const FieldSpec& spec, const void* body) {
    const void* at = static_cast<const char*>(body) + spec.offset;
    if (const auto names = text::spellings(spec.type); !names.empty()) {
      const auto code = *static_cast<const uint8_t*>(at);
      return code < names.size() ? std::string(names[code]) : std::to_string(code);
    }
    switch (spec.type) {
      case FieldType::kView: return view(*static_cast<const View*>(at), 0);
      case FieldType::kScalar: {
        const Scalar& s = *static_cast<const Scalar*>(at);
        return s.is_view ? view(s.view, 0) : s.is_none ? "none" : text::number(s.value);
      }
      case FieldType::kAluOp: return std::string(name_or_mark(*static_cast<const AluOp*>(at), kAluOpCount));
      case FieldType::kFunction: return std::string(name_or_mark(*static_cast<const Function*>(at), kFunctionCount));
      case FieldType::kDType: return std::string(dtype_name(*static_cast<const DType*>(at)));
      case FieldType::kInt: return std::to_string(*static_cast<const int32_t*>(at));
      case FieldType::kFloat: return text::number(*static_cast<const float*>(at));
      case FieldType::kPattern: return pattern(*static_cast<const Pattern*>(at));
      case FieldType::kLanes32: return shape_text(static_cast<const Lanes32*>(at)->lane);
      case FieldType::kInts: {
        const Ints& ints = *static_cast<const Ints*>(at);
        return shape_text(std::vector<int32_t>(ints.value, ints.value + std::clamp(ints.n, 0, 4)));
      }
      case FieldType::kRegister: return reg(static_cast<const RegisterRef*>(at)->id);
      case FieldType::kTensor: return tensor(static_cast<const TensorRef*>(at)->id);
      case FieldType::kName: return text::quoted(program_.names[static_cast<const NameRef*>(at)->id]);
      default: return "?";
    }
  }

  static std::string reg(uint32_t id) { return id == UINT32_MAX ? std::string("none") : cat('$', id); }
  static std::string pattern(const Pattern& p) {
    std::string out = "[";
    for (int i = 0; i < std::clamp(p.n, 0, 4); ++i)
      out += cat(i ? ", [" : "[", p.steps[i].step, ", ", p.steps[i].count, ']');
    return out + ']';
  }

  std::string view(const View& v, int nesting) {
    if (v.empty()) return "none";
    if (v.tensor >= program_.tensors.size() || nesting > kMaxNesting) return "?";
    return cat(tensor(v.tensor), place(v), dynamic(v, nesting));
  }

  std::string place(const View& v) {
    const TensorInfo& t = program_.tensors[v.tensor];
    if (t.ndim > kMaxDims || v.ndim > kMaxDims) return "?";
    View plain = v;
    plain.kind = ViewKind::kStrided;
    plain.dynamic = 0;
    const View whole = whole_view(v.tensor, t);
    if (plain == whole) return "";
    if (v.dtype == t.dtype && v.memory == t.memory) {
      IndexItem items[kMaxDims];
      for (unsigned dropped = 0; dropped < 1u << t.ndim; ++dropped)
        if (std::popcount(dropped) == t.ndim - v.ndim && items_of(plain, t, whole, dropped, items))
          return slices(items, t.ndim);
    }
    return general(v, t);
  }

  static std::string slices(const IndexItem (&items)[kMaxDims], int n) {
    std::string out = "[";
    for (int d = 0; d < n; ++d) {
      if (d > 0) out += ", ";
      out += std::to_string(items[d].start);
      if (items[d].kind == IndexItem::Kind::kInt) continue;
      out += cat(':', items[d].stop);
      if (items[d].step != 1) out += cat(':', items[d].step);
    }
    return out + ']';
  }

  static std::string general(const View& v, const TensorInfo& t) {
    std::string out;
    const auto add = [&](const std::string& part) { out += cat(out.empty() ? "{" : ", ", part); };
    if (v.dtype != t.dtype) add(std::string(dtype_name(v.dtype)));
    if (v.partition != 0) add(cat("partition ", v.partition));
    if (v.offset != 0) add(cat("offset ", v.offset));
    for (int d = 0; d < std::min<int>(v.ndim, kMaxDims); ++d)
      add(cat('[', v.dims[d].stride, ", ", v.dims[d].count, ']'));
    return out.empty() ? "{}" : out + '}';
  }

  std::string dynamic(const View& v, int nesting) {
    if (v.kind == ViewKind::kStrided || v.dynamic >= program_.dynamics.size()) return "";
    const DynamicOffset& d = program_.dynamics[v.dynamic];
    const std::string index = d.source == DynamicOffset::Source::kRegister ? reg(d.reg) : view(d.index, nesting + 1);
    const bool columns = v.kind == ViewKind::kIndirect && v.on_chip();
    const std::string_view how = columns ? "+columns(" : v.kind == ViewKind::kIndirect ? "+rows(" : "+(";
    return cat(how, index, " * ", d.multiplier, " < ", d.limit, columns ? cat(" by ", d.group) : "", ')');
  }

  const Program& program_;
  std::vector<std::string> tensors_;
  std::map<uint8_t, std::vector<std::string>> defaults_;  // texts of a fresh instruction's fields, by opcode
  std::string out_;
  int depth_ = 0;
  uint32_t declared_ = 0;  // tensors up to this one have their line
};

}  // namespace

std::string print_program(const Program& program) { return Printer(program).print(); }

}  // namespace sterna
