// GDPO: for a reward of several parts (right, of the right form, short, ...). GRPO sums the parts and then z-scores the
// sum, which makes equal what was different: (1, 0) and (0, 1) earn the same, and so does a spread of 1 and one of 2.
// Here every part is z-scored by itself, and the sum is brought back to one size over the whole step:
//   A_in  = (r_in - mean(r_n)) / (std(r_n) + eps)      of each part n, within the group
//   S_i   = sum_n w_n A_in
//   A_i   = (S_i - mean(S)) / (std(S) + eps)           over the step's batch
// w_n is the part's weight in the reward (reward.weights); in the sum itself it would be gone with the deviation. A
// reward of one part is its own only part, with shaping and a KL penalty: GRPO, brought to one size over the batch.
// With several, what is no part is not seen.
//
//   preset  second line over                                         eps
//   paper   responses (the authors' TRL form, and TRL's own)         1e-4, twice
//   verl    tokens, whitened with 1e-8 inside the root               1e-6, first line
// Over responses the mean of S is 0 by construction, in exact arithmetic; it is not taken off, so that a prompt whose
// responses all earn the same is at exactly 0. Alone in its group: 0 (TRL's deviation of one value is not a
// number).
//
// Read for this: the authors' code (NVlabs/GDPO, both forms), TRL's grpo_trainer.py and paper index.
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/returns.h"

namespace ucas {

namespace {

enum class BatchScale { responses, tokens, off };

class Gdpo final : public Method {
 public:
  explicit Gdpo(std::string_view preset) {
    objective_ = {.dual_clip = 0};
    if (preset != "verl") return;
    eps_ = 1e-6;
    scale_ = BatchScale::tokens;
  }
  void fields(Fields& f) override {
    f.field("eps", eps_, Range{0, 1}, "epsilon added to standard deviations before division");
    f.choice("batch_norm", scale_, {"responses", "tokens", "off"},
             "batch normalization of the summed advantages: over responses, over tokens, or off");
  }
  Needs needs() const override { return {.reward_parts = true}; }
  std::vector<Equation> equations() const override {
    std::vector<Equation> list = {
        {"each part", str("A_in = (r_in - mean(r_n)) / (std(r_n) + ", eps_, "), std over G - 1"),
         "every part of the reward by itself, against the same part of the group's responses: none drowns another; a "
         "reward without parts is its own only part"},
        {"sum", "S_i = sum_n w_n A_in",
         "the parts have one size here, and then their weights in the reward (reward.weights)"}};
    if (scale_ == BatchScale::off) return list;
    const bool tokens = scale_ == BatchScale::tokens;
    list.push_back(
        {"batch norm",
         tokens ? std::string("A_t = (S_t - mean(S)) / sqrt(var(S) + 1e-8)") : str("A_i = S_i / (std(S) + ", eps_, ")"),
         tokens ? "over the trained tokens of the step, so that its size does not grow with the number of parts"
                : "over all responses of the step, whose mean is 0 already: its size does not grow with the "
                  "number of parts"});
    return list;
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    const std::vector<double> S = sums(batch);
    double divisor = 1;
    if (scale_ == BatchScale::responses) {
      std::vector<double> trained;
      for (size_t i = 0; i < S.size(); ++i) {
        if (batch.responses[i].trained) trained.push_back(S[i]);
      }
      const Moments m = moments(std::move(trained));
      divisor = m.spread ? std::sqrt(m.squares / (m.n - 1)) + eps_ : 1;
    }
    auto A = [&](std::span<const Response> o) {
      std::vector<double> of;
      for (const Response& o_i : o) of.push_back(S[static_cast<size_t>(&o_i - batch.responses.data())] / divisor);
      return of;
    };
    broadcast(batch, A, advantage, recording);
    if (scale_ != BatchScale::tokens) return;
    std::vector<double> tokens(advantage.size());
    for (const Response& o : batch.responses) {
      for (int64_t t = o.first; t < o.first + o.length; ++t) {
        tokens[static_cast<size_t>(t)] = S[static_cast<size_t>(&o - batch.responses.data())];
      }
    }
    whiten(batch, tokens);
    std::copy(tokens.begin(), tokens.end(), advantage.begin());
  }

 private:
  // S_i, [B].
  std::vector<double> sums(const Batch& batch) const {
    const std::vector<RewardTerm>& terms = batch.reward_terms;
    std::vector<double> S(batch.responses.size(), 0.0);
    for (const Group& group : batch.groups) {
      const auto o = batch.of(group);
      if (terms.size() < 2) {  // the reward itself
        const auto A = group_advantage(o, {.eps = eps_, .group_of_one = GroupOfOne::zero});
        std::ranges::copy(A, S.begin() + group.first);
        continue;
      }
      for (size_t n = 0; n < terms.size(); ++n) {
        std::vector<double> r;
        for (const Response& o_i : o) {
          UCAS_CHECK(o_i.terms.size() == terms.size(), "expected one number per part of the reward");
          r.push_back(o_i.terms[n]);
        }
        const std::vector<double> z = zscore(r, {}, eps_, 1);
        for (size_t i = 0; i < o.size(); ++i) S[static_cast<size_t>(group.first) + i] += terms[n].weight * z[i];
      }
    }
    return S;
  }

  double eps_ = 1e-4;
  BatchScale scale_ = BatchScale::responses;
};

}  // namespace

MethodRow gdpo_row() {
  return {.title = "GDPO",
          .paper =
              "Liu et al. 2026, GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL "
              "Optimization (arXiv:2601.05242)",
          .presets = {"paper", "verl"},
          .create = create<Gdpo>};
}

}  // namespace ucas
