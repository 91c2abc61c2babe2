// The reference policy (docs/paper.md): the run's initial weights, for the KL loss, for KL in the reward, and for
// methods that read ref_logprob themselves. Frozen, unless reference.sync_steps moves it to the policy every so often.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "core/metrics.h"
#include "hf/peft.h"
#include "objective/loss/kl.h"
#include "sharding/sharded_gradients.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/signals/logprobs.h"

namespace ucas {

namespace {

class Reference final : public AuxiliaryModel {
 public:
  Reference(const TrainConfig& config, std::unique_ptr<Model> model)
      : model_(std::move(model)),
        reward_(config.reward),
        moves_(config.reference),
        temperature_(config.rollout.temperature),
        token_budget_(config.update.micro_batch_tokens) {}

  std::string name() const override { return "reference"; }

  void prepare(Batch& batch, const StepContext& step, StepMetrics& m) override {
    double began = now_seconds();
    batch.signal("ref_logprob") = compute_logprobs(*model_, batch, temperature_, token_budget_, step.ranks);
    if (reward_.kl_coeff > 0) {
      m.set(metric::actor_reward_kl_penalty, take_kl_off_reward(batch, reward_.kl_estimator, reward_.kl_coeff));
      m.set(metric::actor_reward_kl_penalty_coeff, reward_.kl_coeff);
    }
    m.set(metric::timing_ref, now_seconds() - began);
  }

  void follow(Model& policy, const StepContext& step, StepMetrics& m) override {
    if (!moves_.moves()) return;
    if (step.step % moves_.sync_steps == 0) {
      const std::vector<NamedTensor> from = policy.trainable(), to = model_->trainable();
      UCAS_CHECK(from.size() == to.size(), "the reference must have the policy's shape");
      const at::NoGradGuard no_grad;
      for (size_t i = 0; i < to.size(); ++i) {
        UCAS_CHECK(has_values(to[i].tensor) == has_values(from[i].tensor),
                   "moving a parameter needs the master weights of both models");
        if (has_values(to[i].tensor)) to[i].tensor.detach().copy_(from[i].tensor.detach());
      }
      if (masters_) masters_->broadcast_weights();
      model_->refresh();
      synced_at_ = step.step;
    }
    m.set(metric::reference_synced_at, static_cast<double>(synced_at_));
  }

  std::vector<NamedTensor> weights() override {
    return moves_.moves() ? model_->trainable() : std::vector<NamedTensor>{};
  }
  void shard_over(Ranks& ranks, const Optimizer& policy) override {
    if (!moves_.moves()) return;
    owners_ = policy.owners();
    masters_.emplace(ranks, model_->trainable(), owners_, model_->bf16_copies());
  }
  std::vector<int64_t> owners() override { return owners_; }
  std::vector<Bf16Copy> copies() override { return model_->bf16_copies(); }
  // Of what stays as it is there is nothing to keep.
  std::map<std::string, double> state() const override {
    std::map<std::string, double> state;
    if (moves_.moves()) state["synced_at"] = static_cast<double>(synced_at_);
    return state;
  }
  void restore(const std::map<std::string, double>& state) override {
    if (auto found = state.find("synced_at"); found != state.end()) synced_at_ = static_cast<int64_t>(found->second);
    model_->refresh();  // its weights may have been read back
  }

 private:
  std::unique_ptr<Model> model_;
  std::vector<int64_t> owners_;            // of one that moves, among ranks: the policy's
  std::optional<ShardedMasters> masters_;  // of these
  RewardConfig reward_;
  ReferenceConfig moves_;
  double temperature_;
  int64_t token_budget_;
  int64_t synced_at_ = 0;
};

// The frozen teacher of on-policy distillation: reads the tokens that the policy sampled and fills
// Batch::teacher_logprob. Any checkpoint with the policy's tokenizer, of any size.
class Teacher final : public AuxiliaryModel {
 public:
  Teacher(const TrainConfig& config, std::unique_ptr<Model> model)
      : model_(std::move(model)),
        temperature_(config.rollout.temperature),
        token_budget_(config.update.micro_batch_tokens) {}

  std::string name() const override { return "teacher"; }

  void prepare(Batch& batch, const StepContext& step, StepMetrics& m) override {
    const double began = now_seconds();
    batch.signal("teacher_logprob") = compute_logprobs(*model_, batch, temperature_, token_budget_, step.ranks);
    m.set(metric::timing_teacher, now_seconds() - began);
  }

 private:
  std::unique_ptr<Model> model_;
  double temperature_;
  int64_t token_budget_;
};

}  // namespace

// A reference that moves is a model of its own, with the policy's trained parameters. Else it is the policy without its
// adapter, if the run began with a fresh one and changes nothing else; otherwise it comes from config.model, also on
// resume, where the policy itself comes from a checkpoint of the run.
std::unique_ptr<AuxiliaryModel> make_reference(const TrainConfig& config, at::Device device, Model* policy,
                                               const KeptMasters& masters) {
  if (!config.needs().reference) return nullptr;
  if (config.reference.moves()) {
    return std::make_unique<Reference>(config, load_model(config.model, device, config.model_options(), masters));
  }
  const bool shared =
      policy != nullptr && config.lora.on() && config.lora.modules_to_save.empty() && !find_adapter(config.model);
  return std::make_unique<Reference>(
      config, shared ? policy->base() : load_model(config.model, device, inference(config.dtype)));
}

std::unique_ptr<AuxiliaryModel> make_teacher(const TrainConfig& config, at::Device device, const ModelConfig& policy) {
  const std::optional<std::string> directory = config.needs().teacher;
  if (!directory) return nullptr;
  check_same_tokens(config.model, "method.teacher", *directory, "teacher");
  std::unique_ptr<Model> model = load_model(*directory, device, inference(config.dtype));
  // Rows behind the tokenizer's ids are padding, but nothing keeps the policy from sampling one.
  if (model->config().vocab_size < policy.vocab_size) {
    throw Error(ErrorKind::config, str("method.teacher = ", printable(*directory), ": its vocabulary has ",
                                       model->config().vocab_size, " rows, the policy's ", policy.vocab_size,
                                       ": the teacher must know every id that the policy can sample; choose another"));
  }
  return std::make_unique<Teacher>(config, std::move(model));
}

}  // namespace ucas
