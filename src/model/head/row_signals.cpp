#include "model/head/row_signals.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/backend/block.h"
#include "model/head/head.h"

namespace ucas {

namespace {

double least_of(double largest, double share) { return largest + std::log(share); }

// Merges a tile into the likeliest, at most `most`, from the largest on; of equal ones the lower id first, so that the
// choice depends on nothing but the row. A NaN is never kept before a number.
void keep_count(std::vector<LikelyToken>& kept, size_t most, const float* logits, int64_t n, int64_t first,
                float inverse) {
  for (int64_t v = 0; v < n; ++v) {
    const float z = logits[v] * inverse;
    if (kept.size() == most && !(z > kept.back().z)) continue;
    if (kept.size() < most) kept.emplace_back();
    size_t at = kept.size() - 1;
    for (; at > 0 && z > kept[at - 1].z; --at) kept[at] = kept[at - 1];
    kept[at] = {z, static_cast<int32_t>(first + v)};
  }
}

// Merges a tile into those of a share of the largest probability so far.
void keep_share(std::vector<LikelyToken>& kept, double share, float& largest, const float* logits, int64_t n,
                int64_t first, float inverse) {
  largest = std::max(largest, *std::max_element(logits, logits + n) * inverse);
  const double least = least_of(largest, share);
  std::erase_if(kept, [&](const LikelyToken& token) { return token.z < least; });
  for (int64_t v = 0; v < n; ++v)
    if (logits[v] * inverse >= least) kept.push_back({logits[v] * inverse, static_cast<int32_t>(first + v)});
}

}  // namespace

RowSignals::RowSignals(std::span<const TokenSignal> signals, int64_t rows, int64_t vocab, float inverse_temperature,
                       bool gradient)
    : vocab_(vocab), inverse_temperature_(inverse_temperature) {
  const auto n = static_cast<size_t>(rows);
  for (const TokenSignal& signal : signals) {
    parts_.push_back(
        {signal, std::vector<float>(n, -std::numeric_limits<float>::infinity()), decltype(Part::tokens)(n)});
    if (!gradient || !signal.derivatives) continue;
    parts_.back().by.resize(n);
    parts_.back().sum.resize(n);
  }
}

bool RowSignals::read_tokens() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.signal.reads.any(); });
}

void RowSignals::read(int64_t row, const float* logits, int64_t n, int64_t column) {
  for (Part& part : parts_) {
    const auto [count, share] = part.signal.reads;
    const auto most = static_cast<size_t>(std::min(count, vocab_));
    if (count > 0) keep_count(part.tokens[row], most, logits, n, column, inverse_temperature_);
    if (share > 0) keep_share(part.tokens[row], share, part.largest[row], logits, n, column, inverse_temperature_);
  }
}

void RowSignals::read(int64_t first, const at::Tensor& z) {
  for (Part& part : parts_) {
    const auto [count, share] = part.signal.reads;
    if (!part.signal.reads.any()) continue;
    int64_t most = std::min(count, vocab_);  // or as many as the row that has most of them
    if (share > 0) most = z.ge(z.amax(1, true) + (std::log(share) - 1e-3)).sum(1).max().item<int64_t>();
    const auto [values, ids] = at::topk(z, most, 1);
    const at::Tensor of = values.cpu().contiguous(), at = ids.cpu().contiguous();
    for (int64_t i = 0; i < z.size(0); ++i) {
      const float* row = of.const_data_ptr<float>() + i * most;
      std::vector<LikelyToken>& tokens = part.tokens[first + i];
      for (int64_t k = 0; k < most && (share == 0 || row[k] >= least_of(row[0], share)); ++k)
        tokens.push_back({row[k], static_cast<int32_t>(at.const_data_ptr<int64_t>()[i * most + k])});
      if (share > 0) std::ranges::sort(tokens, {}, &LikelyToken::id);
    }
  }
}

void RowSignals::finish(HeadStats& stats, const at::Tensor& lse) {
  if (parts_.empty()) return;
  std::vector<at::Tensor> host;
  for (const at::Tensor& of : {stats.logit, stats.logprob, stats.entropy, stats.confidence, stats.margin, lse})
    host.push_back(of.detach().to(at::kCPU, at::kDouble).contiguous());
  const auto of = [&](size_t k, int64_t row) { return host[k].const_data_ptr<double>()[row]; };
  const auto number = [&](size_t k, int64_t row) { return static_cast<float>(of(k, row)); };
  for (Part& part : parts_) {
    const at::Tensor values = at::empty({std::ssize(part.tokens)}, at::kFloat);
    each_row(values.size(0), 1000, [&](int64_t row) {
      const LogitRow read{number(0, row) * inverse_temperature_,
                          number(1, row),
                          number(2, row),
                          number(3, row),
                          number(4, row),
                          of(5, row),
                          part.tokens[row]};
      values.data_ptr<float>()[row] = static_cast<float>(part.signal.compute(read));
      if (part.by.empty()) return;
      part.by[row].resize(read.likely.size());
      part.signal.derivatives(read, part.by[row]);
      part.sum[row] = static_cast<float>(std::accumulate(part.by[row].begin(), part.by[row].end(), 0.0));
    });
    stats.signals.push_back(values.to(stats.logprob.device()));
  }
}

std::vector<const RowSignals::Part*> RowSignals::differentiable() const {
  std::vector<const Part*> some;
  for (const Part& part : parts_)
    if (!part.by.empty()) some.push_back(&part);
  return some;
}

}  // namespace ucas
