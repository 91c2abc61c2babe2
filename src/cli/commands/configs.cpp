// `ucas configs`: the embedded training configs, each with the first sentence of its file.
#include <algorithm>

#include "base/error.h"
#include "base/files/embedded.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"

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

}  // namespace

std::string options_configs() { return ""; }

int run_configs(const Words& words) {
  const CommandLine line = parse_command_line(words, {});
  if (!line.settings.empty() || line.positionals.size() > 1) {
    throw Error(ErrorKind::usage, "configs: expected one PATTERN at most and no options; see `ucas configs --help`");
  }
  const std::string pattern = line.positionals.empty() ? "" : line.positionals[0];
  const std::vector<std::string> all = embedded_stems("configs/");
  size_t width = 0;
  for (const std::string& name : all) width = std::max(width, name.size());
  std::string text;
  for (const std::string& name : all) {
    if (name.find(pattern) != std::string::npos) {
      text += str(pad_right(name, width), "  ", first_sentence(name), "\n");
    }
  }
  if (text.empty()) {
    throw Error(ErrorKind::usage, str("configs: no name holds ", printable(pattern), did_you_mean(pattern, all),
                                      "; `ucas configs` lists all ", all.size()));
  }
  out(text);
  return kDone;
}

}  // namespace ucas
