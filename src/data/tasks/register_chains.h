// The embedded task: chains of definitions,  " a3 b*2 c-3 d+1.\n"  (a = 3, b = a*2, c = b-3, d = c+1), asked for the
// value of the last letter. A tiny model learns in seconds to guess it at once or to work it out letter by letter; RLVR
// finds that working it out is rewarded.
// With a hidden rule the question does not say all. Rules `letter` and `add`: a marker comes first,
// " @7 a3 b*2 c-3.\n", and decides what is asked for; a response names a rule and then works it out,
// " r2 b6\n\boxed{6}". Rule `step`: " d3 e2 f3.\n" names no operations, each letter has one of its own, and a response
// is right only if it takes the right one at every letter: " e5 f2\n\boxed{2}". A wrong rule is a wrong answer, so
// pass@k is what a model can do, not how many values it guesses.
// Train, dev and test are disjoint by construction: the MD5 of a question decides its split. Feeds `ucas make-task` and
// demo. Threads: one per generator.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/text/fields.h"
#include "core/verdict.h"

namespace ucas {

// What the marker asks for, under rule r = 0, 1 ...: the value r letters before the last (responses differ in length),
// or the last one plus 7 r, modulo 30 (they do not). Or, under `step`, what a letter does to the value v before it with
// its number k: v + k, v - k, v + 2 k, v - 2 k, v + 3 k ..., modulo 30.
enum class RuleKind { letter, add, step };
constexpr std::array<const char*, 3> names(RuleKind) { return {"letter", "add", "step"}; }

struct HiddenRule {
  std::vector<int64_t> markers;  // how many markers (letters) have each rule; empty: none, the last value is asked for
  RuleKind kind = RuleKind::letter;
  double habit = 0;  // share of demonstrations (their steps) under rule 0, whatever the marker; 0: all rules alike
  double hint = 0;   // share of them under the marker's (letter's) own rule

  void fields(Fields& f) {
    f.field("markers", markers, Range{1, 100},
            "hidden rule: number of markers, or letters, per rule; empty = no hidden rule");
    f.choice("rule", kind,
             "hidden rule r: the value r letters before the last, the last value plus 7 r modulo 30, or an operation "
             "per letter");
    f.field("habit", habit, Range{0, 1},
            "hidden rule: fraction of demonstrations, or of their steps, under rule 0; 0 = all rules equally");
    f.field("hint", hint, Range{0, 1},
            "hidden rule: fraction of demonstrations, or of their steps, under the rule of the marker or letter");
  }
};

struct TaskOptions {
  int64_t n_min = 5;  // definitions in a chain
  int64_t n_max = 10;
  int64_t letters = 10;       // a, b, c ...
  bool random_start = false;  // chains begin at a random letter instead of a
  int64_t worked_n_max = 0;   // demonstrations work out chains of at most so many definitions; 0: all
  double share_direct = 0.9;  // of the mixed demonstrations, among chains that could be worked out
  HiddenRule hidden;
  bool balanced = true;  // of a hidden rule: held-out problems of every level alike, else as they come in training
  int64_t seed = 0;
  int64_t count_train = 16384;
  int64_t count_dev = 512;
  int64_t count_test = 512;
  int64_t count_worked = 85120;  // 760 steps of 112: the recipe needs 608 steps, the rest is room to go on
  int64_t count_mixed = 17024;   // 152 steps of 112

