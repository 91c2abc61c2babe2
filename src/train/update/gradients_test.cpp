#include "train/update/gradients.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/rng.h"
#include "methods/registry.h"
#include "rollout/config.h"
#include "support/engine/small_models.h"
#include "train/collect/config.h"
#include "train/signals/logprobs.h"

namespace ucas {
namespace {

using testing::small_shape;

// One response is empty.
Batch random_batch(Model& model, int64_t groups, int64_t per_group) {
  Rng rng(7, 0);
  Batch batch = testing::ragged_batch(rng, groups, per_group);
  compute_signals(model, batch, 1.0, 64);
  batch.rollout_logprob = batch.old_logprob;
  // Off-policy, so that ratio, clip and dual clip all matter, and with all that any method may read.
  for (float& lp : batch.old_logprob) lp += static_cast<float>(0.5 * rng.normal());
  for (const char* signal : {"ref_logprob", "value", "prm_logratio", "teacher_logprob", "min_p_logprob"}) {
    for (float lp : batch.old_logprob) batch.signal(signal).push_back(lp + static_cast<float>(0.1 * rng.normal()));
  }
  return batch;
}

std::vector<double> gradient(Model& model) {
  std::vector<double> all;
  for (NamedTensor& p : model.parameters()) {
    at::Tensor g = p.tensor.grad().defined() ? p.tensor.grad() : at::zeros(p.tensor.sizes());
    for (float v : to_host(g.reshape({-1}))) all.push_back(v);
    p.tensor.mutable_grad() = at::Tensor();
  }
  return all;
}

double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

void expect_exact_accumulation(const Method& method, const ObjectiveConfig& config,
                               const std::vector<int64_t>& budgets = {1, 30, 90}) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 4, 4);
  std::vector<float> advantage(static_cast<size_t>(batch.token_count()));
  Recording recording;
  method.advantages(batch, advantage, recording);
  std::vector<int64_t> responses(batch.responses.size());
  std::iota(responses.begin(), responses.end(), 0);
  std::vector<uint8_t> step_mark = select_in_step(method, config, batch, advantage);
  auto run = [&](int64_t budget) {
    LossMetrics metrics =
        accumulate_gradients(*model, {batch, advantage, responses, method, config, 1.0, 16, budget, 9, step_mark});
    return std::pair(gradient(*model), metrics.pg_loss);
  };
  auto [whole, loss] = run(1 << 20);
  double norm = std::sqrt(std::inner_product(whole.begin(), whole.end(), whole.begin(), 0.0));
  EXPECT_GT(norm, 1e-5);
  for (int64_t budget : budgets) {  // one response, a few, many to a micro-batch
    auto [cut, cut_loss] = run(budget);
    EXPECT_LE(relative_difference(cut, whole), 1e-5) << "budget " << budget;
    EXPECT_NEAR(cut_loss, loss, 1e-5 * (1 + std::abs(loss)));
  }
}

ObjectiveConfig with_bonus(const Method& method) {
  ObjectiveConfig config = method.objective_defaults();
  config.entropy_coeff = 0.01;
  return config;
}

// Methods that choose within each micro-batch, as released, depend on its size on purpose.
void choose_in_mini_batches(Method& method) {
  std::optional<Selection> selection = method.needs().selection;
  if (selection && selection->scope == Scope::micro) {
    ucas::apply(method, {{"scope", std::string("mini"), "scope", false}});
  }
}

TEST(gradients, the_gradient_of_no_method_depends_on_the_cut_into_micro_batches) {
  for (const MethodRow& row : method_rows()) {
    SCOPED_TRACE(row.name);
    std::unique_ptr<Method> method = row.make();
    choose_in_mini_batches(*method);
    expect_exact_accumulation(*method, with_bonus(*method));
  }
}

