// `ucas completion SHELL`: a script that completes commands, options, the words of options, and the names of embedded
// configs and studies. Generated from the tables of commands and options; what the script knows is in it, it calls
// nothing.
#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/files/embedded.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/option_lines.h"

namespace ucas {

namespace {

constexpr const char* kShort[] = {"data", "val", "method", "preset", "max-hours", "out", "resume"};  // of a training

struct Completed {
  const Command* command;
  std::vector<OptionLine> options;
  std::vector<std::string> names;  // words that may stand alone, beside files
};

std::vector<std::string> names_for(const std::string& id) {
  for (const char* training : {"train", "plan", "explain", "config", "run"}) {
    if (id == training) return embedded_stems("configs/");
  }
  if (id == "study") return embedded_stems("studies/");
  if (id == "completion") return {"bash", "zsh", "fish"};
  if (id == "man") {
    std::vector<std::string> names;
    for (const Command& command : commands()) names.push_back(command.name);
    return names;
  }
  return {};
}

std::vector<Completed> completed() {
  std::vector<Completed> all;
  for (const Command& command : commands()) {
    Completed row{&command, options_of(command), names_for(command.id)};
    for (const char* key : kShort) {
      const bool training = std::string_view(command.id) == "train" || std::string_view(command.id) == "run";
      const bool there = std::ranges::find(row.options, key, &OptionLine::key) != row.options.end();
      if (training && !there) row.options.push_back({key, "TEXT", "", {}});
    }
    row.options.push_back({"help", "", "usage and options", {}});
    all.push_back(std::move(row));
  }
  return all;
}

std::string keys_of_options(const Completed& row) {
  std::vector<std::string> keys;
  for (const OptionLine& option : row.options) keys.push_back("--" + option.key);
  return join(keys, " ");
}

std::string command_names(const std::vector<Completed>& all) {
  std::vector<std::string> names;
  for (const Completed& row : all) names.push_back(row.command->name);
  return join(names, " ");
}

// "COMMAND --KEY") ITS WORDS ;; for each option with words of its own.
std::string choice_cases(const std::vector<Completed>& all, const std::string& indent,
                         const std::function<std::string(const std::string& words)>& action) {
  std::string text;
  for (const Completed& row : all) {
    for (const OptionLine& option : row.options) {
      if (option.choices.empty()) continue;
      text +=
          str(indent, "\"", row.command->name, " --", option.key, "\") ", action(join(option.choices, " ")), " ;;\n");
    }
  }
  return text;
}

std::string word_cases(const std::vector<Completed>& all, const std::string& indent, const char* variable,
                       const std::function<std::string(const Completed&)>& words) {
  std::string text;
  for (const Completed& row : all) {
    if (const std::string list = words(row); !list.empty())
      text += str(indent, row.command->name, ") ", variable, "='", list, "' ;;\n");
  }
  return text;
}

std::string bash_script(const std::vector<Completed>& all) {
  const auto names = [](const Completed& row) { return join(row.names, " "); };
  return str("# Completion of ucas ", version(), R"( for bash: source it, or put it into
# ${XDG_DATA_HOME:-~/.local/share}/bash-completion/completions/ucas
_ucas() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}" words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ')",
             command_names(all), R"( help' -- "$word"))
    return
  fi
  case "$command $before" in
)",
             choice_cases(all, "    ", [](const std::string& words) { return str("words='", words, "'"); }),
             R"(  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  if [ "${word:0:1}" = "-" ]; then
    case "$command" in
)",
             word_cases(all, "      ", "words", keys_of_options), R"(    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  compopt -o filenames 2>/dev/null
  if [ "${before:0:2}" != "--" ]; then
    case "$command" in
)",
             word_cases(all, "      ", "words", names), R"(    esac
    [ "$command" = help ] && words=')",
             command_names(all), R"('
  fi
  local IFS=$'\n'
  COMPREPLY=($(IFS=' '; compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
}
complete -F _ucas ucas
)");
}

std::string zsh_script(const std::vector<Completed>& all) {
  const auto names = [](const Completed& row) { return join(row.names, " "); };
  return str("#compdef ucas\n# Completion of ucas ", version(), R"( for zsh: put it as _ucas into a folder of $fpath.
_ucas() {
  local word="${words[CURRENT]}" before="${words[CURRENT-1]}" command="${words[2]}" list=
  if (( CURRENT == 2 )); then
    compadd -- )",
             command_names(all), R"( help
    return
  fi
  case "$command $before" in
)",
             choice_cases(all, "    ", [](const std::string& words) { return str("compadd -- ", words, "; return"); }),
             R"(  esac
  if [[ "$word" == -* ]]; then
    case "$command" in
)",
             word_cases(all, "      ", "list", keys_of_options), R"(    esac
    compadd -- ${=list}
    return
  fi
  if [[ "$before" != --* ]]; then
    case "$command" in
)",
             word_cases(all, "      ", "list", names), R"(    esac
    [[ "$command" == help ]] && list=')",
             command_names(all), R"('
    [[ -n "$list" ]] && compadd -- ${=list}
  fi
  _files
}
if [ "$funcstack[1]" = "_ucas" ]; then
  _ucas "$@"
else
  compdef _ucas ucas
fi
)");
}

// In single quotes, as fish reads them.
std::string fish_quoted(std::string text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_script(const std::vector<Completed>& all) {
  std::string text = str("# Completion of ucas ", version(), " for fish: ~/.config/fish/completions/ucas.fish\n",
                         "complete -c ucas -n __fish_use_subcommand -f\n");
  for (const Completed& row : all) {
    const std::string &name = row.command->name,
                      here = str("complete -c ucas -n '__fish_seen_subcommand_from ", name, "'");
    text +=
        str("complete -c ucas -n __fish_use_subcommand -f -a ", name, " -d ", fish_quoted(row.command->summary), "\n");
    if (!row.names.empty()) text += str(here, " -a ", fish_quoted(join(row.names, " ")), "\n");
    for (const OptionLine& option : row.options) {
      text += str(here, " -l ", option.key, option.type.empty() ? "" : " -r",
                  option.choices.empty() ? "" : str(" -f -a ", fish_quoted(join(option.choices, " "))),
                  option.help.empty() ? "" : str(" -d ", fish_quoted(option.help)), "\n");
    }
  }
  return text;
}

}  // namespace

std::string options_completion() { return ""; }

int run_completion(const Words& words) {
  const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  if (words.size() != 1 || std::ranges::find(shells, words[0]) == shells.end()) {
    throw Error(ErrorKind::usage, str("completion: expected one of ", join(shells, ", "), ", got ",
                                      words.empty() ? "nothing" : printable(join(words, " "))));
  }
  const std::vector<Completed> all = completed();
  out(words[0] == "bash" ? bash_script(all) : words[0] == "zsh" ? zsh_script(all) : fish_script(all));
  return kDone;
}

}  // namespace ucas
