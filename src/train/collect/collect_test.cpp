#include "train/collect/collect.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "records/run/step_data.h"
#include "support/algorithm_cases.h"
#include "support/engine/scripted_rollout.h"
#include "text/tokenizer/added_tokens.h"

namespace ucas {
namespace {

// Words a..e are ids 0..4 (or as the tokenizer numbers them); every problem's gold is "a".
class CollectTest : public ::testing::Test {
 protected:
  CollectTest() {
    directory_ = std::filesystem::temp_directory_path() / ("ucas-collect-" + std::to_string(::getpid()));
    std::vector<std::string> words = {"a", "b", "c", "d", "e"};
    std::filesystem::create_directories(directory_);
    write_word_level_tokenizer(directory_.string(), words, "<eos>", "<pad>");
    tokenizer_ = std::make_unique<Tokenizer>(Tokenizer::load(directory_.string()));
    a_ = *tokenizer_->id_of("a");
    b_ = *tokenizer_->id_of("b");
    eos_ = *tokenizer_->id_of("<eos>");
    for (int p = 0; p < 8; ++p) {
      data_.problems.push_back({std::to_string(p), "test", "", "question", "", {"a"}});
      data_.prompt.push_back({b_, b_});
    }
    config_.train.steps = 100;  // no end of passes, unless a test asks for it
    config_.data.train_batch_size = 4;
    config_.data.max_num_gen_batches = 10;
    config_.data.shuffle = false;
    config_.rollout.n = 4;
    config_.rollout.response_length = 6;
    config_.objective.keep_mixed_groups = true;
  }
  ~CollectTest() override { std::filesystem::remove_all(directory_); }

  Collected collect(ScriptedRollout& rollout, int64_t step = 1) {
    Rewards rewards(config_, graders_, *ranks_, nullptr);
    Collector collector{config_, data_, rollout, *tokenizer_, graders_, rewards,
                        {eos_},  false, nullptr, nullptr,     nullptr};
    return collector.collect(step, cursor_);
  }
  std::vector<int32_t> right() const { return {a_, eos_}; }
  std::vector<int32_t> wrong() const { return {b_, b_, eos_}; }

  std::filesystem::path directory_;
  std::unique_ptr<Tokenizer> tokenizer_;
  int32_t a_ = 0, b_ = 0, eos_ = 0;
  TrainingSet data_;
  TrainConfig config_;
  Graders graders_{.standard = std::make_shared<SameTextGrader>(), .of = {}};
  std::shared_ptr<Ranks> ranks_ = alone();
  DataCursor cursor_;
};

TEST_F(CollectTest, dynamic_sampling_keeps_mixed_groups_and_tops_up) {
  // Odd problems are mixed, even ones all wrong.
  ScriptedRollout rollout(
      [&](uint32_t p, uint32_t i, uint32_t) { return p % 2 == 1 && i % 2 == 0 ? right() : wrong(); });
  Collected got = collect(rollout);
  EXPECT_EQ(rollout.calls, 2);
  ASSERT_EQ(got.batch.groups.size(), 4u);
  EXPECT_EQ(got.stats.solve_none, 4);
  EXPECT_EQ(got.stats.gen_batches, 2);
  for (const Group& g : got.batch.groups) EXPECT_EQ(g.problem % 2, 1);
  EXPECT_EQ(cursor_.index, 8);
  // Packed arrays follow their responses.
  int64_t at = 0;
  for (const Response& o : got.batch.responses) {
    EXPECT_EQ(o.first, at);
    EXPECT_EQ(o.length, o.verdict.kind == VerdictKind::equal ? 2 : 3);
    at += o.length;
  }
  EXPECT_EQ(at, got.batch.token_count());
  EXPECT_EQ(static_cast<int64_t>(got.batch.rollout_logprob.size()), at);
}

TEST_F(CollectTest, a_group_whose_rewards_differ_is_not_dead_whatever_its_verdicts) {
  config_.objective.keep_mixed_groups = false;
  config_.reward.overlong_buffer = 5;  // longer ones are rewarded less
  ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t) {
    return p % 2 == 1 && i == 0 ? std::vector<int32_t>{b_, b_, b_, eos_} : wrong();
  });
  const Collected got = collect(rollout);
  EXPECT_EQ(got.stats.solve_none, 4);
  EXPECT_EQ(got.stats.dead, 2);
}

