// The door of the engine library: what cli/engine_loader.cpp calls by name. Errors cross it as ucas::Error only.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/util/Exception.h>

#include "base/error.h"
#include "base/str.h"
#include "cli/command.h"
#include "kernels/dispatch.h"
#include "model/gemm/gemm.h"
#include "rollout/policy.h"
#include "train/update/self_check.h"

namespace ucas {

namespace {

struct EngineCommand {
  const char* name;
  int (*run)(const Words& words);
};

#define UCAS_RUN_plain(name)
#define UCAS_RUN_engine(name) {#name, run_##name},
#define UCAS_ROW(name, where, group, brief, summary) UCAS_RUN_##where(name)
constexpr EngineCommand kEngineCommands[] = {UCAS_COMMANDS(UCAS_ROW){"merge", run_merge}};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

template <class Work>
auto with_own_errors(Work work) {
  try {
    return work();
  } catch (const c10::OutOfMemoryError& error) {
    throw Error(ucas::ErrorKind::memory, first_line(error.what_without_backtrace()), kNumeric);
  } catch (const c10::Error& error) {
    throw Error(ucas::ErrorKind::torch, first_line(error.what_without_backtrace()), kNumeric);
  }
}

}  // namespace

}  // namespace ucas

extern "C" int ucas_engine_run(const char* name, const std::vector<std::string>* words) {
  for (const ucas::EngineCommand& command : ucas::kEngineCommands) {
    if (command.name != std::string_view(name)) continue;
    return ucas::with_own_errors([&] { return command.run(*words); });
  }
  throw ucas::Error(ucas::ErrorKind::usage, ucas::str("the engine has no command ", name));
}

extern "C" void ucas_engine_describe(std::vector<std::pair<std::string, std::string>>* rows) {
  bool cuda = at::globalContext().hasCUDA();
  rows->emplace_back("torch_threads", ucas::str(at::get_num_threads()));
  rows->emplace_back("torch_cpu", at::get_cpu_capability());
  rows->emplace_back("bf16", ucas::kernels::bf16_gemm().reason);
  rows->emplace_back("rows", ucas::check_rows());
  rows->emplace_back("cuda", ucas::cuda_in_words());
  rows->emplace_back("cuda_devices", cuda ? ucas::str(at::detail::getCUDAHooks().deviceCount()) : std::string("0"));
}

extern "C" void ucas_engine_check_device(const std::string* device, std::vector<ucas::DeviceCheck>* rows) {
  ucas::with_own_errors([&] {
    for (const ucas::GpuFinding& f : ucas::check_gpu(ucas::parse_device(*device))) {
      rows->push_back({f.what, f.difference, f.bound, f.ok()});
    }
  });
}
