#include "base/embedded.h"
#include "base/str.h"
#include "cli/command.h"
#include "train/config.h"

namespace ucas {

std::string help_train() {
  std::string text =
      "ucas train - reinforcement learning with verifiable rewards\n\n"
      "  ucas train CONFIG.toml --model DIR --data FILE.jsonl --out RUN [--method.beta 0.02 ...]\n"
      "  ucas train --resume RUN [--train.steps N]\n\n"
      "CONFIG is a file or the name of an embedded one:";
  for (const std::string& name : embedded_names("configs/")) text += " " + name.substr(8, name.size() - 13);
  text +=
      "\nOptions on the command line override the file. Short forms: --data for --data.files, --val for\n"
      "--data.val_files, --method for --method.name, --preset for --method.preset, --max-hours for --train.max_hours.\n"
      "RUN must not hold a run yet. `ucas explain CONFIG` says what a config does.\n"
      "SIGTERM, SIGINT and SIGUSR1 save and exit 75; --resume goes on, bit for bit as if never interrupted.\n"
      "--allow-changes resumes although data, build or machine changed (it is logged).\n\n";
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
    ObjectiveConfig defaults = method->objective_defaults(), usual;
    std::vector<FieldValue> mine = fields_of(defaults), common = fields_of(usual);
    std::string differs;
    for (size_t i = 0; i < mine.size(); ++i) {
      if (mine[i].value != common[i].value) differs += str("  objective.", mine[i].key, " = ", mine[i].value, "\n");
    }
    text += differs;
  }
  return text;
}

}  // namespace ucas
