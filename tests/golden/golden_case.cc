// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/golden_case.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>

#include "sterna/base/text.h"
#include "sterna/hardware/catalog.h"
#include "sterna/machine/rows.h"
#include "sterna/program/binary.h"
#include "sterna/program/check_program.h"
#include "sterna/program/text.h"
#include "sterna/program/text_names.h"

namespace sterna::golden {
namespace {

Fault bad_case(const std::string& file, int line, std::string message) {
  Fault f(FaultKind::kBadInput, "GOLDEN", std::move(message));
  f.where = {file, line, 0, {}};
  return f;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') out.push_back(line);
  return out;
}

Result<Remark> read_remark(const std::string& file, const TextSection& s, const std::string& body) {
  const auto words = words_of(s.arguments);
  Remark r;
  r.at = s.line;
  r.fragments = lines_of(body);
  if (words.size() != 1 && (words.size() != 3 || words[1] != "line"))
    return bad_case(file, s.line, "A rule, then perhaps 'line N', expected here.");
  r.rule = words[0];
  if (words.size() == 3) r.line = std::atoi(words[2].c_str());
  return r;
}

std::vector<int64_t> numbers_of(const std::string& text) {
  std::vector<int64_t> out;
  for (const std::string& w : words_of(text)) out.push_back(std::atoll(w.c_str()));
  return out;
}

}  // namespace

Result<Case> read_case(const std::string& file, std::string text) {
  Case c;
  c.file = file;
  c.text = std::move(text);
  bool says_something = false;
  for (const TextSection& s : text_sections(c.text)) {
    const std::string body = c.text.substr(s.begin, s.end - s.begin);
    says_something = says_something || (s.kind != "data" && s.kind != "options");
    if (s.kind == "data") {
      c.data.push_back({s.arguments, s.line, body});
    } else if (s.kind == "values") {
      c.values.push_back({s.arguments, s.line, body});
    } else if (s.kind == "fault" && s.arguments != "none") {
      STERNA_ASSIGN(Remark r, read_remark(file, s, body));
      c.faults.push_back(std::move(r));
    } else if (s.kind == "warning") {
      STERNA_ASSIGN(Remark r, read_remark(file, s, body));
      c.warnings.push_back(std::move(r));
    } else if (s.kind == "path") {
      c.path = numbers_of(s.arguments + " " + body), c.has_path = true, c.path_line = s.line;
    } else if (s.kind == "registers") {
      c.registers = numbers_of(s.arguments), c.has_registers = true, c.registers_line = s.line;
    } else if (s.kind == "printed") {
      c.printed = body, c.has_printed = true, c.printed_line = s.line;
    } else if (s.kind == "options") {
      for (const std::string& w : words_of(s.arguments)) {
        if (w == "strict")
          c.strict = true;
        else if (w == "uninit=warn")
          c.uninit = UninitPolicy::kWarn;
        else if (w == "uninit=fill")
          c.uninit = UninitPolicy::kFill;
        else if (w.starts_with("rounding="))
          c.rounding_seed = std::strtoll(w.c_str() + sizeof("rounding=") - 1, nullptr, 10);
        else
          return bad_case(file, s.line,
                          cat("Options are strict, uninit=warn, uninit=fill and rounding=SEED, not ", w, "."));
      }
    } else if (s.kind != "fault") {
      return bad_case(file, s.line, cat("There is no section '", s.kind, "'."));
    }
  }
  if (c.faults.size() > 1) return bad_case(file, c.faults[1].at, "A program stops at its first fault.");
  if (!says_something) return bad_case(file, 1, "The file expects nothing.");
  if (c.text.find("# golden: ") == std::string::npos)
    return bad_case(file, 1, "The line '# golden: what it shows' is missing.");
  return c;
}

namespace {

class Run {
 public:
  Run(const Case& c, ThreadPool& pool, std::string* update) : case_(c), pool_(pool), update_(update) {}

