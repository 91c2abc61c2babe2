#include "verify/registry.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "data/rows/jsonl.h"
#include "support/patience.h"
#include "verify/math/compare/compare.h"
#include "verify/math/read/parser.h"

namespace ucas::math {
namespace {

std::string golden(const std::string& name) { return str(UCAS_SOURCE_DIR, "/tests/goldens/verify/", name); }

Verdict grade(const std::string& response, const std::vector<std::string>& gold, Extract extract = Extract::strict) {
  std::vector<Answer> answers = {{response, &gold}};
  return make_grader(GraderKind::math, extract)->grade(answers).at(0);
}

class EqualCases : public ::testing::TestWithParam<const char*> {};

TEST_P(EqualCases, agree_bare_and_in_a_box) {
  int64_t count = 0;
  read_json_lines(golden(GetParam()), BadRows::stop, [&](const JsonRow& row) {
    std::vector<std::string> gold = answer_field(row, row.value.at("gold"), "gold", true);
    std::string answer = row.value.at("answer");
    bool equal = row.value.at("equal");
    SCOPED_TRACE(str(row.where, " ", row.value.dump()));
    Verdict bare = grade(answer, gold, Extract::bare);
    EXPECT_EQ(bare.kind == VerdictKind::equal, equal) << name_of(bare.kind) << ": " << bare.reason;
    EXPECT_FALSE(bare.reason.empty());
    Verdict boxed = grade("Thus $\\boxed{" + answer + "}$.", gold);
    // A brace too many or too few changes what the box holds; those rows are about bare answers.
    if (well_formed(answer)) {
      EXPECT_EQ(boxed.kind == VerdictKind::equal, equal) << boxed.answer << ": " << boxed.reason;
    }
    ++count;
  });
  EXPECT_GT(count, 30);
}
INSTANTIATE_TEST_SUITE_P(verifier, EqualCases,
                         ::testing::Values("numbers.jsonl", "forms.jsonl", "hostile.jsonl", "equality.jsonl",
                                           "kinds.jsonl", "mistakes.jsonl", "missed.jsonl", "pairs.jsonl"));

TEST(verifier, hostile_cases_are_all_unpaid_and_the_right_answer_beside_them_is_paid) {
  read_json_lines(golden("hostile.jsonl"), BadRows::stop, [&](const JsonRow& row) {
    EXPECT_FALSE(row.value.at("equal").get<bool>()) << row.where;
    if (row.value.at("gold") == "8") {
      EXPECT_EQ(grade("\\boxed{8}", {"8"}).kind, VerdictKind::equal);
    }
  });
}

TEST(verifier, extraction_cases_agree) {
  read_json_lines(golden("extraction.jsonl"), BadRows::stop, [&](const JsonRow& row) {
    std::string mode = row.value.at("extract");
    Extract extract = mode == "strict"       ? Extract::strict
                      : mode == "lenient"    ? Extract::lenient
                      : mode == "answer_tag" ? Extract::answer_tag
                                             : Extract::bare;
    std::string response = row.value.at("response"), answer = row.value.at("answer");
    Extracted found = extract_answer(response, extract);
    EXPECT_EQ(found.answer, answer) << row.where << " " << row.value.dump();
    EXPECT_EQ(found.found, !answer.empty()) << row.where;
    EXPECT_FALSE(std::string(found.how).empty()) << row.where;
  });
}

// Training takes the last box alone whatever the gold answer is.
TEST(verifier, boxes_in_words_are_parts_of_one_answer_only_where_all_of_them_count) {
  int64_t rewarded = 0;
  read_json_lines(golden("boxes.jsonl"), BadRows::stop, [&](const JsonRow& row) {
    std::string gold = row.value.at("gold"), response = row.value.at("response");
    bool equal = row.value.at("equal");
    Verdict lenient = grade(response, {gold}, Extract::lenient), strict = grade(response, {gold}, Extract::strict);
    EXPECT_EQ(lenient.kind == VerdictKind::equal, equal)
        << row.where << " " << lenient.answer << ": " << lenient.reason;
    Extracted last = extract_answer(response, Extract::strict);
    EXPECT_EQ(strict.kind, grade(std::string(last.answer), {gold}, Extract::bare).kind) << row.where;
    rewarded += equal;
  });
  EXPECT_GT(rewarded, 5);
}

// Sentences of small models without a box, read leniently.
TEST(verifier, a_number_in_a_sentence_is_taken_without_its_reasons) {
  read_json_lines(golden("sentences.jsonl"), BadRows::stop, [&](const JsonRow& row) {
    std::string gold = row.value.at("gold"), response = row.value.at("response");
    Verdict verdict = grade(response, {gold}, Extract::lenient);
    EXPECT_EQ(verdict.kind == VerdictKind::equal, row.value.at("equal").get<bool>())
        << row.where << " " << response << " " << verdict.answer << ": " << verdict.reason;
    EXPECT_NE(grade(response, {gold}, Extract::strict).kind, VerdictKind::equal) << row.where;
  });
}

// Whatever is around the last pair of tags, boxes and other pairs included, the verdict is that of what is inside.
TEST(verifier, nothing_outside_the_answer_tags_is_ever_paid) {
  const std::vector<std::string> parts = {"\\boxed{7}", "\\boxed{8}", "<answer>", "</answer>", "7",         "{",
                                          "}",          "\\boxed{",   "<think>",  "</think>",  "\\fbox{7}", " so "};
  Rng rng(21, 0);
  auto noise = [&](bool before) {
    std::string text;
    for (int64_t i = rng.below(8); i > 0; --i) {
      const std::string& part = parts[static_cast<size_t>(rng.below(static_cast<int64_t>(parts.size())))];
      if (before || part != "<answer>") text += part;  // after the pair only what cannot open another one
    }
    return text;
  };
  int64_t rewarded = 0;
  for (int i = 0; i < 3000; ++i) {
    bool right = rng.below(2) == 1;
    std::string inside = right ? "\\boxed{7}" : "\\boxed{8}";
    std::string response = str(noise(true), "<answer>", inside, "</answer>", noise(false));
    Verdict verdict = grade(response, {"7"}, Extract::answer_tag);
    EXPECT_EQ(verdict.kind, right ? VerdictKind::equal : VerdictKind::unequal) << response;
    rewarded += verdict.kind == VerdictKind::equal;
  }
  EXPECT_GT(rewarded, 1000);
  for (int i = 0; i < 3000; ++i) {  // without a closing tag nothing is
    std::string response = noise(true);
    for (size_t at; (at = response.find("</answer>")) != std::string::npos;) response.erase(at, 9);
    EXPECT_EQ(grade(response, {"7"}, Extract::answer_tag).kind, VerdictKind::unparseable) << response;
  }
}

TEST(verifier, equality_of_numbers_is_symmetric) {
  read_json_lines(golden("numbers.jsonl"), BadRows::stop, [&](const JsonRow& row) {
    if (!row.value.at("gold").is_string()) return;
    std::string gold = row.value.at("gold"), answer = row.value.at("answer");
    EXPECT_EQ(grade(answer, {gold}, Extract::bare).kind == VerdictKind::equal,
              grade(gold, {answer}, Extract::bare).kind == VerdictKind::equal)
        << row.where;
  });
}

TEST(verifier, unparseable_is_not_unequal) {
  EXPECT_EQ(grade("no box", {"7"}).kind, VerdictKind::unparseable);
  EXPECT_EQ(grade("no box", {"7"}).reason, "no box");
  EXPECT_EQ(grade("\\boxed{}", {"7"}).reason, "the last box is empty");
  EXPECT_EQ(grade("\\boxed{7\x01}", {"7"}).kind, VerdictKind::unparseable);
  EXPECT_EQ(grade("\\boxed{8}", {"7"}).kind, VerdictKind::unequal);
  EXPECT_EQ(grade("\\boxed{7}", {}).kind, VerdictKind::unparseable);
  EXPECT_EQ(grade("\\boxed{7}", {""}).reason, "the gold answer is empty");
}

TEST(verifier, verdicts_do_not_depend_on_the_batch) {
  std::vector<std::string> seven = {"7"}, half = {"\\frac12", "0.6"};
  std::vector<Answer> answers = {{"\\boxed{7}", &seven},
                                 {"\\boxed{.5}", &half},
                                 {"\\boxed{7}", &half},
                                 {"\\boxed{0.6}", &half},
                                 {"\\boxed{7.00}", &seven}};
  auto grader = make_grader(GraderKind::math);
  std::vector<Verdict> all = grader->grade(answers);
  ASSERT_EQ(all.size(), 5u);
  VerdictKind expected[] = {VerdictKind::equal, VerdictKind::equal, VerdictKind::unequal, VerdictKind::equal,
                            VerdictKind::equal};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].kind, expected[i]) << i;
    EXPECT_EQ(all[i].kind, grader->grade(std::span(answers).subspan(i, 1)).at(0).kind) << i;
  }
}

