#include "data/tasks/register_chains.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "text/tokenizer/added_tokens.h"

namespace ucas {

namespace {

constexpr int64_t kValues = 30;     // every value is in 0 .. 29
constexpr int64_t kStepRules = 5;   // numbers up to 5, factors -2 .. 3: no two rules make the same value, modulo 30
constexpr int64_t kMostLevels = 3;  // of letters that do not add, counted up to here

std::string letter(int64_t index) { return str(" ", static_cast<char>('a' + index)); }

// Streams of the counter-based generator: one per file, so that the count of one file does not change another.
enum Stream : uint64_t { kTrainStream = 0x7a5c, kDevStream, kTestStream, kWorked, kMixed, kRules };

// " b6 c3": the values up to letter `last`, the first one left out, as it is given.
std::string steps_to(const Chain& chain, size_t last) {
  std::string text;
  for (size_t i = 1; i <= last; ++i) {
    text += letter(chain.letters[i]) + str(chain.values[i]);
  }
  return text;
}

}  // namespace

void TaskOptions::validate() const {
  auto refuse = [](const std::string& what) { throw Error(ErrorKind::config, what); };
  if (n_min > n_max) refuse(str("n_min = ", n_min, ", n_max = ", n_max, ": expected n_min <= n_max"));
  if (n_max > letters) {
    refuse(
        str("n_max = ", n_max, ", letters = ", letters, ": a chain needs a letter for each definition; raise letters"));
  }
  if (worked_n_max != 0 && worked_n_max < n_min) {
    refuse(str("worked_n_max = ", worked_n_max, ", n_min = ", n_min,
               ": no chain could be worked out; raise worked_n_max"));
  }
  if (!hidden_rule()) {
    if (hidden.habit != 0 || hidden.hint != 0)
      refuse("habit and hint are of a hidden rule: give markers, such as 6,1,1,1,1");
    return;
  }
  const auto rules = static_cast<int64_t>(hidden.markers.size());
  if (rules < 2) refuse("markers: expected two rules at least, such as 6,1,1,1,1");
  if (hidden.kind == RuleKind::letter && rules >= n_min) {
    refuse(str("markers: ", rules, " rules, n_min = ", n_min,
               ": the shortest chain has fewer values to ask for; raise n_min, or rule = add"));
  }
  if (hidden.kind == RuleKind::add && rules > kValues) refuse(str("markers: at most ", kValues, " rules"));
  if (hidden.kind != RuleKind::step) return;
  int64_t with_rule = 0;
  for (int64_t count : hidden.markers) with_rule += count;
  if (with_rule != letters) {
    refuse(str("markers give ", with_rule, " letters a rule, letters = ", letters,
               ": under rule = step every letter has one"));
  }
  if (with_rule - hidden.markers[0] < kMostLevels || n_min <= kMostLevels) {
    refuse(str("markers, n_min = ", n_min, ": held-out chains have up to ", kMostLevels,
               " letters of another rule than 0; give more such letters, and longer chains"));
  }
  if (rules > kStepRules) refuse(str("markers: at most ", kStepRules, " rules under rule = step"));
}

TaskOptions length_generalisation() {
  TaskOptions options;
  options.n_max = options.letters = 12;
  options.random_start = true;
  options.worked_n_max = 7;
  options.share_direct = 0.8;
  return options;
}

TaskOptions hidden_steps() {
  TaskOptions options = hidden_rule();
  options.n_min = 4;
  options.n_max = 6;
  options.letters = 24;
  options.hidden = {.markers = {18, 6}, .kind = RuleKind::step, .habit = 0.8, .hint = 0.2};
  return options;
}

TaskOptions hidden_rule() {
  TaskOptions options;
  options.n_min = 6;
  options.n_max = options.letters = 8;
  options.hidden = {.markers = {6, 1, 1, 1, 1}, .habit = 0.8, .hint = 0.1};
  options.count_dev = options.count_test = 500;
  return options;
}

TaskOptions options_of(TaskKind kind) {
  if (kind == TaskKind::length) return length_generalisation();
  if (kind == TaskKind::hidden_rule) return hidden_rule();
  return kind == TaskKind::hidden_steps ? hidden_steps() : TaskOptions{};
}

Split split_of(const std::string& question) {
  int remainder = 0;  // of the digest, as one big-endian number, by 10
  for (uint8_t byte : md5_of_text(question)) remainder = (remainder * 256 + byte) % 10;
  return remainder == 0 ? Split::test : remainder == 1 ? Split::dev : Split::train;
}

std::string question_of(const Chain& chain) {
  std::string text = chain.marker < 0 ? "" : str(" @", chain.marker);
  for (size_t i = 0; i < chain.terms.size(); ++i) {
    text += letter(chain.letters[i]) + chain.terms[i];
  }
  return text + ".\n";
}

std::string response_of(const Chain& chain, Style style) {
  const std::string steps = style == Style::worked ? steps_to(chain, chain.values.size() - 1) + "\n" : "";
  return str(steps, "\\boxed{", chain.values.back(), "}");
}

int64_t answer_under(const Chain& chain, RuleKind kind, int64_t rule) {
  return kind == RuleKind::add ? (chain.values.back() + 7 * rule) % kValues
                               : chain.values[chain.values.size() - 1 - static_cast<size_t>(rule)];
}

std::string response_under(const Chain& chain, RuleKind kind, int64_t rule) {
  const size_t last = chain.values.size() - 1 - (kind == RuleKind::letter ? static_cast<size_t>(rule) : 0);
  return str(" r", rule, steps_to(chain, last), "\n\\boxed{", answer_under(chain, kind, rule), "}");
}

int64_t step_under(int64_t rule, int64_t value, int64_t k) {
  const int64_t factor = rule % 2 == 0 ? 1 + rule / 2 : -(1 + rule / 2);
  return ((value + factor * k) % kValues + kValues) % kValues;
}

RegisterChains::RegisterChains(const TaskOptions& options, uint64_t stream)
    : options_(options), rng_(static_cast<uint64_t>(options.seed), stream) {
  options_.validate();
  for (int64_t rule = 0; rule < rules(); ++rule) rule_of_.insert(rule_of_.end(), options_.hidden.markers[rule], rule);
  Rng order(static_cast<uint64_t>(options.seed), kRules);
  for (auto i = static_cast<int64_t>(rule_of_.size()) - 1; i > 0; --i) {
    std::swap(rule_of_[i], rule_of_[order.below(i + 1)]);
  }
}

int64_t RegisterChains::level_of(const Chain& chain) const {
  if (!by_step()) return rule_of(chain.marker);
  int64_t others = 0;
  for (size_t i = 1; i < chain.letters.size(); ++i) others += rule_of(chain.letters[i]) != 0;
  return std::min(others, kMostLevels);
}

// The first number is the first value; each further letter has a rule of its own and a number. Letters in any order, so
// that chains of every level are there whichever letters have which rule.
Chain RegisterChains::draw_steps(int64_t n) {
  Chain chain;
  chain.values.push_back(1 + rng_.below(9));
  chain.terms.push_back(str(chain.values[0]));
  chain.letters.push_back(rng_.below(options_.letters));
  while (static_cast<int64_t>(chain.letters.size()) < n) {
    const int64_t next = rng_.below(options_.letters), k = 1 + rng_.below(5);
    if (std::ranges::find(chain.letters, next) != chain.letters.end()) continue;
    chain.letters.push_back(next);
    chain.terms.push_back(str(k));
    chain.values.push_back(step_under(rule_of(next), chain.values.back(), k));
  }
  return chain;
}

Chain RegisterChains::draw_of_length(int64_t n) {
  if (by_step()) return draw_steps(n);
  Chain chain;
  if (options_.hidden_rule()) chain.marker = rng_.below(static_cast<int64_t>(rule_of_.size()));
  const int64_t first_letter = options_.random_start ? rng_.below(options_.letters - n + 1) : 0;
  for (int64_t i = 0; i < n; ++i) chain.letters.push_back(first_letter + i);
  int64_t value = 1 + rng_.below(9);
  chain.terms.push_back(str(value));
  chain.values.push_back(value);
  while (static_cast<int64_t>(chain.values.size()) < n) {
    std::string term;
    int64_t next = -1;
    if (rng_.uniform() < 0.35) {
      int64_t k = 2 + rng_.below(2);
      if (value == 0) continue;
      term = str("*", k);
      next = value * k;
    } else {
      bool plus = rng_.uniform() < 0.45;
      int64_t k = 1 + rng_.below(5);
      term = str(plus ? "+" : "-", k);
      next = plus ? value + k : value - k;
    }
    if (next < 0 || next >= kValues) continue;
    value = next;
    chain.terms.push_back(std::move(term));
    chain.values.push_back(value);
  }
  return chain;
}

Chain RegisterChains::sample(Split split, int64_t n_max) {
  // The length is sampled anew with each try: a chain's split does not depend on it, so lengths stay uniform.
  while (true) {
    Chain chain = draw_of_length(options_.n_min + rng_.below(n_max - options_.n_min + 1));
    if (split_of(question_of(chain)) == split) return chain;
  }
}

Chain RegisterChains::sample(Split split) { return sample(split, options_.n_max); }

Problem RegisterChains::problem_of(const Chain& chain) const {
  Problem problem;
  problem.source = "register_chains";
  problem.text = question_of(chain);
  problem.gold = {str(chain.values.back())};
  if (!options_.hidden_rule()) return problem;
  const int64_t level = level_of(chain);
  problem.source = str(by_step() ? "others" : "rule", level);
  if (!by_step()) problem.gold = {str(answer_under(chain, options_.hidden.kind, level))};
  return problem;
}

Problem RegisterChains::sample_problem(Split split) { return problem_of(sample(split)); }

Problem RegisterChains::sample_problem(Split split, int64_t level) {
  while (true) {
    Chain chain = sample(split);
    if (level_of(chain) == level) return problem_of(chain);
  }
}

// By habit rule 0, else one of the others; sometimes the marker's or letter's own.
int64_t RegisterChains::shown_rule(int64_t own) {
  if (rng_.uniform() < options_.hidden.hint) return own;
  if (options_.hidden.habit == 0) return rng_.below(rules());
  return rng_.uniform() < options_.hidden.habit ? 0 : 1 + rng_.below(rules() - 1);
}

Demonstration RegisterChains::demonstrate_rule() {
  Chain chain = sample(Split::train);
  if (!by_step()) {
    return {question_of(chain), response_under(chain, options_.hidden.kind, shown_rule(rule_of(chain.marker)))};
  }
  Chain shown = chain;  // with the values that the shown rules lead to, each going on from the one before
  for (size_t i = 1; i < shown.values.size(); ++i) {
    const int64_t rule = shown_rule(rule_of(chain.letters[i]));
    shown.values[i] = step_under(rule, shown.values[i - 1], std::stoll(chain.terms[i]));
  }
  return {question_of(chain), response_of(shown, Style::worked)};
}

bool RegisterChains::can_be_worked(const Chain& chain) const {
  return options_.worked_n_max == 0 || static_cast<int64_t>(chain.values.size()) <= options_.worked_n_max;
}

Demonstration RegisterChains::demonstrate(Phase phase) {
  if (options_.hidden_rule()) return demonstrate_rule();
  int64_t longest = options_.worked_n_max == 0 ? options_.n_max : std::min(options_.worked_n_max, options_.n_max);
  Chain chain = sample(Split::train, phase == Phase::worked ? longest : options_.n_max);
  Style style = Style::worked;
  if (phase == Phase::mixed && (!can_be_worked(chain) || rng_.uniform() < options_.share_direct)) style = Style::direct;
  return {question_of(chain), response_of(chain, style)};
}

std::vector<std::string> RegisterChains::words() const {
  std::vector<std::string> words;
  for (int64_t i = 0; i < options_.letters; ++i) words.push_back(letter(i));
  if (!by_step()) {
    for (size_t marker = 0; marker < rule_of_.size(); ++marker) words.push_back(str(" @", marker));
    for (int64_t rule = 0; rule < rules(); ++rule) words.push_back(str(" r", rule));
    for (const char* sign : {"+", "-"}) {
      for (int64_t k = 1; k <= 5; ++k) words.push_back(str(sign, k));
    }
    for (int64_t k = 2; k <= 3; ++k) words.push_back(str("*", k));
  }
  for (int64_t value = 0; value < kValues; ++value) words.push_back(str(value));
  for (const char* word : {"\\boxed{", "}", ".\n", "\n"}) words.push_back(word);
  return words;
}

namespace {

std::string problem_lines(const TaskOptions& options, Split split, Stream stream, int64_t count) {
  static constexpr const char* kNames[] = {"train", "dev", "test"};
  const char* name = kNames[static_cast<int>(split)];
  RegisterChains chains(options, stream);
  std::unordered_set<std::string> seen;
  std::string text;
  int64_t repeats = 0;
  while (static_cast<int64_t>(seen.size()) < count) {
    // Of every level alike, in turn: accuracy on them is the mean over the levels.
    Problem problem = options.hidden_rule() && options.balanced && split != Split::train
                          ? chains.sample_problem(split, static_cast<int64_t>(seen.size()) % chains.levels())
                          : chains.sample_problem(split);
    if (!seen.insert(problem.text).second) {
      if (++repeats > 20 * count + 10000) {
        throw Error(ErrorKind::config, str("count_", name, " = ", count, ": there are hardly more than ", seen.size(),
                                           " different questions of this kind; raise n_max or lower the count"));
      }
      continue;
    }
    OrderedJson row;
    row["id"] = str(name, "-", seen.size() - 1);
    row["problem"] = problem.text;
    row["answer"] = problem.gold[0];
    if (options.hidden_rule()) row["data_source"] = problem.source;
    text += json_text(row) + "\n";
  }
  return text;
}

std::string demonstration_lines(const TaskOptions& options, Phase phase, Stream stream, int64_t count) {
  RegisterChains chains(options, stream);
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    Demonstration shown = chains.demonstrate(phase);
    OrderedJson row;
    row["prompt"] = shown.prompt;
    row["response"] = shown.response;
    text += json_text(row) + "\n";
  }
  return text;
}

}  // namespace

