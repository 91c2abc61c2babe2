// The loop as a whole, on trainings that take a fraction of a second (tests/support/engine/tiny_training.h).
#include "train/loop/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/files/file.h"
#include "base/str.h"
#include "core/metrics.h"
#include "methods/registry.h"
#include "records/run/step_data.h"
#include "records/run/steps.h"
#include "support/engine/scripted_rollout.h"
#include "support/engine/tiny_training.h"

namespace ucas {
namespace {

using testing::RecordingObserver;
using testing::result_of;
using testing::TinyTraining;
using testing::train;

StepTable steps_of(const std::string& run) {
  std::vector<std::string> remarks;
  return read_steps(path_join(run, "steps.jsonl"), remarks);
}

std::string weights_at(const std::string& run, int64_t step) {
  return read_file(path_join(RunDirectory::watch(run).checkpoint(step), "model.safetensors"), int64_t{1} << 24);
}

TEST(trainer, a_run_logs_each_step_and_ends_with_its_last_one_saved) {
  const TinyTraining tiny;
  EXPECT_EQ(train(tiny.config(), tiny.out()), kDone);
  const StepTable steps = steps_of(tiny.out());
  EXPECT_EQ(steps.step, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(*steps.find(metric::train_groups_trained.key), (std::vector<double>{4, 4, 4}));
  EXPECT_EQ(*steps.find(metric::train_updates.key), (std::vector<double>{2, 2, 2}));
  EXPECT_EQ(*steps.find(metric::rollout_logprob_diff_max.key), (std::vector<double>{0, 0, 0})) << "bit-identical";
  EXPECT_GT(steps.last(metric::actor_grad_norm.key), 0) << "lengths are rewarded differently";
  EXPECT_TRUE(exists(RunDirectory::watch(tiny.out()).checkpoint(3)));
  EXPECT_NE(weights_at(tiny.out(), 3), read_file(path_join(tiny.model(), "model.safetensors"), int64_t{1} << 24));
}

TEST(trainer, the_same_config_gives_the_same_weights_and_the_same_log) {
  const TinyTraining tiny;
  train(tiny.config(), tiny.out("a"));
  train(tiny.config(), tiny.out("b"));
  train(tiny.config("seed = 1"), tiny.out("c"));
  EXPECT_EQ(result_of(tiny.out("a")), result_of(tiny.out("b")));
  EXPECT_NE(result_of(tiny.out("a")).weights, result_of(tiny.out("c")).weights);
}

TEST(trainer, a_run_that_goes_on_equals_one_that_was_never_stopped) {
  const TinyTraining tiny;
  for (const char* method : {"grpo", "ppo", "prime"}) {
    const std::string name = str("method.name = \"", method, "\"\n"), whole = tiny.out(str(method, "-whole"));
    const std::string parts = tiny.out(str(method, "-parts"));
    train(tiny.config(name + "train.steps = 4"), whole);
    train(tiny.config(name + "train.steps = 2"), parts);
    Training again = resume_training(parts, {{"train.steps", int64_t{4}, "test"}});
    EXPECT_EQ(again.state.step, 2);
    EXPECT_EQ(train(again), kDone);
    EXPECT_EQ(result_of(whole), result_of(parts)) << method;
  }
}

// Says two tokens after the third one of every other response.
class Answering final : public Rollouter {
 public:
  explicit Answering(std::unique_ptr<Rollouter> own) : own_(std::move(own)) {}
  std::vector<Episode> run(const RolloutRequest& request) override {
    RolloutRequest mine = request;
    mine.environment = [](const Episode& s) {
      EnvironmentReply reply;
      const bool speaks = s.sample % 2 == 1 && s.token.size() == 3 && !s.finished;
      if (speaks) reply = {.kind = EnvironmentReply::Kind::insert, .token = {5, 6}, .text = "5 6"};
      return reply;
    };
    return own_->run(mine);
  }

 private:
  std::unique_ptr<Rollouter> own_;
};

int train_over_inserts(Training t) {
  t.rollout = std::make_unique<Answering>(std::move(t.rollout));
  return train(t);
}

TEST(trainer, a_run_over_inserts_has_one_set_of_bits_and_goes_on_with_them) {
  const TinyTraining tiny;
  const auto opened = [&](const std::string& run, const std::string& more) {
    return open_training(tiny.config(more), tiny.out(run), "test");
  };
  EXPECT_EQ(train_over_inserts(opened("whole", "train.steps = 4")), kDone);
  EXPECT_EQ(train_over_inserts(opened("parts", "train.steps = 2")), kDone);
  EXPECT_EQ(train_over_inserts(resume_training(tiny.out("parts"), {{"train.steps", int64_t{4}, "test"}})), kDone);
  EXPECT_EQ(result_of(tiny.out("whole")), result_of(tiny.out("parts")));
  train(tiny.config("train.steps = 4"), tiny.out("alone"));
  EXPECT_NE(result_of(tiny.out("whole")).weights, result_of(tiny.out("alone")).weights);
  const StepTable steps = steps_of(tiny.out("whole"));
  EXPECT_EQ(*steps.find(metric::rollout_logprob_diff_max.key), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_LT(steps.last(metric::rollout_checked_share.key), 1) << "the sampler's log-probs are the trainer's";
  const StepData stored = read_step_data(RunDirectory::watch(tiny.out("whole")).signals_file(1));
  int64_t answered = 0;
  for (const Response& o : stored.batch.responses) {
    for (const Insert& insert : o.inserts) {
      EXPECT_EQ(insert, (Insert{3, {5, 6}, "5 6"}));
      ++answered;
    }
  }
  EXPECT_GT(answered, 2);
}

TEST(trainer, every_number_that_it_logs_is_declared) {
  const TinyTraining tiny;
  const std::string validated = str("data.val_files = [\"", tiny.path_of("task/dev.jsonl"),
                                    "\"]\ntrain.test_freq = 1\ntrain.val_n = 2\ntrain.steps = 1\n");
  const std::vector<std::string> configs = {
      "method.name = \"ucas\"\nreward.weights = [\"answer=1\", \"length=0.5\"]\nobjective.tis = \"token\"\n",
      "method.name = \"ppo\"\nreward.kl_coeff = 0.1\nreference.sync_steps = 1\n",
      "method.name = \"prime\"\nobjective.kl_coeff = 0.1\nobjective.entropy_target = 2.0\n",
      str("method.name = \"distill\"\nreward.overlong_buffer = 0\nmethod.teacher = \"", tiny.model(), "\"\n"),
      "method.name = \"dapo\"\nlora.rank = 2\n",
  };
  std::set<std::string> logged;
  for (size_t i = 0; i < configs.size(); ++i) {
    train(tiny.config(validated + configs[i]), tiny.out(str(i)));
    for (const auto& [key, values] : steps_of(tiny.out(str(i))).column) {
      logged.insert(key);
      EXPECT_NE(find_any_metric(key), nullptr) << key << " is written, and core/metrics.inc has no row for it";
    }
  }
  for (const Metric* some : {&metric::critic_vf_loss, &metric::prm_ce_loss, &metric::actor_reward_kl_penalty,
                             &metric::actor_entropy_coeff, &metric::timing_teacher, &metric::rollout_tis_weight_mean}) {
    EXPECT_TRUE(logged.contains(some->key)) << some->key;
  }
}

TEST(trainer, a_step_without_a_mixed_group_learns_nothing_and_is_counted) {
  const TinyTraining tiny;
  Training t = open_training(tiny.config("objective.keep_mixed_groups = true\ndata.max_num_gen_batches = 1\n"
                                         "train.steps = 2\nreward.overlong_buffer = 0\n"),
                             tiny.out(), "test");
  const int32_t end = t.stop_ids.at(0);
  t.rollout =
      std::make_unique<ScriptedRollout>([&](uint32_t, uint32_t, uint32_t) { return std::vector<int32_t>{end}; });
  EXPECT_EQ(train(t), kDone);
  EXPECT_EQ(t.state.empty_steps, 2);
  EXPECT_TRUE(tiny.said("nothing to learn from, step skipped"));
  EXPECT_EQ(weights_at(tiny.out(), 2), read_file(path_join(tiny.model(), "model.safetensors"), int64_t{1} << 24));
  EXPECT_EQ(steps_of(tiny.out()).last(metric::train_empty_steps.key), 2);
}

TEST(trainer, an_observer_hears_of_each_phase_in_order) {
  const TinyTraining tiny;
  Training t = open_training(tiny.config("train.steps = 2"), tiny.out(), "test");
  RecordingObserver observer;
  Trainer(t).run(observer);
  EXPECT_EQ(observer.calls, (std::vector<std::string>{"begin", "generating", "scoring", "updating", "step 1",
                                                      "generating", "scoring", "updating", "step 2", "saving", "end"}));
}

// In every phase of a step: how many of the policy's parameters have a gradient.
class GradientObserver final : public TrainObserver {
 public:
  explicit GradientObserver(Model& model) : model_(model) {}
  void phase(const std::string& what, const std::string&) override {
    int64_t count = 0;
    for (const NamedTensor& p : model_.trainable()) count += p.tensor.grad().defined() ? 1 : 0;
    calls.push_back(str(what, " ", count));
  }
  std::vector<std::string> calls;

 private:
  Model& model_;
};

TEST(trainer, gradients_are_there_in_updates_alone) {
  const TinyTraining tiny;
  Training t = open_training(tiny.config("train.steps = 2"), tiny.out(), "test");
  GradientObserver observer(*t.policy.model);
  Trainer(t).run(observer);
  EXPECT_EQ(observer.calls, (std::vector<std::string>{"generating 0", "scoring 0", "updating 0", "generating 0",
                                                      "scoring 0", "updating 0", "saving 0"}));
}

TEST(trainer, masked_responses_and_a_cut_batch_change_no_count_of_what_was_generated) {
  const TinyTraining tiny;
  train(tiny.config("reward.truncated = \"mask\"\ntrain.steps = 1"), tiny.out("masked"));
  train(tiny.config("train.steps = 1"), tiny.out("graded"));
  const StepTable masked = steps_of(tiny.out("masked")), graded = steps_of(tiny.out("graded"));
  for (const Metric* same : {&metric::train_generated_tokens, &metric::train_truncated_share,
                             &metric::response_length.mean, &metric::train_groups_generated}) {
    EXPECT_EQ(masked.last(same->key), graded.last(same->key)) << same->key;
  }
  EXPECT_LT(masked.last(metric::train_taught_token_share.key), graded.last(metric::train_taught_token_share.key));
}

}  // namespace
}  // namespace ucas
