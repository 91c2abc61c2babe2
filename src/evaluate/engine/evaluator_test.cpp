#include "evaluate/engine/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "evaluate/results/table.h"
#include "support/temporary_directory.h"
#include "text/tokenizer/added_tokens.h"
#include "verify/registry.h"

namespace ucas {

namespace {

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
class Script final : public Rollouter {
 public:
  std::function<std::vector<int32_t>(uint32_t, uint32_t, bool)> script;
  std::vector<uint32_t> steps;
  std::vector<PromptJob> jobs;
  int64_t answered = 0, most = -1;  // gives up after so many

  std::vector<Episode> run(const RolloutRequest& request) override {
    steps.push_back(request.step);
    jobs.assign(request.jobs.begin(), request.jobs.end());
    std::vector<Episode> out;
    for (size_t j = 0; j < request.jobs.size(); ++j) {
      for (int64_t i = 0; i < request.jobs[j].samples; ++i) {
        if (answered == most) return out;
        ++answered;
        Episode s;
        s.job = static_cast<int64_t>(j);
        s.sample = request.jobs[j].first_sample + static_cast<uint32_t>(i);
        s.token = script(request.jobs[j].problem, s.sample, request.jobs[j].greedy);
        s.finished = !s.token.empty() && s.token.back() == kEos;
        s.logprob.assign(s.token.size(), -1);
        s.entropy.assign(s.token.size(), 0.25f * static_cast<float>(s.token.size()));
        s.confidence = s.logit = s.logprob;
        if (request.sink.on_response) request.sink.on_response(s);
        if (request.sink.keep) out.push_back(std::move(s));
      }
    }
    return out;
  }
};

struct Fixture {
  testing::TemporaryDirectory directory;
  Tokenizer tokenizer = digits_tokenizer(directory.path());
  std::shared_ptr<const Grader> grader = make_grader(GraderKind::math);
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
  EvalInput input;
  EvalRecord run(const EvalConfig& config) {
    input.problems = problems;
    input.prompts = prompts;
    input.stop_ids = {kEos};
    input.label = "model";
    input.model = "models/a";
    input.data = {"dev"};
    input.show_progress = false;
    return evaluate(rollout, tokenizer, Graders{.standard = grader, .of = {}}, input, config);
  }
};

const FigureAt& at_k(const std::vector<FigureAt>& list, int64_t k) {
  for (const FigureAt& e : list) {
    if (e.k == k) return e;
  }
  throw std::runtime_error("no such k");
}

// A journal for a fixture; closing it is what a kill does to an evaluation, minus the torn line (outputs_test).
struct Kept {
  testing::TemporaryDirectory directory;
  std::string path = directory.path() + "/t.outputs.jsonl";
  std::optional<OutputJournal> journal;