TEST(verifier, equal_answers_of_a_group_share_a_class) {
  std::vector<std::string> gold = {"7"};
  const char* texts[] = {"\\boxed{1/2}",          "\\boxed{7}",   "\\boxed{0.5}", "none",
                         "\\boxed{7.0}",          "\\boxed{x+1}", "\\boxed{8}",   "\\boxed{x + 1}",
                         "\\boxed{\\frac{2}{4}}", "\\boxed{-1/2}"};
  std::vector<Answer> answers;
  for (const char* text : texts) answers.push_back({text, &gold});
  auto grader = make_grader(GraderKind::math);
  std::vector<Verdict> group = grader->grade(answers);
  grader->classify(group);
  std::vector<int32_t> classes;
  for (const Verdict& verdict : group) classes.push_back(verdict.answer_class);
  EXPECT_EQ(classes, (std::vector<int32_t>{0, 1, 0, -1, 1, 2, 3, 2, 0, 4}));
}

TEST(verifier, classes_keep_large_numbers_apart) {
  std::vector<Verdict> group(3);
  const char* answers[] = {"2305843009213693951", "0", "2305843009213693951.0"};
  for (size_t i = 0; i < 3; ++i) group[i] = {VerdictKind::unequal, answers[i], "", -1};
  make_grader(GraderKind::math)->classify(group);
  EXPECT_EQ(group[0].answer_class, 0);
  EXPECT_EQ(group[1].answer_class, 1);
  EXPECT_EQ(group[2].answer_class, 0);
}

