#include "explain/explain.h"

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/options/train_options.h"

namespace ucas {

int run_explain(const Words& words) {
  CommandLine line = parse_command_line(words, {"json"});
  expand_short_forms(line.settings);
  bool json = false;
  std::erase_if(line.settings, [&](const Setting& s) {
    json |= s.key == "json";
    return s.key == "json";
  });
  const std::vector<std::string>& given = line.positionals;
  if (given.empty() && line.settings.empty()) {
    throw Error(ErrorKind::usage,
                "CONFIG is missing: a TOML file, an embedded name such as ucas-paper-7b, or --method NAME");
  }
  if (given.size() > 2) {
    throw Error(ErrorKind::usage, str("one or two CONFIGs, got ", join(given, " "), "; see ucas explain --help"));
  }
  Explained first = read_explained(given.empty() ? "" : given[0], line.settings);
  if (given.size() < 2) {
    out(json ? explain_json(first) : explain_text(first));
    return kDone;
  }
  Explained second = read_explained(given[1], line.settings);
  out(json ? explain_differences_json(first, second) : explain_differences(first, second));
  return kDone;
}

std::string options_explain() { return ""; }

}  // namespace ucas
