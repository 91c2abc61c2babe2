// The worked cases as tests: our own (tests/goldens/method_cases.json, written by tools/make_method_goldens.py), what
// verl's and TRL's own functions make of the same batches (peer_method_cases.json, the same script),
// and one of each formula (algorithm_case_files()). Those that need the engine:
// train/collect/algorithm_cases_engine_test.cpp.
#include "support/algorithm_cases.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace ucas::testing {
namespace {

constexpr const char* kGoldens = UCAS_SOURCE_DIR "/tests/goldens/method_cases.json";
constexpr const char* kPeerGoldens = UCAS_SOURCE_DIR "/tests/goldens/peer_method_cases.json";

void expect_no_failure(const std::vector<CaseResult>& results) {
  for (const CaseResult& result : results) {
    EXPECT_NE(result.outcome, CaseOutcome::failed) << result.id << ": " << result.detail;
  }
}

TEST(algorithm_cases, methods_and_objective_agree_with_an_independent_implementation) {
  auto results = run_algorithm_cases(kGoldens);
  expect_no_failure(results);
  for (const CaseResult& result : results) EXPECT_EQ(result.outcome, CaseOutcome::passed) << result.id;
  EXPECT_GE(results.size(), 16u);
}

TEST(algorithm_cases, methods_and_objective_agree_with_verls_and_trls_own_functions) {
  auto results = run_algorithm_cases(kPeerGoldens);
  for (const CaseResult& result : results) {
    EXPECT_EQ(result.outcome, CaseOutcome::passed) << result.id << ": " << result.detail;
  }
  EXPECT_EQ(results.size(), 30u);
}

TEST(algorithm_cases, one_of_each_formula_agrees) {
  for (const std::string& path : algorithm_case_files()) {
    auto results = run_algorithm_cases(path, {}, {1e-5, 1e-5});
    EXPECT_GE(results.size(), 59u) << path;
    expect_no_failure(results);
    for (const CaseResult& result : results) {
      const bool elsewhere = result.method == "lm-head" || result.method == "adamw" || result.method == "lr" ||
                             result.id == "kl-controller";
      EXPECT_EQ(result.outcome == CaseOutcome::not_covered, elsewhere) << result.id;
    }
  }
}

TEST(algorithm_cases, a_wrong_figure_is_noticed) {
  CaseReport report;
  report.close("right", 1.0, 1.0000001);
  EXPECT_EQ(report.failure(), "");
  report.close("wrong", 1.0, 1.001);
  EXPECT_NE(report.failure().find("wrong"), std::string::npos);
  CaseReport nan;
  nan.close("nan", std::nan(""), 0.0);
  EXPECT_NE(nan.failure(), "");
  EXPECT_EQ(nan.worst(), HUGE_VAL);
}

// Runs one case made of the pieces given.
class OneCase : public ::testing::Test {
 protected:
  OneCase() : path_(std::filesystem::temp_directory_path() / ("ucas-case-" + std::to_string(getpid()) + ".json")) {}
  ~OneCase() override { std::filesystem::remove(path_); }
  std::vector<CaseResult> run_text(const std::string& text) {
    std::ofstream(path_) << text;
    return run_algorithm_cases(path_.string(), {}, kContract);
  }
  CaseResult run(const Json& c) { return run_text(Json{{"schema", 1}, {"cases", {c}}}.dump()).at(0); }
  std::filesystem::path path_;

  Json good_ = {{"id", "any"},
                {"method", "grpo"},
                {"variant", "verl"},
                {"inputs",
                 {{"rewards", {1, 0, 0, 1}},
                  {"mask", {{1, 1}, {1, 0}, {1, 1}, {0, 0}}},
                  {"uid", {"a", 7, "a", 7}},
                  {"eps", 1e-6},
                  {"ddof", 1}}},
                {"expected", {{"advantages", {{0.707106, 0.707106}, {-0.707106, 0}, {-0.707106, -0.707106}, {0, 0}}}}}};
};

TEST_F(OneCase, passes_whatever_its_id_the_kind_of_its_uid_and_the_order_of_its_rows) {
  EXPECT_EQ(run(good_).outcome, CaseOutcome::passed) << run(good_).detail;
  good_["expected"]["advantages"][1][0] = 0.7;
  EXPECT_EQ(run(good_).outcome, CaseOutcome::failed);
}

TEST_F(OneCase, fails_on_a_figure_that_nothing_compares) {
  good_["expected"]["momentum"] = 1;
  EXPECT_NE(run(good_).detail.find("nothing compares expected momentum"), std::string::npos);
}

TEST_F(OneCase, fails_on_an_input_that_nothing_reads) {
  good_["inputs"]["gravity"] = 9.81;
  EXPECT_NE(run(good_).detail.find("nothing reads input gravity"), std::string::npos);
}

TEST_F(OneCase, fails_where_an_input_is_missing_or_of_another_shape) {
  for (const char* key : {"rewards", "mask"}) {
    Json shorter = good_;
    shorter["inputs"][key].erase(3);
    EXPECT_EQ(run(shorter).outcome, CaseOutcome::failed) << key;
  }
  good_["inputs"]["eps"] = "small";
  EXPECT_EQ(run(good_).outcome, CaseOutcome::failed);
}

TEST_F(OneCase, is_counted_as_not_covered_where_no_method_has_its_name) {
  good_["method"] = "telepathy";
  std::vector<CaseResult> results = {run(good_), run(good_)};
  EXPECT_EQ(results[0].outcome, CaseOutcome::not_covered);
  EXPECT_NE(case_table(results).find("not covered: telepathy, 2 cases"), std::string::npos) << case_table(results);
}

TEST_F(OneCase, in_a_file_that_is_none_is_refused) {
  for (const char* text : {"", "[]", "{}", "{\"cases\": 3}", "{\"cases\": [{\"id\": \"a\"}]}",
                           "{\"schema\": 2, \"cases\": []}", "{\"cases\": [7]}"}) {
    EXPECT_THROW(run_text(text), Error) << text;
  }
  EXPECT_THROW(run_algorithm_cases("/nowhere/at-all.json"), Error);
}

}  // namespace
}  // namespace ucas::testing
