// Addresses beyond 2^32 bytes and elements: a kernel's last thread block at sizes that no test could fill, in memory
// that is mapped and not reserved, of which only the pages that are touched exist. What it gives is what the same
// numbers give at the beginning of small arrays.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.h"
#include "kernels/gpu/attention.h"
#include "kernels/gpu/kernels.h"
#include "kernels/gpu/lm_head.h"
#include "kernels/gpu/rows.h"
#include "kernels/gpu/truncated_sample.h"
#include "kernels/gpu/update.h"
#include "support/gpu_emulation.h"

namespace ucas::gpu::extreme_tests {  // a folder's tests are compiled together
namespace {

constexpr int64_t kVocab = 151936, kRows = 16896;

// n numbers, all 0, of which untouched pages take no memory.
template <class T>
class Vast {
 public:
  explicit Vast(int64_t n) : bytes_(static_cast<size_t>(n) * sizeof(T)) {
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) begin_ = static_cast<T*>(at);
  }
  ~Vast() {
    if (begin_ != nullptr) ::munmap(begin_, bytes_);
  }
  Vast(const Vast&) = delete;
  Vast& operator=(const Vast&) = delete;
  explicit operator bool() const { return begin_ != nullptr; }
  T* at(int64_t i) { return begin_ + i; }

 private:
  size_t bytes_;
  T* begin_ = nullptr;
};

template <class Kernel>
void run_block(const Kernel& kernel, int64_t x, int64_t y = 0) {
  HostThreadBlock block(Kernel::kThreads, kernel.shared_bytes(), x, y, 0);
  kernel(block);
}

std::vector<float> random_floats(int64_t n, uint64_t stream) {
  Rng rng(31, stream);
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(2 * rng.normal()));
  return values;
}

TEST(gpu_extreme, the_last_row_of_all_logits_has_its_statistics_gradient_and_draws) {
  Vast<float> logits(kRows * kVocab);
  if (!logits) GTEST_SKIP() << "no address space for " << kRows * kVocab * 4 << " bytes";
  const std::vector<float> row = random_floats(kVocab, 1);
  const int64_t last = kRows - 1, tiles = head_tiles(kVocab);
  std::ranges::copy(row, logits.at(last * kVocab));
  std::vector<int32_t> target(kRows, static_cast<int32_t>(kVocab - 1));
  Vast<TileStats> of_tile(kRows * tiles);
  std::vector<float> chosen(kRows);
  const HeadStatsOfTiles stats{.rows = kRows,
                               .columns = kVocab,
                               .stride = kVocab,
                               .first_tile = 0,
                               .tiles = tiles,
                               .inverse_temperature = 1.25f,
                               .logits = logits.at(0),
                               .target = target.data(),
                               .of_tile = of_tile.at(0),
                               .chosen = chosen.data()};
  std::vector<TileStats> want(tiles);
  float want_chosen = 0;
  HeadStatsOfTiles small = stats;
  small.rows = 1, small.logits = row.data(), small.of_tile = want.data(), small.chosen = &want_chosen;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    run_block(HeadTiles{stats}, HeadTiles{stats}.grid().x - 1, tile);
    run_block(HeadTiles{small}, 0, tile);
  }
  EXPECT_EQ(std::memcmp(of_tile.at(last * tiles), want.data(), want.size() * sizeof(TileStats)), 0);
  EXPECT_EQ(chosen[last], want_chosen);

  const SamplerRun run{5, 6};
  std::vector<SamplerState> state(kRows, {1, 2, 3, 0});
  std::vector<DeviceSampledToken> sampled(kRows);
  SampleToken several{.rows = kRows, .vocab = kVocab, .stride = kVocab, .tiles = tiles, .inverse_temperature = 1.25f};
  several.run = &run, several.logits = logits.at(0), several.of_tile = of_tile.at(0), several.of_tile_greedy = nullptr;
  several.state = state.data(), several.sampled = sampled.data(), several.token = nullptr, several.position = nullptr;
  SampleToken one = several;
  DeviceSampledToken alone{};
  one.logits = row.data(), one.of_tile = want.data(), one.sampled = &alone;
  run_block(SampleTokenRows{several}, last);
  run_block(SampleTokenRows{one}, 0);
  EXPECT_EQ(std::memcmp(&sampled[last], &alone, sizeof(alone)), 0);
  EXPECT_GE(alone.token, 0);
  several.top_p = one.top_p = 0.7;
  run_block(TruncatedSampleRows{several}, last);
  run_block(TruncatedSampleRows{one}, 0);
  EXPECT_EQ(std::memcmp(&sampled[last], &alone, sizeof(alone)), 0);
  EXPECT_LT(alone.whole_logprob, alone.logprob);

  const std::vector<float> ones(kRows, 1), some(kRows, 9);
  HeadGradient gradient{.rows = kRows, .columns = kVocab, .stride = kVocab, .first_column = 0};
  gradient.inverse_temperature = 1.25f, gradient.inverse_vocab = 1.0f / kVocab;
  gradient.target = target.data(), gradient.lse = gradient.entropy = some.data();
  gradient.g = gradient.e = gradient.u = ones.data(), gradient.logits = logits.at(0);
  std::vector<float> of_row = row;
  HeadGradient of_one = gradient;
  of_one.logits = of_row.data();
  run_block(HeadGradientRows{gradient}, last);
  run_block(HeadGradientRows{of_one}, 0);
  EXPECT_EQ(std::memcmp(logits.at(last * kVocab), of_row.data(), of_row.size() * 4), 0);
}

