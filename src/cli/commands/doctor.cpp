// ucas doctor: what this machine has, what ucas makes of it, and why.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "base/text/json.h"
#include "cli/command.h"
#include "config/config_file.h"
#include "data/prompts/chat_program.h"
#include "kernels/lm_head.h"
#include "methods/method.h"
#include "results/table.h"
#include "verify/sandbox/sandbox.h"

namespace ucas {

namespace {

struct DoctorConfig {
  bool json = false;
  std::string device = "cpu";
  bool sandbox = false;
  code::CodeOptions code;
  void fields(Fields& f) {
    f.field("json", json, "print one JSON object instead of text");
    f.field("device", device,
            "device to check: cpu, cuda or cuda:N; on a CUDA device a small model is compared with the CPU");
    f.field("sandbox", sandbox, "run every attack on the sandbox for model-written programs, inside and outside");
    f.section("code", code);
  }
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

Finding chat_templates() {
  try {
    return {"chat_templates", ChatProgram::load("", "doctor")->made_by(), ""};
  } catch (const Error& error) {
    return {"chat_templates", "not usable", error.what()};
  }
}

std::vector<Finding> findings() {
  std::vector<std::string> methods;
  for (const MethodRow& row : method_rows()) methods.emplace_back(row.name);
  int64_t cores = usable_cores(), online = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::string cpu = kernel_table("/proc/cpuinfo", "model name");
  const MachineMemory memory = machine_memory();
  std::vector<Finding> found = {
      {"version", version(), build_type()},
      {"compiler", "g++ " __VERSION__, ""},
      {"libtorch", torch_version(), ""},
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
  found.push_back({"configs", str(config_names().size()), "embedded; `ucas config` lists all"});
  found.push_back({"templates", embedded_list("templates"), "embedded; --data.template NAME"});
  found.push_back(chat_templates());
  return found;
}

std::string as_json(const std::vector<Finding>& found, const std::vector<DeviceCheck>& checks) {
  OrderedJson object;
  for (const Finding& f : found) {
    object[f.key] = f.value;
    if (!f.note.empty()) object[f.key + "_note"] = f.note;
  }
  for (const DeviceCheck& c : checks) {
    object["checks"].push_back({{"what", c.what}, {"difference", c.difference}, {"bound", c.bound}, {"ok", c.ok}});
  }
  return json_text(object, 2) + "\n";
}

std::string as_text(const std::vector<Finding>& found) {
  Table table{.align = "l"};
  for (Finding f : found) {
    std::replace(f.key.begin(), f.key.end(), '_', ' ');
    table.add({f.key, str(f.value.empty() ? "-" : f.value, f.note.empty() ? "" : str("  (", f.note, ")"))});
  }
  return table.text();
}

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return value == 0 ? "0" : text;
}

std::string as_table(const std::vector<DeviceCheck>& checks) {
  Table table{.head = {"against the CPU", "difference", "bound", ""}, .align = "lrr"};
  for (const DeviceCheck& c : checks) {
    table.add({c.what, scientific(c.difference), scientific(c.bound), c.ok ? "ok" : "FAILED"});
  }
  return "\n" + table.text();
}

const char* word(code::Attack::Result result) {
  constexpr const char* kWords[] = {"fails", "GETS THROUGH", "not tried"};
  return kWords[static_cast<size_t>(result)];
}

// ucas doctor --sandbox: what a tier is worth here. Exit 78 where none can be had, as a grader would end.
int try_sandbox(const DoctorConfig& config) {
  using code::SandboxChoice;
  std::vector<SandboxChoice> tiers = {SandboxChoice::a, SandboxChoice::b};
  if (config.code.sandbox != SandboxChoice::automatic) tiers = {config.code.sandbox};
  std::string text;
  for (SandboxChoice tier : tiers) {
    const code::Sandbox sandbox = code::Sandbox::untried(config.code, tier);
    const std::vector<code::Attack> attacks = attack_all(sandbox);
    const bool failed = attacks.front().sandboxed == code::Attack::Result::failed;
    const auto hits = std::ranges::count(attacks, code::Attack::Result::hit, &code::Attack::sandboxed);
    const std::string verdict = failed     ? "not available: " + attacks.front().name
                                : hits > 0 ? str(hits, " attacks GET THROUGH")
                                           : str("ok, none of ", attacks.size(), " attacks gets through");
    text += str("tier ", word_of(tier), ": ", verdict, "  (", sandbox.python(), ", ", sandbox.python_version(), ")\n");
    Table table{.align = "l"};
    for (const code::Attack& attack : attacks) {
      if (failed) break;
      table.add({attack.name, word(attack.sandboxed),
                 str("outside: ", attack.bare == code::Attack::Result::hit ? "works" : "fails")});
    }
    text += table.text("  ");
  }
  const code::Sandbox used(config.code);  // refuses, with exit 78, what a grader would refuse
  text += str("used: tier ", word_of(used.tier()), used.why().empty() ? "" : str(", because ", used.why()), "\n");
  out(text);
  return kDone;
}

}  // namespace

std::string options_doctor() { return options_help(DoctorConfig{}); }

int run_doctor(const Words& words) {
  CommandLine line = parse_command_line(words, {"json", "sandbox"});
  if (!line.positionals.empty())
    throw Error(ErrorKind::usage, "ucas doctor takes no arguments, got " + printable(line.positionals[0]));
  DoctorConfig config;
  ucas::apply(config, line.settings);
  if (config.sandbox && config.json) throw Error(ErrorKind::usage, "doctor: --json goes without --sandbox");
  if (config.sandbox) return try_sandbox(config);
  const auto checks = config.device == "cpu" ? std::vector<DeviceCheck>() : check_device(config.device);
  const std::vector<Finding> found = findings();
  out(config.json ? as_json(found, checks) : as_text(found) + (checks.empty() ? "" : as_table(checks)));
  return std::ranges::all_of(checks, &DeviceCheck::ok) ? kDone : kNumeric;
}

}  // namespace ucas
