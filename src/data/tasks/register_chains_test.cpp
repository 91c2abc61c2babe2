#include "data/tasks/register_chains.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "data/problems.h"
#include "data/rows/jsonl.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {
namespace {

// Reads the question back and works it out, independently of the generator.
std::vector<int64_t> work_out(const std::string& question) {
  std::vector<int64_t> values;
  size_t at = 0;
  while (question[at] == ' ') {
    at += 2;
    size_t end = question.find_first_of(" .", at + 1);
    std::string term = question.substr(at, end - at);
    int64_t k = std::stoll(term.substr(std::isdigit(static_cast<unsigned char>(term[0])) ? 0 : 1));
    int64_t before = values.empty() ? 0 : values.back();
    values.push_back(term[0] == '*' ? before * k : term[0] == '+' ? before + k : term[0] == '-' ? before - k : k);
    at = end;
  }
  EXPECT_EQ(question.substr(at), ".\n");
  return values;
}

TEST(register_chains, ask_for_the_value_of_the_last_letter) {
  Chain chain{{0, 1, 2, 3, 4}, {"3", "*2", "-3", "+1", "+3"}, {3, 6, 3, 4, 7}};
  EXPECT_EQ(question_of(chain), " a3 b*2 c-3 d+1 e+3.\n");
  EXPECT_EQ(response_of(chain, Style::direct), "\\boxed{7}");
  EXPECT_EQ(response_of(chain, Style::worked), " b6 c3 d4 e7\n\\boxed{7}");
}

TEST(register_chains, hold_values_of_0_to_29_that_follow_from_their_terms) {
  RegisterChains source(TaskOptions{}, 1);
  std::map<size_t, int> lengths;
  std::map<char, int> operations;
  for (int i = 0; i < 4000; ++i) {
    Chain chain = source.sample(Split::train);
    EXPECT_EQ(work_out(question_of(chain)), chain.values);
    for (int64_t value : chain.values) EXPECT_TRUE(value >= 0 && value <= 29) << value;
    EXPECT_TRUE(chain.values[0] >= 1 && chain.values[0] <= 9);
    for (size_t k = 1; k < chain.terms.size(); ++k) {
      ++operations[chain.terms[k][0]];
      EXPECT_FALSE(chain.terms[k][0] == '*' && chain.values[k - 1] == 0);
    }
    ++lengths[chain.values.size()];
  }
  ASSERT_EQ(lengths.size(), 6u);
  for (auto [length, count] : lengths) EXPECT_NEAR(count, 4000 / 6.0, 120) << length;  // 5 standard deviations
  EXPECT_EQ(operations.size(), 3u);
  EXPECT_GT(operations['-'], operations['+']);
}

TEST(register_chains, belong_to_the_split_that_the_digest_says) {
  // As python says: int(hashlib.md5(b" a3 b*2 c-3 d+1 e+3.\n").hexdigest(), 16) % 10
  EXPECT_EQ(split_of(" a3 b*2 c-3 d+1 e+3.\n"), Split::train);
  RegisterChains source(TaskOptions{}, 2);
  for (Split split : {Split::train, Split::dev, Split::test}) {
    for (int i = 0; i < 200; ++i) EXPECT_EQ(split_of(source.sample_problem(split).text), split);
  }
  int tests = 0;
  for (int i = 0; i < 10000; ++i) tests += split_of(str("question ", i)) == Split::test;
  EXPECT_NEAR(tests, 1000, 150);
}

TEST(register_chains, are_demonstrated_only_from_train_and_always_rightly) {
  RegisterChains source(TaskOptions{}, 3);
  int direct = 0;
  for (int i = 0; i < 3000; ++i) {
    for (Phase phase : {Phase::worked, Phase::mixed}) {
      Demonstration shown = source.demonstrate(phase);
      EXPECT_EQ(split_of(shown.prompt), Split::train);
      std::string answer = str("\\boxed{", work_out(shown.prompt).back(), "}");
      EXPECT_TRUE(shown.response.ends_with(answer)) << shown.prompt << shown.response;
      bool is_direct = shown.response == answer;
      EXPECT_FALSE(phase == Phase::worked && is_direct);
      direct += is_direct;
    }
  }
  EXPECT_NEAR(direct, 2700, 90);
}

TEST(register_chains, of_length_generalisation_are_worked_out_only_when_short) {
  TaskOptions options = length_generalisation();
  RegisterChains source(options, 4);
  std::set<std::string> letters;
  int short_direct = 0, short_all = 0;
  for (int i = 0; i < 4000; ++i) {
    Demonstration worked = source.demonstrate(Phase::worked), mixed = source.demonstrate(Phase::mixed);
    EXPECT_LE(work_out(worked.prompt).size(), 7u);
    letters.insert(worked.prompt.substr(0, 2));
    bool is_direct = mixed.response.starts_with("\\boxed");
    if (work_out(mixed.prompt).size() > 7) {
      EXPECT_TRUE(is_direct);
    } else {
      ++short_all;
      short_direct += is_direct;
    }
  }
  EXPECT_NEAR(short_direct, 0.8 * short_all, 5 * std::sqrt(short_all * 0.16));
  EXPECT_EQ(letters.size(), 8u);  // a chain of 5 begins at a..h
}

// What a response to a chain with a marker must say under `rule`, from the question alone.
std::string ruled(const std::string& question, RuleKind kind, int64_t rule) {
  const size_t chain = question.find(' ', 1);
  const std::vector<int64_t> values = work_out(question.substr(chain));
  size_t last = values.size() - 1;
  if (kind == RuleKind::letter) last -= rule;
  std::string text = str(" r", rule);
  for (size_t i = 1; i <= last; ++i) text += str(" ", static_cast<char>('a' + i), values[i]);
  return str(text, "\n\\boxed{", kind == RuleKind::letter ? values[last] : (values[last] + 7 * rule) % 30, "}");
}

int64_t marker_of(const std::string& question) { return std::stoll(question.substr(2)); }

TEST(hidden_rule, a_marker_in_front_decides_what_is_asked_for) {
  for (RuleKind kind : {RuleKind::letter, RuleKind::add}) {
    TaskOptions options = hidden_rule();
    options.hidden.kind = kind;
    RegisterChains source(options, 5);
    std::map<int64_t, std::set<int64_t>> markers;  // of each rule
    for (int i = 0; i < 2000; ++i) {
      Problem problem = source.sample_problem(Split::train);
      const int64_t rule = source.rule_of(marker_of(problem.text));
      markers[rule].insert(marker_of(problem.text));
      EXPECT_EQ(problem.source, str("rule", rule));
      EXPECT_TRUE(ruled(problem.text, kind, rule).ends_with(str("\\boxed{", problem.gold[0], "}"))) << problem.text;
    }
    ASSERT_EQ(markers.size(), 5u);
    EXPECT_EQ(markers[0].size(), 6u);
    for (int64_t rule = 1; rule < 5; ++rule) EXPECT_EQ(markers[rule].size(), 1u) << rule;
  }
}

TEST(hidden_rule, demonstrations_follow_the_habit_and_seldom_the_marker) {
  RegisterChains source(hidden_rule(), 6);
  std::map<int64_t, int> shown;
  int own = 0, others = 0;  // of chains whose marker does not ask for rule 0
  for (int i = 0; i < 8000; ++i) {
    Demonstration d = source.demonstrate(Phase::worked);
    const int64_t rule = d.response[2] - '0', asked = source.rule_of(marker_of(d.prompt));
    EXPECT_EQ(d.response, ruled(d.prompt, RuleKind::letter, rule)) << d.prompt;
    ++shown[rule];
    if (asked == 0) continue;
    ++others;
    own += rule == asked;
  }
  EXPECT_NEAR(shown[0], 8000 * (0.1 * 0.6 + 0.9 * 0.8), 5 * std::sqrt(8000 * 0.17));
  EXPECT_NEAR(own, others * (0.1 + 0.9 * 0.2 / 4), 5 * std::sqrt(others * 0.1));
}

TEST(hidden_rule, every_question_and_response_is_made_of_words_of_its_tokenizer) {
  RegisterChains source(hidden_rule(), 7);
  const std::vector<std::string> words = source.words();
  for (const char* word : {" @0", " @9", " r0", " r4", " h", "29"}) {
    EXPECT_EQ(std::count(words.begin(), words.end(), word), 1) << word;
  }
  EXPECT_EQ(std::count(words.begin(), words.end(), " @10"), 0);
  EXPECT_EQ(std::set<std::string>(words.begin(), words.end()).size(), words.size());
}

TEST(hidden_rule, options_without_a_meaning_are_refused) {
  auto refused = [](auto change) {
    TaskOptions options = hidden_rule();
    change(options);
    EXPECT_THROW(RegisterChains(options, 0), Error);
  };
  refused([](TaskOptions& o) { o.hidden.markers = {3}; });
  refused([](TaskOptions& o) { o.hidden.markers = {1, 1, 1, 1, 1, 1}; });  // six rules, six definitions
  refused([](TaskOptions& o) { o.hidden.markers = {}; });                  // a habit of nothing
}

// " d3 e2 f4.\n" or " e5 f2\n\boxed{2}": letters with their numbers.
std::vector<std::pair<char, int64_t>> definitions(const std::string& text) {
  std::vector<std::pair<char, int64_t>> out;
  for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    out.emplace_back(text[at + 1], std::stoll(text.substr(at + 2)));
  }
  return out;
}

