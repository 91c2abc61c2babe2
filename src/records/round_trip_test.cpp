// What is written into a run directory reads back as it was; the files with tests of their own are not repeated here
// (step_data, outputs, asked).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "records/evaluation.h"
#include "records/run/rollouts.h"
#include "records/run/run_directory.h"
#include "records/run/steps.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class round_trip : public ::testing::Test {
 protected:
  std::string file(const char* name) const { return folder_.path() + "/" + name; }
  testing::TemporaryDirectory folder_;
  std::vector<std::string> missing_, remarks_;
};

void expect_same(const Figure& a, const Figure& b) {
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

EvalRecord evaluation() {
  EvalRecord e;
  e.label = "tiny \"x\"";
  e.model = "runs/a";
  e.suite = "two";
  e.data = "a, b";
  e.step = 12;
  e.config.samples = 64;
  e.config.temperature = 0.7;
  e.config.seed = 5;
  e.problems = 3;
  e.entropy = 0.1;
  e.length = 17.5;
  e.truncated = 0.25;
  e.unparseable = 1.0 / 3;
  e.greedy = {0.5, 0.1, 0.9};
  e.mean_at = {{16, {0.4, 0.3, 0.5}}, {64, {0.41, kUnknown, kUnknown}}};
  e.pass_at = {{1, {0.4, 0.3, 0.5}}};
  e.majority_at = {{64, {1, 0.9, 1}}};
  e.cover = {0.5, 0.25, 0.75};
  EvalNumbers b, a;
  b.problems = 1;
  a.problems = 2;
  a.greedy = {1, 0.2, 1};
  e.by_source = {{"b", b}, {"a", a}};
  e.macro.emplace().greedy = {0.75, 0.2, 1};
  ProblemRow& row = e.rows.emplace_back();
  row.id = "1";
  row.source = "b";
  row.subject = "algebra";
  row.problem = "1 + 1 = ?\xff";
  row.gold = {"2", "two"};
  row.samples = 64;
  row.correct = 7;
  row.mean_length = 9.5;
  row.greedy = {.response = "\\boxed{2}",
                .answer = "2",
                .verdict = VerdictKind::equal,
                .tokens = 4,
                .ids = {1, 2},
                .logprob = -0.5,
                .entropy = 0.25,
                .confidence = 12};
  row.responses = {{.response = "?", .verdict = VerdictKind::over_budget, .tokens = 9, .finished = false}};
  return e;
}

TEST_F(round_trip, of_an_evaluation) {
  const EvalRecord e = evaluation();
  write_evaluation(e, folder_.path(), "t");
  const EvalRecord again = read_evaluation(folder_.path(), "t", missing_, remarks_);
  EXPECT_TRUE(missing_.empty() && remarks_.empty());
  EXPECT_EQ(again.name, "t");
  EXPECT_EQ(again.label, e.label);
  EXPECT_EQ(again.suite, e.suite);
  EXPECT_EQ(again.data, e.data);
  EXPECT_EQ(again.step, e.step);
  EXPECT_EQ(again.config.samples, 64);
  EXPECT_EQ(again.config.temperature, 0.7);
  EXPECT_EQ(again.config.seed, 5);
  EXPECT_EQ(again.unparseable, e.unparseable);
  expect_same(again.greedy, e.greedy);
  ASSERT_EQ(again.mean_at.size(), 2u);
  EXPECT_FALSE(again.mean_at[1].share.bounded());
  expect_same(again.majority_at.at(0).share, e.majority_at[0].share);
  expect_same(again.cover, e.cover);
  EXPECT_EQ(again.by_source.at(0).first, "b") << "in order of the problems, not of the alphabet";
  EXPECT_FALSE(again.of("b")->greedy.known());
  expect_same(again.of("a")->greedy, e.of("a")->greedy);
  expect_same(again.macro->greedy, e.macro->greedy);
  EXPECT_EQ(to_jsonl(again).substr(0, 80), to_jsonl(e).substr(0, 80));
  const ProblemRow& row = again.rows.at(0);
  EXPECT_EQ(row.subject, "algebra");
  EXPECT_EQ(row.problem, "1 + 1 = ?\xef\xbf\xbd");  // a byte that is not UTF-8
  EXPECT_EQ(row.mean_length, 9.5);
  EXPECT_TRUE(row.greedy->right());
  EXPECT_EQ(row.greedy->confidence, 12);
  EXPECT_EQ(row.responses.at(0).verdict, VerdictKind::over_budget);
  EXPECT_FALSE(row.responses.at(0).finished);
  EXPECT_TRUE(std::isnan(row.responses.at(0).entropy));
}

TEST_F(round_trip, of_how_an_evaluation_was_made) {
  EvalRecord e = evaluation();
  e.config.truncated = Truncated::wrong;
  e.config.max_tokens = 32;
  e.asked = Asked{.version = "0.2.0",
                  .grader_version = 4,
                  .origin = "file",
                  .keys = "place",
                  .model_files = {{"model.safetensors", 7, "feedbeefcafe"}},
                  .sets = {{.name = "b",
                            .prompt_template = "plain",
                            .template_sha256 = "00ff",
                            .stop_texts = {"<end>", "\n"},
                            .max_tokens = 32,
                            .problems = 2,
                            .problems_sha256 = "0123",
                            .grader = GraderKind::letter,
                            .extract = Extract::answer_tag}}};
  write_evaluation(e, folder_.path(), "t");
  const EvalRecord again = read_evaluation(folder_.path(), "t", missing_, remarks_);
  ASSERT_TRUE(again.asked);
  EXPECT_EQ(json_text(to_json(*again.asked)), json_text(to_json(*e.asked)));
  EXPECT_EQ(again.config.truncated, Truncated::wrong);
  EXPECT_EQ(again.config.max_tokens, 32);
  for (const auto& [from, to] :
       {std::pair{"\"max_tokens\": 32,\n        \"grader\"", "\"max_tokens\": \"many\", \"grader\""},
        std::pair{"\"answer_tag\"", "\"guess\""}, std::pair{"\"problems_sha256\"", "\"problems_md5\""}}) {
    std::string changed = to_json(e);
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    write_file(file("t.json"), changed.replace(changed.find(from), std::string(from).size(), to));
    try {
      read_evaluation(folder_.path(), "t", missing_, remarks_);
      ADD_FAILURE() << "accepted: " << to;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("t.json: asked.sets[0]"), std::string::npos) << error.what();
    }
  }
}