TEST_F(CollectTest, the_limit_of_generation_batches_is_kept_and_what_there_is_is_trained_on) {
  config_.data.max_num_gen_batches = 1;
  ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t) { return p == 1 && i == 0 ? right() : wrong(); });
  Collected got = collect(rollout);
  EXPECT_EQ(rollout.calls, 1);
  EXPECT_EQ(got.batch.groups.size(), 1u);
}

TEST_F(CollectTest, surplus_groups_are_discarded_in_arrival_order) {
  config_.data.gen_batch_size = 8;
  ScriptedRollout rollout([&](uint32_t, uint32_t i, uint32_t) { return i == 0 ? right() : wrong(); });
  Collected got = collect(rollout);
  ASSERT_EQ(got.batch.groups.size(), 4u);
  EXPECT_EQ(got.stats.groups_kept, 8);
  for (int64_t g = 0; g < 4; ++g) EXPECT_EQ(got.batch.groups[static_cast<size_t>(g)].problem, g);
}

TEST_F(CollectTest, verdicts_of_a_step_do_not_reach_the_next_one) {
  config_.data.train_batch_size = 1;
  config_.data.gen_batch_size = 8;  // all problems come again with the same sample numbers
  ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t step) {
    return (step == 1 ? i == 0 : p == 3 && i == 1) ? right() : wrong();
  });
  rollout.backwards = true;
  Rewards rewards(config_, graders_, *ranks_, nullptr);  // the same for both steps
  const Collector collector{config_, data_, rollout, *tokenizer_, graders_, rewards,
                            {eos_},  false, nullptr, nullptr,     nullptr};
  EXPECT_EQ(collector.collect(1, cursor_).batch.groups.front().problem, 0);
  const Collected second = collector.collect(2, cursor_);
  ASSERT_EQ(second.batch.groups.size(), 1u);
  EXPECT_EQ(second.batch.groups.front().problem, 3);
  EXPECT_EQ(second.batch.responses[1].verdict.kind, VerdictKind::equal);
  EXPECT_EQ(second.batch.responses[0].verdict.kind, VerdictKind::unequal);
}

// The arrays and the text that is graded alike.
TEST_F(CollectTest, inserts_stand_beside_the_models_tokens) {
  config_.rollout.environment.kind = EnvironmentKind::calculator;
  config_.data.gen_batch_size = 8;
  ScriptedRollout rollout([&](uint32_t, uint32_t i, uint32_t) { return i == 0 ? right() : wrong(); });
  rollout.said_to = [&](const Episode& s) {
    return s.sample == 1 ? std::vector<Insert>{{2, {a_, a_}, "a a"}} : std::vector<Insert>{};
  };
  const Collected made = collect(rollout, 1);
  EXPECT_EQ(made.stats.inserts, 8);
  EXPECT_EQ(made.stats.inserted_tokens, 16);
  for (size_t i = 0; i < made.batch.responses.size(); ++i) {
    const Response& o = made.batch.responses[i];
    EXPECT_EQ(o.inserts.size(), o.sample == 1 ? 1u : 0u);
    EXPECT_EQ(o.length, o.sample == 0 ? 2 : 3);
    EXPECT_EQ(o.length_with_inserts(), o.sample == 0 ? 2 : o.sample == 1 ? 5 : 3);
    EXPECT_EQ(made.text[i], o.sample == 0 ? "a" : "bb") << "what is graded is the model's";
  }
  EXPECT_EQ(made.batch.token_count(), 4 * (2 + 3 * 3));
}

TEST_F(CollectTest, an_epoch_without_a_mixed_group_stops_the_run_with_the_reason) {
  ScriptedRollout rollout([&](uint32_t, uint32_t, uint32_t) { return wrong(); });
  try {
    collect(rollout);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "no_signal");
    EXPECT_EQ(error.exit_code(), kNumeric);
  }
}

TEST_F(CollectTest, a_right_answer_cut_at_the_limit_is_wrong_only_if_asked) {
  config_.objective.keep_mixed_groups = false;
  ScriptedRollout rollout([&](uint32_t, uint32_t, uint32_t) { return std::vector<int32_t>{a_}; });
  Collected graded = collect(rollout);
  EXPECT_EQ(graded.batch.responses[0].verdict.kind, VerdictKind::equal);
  EXPECT_EQ(graded.stats.truncated, graded.stats.responses);
  config_.reward.truncated = Truncated::wrong;
  Collected strict = collect(rollout);
  EXPECT_EQ(strict.batch.responses[0].verdict.kind, VerdictKind::unequal);
  EXPECT_EQ(strict.batch.responses[0].score, 0.0f);
}

