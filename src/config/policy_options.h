// Options of the commands that read a checkpoint and generate or score: generate, score, evaluate, replay.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/model_options.h"
#include "core/verdict.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "records/evaluation.h"
#include "rollout/config.h"
#include "rollout/sampling/config.h"
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
  Dtype dtype = Dtype::automatic;
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
  Dtype dtype = Dtype::automatic;
  double temperature = 1.0;
  int64_t batch_tokens = 4096;
  MachineOptions machine;
  void fields(Fields& f);
};

struct EvaluateOptions {
  std::string suite, name;
  std::vector<std::string> data, responses;
  std::string prompt_template = "auto";
  FewShot examples;
  std::vector<std::string> stop;
  std::string out;
  int64_t limit = 0;
  ExtractOption extract = ExtractOption::automatic;
  GraderKind grader = GraderKind::math;
  std::vector<std::string> graders;
  code::CodeOptions code;
  EvalConfig eval{.dtype = Dtype::automatic};
  EnvironmentConfig environment;
  ProblemOptions problems;
  EngineConfig engine;
  MachineOptions machine;
  void fields(Fields& f);
};

struct ReplayOptions {
  int64_t step = 0;
  std::string problem;
  int64_t sample = -1;
  int64_t threads = 0;
  bool show = false;
  void fields(Fields& f) {
    f.field("step", step, Range{0, 1e9}, "step to regenerate responses of; 0 = the last possible step");
    f.field("problem", problem, "id of the problem to regenerate; empty = all with stored responses");
    f.field("sample", sample, Range{-1, 4e9}, "number of the response to regenerate; -1 = all");
    f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores");
    f.field("show", show, "print the responses, and the run's responses where different");
  }
};

// Words -> options and positionals. "--max-tokens" and "--max_tokens" are one option; an option of list type may be
// given several times (`lists` names those), its values add up.
struct PolicyLine {
  std::vector<Setting> settings;
  std::vector<std::string> positionals;
};
PolicyLine read_policy_line(const std::vector<std::string>& words, const std::vector<std::string>& lists);

// What "auto", the default of the options template and extract, comes to: the checkpoint's own chat template where it
// has one; and answers read leniently where a chat template is used and no prompt asks for a box, since instruct models
// then write "The answer is 2." or "#### 2". What was decided is said in one line, and a run's config.toml has the
// result.

inline constexpr const char* kAutoTemplate = "auto";

// `asked`, or for "auto" chat where the tokenizer's directory `checkpoint` has a chat template, else `otherwise`.
std::string choose_template(const std::string& asked, const std::string& checkpoint, const std::string& otherwise);

// Whether the template of that name can be a chat template: auto, chat.., a file.
bool may_be_chat(const std::string& name);

// Whether most of the first prompts hold a \boxed, from the template or from the question.
bool asks_for_box(const Template& prompt_template, std::span<const Problem> problems);

// `asked`, or for auto lenient where the template is a chat template, no prompt asks for a box, and the grader is one
// of answers in text (math, numeric); else strict.
Extract choose_extract(ExtractOption asked, const Template& prompt_template, std::span<const Problem> problems,
                       GraderKind grader);

// "template chat (the checkpoint's own)", of what "auto" came to.
std::string template_in_words(const std::string& chosen);

struct PromptChoice {
  std::string asked_template, prompt_template;
  ExtractOption asked_extract = ExtractOption::automatic;
  Extract extract = Extract::strict;
  bool boxed = false;  // asks_for_box()
  // "template chat (the checkpoint's own), extract lenient (no prompt asks for \boxed{})": of what was left to auto; ""
  // where nothing was.
  std::string in_words() const;
};

}  // namespace ucas
