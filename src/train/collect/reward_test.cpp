#include "train/collect/reward.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "support/engine/scripted_rollout.h"
#include "support/engine/thread_ranks.h"

namespace ucas {
namespace {

// Takes a process, as far as others can see; counts what it was asked.
class SlowGrader final : public Grader {
 public:
  std::vector<Verdict> grade(std::span<const Answer> answers) const override {
    asked += static_cast<int64_t>(answers.size());
    std::vector<Verdict> verdicts(answers.size());
    for (size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].response == "broken") throw Error(ErrorKind::sandbox, "no verdict", kNoSandbox);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const bool right = answers[i].response == answers[i].gold->front();
      verdicts[i].decide(right ? VerdictKind::equal : VerdictKind::unequal, "");
      if (!right) verdicts[i].score = 0.25f;
    }
    return verdicts;
  }
  void classify(std::span<Verdict>) const override {}
  mutable std::atomic<int64_t> asked{0};
};

class RewardsTest : public ::testing::Test {
 protected:
  void score(const std::vector<std::string>& texts) {
    config_.reward.validate();
    Rewards rewards(config_, graders_, *ranks_, nullptr);
    scored_.assign(texts.size(), {});
    for (size_t i = 0; i < texts.size(); ++i) scored_[i].length = static_cast<int64_t>(texts[i].size());
    const GroupToScore group{problem_, texts, scored_};
    rewards.score({&group, 1});
  }

  Problem problem_{"p", "test", "", "question", "", {"a"}, {}};
  TrainConfig config_;
  Graders graders_{.standard = std::make_shared<SameTextGrader>(), .of = {}};
  std::shared_ptr<Ranks> ranks_ = alone();
  std::vector<Response> scored_;
};