std::string repeated(const std::string& part, size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST(verifier, hostile_responses_cost_little_and_are_not_paid) {
  const size_t many = 100000;
  std::vector<std::string> responses = {
      repeated("\\boxed{", many),
      repeated("\\boxed{", many) + "7" + repeated("}", many),
      repeated("\\boxed{8}", many),
      "\\boxed{" + repeated("{", many) + "7" + repeated("}", many) + "}",
      "\\boxed{" + std::string(1000000, '9') + "}",
      "\\boxed{\\frac{" + std::string(3000, '7') + "}{" + std::string(3000, '3') + "}}",
      "\\boxed{" + std::string("7\0", 2) + "}",
      "\\boxed{7\xff\xfe}",
      repeated("\\", 2 * many + 1),
      repeated("}", many) + repeated("{", many),
      repeated("the final answer is ", many),
      repeated("<answer>", many),
      std::string(3 << 20, '1'),
      repeated("$", many),
      repeated("1,234", many),
      "\\boxed{" + repeated("\\text{", 1300) + "}",
      "\\boxed{" + repeated("-", 8000) + "7}",
      "\\boxed{" + repeated("^{2", 2000) + repeated("}", 2000) + "}",
  };
  std::vector<std::string> gold = {"7", "\\frac{" + std::string(3000, '7') + "}{" + std::string(2999, '3') + "1}"};
  for (Extract extract : {Extract::strict, Extract::lenient, Extract::answer_tag, Extract::bare}) {
    auto grader = make_grader(GraderKind::math, extract);
    for (size_t i = 0; i < responses.size(); ++i) {
      std::vector<Answer> answers = {{responses[i], &gold}};
      const double began = testing::cpu_seconds();
      std::vector<Verdict> verdict = grader->grade(answers);
      grader->classify(verdict);
      const double seconds = testing::cpu_seconds() - began;
      EXPECT_NE(verdict[0].kind, VerdictKind::equal) << "response " << i;
      EXPECT_LT(seconds, 1.0) << "response " << i;
      EXPECT_LE(verdict[0].answer.size(), kAnswerLimit);
    }
  }
}

TEST(verifier, an_answer_beyond_the_limits_is_over_budget_not_wrong) {
  EXPECT_EQ(grade("\\boxed{" + std::string(9000, '9') + "}", {"7"}).kind, VerdictKind::over_budget);
  Budget small{10};
  std::string rest;
  ReadAnswer a = read_answer("\\frac{" + std::string(900, '7') + "}{" + std::string(900, '3') + "}");
  EXPECT_EQ(compare_answers(a, read_answer("3/7"), small).kind, VerdictKind::over_budget);
  Budget full;
  EXPECT_EQ(compare_answers(a, read_answer("\\frac{7}{3}"), full).kind, VerdictKind::equal);
}

TEST(verifier, long_exact_integers_are_compared_digit_by_digit) {
  std::string digits(8000, '7'), other = digits;
  other[4000] = '8';
  EXPECT_EQ(grade("\\boxed{" + digits + "}", {digits}).kind, VerdictKind::equal);
  EXPECT_EQ(grade("\\boxed{" + other + "}", {digits}).kind, VerdictKind::unequal);
  EXPECT_EQ(grade("\\boxed{\\frac{" + std::string(3000, '6') + "}{" + std::string(3000, '2') + "}}", {"3"}).kind,
            VerdictKind::equal);
}

TEST(verifier, units_are_told_from_parts_of_the_answer) {
  for (const char* rewarded : {"7\\text{ cm}^2", "7 dollars", "7\\text{ dollar}", "7\\%", "7^\\circ", "7"}) {
    EXPECT_EQ(grade(rewarded, {"7"}, Extract::bare).kind, VerdictKind::equal) << rewarded;
  }
  for (const char* wrong : {"7x", "7\\text{ or 7}", "7\\text{ thousand}"}) {
    EXPECT_NE(grade(wrong, {"7"}, Extract::bare).kind, VerdictKind::equal) << wrong;
  }
}

// Random strings of the pieces that answers are made of.
std::string random_answer(Rng& rng) {
  static const std::vector<std::string> pieces = {
      "0",      "1",        "7",         "12",       "345",         ".",
      ",",      "-",        "+",         "/",        " ",           "{",
      "}",      "\\frac",   "$",         "\\boxed{", "\\text{",     "cm",
      "or",     "=",        "x",         "^",        "_",           "%",
      "e5",     "(",        ")",         "\\sqrt",   "\\pi",        "\\,",
      "\\left", "\\right",  "\\{",       "\\}",      "\\\\",        "\xe2\x88\x92",
      "\n",     "**",       "\\(",       "\\)",      "\\circ",      "answer is ",
      "####",   "<answer>", "</answer>", "\xff",     "\\times 10^", std::string(1, '\0')};
  // Every other one of few pieces of numbers only.
  bool number = rng.uniform() < 0.5;
  int64_t longest = number ? 5 : 14, kinds = number ? 11 : static_cast<int64_t>(pieces.size());
  std::string text;
  for (int64_t n = rng.below(longest); n > 0; --n) text += pieces[static_cast<size_t>(rng.below(kinds))];
  return text;
}

TEST(verifier, random_answers_equal_themselves_and_equality_of_numbers_goes_both_ways) {
  Rng rng(1, 1);
  int64_t numbers = 0;
  for (int i = 0; i < 40000; ++i) {
    std::string a = random_answer(rng), b = random_answer(rng);
    for (Extract extract : {Extract::strict, Extract::lenient}) {
      Verdict verdict = grade(a, {b}, extract);
      EXPECT_FALSE(verdict.reason.empty());
    }
    ReadAnswer x = read_answer(a), y = read_answer(b);
    bool readable = x.form == ReadAnswer::Form::number || x.form == ReadAnswer::Form::text;
    EXPECT_EQ(grade(a, {a}, Extract::bare).kind == VerdictKind::equal, readable) << printable(a);
    if (x.form != ReadAnswer::Form::number || y.form != ReadAnswer::Form::number) continue;
    ++numbers;
    EXPECT_TRUE(x.number != y.number || grade(a, {b}, Extract::bare).kind == VerdictKind::equal ||
                x.percent != y.percent);
  }
  EXPECT_GT(numbers, 500);
}

// What the shared evaluation files hold as gold must be met by itself.
TEST(verifier, every_gold_answer_equals_itself) {
  const char* root = std::getenv("UCAS_SHARED_DATA");
  std::string folder = path_join(root != nullptr ? root : UCAS_SOURCE_DIR "/../shared/data", "eval");
  if (!is_directory(folder)) GTEST_SKIP() << folder << " is not there (set UCAS_SHARED_DATA)";
  int64_t rows = 0;
  for (const std::string& name : list_directory(folder)) {
    if (name.find("_meta") != std::string::npos || !name.ends_with(".jsonl")) continue;
    read_json_lines(path_join(folder, name), BadRows::stop, [&](const JsonRow& row) {
      std::vector<std::string> gold = answer_field(row, row.value.at("answer"), "answer", true);
      for (const std::string& answer : gold) {
        if (trim(answer).empty()) continue;  // two rows of an extra file have no answer
        EXPECT_EQ(grade(answer, gold, Extract::bare).kind, VerdictKind::equal) << row.where << " " << answer;
      }
      ++rows;
    });
  }
  EXPECT_GT(rows, 1500);
}

}  // namespace
}  // namespace ucas::math
