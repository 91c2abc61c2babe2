// ucas doctor: what this machine has, what ucas makes of it, and why.
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/build_info.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
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

// The value after "KEY :" in one of the kernel's tables. These have no size, so base/file would read nothing of them.
std::string kernel_table(const char* path, std::string_view key) {
  std::ifstream table(path);
  std::string line;
  while (std::getline(table, line)) {
    if (!line.starts_with(key)) continue;
    size_t colon = line.find(':');
    if (colon != std::string::npos) return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return "";
}

double kernel_kib(std::string_view key) {
  std::string text = kernel_table("/proc/meminfo", key);
  return text.empty() ? 0 : 1024.0 * std::atof(text.c_str());
}

int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : ::sysconf(_SC_NPROCESSORS_ONLN);
}

// "configs/dapo-tiny.toml" -> "dapo-tiny"
std::string embedded_list(const std::string& folder) {
  std::vector<std::string> names;
  for (std::string name : embedded_names(folder + "/")) {
    name.erase(0, folder.size() + 1);
    names.push_back(name.substr(0, name.rfind('.')));
  }
  return join(names, ", ");
}

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
  std::vector<Finding> found = {
      {"version", version(), UCAS_BUILD_TYPE},
      {"compiler", "g++ " __VERSION__, ""},
      {"libtorch", UCAS_TORCH_VERSION, ""},
      {"cpu", cpu.empty() ? "unknown" : printable(cpu), ""},
      {"instruction_set", kernels::isa(), kernels::isa_reason()},
      {"threads", str(cores), cores < online ? str("of ", online, " cores; this process may use no more") : ""},
      {"memory", human_bytes(kernel_kib("MemTotal")), human_bytes(kernel_kib("MemAvailable")) + " available"},
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