  EvalRecord run(Fixture& f, const EvalConfig& config) {
    OutputSettings settings;
    settings.keys = "problem";
    settings.sources = {{"even", "plain", "h", {kEos}, 32}, {"odd", "plain", "h", {kEos}, 32}};
    journal.emplace(path, settings);
    f.input.journal = &*journal;
    EvalRecord result = f.run(config);
    f.input.journal = nullptr;
    journal.reset();
    return result;
  }
};

// What a model would say: a pure function of the key of the sample.
std::vector<int32_t> keyed(uint32_t problem, uint32_t sample, bool greedy) {
  return boxed(static_cast<int32_t>((problem * 31 + sample * 7 + (greedy ? 5 : 0)) % 10));
}

}  // namespace

TEST(evaluator, killed_anywhere_it_goes_on_and_ends_as_the_same_bytes) {
  const EvalConfig config{.samples = 3};
  Fixture whole(4);
  whole.input.keyed_by_position = false;
  whole.rollout.script = keyed;
  Kept undisturbed;
  const EvalRecord wanted = undisturbed.run(whole, config);
  for (int64_t killed = 0; killed <= 16; ++killed) {
    Fixture f(4);
    f.input.keyed_by_position = false;
    f.rollout.script = keyed;
    f.rollout.most = killed;
    Kept kept;
    EXPECT_EQ(kept.run(f, config).complete, killed == 16);
    f.rollout.most = -1;
    f.rollout.answered = 0;
    const EvalRecord r = kept.run(f, config);
    EXPECT_EQ(f.rollout.answered, 16 - killed) << "what was there is not generated again";
    EXPECT_EQ(to_json(r), to_json(wanted));
    EXPECT_EQ(to_jsonl(r), to_jsonl(wanted));
    EXPECT_EQ(read_file(kept.path), read_file(undisturbed.path));
  }
}

// Of several ranks of a training all but the first: programs near a limit of time may not be judged twice.
TEST(evaluator, what_another_process_scores_is_drawn_and_graded_by_nobody) {
  class Counting final : public Grader {
   public:
    std::vector<Verdict> grade(std::span<const Answer> answers) const override {
      graded += std::ssize(answers);
      return std::vector<Verdict>(answers.size());
    }
    void classify(std::span<Verdict> /*group*/) const override {}
    mutable int64_t graded = 0;
  };
  const EvalConfig config{.samples = 3};
  for (const bool scored : {true, false}) {
    Fixture f(4);
    f.rollout.script = keyed;
    const auto grader = std::make_shared<Counting>();
    f.grader = grader;
    f.input.scored = scored;
    const EvalRecord r = f.run(config);
    EXPECT_TRUE(r.complete);
    EXPECT_EQ(f.rollout.answered, 16);
    EXPECT_EQ(grader->graded, scored ? 16 : 0);
    EXPECT_EQ(r.by_source.empty(), !scored);
  }
}

TEST(evaluator, a_disk_that_the_responses_may_fill_is_refused_before_the_first_of_them) {
  const EvalConfig config{.samples = 3, .max_tokens = 1000};
  Fixture f(4);
  f.input.keyed_by_position = false;
  f.rollout.script = keyed;
  Kept kept;
  f.input.disk_free = int64_t{2} * 16 * 12 * 1000;  // but for what is written besides the tokens
  try {
    kept.run(f, config);
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "limit");
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("the 16 responses may take 388 KiB of disk, of up to 1,000 tokens "
                                 "each; 375 KiB are free there"))
        << error.what();
  }
  EXPECT_EQ(f.rollout.answered, 0);
  f.input.disk_free = 0;  // what there is already is not asked for again
  f.rollout.most = 8;
  EXPECT_FALSE(kept.run(f, config).complete);
  f.input.disk_free = int64_t{2} * 16 * 12 * 1000;
  f.rollout.most = -1;
  EXPECT_TRUE(kept.run(f, config).complete);
}

TEST(evaluator, more_samples_generate_only_the_new_ones_and_fewer_lose_none) {
  Fixture f(4);
  f.rollout.script = keyed;
  Kept kept;
  const EvalRecord four = kept.run(f, {.samples = 4});
  f.rollout.answered = 0;
  const EvalRecord eight = kept.run(f, {.samples = 8, .stored_responses = 8});
  EXPECT_EQ(f.rollout.answered, 16);
  for (const PromptJob& job : f.rollout.jobs) EXPECT_EQ(job.first_sample, 4u);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t s = 0; s < 4; ++s) EXPECT_EQ(eight.rows[i].responses[s].ids, four.rows[i].responses[s].ids);
  }
  f.rollout.answered = 0;
  EXPECT_EQ(to_json(kept.run(f, {.samples = 4})), to_json(four));
  EXPECT_EQ(f.rollout.answered, 0);
  EXPECT_EQ(read_outputs(kept.path).outputs.size(), 4u * 9u);
}