int64_t write_register_chains(const std::string& directory, const TaskOptions& options) {
  options.validate();
  // All problems are sampled before the first write: options that cannot be met leave nothing behind.
  struct File {
    const char* name;
    std::string text;
  };
  const File files[] = {
      {"train.jsonl", problem_lines(options, Split::train, kTrainStream, options.count_train)},
      {"dev.jsonl", problem_lines(options, Split::dev, kDevStream, options.count_dev)},
      {"test.jsonl", problem_lines(options, Split::test, kTestStream, options.count_test)},
      {"sft_worked.jsonl", demonstration_lines(options, Phase::worked, kWorked, options.count_worked)},
      {"sft_mixed.jsonl", demonstration_lines(options, Phase::mixed, kMixed, options.count_mixed)},
  };
  std::vector<std::string> words = RegisterChains(options, kTrainStream).words();
  std::string tokenizer = path_join(directory, "tokenizer");
  make_directories(tokenizer);
  const std::string lock_file = path_join(directory, ".lock");
  {
    const FileLock lock(lock_file);
    for (const std::string& folder : {directory, tokenizer}) remove_leftovers(folder);  // of one that was killed
    for (const File& file : files) write_file(path_join(directory, file.name), file.text);
    write_word_level_tokenizer(tokenizer, words, RegisterChains::kEnd, RegisterChains::kPad);
    // Last: a task with this file is whole.
    write_file(path_join(directory, "task.toml"),
               str("# Options of `ucas make-task` that made these files.\n", to_toml(options)));
    remove_all(lock_file);
  }
  return static_cast<int64_t>(words.size()) + 2;
}

}  // namespace ucas
