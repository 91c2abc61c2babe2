#include "data/tasks/task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "data/problems.h"
#include "support/temporary_directory.h"
#include "verify/registry.h"

namespace ucas {
namespace {

constexpr Split kSplits[] = {Split::train, Split::dev, Split::test};

std::vector<TextTaskKind> all_text_tasks() {
  std::vector<TextTaskKind> all;
  for (size_t i = 0; i < names(TextTaskKind{}).size(); ++i) all.push_back(static_cast<TextTaskKind>(i));
  return all;
}

GraderKind grader_kind(TextTaskKind task) {
  const auto known = names(GraderKind{});
  const auto found =
      std::ranges::find(known, std::string(grader_of(task)), [](const char* name) { return std::string(name); });
  EXPECT_NE(found, known.end()) << grader_of(task);
  return static_cast<GraderKind>(found - known.begin());
}

std::vector<int64_t> numbers_in(const std::string& text) {
  std::vector<int64_t> numbers;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!std::isdigit(static_cast<unsigned char>(text[at]))) continue;
    size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    numbers.push_back(std::stoll(text.substr(at, end - at)));
    at = end;
  }
  return numbers;
}

// A question without what varies within a form: numbers, operators between them, names, things and quoted words are #.
std::string form_in(const std::string& text) {
  static const std::set<std::string> varies = {"Tom",   "Anna",  "Ben",    "Lucy",     "Sam",     "Mia",      "Jack",
                                               "Emma",  "Leo",   "Nora",   "Max",      "Ella",    "Paul",     "Rosa",
                                               "Finn",  "Kate",  "apples", "pencils",  "marbles", "stickers", "books",
                                               "coins", "cards", "shells", "balloons", "cookies"};
  std::string form;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      end = std::min(text.find('"', end), text.size() - 1) + 1;
      form += '#';
    } else if (std::isalnum(static_cast<unsigned char>(text[at]))) {
      while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
      const std::string word = text.substr(at, end - at);
      form += std::isdigit(static_cast<unsigned char>(word[0])) || varies.contains(word) ? "#" : word;
    } else if (form.ends_with("# ") && std::string("+-*").find(text[at]) != std::string::npos) {
      form.pop_back();  // "# + #" of an expression is one #
      form.pop_back();
      end = std::min(end + 1, text.size());
    } else {
      form += text[at];
    }
    at = end;
  }
  return form;
}

TEST(text_tasks, splits_share_no_form_and_no_numbers) {
  for (const TextTaskKind task : all_text_tasks()) {
    for (int64_t difficulty = 1; difficulty <= kHardest; ++difficulty) {
      std::map<std::string, Split> forms, numbers;
      std::set<std::string> texts;
      for (const Split split : kSplits) {
        const int64_t count = split == Split::train ? 300 : 60;
        for (const TextProblem& problem : sample_problems(task, {.difficulty = difficulty}, split, count)) {
          EXPECT_TRUE(texts.insert(problem.text).second) << problem.text;
          EXPECT_EQ(forms.emplace(form_in(problem.text), split).first->second, split) << problem.text;
          EXPECT_EQ(numbers.emplace(problem.numbers, split).first->second, split) << problem.text;
          EXPECT_EQ(problem.text.find_first_of("{}"), std::string::npos) << problem.text;
        }
      }
      EXPECT_GE(forms.size(), 3u) << word_of(task) << " " << difficulty;
    }
  }
}

// Countdown lists its numbers in any order and form, so that they are looked up in the question itself.
TEST(text_tasks, numbers_are_those_of_the_question) {
  for (const TextTaskKind task : {TextTaskKind::word_problems, TextTaskKind::sums}) {
    for (int64_t difficulty = 1; difficulty <= kHardest; ++difficulty) {
      for (const TextProblem& problem : sample_problems(task, {.difficulty = difficulty}, Split::train, 200)) {
        EXPECT_EQ(in_order(numbers_in(problem.text)), problem.numbers) << problem.text;
      }
    }
  }
}

// Worked out from the question's own words, not by the generator.
TEST(text_tasks, answers_of_sums_are_right) {
  for (const TextTaskKind task : {TextTaskKind::sums}) {
    for (int64_t difficulty = 1; difficulty <= kHardest; ++difficulty) {
      for (const TextProblem& problem : sample_problems(task, {.difficulty = difficulty}, Split::test, 150)) {
        static const std::regex expression("[0-9]+( [+*-] [0-9]+)+");
        std::smatch found;
        ASSERT_TRUE(std::regex_search(problem.text, found, expression)) << problem.text;
        const std::vector<std::string> words = split(found.str(), ' ');
        int64_t value = std::stoll(words[0]);
        for (size_t i = 1; i + 1 < words.size(); i += 2) {
          const int64_t next = std::stoll(words[i + 1]);
          value = words[i] == "+" ? value + next : words[i] == "-" ? value - next : value * next;
          EXPECT_GE(value, 0) << problem.text;
        }
        EXPECT_EQ(str(value), problem.answer) << problem.text;
      }
    }
  }
}

