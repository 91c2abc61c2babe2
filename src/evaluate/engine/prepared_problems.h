// The problems of an evaluation as one model is asked them: which, with which prompts, graders and limits. Fed by the
// plan of an evaluation; read by evaluation.cpp alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "evaluate/engine/evaluation.h"
#include "evaluate/engine/evaluator.h"
#include "hf/model_config.h"
#include "records/evaluation.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

// What is known of who answers.
struct Answerer {
  const Tokenizer* tokenizer = nullptr;  // nullptr: the responses are there already, and no prompt is made
  std::vector<int32_t> eos;              // of the model's files
  int64_t positions = 0;                 // of prompt and response
};

class PreparedProblems {
 public:
  // `own`: the problems, where a file of responses brings them; else those of the plan.
  PreparedProblems(const EvaluationPlan& plan, Answerer answerer, std::vector<Problem> own = {});

  std::vector<Problem> problems;
  std::vector<std::vector<int32_t>> prompts;  // by problem; empty without a tokenizer
  std::vector<EvalSource> sources;
  std::vector<AskedSet> asked;
  std::vector<OutputSettings::Source> settings;
  std::vector<std::string> data;
  std::string suite;  // its name
  Graders graders;
  std::map<std::string, std::pair<GraderKind, Extract>> graded_by;  // by source
  int64_t max_tokens = 0;                                           // the longest of the sets'

 private:
  void add_suite();
  void add_files();
  void add_by_source(std::vector<Problem> all);
  void add(std::vector<Problem> subset, const Benchmark& benchmark, PromptSettings prompting);
  Template decide(PromptSettings& prompting, const Benchmark& benchmark, const std::vector<Problem>& subset);
  std::shared_ptr<const Grader> grader_of(GraderKind kind, Extract extract);
  void add_prompts(std::vector<Problem> subset, const Benchmark& benchmark, const PromptSettings& prompting,
                   const Template& prompt_template, EvalSource& source, std::string& hashed);
  int64_t longest_prompt(int64_t max_tokens) const;
  CommandSettings command() const;

  const EvaluationPlan& plan_;
  const Answerer answerer_;
  std::map<std::pair<GraderKind, Extract>, std::shared_ptr<const Grader>> made_;  // so far
  std::set<std::string> told_;                                                    // what was decided
};

}  // namespace ucas
