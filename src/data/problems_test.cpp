#include "data/problems.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {
namespace {

class problems : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = str(::testing::TempDir(), "ucas_problems_", ::getpid());
    make_directories(folder_);
  }
  void TearDown() override { remove_all(folder_); }

  std::string file(const std::string& text, const std::string& name = "set.jsonl") {
    std::string path = path_join(folder_, name);
    write_file(path, text);
    return path;
  }
  std::vector<Problem> read(const std::string& text) { return read_problems({file(text)}); }
  // The class of the refusal; its message must name the place.
  std::string refusal(const std::string& text, const std::string& place = "set.jsonl:1:") {
    try {
      read(text);
      return "accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << error.what();
      message_ = error.what();
      return error.word();
    }
  }

  std::string folder_, message_;
};

TEST_F(problems, with_choices_have_a_letter_for_an_answer) {
  auto all = read(R"({"problem": "1+1?", "choices": ["1", "2", "3"], "answer": 1, "subject": "sums"})"
                  "\n"
                  R"({"problem": "1+1?", "choices": ["1", "2", "3"], "answer": "C"})"
                  "\n"
                  R"({"problem": "1+1?", "choices": ["1", "2", "3"], "answer": "1"})"
                  "\n"
                  R"({"problem": "1+1?", "choices": [], "answer": "1", "subject": 3})");
  EXPECT_EQ(all[0].gold, std::vector<std::string>{"B"});
  EXPECT_EQ(all[0].choices, (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(all[0].subject, "sums");
  EXPECT_EQ(all[1].gold, std::vector<std::string>{"C"});
  EXPECT_EQ(all[2].gold, std::vector<std::string>{"A"});  // a text is the choice itself, not its place
  EXPECT_TRUE(all[3].choices.empty());
  EXPECT_EQ(all[3].gold, std::vector<std::string>{"1"});
  EXPECT_EQ(all[3].subject, "");
  EXPECT_EQ(refusal(R"({"problem": "1+1?", "choices": ["1", "2"], "answer": 2})"), "data_line");
  EXPECT_EQ(refusal(R"({"problem": "1+1?", "choices": ["1", "2"], "answer": -1})"), "data_line");
  EXPECT_EQ(refusal(R"({"problem": "1+1?", "choices": ["1", "2"], "answer": 0.5})"), "data_line");
  EXPECT_EQ(refusal(R"({"problem": "1+1?", "choices": ["1", " "], "answer": 0})"), "data_line");
  const uint64_t hash = content_hash({all[0]});
  all[0].choices[2] = "4";
  EXPECT_NE(content_hash({all[0]}), hash);
}

TEST_F(problems, of_files_with_other_names_of_columns_are_read_by_them) {
  ProblemOptions options;
  options.columns = {.id = "key", .problem = "q", .answer = "target", .choices = "options", .subject = "topic"};
  const std::string row =
      R"({"key": 4, "q": "1+1?", "problem": "no", "target": "B", "answer": 9, "options": ["1", "2"], "topic": "t"})";
  const Problem problem = read_problems({file(row)}, options).at(0);
  EXPECT_EQ(problem.id, "4");
  EXPECT_EQ(problem.text, "1+1?");
  EXPECT_EQ(problem.gold, std::vector<std::string>{"B"});
  EXPECT_EQ(problem.choices.size(), 2u);
  EXPECT_EQ(problem.subject, "t");
  for (const char* gone : {"key", "q", "target", "options", "topic"}) {
    std::string other = row;
    other.replace(other.find(str('"', gone, '"')) + 1, 1, "_");
    try {
      read_problems({file(other)}, options);
      ADD_FAILURE() << gone;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(str("the column \"", gone, "\" is missing")), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(problems, columns_may_hold_only_where_they_are_there) {
  ProblemOptions options;
  options.columns = {.problem = "q", .answer = "target"};
  options.columns_where_there = true;
  const std::string rows =
      "{\"q\": \"1+1?\", \"target\": \"2\"}\n"
      "{\"problem\": \"1+2?\", \"answer\": \"3\"}";
  const std::vector<Problem> all = read_problems({file(rows)}, options);
  EXPECT_EQ(all.at(0).text, "1+1?");
  EXPECT_EQ(all.at(1).text, "1+2?");
  EXPECT_EQ(all.at(1).gold, std::vector<std::string>{"3"});
}

TEST_F(problems, a_solution_is_the_answer_where_nothing_else_is) {
  const auto all = read(
      "{\"problem\": \"1+1?\", \"solution\": \"Thus \\\\boxed{2}.\"}\n"
      "{\"problem\": \"1+1?\", \"solution\": \"because\", \"answer\": 2}");
  EXPECT_EQ(all.at(0).gold, std::vector<std::string>{"Thus \\boxed{2}."});
  EXPECT_EQ(all.at(1).gold, std::vector<std::string>{"2"});
}

TEST_F(problems, are_read_under_every_name_of_the_fields) {
  auto read_all = read(
      "{\"id\": \"a\", \"problem\": \"1+1?\", \"answer\": \"2\"}\n"
      "\n"
      "{\"unique_id\": 7, \"question\": \"1+2?\", \"ground_truth\": 3}\n"
      "{\"prompt\": \"1+3?\", \"answer\": [\"4\", 4.0]}\r\n"
      "{\"problem\": \"1+4?\", \"answer\": 2.5, \"id\": null}");
  ASSERT_EQ(read_all.size(), 4u);
  EXPECT_EQ(read_all[0].id, "a");
  EXPECT_EQ(read_all[0].source, "set");
  EXPECT_EQ(read_all[1].id, "7");
  EXPECT_EQ(read_all[1].gold, std::vector<std::string>{"3"});
  EXPECT_EQ(read_all[2].id, "set/4");
  EXPECT_EQ(read_all[2].text, "1+3?");
  EXPECT_EQ(read_all[2].gold, (std::vector<std::string>{"4", "4"}));
  EXPECT_EQ(read_all[3].gold, std::vector<std::string>{"2.5"});
}

TEST_F(problems, may_come_without_answers_where_none_are_asked_for) {
  ProblemOptions unlabelled;
  unlabelled.labels = false;
  auto all = read_problems({file("{\"problem\": \"1+1?\"}\n"
                                 "{\"problem\": \"1+2?\", \"answer\": \"\"}\n"
                                 "{\"problem\": \"1+3?\", \"answer\": []}\n"
                                 "{\"problem\": \"1+4?\", \"reward_model\": {\"ground_truth\": null}}\n"
                                 "{\"problem\": \"1+5?\", \"answer\": \"6\"}\n")},
                           unlabelled);
  ASSERT_EQ(all.size(), 5u);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(all[i].gold.empty()) << i;
  EXPECT_EQ(all[4].gold, std::vector<std::string>{"6"});
  EXPECT_EQ(refusal("{\"problem\": \"1+1?\"}\n"), "data_line");
}

TEST_F(problems, of_the_verl_schema_keep_system_source_and_index) {
  auto one = read(
      "{\"data_source\": \"dapo\", \"prompt\": [{\"role\": \"system\", \"content\": \"Think.\"},"
      "{\"role\": \"user\", \"content\": \"1+1?\"}], \"reward_model\": {\"style\": \"rule\", \"ground_truth\": \"2\"},"
      "\"extra_info\": {\"index\": 17}}\n");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].id, "17");
  EXPECT_EQ(one[0].source, "dapo");
  EXPECT_EQ(one[0].system, "Think.");
  EXPECT_EQ(one[0].text, "1+1?");
  EXPECT_EQ(one[0].gold, std::vector<std::string>{"2"});
}

TEST_F(problems, with_bad_rows_are_refused_with_file_and_line) {
  std::string good = "{\"problem\": \"p\", \"answer\": \"1\"}\n";
  const char* bad[] = {
      "{\"problem\": \"p\", \"answer\": \"1\"",      // cut off
      "{\"problem\": \"p\", \"answer\": \"1\"} {}",  // two objects
      "[1]",
      "17",
      "\"text\"",
      "null",
      "{\"problem\": \"p\", \"problem\": \"q\", \"answer\": \"1\"}",        // a key twice
      "{\"problem\": \"p\", \"\\u0070roblem\": \"q\", \"answer\": \"1\"}",  // the same, spelled with an escape
      "{\"answer\": \"1\"}",
      "{\"problem\": \"p\"}",
      "{\"problem\": 5, \"answer\": \"1\"}",
      "{\"problem\": \" \", \"answer\": \"1\"}",
      "{\"problem\": \"p\", \"answer\": \"\"}",
      "{\"problem\": \"p\", \"answer\": \" \\n\"}",
      "{\"problem\": \"p\", \"answer\": []}",
      "{\"problem\": \"p\", \"answer\": [\"1\", \"\"]}",
      "{\"problem\": \"p\", \"answer\": true}",
      "{\"problem\": \"p\", \"answer\": null}",
      "{\"problem\": \"p\", \"answer\": {\"a\": 1}}",
      "{\"problem\": \"p\", \"answer\": [[\"1\"]]}",
      "{\"problem\": \"p\\u0000\", \"answer\": \"1\"}",
      "{\"problem\": \"p\", \"answer\": \"1\\u0000\"}",
      "{\"problem\": \"p\\ud800\", \"answer\": \"1\"}",  // half a surrogate pair
      "{\"problem\": \"\xff\", \"answer\": \"1\"}",      // not UTF-8
      "{\"problem\": \"p\", \"answer\": NaN}",
      "{\"problem\": \"p\", \"answer\": 1e999}",
      "{\"id\": [1], \"problem\": \"p\", \"answer\": \"1\"}",
      "{\"data_source\": 1, \"problem\": \"p\", \"answer\": \"1\"}",
      "{\"prompt\": [], \"answer\": \"1\"}",
      "{\"prompt\": [\"p\"], \"answer\": \"1\"}",
      "{\"prompt\": [{\"role\": \"user\"}], \"answer\": \"1\"}",
      "{\"prompt\": [{\"role\": \"assistant\", \"content\": \"p\"}], \"answer\": \"1\"}",
      "{\"prompt\": [{\"role\": \"user\", \"content\": \"p\"}, {\"role\": \"user\", \"content\": \"q\"}], \"answer\": "
      "\"1\"}",
      R"({"prompt": [{"role": "user", "content": "p"}, {"role": "system", "content": "q"}], "answer": "1"})",
      R"({"messages": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "q"}], "answer": "1"})",
      R"({"messages": [{"role": "user", "content": [{"type": "image"}]}], "answer": "1"})",
      R"({"messages": [{"role": "tool", "content": "p"}], "answer": "1"})",
      "{\"problem\": \"p\", \"reward_model\": {}}",
      "{\"problem\": \"p\", \"reward_model\": \"1\"}",
  };
  for (const char* row : bad) {
    SCOPED_TRACE(row);
    EXPECT_EQ(refusal(str(row, "\n")), "data_line");
    EXPECT_EQ(refusal(str(good, good, row, "\n", good), "set.jsonl:3:"), "data_line");
  }
  EXPECT_EQ(refusal(std::string("{\"problem\": \"p\0\", \"answer\": \"1\"}\n", 34)), "data_line");
  EXPECT_EQ(refusal(std::string(100000, '[') + "\n"), "data_line");
  EXPECT_EQ(refusal("{\"problem\": \"" + std::string(17 << 20, 'x') + "\", \"answer\": \"1\"}\n"), "data_line");
  EXPECT_NE(message_.find("16.0 MiB"), std::string::npos) << message_;
  EXPECT_EQ(refusal(R"({"what": "1+1?", "answer": "2"})"), "data_line");
  EXPECT_NE(message_.find("--data.columns.problem NAME"), std::string::npos) << message_;
  EXPECT_EQ(refusal(R"({"problem": "1+1?", "result": "2"})"), "data_line");
  EXPECT_NE(message_.find("--data.columns.answer NAME"), std::string::npos) << message_;
  EXPECT_EQ(refusal("", "set.jsonl"), "empty");
  EXPECT_EQ(refusal("\n\n", "set.jsonl"), "empty");
}

TEST_F(problems, of_several_turns_are_kept_as_messages) {
  const Problem problem =
      read(
          R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": [{"type": "text", "text": "And "}, {"type": "text", "text": "2+2?"}]}], "answer": 4})")
          .at(0);
  EXPECT_EQ(problem.system, "Be brief.");
  EXPECT_EQ(problem.text, "And 2+2?");
  ASSERT_EQ(problem.earlier.size(), 2u);
  EXPECT_EQ(problem.earlier[0].role, "user");
  EXPECT_EQ(problem.earlier[1].content, "2");
  Problem other = problem;
  other.earlier[1].content = "3";
  EXPECT_NE(content_hash({problem}), content_hash({other}));
  other.earlier.clear();
  EXPECT_NE(content_hash({problem}), content_hash({other}));
}

TEST_F(problems, as_gsm8k_is_published_have_the_number_after_the_reasoning_for_an_answer) {
  auto gold = [&](const std::string& answer) {
    return read(str(R"({"question": "How many?", "answer": ")", answer, "\"}")).at(0).gold.at(0);
  };
  EXPECT_EQ(gold(R"(In April 48, in May 48/2 = <<48/2=24>>24.\nTogether 48+24 = <<48+24=72>>72 clips.\n#### 72)"),
            "72");
  EXPECT_EQ(gold(R"(So it is.\n#### 1,234\n)"), "1234");
  EXPECT_EQ(gold(R"(So it is.\r\n####  -1,234,567.50 )"), "-1234567.50");
  EXPECT_EQ(gold("#### 5"), "5");
  EXPECT_EQ(gold(R"(So.\n#### \\frac{1}{2})"), "\\frac{1}{2}");
  EXPECT_EQ(gold(R"(So.\n#### $1,200)"), "$1200");
  for (const char* kept : {"1,234", "1, 2", "#### ", "a #### 3", "##### 3"}) EXPECT_EQ(gold(kept), kept);
  EXPECT_EQ(marked_answer("#### 1,23"), "1,23");  // no commas between thousands
  EXPECT_EQ(marked_answer("#### 1234,567"), "1234,567");
  EXPECT_EQ(marked_answer("#### 1,234 and 5"), "1,234 and 5");
  EXPECT_EQ(marked_answer("#### 3\nNot the last line."), "#### 3\nNot the last line.");
  auto listed = read(R"({"question": "?", "ground_truth": ["one\n#### 1,000", "10^3"]})");
  EXPECT_EQ(listed.at(0).gold, (std::vector<std::string>{"1000", "10^3"}));
}

TEST_F(problems, most_of_whose_answers_are_prose_get_a_warning_that_names_the_field) {
  std::vector<std::string> warnings;
  LogSink before = set_log_sink([&](LogLevel, const std::string& text) { warnings.push_back(text); });
  const std::string prose = R"({"question": "1+1?", "answer": "She has one apple and gets another one, so 2"})";
  const std::string plain = R"({"question": "1+1?", "answer": "2"})";
  const std::string formula =
      R"row({"question": "?", "answer": "\\left( \\frac{1}{2}, \\sin x \\text{ or } 3 \\right)"})row";
  read(str(prose, "\n", prose, "\n", plain));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("set.jsonl: \"answer\" is prose in 2 of 3 rows (\"She has one"), std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[0].find("#### ANSWER"), std::string::npos) << warnings[0];
  read(str(prose, "\n", plain));
  read(str(formula, "\n", formula));
  EXPECT_EQ(warnings.size(), 1u);
  read(R"({"prompt": "?", "reward_model": {"ground_truth": "there are two of them in the box"}})");
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[1].find("\"reward_model.ground_truth\""), std::string::npos) << warnings[1];
  set_log_sink(before);
}

TEST_F(problems, of_files_of_one_name_in_two_folders_are_of_two_sources) {
  std::vector<std::string> files;
  for (const char* name : {"one", "two"}) {
    make_directories(path_join(folder_, name));
    files.push_back(path_join(path_join(folder_, name), "test.jsonl"));
    write_file(files.back(), R"({"question": "1+1?", "answer": "2"})");
  }
  const auto both = read_problems(files);
  EXPECT_EQ(both.at(0).source, "one-test");
  EXPECT_EQ(both.at(1).source, "two-test");
  EXPECT_EQ(both.at(1).id, "two-test/1");
  EXPECT_EQ(read_problems({files[0]}).at(0).source, "test");  // alone it needs no longer name
  EXPECT_EQ(read_problems({files[0], files[0]}).at(1).source, "test");
}

TEST_F(problems, in_files_that_are_no_files_are_refused) {
  EXPECT_THROW(read_problems({path_join(folder_, "missing.jsonl")}), Error);
  EXPECT_THROW(read_problems({folder_}), Error);
  EXPECT_THROW(read_problems({}), Error);
}

TEST_F(problems, may_miss_one_row_in_a_hundred_where_asked) {
  std::string rows;
  for (int i = 0; i < 99; ++i) rows += str("{\"problem\": \"p", i, "\", \"answer\": ", i, "}\n");
  std::vector<std::string> warnings;
  LogSink before = set_log_sink([&](LogLevel, const std::string& text) { warnings.push_back(text); });
  ProblemOptions skip{BadRows::skip};
  auto kept = read_problems({file(rows + "not json\n")}, skip);
  EXPECT_EQ(kept.size(), 99u);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("1 of 100"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("set.jsonl:100"), std::string::npos) << warnings[0];
  EXPECT_THROW(read_problems({file(rows + "not json\n{}\n")}, skip), Error);
  EXPECT_THROW(read_problems({file(rows + "not json\n")}), Error);
  set_log_sink(before);
}

TEST_F(problems, have_a_hash_that_sees_every_change) {
  std::vector<Problem> set = {{"a", "s", "", "p", "", {"1", "2"}}, {"b", "s", "", "q", "", {"3"}}};
  uint64_t whole = content_hash(set);
  EXPECT_EQ(whole, content_hash(set));
  EXPECT_EQ(content_hash({}), content_hash({}));
  auto changed = [&](auto change) {
    std::vector<Problem> other = set;
    change(other);
    return content_hash(other) != whole;
  };
  EXPECT_TRUE(changed([](auto& s) { s[0].text = "P"; }));
  EXPECT_TRUE(changed([](auto& s) { s[0].gold = {"12"}; }));
  EXPECT_TRUE(changed([](auto& s) { s[0].gold = {"1", "2", ""}; }));
  EXPECT_TRUE(changed([](auto& s) { s[0].system = "x"; }));
  EXPECT_TRUE(changed([](auto& s) { std::swap(s[0], s[1]); }));
  EXPECT_TRUE(changed([](auto& s) { s.pop_back(); }));
  EXPECT_TRUE(changed([](auto& s) { s[0].id = "as", s[0].source = ""; }));
}

TEST_F(problems, of_the_shared_files_are_all_read) {
  const char* root = std::getenv("UCAS_SHARED_DATA");
  std::string data = root != nullptr ? root : UCAS_SOURCE_DIR "/../shared/data";
  if (!is_directory(data)) GTEST_SKIP() << data << " is not there (set UCAS_SHARED_DATA)";
  std::vector<std::string> files;
  for (const char* name : {"aime24", "math500", "amc83", "minerva", "olympiadbench"}) {
    files.push_back(str(data, "/eval/", name, ".jsonl"));
  }
  EXPECT_EQ(read_problems(files).size(), 1560u);
  EXPECT_EQ(read_problems({data + "/train/math_lvl3to5.jsonl"}).size(), 8888u);
}

TEST_F(problems, a_byte_order_mark_an_array_and_tables_are_read) {
  const std::string row = R"({"problem": "p, \"q\"", "answer": "1"})";
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"mark.jsonl", "\xef\xbb\xbf" + row + "\n"},
                                                        {"list.json", "\n [" + row + "]"},
                                                        {"table.csv", "answer,problem\r\n1,\"p, \"\"q\"\"\"\r\n"},
                                                        {"table.tsv", "\xef\xbb\xbfproblem\tanswer\np, \"q\"\t1"}}) {
    const std::vector<Problem> read = read_problems({file(text, name)});
    ASSERT_EQ(read.size(), 1u) << name;
    EXPECT_EQ(read[0].text, "p, \"q\"") << name;
    EXPECT_EQ(read[0].gold, std::vector<std::string>{"1"}) << name;
  }
  const std::vector<Problem> two = read_problems({file("problem,answer\n\"a\nb\",1\n\nc,2\n", "lines.csv")});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].text, "a\nb");
  EXPECT_EQ(two[1].id, "lines/5");
}