TEST(gpu_extreme, the_last_elements_of_more_than_2_to_the_32_are_updated) {
  constexpr int64_t n = (int64_t{1} << 32) + 2051;
  Vast<float> p(n), g(n), m(n), v(n);
  if (!p || !g || !m || !v) GTEST_SKIP() << "no address space for " << n << " elements";
  int32_t nonfinite = 0;
  *g.at(n - 1) = *g.at(n - 2051) = 0.5f;
  const AdamW a{.n = n,
                .clip = 1,
                .keep = 1,
                .beta1 = 0.9f,
                .beta2 = 0.99f,
                .step_size = 0.1f,
                .root_correction = 1,
                .eps = 1e-8f,
                .p = p.at(0),
                .g = g.at(0),
                .m = m.at(0),
                .v = v.at(0),
                .nonfinite = &nonfinite};
  const int64_t blocks = AdamWElements{a}.grid().x;
  for (int64_t x = blocks - 3; x < blocks; ++x) run_block(AdamWElements{a}, x);
  EXPECT_EQ(*p.at(n - 1), *p.at(n - 2051));
  EXPECT_LT(*p.at(n - 1), 0);
  EXPECT_EQ(*m.at(0), 0);

  SumOfSquares squares{.n = n, .x = p.at(0), .part = nullptr};
  std::vector<double> part((n + kSquaresChunk - 1) / kSquaresChunk);
  squares.part = part.data();
  run_block(SumOfSquaresChunks{squares}, SumOfSquaresChunks{squares}.grid().x - 1);
  const double x = *p.at(n - 1);
  EXPECT_DOUBLE_EQ(part.back(), 2 * x * x);
}

TEST(gpu_extreme, keys_are_found_in_a_block_beyond_2_to_the_32_numbers) {
  constexpr int64_t H = 4, K = 2, d = 128, keys = 200;
  const int64_t numbers = block_numbers(K, d), far = (int64_t{1} << 32) / numbers + 7;
  Vast<Bf16> layer((far + 1) * numbers);
  if (!layer) GTEST_SKIP() << "no address space for the cache";
  const std::vector<float> values = random_floats(numbers, 2), query = random_floats(H * d, 3);
  std::vector<Bf16> near(numbers), q;
  for (int64_t i = 0; i < numbers; ++i) near[i] = *layer.at(far * numbers + i) = narrow(values[i]);
  for (const float x : query) q.push_back(narrow(x));
  const auto attended = [&](Bf16* blocks, int32_t block) {
    const int32_t slot = 0, position = keys - 1;
    std::vector<float> part(H * d), norm(H * 2);
    std::vector<Bf16> out(H * d);
    host().attend_decode(nullptr, {.rows = 1,
                                   .H = H,
                                   .K = K,
                                   .d = d,
                                   .window = 0,
                                   .most_blocks = 1,
                                   .scale = 0.1f,
                                   .q = q.data(),
                                   .q_stride = H * d,
                                   .slot = &slot,
                                   .position = &position,
                                   .cache = {blocks, numbers, &block, 1},
                                   .part = part.data(),
                                   .part_norm = norm.data(),
                                   .out = out.data()});
    return out;
  };
  const std::vector<Bf16> want = attended(near.data(), 0), got = attended(layer.at(0), static_cast<int32_t>(far));
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(Bf16)), 0);
  EXPECT_NE(want[0].bits, 0);
}

}  // namespace
}  // namespace ucas::gpu::extreme_tests
