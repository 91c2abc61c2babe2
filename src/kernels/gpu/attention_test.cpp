// CPU emulation of decoding attention, against softmax and sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/str.h"
#include "kernels/gpu/kernels.h"
#include "support/gpu_emulation.h"

namespace ucas::gpu::attention_tests {  // a folder's tests are compiled together
namespace {

const Bf16 kNan = narrow(std::numeric_limits<float>::quiet_NaN());
const Bf16 kUntouched = narrow(4711);
constexpr int64_t kMargin = 8;
constexpr float kScale = 0.3f;

struct Shape {
  int64_t G, K, d, window = 0;
  std::string str() const { return ucas::str("G ", G, " K ", K, " d ", d, " window ", window); }
};

// A cache of shuffled blocks where everything is NaN that no row may read, and rows of queries in it.
struct Decoding {
  Shape shape;
  std::vector<int32_t> position, slot, table;
  int64_t slots, blocks_of_slot, block_stride, q_stride;
  std::vector<Bf16> layer, q;

  Decoding(const Shape& of, std::vector<int32_t> at) : shape(of), position(std::move(at)) {
    const auto rows = static_cast<int64_t>(position.size());
    slots = rows + 2;
    blocks_of_slot = blocks_for(*std::max_element(position.begin(), position.end())) + 1;
    Rng rng(5, static_cast<uint64_t>(shape.G * 1000 + shape.d));
    auto shuffled = [&](int64_t n) {
      std::vector<int32_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[rng.below(i + 1)]);
      return order;
    };
    slot = shuffled(slots);
    slot.resize(rows);
    table = shuffled(slots * blocks_of_slot);
    block_stride = block_numbers(shape.K, shape.d) + 16;  // as where other layers lie between
    layer.assign(slots * blocks_of_slot * block_stride, kNan);
    q_stride = (heads() + 2 * shape.K) * shape.d;
    q.assign(rows * q_stride, kNan);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < heads() * shape.d; ++i) q[row * q_stride + i] = narrow(static_cast<float>(rng.normal()));
      for (int64_t key = first_key(row); key <= position[row]; ++key) {
        for (int64_t i = 0; i < shape.K * shape.d; ++i) {
          *key_at(row, key, i / shape.d, i % shape.d) = narrow(static_cast<float>(rng.normal()));
          *value_at(row, key, i / shape.d, i % shape.d) = narrow(static_cast<float>(rng.normal()));
        }
      }
    }
  }

  static int64_t blocks_for(int32_t last) { return last / kBlockTokens + 1; }
  int64_t heads() const { return shape.G * shape.K; }
  int64_t first_key(int64_t row) const {
    return shape.window == 0 ? 0 : std::max<int64_t>(0, position[row] + 1 - shape.window);
  }
  Bf16* block_at(int64_t row, int64_t key) {
    return layer.data() + table[slot[row] * blocks_of_slot + key / kBlockTokens] * block_stride;
  }
  Bf16* key_at(int64_t row, int64_t key, int64_t head, int64_t i) {
    return block_at(row, key) + head * kBlockTokens * shape.d + (i / 8 * kBlockTokens + key % kBlockTokens) * 8 + i % 8;
  }
  Bf16* value_at(int64_t row, int64_t key, int64_t head, int64_t i) {
    return block_at(row, key) + ((shape.K + head) * kBlockTokens + key % kBlockTokens) * shape.d + i;
  }

  // Rows [first, first + rows) by themselves. Scratch and result hold NaN before, and a margin behind them stays.
  std::vector<Bf16> attend(int64_t first, int64_t rows, int64_t more_blocks = 0) {
    int64_t most_blocks = more_blocks;
    for (int64_t row = first; row < first + rows; ++row) {
      most_blocks = std::max(most_blocks, blocks_for(position[row]) + more_blocks);
    }
    const int64_t parts = rows * most_blocks * heads(), n = rows * heads() * shape.d;
    std::vector<float> part(parts * shape.d + kMargin, std::nanf("")), part_norm(parts * 2 + kMargin, std::nanf(""));
    std::vector<Bf16> out(n + kMargin, kUntouched);
    host().attend_decode(nullptr, {.rows = rows,
                                   .H = heads(),
                                   .K = shape.K,
                                   .d = shape.d,
                                   .window = shape.window,
                                   .most_blocks = most_blocks,
                                   .scale = kScale,
                                   .q = q.data() + first * q_stride,
                                   .q_stride = q_stride,
                                   .slot = slot.data() + first,
                                   .position = position.data() + first,
                                   .cache = {layer.data(), block_stride, table.data(), blocks_of_slot},
                                   .part = part.data(),
                                   .part_norm = part_norm.data(),
                                   .out = out.data()});
    for (int64_t i = 0; i < kMargin; ++i) {
      EXPECT_EQ(out[n + i].bits, kUntouched.bits);
      EXPECT_TRUE(std::isnan(part[parts * shape.d + i]) && std::isnan(part_norm[parts * 2 + i]));
    }
    for (int64_t row = 0; row < rows; ++row) {  // a row that sees one block needs no scratch, others have theirs
      const int64_t block = position[first + row] / kBlockTokens;
      const bool alone = first_key(first + row) / kBlockTokens == block;
      EXPECT_EQ(std::isnan(part_norm[(row * most_blocks + block) * heads() * 2]), alone) << "row " << row;
    }
    out.resize(n);
    return out;
  }

  std::vector<double> expected(int64_t row, int64_t head) {
    const int64_t of = head / shape.G;
    std::vector<double> weight, out(shape.d);
    for (int64_t key = first_key(row); key <= position[row]; ++key) {
      double score = 0;
      for (int64_t i = 0; i < shape.d; ++i) {
        score += static_cast<double>(widen(q[row * q_stride + head * shape.d + i])) * widen(*key_at(row, key, of, i));
      }
      weight.push_back(score * kScale);
    }
    const double most = *std::max_element(weight.begin(), weight.end());
    double sum = 0;
    for (double& w : weight) sum += w = std::exp(w - most);
    for (int64_t key = first_key(row); key <= position[row]; ++key) {
      const double share = weight[key - first_key(row)] / sum;
      for (int64_t i = 0; i < shape.d; ++i) out[i] += share * widen(*value_at(row, key, of, i));
    }
    return out;
  }

  void expect_all() {
    const auto rows = static_cast<int64_t>(position.size());
    const std::vector<Bf16> out = attend(0, rows);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t head = 0; head < heads(); ++head) {
        const std::vector<double> want = expected(row, head);
        for (int64_t i = 0; i < shape.d; ++i) {
          const double got = widen(out[(row * heads() + head) * shape.d + i]);
          ASSERT_NEAR(got, want[i], 1e-5 + std::abs(want[i]) / 256)
              << shape.str() << " position " << position[row] << " head " << head << " number " << i;
        }
      }
    }
  }
};

