#include "train/auxiliary/critic.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "support/engine/threads.h"
#include "train/auxiliary/auxiliary_model.h"

namespace ucas {
namespace {

constexpr int64_t kVocabulary = 40;

class critic : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = str(std::filesystem::temp_directory_path().string(), "/ucas-critic-", ::getpid());
    save("model", true);
    config_ = make_train_config({{"model", path("model"), "test"}, {"method.name", "ppo", "test"}});
    config_.update.micro_batch_tokens = 64;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return path_join(directory_, name); }

  void save(const std::string& name, bool tied, int64_t vocabulary = kVocabulary, int64_t positions = 4096) {
    ModelConfig shape;
    shape.hidden_size = 16;
    shape.num_attention_heads = 2;
    shape.num_key_value_heads = 1;
    shape.head_dim = 8;
    shape.intermediate_size = 24;
    shape.vocab_size = vocabulary;
    shape.max_position_embeddings = positions;
    shape.tie_word_embeddings = tied;
    make_directories(path(name));
    save_model(*make_model(shape, 3, at::kCPU), path(name));
  }

  std::unique_ptr<AuxiliaryModel> made() { return make_critic(config_, at::kCPU); }

  testing::Threads threads_{1};
  std::string directory_;
  TrainConfig config_;
};

// Two prompts, ragged responses, one of them empty.
Batch critic_batch(int64_t per_group = 4) {
  Rng rng(7, 0);
  Batch batch;
  for (int64_t g = 0; g < 2; ++g) {
    Group group{g, static_cast<int64_t>(batch.responses.size()), per_group, {}};
    for (int64_t p = 0; p < 3 + g; ++p) group.prompt.push_back(static_cast<int32_t>(rng.below(kVocabulary)));
    for (int64_t i = 0; i < per_group; ++i) {
      Response o;
      o.first = batch.token_count();
      o.length = g == 1 && i == 0 ? 0 : 1 + rng.below(9);
      o.group = g;
      o.reward = o.score = static_cast<float>(i % 2);
      for (int64_t t = 0; t < o.length; ++t) batch.token.push_back(static_cast<int32_t>(rng.below(kVocabulary)));
      batch.responses.push_back(o);
    }
    batch.groups.push_back(group);
  }
  return batch;
}

std::vector<float> random_floats(size_t n, uint64_t stream) {
  Rng rng(9, stream);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(rng.normal());
  return values;
}