TEST_F(RewardsTest, the_score_is_the_weighted_sum_of_its_parts_and_each_is_kept) {
  config_.reward.weights = {"answer=2", "format=0.5", "length=1"};
  config_.reward.format = "[ab]+";
  score({"a", "b", "ccc"});
  EXPECT_EQ(scored_[0].terms, (std::vector<float>{1, 1, 0.5f}));
  EXPECT_EQ(scored_[1].terms, (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(scored_[2].terms, (std::vector<float>{0, 0, -0.5f}));
  EXPECT_EQ(scored_[0].score, 3.0f);
  EXPECT_EQ(scored_[1].score, 0.5f);
  EXPECT_EQ(scored_[2].reward, -0.5f);
}

TEST_F(RewardsTest, the_form_is_that_of_the_whole_response) {
  config_.reward.weights = {"format=1"};
  config_.reward.format = "think_answer";
  score({"<think>a\nb</think>\n<answer>1</answer>", "<think>a</think> <answer>1</answer> more",
         "<think>a<think></think><answer>1</answer>", "x<think>a</think><answer>1</answer>",
         "<think></think><answer></answer>\n", "<think>a</think><answer>1</answer><answer>2</answer>", "\xff"});
  std::vector<float> scores;
  for (const Response& o : scored_) scores.push_back(o.score);
  EXPECT_EQ(scores, (std::vector<float>{1, 0, 0, 0, 1, 0, 0}));
}

TEST_F(RewardsTest, a_pattern_that_is_none_is_refused_and_one_that_never_ends_matches_nothing) {
  config_.reward.weights = {"format=1"};
  config_.reward.format = "(";
  EXPECT_THROW(Rewards(config_, graders_, *ranks_, nullptr), Error);
  config_.reward.format = "(x+x+)+y";
  score({std::string(5000, 'x')});
  EXPECT_EQ(scored_[0].score, 0.0f);
}

TEST_F(RewardsTest, what_is_partly_right_is_paid_its_share_only_where_asked) {
  graders_.of["test"] = std::make_shared<SlowGrader>();
  score({"a", "b"});
  EXPECT_EQ(scored_[1].score, 0.0f);
  config_.reward.wrong = -1;
  config_.reward.partial = true;
  score({"a", "b"});
  EXPECT_EQ(scored_[0].score, 1.0f);
  EXPECT_EQ(scored_[1].score, -0.5f);
}

TEST_F(RewardsTest, a_grader_that_fails_has_given_no_wrong_answer) {
  graders_.of["test"] = std::make_shared<SlowGrader>();
  EXPECT_THROW(score({"a", "broken"}), Error);
}

// The scores of the responses of one prompt, on each of several ranks.
struct PaidOnRanks {
  std::vector<std::vector<Response>> scored;
  std::vector<std::string> failed;
};
PaidOnRanks score_on_ranks(int64_t size, const std::vector<std::string>& texts, const Graders& graders) {
  const Problem problem{"p", "test", "", "question", "", {"a"}, {}};
  const TrainConfig config;
  PaidOnRanks all{std::vector<std::vector<Response>>(static_cast<size_t>(size)),
                  std::vector<std::string>(static_cast<size_t>(size))};
  testing::ThreadRanks::run(size, [&](const std::shared_ptr<Ranks>& ranks) {
    Rewards rewards(config, graders, *ranks, nullptr);
    std::vector<Response>& scored = all.scored[static_cast<size_t>(ranks->rank())];
    scored.resize(texts.size());
    const GroupToScore group{problem, texts, scored};
    try {
      rewards.score({&group, 1});
    } catch (const AgreedError& error) {
      all.failed[static_cast<size_t>(ranks->rank())] = error.what();
    }
  });
  return all;
}

std::vector<std::tuple<VerdictKind, std::string, std::string, float>> verdicts_of(const std::vector<Response>& scored) {
  std::vector<std::tuple<VerdictKind, std::string, std::string, float>> all;
  for (const Response& o : scored) all.emplace_back(o.verdict.kind, o.verdict.answer, o.verdict.reason, o.reward);
  return all;
}

TEST(rewards_of_ranks, each_response_is_graded_once_and_all_ranks_have_every_verdict) {
  const std::vector<std::string> texts = {"a", "b", "\xff\n", "a", "", "c\"", "a"};
  const auto slow = std::make_shared<SlowGrader>();
  for (const std::shared_ptr<const Grader>& grader :
       {std::shared_ptr<const Grader>(slow), std::shared_ptr<const Grader>(std::make_shared<SameTextGrader>())}) {
    const Graders graders{.standard = grader, .of = {}};
    const auto expected = verdicts_of(score_on_ranks(1, texts, graders).scored[0]);
    for (const int64_t size : {2, 3, 8}) {
      slow->asked = 0;
      for (const std::vector<Response>& scored : score_on_ranks(size, texts, graders).scored) {
        EXPECT_EQ(verdicts_of(scored), expected) << size;
      }
      EXPECT_EQ(slow->asked, grader == slow ? std::ssize(texts) : 0) << size;
    }
  }
}

TEST(rewards_of_ranks, a_grader_that_fails_on_one_ends_all_with_its_text) {
  const Graders graders{.standard = std::make_shared<SlowGrader>(), .of = {}};
  const auto said = score_on_ranks(3, {"a", "broken", "a"}, graders);
  EXPECT_EQ(said.failed, std::vector<std::string>(3, "rank 1: no verdict"));
}

TEST(rewards, weights_and_what_they_weigh_belong_together) {
  const auto refused = [](auto change) {
    RewardConfig reward;
    change(reward);
    EXPECT_THROW(reward.validate(), Error);
  };
  refused([](RewardConfig& r) { r.weights = {"command=1"}; });
  refused([](RewardConfig& r) { r.weights = {"format=1"}; });
  refused([](RewardConfig& r) { r.format = "x"; });
  refused([](RewardConfig& r) { r.command = "x", r.weights = {"answer=1"}; });
  RewardConfig both;
  both.command = "x";
  both.weights = {"answer=1", "command=0.5"};
  both.validate();
}

}  // namespace
}  // namespace ucas
