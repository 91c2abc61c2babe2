// `ucas configs`: the embedded training configs, each with the first sentence of its file.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/embedded.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "cli/command.h"
#include "results/table.h"

namespace ucas {

namespace {

// "# DAPO on the embedded task. Give it" -> "DAPO on the embedded task"; a sentence may go on in the next comment line.
std::string first_sentence(const std::string& name) {
  std::string sentence;
  for (const std::string& line : split(std::string(embedded(str("configs/", name, ".toml")).value()), '\n')) {
    if (!line.starts_with("# ")) break;
    sentence += (sentence.empty() ? "" : " ") + line.substr(2);
  }
  return sentence.substr(0, std::min(sentence.find(". "), sentence.find_last_not_of('.') + 1));
}

struct ConfigsOptions {
  bool json = false;
  void fields(Fields& f) { f.field("json", json, "print a JSON list of names and titles instead of text"); }
};

}  // namespace

std::string options_configs() { return options_help(ConfigsOptions{}); }

int run_configs(const Words& words) {
  const CommandLine line = parse_command_line(words, {"json"});
  ConfigsOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.size() > 1) {
    throw Error(ErrorKind::usage, "configs: expected one PATTERN at most; see `ucas configs --help`");
  }
  const std::string pattern = line.positionals.empty() ? "" : line.positionals[0];
  const std::vector<std::string> all = embedded_stems("configs/");
  Table table{.align = "l"};
  OrderedJson list = OrderedJson::array();
  for (const std::string& name : all) {
    if (name.find(pattern) == std::string::npos) continue;
    table.add({name, first_sentence(name)});
    list.push_back({{"name", name}, {"title", first_sentence(name)}});
  }
  if (table.rows.empty()) {
    throw Error(ErrorKind::usage, str("configs: no name holds ", printable(pattern), did_you_mean(pattern, all),
                                      "; `ucas configs` lists all ", all.size()));
  }
  out(options.json ? json_text(list, 2) + "\n" : table.text());
  return kDone;
}

}  // namespace ucas