// ARC's struct with letters or digits, a map, objects, JSON text, numbers: shown, or refused by name.
TEST_F(problems, with_choices_in_any_form_have_a_letter_for_an_answer) {
  for (const auto& [choices, answer] : std::vector<std::pair<std::string, std::string>>{
           {R"({"text": ["w", "x", "y"], "label": ["A", "B", "C"]})", R"("C")"},
           {R"({"text": ["w", "x", "y"], "label": ["1", "2", "3"]})", R"("3")"},
           {R"({"text": ["w", "x", "y"], "label": [1, 2, 3]})", "3"},
           {R"({"C": "y", "A": "w", "B": "x"})", R"("C")"},
           {R"([{"label": "A", "text": "w"}, {"label": "B", "text": "x"}, {"label": "C", "text": "y"}])", R"("C")"},
           {R"("[\"w\", \"x\", \"y\"]")", R"("y")"},
           {R"(["w", "x", "y"])", "2"}}) {
    const std::vector<Problem> all =
        read(str(R"({"problem": "p", "choices": )", choices, R"(, "answer": )", answer, "}"));
    EXPECT_EQ(all.at(0).choices, (std::vector<std::string>{"w", "x", "y"})) << choices;
    EXPECT_EQ(all.at(0).gold, std::vector<std::string>{"C"}) << choices;
  }
  EXPECT_EQ(read(R"({"problem": "p", "choices": [10, 12], "answer": 1})").at(0).choices,
            (std::vector<std::string>{"10", "12"}));
  for (const char* bad : {R"(["w"])", R"({"text": ["w"]})", R"("w or x")", "3", R"([["w"], ["x"]])",
                          R"({"text": ["w", "x"], "label": ["A"]})"}) {
    EXPECT_EQ(refusal(str(R"({"problem": "p", "choices": )", bad, R"(, "answer": "A"})")), "data_line") << bad;
    EXPECT_NE(message_.find("choices"), std::string::npos) << message_;
  }
  EXPECT_EQ(refusal(R"({"problem": "p", "choices": [], "answer": "A"})"), "data_line");
}

TEST_F(problems, of_verl_may_be_programs_and_have_an_index_that_is_none) {
  const std::vector<Problem> all = read(
      R"({"prompt": [{"role": "user", "content": "q"}], "reward_model": {"ground_truth": "{\"inputs\": [\"1\"], \"outputs\": [\"2\"]}"}, "extra_info": {"index": null}})"
      "\n"
      R"({"prompt": [{"role": "user", "content": "q"}], "reward_model": {"ground_truth": "{1, 2}"}, "extra_info": {"index": 7.0}})"
      "\n"
      R"({"problem": "q", "answer": 72.0})");
  EXPECT_EQ(all.at(0).gold.at(0), R"({"stdin":[{"input":"1","output":"2"}]})");
  EXPECT_EQ(all.at(0).id, "set/1");
  EXPECT_EQ(all.at(1).gold.at(0), "{1, 2}");
  EXPECT_EQ(all.at(1).id, "7");
  EXPECT_EQ(all.at(2).gold.at(0), "72");  // a column of numbers writes whole ones so
}