TEST_F(round_trip, of_hashes_of_the_files_that_decide_what_a_model_answers_and_no_others) {
  write_file(file("config.json"), "{}");
  write_file(file("model-00001-of-00002.safetensors"), "weights one");
  write_file(file("model-00002-of-00002.safetensors"), "weights two");
  write_file(file("optimizer.safetensors"), "moments");
  const std::vector<ModelFile> files = hash_model_files(folder_.path());
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].name, "config.json");
  EXPECT_EQ(files[2].sha256, sha256_of_text("weights two"));
}

TEST(problems_sha256, changes_with_gold_question_id_subject_and_order) {
  const auto problem = [](const std::string& id, const std::string& text, const std::vector<std::string>& gold) {
    Problem out;
    out.id = id, out.source = "sums", out.text = text, out.gold = gold;
    return out;
  };
  const std::vector<Problem> before = {problem("1", "1+1?", {"2"}), problem("2", "2+2?", {"4", "four"})};
  for (auto change : std::vector<void (*)(std::vector<Problem>&)>{
           [](std::vector<Problem>& p) { p[0].gold[0] = "3"; }, [](std::vector<Problem>& p) { p[1].gold.pop_back(); },
           [](std::vector<Problem>& p) { p[1].text += " "; }, [](std::vector<Problem>& p) { p[0].id = "7"; },
           [](std::vector<Problem>& p) { p[0].subject = "algebra"; },
           [](std::vector<Problem>& p) { std::swap(p[0], p[1]); }}) {
    std::vector<Problem> problems = before;
    change(problems);
    EXPECT_NE(problems_sha256(problems, "sums"), problems_sha256(before, "sums"));
  }
  EXPECT_EQ(problems_sha256(before, "products"), sha256_of_text(""));
}

TEST_F(round_trip, of_a_verdict_of_another_name_is_refused_by_line) {
  write_file(file("t.json"), "{}");
  write_file(file("t.jsonl"), "{\"id\": \"1\", \"greedy\": {\"verdict\": \"right\"}}\n");
  try {
    read_evaluation(folder_.path(), "t", missing_, remarks_);
    ADD_FAILURE() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), file("t.jsonl") +
                                             ":1: greedy: \"verdict\": string \"right\", expected equal, " +
                                             "unequal, unparseable or over_budget");
  }
}

