#include "train/optimizer/moments.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "hf/safetensors.h"

namespace ucas {
namespace {

float widened(uint16_t bf16) { return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16); }

// Of very different size, as gradients are: 10^-8 to 1 of either sign, or squares.
std::vector<float> spread_values(int64_t n, bool square, uint64_t stream) {
  Rng rng(3, stream);
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    const double size = std::pow(10.0, -8 * rng.uniform()) * 0.037;
    values.push_back(static_cast<float>(square || rng.uniform() < 0.5 ? size : -size));
  }
  return values;
}

std::vector<uint8_t> bytes_of(const at::Tensor& tensor) {
  const auto* data = static_cast<const uint8_t*>(tensor.const_data_ptr());
  return std::vector<uint8_t>(data, data + tensor.nbytes());
}

at::Tensor flat_parameter(int64_t n) { return at::empty({n}); }

TEST(moments, one_bf16_rounding_goes_up_as_often_as_the_value_has_gone_on_the_way) {
  for (float value : {1.0f, 1.00146484375f, -3.1415926f, 1e-30f, 7.3e-42f, 65504.5f}) {
    const float below = widened(bf16_by_chance(value, 0)), above = widened(bf16_by_chance(value, 0xffff));
    double sum = 0;
    for (uint32_t chance = 0; chance < 65536; ++chance) {
      const float rounded = widened(bf16_by_chance(value, chance));
      ASSERT_TRUE(rounded == below || rounded == above) << value;
      sum += rounded;
    }
    // All chances once: the mean is the value itself, but for what is below the 32 bits.
    EXPECT_NEAR(sum / 65536, value, std::abs(value) * 1e-12) << value;
    EXPECT_LE(std::abs(below), std::abs(value));
  }
}

TEST(moments, noise_is_uniform_over_elements_and_over_updates_and_neighbours_do_not_follow_each_other) {
  constexpr int kDraws = 1 << 18, kCells = 256;
  for (int which_runs : {0, 1, 2}) {  // elements, updates, parameters
    std::vector<double> counts(kCells);
    double product = 0, before = 0;
    for (int i = 0; i < kDraws; ++i) {
      const Noise noise = Noise::of(which_runs == 2 ? i : 5, which_runs == 1 ? i : 9, 0);
      const uint32_t chance = noise.bits(which_runs == 0 ? i : 77) & 0xffff;
      ++counts[chance >> 8];
      const double centred = chance / 65535.0 - 0.5;
      product += centred * before;
      before = centred;
    }
    double chi_square = 0;
    const double expected = static_cast<double>(kDraws) / kCells;
    for (double count : counts) chi_square += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_square, 255 + 5 * std::sqrt(2 * 255.0)) << which_runs;
    EXPECT_LT(std::abs(product / kDraws * 12), 5 / std::sqrt(kDraws)) << which_runs;  // correlation
  }
  EXPECT_NE(Noise::of(1, 2, 0).bits(3), Noise::of(1, 2, 1).bits(3));
  EXPECT_NE(Noise::of(1, 2, 0).bits(3), Noise::of(1, 2, 0).bits(3 + (int64_t{1} << 32)));
}

