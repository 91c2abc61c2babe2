// How an evaluation was made: which weights answered, how each set of problems was asked and graded, and by which
// version of the grader. Part of eval/NAME.json ("asked"); compare and the report hold evaluations against each other
// by it, and `ucas verify RUN` grades by it. hash_model_files uses several threads of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "core/verdict.h"
#include "data/prompts/templates.h"
#include "records/eval_config.h"
#include "verify/registry.h"

namespace ucas {

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
  std::string origin;  // of responses not generated here: "server", or the kind of file; "" = generated here
  std::string keys;    // of the draws: "problem" (source and id) or "place" (index in the data)
  std::vector<ModelFile> model_files;
  std::vector<AskedSet> sets;
  std::string weights() const;  // eight digits of the weights' hash, of all files together; "" = not known
};
OrderedJson to_json(const Asked& asked);
Asked asked_of(const JsonObject& object);
std::string name_and_hash(const std::string& name, const std::string& sha256);  // "qwen_math (1a2b3c4d)"

// SHA-256 over the problems of one source, in order, as the lines {"id":..,"problem":..,"gold":[..]} and "subject"
// where there is one: it holds whatever form the file had, and can be made again from NAME.jsonl.
std::string problems_sha256(std::span<const Problem> problems, const std::string& source);
// Over {"text":..,"system":..,"special":[..],"stop":[..]}, of a chat template also "chat", "user", "set", "tokens";
// of one with examples "shots", "example", "examples".
std::string template_sha256(const Template& prompt_template);

}  // namespace ucas