TEST(evaluator, a_problems_draws_do_not_depend_on_what_else_is_asked) {
  Fixture all(4), some(4);
  all.input.keyed_by_position = some.input.keyed_by_position = false;
  some.problems.erase(some.problems.begin(), some.problems.begin() + 2);
  some.prompts.erase(some.prompts.begin(), some.prompts.begin() + 2);
  all.rollout.script = some.rollout.script = keyed;
  const EvalRecord a = all.run({.samples = 5, .stored_responses = 5}),
                   b = some.run({.samples = 5, .stored_responses = 5});
  for (size_t i = 0; i < 2; ++i) {
    for (size_t s = 0; s < 5; ++s) EXPECT_EQ(a.rows[i + 2].responses[s].ids, b.rows[i].responses[s].ids);
  }
  EXPECT_NE(sample_key(all.problems[0]), sample_key(all.problems[1]));
  Problem same_id = all.problems[0];
  same_id.source = "odd";
  EXPECT_NE(sample_key(all.problems[0]), sample_key(same_id));
}

TEST(evaluator, validation_keys_its_draws_by_place_as_ever) {
  Fixture f(3);
  f.rollout.script = keyed;
  f.run({.samples = 2});
  std::vector<uint32_t> keys;
  for (const PromptJob& job : f.rollout.jobs) keys.push_back(job.problem);
  EXPECT_EQ(keys, (std::vector<uint32_t>{0, 0, 1, 1, 2, 2}));
}

TEST(evaluator, sources_have_limits_and_stops_of_their_own) {
  Fixture f(2);
  f.rollout.script = keyed;
  const std::vector<EvalSource> sources = {{.name = "odd", .stop_ids = {3, 4}, .max_tokens = 7}};
  f.input.sources = sources;
  f.run({.samples = 0, .max_tokens = 99});
  ASSERT_EQ(f.rollout.jobs.size(), 2u);
  EXPECT_EQ(f.rollout.jobs[0].max_tokens, 0) << "0: the request's";
  EXPECT_EQ(f.rollout.jobs[1].max_tokens, 7);
  EXPECT_EQ(f.rollout.jobs[1].stop_ids.size(), 2u);
}

TEST(evaluator, figures_are_those_of_the_counts) {
  Fixture f(4);
  // Problem 0: 4 of 4 right; 1: 2 of 4; 2: 1 of 4, three different wrong; 3: none. Greedy: right on 0 and 2.
  f.rollout.script = [](uint32_t problem, uint32_t sample, bool greedy) {
    const auto right = static_cast<int32_t>(problem);
    if (greedy) return boxed(problem % 2 == 0 ? right : 9);
    const uint32_t correct[] = {4, 2, 1, 0};
    return boxed(sample < correct[problem] ? right : static_cast<int32_t>(5 + sample));
  };
  const EvalRecord r = f.run({.samples = 4, .ks = {1, 2, 4, 8}});
  ASSERT_TRUE(r.complete);
  EXPECT_DOUBLE_EQ(r.greedy.value, 0.5);
  EXPECT_NEAR(r.greedy.low, 0.0676, 1e-4);  // Clopper-Pearson of 2 in 4
  EXPECT_NEAR(r.greedy.high, 0.9324, 1e-4);
  EXPECT_DOUBLE_EQ(at_k(r.mean_at, 4).share.value, (1 + 0.5 + 0.25 + 0) / 4);
  EXPECT_DOUBLE_EQ(at_k(r.pass_at, 1).share.value, at_k(r.mean_at, 4).share.value);
  EXPECT_NEAR(at_k(r.pass_at, 2).share.value, (1 + 5.0 / 6 + 0.5 + 0) / 4, 1e-12);
  EXPECT_DOUBLE_EQ(at_k(r.pass_at, 4).share.value, 0.75);
  EXPECT_EQ(r.pass_at.size(), 3u) << "no pass@8 of 4 samples";
  // Votes: 0 right; 1: two right against 7 and 8; 2: a tie of four classes, the first seen is right; 3 wrong.
  EXPECT_DOUBLE_EQ(at_k(r.majority_at, 4).share.value, 0.75);
  EXPECT_DOUBLE_EQ(r.length, 4);
  EXPECT_DOUBLE_EQ(r.entropy, 1);
  EXPECT_EQ(r.truncated, 0);
  EXPECT_EQ(r.tokens, 4 * 5 * 4);
  EXPECT_DOUBLE_EQ(r.of("even")->greedy.value, 1);
  EXPECT_DOUBLE_EQ(r.of("odd")->greedy.value, 0);
  EXPECT_DOUBLE_EQ(at_k(r.of("odd")->mean_at, 4).share.value, 0.25);
  const auto& mean = at_k(r.mean_at, 4).share;
  EXPECT_LT(mean.low, mean.value);
  EXPECT_GT(mean.high, mean.value);
  // All problems of one opinion: the exact interval, never a width of zero.
  EXPECT_NEAR(at_k(r.of("even")->pass_at, 4).share.low, 0.1581, 1e-4);  // 2 of 2
}

