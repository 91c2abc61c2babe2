// Sampling by a server of this process (tests/support/engine/fake_server.h): what is believed of its replies and of its
// weights.
#include "rollout/served_rollout.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "records/run/steps.h"
#include "rollout/policy.h"
#include "support/engine/fake_server.h"
#include "support/engine/rollout_requests.h"
#include "support/engine/tiny_training.h"
#include "support/patience.h"
#include "train/signals/logprobs.h"

namespace ucas {
namespace {

using testing::FakeServer;
using testing::TinyTraining;

class served_rollout : public ::testing::Test {
 protected:
  served_rollout()
      : server_(tiny_.model()),
        policy_(open_policy(tiny_.model(), at::kCPU, {})),
        prompts_(testing::random_prompts(3, 6, policy_.model->config().vocab_size)) {
    config_.servers = {server_.address()};
    config_.response_length = 8;
    config_.retries = 3;
    stop_ids_ = policy_.model->config().eos_token_id;
    make();
  }
  void make() { served_ = std::make_unique<ServedRollout>(config_, *policy_.model, prompts_[0], stop_ids_, 4096); }
  std::vector<Episode> sample() {
    const std::vector<PromptJob> jobs = testing::jobs_of(prompts_, 4);
    RolloutRequest request = testing::request_of(jobs, {.max_tokens = config_.response_length}, stop_ids_);
    return served_->run(request);
  }
  void hand_over(int64_t weights) { served_->hand_over(tiny_.path_of("weights"), weights, tiny_.model()); }
  void move_weights() {
    const at::NoGradGuard no_grad;
    for (const NamedTensor& p : policy_.model->parameters()) p.tensor.detach().mul_(1.2);
    policy_.model->refresh();
  }
  std::string refusal(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::server);
      EXPECT_EQ(error.exit_code(), kInterrupted) << "the run can go on later";
      return error.what();
    }
    return "";
  }

  TinyTraining tiny_;
  FakeServer server_;
  Policy policy_;
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<int32_t> stop_ids_;
  TrainRolloutConfig config_;
  std::unique_ptr<ServedRollout> served_;
};

TEST_F(served_rollout, responses_come_in_order_with_the_log_probs_that_our_model_gives_them) {
  const std::vector<Episode> all = sample();
  ASSERT_EQ(all.size(), 12u);
  Batch batch;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].job, static_cast<int64_t>(i) / 4);
    EXPECT_EQ(all[i].sample, i % 4);
    if (i % 4 == 0) batch.groups.push_back({.first = static_cast<int64_t>(i), .count = 4, .prompt = prompts_[i / 4]});
    batch.responses.push_back({.first = batch.token_count(),
                               .length = static_cast<int64_t>(all[i].token.size()),
                               .group = static_cast<int64_t>(i) / 4});
    batch.token.insert(batch.token.end(), all[i].token.begin(), all[i].token.end());
  }
  const std::vector<float> ours = compute_logprobs(*policy_.model, batch, 1, 4096);
  size_t t = 0;
  for (const Episode& s : all) {
    for (float theirs : s.logprob) EXPECT_NEAR(theirs, ours[t++], 1e-5);
  }
  EXPECT_EQ(served_->tried_again(), 0);
}

TEST_F(served_rollout, the_same_request_gives_the_same_responses_and_each_sample_its_own) {
  const std::vector<Episode> first = sample(), again = sample();
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].token, again[i].token);
  EXPECT_TRUE(std::ranges::any_of(first, [&](const Episode& s) { return s.token != first[0].token; }));
}

// Each waits until the other one was called, too.
TEST_F(served_rollout, all_servers_take_weights_at_the_same_time) {
  FakeServer other(tiny_.model());
  std::atomic<int> called{0};
  for (FakeServer* server : {&server_, &other}) {
    server->on_weights = [&] {
      ++called;
      testing::wait_until([&] { return called >= 2; });
    };
  }
  config_.servers.push_back(other.address());
  make();
  hand_over(0);
  EXPECT_EQ(server_.versions(), std::vector<std::string>{"0"});
  EXPECT_EQ(other.versions(), std::vector<std::string>{"0"});
  EXPECT_LT(served_->known_difference(), 1e-5);
}

TEST_F(served_rollout, a_damaged_or_refused_reply_is_asked_for_again_and_counted) {
  server_.damaged = 2;
  server_.refused = 1;
  EXPECT_EQ(sample().size(), 12u);
  EXPECT_EQ(served_->tried_again(), 3);
  EXPECT_EQ(server_.sampled(), 14) << "12 responses and the two that arrived damaged";
}

TEST_F(served_rollout, a_token_that_the_model_does_not_have_is_never_believed) {
  server_.outside = 1 << 20;
  config_.retries = 1;
  make();
  const std::string said = refusal([&] { sample(); });
  EXPECT_NE(said.find("is outside of the vocabulary"), std::string::npos) << said;
  EXPECT_NE(said.find("responses are missing"), std::string::npos) << said;
}

TEST_F(served_rollout, weights_that_are_handed_over_are_those_that_sample_from_then_on) {
  hand_over(0);
  move_weights();
  hand_over(1);
  EXPECT_EQ(server_.versions(), (std::vector<std::string>{"0", "1"}));
  EXPECT_LT(served_->known_difference(), 1e-5);
  EXPECT_EQ(sample().size(), 12u);
  EXPECT_EQ(list_directory(tiny_.path_of("weights")), (std::vector<std::string>{"step-1"})) << "older ones are removed";
}

TEST_F(served_rollout, an_acknowledged_hand_over_that_changed_nothing_is_found_out) {
  hand_over(0);
  server_.keeps_weights = true;
  move_weights();
  const std::string said = refusal([&] { hand_over(1); });
  EXPECT_NE(said.find("acknowledged the weights of step 1"), std::string::npos) << said;
  EXPECT_NE(said.find("were not delivered"), std::string::npos) << said;
}

TEST_F(served_rollout, a_training_hands_its_weights_over_before_each_step) {
  const std::string run = tiny_.out();
  EXPECT_EQ(testing::train(tiny_.config("rollout.servers = [\"" + server_.address() + "\"]\nrollout.retries = 3"), run),
            kDone);
  EXPECT_EQ(server_.versions(), (std::vector<std::string>{"0", "1", "2"}));
  std::vector<std::string> remarks;
  const StepTable steps = read_steps(path_join(run, "steps.jsonl"), remarks);
  EXPECT_EQ(*steps.find(metric::rollout_retries.key), (std::vector<double>{0, 0, 0}));
  EXPECT_LT(steps.last(metric::rollout_weight_sync_diff.key), 1e-5);
  EXPECT_LT(steps.last(metric::rollout_logprob_diff_max.key), 1e-4);
}

}  // namespace
}  // namespace ucas
