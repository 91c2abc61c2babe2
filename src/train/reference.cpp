// The frozen reference policy (docs/paper.md): the run's initial weights, for the KL loss, for KL in the
// reward, and for methods that read ref_logprob themselves.
#include <ATen/core/Tensor.h>

#include "base/log.h"
#include "hf/peft.h"
#include "objective/kl.h"
#include "train/companion.h"
#include "train/logprobs.h"

namespace ucas {

namespace {

class Reference final : public Companion {
 public:
  Reference(const TrainConfig& config, std::unique_ptr<Model> model)
      : model_(std::move(model)),
        reward_(config.reward),
        temperature_(config.rollout.temperature),
        token_budget_(config.update.micro_batch_tokens),
        kl_coeff_(config.reward.kl_coeff) {}

  std::string name() const override { return "reference"; }

  void prepare(Batch& batch, const StepContext& step, StepMetrics& m) override {
    double began = now_seconds();
    batch.ref_logprob = compute_logprobs(*model_, batch, temperature_, token_budget_, step.ranks);
    if (reward_.kl_coeff > 0) charge_kl(batch, m);
    m.set("timing_s/ref", now_seconds() - began);
  }

  // The adaptive coefficient; under fixed control there is nothing to keep.
  std::map<std::string, double> state() const override {
    if (reward_.kl_control == KlControl::fixed) return {};
    return {{"kl_coeff", kl_coeff_}};
  }
  void restore(const std::map<std::string, double>& state) override {
    auto found = state.find("kl_coeff");
    if (found != state.end()) kl_coeff_ = found->second;
  }

 private:
  // The step pays with the coefficient as it is; what it shows steers the next one's.
  void charge_kl(Batch& batch, StepMetrics& m) {
    double kl = take_kl_off_reward(batch, reward_.kl_estimator, kl_coeff_);
    m.set("actor/reward_kl_penalty", kl);
    m.set("actor/reward_kl_penalty_coeff", kl_coeff_);
    if (reward_.kl_control == KlControl::fixed) return;
    auto rows = static_cast<int64_t>(batch.responses.size());
    kl_coeff_ = adapted_kl_coeff(kl_coeff_, kl, reward_.kl_target, reward_.kl_horizon, rows);
  }

  std::unique_ptr<Model> model_;
  RewardConfig reward_;
  double temperature_;
  int64_t token_budget_;
  double kl_coeff_;
};

}  // namespace

// The policy without its adapter, where the run began with a fresh one and changes nothing else; otherwise from
// config.model, also on resume, where the policy itself comes from a checkpoint of the run.
std::unique_ptr<Companion> make_reference(const TrainConfig& config, at::Device device, Model* policy) {
  if (!config.needs().reference) return nullptr;
  const bool shared =
      policy != nullptr && config.lora.on() && config.lora.modules_to_save.empty() && !find_adapter(config.model);
  return std::make_unique<Reference>(
      config, shared ? policy->base() : load_model(config.model, device, inference(config.dtype)));
}

}  // namespace ucas
