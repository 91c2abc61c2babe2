#include "train/update/likely_tokens.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "methods/registry.h"
#include "support/engine/small_models.h"
#include "train/signals/logprobs.h"
#include "train/update/gradients.h"

namespace ucas {
namespace {

using testing::small_shape;

struct Started {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch;
  Started() {
    Rng rng(7, 0);
    batch = testing::ragged_batch(rng, 3, 4);
    compute_signals(*model, batch, 0.8, 64);
    batch.rollout_logprob = batch.old_logprob;
  }
  // What an optimizer would do, by a random step.
  void move() {
    Rng rng(9, 0);
    for (NamedTensor& p : model->parameters()) {
      at::Tensor data = p.tensor.detach();
      for (int64_t i = 0; i < data.numel(); ++i) data.data_ptr<float>()[i] += 0.1f * static_cast<float>(rng.normal());
    }
    model->refresh();
  }
  // Probabilities of the whole vocabulary at every place of the batch, [N][V], the plain way.
  std::vector<std::vector<double>> distributions() {
    at::NoGradGuard no_grad;
    std::vector<std::vector<double>> all(batch.token.size());
    for (const auto& micro : micro_batches(batch, 64, model->shares_prefixes())) {
      const PackedResponses packed = pack_responses(batch, micro, model->shares_prefixes());
      const at::Tensor logits = model->head().logits(response_rows(*model, packed)).contiguous();
      const int64_t V = logits.size(1);
      for (size_t k = 0; k < packed.token_index.size(); ++k) {
        std::vector<double>& p = all[static_cast<size_t>(packed.token_index[k])];
        for (int64_t v = 0; v < V; ++v)
          p.push_back(std::exp(logits.data_ptr<float>()[static_cast<int64_t>(k) * V + v] / 0.8));
        const double sum = std::accumulate(p.begin(), p.end(), 0.0);
        for (double& x : p) x /= sum;
      }
    }
    return all;
  }
  std::vector<float> since(const LikelyTokens& likely, Divergence kind, int64_t budget) {
    at::NoGradGuard no_grad;
    std::vector<float> all(batch.token.size());
    for (const auto& micro : micro_batches(batch, budget, model->shares_prefixes())) {
      const PackedResponses packed = pack_responses(batch, micro, model->shares_prefixes());
      const std::vector<float> some =
          divergence_since(likely, kind, model->head(), response_rows(*model, packed), packed.token_index, 0.8);
      for (size_t k = 0; k < some.size(); ++k) all[static_cast<size_t>(packed.token_index[k])] = some[k];
    }
    return all;
  }
};

TEST(likely_tokens, are_those_of_the_largest_probability_with_the_log_probs_that_training_sees) {
  Started s;
  const LikelyTokens likely = likely_tokens(*s.model, s.batch, 40, 0.8, 64);  // the whole vocabulary
  const auto distributions = s.distributions();
  for (size_t t = 0; t < distributions.size(); ++t) {
    const auto ids = std::span(likely.id).subspan(40 * t, 40);
    for (size_t k = 0; k < 40; ++k) {
      EXPECT_NEAR(likely.logprob[40 * t + k], std::log(distributions[t][static_cast<size_t>(ids[k])]), 1e-5);
      if (k > 0) {
        EXPECT_LE(likely.logprob[40 * t + k], likely.logprob[40 * t + k - 1]);
      }
      if (ids[k] == s.batch.token[t]) {  // the same bits
        EXPECT_EQ(likely.logprob[40 * t + k], s.batch.old_logprob[t]);
      }
    }
    std::vector<int32_t> sorted(ids.begin(), ids.end());
    std::ranges::sort(sorted);
    EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
  }
  const LikelyTokens few = likely_tokens(*s.model, s.batch, 3, 0.8, 64);
  for (size_t t = 0; t < distributions.size(); ++t)
    for (size_t k = 0; k < 3; ++k) EXPECT_EQ(few.id[3 * t + k], likely.id[40 * t + k]);
  EXPECT_EQ(likely_tokens(*s.model, s.batch, 1000, 0.8, 64).count, 40);
}

TEST(likely_tokens, and_what_has_moved_do_not_depend_on_the_packing) {
  Started s;
  const LikelyTokens one = likely_tokens(*s.model, s.batch, 5, 0.8, 1),
                     all = likely_tokens(*s.model, s.batch, 5, 0.8, 4096);
  EXPECT_EQ(one.id, all.id);
  EXPECT_EQ(one.logprob, all.logprob);
  for (Divergence kind : {Divergence::tv, Divergence::kl}) {
    for (float moved : s.since(all, kind, 30)) EXPECT_EQ(moved, 0);
  }
  s.move();
  for (Divergence kind : {Divergence::tv, Divergence::kl}) EXPECT_EQ(s.since(all, kind, 1), s.since(all, kind, 4096));
}

TEST(likely_tokens, of_the_whole_vocabulary_give_the_divergence_of_the_whole_laws_and_of_fewer_a_lower_bound) {
  Started s;
  const LikelyTokens whole = likely_tokens(*s.model, s.batch, 40, 0.8, 64),
                     few = likely_tokens(*s.model, s.batch, 4, 0.8, 64);
  const auto mu = s.distributions();
  s.move();
  const auto pi = s.distributions();
  const std::vector<float> tv = s.since(whole, Divergence::tv, 64), kl = s.since(whole, Divergence::kl, 64);
  const std::vector<float> few_tv = s.since(few, Divergence::tv, 64), few_kl = s.since(few, Divergence::kl, 64);
  for (size_t t = 0; t < mu.size(); ++t) {
    double want_tv = 0, want_kl = 0;
    for (size_t v = 0; v < 40; ++v) {
      want_tv += std::fabs(pi[t][v] - mu[t][v]) / 2;
      want_kl += mu[t][v] * std::log(mu[t][v] / pi[t][v]);
    }
    EXPECT_GT(want_tv, 1e-3);
    EXPECT_NEAR(tv[t], want_tv, 2e-6);
    EXPECT_NEAR(kl[t], want_kl, 2e-5);
    EXPECT_LE(few_tv[t], want_tv + 1e-6);
    EXPECT_LE(few_kl[t], want_kl + 1e-5);
  }
}

TEST(min_p, keeps_the_tokens_of_a_share_of_the_largest_probability_and_renormalises) {
  Started s;
  const auto p = s.distributions();
  for (const double min_p : {0.02, 0.8, 1.0}) {
    const std::vector<float> got = min_p_logprobs(*s.model, s.batch, min_p, 0.8, 64);
    size_t cut = 0;
    for (size_t t = 0; t < p.size(); ++t) {
      const double least = min_p * *std::ranges::max_element(p[t]), own = p[t][static_cast<size_t>(s.batch.token[t])];
      double mass = 0;
      for (double x : p[t]) mass += x >= least * (1 - 1e-6) ? x : 0;
      ASSERT_GE(std::fabs(own / least - 1), min_p < 1 ? 1e-6 : 0) << "at the threshold";
      const bool kept = own >= least * (1 - 1e-6);
      cut += !kept;
      if (kept) {
        EXPECT_NEAR(got[t], std::log(own / mass), 1e-5) << t;
      } else {
        EXPECT_EQ(got[t], -std::numeric_limits<float>::infinity()) << t;
      }
    }
    EXPECT_EQ(min_p_logprobs(*s.model, s.batch, min_p, 0.8, 1), got) << "the packing decides nothing";
    EXPECT_TRUE(min_p < 0.5 || cut > 3) << cut;
    EXPECT_TRUE(min_p == 1 || cut + 3 < p.size()) << cut;
  }
}

// What DPPO masks in an update, and that the gradient is that of the tokens left, however the update is cut.
TEST(likely_tokens, an_update_masks_by_them) {
  Started s;
  const LikelyTokens likely = likely_tokens(*s.model, s.batch, 4, 0.8, 64);
  s.move();
  const std::vector<float> D = s.since(likely, Divergence::tv, 64);
  const std::vector<float> now = compute_logprobs(*s.model, s.batch, 0.8, 64);
  const auto N = s.batch.token.size();
  std::vector<float> sorted = D, advantage(N);
  std::ranges::sort(sorted);
  for (const Response& o : s.batch.responses)
    std::ranges::fill(Batch::tokens(advantage, o), o.sample % 2 == 0 && o.reward == 0 ? -1.0f : 1.0f);
  auto method = make_method("dppo", "topk_tv");
  ObjectiveConfig config = method->objective_defaults();
  config.clip_low = config.clip_high = (sorted[N / 2] + sorted[N / 2 + 1]) / 2.0;
  std::vector<int64_t> responses(s.batch.responses.size());
  std::iota(responses.begin(), responses.end(), 0);
  std::vector<std::vector<float>> gradients;
  for (int64_t budget : {int64_t{1}, int64_t{4096}}) {
    for (int64_t head_rows : {int64_t{0}, int64_t{3}}) {
      TokenUpdates seen{std::vector<float>(N), std::vector<uint8_t>(N)};
      const ObjectiveInput in{.batch = s.batch,
                              .advantage = advantage,
                              .responses = responses,
                              .method = *method,
                              .config = config,
                              .temperature = 0.8,
                              .token_budget = budget,
                              .record = &seen,
                              .head_rows = head_rows,
                              .likely = &likely};
      accumulate_gradients(*s.model, in);
      size_t masked = 0;
      for (size_t t = 0; t < N; ++t) {
        const bool out = D[t] > config.clip_high && (now[t] > s.batch.old_logprob[t]) == (advantage[t] > 0);
        EXPECT_EQ(seen.clipped[t], out ? 1 : 0) << t;
        masked += out;
      }
      EXPECT_GT(masked, 3u);
      EXPECT_LT(masked, N - 3);
      gradients.emplace_back();
      for (NamedTensor& p : s.model->parameters()) {
        const at::Tensor g = p.tensor.grad().defined() ? p.tensor.grad() : at::zeros(p.tensor.sizes());
        for (float v : to_host(g.reshape({-1}))) gradients.back().push_back(v);
        p.tensor.mutable_grad() = at::Tensor();
      }
    }
  }
  double size = 0;
  for (float g : gradients[0]) size += static_cast<double>(g) * g;
  for (const auto& other : gradients) {
    double difference = 0;
    for (size_t i = 0; i < other.size(); ++i)
      difference += std::pow(static_cast<double>(other[i]) - gradients[0][i], 2);
    EXPECT_LE(std::sqrt(difference / size), 1e-5);
  }
}

}  // namespace
}  // namespace ucas
