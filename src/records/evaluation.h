// An evaluation and its two files (docs/formats.md): NAME.json with the figures and how they were made, NAME.jsonl with
// one line per problem.
// Made by evaluate/score; read by compare, report and studies. What was not measured or not recorded is unknown (NaN).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/verdict.h"
#include "records/asked.h"
#include "records/eval_config.h"
#include "stats/spread.h"
#include "verify/registry.h"

namespace ucas {

constexpr int64_t kQuotedSamples = 16;  // mean@16 is what the field quotes

struct FigureAt {
  int64_t k = 0;
  Figure share;
};

// Over one set of problems. Shares and means of responses are over the samples, or over the greedy responses where
// there are no samples. Of macro averages there are only `greedy` and the three lists.
struct EvalNumbers {
  int64_t problems = 0;
  double entropy = kUnknown;      // mean over tokens, nats
  double length = kUnknown;       // mean tokens per response
  double truncated = kUnknown;    // share cut at the length limit
  double unparseable = kUnknown;  // share without an answer
  Figure greedy;                  // pass@1 of the greedy response; interval Clopper-Pearson
  std::vector<FigureAt> mean_at;  // share of right samples; intervals: bootstrap over problems. Ascending k
  std::vector<FigureAt> pass_at;  // unbiased pass@k
  std::vector<FigureAt> majority_at;
};

// One source by the subjects of its problems.
struct SubjectNumbers {
  std::map<std::string, EvalNumbers> subjects;
  EvalNumbers macro;  // each subject counting the same
};

struct SampledResponse {
  std::string response, answer;
  std::optional<VerdictKind> verdict;
  int64_t tokens = -1;  // -1: not recorded
  bool finished = true;
  bool end_known = true;                             // false: unknown whether it was cut; not read back
  std::vector<int32_t> ids;                          // token ids, end token included; not read back
  double logprob = kUnknown;                         // sum over the tokens, of the distribution sampled from
  double entropy = kUnknown, confidence = kUnknown;  // means over the tokens: H, and C(o|q) of Eq. 6
  bool right() const { return verdict == VerdictKind::equal; }
};

struct ProblemRow {
  std::string id, source, subject, problem;
  std::vector<std::string> gold;
  std::optional<SampledResponse> greedy;
  int64_t samples = 0, correct = 0;
  double mean_length = kUnknown;           // of the samples; of the greedy response where there are none
  std::vector<SampledResponse> responses;  // the first few samples
};

struct EvalRecord : EvalNumbers {
  std::string name;  // the files' stem
  std::string label, model;
  std::string suite;     // "" = plain files
  std::string data;      // names of the files
  std::string interval;  // what the bounds are, for people
  int64_t step = -1;     // training step, -1: none
  EvalConfig config;     // read back: what decides responses and verdicts; temperature unknown and seed -1 where the
                         // file does not say it
  std::vector<std::pair<std::string, EvalNumbers>> by_source;  // in order of the problems
  std::optional<EvalNumbers> macro;                            // each source counting the same; of several sources
  std::map<std::string, SubjectNumbers> by_subject;  // of sources whose problems name several subjects; not read back
  std::vector<ProblemRow> rows;
  std::optional<Asked> asked;
  int64_t tokens = 0;  // generated; this and the next three are of the run that made it, not kept
  double seconds = 0;
  std::map<std::string, std::pair<GraderKind, Extract>> graded_by;  // by source
  bool complete = true;                                             // false: should_stop ended it early, no figures
  const EvalNumbers* of(const std::string& source) const;           // nullptr: not of this evaluation
};

std::string to_json(const EvalRecord& record);   // NAME.json
std::string to_jsonl(const EvalRecord& record);  // NAME.jsonl
// Both files, DIRECTORY/NAME.json and .jsonl; the directory is made.
void write_evaluation(const EvalRecord& record, const std::string& directory, const std::string& name);
// DIRECTORY/NAME.json and NAME.jsonl; what is absent is added to `missing`.
EvalRecord read_evaluation(const std::string& directory, const std::string& name, std::vector<std::string>& missing,
                           std::vector<std::string>& remarks);

// One figure by its name in the tables: "greedy", "mean@16", "pass@8", "maj@16", "entropy", "length",
// "truncated", "unparseable"; unknown where it is not there.
Figure figure_named(const EvalNumbers& numbers, const std::string& name);
// The names of its shares: "greedy", then "mean@4" ..., "maj@4" ... and "pass@4" ..., each with ascending k.
std::vector<std::string> shares_of(const EvalNumbers& numbers);
std::string metric_title(const std::string& name);  // "greedy pass@1", "mean@16"
// Is it a share of problems or responses, printed in percent?
bool is_share(const std::string& name);

}  // namespace ucas
