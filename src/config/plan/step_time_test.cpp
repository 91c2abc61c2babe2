#include "config/plan/step_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "config/plan/model_memory.h"

namespace ucas {
namespace {

// The shape of Qwen2.5-Math-1.5B.
PlannedModels of_1_5b(const TrainConfig& c) {
  ModelConfig m;
  m.hidden_size = 1536, m.num_hidden_layers = 28, m.num_attention_heads = 12, m.num_key_value_heads = 2;
  m.head_dim = 128, m.intermediate_size = 8960, m.vocab_size = 151936, m.tie_word_embeddings = true;
  return {.policy = m, .options = c.model_options(), .critic = m, .prm = m, .gpu = 80'000'000'000};
}

// The step of docs/gpu.md: 64 prompts x 16, responses of 1,020 tokens, two updates.
TrainConfig large_step() {
  TrainConfig c = make_train_config({});
  c.dtype = Dtype::bf16;
  c.data.max_prompt_length = 124;
  c.data.train_batch_size = 64;
  c.update.mini_batch_size = 32;
  c.update.micro_batch_tokens = 16384;
  c.rollout.n = 16;
  c.rollout.response_length = 1020;
  c.train.steps = 100;
  return c;
}

double seconds(const TimePlan& plan, const std::string& phase) {
  for (const TimePlan::Phase& p : plan.phases)
    if (p.name == phase) return p.seconds;
  return 0;
}

TEST(step_time, the_step_that_was_measured_on_an_h100_comes_out_within_a_quarter) {
  const TrainConfig c = large_step();
  const TimePlan plan = plan_time(c, of_1_5b(c), gpu_named("h100", Dtype::bf16), {});
  const double once = (124.0 / 16 + 1020) / (124 + 1020);  // each response had its own copy of the prompt then
  EXPECT_NEAR(seconds(plan, "generate"), 18.0, 0.25 * 18.0);
  EXPECT_NEAR(seconds(plan, "score"), 7.3 * once, 0.25 * 7.3);
  EXPECT_NEAR(seconds(plan, "update"), 23.3 * once, 0.25 * 23.3);
  EXPECT_NEAR(seconds(plan, "optimizer"), 2 * 0.025, 0.25 * 0.05);
  EXPECT_NEAR(plan.step(), 48.8 - (1 - once) * (7.3 + 23.3), 0.1 * 48.8);
  EXPECT_NEAR(plan.device_hours(), plan.step() * 100 / 3600, 1e-9);
}

TEST(step_time, an_offloaded_optimizer_pays_the_link_to_the_host_in_every_update) {
  TrainConfig c = large_step();
  const Device h100 = gpu_named("h100", Dtype::bf16), rtx4090 = gpu_named("rtx4090", Dtype::bf16);
  EXPECT_EQ(seconds(plan_time(c, of_1_5b(c), h100, {}), "offload"), 0);
  c.update.offload = Offload::optimizer;
  PlannedModels models = of_1_5b(c);
  const ModelMemory memory = model_memory(models.policy, models.options, &c.optimizer);
  const double moved = static_cast<double>(memory.masters + memory.moments);
  EXPECT_NEAR(seconds(plan_time(c, models, h100, {}), "offload"), 2 * moved / 50e9, 1e-6) << "two updates";
  EXPECT_NEAR(seconds(plan_time(c, models, rtx4090, {}), "offload"), 2 * moved / 25e9, 1e-6);
  models.ranks = 4;
  EXPECT_NEAR(seconds(plan_time(c, models, h100, {}), "offload"), 2 * moved / 4 / 50e9, 1e-6);
}

TEST(step_time, a_last_wave_of_micro_batches_that_is_not_full_costs_the_rest_of_it) {
  TrainConfig c = large_step();
  Device h100 = gpu_named("h100", Dtype::bf16);
  set_link(h100, 32);
  PlannedModels models = of_1_5b(c);
  models.ranks = 32;
  const int64_t tokens =
      c.update.mini_batch_size * c.rollout.n * (c.data.max_prompt_length + c.rollout.response_length);
  c.update.micro_batch_tokens = tokens / 48 + 1;
  const double sum = seconds(plan_time(c, models, h100, {}), "update");
  c.update.reduce = Reduce::micro;
  EXPECT_NEAR(sum / seconds(plan_time(c, models, h100, {}), "update"), 0.75, 1e-9) << "one and a half waves";
  models.ranks = 16;
  c.update.reduce = Reduce::sum;
  const double three = seconds(plan_time(c, models, h100, {}), "update");
  c.update.reduce = Reduce::micro;
  EXPECT_EQ(seconds(plan_time(c, models, h100, {}), "update"), three);
}

TEST(device, ranks_hold_buffers_of_nccl_beside_tensors_and_more_where_all_send_to_all) {
  const Device h100 = gpu_named("h100", Dtype::bf16);
  EXPECT_EQ(driver_memory(Device{.name = "cpu"}, 8, true), 0);
  const int64_t one = driver_memory(h100, 1, false);
  EXPECT_GT(one, 400'000'000);
  EXPECT_EQ(driver_memory(h100, 8, false) - one, 688'000'000);
  EXPECT_EQ(driver_memory(h100, 8, true) - driver_memory(h100, 8, false), 7 * 470'000'000LL);
  EXPECT_EQ(driver_memory(h100, 16, true), driver_memory(h100, 8, true)) << "of the peers of its host alone";
}

TEST(step_time, ranks_share_sampling_updates_and_moments_and_pay_for_the_exchange) {
  const TrainConfig c = large_step();
  Device h100 = gpu_named("h100", Dtype::bf16);
  set_link(h100, 4);
  PlannedModels one = of_1_5b(c), four = of_1_5b(c);
  four.ranks = 4;
  const TimePlan alone = plan_time(c, one, h100, {}), shared = plan_time(c, four, h100, {});
  EXPECT_NEAR(seconds(shared, "update"), seconds(alone, "update") / 4, 1e-9);
  EXPECT_NEAR(seconds(shared, "score"), seconds(alone, "score") / 4, 1e-9);
  EXPECT_LT(seconds(shared, "generate"), seconds(alone, "generate"));
  EXPECT_GT(seconds(shared, "generate"), seconds(alone, "generate") / 4) << "weights are read by each";
  EXPECT_EQ(seconds(alone, "exchange"), 0);
  EXPECT_GT(seconds(shared, "exchange"), 0);
  TrainConfig wide = c;
  wide.dtype = Dtype::f32;
  PlannedModels of_wide = of_1_5b(wide);
  of_wide.ranks = 4;
  const double all_f32 = seconds(plan_time(wide, of_wide, h100, {}), "exchange");
  EXPECT_NEAR(seconds(shared, "exchange") / all_f32, 10.0 / 12, 0.02) << "2 of 12 bytes a parameter fewer";

  const auto moments = [](const MemoryPlan& plan) {
    return std::ranges::find(plan.parts, "moments", &PlanPart::name)->bytes.front();
  };
  EXPECT_EQ(moments(plan_memory(c, four)), moments(plan_memory(c, one)) / 4);
  EXPECT_GT(plan_memory(c, one).peak(), 40'000'000'000) << "56.5 GB were measured";
  EXPECT_LT(plan_memory(c, one).peak(), 80'000'000'000);
}

TEST(step_time, on_a_gpu_the_longest_response_goes_on_alone) {
  const TrainConfig c = large_step();
  const Device h100 = gpu_named("h100", Dtype::bf16);
  EXPECT_EQ(seconds(plan_time(c, of_1_5b(c), h100, {}), "generate, tail"), 0) << "all are as long as allowed";
  const double tail = seconds(plan_time(c, of_1_5b(c), h100, {.response = 520}), "generate, tail");
  // 500 rounds, each of which reads the weights and starts 28 layers.
  EXPECT_GT(tail, 500 * (2 * 1.54e9 / (3.35e12 * 0.71) + 28 * 25e-6));
  EXPECT_LT(tail, 600 * (2 * 1.54e9 / (3.35e12 * 0.71) + 28 * 25e-6));
}

TEST(step_time, ranks_are_linked_as_the_card_is) {
  const auto link = [](const char* card, int64_t ranks) {
    Device d = gpu_named(card, Dtype::bf16);
    set_link(d, ranks);
    return d.link;
  };
  EXPECT_EQ(link("h100", 8), 300e9);
  EXPECT_EQ(link("h100", 16), 180e9);
  EXPECT_EQ(link("rtx4090", 8), 20e9);
  EXPECT_EQ(link("l40s", 9), 10e9);
  EXPECT_EQ(link("h100", 1), 0);
}

TEST(step_time, what_is_computed_again_and_what_is_longer_costs) {
  TrainConfig c = large_step();
  const Device h100 = gpu_named("h100", Dtype::bf16);
  const TimePlan plain = plan_time(c, of_1_5b(c), h100, {}),
                 shorter = plan_time(c, of_1_5b(c), h100, {.response = 510});
  EXPECT_LT(shorter.step(), 0.6 * plain.step());
  c.update.recompute = Recompute::block;
  const TimePlan again = plan_time(c, of_1_5b(c), h100, {});
  EXPECT_GT(seconds(again, "update"), 1.2 * seconds(plain, "update"));
  c.objective.kl_coeff = 0.01;
  EXPECT_EQ(seconds(plan_time(c, of_1_5b(c), h100, {}), "reference"), seconds(plain, "score"));
}

TEST(step_time, a_choice_of_tokens_by_the_policy_of_now_costs_a_pass_before_each_update) {
  TrainConfig c = large_step();
  const Device h100 = gpu_named("h100", Dtype::bf16);
  const double scored = seconds(plan_time(c, of_1_5b(c), h100, {}), "score");
  c.method = make_method("clip_cov", "paper");
  ASSERT_TRUE(c.needs().selection);
  EXPECT_NEAR(seconds(plan_time(c, of_1_5b(c), h100, {}), "selection"), scored, 1e-9);
}

TEST(step_time, a_device_that_is_not_known_is_refused_by_the_nearest_name) {
  try {
    gpu_named("A100", Dtype::bf16);
    FAIL() << "A100 was taken";
  } catch (const Error& refused) {
    EXPECT_NE(std::string(refused.what()).find("expected one of cpu, h100, h200, gh200, b200, a100"),
              std::string::npos);
  }
}

TEST(step_time, this_machine_can_do_something) {
  const Device here = here_device(Dtype::f32, 1);
  EXPECT_GT(here.operations, 1e8);
  EXPECT_GT(here.bandwidth, 1e8);
  EXPECT_GE(here.logit_seconds, 0);
}

}  // namespace
}  // namespace ucas