TEST(gradients, nor_on_how_many_rows_the_head_takes_at_once) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  const Batch batch = random_batch(*model, 4, 4);
  std::vector<int64_t> responses(batch.responses.size());
  std::iota(responses.begin(), responses.end(), 0);
  for (const char* name : {"dapo", "gspo", "forking_tokens", "simko"}) {  // two of them read whole responses
    SCOPED_TRACE(name);
    const std::unique_ptr<Method> method = make_method(name);
    choose_in_mini_batches(*method);
    ObjectiveConfig config = with_bonus(*method);
    std::vector<float> advantage(static_cast<size_t>(batch.token_count()));
    Recording recording;
    method->advantages(batch, advantage, recording);
    TokenUpdates seen{advantage, std::vector<uint8_t>(advantage.size())}, before = seen;
    auto run = [&](int64_t rows) {
      ObjectiveInput in{batch, advantage, responses, *method, config, 1.0, 16, 30};
      in.head_rows = rows, in.record = &seen;
      const LossMetrics metrics = accumulate_gradients(*model, in);
      return std::tuple(gradient(*model), metrics.pg_loss, metrics.ppo_kl);
    };
    const auto [whole, loss, kl] = run(0);
    std::swap(seen, before);
    const auto [parts, loss_of_parts, kl_of_parts] = run(3);
    EXPECT_LE(relative_difference(parts, whole), 1e-6);
    EXPECT_EQ(std::pair(loss_of_parts, kl_of_parts), std::pair(loss, kl));
    EXPECT_EQ(seen.ratio, before.ratio);
    EXPECT_EQ(seen.clipped, before.clipped);
  }
}

TEST(gradients, nor_does_it_under_any_aggregation_weight_or_mask) {
  for (const char* name : {"dapo", "gspo", "forking_tokens"}) {
    SCOPED_TRACE(name);
    std::unique_ptr<Method> method = make_method(name);
    choose_in_mini_batches(*method);
    ObjectiveConfig config = with_bonus(*method);
    for (Aggregation a :
         {Aggregation::token_mean, Aggregation::seq_mean_token_mean, Aggregation::seq_mean_token_sum_norm,
          Aggregation::row_mean_token_sum_norm, Aggregation::group_token_mean}) {
      config.aggregation = a;
      expect_exact_accumulation(*method, config);
    }
    config.tis = Tis::token;
    expect_exact_accumulation(*method, config);
  }
}

// A share of tokens is chosen from the step, the mini-batch, or, as released, each micro-batch: only the last depends
// on its size.
TEST(gradients, methods_that_select_accumulate_exactly_at_mini_and_step_scope) {
  for (const char* name : {"clip_cov", "kl_cov", "forking_tokens"}) {
    SCOPED_TRACE(name);
    for (const char* scope : {"mini", "step"}) {
      std::unique_ptr<Method> method = make_method(name);
      ucas::apply(*method, {{"ratio", 0.1, "ratio", false}, {"lb", 0.05, "lb", false}}, false);
      ucas::apply(*method, {{"scope", std::string(scope), "scope", false}});
      expect_exact_accumulation(*method, with_bonus(*method));
    }
  }
}

TEST(gradients, at_micro_scope_each_micro_batch_chooses_for_itself) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 4, 4);
  std::vector<float> advantage(static_cast<size_t>(batch.token_count()));
  Recording recording;
  std::unique_ptr<Method> method = make_method("forking_tokens");
  ucas::apply(*method, {{"scope", std::string("micro"), "scope", false}});
  method->advantages(batch, advantage, recording);
  std::vector<int64_t> responses(batch.responses.size());
  std::iota(responses.begin(), responses.end(), 0);
  auto run = [&](int64_t budget) {
    accumulate_gradients(*model, {batch, advantage, responses, *method, method->objective_defaults(), 1.0, 16, budget});
    return gradient(*model);
  };
  std::vector<double> whole = run(1 << 20), apart = run(1);
  EXPECT_GT(relative_difference(apart, whole), 0.01);
}

TEST(gradients, a_mean_over_all_rows_counts_the_empty_ones) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 2, 4);  // response 4 is empty
  ASSERT_EQ(batch.responses[4].length, 0);
  auto method = make_method("grpo");
  std::vector<float> advantage(batch.token.size(), 0.5f);
  ObjectiveConfig config = method->objective_defaults();
  auto loss = [&](Aggregation aggregation, std::vector<int64_t> responses) {
    config.aggregation = aggregation;
    double value = accumulate_gradients(*model, {batch, advantage, responses, *method, config, 1.0, 16, 30, 0}).pg_loss;
    gradient(*model);
    return value;
  };
  // Oat divides by B on top of what verl divides by; without the empty response B is one smaller.
  double sum = loss(Aggregation::seq_mean_token_sum_norm, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_NEAR(loss(Aggregation::row_mean_token_sum_norm, {0, 1, 2, 3, 4, 5, 6, 7}), sum / 8, 1e-6);
  EXPECT_NEAR(loss(Aggregation::row_mean_token_sum_norm, {0, 1, 2, 3, 5, 6, 7}), sum / 7, 1e-6);
}