TEST_F(problems, of_a_file_that_is_no_text_are_refused_by_what_it_is) {
  for (const auto& [bytes, word] :
       std::vector<std::pair<std::string, std::string>>{{"\x28\xb5\x2f\xfd\x01", "zstandard"},
                                                        {"ARROW1..", "Arrow"},
                                                        {"PAR1..", "Parquet"},
                                                        {"\xff\xfe{", "UTF-16"},
                                                        {"PK\x03\x04", "zip"}}) {
    EXPECT_EQ(refusal(bytes, "set.jsonl is "), "data_line");
    EXPECT_NE(message_.find(word), std::string::npos) << message_;
  }
}

TEST_F(problems, have_their_rows_where_they_are_wanted_and_no_more_than_asked_for) {
  const std::string set = file(R"({"problem": "q", "answer": "1", "level": "hard"}
{"problem": "r", "answer": "2"}
{"no": "problem"})");
  std::vector<std::string> rows;
  ProblemOptions options;
  options.most = 2;
  EXPECT_EQ(read_problems({set, set}, options, &rows).size(), 2u);
  EXPECT_EQ(rows, (std::vector<std::string>{R"({"answer":"1","level":"hard","problem":"q"})",
                                            R"({"answer":"2","problem":"r"})"}));
}

TEST_F(problems, a_table_that_is_none_is_refused_with_its_line) {
  const auto refused = [&](const std::string& text, const std::string& words) {
    try {
      read_problems({file(text, "t.csv")});
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_STREQ(error.word().c_str(), "data_line") << error.what();
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused("problem,answer\np,1\np\n", "t.csv:3: 1 fields, expected 2");
  refused("problem,answer\n\"p,1\n", "t.csv:2: a field opens");
  refused("problem,answer\n\"p\"x,1\n", "t.csv:2: text after the closing");
  refused("problem,problem\np,1\n", "names \"problem\" twice");
  // pandas writes its index into a column without a name.
  EXPECT_EQ(read_problems({file(",problem,answer\n0,p,1\n", "t.csv")}).at(0).gold.at(0), "1");
  ProblemOptions skip;
  skip.bad_rows = BadRows::skip;
  std::string many = "problem,answer\n";
  for (int i = 0; i < 200; ++i) many += "p,1\n";
  EXPECT_EQ(read_problems({file(many + "p\n", "t.csv")}, skip).size(), 200u);
}

}  // namespace
}  // namespace ucas
