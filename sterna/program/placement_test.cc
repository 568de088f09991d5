// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/placement.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "sterna/hardware/catalog.h"
#include "sterna/isa/control.h"
#include "sterna/isa/vector.h"
#include "sterna/program/builder.h"

namespace sterna {
namespace {

class Placing : public testing::Test {
 protected:
  Placing() : chip(std::move(*find_chip("trn2"))), builder(chip, false) {}

  /// A tensor that nothing uses yet.
  uint32_t unused(Memory memory, int64_t bytes, int64_t partitions = 128, int64_t address = -1) {
    TensorInfo info;
    info.memory = memory;
    info.dtype = DType::kUInt8;
    info.ndim = 2;
    info.shape[0] = partitions;
    info.shape[1] = bytes;
    info.has_address = address >= 0;
    info.address_byte = static_cast<uint32_t>(std::max<int64_t>(address, 0));
    auto id = builder.add_tensor(info);
    if (!id) ADD_FAILURE() << id.error().text();
    return id ? *id : 0;
  }
  /// A tensor that is used at once, so that its life begins here.
  uint32_t add(Memory memory, int64_t bytes, int64_t partitions = 128, int64_t address = -1) {
    const uint32_t id = unused(memory, bytes, partitions, address);
    touch(id);
    return id;
  }
  uint32_t sbuf(int64_t bytes) { return add(Memory::kSbuf, bytes); }
  uint32_t psum(int64_t bytes) { return add(Memory::kPsum, bytes); }
  void touch(uint32_t id) {
    vector_engine::Memset m;
    m.dst = whole_view(id, builder.tensor(id));
    m.engine = EngineId::kVector;
    auto status = builder.record(m);
    if (!status) ADD_FAILURE() << status.error().text();
  }
  void loop(int trips) {
    control::Loop l;
    l.reg = {builder.add_register()};
    l.high = trips;
    ASSERT_TRUE(builder.record(l));
  }
  void end() { ASSERT_TRUE(builder.record(control::End{})); }
  Placement place() {
    auto placed = place_tensors(builder.program(), chip);
    if (!placed) ADD_FAILURE() << placed.error().text();
    return placed ? std::move(*placed) : Placement{};
  }
  std::string refusal() {
    auto placed = place_tensors(builder.program(), chip);
    EXPECT_FALSE(placed);
    return placed ? "" : placed.error().text();
  }
  int64_t sbuf_bytes() const { return chip.sbuf_usable_bytes(); }

