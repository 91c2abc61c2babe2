// What an evaluation found, and its two files (docs/formats.md): NAME.json with the figures, NAME.jsonl with one line
// per problem. Filled by score.cpp; read by the trainer (validation), the summary tables and, as files, the report.
// LibTorch-free. Threads: values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/eval_config.h"
#include "core/verdict.h"
#include "stats/calibration.h"

namespace ucas {

struct Estimate {
  double value = 0, low = 0, high = 0;
};

struct EstimateAt {
  int64_t k = 0;
  Estimate estimate;
};

// Does the model know when it is right? Over the same responses as the shares below. The stated probability of a
// response is exp(mean log-prob of its tokens); its confidence is C(o|q) (Eq. 6), which only ranks.
struct Calibration {
  double auroc_logprob = 0, auroc_confidence = 0;  // NaN unless there are right and wrong responses
  double ece = 0;                                  // of the stated probability, ten equal-width bins
  std::vector<ReliabilityBin> bins;
};

// Over one set of problems. Shares and means of responses are over the samples, or over the greedy responses where
// there are no samples.
struct EvalFigures {
  int64_t problems = 0;
  std::optional<Estimate> greedy;    // pass@1 of the greedy response; interval Clopper-Pearson
  std::vector<EstimateAt> mean;      // mean@n = share of right samples; intervals: bootstrap over problems
  std::vector<EstimateAt> pass;      // unbiased pass@k
  std::vector<EstimateAt> majority;  // maj@n
  double entropy = 0;                // mean over tokens, nats
  double length = 0;                 // mean tokens per response
  double truncated_share = 0;        // cut at the length limit
  double unparseable_share = 0;      // no answer found
  std::optional<Calibration> calibration;
};

// Means of the benchmarks' own figures, each benchmark counting the same; intervals by a bootstrap that redraws the
// problems within each.
struct MacroFigures {
  std::optional<Estimate> greedy;
  std::vector<EstimateAt> mean, pass, majority;
};

// One source by the subjects of its problems.
struct SubjectFigures {
  std::map<std::string, EvalFigures> subjects;
  MacroFigures macro;  // each subject counting the same
};

struct EvalResponse {
  std::string response, answer;
  VerdictKind verdict = VerdictKind::unparseable;
  int64_t tokens = 0;
  bool finished = true;
  std::vector<int32_t> ids;            // token ids, end token included
  double logprob = 0;                  // sum over the tokens, of the distribution drawn from
  double entropy = 0, confidence = 0;  // means over the tokens: H, and C(o|q) of Eq. 6
};

struct EvalRow {
  std::string id, source, subject, problem;
  std::vector<std::string> gold;
  std::optional<EvalResponse> greedy;
  int64_t samples = 0, correct = 0;
  int64_t first = 0, correct_of_first = 0;  // of the first 16 samples where there are more; first = 0: there are not
  double mean_length = 0;                   // of the samples; of the greedy response where there are none
  std::vector<EvalResponse> responses;      // the first few samples
};

struct EvalResult {
  std::string label, model;
  std::string suite;              // "" = plain files
  int64_t step = -1;              // training step, -1: none
  std::vector<std::string> data;  // names of the files
  EvalConfig config;
  EvalFigures overall;
  std::map<std::string, EvalFigures> by_source;
  std::vector<std::string> sources;                  // in order of the problems: the suite's
  std::optional<MacroFigures> macro;                 // where there are several sources
  std::map<std::string, SubjectFigures> by_subject;  // of the sources whose problems name several subjects
  std::vector<EvalRow> rows;                         // by problem
  int64_t tokens = 0;                                // generated
  double seconds = 0;
  bool complete = true;  // false: should_stop ended it early, no figures
};

std::string to_json(const EvalResult& result);   // NAME.json
std::string to_jsonl(const EvalResult& result);  // NAME.jsonl
// Both files, DIRECTORY/NAME.json and .jsonl; the directory is made.
void write_result(const EvalResult& result, const std::string& directory, const std::string& name);

}  // namespace ucas
