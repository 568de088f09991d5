// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/binary.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>

#include "sterna/base/text.h"
#include "sterna/program/binary_fields.h"

namespace sterna {
namespace {

constexpr std::string_view kMagic(
    "sterna\x01"
    "b",
    8);
constexpr uint64_t kVersion = 2;

uint64_t checksum(std::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (char c : bytes) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return h;
}

/// Room for any instruction's struct.
using Body = std::vector<std::max_align_t>;
Body make_body(const TableRow& row) {
  Body body(row.bytes / sizeof(std::max_align_t) + 1);
  row.construct(body.data());
  return body;
}

/// What the last record of an instruction held; records say only what changed.
struct Last {
  uint32_t number = 0;  ///< in the list of instructions
  bool known = false;
  Body body;
};

class Writer {
 public:
  explicit Writer(const Program& program) : p_(program) {}

  std::string write() {
    ByteWriter file;
    file.raw(kMagic);
    file.number(kVersion);
    for (const std::string& part : {head(), names(), sites(), tensors(), dynamics()}) file.text(part);
    std::vector<std::string> streams;
    for (const Stream& stream : p_.cores) streams.push_back(records(stream));  // fills the list of instructions
    file.text(instructions());
    for (const std::string& part : streams) file.text(part);
    file.text(edges());
    const uint64_t sum = checksum(file.bytes());
    for (int i = 0; i < 8; ++i) file.raw(std::string(1, static_cast<char>(sum >> (8 * i))));
    return file.take();
  }

 private:
  std::string head() const {
    ByteWriter out;
    for (const std::string& text : {p_.name, p_.target, p_.nki_version}) out.text(text);
    out.number(p_.register_count);
    out.number(p_.cores.size());
    out.column(p_.parameters);
    out.column(p_.results);
    return out.take();
  }
  std::string names() const {
    ByteWriter out;
    out.number(p_.names.all().size() - 1);
    for (size_t i = 1; i < p_.names.all().size(); ++i) out.text(p_.names.all()[i]);
    return out.take();
  }
  std::string sites() const {
    ByteWriter out;
    out.number(p_.sites.size() - 1);
    for (uint32_t id = 1; id < p_.sites.size(); ++id) {
      const Site& s = p_.sites[id];
      out.number(s.file);
      out.number(s.function);
      out.signed_number(s.line);
      out.number(s.parent);
    }
    return out.take();
  }
  std::string tensors() const {
    ByteWriter out;
    out.number(p_.tensors.size());
    for (const TensorInfo& t : p_.tensors) {
      out.number(static_cast<uint64_t>(t.dtype));
      out.number(static_cast<uint64_t>(t.memory) << 4 | static_cast<uint64_t>(t.role) << 3 | uint64_t{t.shared} << 2 |
                 uint64_t{t.has_address} << 1 | uint64_t{t.read_only});
      for (uint64_t x : {uint64_t{t.core}, uint64_t{t.name}, uint64_t{t.site}, uint64_t{t.parameter},
                         uint64_t{t.allocated_at}, uint64_t{t.first_use}, uint64_t{t.last_use}})
        out.number(x);
      if (t.has_address) {
        out.number(t.address_partition);
        out.number(t.address_byte);
      }
      out.number(t.ndim);
      for (int d = 0; d < t.ndim; ++d) out.signed_number(t.shape[d]);
    }
    return out.take();
  }
  std::string dynamics() const {
    ByteWriter out;
    out.number(p_.dynamics.size() - 1);
    for (size_t i = 1; i < p_.dynamics.size(); ++i) {
      const DynamicOffset& d = p_.dynamics[i];
      out.number(static_cast<uint64_t>(d.source));
      out.number(d.reg);
      binary::write_view(out, d.index);
      out.signed_number(d.multiplier);
      out.signed_number(d.limit);
      out.signed_number(d.group);
    }
    return out.take();
  }

