// Gradients of one mini-batch on several ranks: as threads of this process, and over Gloo for what is sent.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "base/str.h"
#include "methods/registry.h"
#include "model/weights.h"
#include "support/engine/process_ranks.h"
#include "support/engine/small_models.h"
#include "support/engine/thread_ranks.h"
#include "train/optimizer/optimizer.h"
#include "train/update/gradient_pass.h"
#include "train/update/gradients.h"

namespace ucas {
namespace {

using testing::in_processes;
using testing::ThreadRanks;

// A batch whose responses 1 and 6 have zero gradient, what a loss is made of, and the micro-batches of a budget.
struct Learnt {
  Batch batch;
  std::vector<float> advantage;
  std::vector<int64_t> responses;
  std::unique_ptr<Method> method = make_method("dapo");
  ObjectiveConfig config = method->objective_defaults();

  explicit Learnt(Model& model, int64_t groups = 3) {
    Rng rng(7, 0);
    batch = testing::ragged_batch(rng, groups, 4);
    compute_signals(model, batch, 1.0, 64);
    batch.rollout_logprob = batch.old_logprob;
    for (float& lp : batch.old_logprob) lp += static_cast<float>(0.5 * rng.normal());
    for (size_t t = 0; t < batch.token.size(); ++t) advantage.push_back(static_cast<float>(rng.normal()));
    for (const size_t zero_gradient : {1, 6})
      std::ranges::fill(Batch::tokens(advantage, batch.responses[zero_gradient]), 0.0f);
    responses = indices(0, std::ssize(batch.responses));
  }
  ObjectiveInput input(int64_t budget, Among among) const {
    return {.batch = batch,
            .advantage = advantage,
            .responses = responses,
            .method = *method,
            .config = config,
            .token_budget = budget,
            .among = std::move(among)};
  }
};

struct Result {
  std::map<std::string, std::vector<float>> gradient;  // by parameter
  LossMetrics metrics;
  TokenUpdates record;
};

std::string difference(const Result& a, const Result& b) {
  if (a.gradient.size() != b.gradient.size()) return "other parameters";
  for (const auto& [name, values] : a.gradient)
    if (b.gradient.at(name) != values) return name;
  for (double LossMetrics::* field : {&LossMetrics::pg_loss, &LossMetrics::clipfrac, &LossMetrics::clipfrac_lower,
                                      &LossMetrics::ppo_kl, &LossMetrics::entropy, &LossMetrics::kl_loss})
    if (a.metrics.*field != b.metrics.*field) return "a metric";
  return a.record.ratio != b.record.ratio || a.record.clipped != b.record.clipped ? "the record" : "";
}

// Two updates' gradients, one after the other, as a training takes them; the second's, of those that are here.
Result learn(Model& model, int64_t budget, Ranks* ranks, Reduce reduce, Shard shard, const Learnt& of) {
  Optimizer optimizer(model.trainable(), {});
  if (ranks != nullptr) optimizer.shard_over(*ranks, Shard::gradients);
  const size_t N = of.batch.token.size();
  Result result{.record = {std::vector<float>(N), std::vector<uint8_t>(N)}};
  for (int again = 0; again < 2; ++again) {
    optimizer.zero_grad();
    const Among among{.ranks = ranks, .reduce = reduce, .shard = shard, .owners = optimizer.owners()};
    ObjectiveInput in = of.input(budget, among);
    in.record = &result.record;
    result.metrics = accumulate_gradients(model, in);
  }
  const std::vector<int64_t> owners = optimizer.owners();
  const std::vector<NamedTensor> parameters = model.trainable();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (ranks != nullptr && owners[i] != ranks->rank()) continue;
    result.gradient[parameters[i].name] = to_host(parameters[i].tensor.grad().reshape({-1}));
  }
  return result;
}

Result learn(Model& model, int64_t budget, Ranks* ranks, Reduce reduce, Shard shard) {
  return learn(model, budget, ranks, reduce, shard, Learnt(model));
}

std::unique_ptr<Model> model_of(const ModelOptions& options) {
  auto model = make_model(testing::small_shape(), 3, at::kCPU, options);
  testing::fill_adapter(*model);
  return model;
}

TEST(gradients_by_micro_batches, are_each_from_zero_and_added_in_their_order) {
  for (const int64_t budget : {1, 30, 4096}) {
    const std::unique_ptr<Model> model = model_of({});
    const Learnt of(*model);
    const ObjectiveInput in = of.input(budget, {.reduce = Reduce::micro});
    GradientPass pass(*model, in);
    std::vector<at::Tensor> sums;
    for (const NamedTensor& p : model->trainable()) sums.push_back(at::zeros_like(p.tensor.detach()));
    LossMetrics metrics;
    const auto add = [&](auto work, int64_t micro) {
      pass.metrics = {};
      (pass.*work)(micro);
      metrics.pg_loss += pass.metrics.pg_loss;
      size_t i = 0;
      for (const NamedTensor& p : model->trainable()) {
        if (p.tensor.grad().defined()) sums[i].add_(p.tensor.grad());
        p.tensor.mutable_grad().reset();
        ++i;
      }
    };
    EXPECT_EQ(pass.learning(), budget == 1 ? 9 : budget == 30 ? pass.learning() : 1);
    for (int64_t micro = 0; micro < pass.learning(); ++micro) add(&GradientPass::learn, micro);
    for (int64_t micro = 0; micro < pass.zero_gradient(); ++micro) add(&GradientPass::read, micro);
    EXPECT_EQ(accumulate_gradients(*model, in).pg_loss, metrics.pg_loss);
    size_t i = 0;
    double size = 0;
    for (const NamedTensor& p : model->trainable()) {
      size += sums[i].abs().sum().item<double>();
      EXPECT_TRUE(p.tensor.grad().equal(sums[i++])) << p.name;
    }
    EXPECT_GT(size, 0);
  }
}

TEST(gradients_by_micro_batches, are_the_sums_but_for_the_last_bits) {
  const Result sum = learn(*model_of({}), 30, nullptr, Reduce::sum, Shard::moments),
               micro = learn(*model_of({}), 30, nullptr, Reduce::micro, Shard::moments);
  EXPECT_NE(difference(sum, micro), "") << "another order";
  EXPECT_NEAR(sum.metrics.pg_loss, micro.metrics.pg_loss, 1e-12);
  for (const auto& [name, values] : sum.gradient) {
    const std::vector<float>& others = micro.gradient.at(name);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], others[i], 1e-6) << name;
  }
}

