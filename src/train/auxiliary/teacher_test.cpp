// The teacher next to the policy: its figures, and which checkpoints it refuses.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/engine/small_models.h"
#include "support/temporary_directory.h"
#include "text/tokenizer/added_tokens.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/signals/logprobs.h"

namespace ucas {
namespace {

constexpr int64_t kIds = 40;

class teacher : public ::testing::Test {
 protected:
  void SetUp() override {
    policy_ = make_model(testing::small_shape(kIds), 3, at::kCPU);
    write("policy", "word", *policy_);
    other_ = make_model(testing::small_shape(kIds), 4, at::kCPU);
    write("teacher", "word", *other_);
    Rng rng(7, 0);
    batch_ = testing::ragged_batch(rng, 3, 4);
  }
  std::string at_path(const std::string& name) const { return path_join(directory_.path(), name); }
  void write(const std::string& name, const std::string& word, Model& model) const {
    make_directories(at_path(name));
    std::vector<std::string> words;
    for (int64_t i = 0; i < kIds - 2; ++i) words.push_back(word + std::string(static_cast<size_t>(i + 1), 'x'));
    write_word_level_tokenizer(at_path(name), words, "<eos>", "<pad>");
    save_model(model, at_path(name));
  }
  std::unique_ptr<AuxiliaryModel> make(const std::string& name, const std::string& method = "distill") const {
    std::vector<Setting> settings = {{"method.name", method, "test", true}, {"model", at_path("policy"), "test", true}};
    if (method == "distill") settings.push_back({"method.teacher", at_path(name), "test", true});
    TrainConfig config = make_train_config(settings);
    config.rollout.temperature = 0.7;
    config.update.micro_batch_tokens = 64;
    return make_teacher(config, at::kCPU, policy_->config());
  }
  std::string refusal(const std::string& name) const {
    try {
      make(name);
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "config");
      return error.what();
    }
    return "";
  }

  testing::TemporaryDirectory directory_;
  std::unique_ptr<Model> policy_, other_;
  Batch batch_;
};

TEST_F(teacher, says_what_its_checkpoint_says_at_the_sampling_temperature_and_learns_nothing) {
  auto auxiliary = make("teacher");
  StepMetrics m;
  auxiliary->prepare(batch_, {1, 10, 0}, m);
  EXPECT_EQ(batch_.signal("teacher_logprob"), compute_logprobs(*other_, batch_, 0.7, 64));
  EXPECT_NE(batch_.signal("teacher_logprob"), compute_logprobs(*other_, batch_, 1.0, 64));
  EXPECT_GE(m.get(metric::timing_teacher), 0);
  EXPECT_TRUE(auxiliary->weights().empty());
  EXPECT_EQ(auxiliary->optimizer(), nullptr);
  EXPECT_TRUE(auxiliary->state().empty());
}

TEST_F(teacher, is_made_only_where_the_method_asks_for_it) { EXPECT_EQ(make("", "grpo"), nullptr); }

TEST_F(teacher, a_policy_that_is_its_own_teacher_has_no_gap) {
  auto auxiliary = make("policy");
  StepMetrics m;
  auxiliary->prepare(batch_, {1, 10, 0}, m);
  compute_signals(*policy_, batch_, 0.7, 64);
  EXPECT_EQ(batch_.signal("teacher_logprob"), batch_.old_logprob);
}

TEST_F(teacher, of_other_tokens_is_refused_with_the_first_that_differs) {
  write("foreign", "term", *other_);
  const std::string said = refusal("foreign");
  EXPECT_NE(said.find("method.teacher = "), std::string::npos) << said;
  EXPECT_NE(said.find("\"termx\""), std::string::npos) << said;
  EXPECT_NE(said.find("the teacher must read the policy's tokens"), std::string::npos) << said;
}

TEST_F(teacher, of_a_narrower_vocabulary_is_refused) {
  policy_ = make_model(testing::small_shape(kIds + 8), 3, at::kCPU);
  EXPECT_NE(refusal("teacher").find("has 40 rows, the policy's 48"), std::string::npos);
}

}  // namespace
}  // namespace ucas