// A gradient that has become 0: after 1,000 updates with beta2 = 0.999 a mean of squares is 0.3677 of what it was.
// Rounded to the nearest it would never move.
TEST(moments, a_mean_of_squares_decays_although_a_step_is_less_than_half_the_distance_of_two_numbers) {
  constexpr int64_t kElements = 8192;
  EXPECT_EQ(widened(bf16_of_f32(1.0f * 0.999f)), 1.0f);
  for (MomentType type : {MomentType::bf16, MomentType::int8}) {
    const Moment moment = make_moment(flat_parameter(kElements), type, true);
    std::vector<float> v(kElements);
    Rng rng(1, 1);
    for (float& x : v) x = static_cast<float>(0.1 + 0.9 * rng.uniform());
    // One of each block stays as it is, so that the scale cannot do the decay for the others.
    for (int64_t i = 0; i < kElements; i += kQuantBlock) v[static_cast<size_t>(i)] = 1;
    const std::vector<float> began = v;
    for (int64_t update = 1; update <= 1000; ++update) {
      write_part(moment, 0, kElements, v.data(), Noise::of(0, update, 1));
      read_part(moment, 0, kElements, v.data());
      for (int64_t i = 0; i < kElements; ++i) v[static_cast<size_t>(i)] *= i % kQuantBlock == 0 ? 1.0f : 0.999f;
    }
    double ratio = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      if (i % kQuantBlock == 0) continue;
      ratio += v[static_cast<size_t>(i)] / began[static_cast<size_t>(i)];
      ++count;
    }
    EXPECT_NEAR(ratio / static_cast<double>(count), 0.3677, 0.006) << names(type)[static_cast<size_t>(type)];
  }
}

// What encode() should give, by looking at every level.
struct Neighbours {
  float below, above;
};
Neighbours neighbours_of(const DynamicMap& map, float x) {
  Neighbours found{0, map.levels().back()};
  for (float level : map.levels()) {
    if (level <= x) found.below = level;
  }
  for (float level : map.levels()) {
    if (level >= x) found.above = std::min(found.above, level);
  }
  return found;
}

TEST(dynamic_map, has_the_levels_of_the_paper) {
  const std::vector<float>&means = DynamicMap::of_means().levels(), &squares = DynamicMap::of_squares().levels();
  EXPECT_EQ(means.size(), 128u);
  EXPECT_EQ(squares.size(), 255u);
  // bitsandbytes, create_dynamic_map(signed=True) and (signed=False): their first and last means above 0.
  EXPECT_FLOAT_EQ(means[1], 5.5e-7f);
  EXPECT_FLOAT_EQ(means.back(), 0.99296875f);
  EXPECT_FLOAT_EQ(squares[1], 3.25e-7f);
  EXPECT_FLOAT_EQ(squares.back(), 0.996484375f);
  EXPECT_TRUE(std::ranges::is_sorted(means));
  EXPECT_TRUE(std::ranges::is_sorted(squares));
}

TEST(dynamic_map, every_code_reads_back_as_itself) {
  for (bool square : {false, true}) {
    const DynamicMap& map = square ? DynamicMap::of_squares() : DynamicMap::of_means();
    std::vector<uint8_t> codes, again(kQuantBlock);
    for (int code = 0; code < 256; ++code) {
      if (code != map.unused()) codes.push_back(static_cast<uint8_t>(code));
    }
    std::vector<float> values(codes.size());
    map.decode(codes.data(), 255, 3.0f, values.data());
    for (uint32_t chance : {1u, 0x8000u, 0xfff0u}) {
      const float scale = map.encode(values.data(), 255, std::vector(255, chance).data(), again.data());
      EXPECT_FLOAT_EQ(scale, 3.0f);
      // A value that is off its level by a rounding may go on by chance alone at the extremes, never at the nearest.
      if (chance != 0x8000u) continue;
      EXPECT_TRUE(std::equal(codes.begin(), codes.end(), again.begin()));
    }
  }
}