TEST(evaluator, truncated_responses_count_as_asked_and_are_shown) {
  Fixture f(2);
  f.rollout.script = [](uint32_t problem, uint32_t, bool) {
    auto response = boxed(static_cast<int32_t>(problem));
    response.pop_back();  // right, but never ended
    return response;
  };
  EvalConfig config{.samples = 2};
  EXPECT_DOUBLE_EQ(f.run(config).greedy.value, 1);
  config.truncated = Truncated::wrong;
  const EvalRecord r = f.run(config);
  EXPECT_DOUBLE_EQ(r.greedy.value, 0);
  EXPECT_DOUBLE_EQ(at_k(r.mean_at, 2).share.value, 0);
  EXPECT_DOUBLE_EQ(at_k(r.majority_at, 2).share.value, 0);
  EXPECT_DOUBLE_EQ(r.truncated, 1);
  EXPECT_DOUBLE_EQ(r.unparseable, 0);
}

TEST(evaluator, unparseable_is_counted_apart_and_ids_beyond_the_vocabulary_are_no_text) {
  Fixture f(2);
  f.rollout.script = [](uint32_t problem, uint32_t, bool) {
    if (problem == 0) return std::vector<int32_t>{3, 99, kEos};  // no box; 99 is a padding row of the head
    return std::vector<int32_t>{kOpen, 1, 77, kClose, kEos};
  };
  const EvalRecord r = f.run({.samples = 0});
  EXPECT_DOUBLE_EQ(r.unparseable, 0.5);
  EXPECT_DOUBLE_EQ(r.greedy.value, 0.5);
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
  const EvalRecord r = f.run({.samples = 1});
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
  const EvalRecord r = f.run({.samples = 3, .stored_responses = 2});
  testing::TemporaryDirectory out;
  write_evaluation(r, out.path() + "/eval", "test");
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
  const EvalRecord r = f.run({.samples = 2, .bootstrap_draws = 0});
  EXPECT_TRUE(std::isnan(at_k(r.mean_at, 2).share.low));
  EXPECT_TRUE(parse_json(to_json(r), "result").at("mean@k").at(0).at("low").is_null());
}

TEST(evaluator, the_table_shows_models_side_by_side_and_each_source) {
  Fixture f(4);
  f.rollout.script = [](uint32_t problem, uint32_t, bool) { return boxed(static_cast<int32_t>(problem)); };
  std::vector<EvalRecord> results = {f.run({.samples = 2}), f.run({.samples = 0})};
  results[1].label = "other";
  const std::string table = summary_table(results);
  EXPECT_NE(table.find("problems (4)"), std::string::npos) << table;
  EXPECT_NE(table.find("greedy pass@1 %  100.0 [39.8, 100.0]  100.0 [39.8, 100.0]"), std::string::npos) << table;
  EXPECT_NE(table.find("mean@2 %         100.0 [39.8, 100.0]  -"), std::string::npos) << table;
  EXPECT_NE(table.find("\neven (2)"), std::string::npos) << table;
}

}  // namespace ucas
