// SPDX-License-Identifier: Apache-2.0
// Text to program, through Builder.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sterna/base/text.h"
#include "sterna/hardware/catalog.h"
#include "sterna/hardware/nearest.h"
#include "sterna/machine/view_ops.h"
#include "sterna/program/builder.h"
#include "sterna/program/text.h"
#include "sterna/program/text_cursor.h"
#include "sterna/program/text_fields.h"
#include "sterna/program/text_names.h"

namespace sterna {
namespace {

using text::Cursor;

constexpr int64_t kMostRegisters = 1 << 16;
constexpr int64_t kMostCores = 16;                // of one kernel
constexpr int64_t kMostBytes = int64_t{1} << 44;  // of one tensor: above any memory described, below any overflow
constexpr int64_t kMostIterations = UINT32_MAX;

class Parser {
 public:
  Parser(std::string_view file, const TextOptions& options) : file_(file), options_(options) {}

  Result<Program> parse(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      Cursor line(text.substr(0, end), ++number, file_);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.begins_section()) {
        --number;
        break;
      }
      if (!line.at_end()) STERNA_TRY(statement(line));
    }
    Cursor last("", number, file_);
    if (!versioned_) return last.fault("TEXT2", "This is not a program: the first line must be 'sterna program 1'.");
    if (!builder_) return last.fault("TEXT1", "The program has no 'target' line, such as 'target trn2'.");
    for (int core = 0; core < builder_->cores(); ++core) {
      builder_->set_core(core);
      if (builder_->open_regions() > 0)
        return last.fault("REGION2", "A region is not closed: an 'end' line is missing.");
    }
    for (const auto& [edge, line] : edges_) STERNA_TRY(add_edge(edge, line));
    if (options_.warnings != nullptr) *options_.warnings = std::move(builder_->warnings());
    return std::move(builder_->program());
  }

 private:
  Status statement(Cursor& c) {
    const int column = c.column();
    if (!versioned_) return version(c);
    const std::string_view word = c.word();
    if (word.empty())
      return c.fault("TEXT1", "A line begins with a word: an instruction, or tensor, param, result, ...");
    if (!builder_) return header(c, word, column);
    STERNA_TRY(after_target(c, word, column));
    if (!c.at_end()) return c.fault("TEXT1", "The line should end here.");
    return {};
  }

  Status version(Cursor& c) {
    if (!c.take_word("sterna") || !c.take_word("program"))
      return c.fault("TEXT2", "This is not a program: the first line must be 'sterna program 1'.");
    Cursor before = c;
    STERNA_ASSIGN(const int64_t version, c.integer(0, INT32_MAX, "The version"));
    if (version != kProgramVersion)
      return before.fault(
          "TEXT2", cat("This is version ", version, " of the text form; this Sterna reads version ", kProgramVersion,
                       version > kProgramVersion ? ". Use a newer Sterna."
                                                 : ". Print the program again with the Sterna that wrote it."));
    if (!c.at_end()) return c.fault("TEXT1", "The line should end here.");
    versioned_ = true;
    return {};
  }

  /// Lines before the target.
  Status header(Cursor& c, std::string_view word, int column) {
    if (word == "name") {
      STERNA_ASSIGN(name_, c.text("The program's name"));
    } else if (word == "target") {
      STERNA_ASSIGN(const std::string target, c.text("The chip"));
      if (options_.chip != nullptr) {
        chip_ = *options_.chip;
      } else {
        auto found = find_chip(target);
        if (!found) return located(std::move(found.error()), c, column);
        chip_ = std::move(*found);
      }
      builder_.emplace(*chip_, options_.strict);
      builder_->program().name = name_;
      fields_.emplace(*builder_, tensors_);
    } else {
      return located(Fault(FaultKind::kBadInput, "TEXT1",
                           cat("'target' must come before '", word, "'; write 'target trn2', for example.")),
                     c, column);
    }
    if (!c.at_end()) return c.fault("TEXT1", "The line should end here.");
    return {};
  }

