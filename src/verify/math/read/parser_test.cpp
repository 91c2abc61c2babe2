#include "verify/math/read/parser.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "base/str.h"
#include "data/rows/jsonl.h"

namespace ucas::math {
namespace {

std::string read(std::string_view text, const ParseOptions& options = {}) {
  ParseResult result = parse_math(text, options);
  return result.status == ParseStatus::ok ? to_string(result.tree) : "! " + result.reason;
}

std::string times(std::string_view piece, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += piece;
  return out;
}

TEST(math_parser, golden_cases_read_as_these_trees) {
  int64_t count = 0;
  read_json_lines(str(UCAS_SOURCE_DIR, "/tests/goldens/verify/parse.jsonl"), BadRows::stop, [&](const JsonRow& row) {
    EXPECT_EQ(read(row.value.at("text").get<std::string>()), row.value.at("tree").get<std::string>()) << row.where;
    ++count;
  });
  EXPECT_GT(count, 100);
}

TEST(math_parser, one_half_comes_in_every_spelling) {
  for (const char* text : {"\\frac12", "\\frac{1}{2}", "\\dfrac 12", "\\tfrac{1}2", "\\cfrac1{2}", "1/2",
                           "{1 \\over 2}", "\\left(\\frac{1}{2}\\right)", "\xc2\xbd", "\\\\frac{1}{2}",
                           "\x0c"
                           "rac{1}{2}",
                           "$\\frac{1}{2}$.", "\\boxed{\\frac12}", "**1/2**", "\\( 1/2 \\)"}) {
    EXPECT_EQ(read(text), "(/ 1 2)") << text;
  }
}

TEST(math_parser, a_whole_number_before_a_proper_fraction_is_a_mixed_number) {
  EXPECT_EQ(read("2\\frac{1}{3}"), "(+ 2 (/ 1 3))");
  EXPECT_EQ(read("2 1/3"), "(+ 2 (/ 1 3))");
  EXPECT_EQ(read("2\\frac{\\pi}{3}"), "(* 2 (/ pi 3))");
  EXPECT_EQ(read("2\\frac{4}{3}"), "(* 2 (/ 4 3))");
}

TEST(math_parser, commas_part_thousands_where_nothing_else_fits) {
  for (const char* text :
       {"1,008,000", "1{,}008{,}000", "1,\\!008,\\!000", "1\\,008\\,000", "1 008 000", "1 {, }008 {, }000"}) {
    EXPECT_EQ(read(text), "1008000") << text;
  }
  EXPECT_EQ(read("(1,234)"), "(tuple round 1 234)");
  EXPECT_EQ(read("1,7,103,105"), "(list 1 7 103 105)");
  EXPECT_EQ(read("\\{100,200\\}"), "(set 100 200)");
  EXPECT_EQ(read("12,34"), "(list 12 34)");
}

TEST(math_parser, what_can_be_read_in_two_ways_is_read_in_the_usual_one) {
  EXPECT_EQ(read("1,234"), "1234");
  EXPECT_EQ(read("1000,99"), "(list 1000 99)");
  EXPECT_EQ(read("2e-1"), "2e-1");
}

TEST(math_parser, numbers_keep_every_digit_they_show) {
  ParseResult result = parse_math("1.20 \\times 10^{-3}");
  const Node& node = result.tree[result.tree.root()];
  EXPECT_EQ(node.kind, Kind::number);
  EXPECT_EQ(result.tree.text(result.tree.root()), "1.20");
  EXPECT_EQ(node.number.places, 2);
  EXPECT_EQ(node.number.exponent, -3);
  std::string digits = times("7", 8000);
  EXPECT_EQ(read(digits), digits);
}

TEST(math_parser, choice_letters_stand_alone) {
  for (const char* text : {"B", "(B)", "\\text{(B)}", "\\textbf{(B)}", "{(B)}", "\\mathrm{B}", "B.", "option B"}) {
    EXPECT_EQ(read(text), "(choice \"B\")") << text;
  }
  EXPECT_EQ(read("(D) Alina"), "(choice (text \"alina\"))");
  EXPECT_EQ(parse_math("(A) or (B)").tree[parse_math("(A) or (B)").tree.root()].kind, Kind::list);
  ParseOptions variables;
  variables.choices = false;
  EXPECT_EQ(read("B", variables), "B");
}

TEST(math_parser, two_numbers_side_by_side_are_no_number) {
  for (const char* text : {"5 8", "2 3 4", "8 \\frac{1}{2} 3", "5\\ 8"}) {
    ParseResult result = parse_math(text);
    EXPECT_EQ(result.tree[result.tree.root()].kind, Kind::text) << text;
    ParseOptions strict;
    strict.free_text = false;
    EXPECT_EQ(parse_math(text, strict).status, ParseStatus::unparseable) << text;
  }
}

TEST(math_parser, an_offer_of_two_answers_stays_a_list) {
  for (const char* text :
       {"5 or 6", "5 \\text{ or } 6", "5, 6", "5 \\quad 6", "5\\lor 6", "\\boxed{5}\\boxed{6}", "5; 6", "5 and 6"}) {
    ParseResult result = parse_math(text);
    EXPECT_EQ(result.tree[result.tree.root()].kind, Kind::list) << text;
    EXPECT_EQ(result.tree[result.tree.root()].child_count, 2u) << text;
  }
}

TEST(math_parser, nothing_is_said_to_be_empty) {
  for (const char* text : {"", " ", "$$", "\\,", "{}", "\\text{}", "\\left."}) {
    EXPECT_EQ(parse_math(text).status, ParseStatus::empty) << text;
  }
}

TEST(math_parser, what_is_no_text_cannot_be_read) {
  using namespace std::string_view_literals;
  for (std::string_view text :
       {"5\0"sv, "\xff\xfe"sv, "\x01"sv, "5\x7f"sv, "\xc3"sv, "{5"sv, "5}"sv, "\\frac{1}{2"sv}) {
    ParseResult result = parse_math(text);
    EXPECT_EQ(result.status, ParseStatus::unparseable) << text;
    EXPECT_FALSE(result.reason.empty());
  }
}

TEST(math_parser, hostile_texts_end_within_counted_limits) {
  EXPECT_EQ(parse_math(times("9", 1'000'000)).status, ParseStatus::over_budget);
  EXPECT_EQ(parse_math(times("{", 100'000)).status, ParseStatus::over_budget);
  EXPECT_EQ(parse_math(times("(", 4000) + "1" + times(")", 4000)).status, ParseStatus::over_budget);
  EXPECT_EQ(parse_math(times("{", 4000) + "1" + times("}", 4000)).status, ParseStatus::over_budget);
  EXPECT_EQ(parse_math(times("\\sqrt", 1000) + "2").status, ParseStatus::over_budget);
  EXPECT_EQ(parse_math("1" + times("!", 4000)).status, ParseStatus::over_budget);
  EXPECT_EQ(parse_math(times("2^", 4000) + "2").status, ParseStatus::over_budget);
  EXPECT_EQ(read("10^{10^{10^{10}}}"), "(^ 10 (^ 10 (^ 10 10)))");
  for (const char* piece : {"\\frac", "\\begin{pmatrix}",  "\\begin{align}", "&",   "\\\\", "|",  "x_",    "_",
                            "^",      "\\left(",           "\\text{",        "$",   "-",    "1,", "\\hat", "\\sum_",
                            "if ",    "k is an integer, ", "\\pm",           "or ", "1:"}) {
    for (int n : {1, 2, 200, 800}) {
      ParseResult result = parse_math(times(piece, n));
      EXPECT_LE(result.tree.size(), kNodeLimit) << piece;
      EXPECT_FALSE(to_string(result.tree).empty()) << piece;
    }
  }
}

TEST(math_parser, children_come_before_their_parents_and_depth_is_bounded) {
  for (const char* text : {"\\frac{x^2+1}{2}, y = 3", "(-\\infty, 2] \\cup \\{3\\}", "5\\text{ cm}^2"}) {
    ParseResult result = parse_math(text);
    for (NodeId id = 0; id < result.tree.size(); ++id) {
      for (NodeId child : result.tree.children(id)) EXPECT_LT(child, id) << text;
    }
  }
}

TEST(math_parser, rewrites_are_told_only_when_asked_for) {
  ParseOptions explain;
  explain.explain = true;
  EXPECT_TRUE(parse_math("2\\frac12").rewrites.empty());
  ASSERT_EQ(parse_math("2\\frac12", explain).rewrites.size(), 1u);
}

TEST(math_parser, threads_read_alike) {
  std::string expected = read("x \\in (-\\infty, 2] \\cup \\{3\\text{ cm}\\}");
  std::vector<std::string> seen(4);
  std::vector<std::thread> threads;
  for (std::string& out : seen) {
    threads.emplace_back([&out] { out = read("x \\in (-\\infty, 2] \\cup \\{3\\text{ cm}\\}"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& out : seen) EXPECT_EQ(out, expected);
}

// Every gold answer of the paper's evaluation and training sets is read; what ends as text is prose and is counted.
TEST(math_parser, gold_answers_of_the_data_sets_are_read) {
  const char* shared = std::getenv("UCAS_SHARED_DATA");
  std::string root = shared ? shared : str(UCAS_SOURCE_DIR, "/../shared/data");
  if (!std::filesystem::exists(root + "/train/math_lvl3to5.jsonl")) GTEST_SKIP() << "no shared data at " << root;
  int64_t answers = 0, texts = 0;
  std::map<std::string, int64_t> kinds;
  for (const char* file : {"eval/aime24", "eval/aime25", "eval/amc83", "eval/math500", "eval/minerva",
                           "eval/olympiadbench", "train/math_lvl3to5"}) {
    read_json_lines(str(root, "/", file, ".jsonl"), BadRows::stop, [&](const JsonRow& row) {
      for (const std::string& gold : answer_field(row, row.value.at("answer"), "answer", true)) {
        ParseResult result = parse_math(gold);
        EXPECT_EQ(result.status, ParseStatus::ok) << row.where << ": " << gold << ": " << result.reason;
        Kind kind = result.tree[result.tree.root()].kind;
        ++kinds[name_of(kind)];
        ++answers;
        texts += kind == Kind::text;
      }
    });
  }
  for (const auto& [kind, count] : kinds) std::cout << "  " << kind << " " << count << "\n";
  EXPECT_GT(answers, 10'000);
  EXPECT_LT(texts, answers / 100);
}

}  // namespace
}  // namespace ucas::math