// All of what an update would be made of, with responses of advantage 0 skipped and not.
struct Update {
  std::vector<double> gradient;
  LossMetrics metrics;
  TokenUpdates record;
};

void expect_the_same_update(Model& model, const Batch& batch, std::span<const float> advantage, const Method& method,
                            const ObjectiveConfig& config, bool on_policy, size_t skipped,
                            const std::vector<int64_t>& budgets) {
  std::vector<int64_t> responses(batch.responses.size());
  std::iota(responses.begin(), responses.end(), 0);
  std::vector<uint8_t> step_mark = select_in_step(method, config, batch, advantage);
  auto run = [&](bool skip, int64_t budget) {
    size_t N = batch.token.size();
    Update update{{}, {}, {std::vector<float>(N), std::vector<uint8_t>(N)}};
    ObjectiveInput in{batch, advantage, responses, method,    config,         1.0,
                      16,    budget,    9,         step_mark, &update.record, on_policy};
    in.skip_silent = skip;
    size_t zero_gradient = 0;
    for (int64_t index : responses) zero_gradient += has_zero_gradient(in, index);
    EXPECT_EQ(zero_gradient, skipped);
    update.metrics = accumulate_gradients(model, in);
    update.gradient = gradient(model);
    return update;
  };
  for (int64_t budget : budgets) {
    Update all = run(false, budget), fast = run(true, budget);
    EXPECT_EQ(fast.gradient, all.gradient) << "budget " << budget;  // bit for bit
    EXPECT_EQ(fast.record.ratio, all.record.ratio);
    EXPECT_EQ(fast.record.clipped, all.record.clipped);
    for (double LossMetrics::* field : {&LossMetrics::pg_loss, &LossMetrics::clipfrac, &LossMetrics::clipfrac_lower,
                                        &LossMetrics::ppo_kl, &LossMetrics::entropy, &LossMetrics::kl_loss}) {
      EXPECT_EQ(fast.metrics.*field, all.metrics.*field);
    }
  }
}

TEST(gradients, responses_that_teach_nothing_are_skipped_and_change_no_bit) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 4, 4);
  for (const MethodRow& row : method_rows()) {
    for (const std::string& preset : row.presets) {
      SCOPED_TRACE(std::string(row.name) + " " + preset);
      std::unique_ptr<Method> method = row.make(preset);
      ObjectiveConfig config = method->objective_defaults();
      config.entropy_coeff = config.kl_coeff = 0;
      std::vector<float> advantage(batch.token.size());
      Recording recording;
      method->advantages(batch, advantage, recording);
      for (int64_t index : {1, 4, 6, 7, 8}) {  // one of them is empty
        std::ranges::fill(Batch::tokens(advantage, batch.responses[static_cast<size_t>(index)]), 0.0f);
      }
      std::optional<Selection> selection = method->needs().selection;
      bool never = selection && selection->scope != Scope::step;
      size_t zero_gradient = 0;
      for (const Response& o : batch.responses) {
        auto A = Batch::tokens(advantage, o);
        zero_gradient += std::ranges::all_of(A, [](float a) { return a == 0; });
      }
      EXPECT_GE(zero_gradient, 5u);
      expect_the_same_update(*model, batch, advantage, *method, config, false, never ? 0 : zero_gradient, {90});
      config.entropy_coeff = 0.01;
      ObjectiveInput with_bonus{batch, advantage, {}, *method, config};
      EXPECT_FALSE(has_zero_gradient(with_bonus, 1));
    }
  }
}

TEST(gradients, on_policy_the_old_signals_stand_in_for_the_forward_pass_of_skipped_responses) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 4, 4);
  compute_signals(*model, batch, 1.0, 64);  // old is what the model says now
  std::vector<float> advantage(batch.token.size(), 0.5f);
  for (size_t i : {0, 5, 9}) std::ranges::fill(Batch::tokens(advantage, batch.responses[i]), 0.0f);
  std::unique_ptr<Method> method = make_method("dapo");
  for (bool on_policy : {false, true}) {  // the empty response is one of the four
    expect_the_same_update(*model, batch, advantage, *method, method->objective_defaults(), on_policy, 4,
                           {1, 60, 4096});
  }
}

