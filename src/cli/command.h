// One row per command. Plain commands run in libucas; engine commands load libucas_engine.so first.
// A command parses its own words (base/fields.h) and returns an exit code; errors are thrown.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace ucas {

struct Command {
  const char* name;
  const char* summary;             // one line for `ucas --help`
  int (*run)(const Words& words);  // nullptr: lives in the engine
  std::string (*help)();           // whole --help text; always plain, so it never loads the engine
};

std::span<const Command> commands();
// The whole program behind main(): picks the command, answers --help and --version.
int run_program(const Words& words);

// Runs NAME in the engine library (loaded once). Defined in cli/engine_loader.cpp, like the next two.
int run_in_engine(const std::string& name, const Words& words);
// What the engine knows of this machine, as (name, value) rows; loads the engine.
std::vector<std::pair<std::string, std::string>> describe_engine();
std::string engine_path();

}  // namespace ucas
