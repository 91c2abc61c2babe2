// The embedded task: chains of definitions,  " a3 b*2 c-3 d+1.\n"  (a = 3, b = a*2, c = b-3, d = c+1), asked for the
// value of the last letter. A tiny model learns in seconds to guess it at once or to work it out letter by letter; RLVR
// finds that working it out pays. Train, dev and test are disjoint by construction: the MD5 of a question decides its
// split. Feeds `ucas make-task` and demo. Threads: one per generator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/rng.h"
#include "core/problem.h"

namespace ucas {

struct TaskOptions {
  int64_t n_min = 5;  // definitions in a chain
  int64_t n_max = 10;
  int64_t letters = 10;       // a, b, c ...
  bool random_start = false;  // chains begin at a random letter instead of a
  int64_t worked_n_max = 0;   // demonstrations work out chains of at most so many definitions; 0: all
  double share_direct = 0.9;  // of the mixed demonstrations, among chains that could be worked out
  int64_t seed = 0;
  int64_t count_train = 16384;
  int64_t count_dev = 512;
  int64_t count_test = 512;
  int64_t count_worked = 85120;  // 760 steps of 112: the recipe needs 608 steps, the rest is room to go on
  int64_t count_mixed = 17024;   // 152 steps of 112

  void fields(Fields& f) {
    f.field("n_min", n_min, Range{2, 12}, "fewest definitions in a chain");
    f.field("n_max", n_max, Range{2, 12}, "most definitions in a chain");
    f.field("letters", letters, Range{2, 26}, "letters of the alphabet that chains may use");
    f.field("random_start", random_start, "chains begin at a random letter instead of a");
    f.field("worked_n_max", worked_n_max, Range{0, 12}, "longest chain that demonstrations work out; 0: all");
    f.field("share_direct", share_direct, Range{0, 1}, "share of mixed demonstrations that guess at once");
    f.field("seed", seed, Range{0, 9e15}, "seed of all draws");
    f.field("count_train", count_train, Range{1, 1e7}, "problems in train.jsonl");
    f.field("count_dev", count_dev, Range{1, 1e6}, "problems in dev.jsonl");
    f.field("count_test", count_test, Range{1, 1e6}, "problems in test.jsonl");
    f.field("count_worked", count_worked, Range{0, 1e7}, "demonstrations in sft_worked.jsonl");
    f.field("count_mixed", count_mixed, Range{0, 1e7}, "demonstrations in sft_mixed.jsonl");
  }
  void validate() const;
};

// Chains of 5..12 definitions from a random letter, worked out in demonstrations only up to 7: does RLVR extend it?
TaskOptions length_generalisation();

enum class Split { train, dev, test };
enum class Style { direct, worked };  // "\boxed{7}"   " b6 c3 d7\n\boxed{7}"
enum class Phase { worked, mixed };   // of the demonstrations

struct Chain {
  int64_t first_letter = 0;
  std::vector<std::string> terms;  // "3", "*2", "-3", "+1"
  std::vector<int64_t> values;     // 3, 6, 3, 4: each 0..29
};

struct Demonstration {
  std::string prompt, response;
};

Split split_of(const std::string& question);
std::string question_of(const Chain& chain);
std::string response_of(const Chain& chain, Style style);

// An endless source of draws; `stream` keeps sources of one seed apart.
class RegisterChains {
 public:
  RegisterChains(const TaskOptions& options, uint64_t stream);

  Chain draw(Split split);                 // any length
  Problem draw_problem(Split split);       // id empty
  Demonstration demonstrate(Phase phase);  // from train
  std::vector<std::string> words() const;  // the vocabulary without pad and end, none unused

  static constexpr const char* kEnd = "<eos>";
  static constexpr const char* kPad = "<pad>";

 private:
  Chain draw_of_length(int64_t n);
  Chain draw(Split split, int64_t n_max);
  bool can_be_worked(const Chain& chain) const;

  TaskOptions options_;
  Rng rng_;
};

// Writes train.jsonl, dev.jsonl, test.jsonl {id, problem, answer} (no question twice within a file), sft_worked.jsonl,
// sft_mixed.jsonl {prompt, response}, task.toml (the options), and tokenizer/ for Tokenizer::load. Returns the size of
// the vocabulary.
int64_t write_register_chains(const std::string& directory, const TaskOptions& options);

}  // namespace ucas
