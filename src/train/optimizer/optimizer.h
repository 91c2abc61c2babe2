// The optimizer of f32 master weights: gradient clipping by the global L2 norm, then each parameter's own rule, AdamW
// or Muon (train/optimizer/update_rules.h). Fed by gradients that backward left in the parameters; owns what the rules
// keep of them (train/optimizer/moments.h). On the CPU each element's update by AdamW and the order of the norm's sum
// are fixed: results do not depend on the thread count.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/model_options.h"
#include "model/model.h"
#include "sharding/ranks.h"
#include "sharding/sharded_gradients.h"
#include "train/optimizer/host_state.h"
#include "train/optimizer/update_rules.h"

namespace ucas {

// Where an optimizer keeps its state: of all parameters, or of a rank's shard of them (owners_of()); with the
// parameters, or on the host (train/optimizer/host_state.h).
struct Placement {
  int64_t rank = 0, ranks = 1;
  bool on_host = false;
  std::vector<Bf16Copy> copies = {};  // Model::bf16_copies(): their masters move to the host, too
  int64_t slice = kOffloadSlice;
};

struct StepResult {
  double grad_norm = 0;  // before clipping
  bool applied = false;  // false: the norm was not finite, nothing changed
};

class Optimizer {
 public:
  enum class Path {
    by_device,
    kernels,
    aten
  };  // the others: on the CPU, too, what GPUs run (emulated), and any device

  // The tensors are shared with the model and updated in place. Moments are made of this rank's share alone.
  Optimizer(std::vector<NamedTensor> parameters, const OptimizerConfig& config, Path path = Path::by_device,
            const Placement& placement = {});

  // Among ranks: each keeps the moments of some parameters, 1 / size of all elements or nearly, updates these, and
  // broadcasts them. Each has the whole gradient, or, by Shard::gradients, that of the same parameters alone
  // (sharding/sharded_gradients.h).
  // Before the first step or state(). `ranks` is borrowed. Of parameters that have a copy (Model::bf16_copies()) the
  // copies are broadcast, and each rank has the masters of its own alone from here on.
  void shard_over(Ranks& ranks, Shard shard = Shard::moments, const std::vector<Bf16Copy>& copies = {});
  std::vector<int64_t> owners() const;     // by parameter, the rank that keeps its moments
  Ranks* ranks() const { return ranks_; }  // null: alone
  // Values of a parameter, f32 and in its shape; undefined where another rank keeps them.
  at::Tensor values_of(const at::Tensor& parameter) const;
  // For files: runs `work` on rank 0, which may ask for the values of any parameter, wherever they are kept; the other
  // ranks answer. All ranks call; throws what `work` throws, on rank 0.
  void with_masters(const std::function<void(const MasterValues&)>& work) const;

  // Global L2 norm of the gradients as they are now; parameters without a gradient count as 0.
  double grad_norm() const;
  // Clips, updates, and leaves all gradients at zero, whether applied or not. A parameter that has no gradient at all
  // is left alone (as in torch). Throws Error(ErrorKind::numeric, exit 70) naming the parameter when the result is not
  // finite: such weights and moments must never be saved.
  StepResult step(double lr);
  void zero_grad();
  // Between updates: gives the memory of all gradients back, which hold zeros since step(). The next backward pass
  // makes them again; a parameter that has had one keeps counting as having one, of zeros.
  void drop_gradients();

  int64_t steps() const { return steps_; }  // updates applied so far: t of the bias correction
  const OptimizerConfig& config() const { return config_; }

  // For checkpoints, sharing storage: of every parameter whose moments are kept here "exp_avg/NAME" and
  // "exp_avg_sq/NAME" (AdamW) or "momentum_buffer/NAME" (Muon) in their own types, each with "..._scale/NAME" if it is
  // int8 or uint8.
  std::vector<NamedTensor> state() const;
  // After copying into state()'s tensors.
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  struct Rule {
    std::vector<double> (*sums_of_squares)(std::span<const at::Tensor> gradients);  // of each
    bool (*adamw)(const ParameterState& slot, const ParameterUpdate& update);
  };
  static const Rule kOnCpu, kOnGpu, kByAten;

  bool mine(const ParameterState& slot) const { return ranks_ == nullptr || slot.owner == ranks_->rank(); }
  void make_moments(ParameterState& slot) const;
  void move_to_host(ParameterState& slot, const Placement& placement) const;
  void broadcast_weights() const;
  std::vector<double> exchanged(const std::vector<double>& sums) const;

  Ranks* ranks_ = nullptr;  // null: alone
  bool own_gradients_ = false;
  std::optional<ShardedMasters> masters_;  // where there are copies
  std::unique_ptr<HostState> host_;        // offloaded
  std::vector<ParameterState> slots_;
  const Rule* rule_;      // chosen once, by the parameters' device
  at::Tensor nonfinite_;  // [slots] int32 on a GPU
  OptimizerConfig config_;
  int64_t steps_ = 0;
};

}  // namespace ucas
