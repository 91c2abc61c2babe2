// What runs answered, as far as a comparison needs it: right or wrong, problem by problem, and the quantities that are
// compared. Fed by evaluate (results in memory) and report (run directories).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "records/run_record.h"
#include "results/compare/groups.h"

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
// Error(ErrorKind::config) naming what is allowed there.
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

// Which run of one group is held against which of another, and their differences problem by problem, paired by source
// and id. Feeds contrast.h.

using ProblemKey = std::tuple<std::string, std::string, int64_t>;  // source, id, which of those with this id
std::map<ProblemKey, const ProblemAnswers*> by_key(const RunAnswers& run);

enum class Pairs {
  one,       // one run of each
  labelled,  // several, by base and seed
  fixed,     // every run against one untrained run of its base
  unpaired,  // without a common label: two independent samples
};

struct RunPairs {
  Pairs kind = Pairs::one;
  std::vector<std::pair<const RunAnswers*, const RunAnswers*>> pairs;  // empty for unpaired
  size_t left_out = 0;                                                 // runs of both groups without a partner
};
RunPairs pair_runs(const AnswerGroup& from, const AnswerGroup& to);

// One quantity of several runs over the problems that all of them have it for.
struct AlignedValues {
  std::vector<size_t> strata;              // problems of each set side by side: of each source for macro, else one set
  std::vector<std::vector<double>> value;  // [run][problem]
  int64_t problems = 0;
};
AlignedValues align(std::span<const RunAnswers* const> runs, const Quantity& quantity);

// Mean over the strata of their means, each counting the same.
double mean_of_strata(const std::vector<double>& value, const std::vector<size_t>& strata);

// Evaluations and runs as compare/ takes them, and how each was made, for people.

// Of one evaluation: its problems, and its figures by name ("greedy", "mean@16", "entropy:math500" ...).
RunAnswers answers_of(const EvalRecord& evaluation);
RunAnswers answers_of(const RunRecord& run, const EvalRecord& evaluation);
// `choose`: the evaluation of a run, nullptr if it has none; such runs are left out.
AnswerGroup answers_of(const RunGroup& group, const std::function<const EvalRecord*(const RunRecord&)>& choose);

// What responses and verdicts of an evaluation were decided by; where its benchmarks agree in one line for all of them,
// unless `each` is to have its own.
std::vector<std::pair<std::string, std::string>> settings_of(const EvalRecord& evaluation, bool each = false);

// The groups of these run directories, in order of the command line: one evaluation of each run. `asked`: its name, ""
// = the only one that all share. Errors: path, empty, config.
std::vector<AnswerGroup> compared_groups(const std::vector<std::string>& runs, const std::string& asked);

// The name of the evaluation with answers per problem that all of these runs have: as asked for, else the only one,
// validations of a training left out where there is another. Errors as above.
std::string choose_evaluation(const std::vector<RunRecord>& runs, const std::string& asked);

}  // namespace ucas
