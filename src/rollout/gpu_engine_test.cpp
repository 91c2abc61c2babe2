// The rollout engine over a model as a GPU's kernels run it (model/backend/gpu/gpu_decoder.cpp): several tokens a call,
// blocks of keys that responses share, draws where the logits lie.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rollout/rollouter.h"
#include "support/engine/gpu_views.h"
#include "support/engine/rollout_requests.h"
#include "support/engine/small_models.h"

namespace ucas {
namespace {

using testing::gpu_views;
using testing::GpuView;
using testing::jobs_of;
using testing::random_prompts;
using testing::request_of;

std::vector<GpuView> task_views() {
  return gpu_views([](at::Device device) {
    ModelConfig config;
    config.max_position_embeddings = 1024;
    return make_model(config, 3, device, inference(Dtype::bf16));
  });
}

// How far the sampler's log-probs are from the trainer's, at most.
double mismatch_of(Model& model, const std::vector<std::vector<int32_t>>& prompts,
                   const std::vector<Episode>& responses) {
  const at::NoGradGuard no_grad;
  double most = 0;
  for (const Episode& r : responses) {
    Packed packed;
    packed.append(prompts[static_cast<size_t>(r.job)], r.token);
    const auto count = static_cast<int64_t>(r.token.size()), first = packed.begin.back() - count - 1;
    const HeadStats stats = model.head().stats(model.hidden(packed).narrow(0, first, count), r.token, 1.0);
    const at::Tensor logprob = stats.logprob.cpu(), entropy = stats.entropy.cpu();
    for (int64_t t = 0; t < count; ++t) {
      most = std::max(most, std::abs(static_cast<double>(logprob.data_ptr<float>()[t]) - r.logprob[t]));
      most = std::max(most, std::abs(static_cast<double>(entropy.data_ptr<float>()[t]) - r.entropy[t]));
    }
  }
  return most;
}

TEST(gpu_engine, the_trainer_finds_the_samplers_figures_within_bf16) {
  for (const GpuView& view : task_views()) {
    // Prompts within one block of keys and across two of them, whose whole blocks their responses share.
    auto prompts = random_prompts(5, 30, 58);
    prompts.push_back(std::vector<int32_t>(300, 7));
    prompts.push_back(std::vector<int32_t>(256, 9));
    const auto jobs = jobs_of(prompts, 3);
    const auto responses = make_engine(*view.model, {.max_slots = 8})->run(request_of(jobs, {.max_tokens = 20}));
    ASSERT_EQ(responses.size(), 21u);
    const double most = mismatch_of(*view.model, prompts, responses);
    std::printf("%s: sampler and trainer differ by %.4f at most\n", view.name, most);
    EXPECT_LE(most, 0.05) << view.name;
  }
}

// Blocks of 256 keys: the inserts cross one's end.
TEST(gpu_engine, an_insert_is_context_of_what_follows) {
  const at::NoGradGuard no_grad;
  for (const GpuView& view : task_views()) {
    const std::vector<std::vector<int32_t>> prompts = {std::vector<int32_t>(20, 7), std::vector<int32_t>(250, 9)};
    const auto jobs = jobs_of(prompts, 2);
    RolloutRequest request = request_of(jobs, {.max_tokens = 20}, {});
    request.environment = [](const Episode& s) {
      EnvironmentReply reply;
      if (s.token.size() == 3 || s.token.size() == 6)
        reply = {.kind = EnvironmentReply::Kind::insert, .token = {4, 5, 6, 4}, .text = "4564"};
      return reply;
    };
    const auto responses = make_engine(*view.model, {.max_slots = 3})->run(request);
    ASSERT_EQ(responses.size(), 4u);
    for (const Episode& r : responses) {
      ASSERT_EQ(r.token.size(), 12u) << "20 with two inserts of four";
      ASSERT_EQ(r.inserts, (std::vector<Insert>{{3, {4, 5, 6, 4}, "4564"}, {6, {4, 5, 6, 4}, "4564"}}));
      Packed packed;
      packed.append(prompts[static_cast<size_t>(r.job)], with_inserts(r.token, r.inserts));
      const at::Tensor hidden = view.model->hidden(packed);
      std::vector<at::Tensor> rows;
      const int64_t first = packed.begin.back() - 20 - 1;
      for (int64_t t = 0; t < 12; ++t) rows.push_back(hidden.select(0, first + t + inserted_before(r.inserts, t)));
      const at::Tensor logprob = view.model->head().stats(at::stack(rows), r.token, 1.0).logprob.cpu();
      for (int64_t t = 0; t < 12; ++t)
        EXPECT_NEAR(logprob.data_ptr<float>()[t], r.logprob[static_cast<size_t>(t)], 0.05) << view.name << " " << t;
    }
  }
}

TEST(gpu_engine, a_response_ends_at_its_stop_or_its_limit_however_many_tokens_a_call_draws) {
  for (const GpuView& view : task_views()) {
    const auto prompts = random_prompts(6, 12, 58);
    const auto jobs = jobs_of(prompts, 4);
    for (const int64_t limit : {1, 7, 8, 9, 21}) {
      for (const Episode& r :
           make_engine(*view.model, {.max_slots = 5})->run(request_of(jobs, {.max_tokens = limit}))) {
        const auto stop = std::find(r.token.begin(), r.token.end(), 0);
        EXPECT_EQ(r.finished, stop != r.token.end());
        EXPECT_EQ(static_cast<int64_t>(r.token.size()), r.finished ? stop - r.token.begin() + 1 : limit) << view.name;
        EXPECT_EQ(r.logprob.size(), r.token.size());
      }
    }
  }
}

// Draws are keyed and the rows of the emulation do not depend on each other; a GPU's library may choose another product
// for another number of rows, so there a few tokens may differ.
TEST(gpu_engine, responses_do_not_depend_on_slots) {
  for (const GpuView& view : task_views()) {
    const auto prompts = random_prompts(6, 30, 58);
    const auto jobs = jobs_of(prompts, 4);
    const auto few = make_engine(*view.model, {.max_slots = 3})->run(request_of(jobs, {.max_tokens = 24}));
    const auto many = make_engine(*view.model, {.max_slots = 24})->run(request_of(jobs, {.max_tokens = 24}));
    ASSERT_EQ(few.size(), many.size());
    int64_t differing = 0;
    for (size_t i = 0; i < few.size(); ++i) differing += few[i].token != many[i].token ? 1 : 0;
    std::printf("%s: %ld of %zu responses differ with the number of slots\n", view.name, static_cast<long>(differing),
                few.size());
    EXPECT_LE(differing, view.model->device().is_cpu() ? 0 : 4) << view.name;
  }
}

TEST(gpu_engine, responses_that_find_no_room_wait_and_go_on) {
  for (const GpuView& view : task_views()) {
    const std::vector<std::vector<int32_t>> prompts = {std::vector<int32_t>(250, 7), std::vector<int32_t>(240, 9)};
    const auto jobs = jobs_of(prompts, 3);
    const RolloutRequest request = request_of(jobs, {.max_tokens = 270}, {});  // nothing ends before: three blocks each
    const auto ample = make_engine(*view.model, {.max_slots = 6})->run(request);
    // Room for one response at full length with the prompts: the others that began are evicted.
    const auto tight = make_engine(*view.model, {.max_slots = 6, .cache_tokens = 1})->run(request);
    ASSERT_EQ(tight.size(), ample.size());
    int64_t same = 0, count = 0;
    for (size_t i = 0; i < tight.size(); ++i) {
      ASSERT_EQ(tight[i].token.size(), 270u);
      for (size_t t = 0; t < 270; ++t, ++count) same += tight[i].token[t] == ample[i].token[t] ? 1 : 0;
    }
    std::printf("%s: %ld of %ld tokens as with ample room\n", view.name, static_cast<long>(same),
                static_cast<long>(count));
    EXPECT_GT(same, count / 2) << view.name;  // recomputed keys differ in last bits, and so may a sample
    EXPECT_LE(mismatch_of(*view.model, prompts, tight), 0.05) << view.name;
  }
}

TEST(gpu_engine, greedy_jobs_and_truncated_sampling_are_served_too) {
  for (const GpuView& view : task_views()) {
    const auto prompts = random_prompts(4, 20, 58);
    auto jobs = jobs_of(prompts, 2);
    jobs[1].greedy = true;
    const auto mixed = make_engine(*view.model, {})->run(request_of(jobs, {.temperature = 1.0, .max_tokens = 12}));
    EXPECT_EQ(mixed[2].token, mixed[3].token) << "both are the most probable tokens";
    const auto all = make_engine(*view.model, {})->run(request_of(jobs, {.temperature = 0, .max_tokens = 12}));
    EXPECT_EQ(all[2].token, mixed[2].token) << view.name;
    EXPECT_EQ(all[0].token, all[1].token) << view.name;
    const auto cut =
        make_engine(*view.model, {})->run(request_of(jobs, {.temperature = 1.0, .top_k = 1, .max_tokens = 12}));
    EXPECT_EQ(cut[0].token, all[0].token) << view.name;
  }
}

}  // namespace
}  // namespace ucas
