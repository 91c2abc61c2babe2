#include "model/backend/gpu/gpu_budget.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "gpu/kernels.h"
#include "hf/parameters.h"
#include "model/backend/block.h"
#include "model/backend/gpu/gpu_block.h"
#include "model/backend/gpu/gpu_head.h"

namespace ucas {

namespace {

constexpr double kTileBytes = sizeof(gpu::TileStats);
constexpr double kTruncatedPasses = 10;  // over a row's logits, at most

class BudgetCounter {
 public:
  BudgetCounter(const ModelConfig& config, int64_t rows)
      : c_(config),
        s_{c_},
        R_(static_cast<double>(rows)),
        D_(static_cast<double>(s_.D)),
        F_(static_cast<double>(s_.F)),
        N_(static_cast<double>(s_.N)),
        query_(static_cast<double>(s_.query)),
        V_(static_cast<double>(config.vocab_size)),
        L_(static_cast<double>(config.num_hidden_layers)),
        tiles_(static_cast<double>(gpu::head_tiles(config.vocab_size))) {}

  std::vector<BudgetPart> parts;

  void add(const char* group, const std::string& name, double calls, double operations, double bytes) {
    parts.push_back({group, name, calls, calls * operations, calls * bytes});
  }

  // out [R, n] = in [R, k] W^T, so many times; out of `number` bytes.
  void gemm(const char* group, const std::string& name, double calls, double n, double k, double number = 2) {
    add(group, name, calls, 2 * R_ * n * k, 2 * R_ * k + 2 * n * k + number * R_ * n);
  }
  void block_gemms(const std::string& pass) {
    gemm("GEMMs of blocks", str("qkv ", pass), L_, N_, D_);
    gemm("GEMMs of blocks", str("out ", pass), L_, D_, query_);
    gemm("GEMMs of blocks", str("gate_up ", pass), L_, 2 * F_, D_);
    gemm("GEMMs of blocks", str("down ", pass), L_, D_, F_);
  }
  // One for each parameter, added to its f32 gradient.
  void weight_gradients() {
    const auto key = static_cast<double>(s_.key);
    const auto one = [&](const char* name, double calls, double n, double k) {
      add("GEMMs of blocks", str(name, " weight gradient"), calls * L_, 2 * R_ * n * k, 2 * R_ * (n + k) + 8 * n * k);
    };
    one("q", 1, query_, D_);
    one("k, v", 2, key, D_);
    one("out", 1, D_, query_);
    one("gate, up", 2, F_, D_);
    one("down", 1, D_, F_);
  }

  void embed() { add("row kernels", "embed", 1, 0, R_ * (4 + 6 * D_)); }
  // The norms of a forward: the first has nothing to add, the last gives f32.
  void forward_norms() {
    const double first = 6 * R_ * D_, usual = 12 * R_ * D_, last = 14 * R_ * D_;
    parts.push_back(
        {"row kernels", "add_norm", 2 * L_ + 1, 0, first + (2 * L_ - 1) * usual + last + (2 * L_ + 1) * 4 * D_});
  }
  void rope(bool cached) {
    const BlockSpec& spec = c_.family->block;
    const auto d = static_cast<double>(s_.d), heads = static_cast<double>(s_.H + s_.K) * d;
    const double in_place = 4 * (spec.qkv_bias || cached ? N_ : heads);
    const double to_cache = cached ? 4 + 4 * static_cast<double>(s_.key) : 0;
    const double kept = spec.qk_norm && !cached ? 2 * heads : 0;
    const double small = (spec.qkv_bias ? 4 * N_ : 0) + (spec.qk_norm ? 8 * d : 0);
    add("row kernels", "apply_rope_and_store_kv", L_, 0, R_ * (in_place + 4 * d + 4 + to_cache + kept) + small);
  }
  void swiglu() { add("row kernels", "swiglu", L_, 0, 6 * R_ * F_); }

