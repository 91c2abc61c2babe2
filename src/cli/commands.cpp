#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "data/rows/jsonl.h"

namespace ucas {

namespace {

// The last line of a command, or the last but its error.
void sum_up() {
  if (const std::string counted = warnings_in_words(); !counted.empty()) log(counted);
}

constexpr const char* kIntroduction =
    "ucas - reinforcement learning of language models with verifiable rewards\n"
    "Usage: ucas COMMAND [ARGUMENTS] [--key value ...]\n"
    "\n";

constexpr const char* kClosing =
    "\n"
    "`ucas COMMAND --help`: usage and options. `ucas --version`: the version.\n"
    "Exit codes: 0 done, 1 differences found, 2 bad input, 70 numeric or internal\n"
    "failure, 74 write failed, 75 interrupted and resumable, 78 no sandbox.\n";

// Commands of before, and what does it now.
constexpr std::pair<const char*, const char*> kGone[] = {
    {"track", "python -m ucas.track RUN --to NAME"},
    {"serve", "vllm serve DIR serves what ucas export writes"},
    {"tokenize", "ucas check TOKENIZER --ids FILE.jsonl, or ucas.Tokenizer in Python"},
    {"merge", "ucas export ADAPTER --out DIR"},
    {"convert", "python -m ucas.convert FILE.gguf DIR makes a checkpoint of a GGUF file"},
};

// Two commands a line, so that all fit a screen of 24 lines and 80 columns.
constexpr size_t kGroupWidth = 10, kNameWidth = 14, kBriefWidth = 20;

std::string program_help() {
  std::string text = kIntroduction, group, line;
  const auto end_line = [&] {
    if (!line.empty()) text += line + "\n";
    line.clear();
  };
  for (const Command& command : commands()) {
    const bool first = command.group != group;
    if (first || line.size() > 2 + kGroupWidth + kNameWidth + kBriefWidth) end_line();
    if (line.empty()) line = "  " + pad_right(first ? command.group : "", kGroupWidth);
    line = pad_right(line, line.size() > 2 + kGroupWidth ? 2 + kGroupWidth + kNameWidth + kBriefWidth : 0);
    line += pad_right(command.name, kNameWidth) + command.brief;
    group = command.group;
  }
  end_line();
  return text + kClosing;
}

const Command& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (name == command.name) return command;
    names.push_back(command.name);
  }
  for (const auto& [gone, now] : kGone) {
    if (name == gone) throw Error(ErrorKind::usage, str("ucas ", gone, " is gone: ", now));
  }
  const auto begun = std::ranges::find_if(names, [&](const std::string& n) { return n.starts_with(name); });
  throw Error(ErrorKind::usage, str("unknown command ", printable(name),
                                    begun == names.end() ? did_you_mean(name, names) : did_you_mean(*begun),
                                    "; `ucas --help` lists the commands"));
}

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

// The names of the embedded files of a folder, wrapped.
std::string names_under(const std::string& folder) {
  return "  " + wrap_text(join(embedded_stems(folder), " "), 100, 2, 2);
}

// The word after --help, or the only other one there is; nullopt: no help was asked for.
std::optional<std::string> help_topic(const Words& words) {
  const auto asked = std::ranges::find_if(words, [](const std::string& w) { return w == "--help" || w == "-h"; });
  if (asked == words.end()) return std::nullopt;
  const bool follows = asked + 1 != words.end() && !(asked + 1)->starts_with("-");
  return follows ? *(asked + 1) : std::string();
}

// Paths and texts go into JSON and TOML files, which hold nothing else.
void refuse_other_than_utf8(const Words& words) {
  for (const std::string& word : words) {
    if (valid_utf8(word)) continue;
    throw Error(ErrorKind::utf8,
                str("the argument ", printable(word, 400),
                    " is not UTF-8: the files that ucas writes could not name it; rename the file or folder"));
  }
}

}  // namespace

#define UCAS_RUN_plain(name) run_##name
#define UCAS_RUN_engine(name) nullptr
#define UCAS_ROW(name, where, group, brief, summary) \
  {#name, with_dashes(#name), #group, brief, summary, UCAS_RUN_##where(name), options_##name},
std::span<const Command> commands() {
  static const std::vector<Command> table = {UCAS_COMMANDS(UCAS_ROW)};
  return table;
}

std::string help_of(const Command& command) {
  std::string text(embedded(str("help/", command.name, ".txt")).value());
  auto put = [&](const std::string& mark, auto&& part) {
    if (size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), part());
  };
  put("{studies}", [] { return names_under("studies/"); });
  put("{options}\n", command.options);
  return str("ucas ", command.name, " - ", command.summary, "\n\n", text);
}

int run_program(const Words& words) {
  refuse_other_than_utf8(words);
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || (words[0] == "help" && words.size() == 1)) {
    out(program_help());
    return words.empty() ? kBadInput : kDone;
  }
  if (words[0] == "--version" || words[0] == "version") {
    out(str("ucas ", version(), "\n"));
    return kDone;
  }
  if (words[0] == "help") {
    out(help_on(help_of(find_command(words[1])), words[1], words.size() > 2 ? words[2] : ""));
    return kDone;
  }
  const Command& command = find_command(words[0]);
  Words rest(words.begin() + 1, words.end());
  if (const auto topic = help_topic(rest)) {
    out(help_on(help_of(command), command.name, *topic));
    return kDone;
  }
  if (const std::optional<int> code = launch_ranks(command.name, rest)) return *code;
  try {
    const int code = command.run != nullptr ? command.run(rest) : run_in_engine(command.id, rest);
    sum_up();
    return code;
  } catch (...) {
    sum_up();
    throw;
  }
}

}  // namespace ucas