  Status after_target(Cursor& c, std::string_view word, int column) {
    if (word == "tensor") return tensor(c, TensorRole::kLocal, column);
    if (word == "param") return tensor(c, TensorRole::kParameter, column);
    if (word == "result") return result(c);
    if (word == "site") return site(c);
    if (word == "edge") return edge(c);
    if (word == "registers") {
      STERNA_ASSIGN(const int64_t count, c.integer(0, kMostRegisters, "The number of registers"));
      builder_->program().register_count = static_cast<uint32_t>(count);
      return {};
    }
    if (word == "nki") {
      STERNA_ASSIGN(builder_->program().nki_version, c.text("The version of NKI"));
      return {};
    }
    if (word == "name") {
      STERNA_ASSIGN(builder_->program().name, c.text("The program's name"));
      return {};
    }
    if (word == "core") return core(c);
    if (word == "cores") {
      STERNA_ASSIGN(const int64_t count, c.integer(1, kMostCores, "The number of cores"));
      if (builder_->size() > 0) return c.fault("TEXT1", "'cores' comes before the first record.");
      builder_->set_cores(static_cast<int>(count));
      return {};
    }
    return instruction(c, word, column);
  }

  /// `core 1`: what follows is that core's.
  Status core(Cursor& c) {
    STERNA_ASSIGN(const int64_t number, c.integer(0, kMostCores, "The core"));
    if (number >= builder_->cores())
      return c.fault("TEXT4", cat("The program has ", builder_->cores(), " cores, counted from 0; say 'cores ",
                                  number + 1, "' before the first record."));
    builder_->set_core(static_cast<int>(number));
    return {};
  }

  /// `site 2 "kernel.py":40 in helper from 1`
  Status site(Cursor& c) {
    Program& p = builder_->program();
    STERNA_ASSIGN(const int64_t id, c.integer(1, INT32_MAX, "The number of the site"));
    STERNA_ASSIGN(const std::string file, c.text("A file"));
    STERNA_TRY(c.expect(':'));
    STERNA_ASSIGN(const int64_t line, c.integer(INT32_MIN, INT32_MAX, "The line"));
    std::string function;
    if (c.take_word("in")) {
      STERNA_ASSIGN(function, c.text("A function"));
    }
    uint32_t parent = 0;
    if (c.take_word("from")) {
      STERNA_ASSIGN(parent, known_site(c));
    }
    const uint32_t made =
        p.sites.intern(p.names.intern(file), p.names.intern(function), static_cast<int32_t>(line), parent);
    if (!sites_.emplace(id, made).second) return c.fault("TEXT3", cat("There is a site ", id, " already."));
    return {};
  }
  Result<uint32_t> known_site(Cursor& c) {
    STERNA_ASSIGN(const int64_t id, c.integer(0, INT32_MAX, "The site"));
    if (id == 0) return uint32_t{0};
    const auto at = sites_.find(id);
    if (at == sites_.end()) return c.fault("TEXT3", cat("There is no 'site ", id, "' line above."));
    return at->second;
  }

  /// `@12` or `@12:3` at the end of a line, else the place in the text where that is asked for.
  struct Reached {
    uint32_t site = 0, iteration = 0;
  };
  Result<Reached> reached(Cursor& c) {
    Reached out;
    if (c.take('@')) {
      STERNA_ASSIGN(out.site, known_site(c));
      if (c.take_adjoining(':')) {
        STERNA_ASSIGN(const int64_t iteration, c.integer(0, kMostIterations, "The iteration"));
        out.iteration = static_cast<uint32_t>(iteration);
      }
    } else if (options_.place_records) {
      Program& p = builder_->program();
      out.site = p.sites.intern(p.names.intern(file_), 0, c.line(), 0);
    }
    return out;
  }

