// Generated responses as they are kept: NAME.outputs.jsonl, one line a response, appended as responses end, so that a
// killed evaluation loses none of them (docs/formats.md). Everything else that an evaluation says is computed from
// these lines, the problems and the settings: evaluate/score.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "core/batch.h"
#include "core/verdict.h"

namespace ucas {

constexpr int64_t kGreedySample = -1;

struct Output {
  std::string source, id;  // of the problem
  int64_t sample = 0;      // kGreedySample, or 0 .. n-1
  std::string text;  // valid UTF-8 (other bytes replaced before grading): what is graded now and at any later time
  std::vector<int32_t> ids;            // token ids, end token included; empty: not known
  std::vector<Insert> inserts;         // of an environment, between these; not in `text`
  bool finished = false;               // ended by a stop token; false: cut at the length limit
  double logprob = 0;                  // sum over the tokens, of the distribution sampled from
  double entropy = 0, confidence = 0;  // means over the tokens: H, and C(o|q) of Eq. 6
  // Of responses that something else generated, which may not say all of this; a number that is not known is NaN.
  int64_t tokens = -1;    // how many, where the ids are not known; -1: not known either
  bool end_known = true;  // false: unknown whether it was cut

  bool counted() const { return !ids.empty() || tokens >= 0; }
  int64_t length() const { return ids.empty() && tokens >= 0 ? tokens : static_cast<int64_t>(ids.size()); }
};

// What decides what is generated; the journal's first line. A directory keeps the settings it was begun with. The
// number of samples is not among them: more may be added, the first stay.
struct OutputSettings {
  struct Source {                 // one benchmark or file
    std::string name;             // Problem::source
    std::string prompt_template;  // as the user named it
    std::string prompts;  // hash of the problems' ids and prompt ids, in order: the data, template and tokenizer
    std::vector<int32_t> stop_ids;  // sorted
    int64_t max_tokens = 0;
    std::vector<std::string> end_texts = {};  // that end a response wherever tokens complete one
    bool operator==(const Source&) const = default;
  };
  std::string model;  // hash over the checkpoint's files
  std::string keys;   // of the samples: "problem" (source and id) or "place" (index in the data)
  double temperature = 1, top_p = 1, min_p = 0;
  int64_t top_k = 0, seed = 0;
  std::string dtype = "f32";    // the model computed in
  std::string environment;      // that answered it; "" = none
  int64_t max_turns = 0;        // where one did
  std::vector<Source> sources;  // in order of the suite
  bool operator==(const OutputSettings&) const = default;
};

// The stored file, whole. Errors: path, data_line (FILE:LINE and what is wrong; a torn last line, too), limit.
struct StoredOutputs {
  OutputSettings settings;
  std::vector<Output> outputs;
};
StoredOutputs read_outputs(const std::string& path);
std::string to_json_line(const OutputSettings& settings);  // with its newline
std::string to_json_line(const Output& output);

// The file while responses come.
class OutputJournal {
 public:
  // Resumes the file at `path` or begins it. A torn last line is dropped. Errors: config, if it holds responses of
  // other settings; path, if another ucas is writing it; those of read_outputs.
  OutputJournal(const std::string& path, const OutputSettings& settings);
  std::vector<Output> take_found() { return std::move(found_); }  // each (source, id, sample) once
  void append(const Output& output);                              // written at once, durable within seconds
  void sync();
  // Rewrites the file in the order of `problems` (greedy response first, then by sample): equal evaluations end as
  // equal bytes.
  void finish(std::span<const Problem> problems);

 private:
  struct Line {
    std::string source, id;
    int64_t sample;
    size_t begin, size;  // bytes of the file
  };
  void write(const std::string& bytes);

  std::string path_;
  std::vector<Line> lines_;  // of responses
  size_t size_ = 0;          // of the file
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<FileWriter> file_;
  std::vector<Output> found_;
  double synced_ = 0;
};

// By problem: its greedy response and its samples 0 .. n-1.
struct Responses {
  std::vector<Output> greedy;  // none or one
  std::vector<Output> samples;
};
// One entry per problem. Samples beyond `samples` are left out. Error(ErrorKind::truncated) if one is missing that
// `greedy` and `samples` ask for.
std::vector<Responses> by_problem(std::span<const Problem> problems, std::vector<Output> outputs, bool greedy,
                                  int64_t samples);

}  // namespace ucas
