// Evaluations of a run directory, eval/NAME.json and NAME.jsonl (docs/formats.md), as values. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stats/calibration.h"
#include "stats/spread.h"

namespace ucas {

struct SampledResponse {
  std::string response, verdict, answer;
  int64_t tokens = -1;  // -1: not recorded
  bool finished = true;
  double logprob = kUnknown, entropy = kUnknown, confidence = kUnknown;  // sum; means over tokens
};

struct ProblemRow {
  std::string id, source, problem;
  std::vector<std::string> gold;
  bool has_greedy = false;
  SampledResponse greedy;
  int64_t samples = 0, correct = 0;
  int64_t first = 0, correct_of_first = 0;  // of the first 16 of more samples; first = 0: not recorded
  std::vector<SampledResponse> responses;   // a few of the samples
};

struct FigureAt {
  int64_t k = 0;
  Figure share;
};

// Stated probability against correctness; see evaluate/result.h.
struct CalibrationRecord {
  double auroc_logprob = kUnknown, auroc_confidence = kUnknown, ece = kUnknown;
  std::vector<ReliabilityBin> bins;
};

// The figures over one set of problems; of macro averages only the shares.
struct EvalNumbers {
  int64_t problems = 0;
  double entropy = kUnknown, length = kUnknown;
  double truncated = kUnknown, unparseable = kUnknown;  // shares
  Figure greedy;                                        // pass@1 of the greedy response
  std::vector<FigureAt> mean_at, pass_at, majority_at;  // ascending k
  std::optional<CalibrationRecord> calibration;
};

// What the run card says that a reader compares (evaluate/card.h); "" where it does not say.
struct CardRecord {
  std::string name;   // first eight digits of its SHA-256
  std::string model;  // the same of the weights, of all files together
  std::string sampling;
  struct Set {
    std::string name, problems, files, form, stop, max_tokens, grader;
  };
  std::vector<Set> sets;  // benchmarks
};

struct EvalRecord : EvalNumbers {
  std::string name;  // the file's stem
  std::string label, model, data, interval, suite;
  int64_t step = 0, samples = 0, seed = -1;  // seed -1: not recorded
  double temperature = kUnknown;
  std::vector<std::pair<std::string, EvalNumbers>> by_source;  // in order of the file
  std::optional<EvalNumbers> macro;
  std::optional<CardRecord> card;  // NAME.card.json
  std::vector<ProblemRow> rows;
};

// DIRECTORY/NAME.json, NAME.jsonl and NAME.card.json; what is absent is added to `missing`.
EvalRecord read_evaluation(const std::string& directory, const std::string& name, std::vector<std::string>& missing,
                           std::vector<std::string>& remarks);

// One figure by its name in the tables: "greedy", "mean@16", "pass@8", "maj@16", "entropy", "length", "truncated",
// "unparseable", "ece", "auroc_logprob", "auroc_confidence"; unknown where it is not there.
Figure figure_named(const EvalNumbers& numbers, const std::string& name);
// Is it a share of problems or responses, printed in percent?
bool is_share(const std::string& name);

}  // namespace ucas
