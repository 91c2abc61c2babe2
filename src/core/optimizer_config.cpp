#include "core/optimizer_config.h"

namespace ucas {

void OptimizerConfig::fields(Fields& f) {
  f.field("lr", lr, Range{0, 1}, "peak learning rate");
  f.choice("kind", kind, "muon: the blocks' matrices by Muon, everything else by AdamW");
  f.choice("moments", moments, "running means kept in 4, 2 or 1 bytes an element; int8: those of 4,096 or more");
  f.field("beta1", beta1, Range{0, 0.999999}, "AdamW: decay of the mean of gradients");
  f.field("beta2", beta2, Range{0, 0.999999}, "AdamW: decay of the mean of squared gradients");
  f.field("eps", eps, Range{1e-16, 1}, "AdamW: added to the denominator");
  f.field("momentum", momentum, Range{0, 0.999999}, "Muon: decay of the mean of gradients");
  f.field("weight_decay", weight_decay, Range{0, 1}, "decoupled weight decay, times lr");
  f.choice("decay", decay, {"all", "matrices"}, "parameters that decay; matrices leaves out biases and norms");
  f.field("grad_clip", grad_clip, Range{0, 1e9}, "largest global gradient norm, 0 = no clipping");
  f.field("warmup_steps", warmup_steps, Range{0, 1e9}, "linear warm-up from 0");
  f.choice("schedule", schedule, {"constant", "cosine"}, "learning rate after the warm-up");
  f.field("min_lr_ratio", min_lr_ratio, Range{0, 1}, "cosine ends at this share of lr");
}

}  // namespace ucas