  /// `param %x hbm float32 [128, 512] at (0, 64) shared read_only @3`
  Status tensor(Cursor& c, TensorRole role, int column) {
    STERNA_ASSIGN(const text::Reference ref, text::reference(c));
    if (tensors_.count(ref.key) != 0) return c.fault("TEXT3", cat("There is a tensor ", ref.key, " already."));
    TensorInfo info;
    info.role = role;
    info.name = builder_->program().names.intern(ref.name);
    STERNA_TRY(memory(c, &info.memory));
    STERNA_ASSIGN(info.dtype, text::dtype(c));
    STERNA_TRY(shape(c, &info));
    while (!c.at_end() && c.peek() != '@') {
      if (c.take_word("at"))
        STERNA_TRY(address(c, &info));
      else if (c.take_word("shared"))
        info.shared = true;
      else if (c.take_word("read_only"))
        info.read_only = true;
      else
        return c.fault("TEXT1", "A tensor has 'at (partition, byte)', 'shared' or 'read_only' after its shape.");
    }
    STERNA_ASSIGN(const Reached where, reached(c));
    builder_->set_site(where.site);
    auto id = builder_->add_tensor(info);
    if (!id) return located(std::move(id.error()), c, column);
    if (role == TensorRole::kLocal) last_record().iteration = where.iteration;
    tensors_.emplace(ref.key, *id);
    return {};
  }
  Status memory(Cursor& c, Memory* out) {
    for (Memory m : {Memory::kHbm, Memory::kSbuf, Memory::kPsum})
      if (c.take_word(name(m))) {
        *out = m;
        return {};
      }
    return c.fault("TEXT1", "A memory expected here: hbm, sbuf or psum.");
  }
  Status shape(Cursor& c, TensorInfo* info) {
    STERNA_TRY(c.expect('['));
    int64_t bytes = size_of(info->dtype);
    while (!c.take(']')) {
      if (info->ndim > 0) STERNA_TRY(c.expect(','));
      if (info->ndim == kMaxDims) return c.fault("TEXT4", cat("A tensor has at most ", kMaxDims, " dimensions."));
      STERNA_ASSIGN(const int64_t n, c.integer(0, INT32_MAX, "The size of a dimension"));
      info->shape[info->ndim++] = n;
      if (n > kMostBytes / bytes) return c.fault("TEXT4", cat("A tensor takes at most ", kMostBytes, " bytes."));
      bytes *= std::max<int64_t>(n, 1);
    }
    return {};
  }
  Status address(Cursor& c, TensorInfo* info) {
    STERNA_TRY(c.expect('('));
    STERNA_ASSIGN(const int64_t partition, c.integer(0, INT32_MAX, "The partition"));
    STERNA_TRY(c.expect(','));
    STERNA_ASSIGN(const int64_t byte, c.integer(0, INT32_MAX, "The byte"));
    STERNA_TRY(c.expect(')'));
    info->has_address = true;
    info->address_partition = static_cast<uint32_t>(partition);
    info->address_byte = static_cast<uint32_t>(byte);
    return {};
  }

  Status result(Cursor& c) {
    STERNA_ASSIGN(const uint32_t id, fields_->tensor(c));
    builder_->add_result(id);
    return {};
  }
  Status edge(Cursor& c) {
    STERNA_ASSIGN(const int64_t producer, c.integer(0, INT32_MAX, "The producer"));
    STERNA_TRY(c.expect('-'));
    if (!c.take_adjoining('>')) return c.fault("TEXT1", "'->' expected here.");
    STERNA_ASSIGN(const int64_t consumer, c.integer(0, INT32_MAX, "The consumer"));
    uint32_t core = 0;
    if (c.take_word("core")) {
      STERNA_ASSIGN(const int64_t number, c.integer(0, kMostCores, "The core"));
      core = static_cast<uint32_t>(number);
    }
    edges_.push_back({{static_cast<uint32_t>(producer), static_cast<uint32_t>(consumer), core}, c.line()});
    return {};
  }
  /// Behind all records, for an edge may stand before those that it names.
  Status add_edge(const ExtraEdge& e, int line) {
    Cursor at("", line, file_);
    if (e.core >= static_cast<uint32_t>(builder_->cores()))
      return at.fault("TEXT4", cat("The edge is of core ", e.core, "; the program has ", builder_->cores(), "."));
    builder_->set_core(static_cast<int>(e.core));
    if (e.consumer >= builder_->size() || e.producer >= e.consumer)
      return at.fault("TEXT4", cat("The edge ", e.producer, " -> ", e.consumer,
                                   " must lead forward between two of the ", builder_->size(), " records."));
    Status status = builder_->add_edge(e.producer, e.consumer);
    return status ? std::move(status) : located(std::move(status.error()), at, 1);
  }

