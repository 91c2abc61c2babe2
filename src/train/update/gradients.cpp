#include "train/update/gradients.h"

#include <ATen/ops/from_blob.h>

#include <cmath>
#include <optional>

#include "methods/apply.h"
#include "objective/loss/rollout_correction.h"
#include "train/update/gradient_pass.h"

namespace ucas {

namespace {

// Each rank has recorded the tokens of its micro-batches, and 0 for all others.
void all_reduce(Ranks& ranks, TokenUpdates& updates) {
  std::vector<float> clipped(updates.clipped.begin(), updates.clipped.end());
  const int64_t n = std::ssize(clipped);
  ranks.all_reduce("sharing what updates made of tokens", {{at::from_blob(updates.ratio.data(), {n}, at::kFloat),
                                                            at::from_blob(clipped.data(), {n}, at::kFloat)}});
  for (size_t t = 0; t < clipped.size(); ++t) updates.clipped[t] = static_cast<uint8_t>(clipped[t]);
}

// Of the mini-batch's tokens alone: the others keep what earlier mini-batches made of them.
void write_record(const ObjectiveInput& in, const TokenUpdates& updates) {
  for (int64_t index : in.responses) {
    const Response& o = in.batch.responses[index];
    for (int64_t t = o.first; t < o.first + o.length; ++t) {
      in.record->ratio[t] = updates.ratio[t];
      in.record->clipped[t] = updates.clipped[t];
    }
  }
}

}  // namespace

std::vector<uint8_t> select_in_step(const Method& method, const ObjectiveConfig& config, const Batch& batch,
                                    std::span<const float> advantage) {
  std::optional<Selection> selection = method.needs().selection;
  if (!selection || selection->scope != Scope::step) return {};
  const std::vector<Sequence> sequences = trained_sequences(batch);
  std::vector<uint8_t> mark(batch.token.size());
  select_tokens(method, config, before_updates(batch, advantage, sequences), mark);
  return mark;
}

bool has_zero_gradient(const ObjectiveInput& in, int64_t response) {
  if (selects_now(in.method) || in.method.needs().zero_advantages) return false;
  if (in.config.entropy_coeff != 0 || in.config.kl_coeff != 0) return false;
  const Response& o = in.batch.responses[response];
  const std::vector<float>& rollout = in.batch.sampler_logprob();
  for (int64_t t = o.first; t < o.first + o.length; ++t) {
    if (in.advantage[t] != 0 || std::isnan(in.batch.old_logprob[t])) return false;
    if (!rollout.empty() && std::isnan(rollout[t])) return false;
  }
  return true;
}

LossMetrics accumulate_gradients(Model& model, const ObjectiveInput& in) {
  GradientPass pass(model, in);
  const auto schedule = make_schedule(in.among, model, model.trainable(), doubles_of(pass.metrics));
  schedule->learn(pass.learning(), [&](int64_t micro) { pass.learn(micro); });
  schedule->read(pass.zero_gradient(), [&](int64_t micro) { pass.read(micro); });
  schedule->finish();
  if (in.record != nullptr) {
    if (in.among.several()) all_reduce(*in.among.ranks, pass.updates);
    write_record(in, pass.updates);
  }
  return pass.metrics;
}

}  // namespace ucas
