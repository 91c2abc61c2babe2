// Reads one run directory (docs/formats.md): the only source of everything that a report says. Strict about what is
// there (a wrong type names file and line), tolerant of what is not: each absent part is listed in `missing`.
// Fed by train, evaluate and the demo through the file system; feeds summary, series, alarms, samples.
// Threads: any; a RunRecord is a value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "records/evaluation.h"
#include "records/run/rollouts.h"
#include "records/run/steps.h"

namespace ucas {

// What a run's luck comes from: the base that its training began with and the seed of the training. Runs of two groups
// are paired by both.
struct RunLabel {
  std::string base;   // "" where all runs began with the same, or it is not known
  int64_t seed = -1;  // -1: none, the untrained base itself
  bool operator==(const RunLabel&) const = default;
};

struct RunRecord {
  std::string path;
  std::string name;    // last part of the path
  std::string method;  // method.name; "" for an evaluation of an untrained model
  std::string label;   // label of the config or of env.json; may be ""
  int64_t seed = -1;   // of the config, of the name ("x-seed2"), of an evaluation
  std::string row;     // of study.json: runs of one row are one group, whatever they began with; "" outside of a study
  std::string base;    // which base it began with: of study.json, else the hash of its first weights; "" if not known
  std::map<std::string, std::string> env;                   // env.json, values as text
  std::vector<std::pair<std::string, std::string>> config;  // resolved, dotted keys, in order of the file
  StepTable steps;
  SftTable sft;
  std::vector<EvalRecord> evaluations;                        // by name
  std::vector<StoredResponse> first_rollouts, last_rollouts;  // of the first and the last stored step
  std::vector<std::string> missing;                           // absent parts, for people
  std::vector<std::string> remarks;                           // e.g. an incomplete last line

  std::string setting(const std::string& key) const;      // "" if absent
  std::string environment(const std::string& key) const;  // "" if absent
  RunLabel luck() const { return {base, seed}; }
};

// Throws Error: path (no such directory), config, data_line, header_json, utf8, dup_key, empty (nothing to report).
RunRecord read_run(const std::string& path);
// Several. A separate evaluation (of `ucas evaluate`) belongs to the run among them whose checkpoint it is
// of, by the hashes of its files; what holds nothing else is no run of its own then.
std::vector<RunRecord> read_runs(const std::vector<std::string>& paths);

// The seed that a directory's name ends with: "base-seed2" -> 2, otherwise -1.
int64_t seed_in_name(const std::string& name);

}  // namespace ucas
