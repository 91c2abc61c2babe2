// Options of an optimizer and its learning-rate schedule: of the policy, of SFT, and of the models that a method trains
// beside the policy.
#pragma once

#include <cstdint>

#include "base/fields.h"

namespace ucas {

enum class Decay { all, matrices };  // which parameters weight decay pulls on
enum class Schedule { constant, cosine };

struct OptimizerConfig {  // defaults: verl's actor
  double lr = 1e-6;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  Decay decay = Decay::all;
  double grad_clip = 1.0;  // largest global L2 norm of the gradient; 0 = no clipping
  int64_t warmup_steps = 0;
  Schedule schedule = Schedule::constant;
  double min_lr_ratio = 0.0;  // where cosine ends, as a share of lr

  void fields(Fields& f);
};

}  // namespace ucas