  void backward_rows() {
    const BlockSpec& spec = c_.family->block;
    const auto d = static_cast<double>(s_.d), of_parts = static_cast<double>(gpu::norm_parts(static_cast<int64_t>(R_)));
    add("row kernels", "swiglu_backward", L_, 0, 12 * R_ * F_);
    add("row kernels", "add_norm again", 2 * L_, 0, 6 * R_ * D_ + 4 * D_);
    parts.push_back({"row kernels", "norm_backward", 2 * L_ + 1, 0,
                     (2 * L_ * 16 + 18) * R_ * D_ + (2 * L_ + 1) * (4 * D_ + 4 * of_parts * D_)});
    const double normed = spec.qk_norm ? 2 * static_cast<double>(s_.H + s_.K) * d + 8 * d : 0;
    add("row kernels", "apply_rope_and_store_kv_backward", L_, 0,
        R_ * (4 * N_ + 4 * d + 4 + normed) + (spec.qk_norm ? 8 * d : 0));
    double calls = 2 * L_ + 1, bytes = calls * (of_parts + 2) * 4 * D_;
    if (spec.qkv_bias) calls += L_, bytes += L_ * (2 * R_ * N_ + 4 * N_);
    if (spec.qk_norm) calls += 2 * L_, bytes += 2 * L_ * (4 * R_ * d + 8 * d);
    parts.push_back({"row kernels", "add_parts", calls, 0, bytes});
  }

  // Causal, over whole sequences: the library's flash attention, backward from what it kept.
  void attention(int64_t sequence, bool backward) {
    double pairs = 0;
    for (double left = R_; left > 0; left -= static_cast<double>(sequence)) {
      const double length = std::min(left, static_cast<double>(sequence));
      pairs += length * (length + 1) / 2;
    }
    const double operations = 4 * pairs * query_, kept = 4 * R_ * static_cast<double>(s_.H);
    add("attention", "flash attention forward", L_, operations, 2 * R_ * (N_ + query_) + kept);
    if (!backward) return;
    add("attention", "flash attention backward", L_, 2.5 * operations, 2 * R_ * (2 * N_ + 2 * query_) + kept);
  }

  void head_forward() {
    head_gemm("logits", row_parts() * tiles_, bytes_of_logits());
    parts.push_back(
        {"LM head kernels", "head_stats_of_tiles", row_parts() * tiles_, 0, R_ * (4 * V_ + tiles_ * (kTileBytes + 4))});
    add("LM head kernels", "head_stats_of_rows", 1, 0, R_ * (tiles_ * kTileBytes + 24));
  }
  void head_backward(HeadLogits how) {
    const bool kept = how != HeadLogits::again && R_ <= static_cast<double>(kGpuHeadRows);
    const double slices = how == HeadLogits::whole && kept ? 1 : tiles_, weights = 2 * V_ * D_;
    if (!kept) head_gemm("logits again", row_parts() * tiles_, bytes_of_logits());
    head_gemm("rows' gradient", row_parts() * slices, row_parts() * weights + 2 * R_ * V_ + slices * 8 * R_ * D_);
    head_gemm("weight gradient", row_parts() * slices, slices * 2 * R_ * D_ + 2 * R_ * V_ + row_parts() * 4 * weights);
    parts.push_back({"LM head kernels", "head_gradient", kept ? 1 : row_parts() * tiles_, 0,
                     R_ * (6 * V_ + (kept ? 1 : tiles_) * 24)});
  }

  void embedding_gradient() { add("row kernels", "embedding gradient, LibTorch", 1, 0, 12 * R_ * D_); }

