// What the fuzzer of this folder feeds: a reader of ucas each, with bytes as a file or an answer may hold
// them. A reader may refuse them (ucas::Error of exit code 2 or 70, in text without control bytes) or take them.
// Anything else is a finding: another exception, a crash, a report of a sanitizer, too much time or memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/verdict.h"

namespace ucas::fuzz {

struct Target {
  const char* name;  // and the folder of its seeds (seeds.py)
  void (*run)(std::string_view input);
};

std::vector<Target> targets();
std::vector<Target> checkpoint_targets();  // weights, configs, adapters, tokenizers
std::vector<Target> data_targets();        // problems, tests, answers, templates, settings
std::vector<Target> record_targets();      // what a run leaves on disk

// The folder of the seeds; SEEDS/support holds what a target needs beside its input.
std::string support(const std::string& name);
void set_support(const std::string& folder);
// A folder of this process's own, the same at every call.
const std::string& scratch();
// Writes SCRATCH/NAME and returns its path; as plainly as can be, for it is done for every input.
std::string put(const std::string& name, std::string_view bytes);
// What templates and servers are asked with.
const Problem& sum_problem();
// Ends the process where something does not hold.
void require(bool holds, const char* what);

}  // namespace ucas::fuzz