  std::vector<std::string> run() {
    execute();
    compare_faults();
    compare_warnings();
    return std::move(differences_);
  }

 private:
  void differ(int line, const std::string& text) { differences_.push_back(cat(case_.file, ':', line, ": ", text)); }

  void execute() {
    TextOptions options;
    options.strict = case_.strict;
    options.place_records = true;
    options.warnings = &warnings_;
    auto parsed = parse_program(case_.text, case_.file, options);
    if (!parsed) {
      fault_ = std::move(parsed.error());
      return;
    }
    program_ = std::move(*parsed);
    check_round_trip();
    auto chip = find_chip(program_.target);
    if (!chip) return differ(1, chip.error().text());
    for (const Fault& f : check_program(program_, *chip)) differ(f.where.line, cat("check_program: ", f.text()));
    // What runs is the program as it comes back from its binary form, so that nothing is lost on that way.
    if (auto read = read_program(write_program(program_))) program_ = std::move(*read);
    for (const Fault& f : complete_program(program_, *chip)) differ(f.where.line, cat("complete_program: ", f.text()));
    Executor::Options how;
    how.strict = case_.strict;
    how.uninit = case_.uninit;
    how.rounding_seed = case_.rounding_seed;
    how.print = [this](const std::string& text) { printed_ += text + "\n"; };
    sterna::Run run(program_, *chip, &pool_, how);
    if (start(run)) (void)run.finish(&fault_, sterna::Run::Memory::kKeep);
    for (int core = 0; core < run.cores(); ++core)
      for (const Warning& w : run.machine(core).warnings()) warnings_.push_back(w);
    compare_run(run);
  }

  /// print and parse are inverses for every program here.
  void check_round_trip() {
    const std::string once = print_program(program_);
    const auto again = parse_program(once, case_.file);
    if (!again) return differ(1, cat("the printed program cannot be read: ", again.error().text(), "\n", once));
    if (print_program(*again) != once)
      differ(1, cat("printed, read and printed again, the program differs:\n", once, print_program(*again)));
    const std::string bytes = write_program(program_);
    const auto binary = read_program(bytes);
    if (!binary) return differ(1, cat("the binary form cannot be read: ", binary.error().text()));
    if (print_program(*binary) != once || write_program(*binary) != bytes)
      differ(1, "written in the binary form and read again, the program differs.");
  }

  const uint32_t* find(const std::string& reference) {
    if (ids_.empty()) {
      const auto names = text::tensor_references(program_);
      for (uint32_t id = 0; id < names.size(); ++id) ids_[names[id]] = id;
    }
    const auto at = ids_.find(reference);
    return at == ids_.end() ? nullptr : &at->second;
  }

  /// Binds parameters and fills tiles just after their allocation. False: something stopped it.
  bool start(sterna::Run& run) {
    for (uint32_t id : program_.parameters) {
      const TensorInfo& t = program_.tensors[id];
      auto& bytes = parameters_[id];
      bytes.assign(static_cast<size_t>(std::max<int64_t>(t.bytes(), 1)), std::byte{0});
      (void)run.bind(id, bytes.data(), !t.read_only);
    }
    // By core and the record that allocates.
    std::map<std::pair<int, uint32_t>, std::pair<uint32_t, const Values*>> tiles;
    for (const Values& v : case_.data) {
      const uint32_t* id = find(v.tensor);
      if (id == nullptr) {
        differ(v.line, cat("there is no tensor ", v.tensor, "."));
        return false;
      }
      const TensorInfo& t = program_.tensors[*id];
      if (t.role == TensorRole::kParameter)
        fill(run.machine(), *id, v);
      else
        tiles[{t.core, t.allocated_at}] = {*id, &v};
    }
    for (const auto& [place, tile] : tiles) {
      const uint32_t record = place.second;
      Executor& executor = run.core(place.first);
      if (executor.run(record + 1, false, &fault_) != Executor::State::kDone) return false;
      if (executor.next() != record + 1) {
        differ(tile.second->line, "data is for tiles that are allocated outside of regions.");
        return false;
      }
      fill(executor.machine(), tile.first, *tile.second);
    }
    return true;
  }

