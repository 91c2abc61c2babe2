// The token explorer: single tokens of saved steps (records/run/step_data.h) with every quantity recorded of them, and
// what several methods make of the same responses (records/run/step_methods.h). Everything shown was recorded in the
// run directory; only logarithms are turned into probabilities. explorer.js draws it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compare/groups.h"

namespace ucas {

struct ExplorerPrompt {
  std::string json;     // with its responses
  double differ = 0;    // how far methods part on the response below: 0 alike, 2 opposite
  size_t response = 0;  // the one on which they part the most
};

struct ExplorerStep {
  size_t run = 0;                       // index into Explorer::runs
  std::string head;                     // JSON members of the step, with its quantities
  int64_t prompts_of_step = 0;          // that it trained on
  std::vector<ExplorerPrompt> prompts;  // those with both verdicts come first
};

struct Explorer {
  std::vector<std::pair<std::string, std::string>> runs;  // name, title of its group
  std::vector<ExplorerStep> steps;
  int64_t saved_steps = 0;           // in the run directories
  std::vector<std::string> remarks;  // for people: files that do not fit together
  bool empty() const { return steps.empty(); }
};

// Of each run at most a few saved steps, spread over the training; of each step at most a few prompts.
// Throws Error if a step's file is broken.
Explorer read_explorer(const std::vector<RunGroup>& groups);

struct ExplorerPage {
  std::string json;  // what explorer.js reads
  std::string html;  // what it fills, and what was left out
};
// It opens on the response on which methods differ the most. At most about `budget` bytes of JSON: prompts are taken in
// turn from all steps of all runs until it is spent.
ExplorerPage explorer_page(const Explorer& explorer, size_t budget);

}  // namespace ucas
