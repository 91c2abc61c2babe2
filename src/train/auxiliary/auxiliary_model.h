// An auxiliary model next to the policy, as the method needs it: the frozen reference, a critic, an implicit process
// reward model, a teacher. Each fills its signal of the batch before advantages are computed. One that is trained
// updates itself, and is saved and restored with the run, bit for bit. The trainer knows no single kind of them. Owned
// by Training.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "core/batch.h"
#include "model/model.h"
#include "sharding/gradient_schedule.h"
#include "train/metrics/metrics.h"
#include "train/optimizer/optimizer.h"

namespace ucas {

struct StepContext {
  int64_t step = 0;  // 1 = the first
  int64_t total_steps = 0;
  uint64_t seed = 0;
  Ranks* ranks = nullptr;  // that share the forward passes of frozen models
};

class AuxiliaryModel {
 public:
  virtual ~AuxiliaryModel() = default;
  virtual std::string name() const = 0;  // "critic": part of file names and messages
  // Fills its signal of the batch; old_logprob is there already. Records its metrics and its seconds.
  virtual void prepare(Batch& batch, const StepContext& step, StepMetrics& m) = 0;
  // Its own update, after the advantages and before the policy's.
  virtual void learn(const Batch& /*batch*/, const StepContext& /*step*/, StepMetrics& /*m*/) {}

  // After the policy's updates of the step.
  virtual void follow(Model& /*policy*/, const StepContext& /*step*/, StepMetrics& /*m*/) {}

  // What a checkpoint keeps of it; nothing for a frozen one. Tensors share storage with the auxiliary model.
  virtual std::vector<NamedTensor> weights() { return {}; }
  virtual Optimizer* optimizer() { return nullptr; }
  // Among ranks, before anything is restored: each may keep its share of what the policy's optimizer says whose it is.
  virtual void shard_over(Ranks& /*ranks*/, const Optimizer& /*policy*/) {}
  // Of weights(), for checkpoints: the rank that writes each, and the bf16 copies of those that other ranks may keep.
  virtual std::vector<int64_t> owners() {
    const Optimizer* own = optimizer();
    return own == nullptr ? std::vector<int64_t>() : own->owners();
  }
  virtual std::vector<Bf16Copy> copies() { return {}; }
  virtual std::map<std::string, double> state() const { return {}; }
  virtual void restore(const std::map<std::string, double>& /*state*/) {}
};

// How ranks share the updates of an auxiliary model: by sums the gradients of all its parameters are on each of them,
// by micro-batches as the policy's are.
inline Shard shard_of_gradients(const UpdateConfig& update) {
  return update.reduce == Reduce::micro ? Shard::gradients : Shard::moments;
}
inline Among among_ranks(const StepContext& step, const UpdateConfig& update, const Optimizer& optimizer) {
  const Shard shard = update.reduce == Reduce::micro ? update.shard : Shard::moments;
  return {.ranks = step.ranks, .reduce = update.reduce, .shard = shard, .owners = optimizer.owners()};
}

// Those that `config` asks for, in the order in which they work. `directory` of each that names no model of its own is
// config.model, whatever checkpoint the policy itself came from. What does not change of the policy may be shared.
// Among ranks the masters and moments of others are never made.
std::vector<std::unique_ptr<AuxiliaryModel>> make_auxiliary_models(const TrainConfig& config, at::Device device,
                                                                   Model& policy, const Ranks& ranks);

// An auxiliary model reads the policy's tokens: the same ids must mean the same. Throws Error(ErrorKind::config) with
// the first that does not, naming the `option` that said `other`, and whose model it is.
void check_same_tokens(const std::string& policy, const std::string& option, const std::string& other,
                       const std::string& whose);

// The rows of make_auxiliary_models(); each returns nullptr where the config does not ask for it.
std::unique_ptr<AuxiliaryModel> make_reference(const TrainConfig& config, at::Device device, Model* policy = nullptr,
                                               const KeptMasters& masters = nullptr);
std::unique_ptr<AuxiliaryModel> make_critic(const TrainConfig& config, at::Device device,
                                            const Placement& placement = {});
std::unique_ptr<AuxiliaryModel> make_implicit_prm(const TrainConfig& config, at::Device device,
                                                  const Placement& placement = {});
std::unique_ptr<AuxiliaryModel> make_teacher(const TrainConfig& config, at::Device device, const ModelConfig& policy);

}  // namespace ucas