  void fill(Machine& m, uint32_t id, const Values& v) {
    const TensorInfo& t = program_.tensors[id];
    const auto values = parse_values(v.text, t.dtype, t.elements(), case_.file, v.line + 1);
    if (!values) return differ(values.error().where.line, values.error().message);
    const View whole = whole_view(id, t);
    auto opened = m.open(whole, "data");
    if (!opened && t.read_only) opened = m.read_any(whole, "data");
    if (!opened) return differ(v.line, opened.error().text());
    std::vector<ElementState> states;
    for (int64_t r = 0; r < opened->rows; ++r)
      for (int64_t c = 0; c < opened->cols; ++c) {
        const TextValue& value = (*values)[static_cast<size_t>(r * opened->cols + c)];
        states.push_back(value.undefined ? ElementState::kUndefined : ElementState::kDefined);
        if (!value.undefined) store_bits(*opened, r, c, 1, &value.bits);
      }
    if (t.role == TensorRole::kLocal) m.set_element_states(whole, states);
  }

  void compare_run(sterna::Run& run) {
    Executor& executor = run.core(0);  // paths and registers are those of the first core
    for (const Values& v : case_.values)
      if (const uint32_t* id = find(v.tensor)) compare_values(run.machine(program_.tensors[*id].core), v);
      else differ(v.line, cat("there is no tensor ", v.tensor, "."));
    if (case_.has_path && executor.path().values() != case_.path)
      differ(case_.path_line,
             cat("the path is ", shape_text(executor.path().values()), ", expected ", shape_text(case_.path)));
    for (uint32_t i = 0; case_.has_registers && i < case_.registers.size(); ++i)
      if (const auto held = executor.machine().read_reg(i); !held || *held != case_.registers[i])
        differ(case_.registers_line, cat("register $", i, " holds ", held ? cat(*held) : std::string("nothing"),
                                         ", expected ", case_.registers[i]));
    if (case_.has_printed && printed_ != case_.printed)
      differ(case_.printed_line, cat("printed:\n", printed_, "expected:\n", case_.printed));
  }

  void compare_values(Machine& m, const Values& v) {
    const uint32_t* id = find(v.tensor);
    if (id == nullptr || !m.has_storage(*id))
      return differ(v.line, cat("there is no tensor ", v.tensor, ", or it was never allocated."));
    const TensorInfo& t = program_.tensors[*id];
    const View whole = whole_view(*id, t);
    auto opened = m.read_any(whole, "values");
    if (!opened) return differ(v.line, opened.error().text());
    const auto states = m.element_states(whole);
    std::vector<uint32_t> bits(states.size());
    const uint32_t mask = size_of(t.dtype) == 4 ? UINT32_MAX : (1u << (8 * size_of(t.dtype))) - 1;
    for (int64_t r = 0; r < opened->rows && opened->cols > 0; ++r)
      load_bits(*opened, r, 0, opened->cols, bits.data() + r * opened->cols);
    for (uint32_t& b : bits) b &= mask;
    if (update_ != nullptr) return rewrite(v, t, bits, states);
    const auto values = parse_values(v.text, t.dtype, t.elements(), case_.file, v.line + 1);
    if (!values) return differ(values.error().where.line, values.error().message);
    int shown = 0;
    for (size_t i = 0; i < bits.size(); ++i) {
      const bool defined = states[i] == ElementState::kDefined;
      const TextValue& want = (*values)[i];
      if (meets(want, t.dtype, bits[i], defined)) continue;
      if (++shown > 4) return differ(v.line, "... and more.");
      char hex[16];
      std::snprintf(hex, sizeof hex, "0x%x", bits[i]);
      differ(want.line,
             cat(v.tensor, index_text(t, i), " is ",
                 defined ? cat(value_text(t.dtype, bits[i]), " (", hex, ')') : "undefined", ", expected ",
                 want.undefined ? "undefined" : cat(want.nearly ? "nearly " : "", value_text(t.dtype, want.bits))));
    }
  }

