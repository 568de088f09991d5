// SPDX-License-Identifier: Apache-2.0
#include "sterna/cli/program_command.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>

#include "sterna/base/text.h"
#include "sterna/cli/table.h"
#include "sterna/execute/run.h"
#include "sterna/hardware/catalog.h"
#include "sterna/machine/rows.h"
#include "sterna/program/binary.h"
#include "sterna/program/check_program.h"
#include "sterna/program/text.h"
#include "sterna/program/text_names.h"
#include "sterna/program/text_values.h"

namespace sterna::cli {
namespace {

/// Values printed of one tensor; the rest is counted.
constexpr int64_t kMostShown = 256;

struct Loaded {
  std::string file, text;
  Program program;
  Chip chip;
  std::vector<Warning> warnings;
};

Result<Loaded> load(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    return Fault(FaultKind::kBadInput, "", cat("The file ", file, " cannot be read: ", std::strerror(errno), "."));
  std::ostringstream all;
  all << in.rdbuf();
  Loaded out{file, all.str(), {}, {}, {}};
  TextOptions options;
  options.place_records = true;
  options.warnings = &out.warnings;
  if (is_binary_program(out.text)) {
    STERNA_ASSIGN(out.program, read_program(out.text));
    out.text.clear();  // no sections of values follow
  } else {
    STERNA_ASSIGN(out.program, parse_program(out.text, file, options));
  }
  STERNA_ASSIGN(out.chip, find_chip(out.program.target));
  if (out.text.empty()) {
    std::vector<Fault> faults = complete_program(out.program, out.chip);
    if (!faults.empty()) return std::move(faults.front());
  }
  return out;
}

void print_warnings(std::ostream& err, const Program& program, const std::vector<Warning>& warnings) {
  for (const Warning& w : warnings) {
    const Place place = program.place(w.site);
    err << place.file << ':' << place.line << ": warning " << w.rule << ": " << w.message << '\n';
  }
}

void print_summary(std::ostream& out, const Loaded& l) {
  const Program& p = l.program;
  out << (p.name.empty() ? l.file : p.name) << " for " << p.target << '\n';
  int64_t bytes[3] = {};
  int64_t count[3] = {};
  for (const TensorInfo& t : p.tensors)
    bytes[static_cast<int>(t.memory)] += t.bytes(), ++count[static_cast<int>(t.memory)];
  Table tensors("  ");
  tensors.align_right(1), tensors.align_right(2);
  for (Memory m : {Memory::kHbm, Memory::kSbuf, Memory::kPsum})
    if (count[static_cast<int>(m)] > 0)
      tensors.add({std::string(name(m)), std::to_string(count[static_cast<int>(m)]),
                   std::to_string(bytes[static_cast<int>(m)]), "bytes"});
  tensors.print(out << "\ntensors\n");
  std::map<std::string_view, int64_t> records;
  for (const Stream& stream : p.cores)
    for (size_t i = 0; i < stream.size(); ++i) ++records[instruction_table()[stream[i].opcode].info.mnemonic];
  Table instructions("  ");
  instructions.align_right(1);
  for (const auto& [mnemonic, times] : records) instructions.add({std::string(mnemonic), std::to_string(times)});
  instructions.print(out << "\nrecords\n");
}

/// Fills a parameter, or a tile that was just allocated, from its `---- data` section.
Status fill(const Loaded& l, Machine& m, uint32_t id, const TextSection& s) {
  const TensorInfo& t = l.program.tensors[id];
  STERNA_ASSIGN(const std::vector<TextValue> values,
                parse_values(std::string_view(l.text).substr(s.begin, s.end - s.begin), t.dtype, t.elements(), l.file,
                             s.line + 1));
  const View whole = whole_view(id, t);
  STERNA_ASSIGN(Operand o, m.read_any(whole, "data"));
  for (size_t i = 0; i < values.size(); ++i)
    store_bits(o, static_cast<int64_t>(i) / o.cols, static_cast<int64_t>(i) % o.cols, 1, &values[i].bits);
  std::vector<ElementState> states;
  for (const TextValue& v : values) states.push_back(v.undefined ? ElementState::kUndefined : ElementState::kDefined);
  if (t.role == TensorRole::kLocal) m.set_element_states(whole, states);
  return {};
}

void print_tensor(std::ostream& out, const Program& p, Machine& m, uint32_t id, const std::string& reference) {
  const TensorInfo& t = p.tensors[id];
  const View whole = whole_view(id, t);
  const auto opened = m.read_any(whole, "result");
  out << "---- values " << reference << "  # " << name(t.dtype) << ' ' << shape_text(whole) << '\n';
  if (!opened) return;
  const auto states = m.element_states(whole);
  const int64_t width = t.ndim == 0 ? 1 : t.shape[t.ndim - 1];
  const int64_t shown = std::min<int64_t>(static_cast<int64_t>(states.size()), kMostShown);
  for (int64_t i = 0; i < shown; ++i) {
    uint32_t bits;
    load_bits(*opened, i / opened->cols, i % opened->cols, 1, &bits);
    out << (states[static_cast<size_t>(i)] == ElementState::kDefined ? value_text(t.dtype, bits) : "?")
        << ((i + 1) % width == 0 || i + 1 == shown ? '\n' : ' ');
  }
  if (shown < static_cast<int64_t>(states.size()))
    out << "# and " << static_cast<int64_t>(states.size()) - shown << " more\n";
}

/// Runs with the data that the file declares, zero elsewhere.
Status run_program(const Loaded& l, Output output) {
  const Program& p = l.program;
  ThreadPool pool;
  Executor::Options options;
  options.print = [&](const std::string& text) { output.out << text << '\n'; };
  Run run(p, l.chip, &pool, options);
  std::map<uint32_t, std::vector<std::byte>> bytes;
  for (uint32_t id : p.parameters) {
    auto& storage = bytes[id];
    storage.assign(static_cast<size_t>(std::max<int64_t>(p.tensors[id].bytes(), 1)), std::byte{0});
    STERNA_TRY(run.bind(id, storage.data(), !p.tensors[id].read_only));
  }
  const auto names = text::tensor_references(p);
  // By core and the record that allocates.
  std::map<std::pair<uint8_t, uint32_t>, std::pair<uint32_t, TextSection>> tiles;
  for (const TextSection& s : text_sections(l.text)) {
    if (s.kind != "data") continue;
    const auto at = std::find(names.begin(), names.end(), s.arguments);
    if (at == names.end())
      return Fault(FaultKind::kBadInput, "TEXT3", cat(l.file, ':', s.line, ": there is no tensor ", s.arguments, "."));
    const auto id = static_cast<uint32_t>(at - names.begin());
    if (p.tensors[id].role == TensorRole::kParameter)
      STERNA_TRY(fill(l, run.machine(), id, s));
    else
      tiles[{p.tensors[id].core, p.tensors[id].allocated_at}] = {id, s};
  }
  Fault fault;
  for (const auto& [place, tile] : tiles) {
    // A tile of a core that has to meet another first cannot be filled from here.
    const auto state = run.core(place.first).run(place.second + 1, false, &fault);
    if (state == Executor::State::kFault) return fault;
    if (state == Executor::State::kBlocked)
      return Fault(FaultKind::kBadInput, "DATA1",
                   cat(names[tile.first], " has data, but its core waits for another before it is allocated."));
    STERNA_TRY(fill(l, run.machine(place.first), tile.first, tile.second));
  }
  const bool done = run.finish(&fault) == Executor::State::kDone;
  for (int core = 0; core < run.cores(); ++core) print_warnings(output.err, p, run.machine(core).warnings());
  if (!done) return fault;
  for (uint32_t id : p.results) print_tensor(output.out, p, run.machine(), id, names[id]);
  return {};
}

int run(const Arguments& arguments, Output output) {
  const auto refuse = [&](const Fault& fault) {
    output.err << "sterna program: " << fault.text() << '\n';
    return 1;
  };
  auto loaded = load(arguments.text("FILE"));
  if (!loaded) return refuse(loaded.error());
  print_warnings(output.err, loaded->program, loaded->warnings);
  const auto faults = check_program(loaded->program, loaded->chip);
  for (const Fault& f : faults) refuse(f);
  if (!faults.empty()) return 1;
  if (arguments.has("--print")) {
    if (loaded->text.empty()) {
      output.out << print_program(loaded->program);
    } else {
      const auto plain = parse_program(loaded->text, loaded->file);  // without the places in this file
      if (!plain) return refuse(plain.error());
      output.out << print_program(*plain);
    }
  }
  if (arguments.has("--binary"))
    if (Status status = save_program(loaded->program, arguments.text("--binary")); !status)
      return refuse(status.error());
  if (arguments.has("--run"))
    if (Status status = run_program(*loaded, output); !status) return refuse(status.error());
  if (!arguments.has("--print") && !arguments.has("--run") && !arguments.has("--binary"))
    print_summary(output.out, *loaded);
  return 0;
}

}  // namespace

Command program_command() {
  Command command;
  command.name = "program";
  command.summary = "check a program; count, print, run or convert it";
  command.arguments = {
      {"FILE", Argument::kPositional, "a .sterna file, in the text or the binary form"},
      {"--print", Argument::kFlag, "print it in its canonical form"},
      {"--binary", Argument::kValue, "write it in the binary form to this file"},
      {"--run", Argument::kFlag, "run it with the data it declares, zero elsewhere, and print the results"}};
  command.run = run;
  return command;
}

}  // namespace sterna::cli