  Chip chip;
  Builder builder;
};

TEST_F(Placing, TilesOfALoopUseEveryBufferThatFits) {
  const int64_t tile = 32 * 1024;
  const auto buffers = static_cast<size_t>(sbuf_bytes() / tile);
  ASSERT_GE(buffers, 6u);
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < 3 * buffers; ++i) touch(ids.emplace_back(sbuf(tile)));
  const Placement p = place();
  for (size_t i = 0; i + buffers < ids.size(); ++i) {
    std::set<uint32_t> places;
    for (size_t j = i; j < i + buffers; ++j) places.insert(p.byte[ids[j]]);
    EXPECT_EQ(places.size(), buffers) << i;
  }
  EXPECT_EQ(p.sbuf_peak, tile);
}

TEST_F(Placing, PsumTilesTakeBanksInTurn) {
  std::vector<uint32_t> ids;
  for (int i = 0; i < 24; ++i) touch(ids.emplace_back(psum(512)));
  const Placement p = place();
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(p.byte[ids[i]], (i % 8) * 2048) << i;
}

TEST_F(Placing, PsumTilesShareABankWhenThereAreMoreThanBanks) {
  std::vector<uint32_t> ids;
  for (int i = 0; i < 32; ++i) ids.push_back(psum(512));
  for (uint32_t id : ids) touch(id);
  const Placement p = place();
  std::set<uint32_t> places;
  for (uint32_t id : ids) places.insert(p.byte[id]);
  EXPECT_EQ(places.size(), 32u);
  EXPECT_EQ(p.psum_peak, 16 * 1024);
}

TEST_F(Placing, ATileOfABankDoesNotCrossBanks) {
  std::vector<uint32_t> first;
  for (int i = 0; i < 8; ++i) first.push_back(psum(1200));  // one in each bank
  const uint32_t in_0 = psum(800), in_1 = psum(800);
  touch(in_0);
  touch(first[1]);
  // Free now: 1200 to 3248, across the border of banks 0 and 1.
  const uint32_t tile = psum(1000);
  touch(tile);
  touch(in_1);
  for (uint32_t id : {first[0], first[2], first[3], first[4], first[5], first[6], first[7]}) touch(id);
  const Placement p = place();
  EXPECT_EQ(p.byte[in_1], 2048u + 1200u);
  EXPECT_EQ(p.byte[tile], 2048u);
}

TEST_F(Placing, LiveTensorsNeverOverlap) {
  std::mt19937 random(3);
  std::vector<uint32_t> ids, live;
  for (int i = 0; i < 2000; ++i) {
    const int64_t bytes = 1 + static_cast<int64_t>(random() % 9000);
    const bool address = random() % 10 == 0;
    const int64_t at = address ? static_cast<int64_t>(random() % 40) * 4000 : -1;
    const uint32_t id = add(Memory::kSbuf, bytes, 128, at);
    ids.push_back(id);
    live.push_back(id);
    if (live.size() > 12) {
      const size_t victim = random() % live.size();
      touch(live[victim]);
      live.erase(live.begin() + static_cast<ptrdiff_t>(victim));
    }
  }
  const Placement p = place();
  const auto& tensors = builder.program().tensors;
  for (size_t i = 0; i < ids.size(); ++i)
    for (size_t j = i + 1; j < ids.size(); ++j) {
      const TensorInfo &a = tensors[ids[i]], &b = tensors[ids[j]];
      if (b.allocated_at > p.until[ids[i]] || (a.has_address && b.has_address)) continue;
      const int64_t a0 = p.byte[ids[i]], b0 = p.byte[ids[j]];
      EXPECT_TRUE(a0 + a.free_bytes() <= b0 || b0 + b.free_bytes() <= a0) << ids[i] << " and " << ids[j];
      EXPECT_LE(a0 + a.free_bytes(), sbuf_bytes());
    }
}

TEST_F(Placing, PiecesInProgramOrderArePackedWithAllLivesInView) {
  // Five fifths; the first, third and fifth end, and half of the memory is wanted while the two others live.
  const int64_t fifth = sbuf_bytes() / 5 / 4 * 4;
  uint32_t parts[5];
  for (uint32_t& part : parts) part = sbuf(fifth);
  for (int i : {0, 2, 4}) touch(parts[i]);
  const uint32_t half = sbuf(sbuf_bytes() / 2);
  for (uint32_t id : {half, parts[1], parts[3]}) touch(id);
  const Placement p = place();
  for (int i : {1, 3}) {
    const int64_t at = p.byte[parts[i]], other = p.byte[half];
    EXPECT_TRUE(at + fifth <= other || other + sbuf_bytes() / 2 <= at);
  }
  EXPECT_EQ(p.sbuf_peak, 5 * fifth);
}

TEST_F(Placing, PackedTensorsKeepClearOfAddressesAndOfBankBorders) {
  // 1.5 KB do not fit beside 0.8 KB in a bank; in program order the small ones take one bank each.
  const uint32_t fixed = add(Memory::kPsum, 2048, 128, 2048);
  std::vector<uint32_t> small, large;
  for (int i = 0; i < 7; ++i) small.push_back(psum(800));
  for (int i = 0; i < 3; ++i) large.push_back(psum(1500));
  for (uint32_t id : small) touch(id);
  for (uint32_t id : large) touch(id);
  touch(fixed);
  const Placement p = place();
  std::vector<uint32_t> all = small;
  all.insert(all.end(), large.begin(), large.end());
  for (uint32_t a : all) {
    const int64_t bytes = builder.tensor(a).free_bytes();
    EXPECT_EQ(p.byte[a] / 2048, (p.byte[a] + bytes - 1) / 2048);
    EXPECT_NE(p.byte[a] / 2048, 1u);
    for (uint32_t b : all)
      if (a != b) {
        EXPECT_TRUE(p.byte[a] + bytes <= p.byte[b] || p.byte[b] + builder.tensor(b).free_bytes() <= p.byte[a]);
      }
  }
}

TEST_F(Placing, AvoidsAnAddressThatComesToLifeLater) {
  const uint32_t first = sbuf(1024);
  const uint32_t fixed = unused(Memory::kSbuf, 4096, 128, 0);
  touch(fixed);
  touch(first);
  const Placement p = place();
  EXPECT_EQ(p.byte[fixed], 0u);
  EXPECT_GE(p.byte[first], 4096u);
}

TEST_F(Placing, ATensorFromOutsideALoopLivesUntilItsEnd) {
  const uint32_t outside = sbuf(1024);
  loop(3);
  touch(outside);
  const uint32_t inside = sbuf(sbuf_bytes() - 512);
  touch(inside);
  end();
  EXPECT_NE(refusal().find("CAP1"), std::string::npos);
}

TEST_F(Placing, ALifeBeginsWithTheFirstUse) {
  std::vector<uint32_t> tiles;  // a list of twelve banks where eight exist, used one after the other
  for (int i = 0; i < 12; ++i) tiles.push_back(unused(Memory::kPsum, 2048));
  for (uint32_t id : tiles) touch(id), touch(id);
  EXPECT_EQ(place().psum_peak, 2048);
}

TEST_F(Placing, ATensorFromOutsideALoopLivesFromItsBeginning) {
  const uint32_t outside = unused(Memory::kSbuf, 1024);
  loop(3);
  touch(sbuf(sbuf_bytes() - 512));
  touch(outside);
  end();
  EXPECT_NE(refusal().find("CAP1"), std::string::npos);
}

TEST_F(Placing, TensorsOfOneTripMayFollowOneAnother) {
  loop(3);
  touch(sbuf(sbuf_bytes()));
  touch(sbuf(sbuf_bytes()));
  end();
  EXPECT_EQ(place().sbuf_peak, sbuf_bytes());
}

TEST_F(Placing, RefusalNamesWhatIsLiveAndWhere) {
  Program& program = builder.program();
  builder.set_site(program.sites.intern(program.names.intern("kernel.py"), 0, 7, 0));
  const uint32_t large = sbuf(200 * 1024);
  builder.set_site(program.sites.intern(program.names.intern("kernel.py"), 0, 9, 0));
  const uint32_t more = sbuf(100 * 1024);
  touch(large);
  touch(more);
  const std::string text = refusal();
  EXPECT_NE(text.find("CAP1"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel.py:7"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel.py:9"), std::string::npos) << text;
  EXPECT_NE(text.find("204800 B"), std::string::npos) << text;
}

TEST_F(Placing, PsumHasItsOwnRule) {
  const uint32_t a = psum(10 * 1024), b = psum(8 * 1024);
  touch(a);
  touch(b);
  EXPECT_NE(refusal().find("CAP2"), std::string::npos);
}

TEST_F(Placing, AnAddressPastTheEndIsRefused) {
  touch(add(Memory::kSbuf, 4096, 128, sbuf_bytes() - 4092));
  EXPECT_NE(refusal().find("CAP1"), std::string::npos);
}

TEST_F(Placing, PeakCountsBytesUnderSharedAddressesOnce) {
  const uint32_t a = add(Memory::kSbuf, 4096, 128, 0), b = add(Memory::kSbuf, 4096, 128, 2048), c = sbuf(1024);
  for (uint32_t id : {a, b, c}) touch(id);
  EXPECT_EQ(place().sbuf_peak, 4096 + 2048 + 1024);
}

}  // namespace
}  // namespace sterna
