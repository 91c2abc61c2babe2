#include "plan/micro_batch.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

// The shape of Qwen2.5-Math-1.5B.
ModelConfig shape_1_5b() {
  ModelConfig m;
  m.hidden_size = 1536, m.num_hidden_layers = 28, m.num_attention_heads = 12, m.num_key_value_heads = 2;
  m.head_dim = 128, m.intermediate_size = 8960, m.vocab_size = 151936, m.tie_word_embeddings = true;
  return m;
}

PlannedModels planned(const ModelConfig& m, const TrainConfig& c) {
  return {.policy = m, .options = c.model_options(), .critic = m, .prm = m, .gpu = 80'000'000'000};
}

TEST(micro_batch, a_last_wave_that_is_not_full_is_counted_as_full) {
  // 4,096 rows are 32 tiles: x 8 (q, k, v) 256 in 2 waves of 132, x 6 (out) 192 in 2, x 70 (gate, up) 2,240 in 17, x 6
  // (down).
  EXPECT_NEAR(tile_share(shape_1_5b(), 4096, 132), (2048.0 + 1536 + 17920 + 8960) / (2112 + 2112 + 17952 + 12320),
              1e-12);
  EXPECT_EQ(tile_share(shape_1_5b(), 8448, 132), 1);
  EXPECT_EQ(tile_share(shape_1_5b(), 16896, 132), 1);
}

TEST(micro_batch, is_proposed_where_it_fills_more_of_the_device_and_fits) {
  TrainConfig c = make_train_config({});
  c.dtype = Dtype::bf16;
  c.update.micro_batch_tokens = 4096;
  Device device = gpu_named("h100", Dtype::bf16);
  const PlannedModels models = planned(shape_1_5b(), c);
  const MicroBatchProposal enough = propose_micro_batch(c, models, device);
  EXPECT_EQ(enough.tokens, 16896);
  EXPECT_EQ(enough.share, 1);
  TrainConfig as_proposed = c;
  as_proposed.update.micro_batch_tokens = enough.tokens;
  EXPECT_EQ(enough.peak, plan_memory(as_proposed, models).peak());
  EXPECT_EQ(propose_micro_batch(as_proposed, models, device).tokens, 0) << "it is there already";

  as_proposed.update.micro_batch_tokens = 8448;
  device.memory = enough.peak;  // not with 3 % to spare
  const MicroBatchProposal smaller = propose_micro_batch(c, models, device);
  EXPECT_EQ(smaller.tokens, plan_memory(as_proposed, models).peak() < enough.peak * 0.97 ? 8448 : 0);
  device.memory = plan_memory(c, models).peak() / 2;
  EXPECT_EQ(propose_micro_batch(c, models, device).tokens, 0);
  EXPECT_EQ(propose_micro_batch(c, models, Device{}).tokens, 0) << "a CPU has none";
}

}  // namespace
}  // namespace ucas
