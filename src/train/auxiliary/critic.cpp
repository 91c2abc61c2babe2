#include "train/auxiliary/critic.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>

#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "core/metrics.h"
#include "hf/model_config.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/optimizer/schedule.h"
#include "train/optimizer/skipped_updates.h"

namespace ucas {

namespace {

constexpr uint64_t kHeadStream = 0x56;    // of the head's initial values
constexpr int64_t kShareOrder = 1 << 30;  // epochs of data order never reach it
constexpr const char* kHead = "value_head.weight";
constexpr const char* kLmHead = "lm_head.weight";

class Critic final : public AuxiliaryModel {
 public:
  Critic(const TrainConfig& config, CriticConfig critic, ValueNetwork network, const Placement& placement)
      : method_(config.method),
        critic_(std::move(critic)),
        update_(config.update),
        network_(std::move(network)),
        optimizer_(network_.parameters(), critic_.optimizer, Optimizer::Path::by_device, placement) {}

  std::string name() const override { return "critic"; }
  std::vector<NamedTensor> weights() override { return network_.parameters(); }
  Optimizer* optimizer() override { return &optimizer_; }
  std::vector<Bf16Copy> copies() override { return network_.body->bf16_copies(); }

  std::map<std::string, double> state() const override { return skipped_.state(); }
  void restore(const std::map<std::string, double>& state) override {
    skipped_.restore(state);
    network_.body->refresh();  // its weights were read back
  }

  void shard_over(Ranks& ranks, const Optimizer& /*policy*/) override {
    optimizer_.shard_over(ranks, shard_of_gradients(update_), network_.body->bf16_copies());
  }

  void prepare(Batch& batch, const StepContext& step, StepMetrics& m) override {
    double began = now_seconds();
    std::vector<float>& V = batch.signal("value");
    V = batch_values(network_, batch, update_.micro_batch_tokens, step.ranks);
    if (const auto values = batch.trained(V); !values.empty()) m.set_spread(metric::critic_values, values);
    m.set(metric::timing_values, now_seconds() - began);
  }

  void learn(const Batch& batch, const StepContext& step, StepMetrics& m) override {
    double began = now_seconds();
    std::vector<float> returns(batch.token.size());
    method_->returns(batch, returns);
    double lr = rollout_lr(critic_.optimizer, step.step - 1, step.total_steps);
    ValueLossMetrics mean;
    double norm = 0;
    std::vector<std::vector<int64_t>> shares = critic_shares(batch, critic_.updates, step.seed);
    auto updates = static_cast<double>(std::max<size_t>(1, shares.size()));
    for (const std::vector<int64_t>& share : shares) {
      ValueLossMetrics seen =
          accumulate_value_gradients(network_, batch, returns, share, critic_.value_clip, update_.micro_batch_tokens,
                                     among_ranks(step, update_, optimizer_));
      StepResult result = optimizer_.step(lr);
      network_.body->refresh();
      norm += result.grad_norm / updates;
      mean.vf_loss += seen.vf_loss / updates;
      mean.vf_clipfrac += seen.vf_clipfrac / updates;
      mean.vpred_mean += seen.vpred_mean / updates;
      skipped_.note(result.applied, str("step ", step.step), "the critic's gradient",
                    "lower method.critic.optimizer.lr or look at the data; the last checkpoint remains");
    }
    optimizer_.drop_gradients();
    const std::vector<float> learnt = batch.trained(returns);
    if (!learnt.empty()) m.set_spread(metric::critic_returns, learnt);
    m.set(metric::critic_vf_loss, mean.vf_loss);
    m.set(metric::critic_vf_clipfrac, mean.vf_clipfrac);
    m.set(metric::critic_vpred_mean, mean.vpred_mean);
    m.set(metric::critic_vf_explained_var, explained_variance(batch.trained(batch.signal("value")), learnt));
    m.set(metric::critic_grad_norm, norm);
    m.set(metric::critic_lr, lr);
    m.set(metric::critic_skipped_updates, static_cast<double>(skipped_.total));
    m.set(metric::timing_update_critic, now_seconds() - began);
  }

