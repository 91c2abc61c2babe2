#include "evaluate/benchmark.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class benchmark : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const std::string path = path_join(folder_.path(), name);
    make_directories(path.substr(0, path.find_last_of('/')));
    write_file(path, text);
    return path;
  }
  template <class Call>
  std::string refusal(Call call) {
    try {
      call();
    } catch (const Error& error) {
      return str("[", error.word(), "] ", error.what());
    }
    return "accepted";
  }
  testing::TemporaryDirectory folder_;
};

const std::string kTwo =
    "{\"id\": 1, \"problem\": \"1+1?\", \"answer\": \"2\"}\n{\"id\": 2, \"problem\": \"1+2?\", \"answer\": 3}\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(benchmark, the_paper_s_suite_has_its_five_sets_in_the_order_of_its_table) {
  const Suite suite = load_suite("math5");
  std::vector<std::string> names;
  std::vector<int64_t> counts;
  for (const Benchmark& b : suite.benchmarks) {
    names.push_back(b.name);
    counts.push_back(b.problems);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"aime24", "math500", "amc83", "minerva", "olympiadbench"}));
  EXPECT_EQ(counts, (std::vector<int64_t>{30, 500, 83, 272, 675}));
  EXPECT_EQ(suite.max_tokens, 3000);
  EXPECT_EQ(suite.samples, 0);
  EXPECT_EQ(suite.prompt_template, "qwen_math");
}

TEST_F(benchmark, every_embedded_description_reads_and_is_named_like_its_file) {
  int64_t suites = 0, benchmarks = 0;
  for (const std::string& path : embedded_names("suites/")) {
    const std::string name = path.substr(7, path.size() - 12);
    EXPECT_EQ(load_suite(name).name, name);
    ++suites;
  }
  for (const std::string& path : embedded_names("benchmarks/")) {
    const std::string name = path.substr(11, path.size() - 16);
    const Suite suite = load_suite(name);
    ASSERT_EQ(suite.benchmarks.size(), 1u);
    EXPECT_EQ(suite.benchmarks[0].name, name);
    EXPECT_EQ(suite.benchmarks[0].problems == 0, name == "livecodebench") << "its releases hold different problems";
    EXPECT_EQ(suite.samples, 0) << "as in math5";
    ++benchmarks;
  }
  EXPECT_GE(suites, 3);
  EXPECT_GE(benchmarks, 15);
}

TEST_F(benchmark, the_embedded_ones_fit_the_shared_data) {
  const char* said = std::getenv("UCAS_SHARED_DATA");
  const std::string data = said != nullptr ? said : str(UCAS_SOURCE_DIR, "/../shared/data");
  if (!is_directory(data)) GTEST_SKIP() << "no shared data here (UCAS_SHARED_DATA)";
  for (const std::string& path : embedded_names("benchmarks/")) {
    const Benchmark b = load_suite(path.substr(11, path.size() - 16)).benchmarks[0];
    // Not among the shared data:
    if (b.name == "livecodebench" || b.name == "mmlu") continue;
    if (b.path.starts_with("hf://") && !exists(str(data, "/eval/", b.name, ".jsonl"))) continue;
    const std::vector<Problem> problems = read_benchmark(b, data);
    EXPECT_EQ(static_cast<int64_t>(problems.size()), b.problems) << b.name;
    for (const Problem& problem : problems) EXPECT_EQ(problem.source, b.name);
    if (b.path.starts_with("eval/")) {
      EXPECT_EQ(read_benchmark(b, data + "/eval").size(), problems.size());
    }
  }
}

TEST_F(benchmark, files_are_found_below_the_folder_or_by_their_name_alone) {
  Benchmark b;
  b.name = "two";
  b.path = "eval/two.jsonl";
  EXPECT_TRUE(has(refusal([&] { read_benchmark(b, folder_.path()); }),
                  "[path] benchmark two: neither eval/two.jsonl nor two.jsonl is in --data "));
  EXPECT_TRUE(
      has(refusal([&] { read_benchmark(b, ""); }), "[usage] benchmark two needs eval/two.jsonl; say with --data"));
  file("two.jsonl", kTwo);
  EXPECT_EQ(read_benchmark(b, folder_.path())[1].gold[0], "3");
  file("eval/two.jsonl", kTwo + "{\"id\": 3, \"problem\": \"1+3?\", \"answer\": 4}\n");
  EXPECT_EQ(read_benchmark(b, folder_.path()).size(), 3u);
}

TEST_F(benchmark, another_number_of_problems_or_an_id_twice_is_refused) {
  Benchmark b;
  b.name = "two";
  b.path = "two.jsonl";
  b.problems = 3;
  file("two.jsonl", kTwo);
  EXPECT_TRUE(
      has(refusal([&] { read_benchmark(b, folder_.path()); }), "two.jsonl: 2 problems, but benchmark two has 3"));
  b.problems = 4;
  file("two.jsonl", kTwo + kTwo);
  EXPECT_TRUE(has(refusal([&] { read_benchmark(b, folder_.path()); }), "[data_line] "));
  EXPECT_TRUE(has(refusal([&] { read_benchmark(b, folder_.path()); }), "duplicate id 1"));
}

