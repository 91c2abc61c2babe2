#include "train/sft/sft.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "base/terminal/log.h"
#include "train/optimizer/schedule.h"
#include "train/signals/balanced_pack.h"

namespace ucas {
namespace {

constexpr int64_t kVocab = 13;
constexpr int32_t kEnd = 12;

std::unique_ptr<Model> small_model(uint64_t seed = 1) {
  ModelConfig config;
  config.hidden_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 8;
  config.intermediate_size = 24;
  config.vocab_size = kVocab;
  return make_model(config, seed, at::kCPU);
}

// "Say the prompt backwards."
std::vector<SftExample> reversals(int64_t count, uint64_t seed) {
  std::vector<SftExample> examples;
  Rng rng(seed, 0);
  for (int64_t i = 0; i < count; ++i) {
    SftExample e;
    int64_t length = 2 + rng.below(3);
    for (int64_t t = 0; t < length; ++t) e.prompt.push_back(static_cast<int32_t>(rng.below(6)));
    e.response.assign(e.prompt.rbegin(), e.prompt.rend());
    e.prompt.push_back(11);
    e.response.push_back(kEnd);
    examples.push_back(e);
  }
  return examples;
}

SftConfig small_config() {
  SftConfig config;
  config.batch_size = 16;
  config.optimizer.lr = 1e-2;
  config.optimizer.schedule = Schedule::constant;
  return config;
}

std::vector<float> all_weights(Model& model) {
  std::vector<float> values;
  for (const NamedTensor& p : model.parameters()) {
    const float* data = p.tensor.const_data_ptr<float>();
    values.insert(values.end(), data, data + p.tensor.numel());
  }
  return values;
}

// Token mean of -log p over responses only, from whole logits in double.
double reference_loss(Model& model, const std::vector<SftExample>& examples) {
  at::NoGradGuard no_grad;
  double sum = 0;
  int64_t tokens = 0;
  for (const SftExample& e : examples) {
    std::vector<int32_t> all = e.prompt;
    all.insert(all.end(), e.response.begin(), e.response.end());
    Packed packed;
    packed.append(all);
    at::Tensor logits = model.head().logits(model.hidden(packed));
    for (size_t t = e.prompt.size(); t < all.size(); ++t, ++tokens) {
      double total = 0;
      auto at = [&](int64_t v) { return logits[static_cast<int64_t>(t) - 1][v].item<double>(); };
      for (int64_t v = 0; v < kVocab; ++v) total += std::exp(at(v));
      sum += std::log(total) - at(all[t]);
    }
  }
  return sum / static_cast<double>(tokens);
}

class sft : public ::testing::Test {
 protected:
  void SetUp() override {
    threads_ = at::get_num_threads();
    at::set_num_threads(1);  // a second one only waits on a model this small
    before_ = set_log_sink([this](LogLevel, const std::string& message) { messages_.push_back(message); });
  }
  void TearDown() override {
    set_log_sink(before_);
    at::set_num_threads(threads_);
  }
  int threads_ = 1;
  LogSink before_;
  std::vector<std::string> messages_;
};

TEST_F(sft, the_loss_is_the_token_mean_over_responses_and_their_ends) {
  auto model = small_model();
  auto examples = reversals(16, 5);
  double expected = reference_loss(*model, examples);
  double seen = 0;
  int64_t tokens = 0;
  train_sft(*model, {{"all", examples, 1}}, small_config(), [&](const SftStep& s) {
    seen = s.loss;
    tokens = s.tokens;
  });
  EXPECT_NEAR(seen, expected, 1e-5);
  int64_t responses = 0;
  for (const SftExample& e : examples) responses += static_cast<int64_t>(e.response.size());
  EXPECT_EQ(tokens, responses);
}

TEST_F(sft, the_update_does_not_depend_on_the_micro_batch) {
  std::vector<double> norms;
  for (int64_t budget : {1, 7, 20, 100000}) {
    auto model = small_model();
    SftConfig config = small_config();
    config.max_tokens = budget;
    double norm = 0;
    train_sft(*model, {{"all", reversals(40, 5), 1}}, config, [&](const SftStep& s) { norm = s.grad_norm; });
    norms.push_back(norm);
  }
  for (size_t k = 1; k < norms.size(); ++k) EXPECT_NEAR(norms[k] / norms[0], 1, 1e-5);
}

TEST_F(sft, it_learns_to_reverse) {
  auto model = small_model();
  SftConfig config = small_config();
  config.batch_size = 32;
  config.optimizer.warmup_steps = 10;
  config.optimizer.beta2 = 0.98;
  SftResult result = train_sft(*model, {{"all", reversals(500, 2), 150}}, config, nullptr);
  EXPECT_GT(result.first_loss, 2.0);
  EXPECT_LT(result.last_loss, 0.7 * result.first_loss);
  EXPECT_LT(reference_loss(*model, reversals(50, 77)), 0.7 * result.first_loss);
}

TEST_F(sft, the_same_seed_gives_the_same_bits_and_another_does_not) {
  auto run = [](int64_t seed) {
    auto model = small_model();
    SftConfig config = small_config();
    config.seed = seed;
    train_sft(*model, {{"all", reversals(100, 3), 5}}, config, nullptr);
    return all_weights(*model);
  };
  EXPECT_EQ(run(4), run(4));
  EXPECT_NE(run(4), run(5));
}

TEST_F(sft, phases_follow_each_other_under_one_schedule) {
  auto model = small_model();
  SftConfig config = small_config();
  config.optimizer.schedule = Schedule::cosine;
  config.optimizer.warmup_steps = 2;
  std::vector<SftStep> steps;
  auto examples = reversals(64, 1);
  SftResult result = train_sft(*model, {{"worked", examples, 6}, {"mixed", examples, 3}}, config,
                               [&](const SftStep& s) { steps.push_back(s); });
  EXPECT_EQ(result.steps, 9);
  ASSERT_EQ(steps.size(), 9u);
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(steps[static_cast<size_t>(i)].phase, i < 6 ? 0 : 1);
    EXPECT_EQ(steps[static_cast<size_t>(i)].lr, update_lr(config.optimizer, i, 9));
  }
}

TEST_F(sft, an_epoch_shows_every_example_once) {
  auto model = small_model();
  SftConfig config = small_config();
  config.batch_size = 10;
  std::vector<SftExample> examples;  // distinguished by their lengths
  for (int n = 1; n <= 30; ++n) examples.push_back({{1}, std::vector<int32_t>(static_cast<size_t>(n), 2)});
  int64_t tokens = 0;
  std::set<int64_t> sums;
  train_sft(*model, {{"all", examples, 6}}, config, [&](const SftStep& s) {
    tokens += s.tokens;
    sums.insert(s.tokens);
    if (s.step % 3 == 0) {
      EXPECT_EQ(tokens, s.step / 3 * 30 * 31 / 2);
    }
  });
  EXPECT_GT(sums.size(), 3u);  // the second epoch has another order
}

TEST_F(sft, three_gradients_in_a_row_that_are_not_finite_stop_it) {
  auto model = small_model();
  model->parameters()[0].tensor.detach().fill_(std::numeric_limits<float>::quiet_NaN());
  int64_t seen = 0;
  try {
    train_sft(*model, {{"all", reversals(16, 1), 10}}, small_config(), [&](const SftStep& s) {
      ++seen;
      EXPECT_FALSE(s.applied);
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "numeric");
    EXPECT_EQ(error.exit_code(), kNumeric);
  }
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace ucas