TEST_F(CollectTest, what_is_cut_at_the_limit_is_masked_only_if_asked_and_stays_so_in_its_file) {
  config_.objective.keep_mixed_groups = false;
  ScriptedRollout rollout([&](uint32_t, uint32_t i, uint32_t) { return i == 0 ? std::vector<int32_t>{a_} : right(); });
  for (const Response& o : collect(rollout).batch.responses) EXPECT_TRUE(o.trained);
  config_.reward.truncated = Truncated::mask;
  const Batch masked = collect(rollout).batch;
  EXPECT_EQ(std::ranges::count(masked.responses, false, &Response::trained), std::ssize(masked.groups));
  for (const Response& o : masked.responses) EXPECT_EQ(o.trained, o.finished);
  StepData kept;
  kept.batch = masked;
  kept.groups_of_step = std::ssize(masked.groups);
  kept.advantage.resize(masked.token.size());
  for (const Group& group : masked.groups) kept.problem.push_back(data_.problems[group.problem].id);
  const std::string file = (directory_ / "step.jsonl").string();
  write_file(file, step_data_lines(kept));
  const Batch back = read_step_data(file).batch;
  for (size_t i = 0; i < back.responses.size(); ++i) EXPECT_EQ(back.responses[i].trained, masked.responses[i].trained);
}

TEST_F(CollectTest, a_problem_drawn_twice_in_a_step_gets_new_samples) {
  data_.problems.resize(3);
  data_.prompt.resize(3);
  config_.objective.keep_mixed_groups = false;
  ScriptedRollout rollout([&](uint32_t, uint32_t i, uint32_t) { return i >= 4 ? right() : wrong(); });
  Collected got = collect(rollout);
  ASSERT_EQ(got.batch.groups.size(), 4u);
  EXPECT_EQ(got.batch.groups[3].problem, 0);
  EXPECT_EQ(got.batch.of(got.batch.groups[3])[0].verdict.kind, VerdictKind::equal);
  EXPECT_EQ(cursor_.epoch, 1);
}

// What a run of `epochs` passes draws and trains on, step by step.
TEST_F(CollectTest, passes_over_the_problems_end_when_every_problem_was_drawn_as_often) {
  config_.train.steps = 0;
  config_.train.epochs = 3;
  config_.data.train_batch_size = 2;
  config_.data.gen_batch_size = 3;
  config_.data.max_num_gen_batches = 0;
  config_.data.shuffle = true;
  std::vector<int> sampled(8);
  ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t) {
    sampled[p] += i % 4 == 0;
    return p % 2 == 1 && i % 2 == 0 ? right() : wrong();  // every other problem is mixed
  });
  int64_t steps = 0, trained = 0;
  for (; prompts_left(config_, 8, cursor_) > 0; ++steps) {
    Collected got = collect(rollout, steps + 1);
    EXPECT_FALSE(got.out_of_prompts);
    EXPECT_LE(got.batch.groups.size(), 2u);
    trained += static_cast<int64_t>(got.batch.groups.size());
  }
  EXPECT_EQ(sampled, std::vector<int>(8, 3));
  EXPECT_EQ(cursor_.selected(8), 24);
  EXPECT_LT(steps, 8);  // as many as there are generation batches, if each step took one
  EXPECT_LE(trained, 12);
  EXPECT_GT(trained, 6);
}

TEST_F(CollectTest, what_the_passes_leave_unfinished_is_trained_on_or_dropped) {
  config_.train.steps = 0;
  config_.train.epochs = 1;
  config_.data.train_batch_size = 6;
  ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t) { return p < 3 && i == 0 ? right() : wrong(); });
  Collected shorter = collect(rollout);
  EXPECT_EQ(shorter.batch.groups.size(), 3u);
  EXPECT_FALSE(shorter.out_of_prompts);
  EXPECT_EQ(prompts_left(config_, 8, cursor_), 0);
  cursor_ = {};
  config_.data.train_short = false;  // as DAPO's loop does
  Collected none = collect(rollout);
  EXPECT_TRUE(none.out_of_prompts);
  EXPECT_TRUE(none.batch.groups.empty());
  EXPECT_EQ(none.stats.groups_kept, 3);
}