  std::string records(const Stream& stream) {
    ByteWriter out;
    out.number(stream.size());
    for (Last& last : last_) last.known = false;
    RecordHeader before;
    for (size_t i = 0; i < stream.size(); ++i) {
      record(out, stream[i], before);
      before = stream[i];
    }
    return out.take();
  }
  void record(ByteWriter& out, const RecordHeader& h, const RecordHeader& before) {
    const TableRow& row = instruction_table()[h.opcode];
    Last& last = last_of(row);
    out.number(last.number);
    out.signed_number(int64_t{h.site} - before.site);
    out.signed_number(int64_t{h.iteration} - before.iteration);
    out.number(uint64_t{h.label} << 1 | (h.flags & RecordHeader::kHasDynamic));
    const auto* body = static_cast<const char*>(h.body());
    const auto* old = reinterpret_cast<const char*>(last.body.data());
    uint64_t changed = 0;
    for (size_t f = 0; f < row.field_list().size(); ++f) {
      const FieldSpec& spec = row.field_list()[f];
      if (!binary::same_field(spec.type, body + spec.offset, old + spec.offset)) changed |= uint64_t{1} << f;
    }
    out.number(changed);
    for (size_t f = 0; f < row.field_list().size(); ++f)
      if (changed >> f & 1) binary::write_field(out, row.field_list()[f].type, body + row.field_list()[f].offset);
    std::memcpy(last.body.data(), body, row.bytes);
  }
  Last& last_of(const TableRow& row) {
    Last& last = last_[row.info.opcode];
    if (last.body.empty()) {
      last.number = static_cast<uint32_t>(used_.size());
      used_.push_back(&row);
    }
    if (!last.known) last.body = make_body(row);
    last.known = true;
    return last;
  }
  std::string instructions() const {
    ByteWriter out;
    out.number(used_.size());
    for (const TableRow* row : used_) {
      out.text(row->info.mnemonic);
      out.number(row->field_list().size());
      for (const FieldSpec& spec : row->field_list()) {
        out.text(spec.name);
        out.number(static_cast<uint64_t>(spec.type));
      }
    }
    return out.take();
  }
  std::string edges() const {
    ByteWriter out;
    out.number(p_.edges.size());
    for (const ExtraEdge& e : p_.edges) {
      out.number(e.producer);
      out.number(e.consumer);
      out.number(e.core);
    }
    return out.take();
  }

  const Program& p_;
  std::array<Last, 256> last_;
  std::vector<const TableRow*> used_;
};

Fault damaged() {
  return Fault(FaultKind::kBadInput, "PRGB3", "The binary program is damaged or cut short; write it again.");
}
Fault another_version(std::string_view what) {
  return Fault(
      FaultKind::kBadInput, "PRGB2",
      cat("The binary program was written by another Sterna: ", what, ". Print it as text there, or record it again."));
}

class Reader {
 public:
  Reader(std::string_view bytes, std::shared_ptr<BufferPool> pool) : file_(bytes), p_(std::move(pool)) {}

  Result<Program> read() {
    size_t cores = 0;
    for (auto part :
         {&Reader::head, &Reader::names, &Reader::sites, &Reader::tensors, &Reader::dynamics, &Reader::instructions}) {
      ByteReader in(file_.view());
      STERNA_TRY((this->*part)(in));
      if (file_.damaged || in.damaged || !in.at_end()) return damaged();
    }
    for (cores = 0; cores < p_.cores.size(); ++cores) {
      ByteReader in(file_.view());
      if (!records(in, p_.cores[cores]) || file_.damaged || in.damaged || !in.at_end()) return damaged();
    }
    ByteReader in(file_.view());
    for (size_t n = in.count(); n > 0 && !in.damaged; --n)
      p_.edges.push_back({in.fitting<uint32_t>(), in.fitting<uint32_t>(), in.fitting<uint32_t>()});
    if (file_.damaged || in.damaged || !in.at_end() || !file_.at_end()) return damaged();
    return std::move(p_);
  }

 private:
  static constexpr uint64_t kMostCores = 16;

  Status head(ByteReader& in) {
    p_.name = in.text();
    p_.target = in.text();
    p_.nki_version = in.text();
    p_.register_count = in.fitting<uint32_t>();
    const uint64_t cores = in.number();
    if (cores < 1 || cores > kMostCores) return damaged();
    while (p_.cores.size() < cores) p_.cores.emplace_back(p_.cores[0].pool());
    p_.parameters = in.column<uint32_t>();
    p_.results = in.column<uint32_t>();
    return {};
  }
  Status names(ByteReader& in) {
    const size_t n = in.count();
    for (size_t i = 1; i <= n && !in.damaged; ++i)
      if (p_.names.intern(in.view()) != i) return damaged();
    return {};
  }
  Status sites(ByteReader& in) {
    const size_t n = in.count();
    for (size_t i = 1; i <= n && !in.damaged; ++i) {
      const auto file = in.fitting<uint32_t>(), function = in.fitting<uint32_t>();
      const int64_t line = in.signed_number();
      const auto parent = in.fitting<uint32_t>();
      if (line != static_cast<int32_t>(line) ||
          p_.sites.intern(file, function, static_cast<int32_t>(line), parent) != i)
        return damaged();
    }
    return {};
  }
  Status tensors(ByteReader& in) {
    const size_t n = in.count();
    for (size_t i = 0; i < n && !in.damaged; ++i) {
      TensorInfo t;
      const uint64_t dtype = in.number(), flags = in.number();
      if (dtype >= kDTypeCount || flags >> 4 > 2) return damaged();
      t.dtype = static_cast<DType>(dtype);
      t.memory = static_cast<Memory>(flags >> 4);
      t.role = static_cast<TensorRole>(flags >> 3 & 1);
      t.shared = flags >> 2 & 1;
      t.has_address = flags >> 1 & 1;
      t.read_only = flags & 1;
      t.core = in.fitting<uint8_t>();
      for (uint32_t* x : {&t.name, &t.site, &t.parameter, &t.allocated_at, &t.first_use, &t.last_use})
        *x = in.fitting<uint32_t>();
      if (t.has_address) {
        t.address_partition = in.fitting<uint32_t>();
        t.address_byte = in.fitting<uint32_t>();
      }
      t.ndim = in.fitting<uint8_t>();
      if (t.ndim > kMaxDims) return damaged();
      for (int d = 0; d < t.ndim; ++d) t.shape[d] = in.signed_number();
      p_.tensors.push_back(t);
    }
    return {};
  }
  Status dynamics(ByteReader& in) {
    const size_t n = in.count();
    for (size_t i = 0; i < n && !in.damaged; ++i) {
      DynamicOffset d;
      const uint64_t source = in.number();
      if (source > 1) return damaged();
      d.source = static_cast<DynamicOffset::Source>(source);
      d.reg = in.fitting<uint32_t>();
      d.index = binary::read_view(in);
      d.multiplier = in.signed_number();
      d.limit = in.signed_number();
      d.group = static_cast<int32_t>(in.signed_number());
      p_.dynamics.push_back(d);
    }
    return {};
  }
  Status instructions(ByteReader& in) {
    const size_t n = in.count();
    for (size_t i = 0; i < n && !in.damaged; ++i) {
      Known known;
      const std::string mnemonic = in.text();
      known.row = find_instruction(mnemonic);
      if (known.row == nullptr) return another_version(cat("there is no instruction '", mnemonic, "' here"));
      const size_t fields = in.count();
      if (fields > 64) return damaged();
      for (size_t f = 0; f < fields && !in.damaged; ++f) {
        const std::string name = in.text();
        const uint64_t type = in.number();
        const FieldSpec* found = nullptr;
        for (const FieldSpec& spec : known.row->field_list())
          if (spec.name == name && static_cast<uint64_t>(spec.type) == type) found = &spec;
        if (found == nullptr) return another_version(cat(mnemonic, " has no field '", name, "' of that kind here"));
        known.fields.push_back(found);
      }
      known_.push_back(std::move(known));
    }
    return {};
  }

