// What runs answered, as far as a comparison needs it: right or wrong, problem by problem, and the quantities that are
// compared. Fed by evaluate (results in memory) and report (run directories).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "records/run_record.h"

namespace ucas {

struct ProblemAnswers {
  std::string source, id;
  std::string content;  // hash of question and gold: the same id must mean the same problem
  int greedy = -1;      // 1 right, 0 wrong, -1 not asked
  int64_t samples = 0, correct = 0;
  int64_t base_samples = 0, base_correct = 0;  // of the untrained base; 0: not known
  bool is_base = false;                        // these are the base's own samples
};
// The hash of one problem.
std::string content_of(const std::string& question, const std::vector<std::string>& gold);

bool same_luck(const RunLabel& a, const RunLabel& b);  // the same seed, and no two bases
// What varies between runs with these labels: "seeds", "bases", "bases and seeds"; "runs" where the labels do not say.
std::string unit_of(const std::vector<RunLabel>& labels);

struct RunAnswers {
  std::string name;  // for messages
  RunLabel label;
  std::vector<ProblemAnswers> problems;
  std::map<std::string, double> figures;  // of the run as a whole: "entropy", "steps_to@0.9"; "greedy" if no problems
  std::vector<std::pair<std::string, std::string>> settings;  // how it was evaluated, for people
  std::set<std::string> censored;  // of the figures: what the run never reached, its value the first that it may have
};

// Runs that differ in their label only.
struct AnswerGroup {
  std::string title;
  bool trained = true;  // an untrained run has no seed: it is compared with every run that began with it
  std::vector<RunAnswers> runs;
};

// What is measured, and over which problems: "pass@16" over "math500". "frontier@K": K samples of the model solve what
// all but K of the base's samples did not, see frontier_at_k; "reached" is 1 where greedy is at least an accuracy.
// "mixed@K": K samples are neither all right nor all wrong.
struct Quantity {
  std::string
      name;        // "greedy", "mean", "pass", "frontier": of each problem; else of the run: "entropy", "steps_to" ...
  std::string at;  // K as text, or the accuracy of steps_to, val_at, steps_to_val, reached; "" if none
  int64_t k = 0;   // K; mean with k = 0: over all samples, however many a problem has
  std::string scope;         // a source, "macro" = mean over the sources, "" = all problems
  std::string text() const;  // "pass@16:math500"
  bool operator==(const Quantity&) const = default;
  bool of_problems() const {
    return name == "greedy" || name == "mean" || name == "pass" || name == "frontier" || name == "mixed";
  }
  bool of_training() const { return name == "steps_to" || name == "val_at" || name == "steps_to_val"; }
  bool takes_accuracy() const { return of_training() || name == "reached"; }
  bool is_share() const;  // printed in percent, at most 1
};
// A metric by its name: "greedy", "pass@16". Accuracy and scope are the caller's.
// Error(ErrorKind::config) naming what may stand there.
Quantity parse_quantity(const std::string& text);

// Of one problem; unknown (NaN) where it was not asked that way or not often enough.
double value_of(const ProblemAnswers& problem, const Quantity& quantity);
// Of a run, over its own problems; unknown where no problem has it.
double value_of(const RunAnswers& run, const Quantity& quantity);

// Sources in order of the problems.
std::vector<std::string> sources_of(const RunAnswers& run);

// "greedy", and of the samples the mean that the field quotes: mean@16 where every problem has as many, else mean@n. It
// is over all samples in either case, as pass@k is. The same for every command that says which of two models is better.
std::vector<Quantity> quoted_quantities(const std::vector<const RunAnswers*>& runs);

}  // namespace ucas