  void cached_attention(double keys) {
    const double blocks = std::ceil(keys / gpu::kBlockTokens), of_keys = 4 * static_cast<double>(s_.key) * keys;
    // Written, and read to merge; the only part of a row is its result.
    const double of_parts = blocks > 1 ? 2 * blocks * (4 * query_ + 8 * static_cast<double>(s_.H)) : 0;
    add("KV cache", "attend_decode", L_, R_ * 4 * query_ * keys, R_ * (of_keys + 4 * query_ + of_parts));
  }
  void drawn(bool truncated) {
    gemm("logits", "logits", 1, V_, D_, 4);
    add("logits", "head_stats_of_tiles", 1, 0, R_ * (4 * V_ + tiles_ * kTileBytes));
    const double one_tile = 4 * std::min<double>(V_, gpu::kHeadTile);
    add("draw", "sample", 1, 0, R_ * (tiles_ * kTileBytes + (truncated ? kTruncatedPasses * 4 * V_ : one_tile)));
  }

 private:
  double row_parts() const { return std::ceil(R_ / static_cast<double>(rows_of_head_part(static_cast<int64_t>(R_)))); }
  double bytes_of_logits() const { return row_parts() * 2 * V_ * D_ + tiles_ * 2 * R_ * D_ + 4 * R_ * V_; }
  void head_gemm(const char* name, double calls, double bytes) {
    parts.push_back({"LM head GEMMs", name, calls, 2 * R_ * V_ * D_, bytes});
  }

  const ModelConfig c_;
  const BlockShape s_;
  const double R_, D_, F_, N_, query_, V_, L_, tiles_;
};

}  // namespace

std::vector<BudgetPart> training_budget(const ModelConfig& config, int64_t rows, int64_t sequence, HeadLogits head) {
  BudgetCounter b(config, aligned(rows));
  b.block_gemms("forward");
  b.block_gemms("input gradient");
  b.weight_gradients();
  b.head_forward();
  b.head_backward(head);
  b.embed();
  b.forward_norms();
  b.rope(false);
  b.swiglu();
  b.backward_rows();
  b.embedding_gradient();
  b.attention(sequence, true);
  return b.parts;
}

std::vector<BudgetPart> scoring_budget(const ModelConfig& config, int64_t rows, int64_t sequence) {
  BudgetCounter b(config, aligned(rows));
  b.block_gemms("forward");
  b.head_forward();
  b.embed();
  b.forward_norms();
  b.rope(false);
  b.swiglu();
  b.attention(sequence, false);
  return b.parts;
}

std::vector<BudgetPart> decoding_budget(const ModelConfig& config, int64_t lanes, int64_t keys, bool truncated) {
  BudgetCounter b(config, aligned(lanes));
  b.block_gemms("forward");
  b.cached_attention(static_cast<double>(keys));
  b.embed();
  b.forward_norms();
  b.rope(true);
  b.swiglu();
  b.drawn(truncated);
  return b.parts;
}

std::vector<BudgetPart> update_budget(const ModelConfig& config, int64_t bits) {
  UCAS_CHECK(bits == 32 || bits == 16 || bits == 8, "moments have 32, 16 or 8 bits");
  double of_block = 0, tensors = 0;
  visit_block(config, [&](const BlockParameter& p) {
    of_block += static_cast<double>(std::max<int64_t>(p.rows, 1) * p.columns + (p.bias ? p.rows : 0));
    tensors += p.bias ? 2 : 1;
  });
  const double layers = static_cast<double>(config.num_hidden_layers), matrices = config.tie_word_embeddings ? 1 : 2;
  const double parameters = layers * of_block + static_cast<double>(config.hidden_size) +
                            matrices * static_cast<double>(config.vocab_size * config.hidden_size);
  const double calls = layers * tensors + 1 + matrices;
  // Weight and gradient read and written, both moments likewise, the bf16 copy written; a scale for each block of
  // codes.
  const double scales = bits == 8 ? 2 * 2 * 4.0 / gpu::kCodeBlock : 0;
  const double element = 8 + 8 + 4 * static_cast<double>(bits) / 8 + 2 + scales;
  return {{"AdamW", "sum_of_squares", calls, 2 * parameters, 4 * parameters},
          {"AdamW", bits == 32 ? "adamw" : "adamw_packed", calls, 0, element * parameters}};
}

}  // namespace ucas