// Nine micro-batches of one response, a few, and one of all: uneven waves, and more ranks than micro-batches.
TEST(gradients_by_micro_batches, have_the_bits_of_one_process_on_any_number_of_ranks) {
  const LoraConfig lora{.rank = 4, .modules_to_save = {"embed_tokens"}};
  const std::vector<std::pair<std::string, ModelOptions>> kinds = {
      {"f32", {}},
      {"bf16, blocks recomputed", {.dtype = Dtype::bf16, .recompute = Recompute::block}},
      {"adapter", {.trained = ucas::Trained::adapter, .lora = lora}}};
  for (const auto& [name, options] : kinds) {
    for (const int64_t budget : {1, 30, 4096}) {
      const Result one = learn(*model_of(options), budget, nullptr, Reduce::micro, Shard::moments);
      for (const int64_t size : {2, 3, 4}) {
        for (const Shard shard : {Shard::moments, Shard::gradients}) {
          SCOPED_TRACE(str(name, ", budget ", budget, ", ", size, " ranks, ", word_of(shard)));
          std::mutex mutex;
          Result all;
          ThreadRanks::run(size, [&](const std::shared_ptr<Ranks>& ranks) {
            const std::unique_ptr<Model> model = model_of(options);
            Result mine = learn(*model, budget, ranks.get(), Reduce::micro, shard);
            const std::lock_guard lock(mutex);
            all.gradient.merge(mine.gradient);
            EXPECT_TRUE(mine.gradient.empty()) << "of each parameter one rank has the gradient";
            all.metrics = mine.metrics, all.record = mine.record;
          });
          EXPECT_EQ(difference(all, one), "");
        }
      }
    }
  }
}

// SimKO: gradients of the likeliest tokens, of whole responses.
TEST(gradients_by_micro_batches, of_the_likeliest_tokens_have_the_same_bits_on_any_number_of_ranks) {
  const auto learnt = [](Model& model) {
    Learnt of(model);
    of.method = make_method("simko");
    ucas::apply(*of.method, {{"alpha", 0.5, "alpha", false}, {"tau", 0.3, "tau", false}});
    return of;
  };
  for (const ModelOptions& options :
       {ModelOptions{}, ModelOptions{.dtype = Dtype::bf16, .recompute = Recompute::block},
        ModelOptions{.trained = ucas::Trained::adapter, .lora = {.rank = 4, .modules_to_save = {"embed_tokens"}}}}) {
    const std::unique_ptr<Model> alone = model_of(options);
    const Result one = learn(*alone, 30, nullptr, Reduce::micro, Shard::moments, learnt(*alone));
    std::mutex mutex;
    Result all;
    ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& ranks) {
      const std::unique_ptr<Model> model = model_of(options);
      Result mine = learn(*model, 30, ranks.get(), Reduce::micro, Shard::gradients, learnt(*model));
      const std::lock_guard lock(mutex);
      all.gradient.merge(mine.gradient);
      all.metrics = mine.metrics, all.record = mine.record;
    });
    EXPECT_EQ(difference(all, one), "");
    Learnt plain(*alone);
    plain.method = make_method("grpo", "verl");
    plain.config.dual_clip = 0;
    EXPECT_NE(difference(learn(*alone, 30, nullptr, Reduce::micro, Shard::moments, plain), one), "");
  }
}

