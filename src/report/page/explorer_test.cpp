#include "report/page/template.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "records/run/run_directory.h"
#include "records/run/step_data.h"
#include "support/batches.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

// Two prompts of two responses; the second prompt is the one with both verdicts.
StepData two_prompts() {
  StepData data;
  data.step = 4;
  data.method = "m";
  data.groups_of_step = 9;
  data.batch = testing::make_batch(
      {{0, 0, {1, 2}, {1, 1}}, {0, 0, {1, 2}, {1, 1}}, {1, 1, {1, 2}, {1, 1}}, {1, 0, {1, 2}, {1, 1}}});
  Batch& b = data.batch;
  b.token = {5, 6, 5, 6, 5, 6, 5, 6};
  b.old_logprob.assign(8, std::log(0.25f));
  b.old_logprob[1] = std::numeric_limits<float>::quiet_NaN();
  b.rollout_logprob = b.old_logprob;
  b.responses[2].verdict.kind = VerdictKind::equal;
  data.problem = {"alike", "mixed"};
  data.piece = {"a", "</script>", "a", "b", "a", "\xe2\x80\xae", "a", "b"};
  data.advantage = {0, 0, 0, 0, 1, 3, -1, -1};
  data.trace = {{"W", false, {1, 1, 0.5f, 1.5f}}, {"l_hat", true, {0, 1, 0, 1, 0, 1, 0, 1}}};
  return data;
}

class explorer : public ::testing::Test {
 protected:
  void save(const StepData& data) {
    make_directories(path_join(folder_.path(), "signals"));
    write_file(file(data.step), step_data_lines(data));
    write_file(path_join(folder_.path(), "steps.jsonl"), "{\"training/global_step\":1,\"critic/score/mean\":0.25}\n");
  }
  std::string file(int64_t step) const { return path_join(folder_.path(), str("signals/", step_name(step), ".jsonl")); }
  ExplorerPage made(size_t budget = 1 << 20) {
    runs_ = {read_run(folder_.path())};
    return explorer_page(group_runs(runs_), budget);
  }
  Json page(size_t budget = 1 << 20) { return parse_json(made(budget).json, "page"); }
  static Json quantity(const Json& step, const std::string& symbol, size_t& index) {
    for (index = 0; index < step["quantities"].size(); ++index) {
      if (step["quantities"][index]["symbol"] == symbol) return step["quantities"][index];
    }
    return nullptr;
  }
  std::vector<RunRecord> runs_;
  testing::TemporaryDirectory folder_;
};

TEST_F(explorer, shows_what_was_recorded_with_the_equations_of_the_article) {
  save(two_prompts());
  Json step = page()["runs"][0]["steps"][0];
  EXPECT_EQ(step["step"], 4);
  size_t at = 0;
  const Json response = step["prompts"][0]["responses"][0];
  EXPECT_FALSE(quantity(step, "p", at).is_null());
  EXPECT_EQ(response["values"][at], 0.25);  // one number for all tokens: they are equal
  EXPECT_EQ(quantity(step, "W", at)["equation"], "Eq. 8");
  EXPECT_EQ(quantity(step, "W", at)["token"], false);
  EXPECT_EQ(response["values"][at], 0.5);
  EXPECT_EQ(quantity(step, "l_hat", at)["equation"], "Eq. 9");
  EXPECT_EQ(response["values"][at], Json::parse("[0, 1]"));
  EXPECT_FALSE(quantity(step, "A_t", at).is_null());
  EXPECT_EQ(response["values"][at], Json::parse("[1, 3]"));
  EXPECT_EQ(response["mean"][at], 2);
}

TEST_F(explorer, puts_prompts_with_both_verdicts_first) {
  save(two_prompts());
  Json prompts = page()["runs"][0]["steps"][0]["prompts"];
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_EQ(prompts[0]["problem"], "mixed");
  EXPECT_EQ(prompts[0]["right"], 1);
}

TEST_F(explorer, has_no_number_where_there_is_none_and_no_character_that_acts) {
  save(two_prompts());
  Json step = page()["runs"][0]["steps"][0];
  size_t at = 0;
  quantity(step, "p", at);
  EXPECT_TRUE(step["prompts"][1]["responses"][0]["values"][at][1].is_null());
  EXPECT_EQ(step["prompts"][0]["responses"][0]["text"][1], "[U+202E]");
}

TEST_F(explorer, thins_out_prompts_to_fit_and_says_so) {
  save(two_prompts());
  const size_t prompts = made().json.find("\"prompts\":["), both = made().json.size() - prompts;
  const ExplorerPage small = made(both * 2 / 3);
  EXPECT_EQ(parse_json(small.json, "page")["runs"][0]["steps"][0]["prompts"].size(), 1u);
  EXPECT_NE(small.html.find("1 of the 9 prompts"), std::string::npos) << small.html;
  EXPECT_EQ(made(10).json, "");
  EXPECT_NE(made(10).html.find("small enough"), std::string::npos);
  EXPECT_EQ(explorer_page({}, 10).html, "");
}

TEST_F(explorer, spreads_the_steps_it_shows_over_the_training) {
  StepData data = two_prompts();
  for (data.step = 1; data.step <= 11; ++data.step) save(data);
  ExplorerPage shown = made();
  std::vector<int64_t> steps;
  Json json = parse_json(shown.json, "page");
  for (const Json& step : json["runs"][0]["steps"]) steps.push_back(step["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 3, 5, 7, 9, 11}));
  EXPECT_NE(shown.html.find("6 of 11 saved steps"), std::string::npos) << shown.html;
}

TEST(token_quantities, the_sampler_is_named_only_where_it_differs_from_the_trainer) {
  auto has = [](const StepData& data) {
    for (const TokenQuantity& q : token_quantities(data)) {
      if (q.symbol == "p/p_s") return true;
    }
    return false;
  };
  StepData data = two_prompts();
  data.batch.old_logprob[1] = data.batch.rollout_logprob[1] = -1;
  EXPECT_FALSE(has(data));
  data.batch.rollout_logprob[2] = -2;
  EXPECT_TRUE(has(data));
}

TEST_F(explorer, ratio_and_clip_of_the_last_update_are_shown_where_they_were_saved) {
  StepData data = two_prompts();
  save(data);
  size_t at = 0;
  EXPECT_TRUE(quantity(page()["runs"][0]["steps"][0], "r_t", at).is_null());
  data.ratio = {1, 1, 1, 1, 0.5f, 1.25f, 1, 3};
  data.clipped = {0, 0, 0, 0, 0, 1, 0, 2};
  save(data);
  Json step = page()["runs"][0]["steps"][0];
  EXPECT_EQ(quantity(step, "r_t", at)["kind"], "update");
  EXPECT_EQ(quantity(step, "r_t", at)["equation"], "Eq. 2");
  EXPECT_EQ(step["prompts"][0]["responses"][0]["values"][at], (Json{0.5, 1.25}));  // the prompt with both verdicts
  quantity(step, "clip", at);
  EXPECT_EQ(step["prompts"][0]["responses"][1]["values"][at], (Json{0, 2}));
}

}  // namespace
}  // namespace ucas