TEST_F(CollectTest, a_run_of_so_many_steps_has_no_end_of_passes) {
  config_.objective.keep_mixed_groups = false;
  ScriptedRollout rollout([&](uint32_t, uint32_t, uint32_t) { return right(); });
  for (int step = 1; step <= 5; ++step) EXPECT_EQ(collect(rollout, step).batch.groups.size(), 4u);
  EXPECT_EQ(cursor_.selected(8), 20);
}

TEST_F(CollectTest, overlong_shaping_follows_dapo) {
  EXPECT_EQ(overlong_penalty(10, 20, 8, 1.0), 0.0);
  EXPECT_DOUBLE_EQ(overlong_penalty(16, 20, 8, 1.0), -0.5);
  EXPECT_DOUBLE_EQ(overlong_penalty(20, 20, 8, 0.5), -0.5);
  EXPECT_EQ(overlong_penalty(20, 20, 0, 1.0), 0.0);
  // The verdict, not the shaped reward, decides what is mixed.
  config_.reward.overlong_buffer = 5;
  ScriptedRollout rollout([&](uint32_t, uint32_t i, uint32_t) { return i == 0 ? right() : wrong(); });
  Collected got = collect(rollout);
  EXPECT_FLOAT_EQ(got.batch.responses[0].reward, 1.0f - 0.2f);
  EXPECT_FLOAT_EQ(got.batch.responses[1].reward, -0.4f);
  EXPECT_FLOAT_EQ(got.batch.responses[1].score, 0.0f);
}

TEST_F(CollectTest, an_interval_of_accuracies_keeps_its_ends) {
  config_.objective = {};
  config_.objective.keep_low = 0.25;
  config_.objective.keep_high = 0.5;
  config_.data.gen_batch_size = 8;
  config_.data.max_num_gen_batches = 1;
  // Problem p has p right answers of 4, at most.
  ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t) { return i < p ? right() : wrong(); });
  Collected got = collect(rollout);
  ASSERT_EQ(got.batch.groups.size(), 2u);
  EXPECT_EQ(got.batch.groups[0].problem, 1);
  EXPECT_EQ(got.batch.groups[1].problem, 2);
}

TEST_F(CollectTest, preferring_orders_the_batch_and_fills_it) {
  config_.objective = {};
  config_.objective.keep_low = 0.2;
  config_.objective.keep_high = 0.8;
  config_.objective.keep_order = KeepOrder::prefer;
  config_.data.gen_batch_size = 8;
  ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t) { return p >= 6 && i == 0 ? right() : wrong(); });
  Collected got = collect(rollout);
  EXPECT_EQ(rollout.calls, 1);
  EXPECT_EQ(got.stats.groups_kept, 2);
  std::vector<int64_t> trained;
  for (const Group& g : got.batch.groups) trained.push_back(g.problem);
  EXPECT_EQ(trained, (std::vector<int64_t>{6, 7, 0, 1}));
  for (const Response& o : got.batch.responses) {
    EXPECT_EQ(got.batch.token[static_cast<size_t>(o.first)], o.verdict.kind == VerdictKind::equal ? a_ : b_);
  }
  EXPECT_EQ(got.text.size(), got.batch.responses.size());
}

TEST_F(CollectTest, too_few_prompts_stop_the_run_where_the_config_says_so) {
  config_.data.max_num_gen_batches = 1;
  config_.data.train_short = false;
  ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t) { return p == 1 && i == 0 ? right() : wrong(); });
  EXPECT_THROW(collect(rollout), Error);
}

TEST_F(CollectTest, without_a_limit_an_epoch_in_vain_still_ends_the_search) {
  config_.data.max_num_gen_batches = 0;
  // One mixed group in the very first samples, none afterwards.
  ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t) { return p == 0 && i == 0 ? right() : wrong(); });
  EXPECT_THROW(collect(rollout), Error);
  EXPECT_LE(rollout.calls, 4);
}

TEST_F(CollectTest, what_must_differ_may_be_the_shaped_reward) {
  config_.reward.overlong_buffer = 5;
  config_.objective.keep_metric = KeepMetric::reward;
  config_.data.max_num_gen_batches = 1;
  ScriptedRollout rollout(
      [&](uint32_t, uint32_t i, uint32_t) { return i == 0 ? std::vector<int32_t>{b_, b_, b_, b_, eos_} : wrong(); });
  EXPECT_EQ(collect(rollout).batch.groups.size(), 4u);  // wrong answers all, but of two lengths
  config_.objective.keep_metric = KeepMetric::score;
  EXPECT_TRUE(collect(rollout).batch.groups.empty());
}