  Status instruction(Cursor& c, std::string_view mnemonic, int column) {
    const TableRow* row = find_instruction(mnemonic);
    if (row == nullptr) {
      std::vector<std::string> names;
      for (const TableRow& r : instruction_table())
        if (!r.info.mnemonic.empty()) names.emplace_back(r.info.mnemonic);
      return located(Fault(FaultKind::kBadInput, "TEXT3",
                           cat("There is no instruction '", mnemonic, "'", nearest_hint(mnemonic, names), ".")),
                     c, column);
    }
    void* body = builder_->begin(*row);
    uint32_t label = 0;
    uint64_t given = 0;
    while (!c.at_end() && c.peek() != '@') {
      const std::string_view key = c.word();
      if (key.empty()) return c.fault("TEXT1", "An option expected here, such as engine=vector.");
      const auto list = row->field_list();
      const auto at = std::find_if(list.begin(), list.end(), [&](const FieldSpec& s) { return s.name == key; });
      if (at == list.end() && key != "label") return unknown_option(c, *row, key);
      const uint64_t bit = uint64_t{1} << (at - list.begin());
      if (given & bit) return c.fault("TEXT3", cat("The option '", key, "' is given twice."));
      given |= bit;
      STERNA_TRY(c.expect('='));
      if (at != list.end()) {
        STERNA_TRY(fields_->field(c, *at, body));
        continue;
      }
      STERNA_ASSIGN(const std::string label_text, c.text("The label"));
      label = builder_->program().names.intern(label_text);
    }
    STERNA_ASSIGN(const Reached where, reached(c));
    builder_->set_site(where.site);
    if (Status status = builder_->commit(label); !status) return located(std::move(status.error()), c, column);
    last_record().iteration = where.iteration;
    return {};
  }
  Fault unknown_option(Cursor& c, const TableRow& row, std::string_view key) {
    std::vector<std::string> names;
    for (const FieldSpec& s : row.field_list()) names.emplace_back(s.name);
    return c.fault("TEXT3", cat(row.info.mnemonic, " has no option '", key, "'", nearest_hint(key, names), "."),
                   FaultKind::kWrongType);
  }

  RecordHeader& last_record() {
    return builder_->program().cores[static_cast<size_t>(builder_->core())].at(builder_->size() - 1);
  }
  /// A fault of another layer, with the place in the text.
  static Fault located(Fault fault, const Cursor& c, int column) {
    fault.where = c.place_at(column);
    fault.site = 0;  // of a program that nobody gets
    return fault;
  }

  std::string_view file_;
  const TextOptions& options_;
  bool versioned_ = false;
  std::string name_;
  std::optional<Chip> chip_;
  std::optional<Builder> builder_;
  std::optional<text::FieldReader> fields_;
  text::TensorTable tensors_;
  std::vector<std::pair<ExtraEdge, int>> edges_;  // with their lines
  std::unordered_map<int64_t, uint32_t> sites_;   // number in the text to id
};

}  // namespace

Result<Program> parse_program(std::string_view text, std::string_view file, const TextOptions& options) {
  return Parser(file, options).parse(text);
}

}  // namespace sterna