bool same(const Bf16* a, const Bf16* b, int64_t n) {
  return std::equal(a, a + n, b, [](Bf16 x, Bf16 y) { return x.bits == y.bits; });
}

TEST(gpu_attention, every_number_of_query_heads_gives_softmax_of_the_scores_times_the_values) {
  for (int64_t G : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16}) Decoding({G, 2, 16}, {0, 255, 300}).expect_all();
}

TEST(gpu_attention, so_does_every_width_of_heads) {
  for (int64_t d : {8, 24, 32, 64, 80, 128, 256}) Decoding({2, 2, d}, {1, 256, 40}).expect_all();
  Decoding({6, 1, 128}, {300}).expect_all();
}

TEST(gpu_attention, a_row_may_end_anywhere_in_a_block) {
  Decoding({3, 1, 16}, {0, 1, 2, 31, 127, 128, 254, 255, 256, 257, 511, 512, 700}).expect_all();
}

TEST(gpu_attention, a_window_hides_what_lies_before_it_and_reads_none_of_it) {
  for (int64_t window : {1, 2, 100, 256, 257, 400, 5000}) {
    Decoding({2, 2, 16, window}, {0, 1, 99, 100, 255, 256, 400, 511, 700}).expect_all();
  }
}

TEST(gpu_attention, a_row_knows_nothing_of_the_others_nor_of_how_many_blocks_they_have) {
  for (int64_t window : {0, 300}) {
    Decoding decoding({6, 2, 32, window}, {700, 3, 255, 256, 511});
    const int64_t rows = 5, width = decoding.heads() * 32;
    const std::vector<Bf16> together = decoding.attend(0, rows);
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<Bf16> alone = decoding.attend(row, 1), roomy = decoding.attend(row, 1, 2);
      EXPECT_TRUE(same(together.data() + row * width, alone.data(), width)) << row;
      EXPECT_TRUE(same(together.data() + row * width, roomy.data(), width)) << row;
    }
  }
}

TEST(gpu_attention, large_scores_neither_overflow_nor_hide_each_other) {
  Decoding decoding({2, 1, 16}, {600});
  for (Bf16& x : decoding.q) x = narrow(widen(x) * 100);
  decoding.expect_all();
}

TEST(gpu_attention, a_nan_in_sight_is_not_hidden) {
  Decoding decoding({2, 1, 16}, {300});
  *decoding.key_at(0, 17, 0, 3) = kNan;
  for (const Bf16 x : decoding.attend(0, 1)) EXPECT_TRUE(std::isnan(widen(x)));
}

TEST(gpu_attention, no_rows_are_no_work) { EXPECT_TRUE(Decoding({2, 1, 16}, {3}).attend(0, 0).empty()); }

}  // namespace
}  // namespace ucas::gpu::attention_tests
