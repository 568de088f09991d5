// SPDX-License-Identifier: Apache-2.0
// Views are compared with lists of element numbers, on which the same operation is written as numpy defines it.
#include "sterna/machine/view_ops.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sterna {
namespace {

using Shape = std::vector<int64_t>;

TensorInfo tensor(const Shape& shape, Memory memory = Memory::kHbm, DType dtype = DType::kFloat32) {
  TensorInfo info;
  info.dtype = dtype;
  info.memory = memory;
  info.ndim = static_cast<uint8_t>(shape.size());
  std::copy(shape.begin(), shape.end(), info.shape);
  return info;
}
View whole(const Shape& shape, Memory memory = Memory::kHbm, DType dtype = DType::kFloat32) {
  return whole_view(0, tensor(shape, memory, dtype));
}

/// The elements of a view in order, as numbers in the tensor; on chip a partition holds `free` of them.
std::vector<int64_t> places(const View& v, int64_t free = 0) {
  std::vector<int64_t> out;
  for (int64_t e = 0; e < v.elements(); ++e) {
    int64_t rest = e, at = v.offset, row = v.partition;
    for (int d = v.ndim - 1; d >= 0; --d) {
      const int64_t i = rest % v.dims[d].count;
      rest /= v.dims[d].count;
      (d == 0 && v.on_chip() ? row : at) += i * v.dims[d].stride;
    }
    out.push_back(row * free + at);
  }
  return out;
}
Shape shape_of(const View& v) {
  Shape out;
  for (int d = 0; d < v.ndim; ++d) out.push_back(v.dims[d].count);
  return out;
}

/// A plain array of element numbers.
struct Array {
  Shape shape;
  std::vector<int64_t> at;
  static Array of(const Shape& shape) {
    Array a{shape, {}};
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    for (int64_t i = 0; i < n; ++i) a.at.push_back(i);
    return a;
  }
  int64_t get(const Shape& index) const {
    int64_t i = 0;
    for (size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + index[d];
    return at[static_cast<size_t>(i)];
  }
  /// A new array of this shape whose element is f(index).
  template <class F>
  static Array make(const Shape& shape, const F& f) {
    Array out{shape, {}};
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    Shape index(shape.size());
    for (int64_t e = 0; e < n; ++e) {
      int64_t rest = e;
      for (size_t d = shape.size(); d-- > 0;) {
        index[d] = rest % shape[d];
        rest /= shape[d];
      }
      out.at.push_back(f(index));
    }
    return out;
  }
};

std::string rule_of(const Result<View>& r) { return r ? "none" : r.error().rule; }
IndexItem slice(int64_t start, int64_t stop, int64_t step = 1) { return {IndexItem::Kind::kSlice, start, stop, step}; }
IndexItem at(int64_t i) { return {IndexItem::Kind::kInt, i, 0, 1}; }

TEST(ViewOps, ResolveSliceClipsAsPythonDoes) {
  const struct {
    int64_t start, stop, want_start, want_stop;
  } cases[] = {{2, 5, 2, 5}, {-3, 10, 7, 10}, {0, -1, 0, 9}, {-100, 100, 0, 10}, {12, 20, 10, 10}, {8, 3, 8, 3}};
  for (const auto& c : cases) {
    const IndexItem item = resolve_slice(10, true, c.start, true, c.stop, 1);
    EXPECT_EQ(item.start, c.want_start);
    EXPECT_EQ(item.stop, c.want_stop);
  }
  const IndexItem all = resolve_slice(10, false, 99, false, 99, 3);
  EXPECT_EQ(all.start, 0);
  EXPECT_EQ(all.stop, 10);
  EXPECT_EQ(all.step, 3);
}

TEST(ViewOps, RandomSlicesTakeTheElementsOfNumpy) {
  std::mt19937 random(3);
  auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    const Shape shape = {1 + below(6), 1 + below(6), 1 + below(6)};
    const Array array = Array::of(shape);
    std::vector<IndexItem> items;
    Shape out_shape;
    for (int64_t size : shape) {
      items.push_back(resolve_slice(size, true, below(2 * size + 4) - size - 2, true, below(2 * size + 4) - size - 2,
                                    1 + below(3)));
      const IndexItem& i = items.back();
      out_shape.push_back(i.stop <= i.start ? 0 : (i.stop - i.start + i.step - 1) / i.step);
    }
    const Array want = Array::make(out_shape, [&](const Shape& index) {
      Shape from(3);
      for (size_t d = 0; d < 3; ++d) from[d] = items[d].start + index[d] * items[d].step;
      return array.get(from);
    });
    for (Memory memory : {Memory::kHbm, Memory::kSbuf}) {
      auto view = index_view(whole(shape, memory), items);
      ASSERT_TRUE(view);
      EXPECT_EQ(shape_of(*view), out_shape);
      EXPECT_EQ(places(*view, shape[1] * shape[2]), want.at);
      EXPECT_TRUE(in_bounds(*view, tensor(shape, memory)));
    }
  }
}

TEST(ViewOps, WholeNumbersDropDimensionsButNotThePartition) {
  const IndexItem middle[] = {slice(0, 4), at(2)};
  EXPECT_EQ(shape_of(*index_view(whole({4, 5, 6}), middle)), (Shape{4, 6}));
  EXPECT_EQ(shape_of(*index_view(whole({4, 5, 6}, Memory::kSbuf), middle)), (Shape{4, 6}));
  const IndexItem one[] = {at(1), at(2), at(3)};
  EXPECT_EQ(shape_of(*index_view(whole({4, 5, 6}), one)), (Shape{1}));
  EXPECT_EQ(places(*index_view(whole({4, 5, 6}), one)), (std::vector<int64_t>{30 + 12 + 3}));
  const View chip = *index_view(whole({4, 5, 6}, Memory::kSbuf), one);
  EXPECT_EQ(shape_of(chip), (Shape{1, 1}));
  EXPECT_EQ(places(chip, 30), (std::vector<int64_t>{45}));
}

TEST(ViewOps, IndexRefusals) {
  const IndexItem outside[] = {at(4)}, back[] = {slice(0, 4, -1)}, still[] = {slice(0, 4, 0)};
  const IndexItem many[] = {at(0), at(0), at(0)};
  EXPECT_EQ(rule_of(index_view(whole({4, 5}), outside)), "IDX1");
  EXPECT_EQ(rule_of(index_view(whole({4, 5}), back)), "IDX3");
  EXPECT_EQ(rule_of(index_view(whole({4, 5}), still)), "IDX3");
  EXPECT_EQ(rule_of(index_view(whole({4, 5}), many)), "IDX2");
  EXPECT_EQ(index_view(whole({4, 5}), outside).error().kind, FaultKind::kOutOfBounds);
}

TEST(ViewOps, ReshapeKeepsOrderWhereNoDataHasToMove) {
  for (Memory memory : {Memory::kHbm, Memory::kSbuf}) {
    const View v = whole({4, 6, 10}, memory);
    for (const Shape& shape :
         {Shape{4, 60}, Shape{4, 3, 2, 10}, Shape{4, 6, 5, 2}, Shape{4, 2, 15, 2}, Shape{4, 1, 60}, Shape{4, 60, 1}}) {
      auto out = reshape_view(v, shape);
      ASSERT_TRUE(out) << out.error().text();
      EXPECT_EQ(shape_of(*out), shape);
      EXPECT_EQ(places(*out, 60), places(v, 60));
    }
    EXPECT_EQ(shape_of(*reshape_view(v, Shape{4, -1, 5})), (Shape{4, 12, 5}));
  }
  EXPECT_EQ(shape_of(*reshape_view(whole({4, 6}), Shape{24})), (Shape{24}));
}

TEST(ViewOps, ReshapeOfStridedViews) {
  const IndexItem odd[] = {slice(0, 4), slice(0, 6, 2)};
  const View v = *index_view(whole({4, 6}), odd);
  EXPECT_EQ(places(*reshape_view(v, Shape{2, 2, 3})), places(v));
  EXPECT_EQ(places(*reshape_view(v, Shape{12})), places(v));  // 6 elements a row, every second: still one stride
  const IndexItem narrow[] = {slice(0, 4), slice(0, 5)};
  EXPECT_EQ(rule_of(reshape_view(*index_view(whole({4, 6}), narrow), Shape{20})), "VIEW4");
  const int swap[] = {1, 0};
  EXPECT_EQ(rule_of(reshape_view(*permute_view(whole({4, 6}), swap), Shape{24})), "VIEW4");
}

TEST(ViewOps, ReshapeRefusals) {
  EXPECT_EQ(rule_of(reshape_view(whole({4, 6}), Shape{25})), "VIEW5");
  EXPECT_EQ(rule_of(reshape_view(whole({4, 6}), Shape{5, -1})), "VIEW5");
  EXPECT_EQ(rule_of(reshape_view(whole({4, 6}, Memory::kSbuf), Shape{8, 3})), "VIEW2");
  EXPECT_EQ(rule_of(reshape_view(whole({32}), Shape{2, 2, 2, 2, 2, 1})), "VIEW3");
  EXPECT_EQ(rule_of(reshape_view(whole({4, 6}), Shape{})), "VIEW3");
}

TEST(ViewOps, PermuteTakesTheElementsOfNumpy) {
  const Array array = Array::of({2, 3, 4});
  const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {2, 0, 1}, {-1, 1, 0}};
  for (const auto& order : orders) {
    Shape shape;
    for (int d : order) shape.push_back(array.shape[static_cast<size_t>(d < 0 ? d + 3 : d)]);
    const Array want = Array::make(shape, [&](const Shape& index) {
      Shape from(3);
      for (size_t d = 0; d < 3; ++d) from[static_cast<size_t>(order[d] < 0 ? order[d] + 3 : order[d])] = index[d];
      return array.get(from);
    });
    EXPECT_EQ(places(*permute_view(whole({2, 3, 4}), order)), want.at);
  }
  const int partition[] = {1, 0, 2}, twice[] = {0, 0, 1}, few[] = {0, 1};
  EXPECT_EQ(rule_of(permute_view(whole({2, 3, 4}, Memory::kSbuf), partition)), "VIEW2");
  EXPECT_EQ(rule_of(permute_view(whole({2, 3, 4}), twice)), "VIEW1");
  EXPECT_EQ(rule_of(permute_view(whole({2, 3, 4}), few)), "VIEW1");
}