TEST_F(benchmark, problems_without_an_answer_are_counted_on) {
  Benchmark b;
  b.name = "two";
  b.path = "two.jsonl";
  file("two.jsonl", kTwo + "{\"id\": 3, \"problem\": \"1+3?\", \"answer\": \"\"}\n");
  EXPECT_TRUE(has(refusal([&] { read_benchmark(b, folder_.path()); }), "two.jsonl:3: \"answer\": the answer is empty"));
  b.unanswered = 1;
  EXPECT_TRUE(read_benchmark(b, folder_.path()).at(2).gold.empty());
  b.unanswered = 2;
  EXPECT_TRUE(has(refusal([&] { read_benchmark(b, folder_.path()); }), "1 problems without an answer"));
}

TEST_F(benchmark, letters_and_choices_are_asked_for_where_they_are_graded) {
  Benchmark b;
  b.name = "two";
  b.path = "two.jsonl";
  b.grader = GraderKind::letter;
  file("two.jsonl", kTwo);
  EXPECT_TRUE(
      has(refusal([&] { read_benchmark(b, folder_.path()); }), "problem 1 has the answer \"2\"; grader = \"letter\""));
  file("two.jsonl", R"({"id": 1, "problem": "1+1?", "choices": ["1", "2"], "answer": 1})");
  EXPECT_EQ(read_benchmark(b, folder_.path())[0].gold[0], "B");
}

TEST_F(benchmark, graders_read_mathematics_or_a_letter) {
  const std::vector<std::string> gold = {"C"};
  const Answer answers[] = {{"\\boxed{C}", &gold}, {"the answer is (C)", &gold}, {"D", &gold}, {"none", &gold}};
  const auto kinds = [&](GraderKind grader) {
    std::vector<std::string> out;
    for (const Verdict& verdict : make_grader(grader, Extract::strict)->grade(answers)) {
      out.emplace_back(name_of(verdict.kind));
    }
    return out;
  };
  EXPECT_EQ(kinds(GraderKind::math), (std::vector<std::string>{"equal", "unparseable", "unparseable", "unparseable"}));
  EXPECT_EQ(kinds(GraderKind::letter), (std::vector<std::string>{"equal", "equal", "unequal", "unparseable"}));
  EXPECT_EQ(kinds(GraderKind::choice), kinds(GraderKind::letter));
}

// Rows of our own in the layout in which the sets are published, as many as each has.
TEST_F(benchmark, sets_of_the_hub_are_read_in_their_published_layout) {
  const std::string form = "\\\\frac{-1+\\\\sqrt{13}}{2}, \\\\frac{-1-\\\\sqrt{13}}{2}";
  const std::string contest = ", \"answer\": \"" + form + "\", \"problem_type\": [\"Algebra\"]}\n";
  const std::string plain = ", \"answer\": 70, \"topic\": \"Algebra\", \"qwen2.5-7b_unsolved\": true}\n";
  for (const auto& [name, count] : std::map<std::string, int>{{"aime25", 30},
                                                              {"aime26", 30},
                                                              {"hmmt_feb25", 30},
                                                              {"hmmt_nov25", 30},
                                                              {"hmmt_feb26", 33},
                                                              {"brumo25", 30},
                                                              {"beyond_aime", 100},
                                                              {"math_beyond", 181}}) {
    std::string rows;
    for (int i = 1; i <= count; ++i) {
      const bool numbered = count < 100;
      rows += numbered ? str("{\"problem_idx\": ", i, ", ") : "{";
      rows += str("\"problem\": \"x = ", i, "?\"", numbered && name[0] != 'a' ? contest : plain);
    }
    file(str("data/", name, ".jsonl"), rows);
    const std::vector<Problem> problems = read_benchmark(load_suite(name).benchmarks[0], folder_.path() + "/data");
    ASSERT_EQ(std::ssize(problems), count) << name;
    EXPECT_EQ(problems[1].source, name);
    EXPECT_EQ(problems[1].text, "x = 2?");
    EXPECT_EQ(problems[1].id == "2", count < 100 && name != "aime25") << name;
    EXPECT_EQ(problems[1].subject, name == "math_beyond" ? "Algebra" : "");
    EXPECT_EQ(problems[1].gold.front().size() > 2, count < 100 && name[0] != 'a') << name;
  }
  const std::vector<std::string> gold = {R"(\frac{-1+\sqrt{13}}{2}, \frac{-1-\sqrt{13}}{2})"};
  const Answer answers[] = {{R"(\boxed{\frac{-1-\sqrt{13}}{2}, \frac{-1+\sqrt{13}}{2}})", &gold},
                            {R"(\boxed{\frac{-1+\sqrt{13}}{2}})", &gold}};
  const std::vector<Verdict> verdicts = make_grader(GraderKind::math, Extract::strict)->grade(answers);
  EXPECT_STREQ(name_of(verdicts[0].kind), "equal");
  EXPECT_STREQ(name_of(verdicts[1].kind), "unequal");
}