TEST(dynamic_map, no_value_is_moved_further_than_its_neighbouring_levels) {
  for (bool square : {false, true}) {
    const DynamicMap& map = square ? DynamicMap::of_squares() : DynamicMap::of_means();
    for (uint64_t block = 0; block < 40; ++block) {
      const std::vector<float> values = spread_values(kQuantBlock, square, block);
      const float largest = std::abs(*std::ranges::max_element(values, {}, [](float x) { return std::abs(x); }));
      std::vector<uint8_t> codes(kQuantBlock);
      std::vector<float> back(kQuantBlock);
      Rng rng(4, block);
      std::vector<uint32_t> chance(kQuantBlock, kToTheNearest);
      for (uint32_t& c : chance) c = square ? rng.next() & 0xffff : c;
      const float scale = map.encode(values.data(), kQuantBlock, chance.data(), codes.data());
      map.decode(codes.data(), kQuantBlock, scale, back.data());
      for (size_t i = 0; i < values.size(); ++i) {
        const float x = std::abs(values[i]) / scale;
        const Neighbours near = neighbours_of(map, x);
        const float gap = (near.above - near.below) * scale, error = std::abs(back[i] - values[i]);
        EXPECT_LE(error, (square ? gap : gap / 2) + 1e-6f * std::abs(values[i])) << values[i];
        EXPECT_EQ(std::signbit(back[i]) && back[i] != 0, std::signbit(values[i]) && back[i] != 0);
        EXPECT_TRUE(!square || back[i] > 0);  // m / sqrt 0 would be a huge step
        EXPECT_TRUE(std::abs(values[i]) < largest || error <= largest * 1e-6f);
        EXPECT_NE(codes[i], map.unused());
      }
    }
  }
}