TEST_F(CollectTest, problems_without_a_right_answer_are_not_counted_as_failures) {
  config_.objective.keep_mixed_groups = false;
  for (Problem& problem : data_.problems) problem.gold.clear();
  data_.problems[0].gold = {"a"};
  ScriptedRollout rollout([&](uint32_t, uint32_t, uint32_t) { return right(); });
  Collected got = collect(rollout);
  EXPECT_EQ(got.stats.responses, 16);
  EXPECT_EQ(got.stats.graded, 4);
  EXPECT_EQ(got.stats.correct_share, 1.0);
  EXPECT_EQ(got.stats.solve_none, 0);
  EXPECT_EQ(got.batch.responses.back().score, 0.0f);
  EXPECT_FALSE(got.batch.responses.back().verdict.reason.empty());
}

TEST_F(CollectTest, stopping_while_generating_gives_nothing_to_train_on) {
  ScriptedRollout rollout([&](uint32_t, uint32_t, uint32_t) { return right(); });
  Rewards rewards(config_, graders_, *ranks_, nullptr);
  Collector collector{config_, data_,  rollout, *tokenizer_, graders_, rewards, {eos_}, false, [] { return true; },
                      nullptr, nullptr};
  EXPECT_TRUE(collector.collect(1, cursor_).stopped);
}

TEST_F(CollectTest, the_worked_cases_of_dapo_pass) {
  auto overlong = [](const Json& c, testing::CaseReport& report) {
    const Json& in = c.at("inputs");
    std::vector<double> released, paper;
    for (int64_t length : in.at("lengths")) {
      released.push_back(overlong_penalty(length, in.at("max_len"), in.at("buffer"), in.at("factor")));
      paper.push_back(overlong_penalty(length, in.at("max_len"), in.at("buffer"), 1.0));
    }
    report.close("penalty", released, c.at("expected").at("penalty"));
    report.close("paper_penalty", paper, c.at("expected").at("paper_penalty"));
  };
  auto dynamic_sampling = [this](const Json& c, testing::CaseReport& report) {
    const Json& in = c.at("inputs");
    std::vector<std::vector<int>> outcome;  // by problem, then sample
    data_ = {};
    cursor_ = {};
    for (const Json& gen_batch : in.at("gen_batches")) {
      for (const Json& row : gen_batch) {
        data_.problems.push_back({row.at(0), "test", "", "question", "", {"a"}});
        data_.prompt.push_back({b_});
        outcome.push_back(row.at(1));
      }
    }
    config_.data.train_batch_size = in.at("train_batch");
    config_.data.gen_batch_size = 3;
    config_.data.max_num_gen_batches = in.at("max_num_gen_batches");
    config_.rollout.n = 2;
    ScriptedRollout rollout([&](uint32_t p, uint32_t i, uint32_t) { return outcome[p][i] == 1 ? right() : wrong(); });
    Collected got = collect(rollout);
    std::vector<std::string> trained;
    for (const Group& g : got.batch.groups) trained.push_back(data_.problems[static_cast<size_t>(g.problem)].id);
    if (trained != c.at("expected").at("trained").get<std::vector<std::string>>())
      report.fail("other groups trained on");
    report.close("num_gen_batches", static_cast<double>(got.stats.gen_batches), c.at("expected").at("num_gen_batches"));
    report.close("kept", static_cast<double>(got.stats.groups_kept),
                 static_cast<double>(c.at("expected").at("kept").size()));
  };
  const std::map<std::string, testing::CaseCheck> checks = {{"dapo-overlong", overlong},
                                                            {"dapo-verl-overlong", overlong},
                                                            {"dapo-dynamic-sampling", dynamic_sampling},
                                                            {"dapo-verl-dynamic-sampling", dynamic_sampling}};
  for (const std::string& path : testing::algorithm_case_files()) {
    int64_t checked = 0;
    for (const auto& result : testing::run_algorithm_cases(path, checks)) {
      if (!checks.contains(result.id)) continue;
      EXPECT_EQ(result.outcome, testing::CaseOutcome::passed) << result.id << ": " << result.detail;
      ++checked;
    }
    EXPECT_EQ(checked, 2) << path;
  }
}

}  // namespace
}  // namespace ucas
