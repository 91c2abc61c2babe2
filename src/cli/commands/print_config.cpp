// `ucas config NAME`: an embedded training config as it stands, to be changed and given to `ucas train`.
#include "base/error.h"
#include "base/files/embedded.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"

namespace ucas {

std::string options_config() { return ""; }

int run_config(const Words& words) {
  const CommandLine line = parse_command_line(words, {});
  if (!line.settings.empty() || line.positionals.size() != 1) {
    throw Error(ErrorKind::usage, "config: expected one NAME and no options; see `ucas config --help`");
  }
  std::string name = line.positionals[0];
  if (name.ends_with(".toml")) name.resize(name.size() - 5);
  const auto text = embedded(str("configs/", name, ".toml"));
  if (!text) {
    throw Error(ErrorKind::usage, str("config: no embedded config is called ", printable(name),
                                      did_you_mean(name, embedded_stems("configs/")), "; `ucas configs` lists them"));
  }
  out(std::string(*text));
  return kDone;
}

}  // namespace ucas
