#include "records/eval_config.h"

namespace ucas {

void EvalConfig::fields(Fields& f) {
  f.field("greedy", greedy, "one greedy response per problem (greedy pass@1)");
  f.field("samples", samples, Range{0, 1 << 16}, "n sampled responses per problem; 0 = greedy only");
  f.field("temperature", temperature, Range{1e-3, 100}, "temperature of the samples");
  f.field("top_p", top_p, Range{1e-6, 1}, "keep the most probable tokens up to this mass; 1 = all");
  f.field("top_k", top_k, Range{0, 1 << 24}, "keep this many of the most probable tokens; 0 = all");
  f.field("min_p", min_p, Range{0, 1},
          "keep tokens of at least this share of the most probable one's probability; 0 = all");
  f.field("max_tokens", max_tokens, Range{1, 1 << 24}, "longest response in tokens, end token included");
  f.field("ks", ks, Range{1, 1 << 16}, "the k of pass@k; those above samples are left out");
  f.field("seed", seed, Range{0, 9e15}, "of the samples and of the bootstrap");
  f.choice("dtype", dtype, "of the model's products, activations, keys and values");
  f.choice("truncated", truncated, "a response cut at max_tokens: graded as it is, or wrong", Effect::result,
           kTruncatedGraded);
  f.field("stored_responses", stored_responses, Range{0, 1 << 16}, "sampled responses written per problem");
  f.field("bootstrap_draws", bootstrap_draws, Range{0, 1e6},
          "resamplings of the problems behind each interval; 0 = none");
  f.field("confidence_level", confidence_level, Range{0.5, 0.9999}, "of the intervals");
}

}  // namespace ucas