TEST(gradients, a_nan_is_never_skipped) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 2, 4);
  std::vector<float> advantage(batch.token.size());
  std::vector<int64_t> responses = {0};
  std::unique_ptr<Method> method = make_method("dapo");
  ObjectiveConfig config = method->objective_defaults();
  ObjectiveInput in{batch, advantage, responses, *method, config};
  EXPECT_TRUE(has_zero_gradient(in, 0));
  auto first = static_cast<size_t>(batch.responses[0].first);
  for (std::vector<float>* values : {&batch.old_logprob, &batch.rollout_logprob, &advantage}) {
    float before = std::exchange((*values)[first], std::nanf(""));
    ObjectiveInput again{batch, advantage, responses, *method, config};
    EXPECT_FALSE(has_zero_gradient(again, 0));
    (*values)[first] = before;
  }
}

// Moments fade and weights decay whether or not anything was learnt.
TEST(gradients, an_update_of_skipped_responses_alone_leaves_gradients_of_zero) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 2, 4);
  std::vector<float> advantage(batch.token.size());
  std::vector<int64_t> responses = {0, 1, 2, 3};
  std::unique_ptr<Method> method = make_method("dapo");
  accumulate_gradients(*model, {batch, advantage, responses, *method, method->objective_defaults()});
  for (NamedTensor& p : model->parameters()) {
    ASSERT_TRUE(p.tensor.grad().defined()) << p.name;
    for (float g : to_host(p.tensor.grad().reshape({-1}))) ASSERT_EQ(g, 0.0f) << p.name;
  }
}

TEST(gradients, the_record_holds_each_tokens_ratio_and_whether_the_clip_held_it) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 3, 4);
  auto N = static_cast<size_t>(batch.token_count());
  std::unique_ptr<Method> method = make_method("dapo");
  ObjectiveConfig config = method->objective_defaults();
  std::vector<float> advantage(N);
  Recording recording;
  method->advantages(batch, advantage, recording);
  TokenUpdates record{std::vector<float>(N), std::vector<uint8_t>(N)};
  std::vector<float> lp = batch.rollout_logprob;  // random_batch: of the model as it is
  double clipped = 0, counted = 0;
  for (int64_t half : {0, 1}) {  // two mini-batches fill their own tokens
    std::vector<int64_t> responses(half == 0 ? 4 : 8);
    std::iota(responses.begin(), responses.end(), 4 * half);
    int64_t tokens = 0;
    for (int64_t i : responses) tokens += batch.responses[static_cast<size_t>(i)].length;
    LossMetrics m =
        accumulate_gradients(*model, {batch, advantage, responses, *method, config, 1.0, 16, 30, 9, {}, &record});
    clipped += (m.clipfrac + m.clipfrac_lower) * static_cast<double>(tokens);
    counted += static_cast<double>(tokens);
  }
  EXPECT_EQ(counted, static_cast<double>(N));
  double held = 0;
  for (size_t t = 0; t < N; ++t) {
    double ratio = std::exp(static_cast<double>(lp[t]) - batch.old_logprob[t]);
    EXPECT_NEAR(record.ratio[t], ratio, 1e-4 * ratio) << t;
    bool cut = advantage[t] > 0 ? ratio > 1 + config.clip_high : advantage[t] < 0 && ratio < 1 - config.clip_low;
    bool dual = advantage[t] < 0 && config.dual_clip > 0 && ratio > config.dual_clip;
    EXPECT_EQ(record.clipped[t], dual ? 2 : cut ? 1 : 0) << t;
    held += record.clipped[t] != 0;
  }
  EXPECT_GT(held, 0);
  EXPECT_NEAR(held, clipped, 1e-3);  // the metrics count the same tokens
}

