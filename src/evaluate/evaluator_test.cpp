#include "evaluate/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "evaluate/table.h"
#include "text/word_level.h"

namespace ucas {

namespace {

class TempDirectory {
 public:
  TempDirectory() : path_("/tmp/ucas-evaluator-XXXXXX") { UCAS_CHECK(::mkdtemp(path_.data()) != nullptr, "a folder"); }
  ~TempDirectory() { remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Words are the answers themselves: id i is "i" for i < 10, then the pieces of a box, then pad and eos.
constexpr int32_t kOpen = 10, kClose = 11, kEos = 13;

Tokenizer digits_tokenizer(const std::string& directory) {
  std::vector<std::string> words;
  for (int i = 0; i < 10; ++i) words.push_back(str(i));
  words.push_back("\\boxed{");
  words.push_back("}");
  write_word_level_tokenizer(directory, words, "<eos>", "<pad>");
  return Tokenizer::load(directory);
}

std::vector<int32_t> boxed(int32_t digit) { return {kOpen, digit, kClose, kEos}; }

// script(problem, sample, greedy) -> token ids.
class Script final : public Rollout {
 public:
  std::function<std::vector<int32_t>(uint32_t, uint32_t, bool)> script;
  std::vector<uint32_t> steps;
  std::vector<PromptJob> jobs;
  int64_t answered = 0, most = -1;  // gives up after so many

  std::vector<Sampled> run(const RolloutRequest& request) override {
    steps.push_back(request.step);
    jobs.assign(request.jobs.begin(), request.jobs.end());
    std::vector<Sampled> out;
    for (size_t j = 0; j < request.jobs.size(); ++j) {
      for (int64_t i = 0; i < request.jobs[j].samples; ++i) {
        if (answered == most) return out;
        ++answered;
        Sampled s;
        s.job = static_cast<int64_t>(j);
        s.sample = request.jobs[j].first_sample + static_cast<uint32_t>(i);
        s.token = script(request.jobs[j].problem, s.sample, request.jobs[j].greedy);
        s.finished = !s.token.empty() && s.token.back() == kEos;
        s.logprob.assign(s.token.size(), -1);
        s.entropy.assign(s.token.size(), 0.25f * static_cast<float>(s.token.size()));
        s.confidence = s.logit = s.logprob;
        if (request.on_response) request.on_response(s);
        if (request.keep) out.push_back(std::move(s));
      }
    }
    return out;
  }
};

struct Fixture {
  TempDirectory directory;
  Tokenizer tokenizer = digits_tokenizer(directory.path());
  std::unique_ptr<Verifier> verifier = make_math_verifier();
  Script rollout;
  std::vector<Problem> problems;
  std::vector<std::vector<int32_t>> prompts;

  explicit Fixture(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      Problem& problem = problems.emplace_back();
      problem.id = str("p", i);
      problem.source = i % 2 == 0 ? "even" : "odd";
      problem.text = "?";
      problem.gold = {str(i % 10)};
      prompts.push_back({static_cast<int32_t>(i % 10)});
    }
  }
  EvalResult run(const EvalConfig& config) {
    EvalInput input;
    input.problems = problems;
    input.prompts = prompts;
    input.stop_ids = {kEos};
    input.label = "model";
    input.model = "models/a";
    input.data = {"dev"};
    input.show_progress = false;
    return evaluate(rollout, tokenizer, *verifier, input, config);
  }
};

const EstimateAt& at_k(const std::vector<EstimateAt>& list, int64_t k) {
  for (const EstimateAt& e : list) {
    if (e.k == k) return e;
  }
  throw std::runtime_error("no such k");
}

}  // namespace

TEST(evaluator, figures_are_those_of_the_counts) {
  Fixture f(4);
  // Problem 0: 4 of 4 right; 1: 2 of 4; 2: 1 of 4, three different wrong; 3: none. Greedy: right on 0 and 2.
  f.rollout.script = [](uint32_t problem, uint32_t sample, bool greedy) {
    const auto right = static_cast<int32_t>(problem);
    if (greedy) return boxed(problem % 2 == 0 ? right : 9);
    const uint32_t correct[] = {4, 2, 1, 0};
    return boxed(sample < correct[problem] ? right : static_cast<int32_t>(5 + sample));
  };
  const EvalResult r = f.run({.samples = 4, .ks = {1, 2, 4, 8}});
  ASSERT_TRUE(r.complete);
  EXPECT_DOUBLE_EQ(r.overall.greedy->value, 0.5);
  EXPECT_NEAR(r.overall.greedy->low, 0.0676, 1e-4);  // Clopper-Pearson of 2 in 4
  EXPECT_NEAR(r.overall.greedy->high, 0.9324, 1e-4);
  EXPECT_DOUBLE_EQ(at_k(r.overall.mean, 4).estimate.value, (1 + 0.5 + 0.25 + 0) / 4);
  EXPECT_DOUBLE_EQ(at_k(r.overall.pass, 1).estimate.value, at_k(r.overall.mean, 4).estimate.value);
  EXPECT_NEAR(at_k(r.overall.pass, 2).estimate.value, (1 + 5.0 / 6 + 0.5 + 0) / 4, 1e-12);
  EXPECT_DOUBLE_EQ(at_k(r.overall.pass, 4).estimate.value, 0.75);
  EXPECT_EQ(r.overall.pass.size(), 3u) << "no pass@8 of 4 samples";
  // Votes: 0 right; 1: two right against 7 and 8; 2: a tie of four classes, the first seen is right; 3 wrong.
  EXPECT_DOUBLE_EQ(at_k(r.overall.majority, 4).estimate.value, 0.75);
  EXPECT_DOUBLE_EQ(r.overall.length, 4);
  EXPECT_DOUBLE_EQ(r.overall.entropy, 1);
  EXPECT_EQ(r.overall.truncated_share, 0);
  EXPECT_EQ(r.tokens, 4 * 5 * 4);
  EXPECT_DOUBLE_EQ(r.by_source.at("even").greedy->value, 1);
  EXPECT_DOUBLE_EQ(r.by_source.at("odd").greedy->value, 0);
  EXPECT_DOUBLE_EQ(at_k(r.by_source.at("odd").mean, 4).estimate.value, 0.25);
  const auto& mean = at_k(r.overall.mean, 4).estimate;
  EXPECT_LT(mean.low, mean.value);
  EXPECT_GT(mean.high, mean.value);
  // All problems of one opinion: the exact interval, never a width of zero.
  EXPECT_NEAR(at_k(r.by_source.at("even").pass, 4).estimate.low, 0.1581, 1e-4);  // 2 of 2
}

TEST(evaluator, truncated_responses_count_as_asked_and_are_shown) {
  Fixture f(2);
  f.rollout.script = [](uint32_t problem, uint32_t, bool) {
    auto response = boxed(static_cast<int32_t>(problem));
    response.pop_back();  // right, but never ended
    return response;
  };
  EvalConfig config{.samples = 2};
  EXPECT_DOUBLE_EQ(f.run(config).overall.greedy->value, 1);
  config.truncated = EvalConfig::Truncated::wrong;
  const EvalResult r = f.run(config);
  EXPECT_DOUBLE_EQ(r.overall.greedy->value, 0);
  EXPECT_DOUBLE_EQ(at_k(r.overall.mean, 2).estimate.value, 0);
  EXPECT_DOUBLE_EQ(at_k(r.overall.majority, 2).estimate.value, 0);
  EXPECT_DOUBLE_EQ(r.overall.truncated_share, 1);
  EXPECT_DOUBLE_EQ(r.overall.unparseable_share, 0);
}

TEST(evaluator, unparseable_is_counted_apart_and_ids_beyond_the_vocabulary_are_no_text) {
  Fixture f(2);
  f.rollout.script = [](uint32_t problem, uint32_t, bool) {
    if (problem == 0) return std::vector<int32_t>{3, 99, kEos};  // no box; 99 is a padding row of the head
    return std::vector<int32_t>{kOpen, 1, 77, kClose, kEos};
  };
  const EvalResult r = f.run({.samples = 0});
  EXPECT_DOUBLE_EQ(r.overall.unparseable_share, 0.5);
  EXPECT_DOUBLE_EQ(r.overall.greedy->value, 0.5);
  EXPECT_EQ(r.rows[0].greedy->response, "3");
  EXPECT_EQ(r.rows[1].greedy->answer, "1");
  EXPECT_EQ(r.rows[0].mean_length, 3);
}

TEST(evaluator, draws_never_share_a_step_with_training) {
  Fixture f(1);
  f.rollout.script = [](uint32_t, uint32_t, bool) { return boxed(0); };
  f.run({.samples = 1});
  ASSERT_EQ(f.rollout.steps.size(), 1u) << "greedy and samples share one run";
  for (uint32_t step : f.rollout.steps) EXPECT_GE(step, 0x80000000u);
}

TEST(evaluator, stopped_early_it_gives_no_figures) {
  Fixture f(3);
  f.rollout.script = [](uint32_t, uint32_t, bool) { return boxed(0); };
  f.rollout.most = 2;
  const EvalResult r = f.run({.samples = 1});
  EXPECT_FALSE(r.complete);
  EXPECT_TRUE(r.rows.empty());
}

TEST(evaluator, nothing_to_do_is_an_error) {
  Fixture f(1);
  EXPECT_THROW(f.run({.greedy = false, .samples = 0}), Error);
}

TEST(evaluator, the_files_hold_what_the_report_reads) {
  Fixture f(3);
  f.rollout.script = [](uint32_t problem, uint32_t, bool greedy) {
    return boxed(greedy ? 1 : static_cast<int32_t>(problem));
  };
  const EvalResult r = f.run({.samples = 3, .stored_responses = 2});
  TempDirectory out;
  write_result(r, out.path() + "/eval", "test");
  const Json figures = read_json(out.path() + "/eval/test.json", 1 << 20);
  EXPECT_EQ(figures.at("label"), "model");
  EXPECT_EQ(figures.at("data"), "dev");
  EXPECT_TRUE(figures.at("step").is_null());
  EXPECT_EQ(figures.at("problems"), 3);
  EXPECT_DOUBLE_EQ(figures.at("greedy").at("pass@1").at("value").get<double>(), 1.0 / 3);
  EXPECT_EQ(figures.at("mean@k").at(0).at("k"), 3);
  EXPECT_DOUBLE_EQ(figures.at("mean@k").at(0).at("value").get<double>(), 1);
  EXPECT_EQ(figures.at("pass@k").size(), 2u);
  EXPECT_EQ(figures.at("by_source").at("odd").at("problems"), 1);
  const auto lines = split(read_file(out.path() + "/eval/test.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 4u);
  const Json row = parse_json(lines[2], "row");
  EXPECT_EQ(row.at("id"), "p2");
  EXPECT_EQ(row.at("gold").at(0), "2");
  EXPECT_EQ(row.at("greedy").at("verdict"), "unequal");
  EXPECT_EQ(row.at("samples"), 3);
  EXPECT_EQ(row.at("correct"), 3);
  EXPECT_EQ(row.at("responses").size(), 2u);
  EXPECT_EQ(row.at("responses").at(0).at("response"), "\\boxed{2}");
  EXPECT_EQ(row.at("responses").at(0).at("tokens"), 4);
}

TEST(evaluator, without_bootstrap_draws_intervals_are_unknown_not_invented) {
  Fixture f(2);
  f.rollout.script = [](uint32_t problem, uint32_t sample, bool) {
    return boxed(static_cast<int32_t>(problem + sample % 2));
  };
  const EvalResult r = f.run({.samples = 2, .bootstrap_draws = 0});
  EXPECT_TRUE(std::isnan(at_k(r.overall.mean, 2).estimate.low));
  EXPECT_TRUE(parse_json(to_json(r), "result").at("mean@k").at(0).at("low").is_null());
}

TEST(evaluator, the_table_shows_models_side_by_side_and_each_source) {
  Fixture f(4);
  f.rollout.script = [](uint32_t problem, uint32_t, bool) { return boxed(static_cast<int32_t>(problem)); };
  std::vector<EvalResult> results = {f.run({.samples = 2}), f.run({.samples = 0})};
  results[1].label = "other";
  const std::string table = summary_table(results);
  EXPECT_NE(table.find("problems (4)"), std::string::npos) << table;
  EXPECT_NE(table.find("greedy pass@1 %  100.0 [39.8, 100.0]  100.0 [39.8, 100.0]"), std::string::npos) << table;
  EXPECT_NE(table.find("mean@2 %         100.0 [39.8, 100.0]  -"), std::string::npos) << table;
  EXPECT_NE(table.find("\neven (2)"), std::string::npos) << table;
}

}  // namespace ucas