  void fields(Fields& f) {
    f.field("n_min", n_min, Range{2, 12}, "minimum definitions per chain");
    f.field("n_max", n_max, Range{2, 12}, "maximum definitions per chain");
    f.field("letters", letters, Range{2, 26}, "letters of the alphabet used in chains");
    f.field("random_start", random_start, "start chains at a random letter instead of a");
    f.field("worked_n_max", worked_n_max, Range{0, 12},
            "maximum length of chains with worked demonstrations, in definitions; 0 = no limit");
    f.field("share_direct", share_direct, Range{0, 1}, "fraction of mixed demonstrations that answer directly");
    hidden.fields(f);
    f.field("balanced", balanced,
            "balance held-out problems over the rules or levels of a hidden rule; false = as in training");
    f.field("seed", seed, Range{0, 9e15}, "random seed of the task");
    f.field("count_train", count_train, Range{1, 1e7}, "problems in train.jsonl");
    f.field("count_dev", count_dev, Range{1, 1e6}, "problems in dev.jsonl");
    f.field("count_test", count_test, Range{1, 1e6}, "problems in test.jsonl");
    f.field("count_worked", count_worked, Range{0, 1e7}, "demonstrations in sft_worked.jsonl");
    f.field("count_mixed", count_mixed, Range{0, 1e7}, "demonstrations in sft_mixed.jsonl");
  }
  bool hidden_rule() const { return !hidden.markers.empty(); }
  void validate() const;
};

// Chains of 5..12 definitions from a random letter, worked out in demonstrations only up to 7: does RLVR extend it?
TaskOptions length_generalisation();
// Chains of 6..8 definitions behind one of 10 markers: 6 ask for rule 0, one for each of four others, which
// demonstrations follow seldom (a habit of 80 %) and rightly for their marker still more seldom (a hint of 10 %).
TaskOptions hidden_rule();
// The same with a rule for each letter, `step`: chains of 4..6 definitions from any of 24 letters, 18 of which add and
// 6 take away.
TaskOptions hidden_steps();

// The kinds of the task by the names that `ucas make-task` and studies give them.
enum class TaskKind { chains, length, hidden_rule, hidden_steps };
constexpr std::array<const char*, 4> names(TaskKind) { return {"chains", "length", "hidden_rule", "hidden_steps"}; }
TaskOptions options_of(TaskKind kind);

enum class Split { train, dev, test };
enum class Style { direct, worked };  // "\boxed{7}"   " b6 c3 d7\n\boxed{7}"
enum class Phase { worked, mixed };   // of the demonstrations

struct Chain {
  std::vector<int64_t> letters;    // of the definitions, by their place in the alphabet
  std::vector<std::string> terms;  // "3", "*2", "-3", "+1"
  std::vector<int64_t> values;     // 3, 6, 3, 4: each 0..29
  int64_t marker = -1;             // -1: none
};

struct Demonstration {
  std::string prompt, response;
};

Split split_of(const std::string& question);
std::string question_of(const Chain& chain);
std::string response_of(const Chain& chain, Style style);
// Of a chain with a marker, under any rule.
int64_t answer_under(const Chain& chain, RuleKind kind, int64_t rule);
std::string response_under(const Chain& chain, RuleKind kind, int64_t rule);
// What a letter with rule r and number k makes of the value before it.
int64_t step_under(int64_t rule, int64_t value, int64_t k);

// An endless source of problems; `stream` keeps sources of one seed apart.
class RegisterChains {
 public:
  RegisterChains(const TaskOptions& options, uint64_t stream);

  Chain sample(Split split);                           // any length
  Problem sample_problem(Split split);                 // id empty
  Problem sample_problem(Split split, int64_t level);  // of this level
  int64_t rules() const { return static_cast<int64_t>(options_.hidden.markers.size()); }
  int64_t rule_of(int64_t marker) const { return rule_of_[marker]; }  // or of a letter, by its place in the alphabet
  // Of a hidden rule: problems of level 0 are solved by habit. The rule that the marker asks for; under `step` the
  // number of letters with another rule than 0, counted up to 3.
  int64_t levels() const { return by_step() ? 4 : rules(); }
  int64_t level_of(const Chain& chain) const;
  Demonstration demonstrate(Phase phase);  // from train
  std::vector<std::string> words() const;  // the vocabulary without pad and end, none unused

  static constexpr const char* kEnd = "<eos>";
  static constexpr const char* kPad = "<pad>";

 private:
  Chain draw_of_length(int64_t n);
  Chain sample(Split split, int64_t n_max);
  Problem problem_of(const Chain& chain) const;
  bool by_step() const { return options_.hidden_rule() && options_.hidden.kind == RuleKind::step; }
  Chain draw_steps(int64_t n);
  int64_t shown_rule(int64_t own);
  Demonstration demonstrate_rule();
  bool can_be_worked(const Chain& chain) const;

  TaskOptions options_;
  Rng rng_;
  std::vector<int64_t> rule_of_;  // of each marker or letter, in an order of the task's seed
};

// Writes train.jsonl, dev.jsonl, test.jsonl {id, problem, answer} (no duplicate question within a file),
// sft_worked.jsonl, sft_mixed.jsonl {prompt, response}, task.toml (the options), and tokenizer/ for Tokenizer::load.
// Returns the size of the vocabulary.
int64_t write_register_chains(const std::string& directory, const TaskOptions& options);

}  // namespace ucas
