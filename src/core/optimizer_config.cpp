#include "core/optimizer_config.h"

namespace ucas {

void OptimizerConfig::fields(Fields& f) {
  f.field("lr", lr, Range{0, 1}, "peak learning rate");
  f.choice("kind", kind, "optimizer: adamw, or muon for the blocks' matrices and AdamW for all other parameters");
  f.choice(
      "moments", moments,
      "dtype of the optimizer moments, 4, 2 or 1 bytes per element; int8 applies to tensors of 4,096 or more elements");
  f.field("beta1", beta1, Range{0, 0.999999}, "AdamW: decay of the mean of gradients");
  f.field("beta2", beta2, Range{0, 0.999999}, "AdamW: decay of the mean of squared gradients");
  f.field("weight_decay", weight_decay, Range{0, 1}, "decoupled weight decay, multiplied by lr");
  f.field("grad_clip", grad_clip, Range{0, 1e9}, "maximum global gradient norm; 0 = no clipping");
  f.field("warmup_steps", warmup_steps, Range{0, 1e9}, "steps of linear learning-rate warm-up");
  f.field("warmup_from_zero", warmup_from_zero,
          "learning rate of RL's first warm-up step: 0, as in verl; false = lr / warmup_steps");
}

}  // namespace ucas
