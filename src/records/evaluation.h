// An evaluation and its two files (docs/formats.md): NAME.json with the figures and how they were made, NAME.jsonl with
// one line per problem.
// Made by evaluate/score; read by compare, report and studies. What was not measured or not recorded is unknown (NaN).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text/fields.h"
#include "base/text/json.h"
#include "core/model_options.h"
#include "core/verdict.h"
#include "data/prompts/templates.h"
#include "results/stats/spread.h"
#include "verify/registry.h"

namespace ucas {

// How an evaluation was made: which weights answered, how each set of problems was asked and graded, and by which
// version of the grader. Part of eval/NAME.json ("asked"); compare and the report hold evaluations against each other
// by it, and `ucas verify RUN` grades by it. hash_model_files uses several threads of its own.

class JsonObject;

struct ModelFile {
  std::string name;  // within the model's directory
  int64_t size = 0;
  std::string sha256;
  bool operator==(const ModelFile&) const = default;
};

// The files of a checkpoint that decide what it answers: configuration, tokenizer, weights; sorted by name. The model
// hub lists the same SHA-256 for its large files. Reads all of them: 1.6 s of CPU time a GiB, measured with SHA
// instructions.
std::vector<ModelFile> hash_model_files(const std::string& directory);

// The problems of one source.
struct AskedSet {
  std::string name;             // Problem::source
  std::string prompt_template;  // its name
  std::string template_sha256;
  std::vector<std::string> stop_texts;
  int64_t max_tokens = 0;
  int64_t problems = 0;
  std::string problems_sha256;
  GraderKind grader = GraderKind::math;
  Extract extract = Extract::strict;
};

struct Asked {
  std::string version;  // of ucas
  int64_t grader_version = 0;
  std::string origin;  // "file": of responses not generated here; "" = generated here
  std::string keys;    // of the samples: "problem" (source and id) or "place" (index in the data)
  std::vector<ModelFile> model_files;
  std::vector<AskedSet> sets;
};
OrderedJson to_json(const Asked& asked);
Asked asked_of(const JsonObject& object);
std::string name_and_hash(const std::string& name, const std::string& sha256);  // "qwen_math (1a2b3c4d)"

// SHA-256 over the problems of one source, in order, as the lines {"id":..,"problem":..,"gold":[..]} and "subject" if
// there is one: it is the same for any format of the file, and can be recomputed from NAME.jsonl.
std::string problems_sha256(std::span<const Problem> problems, const std::string& source);
// Over {"text":..,"system":..,"special":[..],"stop":[..]}, of a chat template also "chat", "user", "set", "tokens";
// of one with examples "shots", "example", "examples".
std::string template_sha256(const Template& prompt_template);

// Options of an evaluation, shared by `ucas evaluate` and the trainer's validation.

struct EvalConfig {
  bool greedy = true;        // one greedy response per problem
  int64_t samples = 16;      // n sampled responses per problem; 0 = greedy only
  double temperature = 1.0;  // of the samples
  double top_p = 1.0;
  int64_t top_k = 0;
  double min_p = 0;
  int64_t max_tokens = 1024;                           // response limit, end token included
  std::vector<int64_t> ks = {1, 2, 4, 8, 16, 32, 64};  // of pass@k; those above n are left out
  int64_t seed = 0;
  Dtype dtype = Dtype::f32;
  Truncated truncated = Truncated::grade;
  int64_t stored_responses = 4;    // sampled responses kept per problem
  int64_t bootstrap_draws = 2000;  // resamplings of the problems behind each interval
  double confidence_level = 0.95;
  void fields(Fields& f);
};

constexpr int64_t kQuotedSamples = 16;  // mean@16 is what the field quotes
constexpr double kCoverAt = 0.5;
constexpr const char* kCover = "cover@0.5";

struct FigureAt {
  int64_t k = 0;
  Figure share;
};

// Over one set of problems. Shares and means of responses are over the samples, or over the greedy responses where
// there are no samples. Of macro averages there are only `greedy`, the three lists and `cover`.
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
  Figure cover;  // cover@0.5, of several samples: share of problems with half of them right or more
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

// One figure by its name in the tables: "greedy", "mean@16", "pass@8", "maj@16", "cover@0.5", "entropy", "length",
// "truncated", "unparseable"; unknown where it is not there.
Figure figure_named(const EvalNumbers& numbers, const std::string& name);
// The names of its shares: "greedy", then "mean@4" ..., "maj@4" ... and "pass@4" ..., each with ascending k,
// "cover@0.5".
std::vector<std::string> shares_of(const EvalNumbers& numbers);
std::string metric_title(const std::string& name);  // "greedy pass@1", "mean@16"
// Is it a share of problems or responses, printed in percent?
bool is_share(const std::string& name);

}  // namespace ucas
