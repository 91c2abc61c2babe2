#include "train/objective.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <vector>

#include "train/logprobs.h"

namespace ucas {

namespace {

// Host arrays of some whole sequences, in packed order: what a LossInput points into.
struct LossArrays {
  std::vector<Sequence> sequences;
  std::vector<float> logprob, entropy, confidence, old_logprob, rollout_logprob, advantage, ref_logprob;

  void append(const ObjectiveInput& in, const PackedResponses& packed) {
    for (int64_t index : packed.response) {
      const Response& o = in.batch.responses[static_cast<size_t>(index)];
      sequences.push_back({static_cast<int64_t>(old_logprob.size()), o.length, index});
      auto take = [&](std::span<const float> from, std::vector<float>& to) {
        if (from.empty()) return;
        auto part = from.subspan(static_cast<size_t>(o.first), static_cast<size_t>(o.length));
        to.insert(to.end(), part.begin(), part.end());
      };
      take(in.batch.old_logprob, old_logprob);
      take(in.batch.rollout_logprob, rollout_logprob);
      take(in.advantage, advantage);
      take(in.batch.ref_logprob, ref_logprob);
    }
  }
  void append(const HeadStats& stats) {
    auto add = [](const at::Tensor& from, std::vector<float>& to) {
      std::vector<float> values = to_host(from);
      to.insert(to.end(), values.begin(), values.end());
    };
    add(stats.logprob, logprob);
    add(stats.entropy, entropy);
    add(stats.confidence, confidence);
  }
  LossInput view(const ObjectiveInput& in) const {
    return {sequences,       logprob,   entropy,     confidence, old_logprob,
            rollout_logprob, advantage, ref_logprob, in.seed,    &in.config};
  }
};

// Feeds d loss / d (lp, H, C) of these rows, [n] each, into the network.
void backward(const HeadStats& stats, std::span<const float> g, std::span<const float> e, std::span<const float> u) {
  auto tensor = [&](std::span<const float> values) {
    return at::from_blob(const_cast<float*>(values.data()), {static_cast<int64_t>(values.size())}, at::kFloat)
        .to(stats.logprob.device());
  };
  auto any = [](std::span<const float> values) {
    for (float v : values) {
      if (v != 0) return true;
    }
    return false;
  };
  // One scalar whose gradient with respect to the three arrays is exactly g, e, u.
  at::Tensor root = at::sum(at::mul(stats.logprob, tensor(g)));
  if (any(e)) root = at::add(root, at::sum(at::mul(stats.entropy, tensor(e))));
  if (any(u)) root = at::add(root, at::sum(at::mul(stats.confidence, tensor(u))));
  root.backward();
}

// Methods that look at the whole mini-batch first: a forward pass without gradients, the loss once, then micro-batches.
LossMetrics accumulate_at_mini_scope(Model& model, const ObjectiveInput& in,
                                     const std::vector<PackedResponses>& micros) {
  LossArrays arrays;
  {
    at::NoGradGuard no_grad;
    for (const PackedResponses& micro : micros) {
      arrays.append(in, micro);
      arrays.append(response_stats(model, micro, in.temperature));
    }
  }
  LossInput loss_input = arrays.view(in);
  Denominators total = denominators(in.method, in.config, loss_input, in.response_limit);
  LossBuffer buffer;
  LossOutput out = buffer.view(static_cast<int64_t>(arrays.logprob.size()));
  LossMetrics metrics;
  objective_gradients(in.method, in.config, loss_input, total, out, metrics);
  size_t first = 0;
  for (const PackedResponses& micro : micros) {
    HeadStats stats = response_stats(model, micro, in.temperature);
    size_t n = micro.row.size();
    backward(stats, out.d_logprob.subspan(first, n), out.d_entropy.subspan(first, n),
             out.d_confidence.subspan(first, n));
    first += n;
  }
  return metrics;
}

}  // namespace

LossMetrics accumulate_gradients(Model& model, const ObjectiveInput& in) {
  std::vector<PackedResponses> micros;
  for (const auto& responses : micro_batches(in.batch, in.responses, in.token_budget)) {
    micros.push_back(pack_responses(in.batch, responses));
  }
  if (in.method.loss_scope() == LossScope::mini) return accumulate_at_mini_scope(model, in, micros);

  LossArrays whole;  // counts alone matter here: the weights are known before the first backward pass
  for (const PackedResponses& micro : micros) whole.append(in, micro);
  Denominators total = denominators(in.method, in.config, whole.view(in), in.response_limit);
  LossMetrics metrics;
  LossBuffer buffer;
  for (const PackedResponses& micro : micros) {
    HeadStats stats = response_stats(model, micro, in.temperature);
    LossArrays arrays;
    arrays.append(in, micro);
    arrays.append(stats);
    LossOutput out = buffer.view(static_cast<int64_t>(arrays.logprob.size()));
    objective_gradients(in.method, in.config, arrays.view(in), total, out, metrics);
    backward(stats, out.d_logprob, out.d_entropy, out.d_confidence);
  }
  return metrics;
}

}  // namespace ucas