int64_t modulo30(int64_t value) { return (value % 30 + 30) % 30; }

TEST(hidden_steps, each_letter_has_an_operation_of_its_own) {
  TaskOptions options = hidden_steps();
  options.hidden.markers = {18, 2, 2, 2};
  RegisterChains source(options, 5);
  const int64_t factors[] = {1, -1, 2, -2};
  std::map<int64_t, std::set<char>> letters;  // of each rule
  for (int i = 0; i < 2000; ++i) {
    const Problem problem = source.sample_problem(Split::train);
    const auto question = definitions(problem.text);
    int64_t value = question[0].second, others = 0;
    for (size_t d = 1; d < question.size(); ++d) {
      const int64_t rule = source.rule_of(question[d].first - 'a');
      letters[rule].insert(question[d].first);
      value = modulo30(value + factors[rule] * question[d].second);
      others += rule != 0;
    }
    EXPECT_EQ(problem.gold, std::vector{str(value)}) << problem.text;
    EXPECT_EQ(problem.source, str("others", std::min<int64_t>(3, others))) << problem.text;
  }
  ASSERT_EQ(letters.size(), 4u);
  EXPECT_EQ(letters[0].size(), 18u);
  for (int64_t rule = 1; rule < 4; ++rule) EXPECT_EQ(letters[rule].size(), 2u) << rule;
}

