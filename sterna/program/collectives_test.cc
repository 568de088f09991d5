// SPDX-License-Identifier: Apache-2.0
// A program in text form is held to the documented limits of collectives (nki.collectives, SDK 2.32), as a kernel is.
#include <gtest/gtest.h>

#include "sterna/program/text.h"

namespace sterna {
namespace {

struct Case {
  std::string target, line, rule;  // no rule: accepted
};

constexpr const char* kTensors =
    "tensor %in hbm float32 [4, 6]\n"
    "tensor %out hbm float32 [16, 6]\n"
    "tensor %tall hbm float32 [16, 5]\n"
    "tensor %parts hbm float32 [4, 4, 6]\n"
    "tensor %cube sbuf float32 [4, 2, 3]\n"
    "tensor %cubes sbuf float32 [16, 2, 3]\n"
    "tensor %counts hbm uint32 [4, 4]\n"
    "registers 1\n";

std::string rule_of(const Case& c) {
  const auto program = parse_program("sterna program 1\ntarget " + c.target + "\n" + kTensors + c.line + "\n",
                                     "t.sterna", TextOptions{});
  return program ? "" : program.error().rule;
}

TEST(Collectives, LimitsHoldForText) {
  const std::string gather = "all_gather group=\"[[0, 1, 2, 3]]\" ", chunks = "all_to_all_v dst=%out src=%in ",
                    group = "group=\"[[0, 1, 2, 3]]\" ", ring = "collective_permute_implicit dst=%in src=%in " + group,
                    reduce = "all_reduce dst=%in src=%in op=add " + group;
  const std::vector<Case> cases = {
      {"trn2", gather + "dst=%out src=%in dim=0", ""},
      {"trn2", gather + "dst=%parts src=%in dim=0", ""},  // the same elements, with a dimension for the ranks
      {"trn2", gather + "dst=%tall src=%in dim=0", "CC5"},
      {"trn2", gather + "dst=%cubes src=%cube dim=0", "CC5"},
      {"trn2", chunks + group + "metadata=%counts", ""},
      {"trn2", chunks + group + "metadata=%counts has_places=true", "CC17"},
      {"trn3", chunks + group + "metadata=%counts has_places=true", ""},
      {"trn2", chunks + group + "metadata=%counts uniform=true", "CC17"},  // one core
      {"trn3", chunks + group + "metadata=%counts uniform=true has_places=true", "CC17"},
      {"trn2", ring + "channel=3", ""},
      {"trn2", ring + "channel=4", "CC16"},
      {"trn2", ring + "channel=-1", "CC16"},
      {"trn2", "ring_rank_id dst=$0 " + group + "channel=4", "CC16"},
      {"trn2", reduce + "priority=0", "DMA5"},
      {"trn3", reduce + "priority=3", ""},
      {"trn3", reduce + "priority=4", "DMA5"},
      {"trn3", reduce + "priority=-2", "DMA5"},
  };
  for (const Case& c : cases) EXPECT_EQ(rule_of(c), c.rule) << c.target << ": " << c.line;
}

}  // namespace
}  // namespace sterna