// Clip-Cov, KL-Cov, the 80/20 rule and Lp-Reg look at all tokens before they choose: each rank at its part of them.
TEST(gradients_by_micro_batches, of_tokens_that_are_chosen_now_have_the_same_bits_for_one_pass_of_all_ranks) {
  for (const char* name : {"clip_cov", "kl_cov", "forking_tokens", "lp_reg"}) {
    for (const char* scope : {"micro", "mini"}) {
      SCOPED_TRACE(str(name, " ", scope));
      const auto learnt = [&](Model& model, Ranks* ranks) {
        Learnt of(model);
        of.method = make_method(name);
        ucas::apply(*of.method,
                    {{"ratio", 0.2, "ratio", false}, {"lb", 0.05, "lb", false}, {"share_wrong", 0.5, "share", false}},
                    false);
        Batch read = of.batch;
        compute_signals(model, read, 1, 30, 0, of.method->needs().signals, ranks);
        of.batch.signals = read.signals;
        ucas::apply(*of.method, {{"scope", std::string(scope), "scope", false}});
        EXPECT_TRUE(selects_now(*of.method));
        return of;
      };
      const std::unique_ptr<Model> alone = model_of({});
      const Learnt of = learnt(*alone, nullptr);
      const double before = alone->work().operations;
      const Result one = learn(*alone, 30, nullptr, Reduce::micro, Shard::moments, of);
      const double operations = alone->work().operations - before;
      std::mutex mutex;
      Result all;
      double of_all = 0;
      ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& ranks) {
        const std::unique_ptr<Model> model = model_of({});
        const Learnt mine_of = learnt(*model, ranks.get());
        EXPECT_EQ(mine_of.batch.signal("min_p_logprob"), of.batch.signal("min_p_logprob"));
        const double mine_before = model->work().operations;
        Result mine = learn(*model, 30, ranks.get(), Reduce::micro, Shard::gradients, mine_of);
        const std::lock_guard lock(mutex);
        of_all += model->work().operations - mine_before;
        all.gradient.merge(mine.gradient);
        all.metrics = mine.metrics, all.record = mine.record;
      });
      EXPECT_EQ(difference(all, one), "");
      EXPECT_NEAR(of_all / operations, 1, 1e-9) << "no rank does what another has done";
    }
  }
}

// Elements that rank r sends in one update, next to what every call says first.
TEST(gradients_of_ranks, are_sent_as_often_as_the_formula_says) {
  for (const int64_t size : {2, 3, 4}) {
    const auto said = in_processes(size, [&](Ranks& ranks) -> std::string {
      const std::unique_ptr<Model> model = model_of({});
      const Learnt of(*model);
      Optimizer optimizer(model->trainable(), {});
      optimizer.shard_over(ranks, Shard::gradients);
      int64_t n = 0, own = 0;
      const std::vector<int64_t> owners = optimizer.owners();
      for (size_t i = 0; i < owners.size(); ++i) {
        const int64_t elements = model->trainable()[i].tensor.numel();
        n += elements;
        own += owners[i] == ranks.rank() ? elements : 0;
      }
      const int64_t metrics = sizeof(LossMetrics);
      for (const Reduce reduce : {Reduce::micro, Reduce::sum}) {
        for (const Shard shard : {Shard::moments, Shard::gradients}) {
          const Among among{.ranks = &ranks, .reduce = reduce, .shard = shard, .owners = owners};
          const ObjectiveInput in = of.input(1, among);  // 9 micro-batches, and 2 with zero gradient
          const int64_t before = ranks.bytes(), r = ranks.rank();
          accumulate_gradients(*model, in);
          optimizer.zero_grad();
          const int64_t mine = (9 - r + size - 1) / size, read = std::max<int64_t>(2 - r + size - 1, 0) / size;
          int64_t expected = 4 * mine * (n - own) + (mine + read) * metrics;
          if (reduce == Reduce::sum) expected = 4 * n * (shard == Shard::moments ? 1 : (9 + size - 1) / size) + metrics;
          if (ranks.bytes() - before != expected)
            return str(word_of(shard), ", ", static_cast<int>(reduce), ": ", ranks.bytes() - before, " for ", expected);
        }
      }
      return "";
    });
    EXPECT_EQ(said, std::vector<std::string>(static_cast<size_t>(size)));
  }
}

}  // namespace
}  // namespace ucas
