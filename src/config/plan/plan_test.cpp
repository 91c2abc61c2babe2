#include "config/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "config/plan/model_memory.h"
#include "hf/parameters.h"

namespace ucas {

namespace {

// D 64, two layers, 4 heads and 2 key/value heads of 16, F 192, V 58, tied: the defaults.
ModelConfig small() { return {}; }

TrainConfig small_training() {
  TrainConfig c = make_train_config({});
  c.threads = 1;
  c.data.max_prompt_length = 16;
  c.data.train_batch_size = c.update.mini_batch_size = 4;
  c.rollout.n = 4;
  c.rollout.response_length = 48;
  return c;
}
PlannedModels models_of(const TrainConfig& c) {
  PlannedModels m{
      .policy = small(), .options = c.model_options(), .critic = small(), .prm = small(), .teacher = small()};
  if (c.lora.on()) m.options.trained = Trained::adapter;
  return m;
}
int64_t bytes_of(const MemoryPlan& plan, const std::string& part, const std::string& phase) {
  const auto at = std::ranges::find(plan.phases, phase) - plan.phases.begin();
  for (const PlanPart& p : plan.parts) {
    if (p.name == part) return p.bytes[static_cast<size_t>(at)];
  }
  return 0;
}

TEST(model_memory, shapes_have_as_many_elements_as_the_model_has_parameters) {
  for (const Family& family : kFamilies) {
    for (bool tied : {false, true}) {
      ModelConfig c = small();
      c.family = &family;
      c.tie_word_embeddings = tied;
      const BlockSpec& spec = family.block;
      const int64_t D = c.hidden_size, query = c.num_attention_heads * c.head_dim,
                    key = c.num_key_value_heads * c.head_dim;
      const int64_t matrices = (query + 2 * key) * D + query * D + 3 * c.intermediate_size * D;
      const int64_t vectors = (spec.qkv_bias ? query + 2 * key : 0) +
                              (spec.qk_norm_whole ? query + key
                               : spec.qk_norm     ? 2 * c.head_dim
                                                  : 0) +
                              (spec.norms_after && spec.norms_before ? 4 : 2) * D;
      EXPECT_EQ(c.parameter_count(), c.num_hidden_layers * (matrices + vectors) + D + (tied ? 1 : 2) * c.vocab_size * D)
          << family.title;
    }
  }
}

TEST(model_memory, in_bf16_matrices_have_copies_and_vectors_none) {
  const ModelConfig c = small();
  const int64_t n = c.parameter_count();
  const ModelMemory f32 = model_memory(c, {}, nullptr), bf16 = model_memory(c, {.dtype = Dtype::bf16}, nullptr);
  int64_t vectors = 0;
  for (const ParameterShape& p : parameter_shapes(c)) vectors += p.rows == 0 ? p.columns : 0;
  EXPECT_EQ(f32.weights, 4 * n);
  EXPECT_EQ(f32.masters, 0);
  EXPECT_EQ(bf16.weights, 2 * (n - vectors) + 4 * vectors);
  EXPECT_EQ(bf16.masters, 4 * (n - vectors));
  EXPECT_EQ(bf16.gradients, 4 * n);
}

TEST(model_memory, an_adapter_alone_is_trained) {
  ModelOptions options{.trained = Trained::adapter, .lora = {.rank = 8, .target_modules = {"q_proj"}}};
  const OptimizerConfig adamw;
  const ModelMemory m = model_memory(small(), options, &adamw);
  const int64_t numbers = 2 * 8 * (64 + 64);  // two layers, A [8, 64] and B [64, 8]
  EXPECT_EQ(m.trained, numbers);
  EXPECT_EQ(m.adapter, 2 * 4 * numbers);
  EXPECT_EQ(m.moments, 2 * 4 * numbers);
  options.lora.modules_to_save = {"norm"};  // each norm of the model: two a layer and the last
  EXPECT_EQ(model_memory(small(), options, &adamw).trained, numbers + 5 * 64);
}

TEST(model_memory, a_cache_has_two_rows_a_token_in_every_layer_in_whole_tiles) {
  const KvBudget room{.slots = 3, .prompt_slots = 1, .length = 17};
  EXPECT_EQ(cache_bytes(small(), Dtype::f32, room), 4 * 32 * (2 * 2 * (16 + 16) * 4));
  EXPECT_EQ(cache_bytes(small(), Dtype::bf16, room), 4 * 32 * (2 * 2 * (16 + 16) * 2));
}

TEST(model_memory, a_cache_holds_the_prompt_of_a_group_once_where_that_takes_less) {
  const LongestTokens longest{1280, 1024, 256};
  const KvBudget one = kv_budget({}, 1, 16, longest, 4096);
  EXPECT_EQ(one.held(), 16 * 272 + 1024);  // a whole one: 17 of 1,280
  const KvBudget step = kv_budget({.max_slots = 256}, 128, 2048, longest, 4096);
  EXPECT_EQ(step.held(), 256 * 272 + (4 * 16 + 32) * 1024);
  // Where prompt and response may each be all of the length, and on a GPU, slots are whole.
  EXPECT_FALSE(kv_budget({.max_slots = 64}, 64, 64, {1280, 1280, 1280}, 4096).shares());
  EXPECT_FALSE(kv_budget({.max_slots = 64}, 4, 64, longest, 4096, int64_t{1} << 30).shares());
  // A budget of memory has room for more responses: it is kept, and with one more it would not be.
  const KvBudget many = kv_budget({.cache_mb = 64}, 128, 2048, longest, 4096);
  EXPECT_GT(many.slots, (int64_t{64} << 20) / (1280 * 4096));
  EXPECT_LE(many.held() * 4096, int64_t{64} << 20);
}

TEST(model_memory, a_gpu_decodes_as_many_as_there_are_and_its_cache_is_three_quarters_of_what_stays_free) {
  const LongestTokens longest{4096, 1024, 3072};
  constexpr int64_t kFree = int64_t{40} << 30, kTokenBytes = 28672;
  EXPECT_EQ(kv_budget({}, 1024, 16384, longest, kTokenBytes, kFree).slots, kMostGpuSlots);
  EXPECT_EQ(kv_budget({}, 64, 300, longest, kTokenBytes, kFree).slots, 300);
  EXPECT_EQ(kv_budget({.max_slots = 64}, 64, 300, longest, kTokenBytes, kFree).slots, 64);
  EXPECT_EQ(kv_budget({}, 64, 300, longest, kTokenBytes, kFree).tokens, kFree / 4 * 3 / kTokenBytes);
  // What a training hands to its engine is what its plan counts, whatever a step samples.
  EXPECT_EQ(kv_budget({.max_slots = 300, .cache_tokens = 5000}, 1, 8, longest, kTokenBytes, kFree).tokens, 5000);
}

TEST(memory_plan, lanes_and_cache_of_a_gpu_come_from_its_whole_memory_alone) {
  TrainConfig c = small_training();
  c.dtype = Dtype::bf16;
  PlannedModels models = models_of(c);
  EXPECT_EQ(plan_memory(c, models).cache_tokens, 0);
  models.gpu = usable_gpu(int64_t{80} << 30);
  const MemoryPlan plan = plan_memory(c, models), again = plan_memory(c, models);
  EXPECT_GT(plan.slots, 0);
  EXPECT_GT(plan.cache_tokens, 0);
  EXPECT_EQ(plan.slots, again.slots);
  EXPECT_EQ(plan.cache_tokens, again.cache_tokens);
  models.gpu = usable_gpu(int64_t{24} << 30);
  EXPECT_LT(plan_memory(c, models).cache_tokens, plan.cache_tokens);
}

TEST(model_memory, what_is_made_again_is_not_kept) {
  const PassShape shape{.rows = 1024, .length = 256, .threads = 1};
  ModelConfig deep = small();
  deep.num_hidden_layers = 24;
  const auto kept = [&](Recompute r) { return backward_memory(deep, {.recompute = r}, shape).activations; };
  EXPECT_LT(kept(Recompute::keep_attention), kept(Recompute::none));
  EXPECT_LT(kept(Recompute::block), kept(Recompute::keep_attention) / 2);
  // x, qkv, attended, softmax, middle, gate and up of every layer, and the last x
  EXPECT_EQ(kept(Recompute::none), 1024 * 4 * (24 * (64 + 128 + 64 + 8 + 64 + 384) + 64));
}

TEST(memory_plan, phases_add_up_and_the_update_has_gradients_and_activations) {
  const TrainConfig c = small_training();
  const MemoryPlan plan = plan_memory(c, models_of(c));
  EXPECT_EQ(plan.phases, (std::vector<std::string>{"load", "generate", "score", "update", "save"}));
  int64_t sum = 0;
  for (const PlanPart& part : plan.parts) sum += part.bytes[3];
  EXPECT_EQ(sum, plan.total(3));
  const int64_t n = small().parameter_count();
  for (const char* phase : {"load", "generate", "score", "save"}) EXPECT_EQ(bytes_of(plan, "gradients", phase), 0);
  EXPECT_EQ(bytes_of(plan, "gradients", "update"), 4 * n);
  EXPECT_EQ(bytes_of(plan, "moments", "generate"), 8 * n);
  EXPECT_GT(bytes_of(plan, "activations", "update"), bytes_of(plan, "activations", "score"));
  EXPECT_EQ(bytes_of(plan, "KV cache", "update"), 0);
}

TEST(memory_plan, ranks_share_gradients_but_those_that_a_backward_pass_has) {
  TrainConfig c = small_training();
  PlannedModels models = models_of(c);
  const int64_t n = small().parameter_count(), layers = small().num_hidden_layers;
  int64_t outside = 0;
  for (const ParameterShape& p : parameter_shapes(small())) {
    if (p.module.find(".layers.") == std::string::npos) outside += p.elements();
  }
  models.ranks = 4;
  EXPECT_EQ(bytes_of(plan_memory(c, models), "gradients", "update"), 4 * n);
  c.update.shard = Shard::gradients;
  const MemoryPlan plan = plan_memory(c, models);
  const int64_t passing = 4 * outside + 4 * (n - outside) / layers;
  EXPECT_NEAR(static_cast<double>(bytes_of(plan, "gradients", "update")),
              static_cast<double>(n + passing - passing / 4), 64.0);
  models.ranks = 1;
  EXPECT_EQ(bytes_of(plan_memory(c, models), "gradients", "update"), 4 * n);
}

// Besides the sum so far: a block's gradients, or under ZeRO-1 on several ranks all, and buffers of as much.
TEST(memory_plan, the_gradients_of_a_micro_batch_are_counted_where_each_is_from_zero) {
  TrainConfig c = small_training();
  c.update.reduce = Reduce::micro;
  PlannedModels models = models_of(c);
  const ModelMemory m = model_memory(small(), {}, nullptr);
  EXPECT_EQ(bytes_of(plan_memory(c, models), "gradients", "update"), m.gradients + m.passing);
  EXPECT_EQ(bytes_of(plan_memory(c, models), "exchange", "update"), 0);
  models.ranks = 4;
  EXPECT_EQ(bytes_of(plan_memory(c, models), "gradients", "update"), m.gradients / 4 + m.gradients);
  EXPECT_EQ(bytes_of(plan_memory(c, models), "exchange", "update"), 2 * m.gradients);
  c.update.shard = Shard::gradients;
  EXPECT_EQ(bytes_of(plan_memory(c, models), "gradients", "update"), m.gradients / 4 + m.passing);
  EXPECT_EQ(bytes_of(plan_memory(c, models), "exchange", "update"), 2 * m.passing);
  models.policy.num_hidden_layers = 400;
  c.update.shard = Shard::moments;
  EXPECT_EQ(bytes_of(plan_memory(c, models), "exchange", "update"), 8 * kExchangeElements) << "two buffers of 64 MiB";
}

TEST(memory_plan, ranks_share_masters_and_moments_in_every_phase) {
  TrainConfig c = small_training();
  c.dtype = Dtype::bf16;
  PlannedModels models = models_of(c);
  const int64_t masters = model_memory(small(), {.dtype = Dtype::bf16}, nullptr).masters;
  const int64_t moments = 8 * small().parameter_count();
  ASSERT_EQ(bytes_of(plan_memory(c, models), "masters", "update"), masters);
  models.ranks = 4;
  const MemoryPlan plan = plan_memory(c, models);
  for (const std::string& phase : plan.phases) {
    EXPECT_EQ(bytes_of(plan, "masters", phase), (masters + 3) / 4) << phase;
    EXPECT_EQ(bytes_of(plan, "moments", phase), (moments + 3) / 4) << phase;
  }
  EXPECT_EQ(plan.host, 0);
}

TEST(memory_plan, an_offloaded_optimizer_takes_buffers_of_a_gpu_and_its_state_of_the_host) {
  TrainConfig c = small_training();
  c.dtype = Dtype::bf16;
  PlannedModels models = models_of(c);
  const ModelMemory m = model_memory(small(), {.dtype = Dtype::bf16}, &c.optimizer);
  c.update.offload = Offload::optimizer;
  const MemoryPlan on_cpu = plan_memory(c, models);
  EXPECT_EQ(on_cpu.host, m.masters + m.moments);
  EXPECT_EQ(bytes_of(on_cpu, "masters", "update"), m.masters) << "host and device are one";
  EXPECT_EQ(bytes_of(on_cpu, "offload", "update"), m.offload);
  models.gpu = int64_t{80} << 30;
  const MemoryPlan plan = plan_memory(c, models);
  EXPECT_TRUE(plan.offloads);
  EXPECT_EQ(bytes_of(plan, "masters", "load"), m.masters) << "until the optimizer is made";
  for (const char* phase : {"generate", "score", "update", "save"}) {
    EXPECT_EQ(bytes_of(plan, "masters", phase), 0) << phase;
    EXPECT_EQ(bytes_of(plan, "moments", phase), 0) << phase;
    EXPECT_EQ(bytes_of(plan, "offload", phase), m.offload) << phase;
  }
  models.ranks = 4;
  EXPECT_EQ(plan_memory(c, models).host, (m.masters + 3) / 4 + (m.moments + 3) / 4);
}

TEST(memory_plan, what_a_gpu_holds_beside_tensors_stands_in_every_phase_and_takes_nothing_of_the_cache) {
  TrainConfig c = small_training();
  PlannedModels models = models_of(c);
  models.gpu = int64_t{80} << 30;
  const MemoryPlan without = plan_memory(c, models);
  models.driver = int64_t{1} << 30;
  const MemoryPlan plan = plan_memory(c, models);
  for (const char* phase : {"load", "generate", "score", "update", "save"}) {
    EXPECT_EQ(bytes_of(plan, "device", phase), models.driver) << phase;
  }
  EXPECT_EQ(plan.cache_tokens, without.cache_tokens) << "the cache is that of the training";
  EXPECT_EQ(plan.total(3), without.total(3) + models.driver);
}

TEST(memory_plan, automatic_offload_is_for_a_gpu_that_fits_with_it_and_not_without) {
  TrainConfig c = small_training();
  c.dtype = Dtype::bf16;
  PlannedModels models = models_of(c);
  models.policy.num_hidden_layers = 200;  // state compared with which passes are small
  models.gpu = int64_t{80} << 30;
  const int64_t without = plan_memory(c, models).total(3);
  c.update.offload = Offload::optimizer;
  const MemoryPlan offloaded = plan_memory(c, models);
  ASSERT_LT(offloaded.total(3), without);
  c.update.offload = Offload::automatic;
  EXPECT_FALSE(plan_memory(c, models).offloads);
  models.gpu = (std::max(offloaded.total(0), offloaded.total(3)) + without) / 2;
  EXPECT_TRUE(plan_memory(c, models).offloads);
  EXPECT_LE(plan_memory(c, models).peak(), models.gpu);
  models.gpu = offloaded.total(3) / 2;
  EXPECT_FALSE(plan_memory(c, models).offloads) << "it would not help";
  models.gpu = 0;
  EXPECT_FALSE(plan_memory(c, models).offloads) << "a CPU";
}

TEST(memory_plan, a_critic_and_a_reference_are_counted) {
  TrainConfig c = small_training();
  c.objective.kl_coeff = 0.1;
  const int64_t n = small().parameter_count();
  EXPECT_EQ(bytes_of(plan_memory(c, models_of(c)), "reference", "generate"), 4 * n);
  c.lora.rank = 4;  // the policy without its adapter
  EXPECT_EQ(bytes_of(plan_memory(c, models_of(c)), "reference", "generate"), 0);
  TrainConfig ppo = make_train_config({{"method.name", std::string("ppo"), "test"}});
  const MemoryPlan plan = plan_memory(ppo, models_of(ppo));
  EXPECT_EQ(bytes_of(plan, "critic", "learn"), 16 * n);
  for (const char* phase : {"load", "generate", "update", "save"}) EXPECT_EQ(bytes_of(plan, "critic", phase), 12 * n);
  PlannedModels of_four = models_of(ppo);
  of_four.ranks = 4;
  const MemoryPlan shared = plan_memory(ppo, of_four);
  EXPECT_EQ(bytes_of(shared, "critic", "learn"), 10 * n) << "moments are shared";
  EXPECT_EQ(bytes_of(shared, "critic", "save"), 6 * n) << "and each writes its own";
}

TEST(memory_plan, a_teacher_is_counted_by_its_own_size_and_scores) {
  TrainConfig c = small_training();
  c.method = make_method("distill");
  PlannedModels m = models_of(c);
  const MemoryPlan alike = plan_memory(c, m);
  EXPECT_EQ(bytes_of(alike, "teacher", "update"), model_memory(small(), inference(c.dtype), nullptr).kept());
  m.teacher.num_hidden_layers = 8;
  m.teacher.vocab_size = 4096;
  const MemoryPlan larger = plan_memory(c, m);
  EXPECT_EQ(bytes_of(larger, "teacher", "generate"), model_memory(m.teacher, inference(c.dtype), nullptr).kept());
  EXPECT_GT(bytes_of(larger, "logits", "score"), bytes_of(alike, "logits", "score"));
  TrainConfig grpo = small_training();
  EXPECT_EQ(bytes_of(plan_memory(grpo, models_of(grpo)), "teacher", "update"), 0);
}

TEST(memory_plan, disk_holds_the_kept_checkpoints_and_one_in_the_making) {
  TrainConfig c = small_training();
  c.train.steps = 100;
  EXPECT_EQ(plan_memory(c, models_of(c)).disk.checkpoints, 1);
  c.train.save_freq = 10;
  c.train.keep = 2;
  const DiskPlan disk = plan_memory(c, models_of(c)).disk;
  EXPECT_EQ(disk.checkpoints, 3);
  EXPECT_EQ(disk.checkpoint, 12 * small().parameter_count() + (1 << 20));
}

TEST(memory_plan, what_lowers_the_peak_is_tried_until_it_fits) {
  TrainConfig c = small_training();
  c.data.train_batch_size = c.update.mini_batch_size = 64;
  const PlannedModels models = models_of(c);
  const int64_t peak = plan_memory(c, models).peak();
  EXPECT_TRUE(remedies(c, models, peak).empty());
  const std::vector<Remedy> one = remedies(c, models, peak - 1);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].setting, "update.recompute = keep_attention");
  EXPECT_LT(one[0].alone, peak);
  const std::vector<Remedy> all = remedies(c, models, 1);  // nothing can fit into a byte
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LE(all[i].together, all[i - 1].together);
  EXPECT_EQ(nearest_fitting(all, 1), "");
  EXPECT_NE(nearest_fitting(one, peak - 1).find("update.recompute = keep_attention (peak "), std::string::npos);
  try {
    check_plan(plan_memory(c, models), c, models, {.memory = peak - 1, .whose = "--memory is"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.word(), "limit");
    EXPECT_EQ(e.exit_code(), kBadInput);
  }
}

}  // namespace

}  // namespace ucas