 private:
  std::shared_ptr<Method> method_;
  CriticConfig critic_;
  UpdateConfig update_;
  ValueNetwork network_;
  Optimizer optimizer_;
  SkippedUpdates skipped_;
};

// A critic of another family member must still read the policy's tokens at the policy's positions.
void check_fits(const TrainConfig& config, const std::string& directory, const ModelConfig& body) {
  int64_t vocabulary = read_model_config(config.model).vocab_size;
  if (body.vocab_size < vocabulary) {
    throw Error(ErrorKind::config,
                str("method.critic.model ", printable(directory, 400), ": has ", body.vocab_size,
                    " token embeddings, the policy ", vocabulary,
                    ": a critic must know every token of the policy; choose one of the same tokenizer"));
  }
  int64_t longest = config.data.max_prompt_length + config.rollout.response_length;
  if (longest > body.max_position_embeddings) {
    throw Error(ErrorKind::config, str("data.max_prompt_length + rollout.response_length = ", longest,
                                       " is more than max_position_embeddings = ", body.max_position_embeddings, " of ",
                                       printable(directory, 400), " (method.critic.model): lower one of them"));
  }
}

// Who owns what is decided among ValueNetwork::parameters(). The LM head, which is not trained, stays as it is.
KeptMasters masters_of_critic(const std::string& directory, const Placement& placement) {
  if (placement.ranks == 1) return nullptr;
  const int64_t width = read_model_config(directory).hidden_size;
  return [width, placement](const std::vector<NamedTensor>& trained) {
    std::vector<NamedTensor> list;
    for (const NamedTensor& p : trained)
      if (p.name != kLmHead) list.push_back(p);
    list.push_back({kHead, at::empty({width}, at::TensorOptions().device(at::kMeta))});
    const std::vector<int64_t> owners = owners_of(list, placement.ranks);
    std::vector<bool> mine;
    size_t next = 0;
    for (const NamedTensor& p : trained) mine.push_back(p.name == kLmHead || owners[next++] == placement.rank);
    return mine;
  };
}

}  // namespace

std::vector<NamedTensor> ValueNetwork::parameters() {
  std::vector<NamedTensor> list;
  for (NamedTensor& p : body->trainable()) {
    if (p.name != kLmHead) list.push_back(p);
  }
  list.push_back({kHead, head});
  return list;
}

at::Tensor ValueNetwork::values(const PackedResponses& packed) {
  at::Tensor rows = response_rows(*body, packed);
  // Multiplies and sums by row instead of a GEMM: the order of the sum does not depend on the other rows.
  return at::sum(at::mul(rows.to(at::kFloat), head), 1);
}

ValueNetwork make_value_network(const std::string& directory, uint64_t seed, at::Device device,
                                const ModelOptions& options, const Placement& placement) {
  ValueNetwork network{load_model(directory, device, options, masters_of_critic(directory, placement)), {}};
  int64_t width = network.body->config().hidden_size;
  at::Tensor head = at::empty({width}, at::kFloat);
  Rng rng(seed, kHeadStream);
  double sigma = 1.0 / static_cast<double>(width + 1);
  for (int64_t i = 0; i < width; ++i) head.mutable_data_ptr<float>()[i] = static_cast<float>(sigma * rng.normal());
  network.head = head.to(device).set_requires_grad(true);
  return network;
}

std::vector<float> batch_values(ValueNetwork& network, const Batch& batch, int64_t token_budget, Ranks* ranks) {
  at::NoGradGuard no_grad;
  std::vector<float> value(batch.token.size(), kFilledByOtherRank);
  const bool share = network.body->shares_prefixes();
  const auto micros = micro_batches(batch, token_budget, share);
  for (const auto& micro : own_micro_batches(micros, ranks)) {
    PackedResponses packed = pack_responses(batch, micro, share);
    std::vector<float> V = to_host(network.values(packed));
    for (size_t k = 0; k < V.size(); ++k) value[packed.token_index[k]] = V[k];
  }
  all_gather(ranks, {&value});
  return value;
}

ValueLossMetrics accumulate_value_gradients(ValueNetwork& network, const Batch& batch, std::span<const float> returns,
                                            std::span<const int64_t> responses, double value_clip, int64_t token_budget,
                                            const Among& among) {
  double tokens = 0;
  for (int64_t index : responses) tokens += static_cast<double>(batch.responses[index].length);
  ValueLossMetrics metrics;
  const bool share = network.body->shares_prefixes();
  const auto micros = micro_batches(*network.body, batch, responses, token_budget, among, /*head=*/false);
  const auto learn = [&](int64_t micro) {
    PackedResponses packed = pack_responses(batch, micros[micro], share);
    auto take = [&](std::span<const float> from) {
      std::vector<float> part;
      for (int64_t index : packed.token_index) part.push_back(from[index]);
      return part;
    };
    at::Tensor V = network.values(packed);
    std::vector<float> d_value(packed.row.size());
    value_loss(to_host(V), take(batch.signal("value")), take(returns), value_clip, tokens, d_value, metrics);
    backward_from({{V, d_value}});
  };
  const auto schedule = make_schedule(among, *network.body, network.parameters(), doubles_of(metrics));
  schedule->learn(std::ssize(micros), learn);
  schedule->finish();
  return metrics;
}

std::vector<std::vector<int64_t>> critic_shares(const Batch& batch, int64_t updates, uint64_t seed) {
  std::vector<int64_t> kept;
  for (size_t i = 0; i < batch.responses.size(); ++i) {
    if (batch.responses[i].length > 0 && batch.responses[i].trained) kept.push_back(static_cast<int64_t>(i));
  }
  auto count = static_cast<int64_t>(kept.size());
  std::vector<int64_t> order = epoch_order(seed, kShareOrder, count);
  std::vector<std::vector<int64_t>> shares;
  for (int64_t u = 0; u < updates; ++u) {
    std::vector<int64_t> share;
    for (int64_t i = count * u / updates; i < count * (u + 1) / updates; ++i) {
      share.push_back(kept[order[i]]);
    }
    std::ranges::sort(share);  // those of a group are consecutive again, and share their prompt
    if (!share.empty()) shares.push_back(std::move(share));
  }
  return shares;
}

std::unique_ptr<AuxiliaryModel> make_critic(const TrainConfig& config, at::Device device, const Placement& placement) {
  std::optional<CriticConfig> critic = config.needs().critic;
  if (!critic) return nullptr;
  const std::string& directory = critic->model.empty() ? config.model : critic->model;
  if (!critic->model.empty()) check_fits(config, directory, read_model_config(directory));
  ValueNetwork network = make_value_network(directory, static_cast<uint64_t>(config.seed), device,
                                            config.auxiliary_model_options(), placement);
  return std::make_unique<Critic>(config, *critic, std::move(network), placement);
}

}  // namespace ucas