TEST(gradients, its_gradient_is_that_of_its_loss) {
  // Central differences of the reported loss along a random direction.
  std::unique_ptr<Model> model = make_model(small_shape(), 5, at::kCPU);
  Batch batch = random_batch(*model, 3, 4);
  auto method = make_method("dapo");
  std::vector<float> advantage(static_cast<size_t>(batch.token_count()));
  Recording recording;
  method->advantages(batch, advantage, recording);
  std::vector<int64_t> responses(batch.responses.size());
  std::iota(responses.begin(), responses.end(), 0);
  ObjectiveConfig config = method->objective_defaults();
  auto loss = [&] {
    return accumulate_gradients(*model, {batch, advantage, responses, *method, config, 1.0, 16, 4096, 0}).pg_loss;
  };
  loss();
  std::vector<double> g = gradient(*model);
  Rng rng(11, 1);
  std::vector<double> direction(g.size());
  for (double& d : direction) d = rng.normal();
  auto move = [&](double step) {
    size_t at = 0;
    for (NamedTensor& p : model->parameters()) {
      at::Tensor data = p.tensor.detach();
      float* values = data.data_ptr<float>();
      for (int64_t i = 0; i < data.numel(); ++i) values[i] += static_cast<float>(step * direction[at++]);
    }
  };
  double h = 1e-3;
  move(h);
  double up = loss();
  gradient(*model);
  move(-2 * h);
  double down = loss();
  gradient(*model);
  double slope = (up - down) / (2 * h), expected = std::inner_product(g.begin(), g.end(), direction.begin(), 0.0);
  EXPECT_NEAR(slope, expected, 0.02 * std::abs(expected) + 1e-3);
}

TEST(logprobs, packing_lays_prompt_and_response_end_to_end) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 2, 3);
  std::vector<int64_t> responses = {0, 1, 2, 3, 4, 5};
  PackedResponses packed = pack_responses(batch, responses, true);
  EXPECT_EQ(packed.response.size(), 5u);  // the empty one is left out
  for (size_t k = 0; k < packed.row.size(); ++k) {
    int64_t token = packed.token_index[k];
    EXPECT_EQ(packed.target[k], batch.token[static_cast<size_t>(token)]);
    // The row before a response token holds the token before it.
    bool first = std::any_of(batch.responses.begin(), batch.responses.end(),
                             [&](const Response& o) { return o.first == token && o.length > 0; });
    if (!first) {
      EXPECT_EQ(packed.packed.token[static_cast<size_t>(packed.row[k])], batch.token[static_cast<size_t>(token - 1)]);
    }
  }
}

TEST(logprobs, inserts_have_rows_and_no_targets) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch;
  batch.groups.push_back({0, 0, 2, {1, 2, 3}});
  batch.token = {10, 11, 12, 13, 20, 21};
  batch.responses.resize(2);
  batch.responses[0].length = 4;
  batch.responses[0].inserts = {{1, {30, 31}, "a"}, {3, {32}, "b"}};
  batch.responses[1].first = 4;
  batch.responses[1].length = 2;
  const std::vector<int64_t> both = {0, 1};
  const PackedResponses own = pack_responses(batch, both, false);
  EXPECT_EQ(own.packed.token, (std::vector<int32_t>{1, 2, 3, 10, 30, 31, 11, 12, 32, 1, 2, 3, 20}));
  EXPECT_EQ(own.packed.position, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3}));
  EXPECT_EQ(own.row, (std::vector<int64_t>{2, 5, 6, 8, 11, 12}));
  EXPECT_EQ(own.target, batch.token);
  const PackedResponses shared = pack_responses(batch, both, true, 8);
  EXPECT_EQ(shared.packed.token, (std::vector<int32_t>{1, 2, 3, 10, 30, 31, 11, 12, 32, 13, 3, 20, 21}));
  EXPECT_EQ(shared.row, (std::vector<int64_t>{2, 5, 6, 8, 10, 11, 9, 12})) << "the last two are tails";
  // A limit of tokens counts them: 4 + 3 and 2 + 0 tokens after a prompt of 2.
  EXPECT_EQ(micro_batches(batch, 11, true).size(), 1u);
  EXPECT_EQ(micro_batches(batch, 10, true).size(), 2u);
}

TEST(logprobs, signals_do_not_depend_on_the_token_budget) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch a = random_batch(*model, 3, 4), b = a;
  const std::vector<TokenSignal> margin = {signals::margin()};
  compute_signals(*model, a, 0.7, 1, 0, margin);
  compute_signals(*model, b, 0.7, 4096, 0, margin);
  EXPECT_EQ(a.signal("margin"), b.signal("margin"));
  for (size_t t = 0; t < a.signal("margin").size(); ++t) {
    EXPECT_LE(a.signal("margin")[t], 0);
    EXPECT_GE(a.signal("margin")[t], a.old_logprob[t]);  // the likeliest token's log-prob is at most 0
  }
  EXPECT_EQ(a.old_logprob, b.old_logprob);
  EXPECT_EQ(a.entropy, b.entropy);
  EXPECT_EQ(a.confidence, b.confidence);
  EXPECT_EQ(a.logit, b.logit);
  a.signals.clear();
  compute_signals(*model, a, 0.7, 64);
  EXPECT_TRUE(a.signal("margin").empty());  // only where it is asked for
}

