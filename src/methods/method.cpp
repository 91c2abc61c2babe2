#include "methods/method.h"

#include "methods/clipped_ratio.h"

namespace ucas {

void ObjectiveConfig::fields(Fields& f) {
  f.field("clip_low", clip_low, Range{0, 1}, "eps_low: the ratio is clipped below 1 - clip_low");
  f.field("clip_high", clip_high, Range{0, 1e6}, "eps_high: the ratio is clipped above 1 + clip_high");
  f.field("dual_clip", dual_clip, Range{0, 1e6}, "c > 1: loss of a wrong response is at most c |A|; 0 = off");
  f.choice(
      "aggregation", aggregation,
      {"token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_mean_token_sum_norm", "row_mean_token_sum_norm"},
      "how token losses are averaged over a mini-batch");
  f.field("norm_length", norm_length, Range{0, 1e9}, "constant of the ..._norm aggregations; 0 = the response limit");
  f.field("entropy_coeff", entropy_coeff, Range{-10, 10}, "entropy bonus: loss -= entropy_coeff * mean entropy");
  f.field("keep_mixed_groups", keep_mixed_groups, "train only on prompts with some right and some wrong responses");
}

void Method::token_loss(const LossInput& in, LossOutput& out) const { clipped_ratio_loss(in, out); }

}  // namespace ucas