TEST_F(benchmark, sets_that_are_not_at_hand_are_looked_for_in_the_hub_s_cache) {
  const Benchmark b = load_suite("beyond_aime").benchmarks[0];
  const char* before = std::getenv("HF_HUB_CACHE");
  const std::string kept = before == nullptr ? "" : before;
  setenv("HF_HUB_CACHE", folder_.path().c_str(), 1);
  const std::string refused = refusal([&] { read_benchmark(b, ""); });
  EXPECT_TRUE(has(refused, "hf download ByteDance-Seed/BeyondAIME")) << refused;
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += str("{\"problem\": \"", i, "?\", \"answer\": ", i, "}\n");
  const std::string set = "datasets--ByteDance-Seed--BeyondAIME/";
  file(set + "refs/main", "abc");
  file(set + "snapshots/abc/data/test-00000-of-00001.jsonl", rows);
  EXPECT_EQ(read_benchmark(b, folder_.path())[99].gold[0], "99");
  before == nullptr ? unsetenv("HF_HUB_CACHE") : setenv("HF_HUB_CACHE", kept.c_str(), 1);
}

TEST_F(benchmark, choices_in_columns_of_their_own_have_an_order_drawn_from_the_question) {
  std::string text =
      "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3,Record ID,High-level domain\n";
  for (int i = 0; i < 198; ++i) text += str("\"What, ", i, "?\",right,a,b,c,rec", i, ",Physics\n");
  file("gpqa_diamond.csv", text);
  const Benchmark b = load_suite("gpqa_diamond").benchmarks[0];
  const std::vector<Problem> problems = read_benchmark(b, folder_.path());
  std::map<std::string, int> letters;
  for (const Problem& problem : problems) {
    ASSERT_EQ(problem.choices.size(), 4u);
    ++letters[problem.gold[0]];
    EXPECT_EQ(problem.choices[static_cast<size_t>(problem.gold[0][0] - 'A')], "right");
    EXPECT_EQ(std::set(problem.choices.begin(), problem.choices.end()).size(), 4u);
  }
  EXPECT_EQ(problems[3].id, "rec3");
  EXPECT_EQ(problems[3].subject, "Physics");
  for (const char* letter : {"A", "B", "C", "D"}) EXPECT_NEAR(letters[letter], 49.5, 20) << letter;
  // No other row decides about it.
  ProblemOptions options;
  options.columns = b.columns;
  const std::string header = text.substr(0, text.find('\n') + 1);
  const Problem alone =
      read_problems({file("one.csv", header + "\"What, 7?\",right,a,b,c,rec7,Physics\n")}, options)[0];
  EXPECT_EQ(alone.choices, problems[7].choices);
  file("two.csv", "Question,Correct Answer,Incorrect Answer 1,Record ID,High-level domain\nq?,a,b,r,P\n");
  EXPECT_TRUE(has(refusal([&] { read_problems({folder_.path() + "/two.csv"}, options); }),
                  "the column \"Incorrect Answer 2\" is missing"));
}

TEST_F(benchmark, a_suite_of_one_s_own_mixes_names_tables_and_files) {
  file("more/three.toml", "path = \"three.jsonl\"\nstop = [\"</s>\"]\n");
  file("more/three.jsonl", kTwo);
  file("two.jsonl", "{\"q\": \"1+1?\", \"a\": \"2\"}\n");
  const std::string path = file("own.toml",
                                "benchmarks = [\"amc83\", \"two\", \"more/three.toml\"]\nmax_tokens = 9\n"
                                "[benchmark.amc83]\nmax_tokens = 7\n"
                                "[benchmark.two]\npath = \"two.jsonl\"\ncolumns = {problem = \"q\", answer = \"a\"}\n");
  const Suite suite = load_suite(path);
  EXPECT_EQ(suite.name, "own");
  EXPECT_EQ(suite.max_tokens, 9);
  EXPECT_EQ(suite.samples, -1);
  ASSERT_EQ(suite.benchmarks.size(), 3u);
  EXPECT_EQ(suite.benchmarks[0].max_tokens, 7);
  EXPECT_EQ(suite.benchmarks[0].problems, 83);
  EXPECT_EQ(read_benchmark(suite.benchmarks[1], "")[0].gold[0], "2");
  EXPECT_EQ(suite.benchmarks[2].name, "three");
  EXPECT_EQ(read_benchmark(suite.benchmarks[2], "").size(), 2u);
}

