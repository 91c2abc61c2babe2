#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "methods/registry.h"
#include "support/engine/small_models.h"
#include "train/signals/logprobs.h"

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
};

// Lp-Reg's, of the pass that reads the old policy.
std::vector<float> under_min_p(Started& s, double min_p, int64_t token_budget) {
  const auto method = make_method("lp_reg");
  ucas::apply(*method, {{"min_p", min_p, "min_p", false}});
  compute_signals(*s.model, s.batch, 0.8, token_budget, 0, method->needs().signals);
  return s.batch.signal("min_p_logprob");
}

TEST(min_p, keeps_the_tokens_of_a_share_of_the_largest_probability_and_renormalises) {
  Started s;
  const auto p = s.distributions();
  for (const double min_p : {0.02, 0.8, 1.0}) {
    const std::vector<float> got = under_min_p(s, min_p, 64);
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
    EXPECT_EQ(under_min_p(s, min_p, 1), got) << "the packing decides nothing";
    EXPECT_TRUE(min_p < 0.5 || cut > 3) << cut;
    EXPECT_TRUE(min_p == 1 || cut + 3 < p.size()) << cut;
  }
}

}  // namespace
}  // namespace ucas
