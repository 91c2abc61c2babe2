// Environments of multi-turn episodes: the model writes a turn, the environment answers, the answer is inserted as
// context, and the model goes on. EnvironmentRollouter is the decorator that lets one speak; all else knows of inserts
// alone (core/batch.h). A row of config.h names an environment, row_of_NAME() is what it is.
// Threads: an Environment is asked by one thread at a time, between two decode steps, which wait for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict.h"
#include "rollout/config.h"
#include "rollout/rollouter.h"
#include "text/tokenizer/tokenizer.h"
#include "verify/sandbox/sandbox.h"

namespace ucas {

// Of one episode. The same problem and turns give the same messages: exact resume and replay rest on it.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual void reset(const Problem& problem) = 0;
  // What it says to a turn of the model; "": the turn goes on; none: the episode is done. Special tokens are tokens
  // where a chat template wrote them.
  virtual std::optional<MarkedText> step(std::string_view text) = 0;
};

struct EnvironmentSetup {
  EnvironmentConfig config;
  code::CodeOptions code;                // of the sandbox
  const Tokenizer* tokenizer = nullptr;  // of the checkpoint, whose chat template it is
};

struct EnvironmentRow {
  std::vector<std::string> turn_ends;  // texts that may end a turn, besides the stop tokens
  std::string says;                    // characters of its messages: the tokenizer must have tokens for all of them
  std::function<std::unique_ptr<Environment>()> make;
};

// The `says` of one that may say anything: a line's end, and what ASCII prints.
std::string any_ascii();

struct Template;  // data/prompts/templates.h

// Puts what is said to a model in a turn of the user, by the checkpoint's chat template; on lines of its own where
// there is none.
class UserTurns {
 public:
  explicit UserTurns(const Tokenizer* tokenizer);  // nullptr: none is there
  MarkedText operator()(const std::string& said) const;

 private:
  const Tokenizer* tokenizer_;
  std::shared_ptr<const Template> chat_;
};

// The user's tools (tools.cpp), which are no row: rollout.tools names them.
EnvironmentRow row_of_tools(const EnvironmentSetup& setup);
// Loads them, in a Python that ends, and lets a chat template see what they are: `tools`, as in transformers. Nothing
// without rollout.tools. Error(ErrorKind::python) for what cannot be loaded.
void show_tools(const EnvironmentConfig& config, Template& prompt_template);

#define UCAS_DECLARE_ENVIRONMENT(kind, name) EnvironmentRow row_of_##kind(const EnvironmentSetup& setup);
UCAS_ENVIRONMENTS(UCAS_DECLARE_ENVIRONMENT)
#undef UCAS_DECLARE_ENVIRONMENT

// Lets the environment answer each turn of what `own` samples. Borrows both; jobs name their problems
// (PromptJob::asked). Error(ErrorKind::config) for a tokenizer without tokens for what the environment says;
// Error(ErrorKind::sandbox) where it needs a sandbox and there is none.
std::unique_ptr<Rollouter> with_environment(Rollouter& own, const EnvironmentConfig& config,
                                            const code::CodeOptions& code, const Tokenizer& tokenizer);

}  // namespace ucas