TEST(dynamic_map, squares_are_rounded_without_bias) {
  const DynamicMap& map = DynamicMap::of_squares();
  std::vector<float> values{1.0f, 0.4312f, 0.0177f, 3.3e-4f}, back(4);
  std::vector<double> sum(4);
  std::vector<uint8_t> codes(4);
  for (uint32_t chance = 0; chance < 65536; ++chance) {
    const float scale = map.encode(values.data(), 4, std::vector(4, chance).data(), codes.data());
    map.decode(codes.data(), 4, scale, back.data());
    for (size_t i = 0; i < 4; ++i) sum[i] += back[i];
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(sum[i] / 65536, values[i], values[i] * 2e-5) << values[i];
}

TEST(dynamic_map, blocks_of_nothing_and_of_extremes) {
  const DynamicMap& map = DynamicMap::of_means();
  const auto round_trip = [&](std::vector<float> values) {
    std::vector<uint8_t> codes(values.size());
    const auto n = static_cast<int64_t>(values.size());
    const float scale = map.encode(values.data(), n, std::vector(values.size(), kToTheNearest).data(), codes.data());
    map.decode(codes.data(), n, scale, values.data());
    return values;
  };
  EXPECT_EQ(round_trip({0, -0.0f, 0}), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(round_trip({1e-39f, -1e-40f}), (std::vector<float>{0, 0}));  // below the smallest normal float
  const float small = std::numeric_limits<float>::min(), large = 3e38f;
  EXPECT_NEAR(round_trip({small, 0})[0] / small, 1, 1e-6);
  EXPECT_NEAR(round_trip({-large, large / 2})[0] / large, -1, 1e-6);
  EXPECT_NEAR(round_trip({-7.5f})[0], -7.5, 1e-5);
}

TEST(moments, are_kept_in_4_2_or_about_1_bytes_an_element_and_small_ones_in_f32) {
  const auto bytes = [](int64_t elements, MomentType type) {
    const Moment m = make_moment(flat_parameter(elements), type, true);
    return m.values.nbytes() + (m.scales.defined() ? m.scales.nbytes() : 0);
  };
  EXPECT_EQ(bytes(8192, MomentType::f32), 4 * 8192u);
  EXPECT_EQ(bytes(8192, MomentType::bf16), 2 * 8192u);
  EXPECT_EQ(bytes(8192, MomentType::int8), 8192u + 4 * 32u);
  EXPECT_EQ(bytes(8193, MomentType::int8), 8193u + 4 * 33u);
  EXPECT_EQ(bytes(kQuantizedFrom - 1, MomentType::int8), 4u * (kQuantizedFrom - 1));
  EXPECT_EQ(bytes(7, MomentType::bf16), 14u);
}

// As threads would write it: in pieces, in any order, and each piece once.
TEST(moments, bits_do_not_depend_on_the_pieces_in_which_they_are_written) {
  constexpr int64_t kElements = 3 * kMomentChunk + 777;
  for (MomentType type : {MomentType::bf16, MomentType::int8}) {
    for (bool square : {false, true}) {
      const std::vector<float> values = spread_values(kElements, square, 9);
      const Noise noise = Noise::of(4, 17, square ? 1 : 0);
      const Moment whole = make_moment(flat_parameter(kElements), type, square);
      const Moment pieces = make_moment(flat_parameter(kElements), type, square);
      EXPECT_TRUE(write_part(whole, 0, kElements, values.data(), noise));
      for (int64_t first = (kElements - 1) / kQuantBlock * kQuantBlock; first >= 0; first -= kQuantBlock) {
        write_part(pieces, first, std::min(kQuantBlock, kElements - first), values.data() + first, noise);
      }
      EXPECT_EQ(bytes_of(whole.values), bytes_of(pieces.values));
      const int threads = at::get_num_threads();
      at::set_num_threads(3);
      const Moment shared = make_moment(flat_parameter(kElements), type, square);
      write_whole(shared, at::from_blob(const_cast<float*>(values.data()), {kElements}), noise);
      EXPECT_EQ(bytes_of(whole.values), bytes_of(shared.values));
      std::vector<float> one(kElements);
      read_part(whole, 0, kElements, one.data());
      EXPECT_EQ(std::memcmp(one.data(), read_whole(shared).const_data_ptr<float>(), one.size() * 4), 0);
      at::set_num_threads(threads);
    }
  }
}

TEST(moments, the_operations_of_other_devices_write_and_read_the_same) {
  constexpr int64_t kElements = 5 * kQuantBlock + 100, kFirst = 2 * kQuantBlock;
  for (MomentType type : {MomentType::f32, MomentType::bf16, MomentType::int8}) {
    for (bool square : {false, true}) {
      std::vector<float> values = spread_values(8192, square, 10);
      const Noise noise = Noise::of(4, 17, square ? 1 : 0);
      const Moment own = make_moment(flat_parameter(8192), type, square);
      const Moment aten = make_moment(flat_parameter(8192), type, square);
      write_part(own, kFirst, kElements, values.data() + kFirst, noise);
      write_part(aten, kFirst, at::from_blob(values.data() + kFirst, {kElements}), noise);
      const std::vector<uint8_t> a = bytes_of(own.values), b = bytes_of(aten.values);
      // A quotient rounded otherwise may tip a code; nothing can tip a bf16.
      int64_t differing = 0;
      for (size_t i = 0; i < a.size(); ++i) differing += a[i] != b[i] ? 1 : 0;
      EXPECT_LE(differing, type == MomentType::int8 ? 2 : 0);
      std::vector<float> part(kElements);
      read_part(own, kFirst, kElements, part.data());
      const at::Tensor same = read_part(own, kFirst, kElements);
      EXPECT_EQ(std::memcmp(part.data(), same.contiguous().const_data_ptr<float>(), part.size() * 4), 0);
    }
  }
}

TEST(moments, a_value_that_cannot_be_kept_as_a_finite_number_is_noticed) {
  const float largest = std::numeric_limits<float>::max();
  for (MomentType type : {MomentType::bf16, MomentType::int8}) {
    const Moment moment = make_moment(flat_parameter(kQuantizedFrom), type, true);
    std::vector<float> values(kQuantizedFrom, 1.0f);
    for (float bad : {largest, std::numeric_limits<float>::infinity()}) {
      std::ranges::fill(values, bad);
      EXPECT_FALSE(write_part(moment, 0, kQuantizedFrom, values.data(), Noise::of(0, 1, 1)));
    }
    std::ranges::fill(values, 1.0f);
    EXPECT_TRUE(write_part(moment, 0, kQuantizedFrom, values.data(), Noise::of(0, 1, 1)));
  }
}

}  // namespace
}  // namespace ucas