TEST_F(benchmark, mistakes_in_a_suite_are_named_with_their_remedy) {
  EXPECT_TRUE(
      has(refusal([] { load_suite("mat5"); }), "[config] suite mat5: unknown (did you mean math5?); there are"));
  const auto own = [&](const std::string& text) {
    const std::string path = file("own.toml", text);
    return refusal([&] { load_suite(path); });
  };
  EXPECT_TRUE(has(own("benchmarks = []\n"), "benchmarks is empty"));
  EXPECT_TRUE(has(own("benchmarks = [\"aime42\"]\n"), "aime42 is unknown (did you mean aime"));
  EXPECT_TRUE(has(own("benchmarks = [\"aime24\", \"aime24\"]\n"), "duplicate aime24"));
  EXPECT_TRUE(has(own("benchmarks = [\"aime24\"]\n[benchmark.two]\npath = \"x\"\n"), "[benchmark.two] is not in"));
  EXPECT_TRUE(
      has(own("benchmarks = [\"aime24\"]\nmax_token = 1\n"), "own.toml:2: unknown key max_token (did you mean"));
  EXPECT_TRUE(has(own("path = \"x\"\ngrader = \"letters\"\n"), "expected one of math, letter, choice, "));
  EXPECT_TRUE(has(own("path = \"x\"\ngrader = \"letters\"\n"), "(did you mean letter?)"));
  EXPECT_TRUE(has(own("name = \"../x\"\npath = \"x\"\n"), "expected a word"));
}

TEST(prompt_settings, the_nearest_word_counts) {
  CommandSettings command;
  Benchmark b;
  Suite suite;
  EXPECT_EQ(prompt_settings(command, b, suite), (PromptSettings{"auto", {}, 1024, ExtractOption::automatic}));
  suite.prompt_template = "plain";
  suite.max_tokens = 3000;
  EXPECT_EQ(prompt_settings(command, b, suite), (PromptSettings{"plain", {}, 3000, ExtractOption::automatic}));
  b.prompt_template = "qwen_boxed";
  b.max_tokens = 4;
  b.stop = {"x"};
  b.extract = ExtractOption::lenient;
  EXPECT_EQ(prompt_settings(command, b, suite), (PromptSettings{"qwen_boxed", {"x"}, 4, ExtractOption::lenient}));
  command.prompt_template = "own.toml";
  command.max_tokens = 64;
  command.extract = Extract::strict;
  EXPECT_EQ(prompt_settings(command, b, suite), (PromptSettings{"own.toml", {"x"}, 64, ExtractOption::strict}));
  command.stop = {"y", "x"};
  EXPECT_EQ(prompt_settings(command, b, suite).stop, (std::vector<std::string>{"x", "y"}));
}

class evaluate_models : public ::testing::Test {
 protected:
  std::vector<EvaluatedModel> read(const std::vector<std::string>& words) { return read_models(words, {}); }
  std::string refusal(const std::vector<std::string>& words) {
    try {
      read(words);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  }
};

std::vector<std::string> labels(const std::vector<EvaluatedModel>& models) {
  std::vector<std::string> names;
  for (const EvaluatedModel& model : models) names.push_back(model.label);
  return names;
}

TEST_F(evaluate_models, are_named_on_the_command_line_or_by_their_paths) {
  const auto models = read({"a=x/one", "x/two/", "runs/r/checkpoints/step-0000024", "y/two", "x/b=c"});
  EXPECT_EQ(labels(models), (std::vector<std::string>{"a", "two", "r-step-0000024", "two-2", "b=c"}));
  EXPECT_EQ(models[0].path, "x/one");
  EXPECT_EQ(models[4].path, "x/b=c");
}

TEST_F(evaluate_models, mistakes_are_named) {
  EXPECT_NE(refusal({}).find("no MODEL directory given"), std::string::npos);
  EXPECT_NE(refusal({"a=x", "a=y"}).find("expected different names"), std::string::npos);
  EXPECT_NE(refusal({"a="}).find("expected LABEL=DIR"), std::string::npos);
  EXPECT_NE(refusal({".p=x/y"}).find("names that can be file names"), std::string::npos);
}

TEST_F(evaluate_models, only_what_was_typed_beats_a_suite) {
  EvaluateOptions options;
  PolicyLine line = read_policy_line({"--max-tokens", "64"}, {});
  ucas::apply(options, line.settings);
  const CommandSettings command = command_settings(options, line.settings);
  EXPECT_EQ(command.max_tokens, 64);
  EXPECT_EQ(command.prompt_template, std::nullopt);
  EXPECT_EQ(command.default_template, "auto");
  EXPECT_EQ(command.extract, std::nullopt);
}

}  // namespace
}  // namespace ucas