  static std::string index_text(const TensorInfo& t, size_t element) {
    std::vector<int64_t> index(static_cast<size_t>(t.ndim));
    auto rest = static_cast<int64_t>(element);
    for (int d = t.ndim - 1; d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % t.shape[d];
      rest /= t.shape[d];
    }
    return shape_text(index);
  }

  void rewrite(const Values& v, const TensorInfo& t, const std::vector<uint32_t>& bits,
               const std::vector<ElementState>& states) {
    std::string text;
    const auto width = static_cast<size_t>(t.ndim == 0 ? 1 : t.shape[t.ndim - 1]);
    for (size_t i = 0; i < bits.size(); ++i)
      text += cat(states[i] == ElementState::kDefined ? value_text(t.dtype, bits[i]) : "?",
                  (i + 1) % width == 0 ? '\n' : ' ');
    const size_t dashes = update_->find("---- values " + v.tensor + "\n");
    if (dashes == std::string::npos) return;
    const size_t begin = update_->find('\n', dashes) + 1,
                 end = std::min(update_->find("\n----", begin - 1), update_->size());
    update_->replace(begin, end < begin ? 0 : end - begin + (end < update_->size()), text);
  }

  static std::string placed(const Fault& f) { return cat(f.rule, " at line ", f.where.line, ": ", f.message); }

  void compare_faults() {
    const bool stopped = !fault_.message.empty();
    if (case_.faults.empty()) {
      if (stopped) differ(fault_.where.line, cat("an unexpected fault, ", placed(fault_)));
      return;
    }
    const Remark& want = case_.faults[0];
    if (!stopped) return differ(want.at, cat("the fault ", want.rule, " did not happen."));
    if (fault_.rule != want.rule || (want.line != 0 && fault_.where.line != want.line))
      return differ(want.at, cat("expected the fault ", want.rule, " at line ", want.line, ", got ", placed(fault_)));
    for (const std::string& fragment : want.fragments)
      if (fault_.message.find(fragment) == std::string::npos)
        differ(want.at, cat("'", fragment, "' is not in the message: ", fault_.message));
  }

  void compare_warnings() {
    std::vector<bool> used(warnings_.size(), false);
    for (const Remark& want : case_.warnings) {
      bool found = false;
      for (size_t i = 0; i < warnings_.size() && !found; ++i) {
        const Warning& w = warnings_[i];
        if (used[i] || w.rule != want.rule || (want.line != 0 && program_.place(w.site).line != want.line)) continue;
        used[i] = found = true;
        for (const std::string& fragment : want.fragments)
          if (w.message.find(fragment) == std::string::npos)
            differ(want.at, cat("'", fragment, "' is not in the warning: ", w.message));
      }
      if (!found) differ(want.at, cat("the warning ", want.rule, " did not happen."));
    }
    for (size_t i = 0; i < warnings_.size(); ++i)
      if (!used[i])
        differ(program_.place(warnings_[i].site).line,
               cat("an unexpected warning, ", warnings_[i].rule, ": ", warnings_[i].message));
  }

  const Case& case_;
  ThreadPool& pool_;
  std::string* update_;
  Program program_;
  std::map<std::string, uint32_t> ids_;
  std::map<uint32_t, std::vector<std::byte>> parameters_;
  std::vector<Warning> warnings_;
  Fault fault_;
  std::string printed_;
  std::vector<std::string> differences_;
};

}  // namespace

std::vector<std::string> run_case(const Case& c, ThreadPool& pool, std::string* update) {
  return Run(c, pool, update).run();
}

}  // namespace sterna::golden
