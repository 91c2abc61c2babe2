// Options of the commands that read a checkpoint and generate or score: generate, score, evaluate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/model_options.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "evaluate/sources/config.h"
#include "records/eval_config.h"
#include "rollout/environment/config.h"
#include "sampling/config.h"
#include "verify/extract_option.h"
#include "verify/registry.h"

namespace ucas {

struct MachineOptions {
  std::string device = "cpu";
  int64_t threads = 0;  // 0 = all cores
  void fields(Fields& f);
};

struct GenerateOptions {
  std::string model, prompt, out;
  std::vector<std::string> data;
  std::string prompt_template = "auto";
  FewShot examples;
  std::vector<std::string> stop;
  Dtype dtype = Dtype::f32;
  int64_t samples = 1;
  SamplingConfig sampling;
  int64_t seed = 0;
  int64_t limit = 0;
  ProblemOptions problems;
  EngineConfig engine;
  MachineOptions machine;
  void fields(Fields& f);
  void validate() const;
};

struct ScoreOptions {
  std::string model, out;
  Dtype dtype = Dtype::f32;
  double temperature = 1.0;
  int64_t batch_tokens = 4096;
  MachineOptions machine;
  void fields(Fields& f);
};

struct EvaluateOptions {
  std::string suite, name, models;
  std::vector<std::string> data, labels, server, responses;
  std::string prompt_template = "auto";
  FewShot examples;
  std::vector<std::string> stop;
  std::string out;
  bool json = false;
  int64_t limit = 0;
  ExtractOption extract = ExtractOption::automatic;
  GraderKind grader = GraderKind::math;
  std::vector<std::string> graders;
  code::CodeOptions code;
  EvalConfig eval;
  EnvironmentConfig environment;
  ServerOptions served;
  ProblemOptions problems;
  EngineConfig engine;
  MachineOptions machine;
  void fields(Fields& f);
};

// Words -> options and positionals. "--max-tokens" and "--max_tokens" are one option; an option of list type may be
// given several times (`lists` names those), its values add up.
struct PolicyLine {
  std::vector<Setting> settings;
  std::vector<std::string> positionals;
};
PolicyLine read_policy_line(const std::vector<std::string>& words, const std::vector<std::string>& lists);

}  // namespace ucas