std::vector<int64_t> everyone(const Batch& batch) {
  std::vector<int64_t> all(batch.responses.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<double> critic_gradient(ValueNetwork& network) {
  std::vector<double> all;
  for (NamedTensor& p : network.parameters()) {
    EXPECT_TRUE(p.tensor.grad().defined()) << p.name;
    for (float v : to_host(p.tensor.grad().reshape({-1}))) all.push_back(v);
    p.tensor.mutable_grad() = at::Tensor();
  }
  return all;
}

std::vector<float> flat(const std::vector<NamedTensor>& tensors) {
  std::vector<float> all;
  for (const NamedTensor& t : tensors) {
    for (float v : to_host(t.tensor.reshape({-1}))) all.push_back(v);
  }
  return all;
}

TEST_F(critic, a_value_knows_the_tokens_before_its_own_and_no_others) {
  ValueNetwork network = make_value_network(path("model"), 1, at::kCPU);
  Batch batch = critic_batch();
  std::vector<float> V = batch_values(network, batch, 64);
  const Response& o = batch.responses[1];
  ASSERT_GE(o.length, 3);
  auto first = static_cast<size_t>(o.first);
  batch.token[first + 1] = (batch.token[first + 1] + 1) % kVocabulary;
  std::vector<float> changed = batch_values(network, batch, 64);
  for (size_t t = 0; t < V.size(); ++t) {
    bool after = t >= first + 2 && t < first + static_cast<size_t>(o.length);
    EXPECT_EQ(V[t] != changed[t], after) << t;
  }
  batch.groups[0].prompt[0] = (batch.groups[0].prompt[0] + 1) % kVocabulary;
  EXPECT_NE(batch_values(network, batch, 64)[first], changed[first]);
}

TEST_F(critic, values_do_not_depend_on_micro_batches_bit_for_bit) {
  ValueNetwork network = make_value_network(path("model"), 1, at::kCPU);
  Batch batch = critic_batch(9);
  std::vector<float> V = batch_values(network, batch, 4096);
  for (int64_t budget : {16, 33, 100}) EXPECT_EQ(batch_values(network, batch, budget), V) << budget;
}

TEST_F(critic, the_gradient_is_that_of_the_loss_and_does_not_depend_on_the_cut) {
  ValueNetwork network = make_value_network(path("model"), 1, at::kCPU);
  Batch batch = critic_batch();
  batch.signal("value") = batch_values(network, batch, 64);
  for (float& v : batch.signal("value")) v += 0.3f;  // some values are now beyond the clip
  std::vector<float> returns = random_floats(batch.token.size(), 1);
  auto loss = [&](int64_t budget) {
    return accumulate_value_gradients(network, batch, returns, everyone(batch), 0.2, budget);
  };
  ValueLossMetrics whole = loss(4096);
  std::vector<double> g = critic_gradient(network);
  EXPECT_GT(whole.vf_clipfrac, 0.1);
  EXPECT_LT(whole.vf_clipfrac, 0.9);
  ValueLossMetrics cut = loss(16);
  std::vector<double> g_cut = critic_gradient(network);
  EXPECT_NEAR(whole.vf_loss, cut.vf_loss, 1e-12);
  double size = 0, worst = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    size = std::max(size, std::fabs(g[i]));
    worst = std::max(worst, std::fabs(g[i] - g_cut[i]));
  }
  EXPECT_LT(worst, 1e-5 * size);

  // Along a random direction of all parameters: the slope of the loss is the gradient.
  std::vector<double> direction(g.size());
  Rng rng(5, 5);
  double slope = 0;
  for (size_t i = 0; i < g.size(); ++i) slope += g[i] * (direction[i] = rng.normal());
  auto moved = [&](double h) {
    at::NoGradGuard no_grad;
    size_t i = 0;
    for (NamedTensor& p : network.parameters()) {
      for (int64_t k = 0; k < p.tensor.numel(); ++k) {
        p.tensor.mutable_data_ptr<float>()[k] += static_cast<float>(h * direction[i++]);
      }
    }
  };
  const double h = 2e-4;
  moved(h);
  double up = loss(4096).vf_loss;
  moved(-2 * h);
  double down = loss(4096).vf_loss;
  EXPECT_NEAR((up - down) / (2 * h), slope, 0.02 * std::fabs(slope) + 1e-3);
}

TEST_F(critic, shares_hold_every_response_once_and_mix_prompts) {
  Batch batch = critic_batch(50);  // 100 responses, one empty
  auto shares = critic_shares(batch, 12, 99);
  ASSERT_EQ(shares.size(), 12u);
  std::set<int64_t> seen;
  for (const auto& share : shares) {
    EXPECT_GE(share.size(), 8u);
    EXPECT_LE(share.size(), 9u);
    std::set<int64_t> prompts;
    for (int64_t i : share) {
      EXPECT_GT(batch.responses[static_cast<size_t>(i)].length, 0);
      EXPECT_TRUE(seen.insert(i).second);
      prompts.insert(batch.responses[static_cast<size_t>(i)].group);
    }
    EXPECT_EQ(prompts.size(), 2u);
  }
  EXPECT_EQ(seen.size(), 99u);
  EXPECT_EQ(critic_shares(batch, 12, 99), shares);
  EXPECT_NE(critic_shares(batch, 12, 100), shares);
  EXPECT_EQ(critic_shares(critic_batch(2), 12, 99).size(), 3u);  // fewer responses than updates
}

TEST_F(critic, learns_what_the_rewards_were) {
  apply(config_,
        {{"method.critic.optimizer.lr", 3e-3, "test"}, {"method.critic.optimizer.warmup_steps", int64_t{0}, "test"}});
  auto auxiliary = made();
  double first = 0, last = 0;
  for (int64_t step = 1; step <= 30; ++step) {
    Batch batch = critic_batch();
    StepMetrics m;
    auxiliary->prepare(batch, {step, 30, 0}, m);
    ASSERT_EQ(batch.signal("value").size(), batch.token.size());
    auxiliary->learn(batch, {step, 30, static_cast<uint64_t>(step)}, m);
    if (step == 1) first = m.get(metric::critic_vf_loss);
    last = m.get(metric::critic_vf_loss);
    for (const Metric* each : {&metric::critic_values.mean, &metric::critic_returns.max, &metric::critic_vf_clipfrac,
                               &metric::critic_vpred_mean, &metric::critic_vf_explained_var, &metric::critic_grad_norm,
                               &metric::timing_values, &metric::timing_update_critic}) {
      EXPECT_TRUE(std::isfinite(m.get(*each))) << each->key;
    }
    EXPECT_EQ(m.get(metric::critic_lr), 3e-3);
  }
  EXPECT_GT(first, 0.15);
  EXPECT_LT(last, 0.3 * first);
  EXPECT_EQ(auxiliary->optimizer()->steps(), 30 * 7);  // seven responses with tokens, so seven of twelve shares
}

TEST_F(critic, goes_on_from_its_saved_state_bit_for_bit) {
  auto step = [&](AuxiliaryModel& auxiliary, int64_t number) {
    Batch batch = critic_batch();
    StepMetrics m;
    auxiliary.prepare(batch, {number, 10, 0}, m);
    auxiliary.learn(batch, {number, 10, static_cast<uint64_t>(number)}, m);
  };
  auto whole = made(), resumed = made();
  step(*whole, 51);  // beyond the warm-up
  {
    at::NoGradGuard no_grad;
    std::vector<NamedTensor> to = resumed->weights(), from = whole->weights();
    for (size_t i = 0; i < to.size(); ++i) to[i].tensor.copy_(from[i].tensor);
    to = resumed->optimizer()->state(), from = whole->optimizer()->state();
    for (size_t i = 0; i < to.size(); ++i) to[i].tensor.copy_(from[i].tensor);
    resumed->optimizer()->set_steps(whole->optimizer()->steps());
    resumed->restore(whole->state());
  }
  step(*whole, 52);
  step(*resumed, 52);
  EXPECT_EQ(flat(whole->weights()), flat(resumed->weights()));
  EXPECT_EQ(flat(whole->optimizer()->state()), flat(resumed->optimizer()->state()));
  EXPECT_EQ(whole->state(), resumed->state());
}

TEST_F(critic, its_head_is_small_and_a_function_of_the_seed) {
  ValueNetwork a = make_value_network(path("model"), 1, at::kCPU), b = make_value_network(path("model"), 1, at::kCPU),
               c = make_value_network(path("model"), 2, at::kCPU);
  EXPECT_EQ(to_host(a.head), to_host(b.head));
  EXPECT_NE(to_host(a.head), to_host(c.head));
  double squares = 0;
  for (float w : to_host(a.head)) squares += static_cast<double>(w) * w;
  EXPECT_NEAR(std::sqrt(squares / 16), 1.0 / 17, 0.03);
}

TEST_F(critic, an_lm_head_of_its_own_is_not_trained_or_saved) {
  save("untied", false);
  config_.model = path("untied");
  for (const NamedTensor& p : made()->weights()) EXPECT_NE(p.name, "lm_head.weight");
  config_.model = path("model");
  bool embedding = false;
  for (const NamedTensor& p : made()->weights()) embedding = embedding || p.name == "model.embed_tokens.weight";
  EXPECT_TRUE(embedding);
}

TEST_F(critic, a_gradient_that_is_not_finite_changes_nothing_and_three_in_a_row_stop_the_run) {
  std::vector<std::string> warnings;
  auto before = set_log_sink([&](LogLevel, const std::string& message) { warnings.push_back(message); });
  auto auxiliary = made();
  Batch batch = critic_batch(2);  // three responses with tokens: three updates
  StepMetrics m;
  auxiliary->prepare(batch, {60, 100, 0}, m);
  std::vector<float> weights = flat(auxiliary->weights());
  batch.responses[0].reward = INFINITY;
  auxiliary->learn(batch, {60, 100, 0}, m);
  EXPECT_EQ(auxiliary->state().at("skipped_updates"), 1);
  EXPECT_EQ(auxiliary->optimizer()->steps(), 2);
  for (float w : flat(auxiliary->weights())) ASSERT_TRUE(std::isfinite(w));
  weights = flat(auxiliary->weights());
  for (Response& o : batch.responses) o.reward = NAN;
  try {
    auxiliary->learn(batch, {61, 100, 0}, m);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "numeric");
    EXPECT_EQ(error.exit_code(), kNumeric);
  }
  EXPECT_EQ(flat(auxiliary->weights()), weights);
  set_log_sink(before);
  EXPECT_GE(warnings.size(), 4u);
}

TEST_F(critic, a_checkpoint_that_cannot_read_the_policys_tokens_is_refused) {
  auto refusal = [&](const std::string& name) {
    apply(config_, {{"method.critic.model", path(name), "test"}});
    try {
      made();
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "config");
      return std::string(error.what());
    }
    return std::string();
  };
  save("small", true, kVocabulary - 1);
  EXPECT_NE(refusal("small").find("39 token embeddings, the policy 40"), std::string::npos);
  save("short", true, kVocabulary, 64);
  EXPECT_NE(refusal("short").find("max_position_embeddings = 64"), std::string::npos);
  save("larger", true, kVocabulary + 6);
  EXPECT_EQ(refusal("larger"), "");
}

TEST_F(critic, a_method_without_one_gets_none) {
  TrainConfig config = make_train_config({{"model", path("model"), "test"}, {"method.name", "grpo", "test"}});
  EXPECT_EQ(make_critic(config, at::kCPU), nullptr);
}

}  // namespace
}  // namespace ucas
