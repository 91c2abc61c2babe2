// ucas doctor: what this machine has, what ucas makes of it, and why.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/build_info.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/str.h"
#include "cli/command.h"
#include "kernels/lm_head.h"
#include "methods/method.h"

namespace ucas {

namespace {

struct DoctorConfig {
  bool json = false;
  void fields(Fields& f) { f.field("json", json, "print one JSON object instead of text"); }
};

struct Finding {
  std::string key, value, note;
};

std::string embedded_list(const std::string& folder) { return join(embedded_stems(folder + "/"), ", "); }

void engine_findings(std::vector<Finding>& found) {
  try {
    for (auto& [key, value] : describe_engine()) {
      if (key == "cuda_devices") {
        found.push_back({"devices", value == "0" ? "cpu" : "cpu, cuda",
                         value == "0" ? "LibTorch sees no CUDA device" : str(value, " CUDA device(s)")});
      } else {
        found.push_back({key, value, ""});
      }
    }
  } catch (const Error& error) {
    found.push_back({"engine", "not usable", error.what()});
  }
}

std::vector<Finding> findings() {
  std::vector<std::string> methods;
  for (const MethodRow& row : method_rows()) methods.emplace_back(row.name);
  int64_t cores = usable_cores(), online = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::string cpu = kernel_table("/proc/cpuinfo", "model name");
  const MachineMemory memory = machine_memory();
  std::vector<Finding> found = {
      {"version", version(), UCAS_BUILD_TYPE},
      {"compiler", "g++ " __VERSION__, ""},
      {"libtorch", UCAS_TORCH_VERSION, ""},
      {"cpu", cpu.empty() ? "unknown" : printable(cpu), ""},
      {"instruction_set", kernels::isa(), kernels::isa_reason()},
      {"threads", str(cores), cores < online ? str("of ", online, " cores; this process may use no more") : ""},
      {"memory", human_bytes(static_cast<double>(memory.total)),
       str(human_bytes(static_cast<double>(memory.free)), " available",
           memory.limited ? "; a limit of the control group" : "")},
      {"disk", human_bytes(static_cast<double>(free_space("."))), "free in this folder"},
  };
  engine_findings(found);
  found.push_back({"methods", join(methods, ", "), ""});
  found.push_back({"configs", str(embedded_names("configs/").size()), "embedded; ucas train --help names them"});
  found.push_back({"templates", embedded_list("templates"), "embedded; --data.template NAME"});
  return found;
}

std::string as_json(const std::vector<Finding>& found) {
  OrderedJson object;
  for (const Finding& f : found) {
    object[f.key] = f.value;
    if (!f.note.empty()) object[f.key + "_note"] = f.note;
  }
  return object.dump(2) + "\n";
}

std::string as_text(const std::vector<Finding>& found) {
  size_t width = 0;
  for (const Finding& f : found) width = std::max(width, f.key.size());
  std::string text;
  for (Finding f : found) {
    std::replace(f.key.begin(), f.key.end(), '_', ' ');
    text += str(pad_right(f.key, width), "  ", f.value.empty() ? "-" : f.value,
                f.note.empty() ? "" : str("  (", f.note, ")"), "\n");
  }
  return text;
}

}  // namespace

std::string options_doctor() { return options_help(DoctorConfig{}); }

int run_doctor(const Words& words) {
  CommandLine line = parse_command_line(words, {"json"});
  if (!line.positionals.empty())
    throw Error("usage", "ucas doctor takes no arguments, got " + printable(line.positionals[0]));
  DoctorConfig config;
  ucas::apply(config, line.settings);
  std::vector<Finding> found = findings();
  out(config.json ? as_json(found) : as_text(found));
  return kDone;
}

}  // namespace ucas
