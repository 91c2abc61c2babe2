// The options of the commands that run in the engine: what --help shows, without loading it.
#include "base/str.h"
#include "cli/command.h"
#include "cli/options/demo_config.h"
#include "cli/options/train_options.h"
#include "config/policy_options.h"
#include "config/train_config.h"
#include "study/config.h"

namespace ucas {

namespace {

// "  HEAD key = value, key = value": what of `values` differs from `usual`.
std::string preset_differences(const std::string& head, const std::vector<FieldValue>& usual,
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
  if (row.presets.size() < 2) return "";
  std::unique_ptr<Method> first = row.make(), chosen = row.make(preset);
  struct All {
    Method* method;
    void fields(Fields& f) {
      ObjectiveConfig objective = method->objective_defaults();
      f.section("method", *method);
      f.section("objective", objective);
    }
  };
  std::string head = str("preset ", preset, ": ");
  if (preset == row.presets.front()) return str("  ", head, "the default\n");
  std::string text = preset_differences(head, fields_of(All{first.get()}), fields_of(All{chosen.get()}), "");
  return text.empty() ? str("  ", head, "the same options\n") : text;
}

}  // namespace

std::string options_demo() {
  return str(options_help(DemoConfig{}), "\nWith --model DIR, a pretrained model:\n",
             options_help(PretrainedDemoConfig{}));
}
std::string options_sft() { return options_help(SftOptions{}); }
std::string options_generate() { return options_help(GenerateOptions{}); }
std::string options_score() { return options_help(ScoreOptions{}); }
std::string options_evaluate() { return options_help(EvaluateOptions{}); }
std::string options_replay() { return options_help(ReplayOptions{}); }
std::string options_study() { return options_help(StudyConfig{}); }

std::string options_train() {
  TrainConfig usual = make_train_config({});
  usual.dtype = Dtype::automatic;  // which follows the device
  std::string text = options_help(usual) + "\nMethods (method.name) and what each adds to [method] and [objective]:\n";
  for (const MethodRow& row : method_rows()) {
    std::unique_ptr<Method> method = row.make();
    text += str("\n", wrap_text(str(row.name, ": ", row.title, ". ", row.paper), 100, 4, 0), "\n");
    struct Own {
      Method* method;
      void fields(Fields& f) { f.section("method", *method); }
    };
    text += options_help(Own{method.get()});
    text += preset_differences("", fields_of(ObjectiveConfig{}), fields_of(method->objective_defaults()), "objective.");
    for (const std::string& preset : row.presets) text += preset_help(row, preset);
  }
  return text;
}

}  // namespace ucas
