#include "train/update/config.h"

namespace ucas {

void UpdateConfig::fields(Fields& f) {
  f.field("mini_batch_size", mini_batch_size, Range{1, 1 << 20}, "prompts per optimizer update", Effect::size);
  f.field("epochs", epochs, Range{1, 1000}, "PPO epochs: updates with each response of the step's batch");
  f.field("micro_batch_tokens", micro_batch_tokens, Range{16, 1 << 24},
          "tokens per micro-batch, one forward and backward pass", Effect::procedure);
  f.choice("recompute", recompute,
           "activation recomputation in the backward pass: none, a block except attention, or a whole block; less "
           "memory, bit-identical",
           Effect::bookkeeping);
  f.choice(
      "reduce", reduce, {"sum", "micro"},
      "gradient reduction: sum, or micro = micro-batch by micro-batch in their order, bit-identical for any number "
      "of ranks");
  f.choice("shard", shard, "ZeRO level across ranks: optimizer moments (1), or gradients too (2)");
  f.choice("offload", offload,
           "where the policy's master weights and moments are: with the weights (none), or in the host's memory and "
           "streamed through each update (optimizer); auto = optimizer if the plan of a GPU fits with offload and not "
           "without; bit-identical",
           Effect::bookkeeping);
}

}  // namespace ucas