// One question of each kind of word problem, by hand.
TEST(text_tasks, word_problems_have_the_answer_that_a_reader_gives) {
  const std::pair<const char*, int64_t (*)(int64_t, int64_t, int64_t)> kinds[] = {
      {" buys # more. How", [](int64_t a, int64_t b, int64_t) { return a + b; }},
      {" gives # of them away", [](int64_t a, int64_t b, int64_t) { return a - b; }},
      {" boxes with # # in each box", [](int64_t a, int64_t b, int64_t) { return a * b; }},
      {" buys # more and then gives # away", [](int64_t a, int64_t b, int64_t c) { return a + b - c; }},
      {" lost # of them and found # others", [](int64_t a, int64_t b, int64_t c) { return a - b + c; }},
      {" has # more # than #.", [](int64_t a, int64_t b, int64_t) { return a + a + b; }},
      {" and loses #. How", [](int64_t a, int64_t b, int64_t c) { return a - b - c; }},
      {" buys # boxes of # # and gives", [](int64_t a, int64_t b, int64_t c) { return a * b - c; }},
      {" and buys # boxes with # # in each.", [](int64_t c, int64_t a, int64_t b) { return a * b + c; }},
  };
  std::map<const char*, int> seen;
  for (int64_t difficulty = 1; difficulty <= kHardest; ++difficulty) {
    for (const TextProblem& problem :
         sample_problems(TextTaskKind::word_problems, {.difficulty = difficulty}, Split::train, 400)) {
      EXPECT_GE(std::stoll(problem.answer), 1) << problem.text;
      const std::string form = form_in(problem.text);
      std::vector<int64_t> n = numbers_in(problem.text);
      n.resize(3);
      for (const auto& [part, answer] : kinds) {
        if (form.find(part) == std::string::npos) continue;
        ++seen[part];
        EXPECT_EQ(str(answer(n[0], n[1], n[2])), problem.answer) << problem.text;
      }
    }
  }
  for (const auto& [part, answer] : kinds) EXPECT_GT(seen[part], 0) << part;
}

// Search over all expressions: the target can be reached, and the grader accepts what the search finds.
TEST(text_tasks, every_countdown_has_a_solution) {
  struct Made {
    std::string text;
    int64_t value;
  };
  const auto grader = make_grader(GraderKind::countdown);
  std::function<std::string(const std::vector<Made>&, int64_t)> solve = [&](const std::vector<Made>& parts,
                                                                            int64_t target) -> std::string {
    if (parts.size() == 1) return parts[0].value == target ? parts[0].text : "";
    for (size_t i = 0; i < parts.size(); ++i) {
      for (size_t j = 0; j < parts.size(); ++j) {
        if (i == j) continue;
        std::vector<Made> rest;
        for (size_t k = 0; k < parts.size(); ++k) {
          if (k != i && k != j) rest.push_back(parts[k]);
        }
        const Made &a = parts[i], &b = parts[j];
        for (const char symbol : {'+', '-', '*', '/'}) {
          if (symbol == '/' && (b.value == 0 || a.value % b.value != 0)) continue;
          const int64_t value = symbol == '+'   ? a.value + b.value
                                : symbol == '-' ? a.value - b.value
                                : symbol == '*' ? a.value * b.value
                                                : a.value / b.value;
          rest.push_back({str("(", a.text, symbol, b.text, ")"), value});
          if (std::string found = solve(rest, target); !found.empty()) return found;
          rest.pop_back();
        }
      }
    }
    return "";
  };
  for (int64_t difficulty = 1; difficulty <= kHardest; ++difficulty) {
    for (const TextProblem& problem :
         sample_problems(TextTaskKind::countdown, {.difficulty = difficulty}, Split::train, 60)) {
      std::vector<int64_t> given = numbers_in(problem.answer);
      const int64_t target = given[0];
      std::vector<Made> parts;
      for (size_t i = 1; i < given.size(); ++i) parts.push_back({str(given[i]), given[i]});
      const std::string solution = solve(parts, target);
      ASSERT_FALSE(solution.empty()) << problem.text;
      const std::vector<std::string> gold = {problem.answer};
      const Answer answer{solution, &gold, Extract::bare};
      EXPECT_EQ(grader->grade({&answer, 1}).front().kind, VerdictKind::equal) << problem.text << " " << solution;
    }
  }
}

