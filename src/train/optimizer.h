// AdamW (algorithms: Sec. 18) over f32 master weights, with gradient clipping by the global L2 norm.
// Fed by gradients that backward left in the parameters; owns both moments.
// On the CPU each element's update and the order of the norm's sum are fixed: results do not depend on the thread
// count. Threads: one caller.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/optimizer_config.h"
#include "model/model.h"

namespace ucas {

struct StepResult {
  double grad_norm = 0;  // before clipping
  bool applied = false;  // false: the norm was not finite, nothing changed
};

class AdamW {
 public:
  // The tensors are shared with the model and updated in place.
  AdamW(std::vector<NamedTensor> parameters, const OptimizerConfig& config);

  // Global L2 norm of the gradients as they are now; parameters without a gradient count as 0.
  double grad_norm() const;
  // Clips, updates, and leaves all gradients at zero, whether applied or not. A parameter that has no gradient at all
  // is left alone (as in torch). Throws Error("numeric", exit 70) naming the parameter when the result is not finite:
  // such weights and moments must never be saved.
  StepResult step(double lr);
  void zero_grad();

  int64_t steps() const { return steps_; }  // updates applied so far: t of the bias correction
  const OptimizerConfig& config() const { return config_; }

  // For checkpoints: "exp_avg/NAME" and "exp_avg_sq/NAME" of every parameter, sharing storage.
  std::vector<NamedTensor> state() const;
  // After copying into state()'s tensors.
  void set_steps(int64_t steps) { steps_ = steps; }

  struct Slot {
    std::string name;
    at::Tensor parameter, exp_avg, exp_avg_sq;
    bool decays;
  };
  struct Update {  // what one of them needs
    const OptimizerConfig& config;
    int64_t steps;
    double lr, clip, decay;
  };
  struct Device {  // chosen once, by where the parameters lie
    double (*sum_of_squares)(const at::Tensor& gradient);
    // One update by the gradient times `clip`; zeroes the gradient. False if a result is not finite.
    bool (*update)(const Slot& slot, const Update& update);
  };

 private:
  std::vector<Slot> slots_;
  const Device* device_;
  OptimizerConfig config_;
  int64_t steps_ = 0;
};

}  // namespace ucas
