#include "train/auxiliary/implicit_prm.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "core/metrics.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/optimizer/schedule.h"
#include "train/optimizer/skipped_updates.h"
#include "train/signals/logprobs.h"

namespace ucas {

namespace {

constexpr double kTemperature = 1;  // q is a property of the two models, not of how the policy is sampled

class ImplicitPrm final : public AuxiliaryModel {
 public:
  ImplicitPrm(const std::string& directory, const PrmConfig& config, const UpdateConfig& update, at::Device device,
              const ModelOptions& options, const Placement& placement)
      : config_(config),
        update_(update),
        phi_(load_model(directory, device, options, own_masters(placement.rank, placement.ranks))),
        frozen_(load_model(directory, device, inference(options.dtype))),
        optimizer_(phi_->trainable(), config.optimizer, Optimizer::Path::by_device, placement) {}

  std::string name() const override { return "prm"; }
  std::vector<NamedTensor> weights() override { return phi_->trainable(); }
  Optimizer* optimizer() override { return &optimizer_; }
  std::vector<Bf16Copy> copies() override { return phi_->bf16_copies(); }
  std::map<std::string, double> state() const override { return skipped_.state(); }
  void restore(const std::map<std::string, double>& state) override {
    skipped_.restore(state);
    phi_->refresh();  // its weights were read back
  }

  void shard_over(Ranks& ranks, const Optimizer& /*policy*/) override {
    optimizer_.shard_over(ranks, shard_of_gradients(update_), phi_->bf16_copies());
  }

  void prepare(Batch& batch, const StepContext& step, StepMetrics& m) override {
    double began = now_seconds();
    ref_logprob_ = compute_logprobs(*frozen_, batch, kTemperature, update_.micro_batch_tokens, step.ranks);
    if (config_.order == PrmOrder::before) train(batch, step, m);
    std::vector<float>& q = batch.signal("prm_logratio");
    q = compute_logprobs(*phi_, batch, kTemperature, update_.micro_batch_tokens, step.ranks);
    for (size_t t = 0; t < q.size(); ++t) q[t] -= ref_logprob_[t];
    if (const auto ratios = batch.trained(q); !ratios.empty()) m.set_spread(metric::prm_logratio, ratios);
    seconds_ = now_seconds() - began;
    m.set(metric::timing_prm, seconds_);
  }

  void learn(const Batch& batch, const StepContext& step, StepMetrics& m) override {
    if (config_.order != PrmOrder::after) return;
    double began = now_seconds();
    train(batch, step, m);
    m.set(metric::timing_prm, seconds_ + now_seconds() - began);
  }

 private:
  // One update over the whole batch.
  void train(const Batch& batch, const StepContext& step, StepMetrics& m) {
    double lr = rollout_lr(config_.optimizer, step.step - 1, step.total_steps);
    PrmLoss loss = accumulate_prm_gradients(*phi_, batch, ref_logprob_, config_.beta, update_.micro_batch_tokens,
                                            among_ranks(step, update_, optimizer_));
    StepResult result = optimizer_.step(lr);
    optimizer_.drop_gradients();
    phi_->refresh();
    m.set(metric::prm_ce_loss, loss.loss);
    m.set(metric::prm_accuracy, loss.accuracy);
    m.set(metric::prm_grad_norm, result.grad_norm);
    m.set(metric::prm_lr, lr);
    skipped_.note(result.applied, str("step ", step.step), "the reward model's gradient",
                  str("lower method.prm.optimizer.lr = ", config_.optimizer.lr,
                      " or look at the data; the last checkpoint remains"));
    m.set(metric::prm_skipped_updates, static_cast<double>(skipped_.total));
  }

  PrmConfig config_;
  UpdateConfig update_;
  std::unique_ptr<Model> phi_, frozen_;
  Optimizer optimizer_;
  std::vector<float> ref_logprob_;  // [N] of the current step's batch
  SkippedUpdates skipped_;
  double seconds_ = 0;
};

}  // namespace

PrmLoss accumulate_prm_gradients(Model& phi, const Batch& batch, std::span<const float> ref_logprob, double beta,
                                 int64_t token_budget, const Among& among) {
  UCAS_CHECK(static_cast<int64_t>(ref_logprob.size()) == batch.token_count(),
             "expected a reference log-prob for every token");
  struct Sums {
    double loss = 0, accuracy = 0;
  } sums;
  PrmLoss total;
  total.d_token.assign(batch.responses.size(), 0.0);
  double n = 0;
  for (const Response& o : batch.responses) n += o.length > 0 && o.trained ? 1 : 0;
  const bool share = phi.shares_prefixes();
  std::vector<int64_t> all = indices(0, static_cast<int64_t>(batch.responses.size()));
  std::erase_if(all, [&](int64_t i) { return !batch.responses[i].trained; });  // masked responses train nothing
  const auto micros = micro_batches(phi, batch, all, token_budget, among);
  const auto learn = [&](int64_t micro) {
    PackedResponses packed = pack_responses(batch, micros[micro], share);
    HeadStats stats = response_stats(phi, packed, kTemperature);
    std::vector<float> logprob = to_host(stats.logprob), g(logprob.size());
    size_t k = 0;
    for (int64_t index : packed.response) {
      const Response& o = batch.responses[index];
      double sum = 0;
      // q in f32, as Batch::prm_logratio holds it.
      for (int64_t t = 0; t < o.length; ++t) sum += logprob[k + t] - ref_logprob[o.first + t];
      PrmRow row = implicit_prm_row(sum, is_right(o), beta);
      sums.loss += row.loss;
      sums.accuracy += row.agrees ? 1 : 0;
      total.d_token[index] = row.d_token / n;
      for (int64_t t = 0; t < o.length; ++t) g[k++] = static_cast<float>(row.d_token / n);
    }
    backward_from({{stats.logprob, g}});
  };
  const auto schedule = make_schedule(among, phi, phi.trainable(), doubles_of(sums));
  schedule->learn(std::ssize(micros), learn);
  schedule->finish();
  total.loss = sums.loss / std::max(1.0, n);
  total.accuracy = sums.accuracy / std::max(1.0, n);
  return total;
}

std::unique_ptr<AuxiliaryModel> make_implicit_prm(const TrainConfig& config, at::Device device,
                                                  const Placement& placement) {
  std::optional<PrmConfig> prm = config.needs().prm;
  if (!prm) return nullptr;
  if (!prm->model.empty() && prm->model != config.model) {
    check_same_tokens(config.model, "method.prm.model", prm->model, "reward model");
  }
  const std::string& directory = prm->model.empty() ? config.model : prm->model;
  return std::make_unique<ImplicitPrm>(directory, *prm, config.update, device, config.auxiliary_model_options(),
                                       placement);
}

}  // namespace ucas
