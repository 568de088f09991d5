// SPDX-License-Identifier: Apache-2.0
// Joins the engines' parts into the table. A new engine adds one line here.
#include <string>
#include <unordered_map>

#include "sterna/isa/instruction.h"

namespace sterna {

std::vector<TableRow> collectives_part();
std::vector<TableRow> control_part();
std::vector<TableRow> cores_part();
std::vector<TableRow> dma_part();
std::vector<TableRow> gpsimd_part();
std::vector<TableRow> scalar_part();
std::vector<TableRow> tensor_part();
std::vector<TableRow> vector_part();

namespace {

std::array<TableRow, 256> build() {
  std::array<TableRow, 256> table{};
  for (auto part :
       {collectives_part, control_part, cores_part, dma_part, gpsimd_part, scalar_part, tensor_part, vector_part})
    for (const TableRow& row : part()) table[row.info.opcode] = row;
  return table;
}

}  // namespace

const std::array<TableRow, 256>& instruction_table() {
  static const std::array<TableRow, 256> table = build();
  return table;
}

const TableRow* find_instruction(std::string_view mnemonic) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const TableRow*> map;
    for (const TableRow& row : instruction_table())
      if (!row.info.mnemonic.empty()) map.emplace(row.info.mnemonic, &row);
    return map;
  }();
  auto found = index.find(mnemonic);
  return found == index.end() ? nullptr : found->second;
}

std::string_view name(EngineId engine) {
  switch (engine) {
    case EngineId::kUnknown: return "unknown";
    case EngineId::kTensor: return "tensor";
    case EngineId::kScalar: return "scalar";
    case EngineId::kGpSimd: return "gpsimd";
    case EngineId::kDma: return "dma";
    case EngineId::kVector: return "vector";
    case EngineId::kSync: return "sync";
  }
  return "?";
}

}  // namespace sterna