TEST_F(round_trip, of_the_environment_with_quotes_and_later_remarks) {
  RunEnvironment e{.label = "base", .version = "0.1", .device = "cpu \"0\"", .threads = 2, .parameters = 7};
  write_environment(file("env.json"), e);
  add_remark(file("env.json"), "steps 2 are missing");
  add_remark(file("env.json"), "steps 2 are missing");
  const std::map<std::string, std::string> expected = {{"device", "cpu \"0\""}, {"label", "base"},
                                                       {"parameters", "7"},     {"remarks", "steps 2 are missing"},
                                                       {"threads", "2"},        {"version", "0.1"}};
  EXPECT_EQ(read_environment(file("env.json")), expected);
  EXPECT_EQ(read_remarks(file("env.json")).size(), 1u);
}

TEST_F(round_trip, of_steps_with_numbers_that_are_not_finite) {
  const std::vector<std::pair<std::string, double>> values = {
      {"training/global_step", 1}, {"a/b", 0.1}, {"c", std::nan("")}, {"d", 1e300}};
  EXPECT_EQ(step_line(values), "{\"training/global_step\": 1, \"a/b\": 0.1, \"c\": null, \"d\": 1e+300}");
  write_file(file("steps.jsonl"), step_line(values) + "\n");
  const StepTable table = read_steps(file("steps.jsonl"), remarks_);
  EXPECT_EQ(table.last("a/b"), 0.1);
  EXPECT_EQ(table.last("d"), 1e300);
  EXPECT_EQ(table.not_finite.at(0).first, "c");
}

// Of data sources, which come from files of any origin.
TEST_F(round_trip, of_steps_with_metrics_of_any_name) {
  const std::vector<std::string> sources = {
      "say \"x\"",  "a\\b",      "tab\t",        "\x1b[31m",
      "two\nlines", "nul\u0001", "\u65e5\u672c", "x/acc/mean@1\": 0, \"critic/score/mean\": 99, \"z"};
  std::vector<std::pair<std::string, double>> values = {{"training/global_step", 1}};
  for (const std::string& source : sources) values.emplace_back("val-core/" + source + "/acc/mean@1", 0.25);
  values.emplace_back("val-core/\xff/acc/mean@1", 0.5);
  const std::string line = step_line(values);
  EXPECT_TRUE(std::ranges::none_of(line, [](unsigned char c) { return c < ' '; })) << line;
  write_file(file("steps.jsonl"), line + "\n");
  const StepTable table = read_steps(file("steps.jsonl"), remarks_);
  EXPECT_EQ(table.column.size(), values.size());
  for (const std::string& source : sources) EXPECT_EQ(table.last("val-core/" + source + "/acc/mean@1"), 0.25) << source;
  EXPECT_EQ(table.find("critic/score/mean"), nullptr);
  values.emplace_back("val-core/\\xff/acc/mean@1", 1);  // as the name that is no UTF-8 is written
  EXPECT_THROW(step_line(values), Error);
}

TEST_F(round_trip, of_a_response_of_a_step) {
  StoredResponse r{.step = 3,
                   .sample = 2,
                   .tokens = 4,
                   .problem = "p",
                   .source = "s",
                   .prompt = "q",
                   .response = "r\n",
                   .answer = "5",
                   .reason = "why",
                   .gold = {"6"},
                   .verdict = VerdictKind::unequal,
                   .finished = false,
                   .score = 0,
                   .reward = -0.5,
                   .advantage = 0.1f};
  write_file(file("r.jsonl"), rollout_line(r) + rollout_line(r));
  const std::vector<StoredResponse> again = read_rollouts(file("r.jsonl"), remarks_);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(rollout_line(again[1]), rollout_line(r));
  EXPECT_EQ(again[0].verdict, VerdictKind::unequal);
  EXPECT_EQ(again[0].gold, r.gold);
  EXPECT_EQ(again[0].advantage, r.advantage);
  EXPECT_EQ(rollout_line(r).find("inserts"), std::string::npos);
  r.inserts = {{2, {7, 8}, "<result>4</result>"}};
  r.transcript = "r<result>4</result>\n";
  write_file(file("r.jsonl"), rollout_line(r));
  EXPECT_EQ(rollout_line(read_rollouts(file("r.jsonl"), remarks_).at(0)), rollout_line(r));
}

}  // namespace
}  // namespace ucas
