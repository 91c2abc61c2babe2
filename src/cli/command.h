// One row per command. Plain commands run in libucas; engine commands load libucas_engine.so first.
// A command parses its own words (base/fields.h) and returns an exit code; errors are thrown.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ucas {

using Words = std::vector<std::string>;

struct Command {
  const char* name;
  const char* summary;              // one line for `ucas --help`
  int (*run)(const Words& words);   // nullptr: lives in the engine
  std::string (*help)();            // whole --help text; always plain, so it never loads the engine
};

std::span<const Command> commands();
// Runs NAME in the engine library (loaded once). Defined in cli/engine_loader.cpp.
int run_in_engine(const std::string& name, const Words& words);

}  // namespace ucas
