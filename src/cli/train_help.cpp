#include "base/embedded.h"
#include "base/str.h"
#include "cli/command.h"
#include "config/train_config.h"
#include "explain/explain.h"
#include "progress/train_progress.h"

namespace ucas {

namespace {

// "  HEAD key = value, key = value": what of `values` differs from `usual`.
std::string differences(const std::string& head, const std::vector<FieldValue>& usual,
                        const std::vector<FieldValue>& values, const std::string& prefix) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < values.size() && i < usual.size(); ++i) {
    if (values[i].value != usual[i].value) parts.push_back(str(prefix, values[i].key, " = ", values[i].value));
  }
  if (parts.empty()) return "";
  return str("  ", wrap_text(str(head, join(parts, ", ")), 100, 4, 2), "\n");
}

// What a preset changes against the method's first one.
std::string preset_help(const MethodRow& row, const std::string& preset) {
  std::unique_ptr<Method> first = row.make(), chosen = row.make();
  std::vector<std::string> presets = first->presets();
  if (presets.size() < 2) return "";
  first->use_preset(presets.front());
  chosen->use_preset(preset);
  struct All {
    Method* method;
    void fields(Fields& f) {
      ObjectiveConfig objective = method->objective_defaults();
      f.section("method", *method);
      f.section("objective", objective);
    }
  };
  std::string head = str("preset ", preset, ": ");
  if (preset == presets.front()) return str("  ", head, "the default\n");
  std::string text = differences(head, fields_of(All{first.get()}), fields_of(All{chosen.get()}), "");
  return text.empty() ? str("  ", head, "the same options\n") : text;
}

}  // namespace

std::string help_train() {
  std::string text =
      "ucas train - reinforcement learning with verifiable rewards\n\n"
      "  ucas train CONFIG.toml --model DIR --data FILE.jsonl --out RUN [--method.beta 0.02 ...]\n"
      "  ucas train --resume RUN [--train.steps N]\n\n"
      "CONFIG is a file or the name of an embedded one:\n  ";
  text += wrap_text(join(embedded_stems("configs/"), " "), 100, 2, 2);
  text +=
      "\nOptions on the command line override the file. Short forms: --data for --data.files, --val for\n"
      "--data.val_files, --method for --method.name, --preset for --method.preset, --max-hours for --train.max_hours.\n"
      "RUN must not hold a run yet. `ucas explain CONFIG` says what a config does.\n"
      "SIGTERM, SIGINT and SIGUSR1 save and exit 75; --resume goes on, bit for bit as if never interrupted.\n"
      "--allow-changes resumes although data, build or machine changed (it is logged).\n";
  text += str(kProgressHelp, "\n");
  text +=
      options_help(make_train_config({})) + "\nMethods (method.name) and what each adds to [method] and [objective]:\n";
  for (const MethodRow& row : method_rows()) {
    std::unique_ptr<Method> method = row.make();
    text += str("\n", row.name, ": ", method->title(), ". ", method->paper(), "\n");
    struct Own {
      Method* method;
      void fields(Fields& f) { f.section("method", *method); }
    };
    text += options_help(Own{method.get()});
    text += differences("", fields_of(ObjectiveConfig{}), fields_of(method->objective_defaults()), "objective.");
    for (const std::string& preset : method->presets()) text += preset_help(row, preset);
  }
  return text;
}

}  // namespace ucas