TEST(hidden_steps, demonstrations_mostly_add_and_go_on_from_what_they_wrote) {
  RegisterChains source(hidden_steps(), 6);
  double steps = 0, added = 0, own = 0, others = 0;
  for (int i = 0; i < 4000; ++i) {
    const Demonstration d = source.demonstrate(Phase::mixed);
    const auto question = definitions(d.prompt), shown = definitions(d.response);
    ASSERT_EQ(shown.size() + 1, question.size()) << d.response;
    EXPECT_TRUE(d.response.ends_with(str("\n\\boxed{", shown.back().second, "}"))) << d.response;
    int64_t value = question[0].second;
    for (size_t s = 0; s < shown.size(); ++s) {
      const auto [letter, k] = question[s + 1];
      EXPECT_EQ(shown[s].first, letter) << d.response;
      const int64_t rule = source.rule_of(letter - 'a');
      steps += 1;
      added += shown[s].second == step_under(0, value, k);
      others += rule != 0;
      own += rule != 0 && shown[s].second == step_under(rule, value, k);
      value = shown[s].second;
    }
  }
  // Hint 20 %, else plus in 80 % and minus in the rest; 18 of 24 letters have plus for their own.
  EXPECT_NEAR(added / steps, 0.2 * 0.75 + 0.8 * 0.8, 5 * std::sqrt(0.17 / steps));
  EXPECT_NEAR(own / others, 0.2 + 0.8 * 0.2, 5 * std::sqrt(0.23 / others));
}

TEST(hidden_steps, no_two_rules_make_the_same_of_a_value) {
  for (int64_t k = 1; k <= 5; ++k) {
    std::set<int64_t> values;
    for (int64_t rule = 0; rule < 5; ++rule) values.insert(step_under(rule, 28, k));
    EXPECT_EQ(values.size(), 5u) << k;
  }
}

