#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/rng.h"
#include "base/str.h"
#include "support/engine/small_models.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/signals/logprobs.h"

namespace ucas {
namespace {

class reference : public ::testing::Test {
 protected:
  void SetUp() override {
    policy_ = make_model(testing::small_shape(), 3, at::kCPU);
    path_ = (std::filesystem::temp_directory_path() / str("ucas-reference-", ::getpid())).string();
    std::filesystem::create_directories(path_);
    save_model(*policy_, path_);
    config_ = make_train_config({});
    config_.model = path_;
    config_.rollout.temperature = 0.7;
    config_.update.micro_batch_tokens = 64;
    Rng rng(7, 0);
    batch_ = testing::ragged_batch(rng, 3, 4);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  void policy_signals() { compute_signals(*policy_, batch_, 0.7, 64); }
  void move_policy() {
    Rng rng(5, 1);
    for (NamedTensor& p : policy_->parameters()) {
      at::Tensor data = p.tensor.detach();
      for (int64_t i = 0; i < data.numel(); ++i)
        data.mutable_data_ptr<float>()[i] += static_cast<float>(0.02 * rng.normal());
    }
  }
  StepMetrics prepare(AuxiliaryModel& auxiliary, Batch& batch) {
    StepMetrics m;
    auxiliary.prepare(batch, {1, 10, 0}, m);
    return m;
  }

  std::string path_;
  TrainConfig config_;
  std::unique_ptr<Model> policy_;
  Batch batch_;
};

TEST_F(reference, is_made_only_where_something_asks_for_it) {
  EXPECT_EQ(make_reference(config_, at::kCPU), nullptr);
  config_.objective.kl_coeff = 0.1;
  EXPECT_NE(make_reference(config_, at::kCPU), nullptr);
  config_.objective.kl_coeff = 0;
  config_.reward.kl_coeff = 0.1;
  EXPECT_NE(make_reference(config_, at::kCPU), nullptr);
}

TEST_F(reference, equals_the_policy_bit_for_bit_before_the_first_update_and_never_moves) {
  config_.objective.kl_coeff = 0.1;
  auto auxiliary = make_reference(config_, at::kCPU);
  policy_signals();
  StepMetrics m = prepare(*auxiliary, batch_);
  EXPECT_EQ(batch_.signal("ref_logprob"), batch_.old_logprob);
  EXPECT_GE(m.get(metric::timing_ref), 0);
  EXPECT_TRUE(batch_.reward_kl.empty());
  std::vector<float> before = batch_.signal("ref_logprob");
  move_policy();
  policy_signals();
  prepare(*auxiliary, batch_);
  EXPECT_EQ(batch_.signal("ref_logprob"), before);
  EXPECT_NE(batch_.old_logprob, before);
  EXPECT_TRUE(auxiliary->weights().empty());
  EXPECT_EQ(auxiliary->optimizer(), nullptr);
}

// Every second step.
TEST_F(reference, moves_to_the_policy_when_it_is_told_to_and_goes_on_from_what_was_saved) {
  config_.objective.kl_coeff = 0.1;
  config_.reference = {.sync_steps = 2};
  auto auxiliary = make_reference(config_, at::kCPU, policy_.get());
  const auto value = [](const NamedTensor& t) { return t.tensor.detach().const_data_ptr<float>()[5]; };
  const std::vector<NamedTensor> held = auxiliary->weights();
  ASSERT_EQ(held.size(), policy_->parameters().size());
  const float start = value(held[1]);
  move_policy();
  const float moved = value(policy_->parameters()[1]);
  StepMetrics m;
  auxiliary->follow(*policy_, {1, 10, 0}, m);
  EXPECT_EQ(value(held[1]), start);
  EXPECT_EQ(m.get(metric::reference_synced_at), 0);
  auxiliary->follow(*policy_, {2, 10, 0}, m);
  EXPECT_EQ(value(held[1]), moved);
  EXPECT_EQ(m.get(metric::reference_synced_at), 2);

  auto reset = make_reference(config_, at::kCPU, policy_.get());
  reset->follow(*policy_, {4, 10, 0}, m);
  policy_signals();
  prepare(*reset, batch_);
  EXPECT_EQ(batch_.signal("ref_logprob"), batch_.old_logprob) << "the policy as it is";
  EXPECT_EQ(reset->state().at("synced_at"), 4);
}

TEST_F(reference, takes_the_kl_off_the_reward_and_leaves_the_score) {
  config_.reward.kl_coeff = 0.5;
  auto auxiliary = make_reference(config_, at::kCPU);
  policy_signals();
  StepMetrics first = prepare(*auxiliary, batch_);
  EXPECT_EQ(first.get(metric::actor_reward_kl_penalty), 0);
  for (const Response& o : batch_.responses) EXPECT_EQ(o.reward, o.score);
  move_policy();
  policy_signals();
  StepMetrics m = prepare(*auxiliary, batch_);
  EXPECT_EQ(m.get(metric::actor_reward_kl_penalty_coeff), 0.5);
  for (const Response& o : batch_.responses) {
    double sum = 0;
    for (int64_t t = o.first; t < o.first + o.length; ++t) {
      auto i = static_cast<size_t>(t);
      sum += 0.5 * (static_cast<double>(batch_.old_logprob[i]) - batch_.signal("ref_logprob")[i]);
    }
    EXPECT_NEAR(o.kl_penalty, sum, 1e-5);
    EXPECT_FLOAT_EQ(o.reward + o.kl_penalty, o.score);
  }
}

}  // namespace
}  // namespace ucas
