// The frozen teacher of on-policy distillation: reads the tokens that the policy drew and fills Batch::teacher_logprob.
// Any checkpoint with the policy's tokenizer, of any size.
#include <ATen/core/Tensor.h>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "core/metrics.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/signals/logprobs.h"

namespace ucas {

namespace {

class Teacher final : public AuxiliaryModel {
 public:
  Teacher(const TrainConfig& config, std::unique_ptr<Model> model)
      : model_(std::move(model)),
        temperature_(config.rollout.temperature),
        token_budget_(config.update.micro_batch_tokens) {}

  std::string name() const override { return "teacher"; }

  void prepare(Batch& batch, const StepContext& step, StepMetrics& m) override {
    const double began = now_seconds();
    batch.teacher_logprob = compute_logprobs(*model_, batch, temperature_, token_budget_, step.ranks);
    m.set(metric::timing_teacher, now_seconds() - began);
  }

 private:
  std::unique_ptr<Model> model_;
  double temperature_;
  int64_t token_budget_;
};

}  // namespace

std::unique_ptr<AuxiliaryModel> make_teacher(const TrainConfig& config, at::Device device, const ModelConfig& policy) {
  const std::optional<std::string> directory = config.needs().teacher;
  if (!directory) return nullptr;
  check_same_tokens(config.model, "method.teacher", *directory, "teacher");
  std::unique_ptr<Model> model = load_model(*directory, device, inference(config.dtype));
  // Rows behind the tokenizer's ids are padding, but nothing keeps the policy from drawing one.
  if (model->config().vocab_size < policy.vocab_size) {
    throw Error(ErrorKind::config, str("method.teacher = ", printable(*directory), ": its vocabulary has ",
                                       model->config().vocab_size, " rows, the policy's ", policy.vocab_size,
                                       ": the teacher must know every id that the policy can draw; choose another"));
  }
  return std::make_unique<Teacher>(config, std::move(model));
}

}  // namespace ucas