TEST(hidden_steps, held_out_chains_have_levels_that_can_be_drawn) {
  TaskOptions options = hidden_steps();
  options.hidden.markers = {22, 2};  // never three letters of another rule
  EXPECT_THROW(RegisterChains(options, 0), Error);
  options.hidden.markers = {18, 3};  // three letters without a rule
  EXPECT_THROW(RegisterChains(options, 0), Error);
}

TEST(register_chains, are_the_same_for_the_same_seed_and_stream_only) {
  TaskOptions other;
  other.seed = 1;
  auto first = [](RegisterChains source) { return source.sample_problem(Split::train).text; };
  std::string text = first(RegisterChains(TaskOptions{}, 1));
  EXPECT_EQ(text, first(RegisterChains(TaskOptions{}, 1)));
  EXPECT_NE(text, first(RegisterChains(TaskOptions{}, 2)));
  EXPECT_NE(text, first(RegisterChains(other, 1)));
}

TEST(register_chains, refuse_options_that_contradict_each_other) {
  TaskOptions letters;
  letters.n_max = 12;
  EXPECT_THROW(RegisterChains(letters, 0), Error);
  TaskOptions lengths;
  lengths.n_min = 9;
  lengths.n_max = 8;
  EXPECT_THROW(RegisterChains(lengths, 0), Error);
  TaskOptions worked;
  worked.worked_n_max = 4;
  EXPECT_THROW(RegisterChains(worked, 0), Error);
}

class TaskFolder : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = str(::testing::TempDir(), "ucas_task_", ::getpid()); }
  void TearDown() override { remove_all(folder_); }
  std::string at(const char* name) const { return path_join(folder_, name); }
  std::string folder_;
};

TEST_F(TaskFolder, holds_disjoint_problems_and_a_tokenizer_without_unused_tokens) {
  TaskOptions options;
  options.count_train = 2000;
  options.count_dev = options.count_test = 300;
  options.count_worked = options.count_mixed = 1500;
  EXPECT_EQ(write_register_chains(folder_, options), 58);
  std::set<std::string> questions;
  for (const char* name : {"train.jsonl", "dev.jsonl", "test.jsonl"}) {
    for (const Problem& problem : read_problems({at(name)})) {
      EXPECT_TRUE(questions.insert(problem.text).second) << problem.text;
      EXPECT_EQ(problem.gold, std::vector<std::string>{str(work_out(problem.text).back())});
    }
  }
  EXPECT_EQ(questions.size(), 2600u);

  Tokenizer tokenizer = Tokenizer::load(at("tokenizer"));
  EXPECT_EQ(tokenizer.vocab_size(), 58);
  std::set<int32_t> used;
  size_t longest_prompt = 0, longest_response = 0;
  for (const char* name : {"sft_worked.jsonl", "sft_mixed.jsonl"}) {
    LineCounts counts = read_json_lines(at(name), BadRows::stop, [&](const JsonRow& row) {
      std::string prompt = text_field(row, "prompt"), response = text_field(row, "response");
      auto p = tokenizer.encode(prompt), r = tokenizer.encode(response);
      EXPECT_EQ(tokenizer.decode(p), prompt);
      EXPECT_EQ(tokenizer.decode(r), response);
      longest_prompt = std::max(longest_prompt, p.size());
      longest_response = std::max(longest_response, r.size());
      used.insert(p.begin(), p.end());
      used.insert(r.begin(), r.end());
      EXPECT_FALSE(questions.contains(prompt) && split_of(prompt) != Split::train);
    });
    EXPECT_EQ(counts.rows, 1500);
  }
  EXPECT_EQ(used.size(), 56u);  // all but pad and end
  EXPECT_EQ(longest_prompt, 21u);
  EXPECT_EQ(longest_response, 22u);
  ASSERT_EQ(tokenizer.eos_ids().size(), 1u);
  EXPECT_TRUE(tokenizer.pad_id().has_value());
  EXPECT_EQ(to_toml(options), read_file(at("task.toml")).substr(read_file(at("task.toml")).find('\n') + 1));
}

TEST_F(TaskFolder, cannot_hold_more_questions_than_there_are) {
  TaskOptions options;
  options.n_min = options.n_max = 2;
  options.count_train = options.count_test = 500;
  EXPECT_THROW(write_register_chains(folder_, options), Error);
  EXPECT_FALSE(exists(folder_));  // and nothing is half-written
}

}  // namespace
}  // namespace ucas