// C of the distribution that would produce the next token, from a pass over that response alone.
float tail_confidence(Model& model, const Batch& batch, const Response& o) {
  Packed packed;
  packed.token = batch.groups[static_cast<size_t>(o.group)].prompt;
  auto token = Batch::tokens(batch.token, o);
  packed.token.insert(packed.token.end(), token.begin(), token.end());
  auto rows = static_cast<int64_t>(packed.token.size());
  for (int64_t p = 0; p < rows; ++p) packed.position.push_back(static_cast<int32_t>(p));
  packed.begin = {0, rows};
  at::NoGradGuard no_grad;
  at::Tensor last = model.hidden(packed).narrow(0, rows - 1, 1);
  return to_host(model.head().stats(last, {0}, 0.7).confidence)[0];
}

TEST(logprobs, the_tail_is_the_confidence_after_the_last_token) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*model, 3, 4), without = batch;
  const int64_t limit = 6;
  compute_signals(*model, without, 0.7, 40);
  int64_t tails = 0;
  for (int64_t budget : {1, 40, 4096}) {
    compute_signals(*model, batch, 0.7, budget, limit);
    EXPECT_EQ(batch.old_logprob, without.old_logprob);
    EXPECT_EQ(batch.confidence, without.confidence);
    EXPECT_EQ(batch.entropy, without.entropy);
    EXPECT_EQ(batch.logit, without.logit);
    for (const Response& o : batch.responses) {
      bool has_tail = o.length > 0 && o.length < limit;
      EXPECT_EQ(o.tail_confidence, has_tail ? tail_confidence(*model, batch, o) : 0) << "length " << o.length;
      tails += has_tail;
    }
  }
  EXPECT_GT(tails, 3);
  for (const Response& o : without.responses) EXPECT_EQ(o.tail_confidence, 0);
}

TEST(logprobs, the_samplers_figures_are_taken_only_where_a_share_of_them_has_the_trainers_bits) {
  std::unique_ptr<Model> model = make_model(small_shape(), 3, at::kCPU);
  Rng rng(7, 0);
  Batch want = testing::ragged_batch(rng, 6, 5);  // 30 responses
  compute_signals(*model, want, 0.7, 64);
  want.rollout_logprob = want.old_logprob;
  for (int64_t step : {0, 3, 16, 29}) {
    Batch batch = want;
    batch.old_logprob.clear();
    const int64_t compared = accept_sampled(*model, batch, 0.7, 64, step);
    EXPECT_GT(compared, 0);
    EXPECT_LT(compared, batch.token_count() / 4);
    EXPECT_EQ(batch.old_logprob, want.old_logprob);
  }
  for (auto* values : {&want.rollout_logprob, &want.entropy, &want.confidence, &want.logit}) {
    int64_t noticed = 0;
    for (size_t response = 0; response < want.responses.size(); ++response) {
      const Response& o = want.responses[response];
      if (o.length == 0) continue;
      float& value = (*values)[static_cast<size_t>(o.first + o.length - 1)];
      const float before = value;
      value = std::nextafter(value, 100.0f);
      Batch batch = want;
      batch.old_logprob.clear();
      const bool checked = static_cast<int64_t>(response) % kCheckedOf == 5;
      EXPECT_EQ(accept_sampled(*model, batch, 0.7, 64, 5) < 0, checked) << response;
      EXPECT_EQ(batch.old_logprob.empty(), checked);
      noticed += checked;
      value = before;
    }
    EXPECT_GE(noticed, 1);
  }
}

TEST(logprobs, those_of_equal_weights_are_equal_bit_for_bit) {
  std::unique_ptr<Model> a = make_model(small_shape(), 3, at::kCPU), b = make_model(small_shape(), 3, at::kCPU);
  Batch batch = random_batch(*a, 3, 4);
  compute_signals(*a, batch, 0.7, 64, 16);
  EXPECT_EQ(compute_logprobs(*b, batch, 0.7, 64), batch.old_logprob);
}

}  // namespace
}  // namespace ucas
