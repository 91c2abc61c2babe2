// The door of the engine library: what cli/engine_loader.cpp calls by name. Errors cross it as ucas::Error only.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/util/Exception.h>

#include <span>

#include "base/error.h"
#include "base/str.h"
#include "cli/command.h"

namespace ucas {

int run_demo(const Words& words);
int run_sft_command(const Words& words);
int run_generate(const Words& words);
int run_score(const Words& words);
int run_evaluate(const Words& words);
int run_train(const Words& words);
int run_study(const Words& words);

namespace {

struct EngineCommand {
  const char* name;
  int (*run)(const Words& words);
};

std::span<const EngineCommand> engine_commands() {
  static const std::vector<EngineCommand> table = {
      // {name, run}
      {"demo", run_demo},         {"sft", run_sft_command}, {"generate", run_generate}, {"score", run_score},
      {"evaluate", run_evaluate}, {"train", run_train},     {"study", run_study},
  };
  return table;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

}  // namespace ucas

extern "C" int ucas_engine_run(const char* name, const std::vector<std::string>* words) {
  for (const ucas::EngineCommand& command : ucas::engine_commands()) {
    if (command.name != std::string_view(name)) continue;
    try {
      return command.run(*words);
    } catch (const c10::OutOfMemoryError& error) {
      throw ucas::Error("memory", ucas::first_line(error.what_without_backtrace()), ucas::kNumeric);
    } catch (const c10::Error& error) {
      throw ucas::Error("torch", ucas::first_line(error.what_without_backtrace()), ucas::kNumeric);
    }
  }
  throw ucas::Error("usage", ucas::str("the engine has no command ", name));
}

extern "C" void ucas_engine_describe(std::vector<std::pair<std::string, std::string>>* rows) {
  bool cuda = at::globalContext().hasCUDA();
  rows->emplace_back("torch_threads", ucas::str(at::get_num_threads()));
  rows->emplace_back("torch_cpu", at::get_cpu_capability());
  rows->emplace_back("cuda_devices", cuda ? ucas::str(at::detail::getCUDAHooks().deviceCount()) : std::string("0"));
}
