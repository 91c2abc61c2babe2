// Options of an optimizer and its learning-rate schedule: of the policy, of SFT, and of the models that a method trains
// beside the policy.
#pragma once

#include <array>
#include <cstdint>

#include "base/text/fields.h"

namespace ucas {

enum class OptimizerKind {
  adamw,
  muon
};  // muon: of the blocks' matrices; all else has AdamW (train/optimizer/update_rules.h)
enum class MomentType {
  f32,
  bf16,
  int8
};  // how running means of gradients are kept between updates (train/optimizer/moments.h)
enum class Decay { all, matrices };  // which parameters weight decay pulls on
enum class Schedule { constant, cosine };

constexpr std::array<const char*, 2> names(OptimizerKind) { return {"adamw", "muon"}; }
constexpr std::array<const char*, 3> names(MomentType) { return {"f32", "bf16", "int8"}; }

// What each of several ranks keeps a share of: the optimizer's moments (ZeRO-1), or their parameters' gradients, too
// (ZeRO-2).
enum class Shard { moments, gradients };
constexpr std::array<const char*, 2> names(Shard) { return {"moments", "gradients"}; }

// Defaults: verl's actor. What has no option here is a constant of RL; SFT has a schedule of its own.
struct OptimizerConfig {
  double lr = 1e-6;
  OptimizerKind kind = OptimizerKind::adamw;
  MomentType moments = MomentType::f32;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.95;  // Muon's
  double weight_decay = 0.01;
  Decay decay = Decay::all;
  double grad_clip = 1.0;  // largest global L2 norm of the gradient; 0 = no clipping
  int64_t warmup_steps = 0;
  bool warmup_from_zero = true;  // RL: the first step of a warm-up changes nothing, as verl's
  Schedule schedule = Schedule::constant;
  double min_lr_ratio = 0.0;  // where cosine ends, as a share of lr

  void fields(Fields& f);
};

}  // namespace ucas