TEST(ViewOps, BroadcastRepeats) {
  EXPECT_EQ(places(*broadcast_view(whole({2, 1}), 1, 3)), (std::vector<int64_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(places(*broadcast_to_view(whole({3}), Shape{2, 3})), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(rule_of(broadcast_view(whole({2, 3}), 1, 6)), "VIEW6");
  EXPECT_EQ(rule_of(broadcast_view(whole({1, 3}, Memory::kSbuf), 0, 6)), "VIEW2");
  EXPECT_EQ(rule_of(broadcast_to_view(whole({3}), Shape{2, 4})), "VIEW6");
  EXPECT_EQ(rule_of(broadcast_to_view(whole({2, 3}), Shape{3})), "VIEW6");
}

TEST(ViewOps, ExpandSqueezeFlattenSplit) {
  const View v = whole({4, 6, 10}, Memory::kSbuf);
  EXPECT_EQ(shape_of(*expand_dim_view(v, 1)), (Shape{4, 1, 6, 10}));
  EXPECT_EQ(shape_of(*expand_dim_view(v, -1)), (Shape{4, 6, 10, 1}));
  EXPECT_EQ(rule_of(expand_dim_view(v, 0)), "VIEW2");
  EXPECT_EQ(shape_of(*squeeze_dim_view(*expand_dim_view(v, 2), 2)), (Shape{4, 6, 10}));
  EXPECT_EQ(rule_of(squeeze_dim_view(v, 1)), "VIEW6");
  EXPECT_EQ(shape_of(*flatten_dims_view(v, 1, 2)), (Shape{4, 60}));
  EXPECT_EQ(rule_of(flatten_dims_view(v, 0, 1)), "VIEW2");
  EXPECT_EQ(rule_of(flatten_dims_view(v, 1, 3)), "VIEW1");
  EXPECT_EQ(shape_of(*split_dim_view(v, 1, Shape{2, -1})), (Shape{4, 2, 3, 10}));
  EXPECT_EQ(places(*split_dim_view(v, 1, Shape{2, -1}), 60), places(v, 60));
  EXPECT_EQ(rule_of(split_dim_view(v, 1, Shape{4, 2})), "VIEW5");
  EXPECT_EQ(rule_of(split_dim_view(whole({2, 2, 2, 2, 4}), 4, Shape{2, 2})), "VIEW3");
}

TEST(ViewOps, ReinterpretScalesTheLastDimension) {
  const IndexItem part[] = {slice(1, 3), slice(4, 8)};
  const View v = *index_view(whole({4, 8}), part);
  const View bytes = *reinterpret_view(v, DType::kUInt8);
  EXPECT_EQ(shape_of(bytes), (Shape{2, 16}));
  EXPECT_EQ(places(bytes)[0], (8 + 4) * 4);
  EXPECT_EQ(places(bytes)[16], (16 + 4) * 4);
  EXPECT_EQ(places(*reinterpret_view(bytes, DType::kFloat32)), places(v));
  EXPECT_EQ(shape_of(*reinterpret_view(v, DType::kInt32)), (Shape{2, 4}));
  const IndexItem odd[] = {slice(0, 4), slice(1, 6)};
  EXPECT_EQ(rule_of(reinterpret_view(*index_view(whole({4, 8}, Memory::kHbm, DType::kBFloat16), odd), DType::kFloat32)),
            "VIEW7");
  const IndexItem strided[] = {slice(0, 4), slice(0, 8, 2)};
  EXPECT_EQ(rule_of(reinterpret_view(*index_view(whole({4, 8}), strided), DType::kBFloat16)), "VIEW7");
}

TEST(ViewOps, PatternWalksTheTensor) {
  const TensorInfo info = tensor({8, 20}, Memory::kSbuf);
  const View v = whole_view(0, info);
  const Dim pattern[] = {{20, 3}, {4, 2}, {1, 2}};
  const View out = *pattern_view(v, info, pattern, 2 * 20 + 5, DType::kFloat32);
  EXPECT_EQ(shape_of(out), (Shape{3, 2, 2}));
  EXPECT_EQ(places(out, 20), (std::vector<int64_t>{45, 46, 49, 50, 65, 66, 69, 70, 85, 86, 89, 90}));
  const Dim wrong[] = {{19, 3}, {1, 2}};
  EXPECT_EQ(rule_of(pattern_view(v, info, wrong, 0, DType::kFloat32)), "AP2");
  EXPECT_EQ(rule_of(pattern_view(v, info, {}, 0, DType::kFloat32)), "AP1");
  const TensorInfo flat = tensor({100});
  const Dim any[] = {{7, 3}, {0, 2}};
  EXPECT_EQ(places(*pattern_view(whole_view(0, flat), flat, any, 1, DType::kFloat32)),
            (std::vector<int64_t>{1, 1, 8, 8, 15, 15}));
}

TEST(ViewOps, APatternOnAPartMayCountInRowsOfThePart) {
  const TensorInfo info = tensor({8, 20}, Memory::kSbuf);
  const IndexItem half[] = {slice(2, 6), slice(10, 20)};
  const View part = *index_view(whole_view(0, info), half);
  const Dim pattern[] = {{10, 2}, {1, 3}};
  EXPECT_EQ(places(*pattern_view(part, info, pattern, 0, DType::kFloat32), 20),
            (std::vector<int64_t>{50, 51, 52, 70, 71, 72}));
  EXPECT_EQ(places(*pattern_view(part, info, pattern, 1 * 10 + 4, DType::kFloat32), 20),
            (std::vector<int64_t>{74, 75, 76, 94, 95, 96}));
  const Dim wrong[] = {{11, 2}, {1, 3}};
  EXPECT_EQ(rule_of(pattern_view(part, info, wrong, 0, DType::kFloat32)), "AP2");
}

TEST(ViewOps, PatternsStartOnWholeElements) {
  for (Memory memory : {Memory::kSbuf, Memory::kHbm}) {
    TensorInfo info = tensor({8, 20}, memory);
    info.dtype = DType::kBFloat16;
    View v = whole_view(0, info);
    const Dim pattern[] = {{10, 1}, {1, 2}};
    v.offset = 2;
    EXPECT_EQ(pattern_view(v, info, pattern, 0, DType::kFloat32)->offset, 1);
    v.offset = 3;
    EXPECT_EQ(rule_of(pattern_view(v, info, pattern, 0, DType::kFloat32)), "VIEW7");
  }
  TensorInfo odd = tensor({8, 5}, Memory::kSbuf);
  odd.dtype = DType::kBFloat16;
  const Dim pattern[] = {{2, 1}, {1, 2}};
  EXPECT_EQ(rule_of(pattern_view(whole_view(0, odd), odd, pattern, 0, DType::kFloat32)), "VIEW7");
}

TEST(ViewOps, NegativeCountsAreRefused) {
  const TensorInfo info = tensor({8, 1, 6}, Memory::kSbuf);
  const View v = whole_view(0, info);
  EXPECT_EQ(rule_of(broadcast_view(v, 1, -3)), "VIEW8");
  EXPECT_EQ(rule_of(broadcast_view(v, 1, int64_t{1} << 31)), "VIEW8");
  const int64_t to[] = {8, -3, 6};
  EXPECT_EQ(rule_of(broadcast_to_view(v, to)), "VIEW8");
  const int64_t twice[] = {8, -2, -3}, unknown[] = {8, -1, -1}, good[] = {8, -1, 2};
  EXPECT_EQ(rule_of(reshape_view(v, twice)), "VIEW8");
  EXPECT_EQ(rule_of(reshape_view(v, unknown)), "VIEW8");
  EXPECT_EQ(shape_of(*reshape_view(v, good)), (Shape{8, 3, 2}));
  const int64_t parts[] = {-2, -3}, unknown_parts[] = {-1, -1, 6};
  EXPECT_EQ(rule_of(split_dim_view(v, 2, parts)), "VIEW8");
  EXPECT_EQ(rule_of(split_dim_view(v, 2, unknown_parts)), "VIEW8");
  const Dim pattern[] = {{6, 8}, {1, -6}};
  EXPECT_EQ(rule_of(pattern_view(v, info, pattern, 0, DType::kFloat32)), "VIEW8");
}

TEST(ViewOps, RepeatedElementsAreKnown) {
  const TensorInfo info = tensor({8, 1}, Memory::kSbuf);
  View v = whole_view(0, info);
  EXPECT_FALSE(repeats_elements(v));
  EXPECT_TRUE(repeats_elements(*broadcast_view(v, 1, 4)));
  EXPECT_FALSE(repeats_elements(*broadcast_view(v, 1, 0)));
  v.dims[0].stride = 0;
  EXPECT_TRUE(repeats_elements(v));
  v.kind = ViewKind::kIndirect;
  EXPECT_FALSE(repeats_elements(v));
}

TEST(ViewOps, BoundsAndContiguity) {
  const TensorInfo info = tensor({8, 20}, Memory::kSbuf);
  View v = whole_view(0, info);
  EXPECT_TRUE(free_contiguous(v));
  EXPECT_TRUE(in_bounds(v, info));
  EXPECT_EQ(byte_range(v).end, 80);
  v.dims[1].stride = 2;
  EXPECT_FALSE(free_contiguous(v));
  EXPECT_FALSE(in_bounds(v, info));
  v.dims[1].count = 10;
  EXPECT_TRUE(in_bounds(v, info));
  v.partition = 1;
  EXPECT_FALSE(in_bounds(v, info));
  v.dims[0].count = 0;
  EXPECT_TRUE(in_bounds(v, info));  // touches nothing
}

// Language guide: a view is a strided pattern of up to five dimensions. More can be walked where they merge.
TEST(ViewOps, WiderViewsMergeIntoFiveDimensions) {
  const Shape six = {2, 3, 2, 4, 3, 5};
  const Result<WideView> wide = reshape_view(widened(whole({720})), six);
  ASSERT_TRUE(wide);
  const Result<View> all = merge_leading(*wide);
  ASSERT_TRUE(all);
  EXPECT_EQ(shape_of(*all), (Shape{6, 2, 4, 3, 5}));
  EXPECT_EQ(places(*all), Array::of(six).at);

  const IndexItem part[] = {slice(0, 2), slice(0, 3), slice(0, 2), slice(1, 4, 2), slice(0, 3), slice(2, 4)};
  const Result<View> some = merge_leading(*index_view(*wide, part));
  ASSERT_TRUE(some);
  const Array array = Array::of(six);
  EXPECT_EQ(places(*some), Array::make({2, 3, 2, 2, 3, 2}, [&](const Shape& i) {
                             return array.get({i[0], i[1], i[2], 1 + 2 * i[3], i[4], 2 + i[5]});
                           }).at);

  const IndexItem one[] = {at(1), slice(1, 3)};
  const Result<View> five = merge_leading(*index_view(*wide, one));
  ASSERT_TRUE(five);
  EXPECT_EQ(shape_of(*five), (Shape{2, 2, 4, 3, 5}));
  EXPECT_EQ(places(*five).front(), 360 + 120);
}

TEST(ViewOps, WiderViewsThatDoNotMergeAreRefused) {
  const Shape six = {2, 3, 2, 4, 3, 5};
  const Result<WideView> wide = reshape_view(widened(whole({720})), six);
  const int swapped[] = {1, 0, 2, 3, 4, 5};
  EXPECT_EQ(rule_of(merge_leading(*permute_view(*wide, swapped))), "VIEW3");
  const IndexItem gaps[] = {slice(0, 2), slice(0, 2)};  // rows 0, 1, 3, 4
  EXPECT_EQ(rule_of(merge_leading(*index_view(*wide, gaps))), "VIEW3");
  const IndexItem none[] = {slice(0, 2), slice(0, 0)};
  EXPECT_EQ(merge_leading(*index_view(*wide, none))->elements(), 0);
}

}  // namespace
}  // namespace sterna
