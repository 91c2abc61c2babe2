#include "records/eval_config.h"

namespace ucas {

void EvalConfig::fields(Fields& f) {
  f.field("greedy", greedy, "generate one greedy response per problem (greedy pass@1)");
  f.field("samples", samples, Range{0, 1 << 16}, "sampled responses per problem, the n of mean@n; 0 = greedy only");
  f.field("temperature", temperature, Range{1e-3, 100}, "sampling temperature of the samples");
  f.field("top_p", top_p, Range{1e-6, 1}, "probability mass of nucleus sampling; 1 = off");
  f.field("top_k", top_k, Range{0, 1 << 24}, "number of most probable tokens to sample from; 0 = off");
  f.field("min_p", min_p, Range{0, 1}, "minimum token probability as a fraction of the most probable token's; 0 = off");
  f.field("max_tokens", max_tokens, Range{1, 1 << 24}, "maximum response length in tokens, end token included");
  f.field("ks", ks, Range{1, 1 << 16}, "values k of pass@k; values above samples are left out");
  f.field("seed", seed, Range{0, 9e15}, "random seed of sampling and bootstrap");
  f.choice("dtype", dtype, "dtype of matmuls, activations and KV cache");
  f.choice("truncated", truncated, "responses cut at max_tokens: grade as usual, or count as wrong", Effect::result,
           kTruncatedGraded);
  f.field("stored_responses", stored_responses, Range{0, 1 << 16}, "sampled responses stored per problem");
  f.field("bootstrap_draws", bootstrap_draws, Range{0, 1e6},
          "bootstrap resamples of the problems per interval; 0 = no intervals");
  f.field("confidence_level", confidence_level, Range{0.5, 0.9999}, "confidence level of the intervals");
}

}  // namespace ucas