TEST(text_tasks, worked_examples_are_right_and_of_the_train_split) {
  for (const TextTaskKind task : all_text_tasks()) {
    for (int64_t difficulty = 1; difficulty <= kHardest; ++difficulty) {
      const auto grader = make_grader(grader_kind(task));
      const std::vector<TextProblem> examples = draw_examples(task, {.difficulty = difficulty});
      ASSERT_EQ(std::ssize(examples), kWorkedExamples);
      for (const TextProblem& example : examples) {
        const std::vector<std::string> gold = {example.answer};
        const Answer answer{example.worked, &gold, Extract::lenient};
        EXPECT_EQ(grader->grade({&answer, 1}).front().kind, VerdictKind::equal)
            << example.text << " " << example.worked;
        EXPECT_EQ(split_of(str(word_of(task), " ", example.numbers)), Split::train);
      }
    }
  }
}

// Its own answer is rewarded, another problem's is not: for every task by its own grader.
TEST(text_tasks, graders_pay_for_the_right_answer_and_not_for_another_problems) {
  for (const TextTaskKind task : all_text_tasks()) {
    if (task == TextTaskKind::countdown) continue;  // above
    const auto grader = make_grader(grader_kind(task));
    const std::vector<TextProblem> problems = sample_problems(task, {}, Split::test, 60);
    for (size_t i = 0; i < problems.size(); ++i) {
      const std::string& other = problems[(i + 1) % problems.size()].answer;
      const std::vector<std::string> gold = {problems[i].answer};
      const std::string right = str("The answer is ", problems[i].answer, "."),
                        wrong = str("The answer is ", other, ".");
      const Answer answers[] = {{right, &gold, Extract::lenient}, {wrong, &gold, Extract::lenient}};
      const std::vector<Verdict> verdicts = grader->grade(answers);
      EXPECT_EQ(verdicts[0].kind, VerdictKind::equal) << problems[i].text << " " << right;
      EXPECT_EQ(verdicts[1].kind == VerdictKind::equal, other == problems[i].answer)
          << problems[i].text << " " << wrong;
      EXPECT_NO_THROW(grader->check_gold(gold, "here"));
    }
  }
}

TEST(text_tasks, a_seed_gives_the_same_problems_and_another_seed_others) {
  for (const TextTaskKind task : all_text_tasks()) {
    const auto texts = [&](int64_t seed, int64_t count) {
      std::vector<std::string> all;
      for (const TextProblem& problem : sample_problems(task, {.seed = seed}, Split::train, count))
        all.push_back(problem.text);
      return all;
    };
    const std::vector<std::string> some = texts(3, 20), more = texts(3, 40);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), more.begin())) << word_of(task);
    EXPECT_NE(some, texts(4, 20)) << word_of(task);
  }
}

TEST(text_tasks, a_count_that_cannot_be_met_leaves_nothing_behind) {
  const ucas::testing::TemporaryDirectory place;
  const std::string directory = path_join(place.path(), "task");
  EXPECT_THROW(write_text_task(directory, TextTaskKind::sums, {.count_test = 100000}), Error);
  EXPECT_FALSE(exists(directory));
}

TEST(text_tasks, files_are_read_back_as_problems) {
  const ucas::testing::TemporaryDirectory place;
  const std::string directory = path_join(place.path(), "task");
  write_text_task(directory, TextTaskKind::countdown, {.count_train = 30, .count_dev = 10, .count_test = 20});
  const std::vector<Problem> problems = read_problems({path_join(directory, "test.jsonl")});
  ASSERT_EQ(problems.size(), 20u);
  EXPECT_EQ(problems[0].id, "test-0");
  EXPECT_EQ(problems[0].source, "countdown");
  EXPECT_EQ(problems[0].gold[0].substr(problems[0].gold[0].find(':'), 2), ": ");
}

TEST(text_tasks, names_are_those_of_both_kinds_of_tasks) {
  for (size_t i = 0; i < names(TaskName{}).size(); ++i) {
    const auto name = static_cast<TaskName>(i);
    EXPECT_NE(embedded_task(name).has_value(), text_task(name).has_value());
    const std::string word = embedded_task(name) ? word_of(*embedded_task(name)) : word_of(*text_task(name));
    EXPECT_EQ(word, word_of(name));
  }
}

}  // namespace
}  // namespace ucas
