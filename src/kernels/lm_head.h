// Row statistics of logits: the one definition that the sampler and the trainer share (docs/paper.md).
// Rows are independent and each is reduced in a fixed order (tiles of kTile columns, fixed lanes inside a tile), so a
// row's result does not depend on the batch it came in.
// Pointers only, no allocation, no exceptions.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define UCAS_BOTH __host__ __device__
#else
#define UCAS_BOTH
#endif

namespace ucas::kernels {

constexpr int64_t kTile = 8192;     // vocabulary columns handled at a time
constexpr int64_t kHeadRows = 256;  // rows that the LM head takes with them; 97 % of the GEMM limit, see bench/

// Logits of so many rows are kept for their gradient; those of more rows at once are computed again. Some 300 MB.
constexpr int64_t kKeptLogits = 80 << 20;
static inline int64_t rows_kept(int64_t vocab) { return kKeptLogits / vocab / 16 * 16; }

// Running statistics over tiles of one row. z = logit / temperature.
struct RowStats {
  float max = -3.4e38f;  // m
  double sum = 0;        // S  = sum e^(z - m)
  double weighted = 0;   // S1 = sum e^(z - m) (z - m)
  double total = 0;      // sum of z, for the mean
};

// Merges columns [0, n) of `logits` into `stats`; call tile by tile from column 0 (n <= kTile).
void row_stats(const float* logits, int64_t n, float inverse_temperature, RowStats& stats);

// A whole row of `vocab` logits, in tiles of kTile.
RowStats stats_of_row(const float* logits, int64_t vocab, float inverse_temperature);

// m + ln S. static, and no <cmath>: as in kernels.h, for the files of one instruction set.
UCAS_BOTH static inline double lse_of(const RowStats& stats) {
  return static_cast<double>(stats.max) + __builtin_log(stats.sum);
}

// What the statistics of a whole row of V columns say of the token chosen there; the only place where these
// expressions are written, so that sampler and trainer agree bit for bit. In double: the row's sums are double, and the
// difference z_y - LSE of nearly equal numbers is what training reads.
struct TokenStats {
  float logprob;     // z_y - LSE
  float entropy;     // ln S - S1 / S
  float confidence;  // C = LSE - mean_v z
  float margin;      // z_y - max_v z: 0 for the likeliest, below it for others
};
UCAS_BOTH static inline TokenStats token_stats(const RowStats& stats, float chosen_logit, float inverse_temperature,
                                               int64_t vocab) {
  const double lse = lse_of(stats);
  const double z = static_cast<double>(chosen_logit * inverse_temperature);  // rounded as in row_stats
  const double entropy = __builtin_log(stats.sum) - stats.weighted / stats.sum;
  return {static_cast<float>(z - lse), static_cast<float>(entropy < 0 ? 0 : entropy),
          static_cast<float>(lse - stats.total / static_cast<double>(vocab)),
          static_cast<float>(z - static_cast<double>(stats.max))};
}

// d loss / d logit of one tile of a row, target counted from the tile's first column (outside [0, n): not in it):
// out = inverse_temperature * (g (1[v=y] - p) - e p (ln p + H) + u (p - 1/V))
struct RowGradient {
  float lse, entropy, g, e, u, inverse_temperature, inverse_vocab;
};
void row_gradient(const float* logits, int64_t n, int64_t target, const RowGradient& row, float* out);

const char* isa();         // "avx512", "avx2" or "scalar": what runs here
const char* isa_reason();  // why, for doctor and env.json

}  // namespace ucas::kernels