  bool records(ByteReader& in, Stream& stream) {
    for (Known& known : known_) known.body = make_body(*known.row);
    RecordHeader before;
    for (size_t n = in.count(); n > 0; --n) {
      const uint64_t number = in.number();
      if (in.damaged || number >= known_.size()) return false;
      Known& known = known_[number];
      RecordHeader h;
      h.site = static_cast<uint32_t>(before.site + in.signed_number());
      h.iteration = static_cast<uint32_t>(before.iteration + in.signed_number());
      const uint64_t label = in.number(), changed = in.number();
      if (known.fields.size() < 64 && changed >> known.fields.size() != 0) return false;
      auto* body = reinterpret_cast<char*>(known.body.data());
      for (size_t f = 0; f < known.fields.size(); ++f)
        if (changed >> f & 1) binary::read_field(in, known.fields[f]->type, body + known.fields[f]->offset);
      if (in.damaged || label >> 1 > UINT32_MAX) return false;
      RecordHeader* made = stream.reserve(known.row->bytes);
      made->opcode = known.row->info.opcode;
      made->flags = static_cast<uint8_t>(label & RecordHeader::kHasDynamic);
      made->site = h.site;
      made->iteration = h.iteration;
      made->label = static_cast<uint32_t>(label >> 1);
      std::memcpy(made->body(), body, known.row->bytes);
      stream.push(made);
      before = h;
    }
    return true;
  }

  struct Known {
    const TableRow* row = nullptr;
    std::vector<const FieldSpec*> fields;
    Body body;
  };
  ByteReader file_;
  Program p_;
  std::vector<Known> known_;
};

}  // namespace

std::string write_program(const Program& program) { return Writer(program).write(); }

bool is_binary_program(std::string_view bytes) { return bytes.substr(0, kMagic.size()) == kMagic; }

Result<Program> read_program(std::string_view bytes, std::shared_ptr<BufferPool> pool) {
  if (!is_binary_program(bytes))
    return Fault(FaultKind::kBadInput, "PRGB1", "This is not a binary program; its first bytes are others.");
  ByteReader version(bytes.substr(kMagic.size()));
  const uint64_t number = version.number();
  if (version.damaged) return damaged();
  if (number != kVersion)
    return another_version(cat("it is version ", number, " of the form, this one reads version ", kVersion));
  if (bytes.size() < kMagic.size() + 9) return damaged();
  const std::string_view body = bytes.substr(0, bytes.size() - 8);
  uint64_t sum = 0;
  for (int i = 7; i >= 0; --i) sum = sum << 8 | static_cast<uint8_t>(bytes[body.size() + static_cast<size_t>(i)]);
  if (sum != checksum(body)) return damaged();
  return Reader(body.substr(body.size() - version.left() + 8), std::move(pool)).read();
}

Status save_program(const Program& program, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  const std::string bytes = write_program(program);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return {};
  return Fault(FaultKind::kBadInput, "FILE2", cat("Cannot write ", path, "."));
}

Result<Program> load_program(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fault(FaultKind::kBadInput, "FILE1", cat("Cannot read ", path, "."));
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return read_program(bytes);
}

}  // namespace sterna
