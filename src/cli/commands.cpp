#include "base/build_info.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"

namespace ucas {

// Each command lives in cli/NAME.cpp: run_NAME, and help_NAME for its --help. An engine command has no run here: it is
// a row of cli/engine/entry.cpp, and its help stays in a plain file.

int run_make_task(const Words& words);
std::string help_make_task();
int run_verify(const Words& words);
std::string help_verify();
int run_tokenize(const Words& words);
std::string help_tokenize();
std::string help_demo();
std::string help_sft();
std::string help_train();
std::string help_study();
int run_explain(const Words& words);
std::string help_explain();
int run_advantages(const Words& words);
std::string help_advantages();
int run_report(const Words& words);
std::string help_report();
int run_compare(const Words& words);
std::string help_compare();
int run_verify_run(const Words& words);
std::string help_verify_run();
int run_doctor(const Words& words);
std::string help_doctor();
std::string help_generate();
std::string help_score();
std::string help_evaluate();

namespace {

constexpr const char* kIntroduction =
    "ucas - reinforcement learning of language models with verifiable rewards\n"
    "\n"
    "Usage: ucas COMMAND [ARGUMENTS] [--key value ...]\n"
    "\n"
    "Commands:\n";

constexpr const char* kClosing =
    "\n"
    "  ucas COMMAND --help    all options of a command, with ranges and defaults\n"
    "  ucas --version         the version\n"
    "\n"
    "Exit codes: 0 done, 1 differences found, 2 bad input, 70 numeric or internal failure, 74 write failed,\n"
    "            75 interrupted and resumable\n";

std::string program_help() {
  size_t width = 0;
  for (const Command& command : commands()) width = std::max(width, std::string(command.name).size());
  std::string text = kIntroduction;
  for (const Command& command : commands()) {
    text += str("  ", pad_right(command.name, width), "  ", command.summary, "\n");
  }
  return text + kClosing;
}

const Command& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (name == command.name) return command;
    names.emplace_back(command.name);
  }
  throw Error("usage", str("unknown command ", printable(name), did_you_mean(name, names),
                           "; `ucas --help` lists the commands"));
}

bool asks_for_help(const Words& words) {
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

// Paths and texts go into JSON and TOML files, which hold nothing else.
void refuse_other_than_utf8(const Words& words) {
  for (const std::string& word : words) {
    if (valid_utf8(word)) continue;
    throw Error("utf8", str("the argument ", printable(word, 400),
                            " is not UTF-8: the files that ucas writes could not name it; rename the file or folder"));
  }
}

}  // namespace

std::span<const Command> commands() {
  static const std::vector<Command> table = {
      // {name, one line for --help, run or nullptr, help}, in the order a newcomer meets them
      {"demo", "the main job on the embedded task: warm-up, RLVR per method, evaluation, report", nullptr, help_demo},
      {"train", "reinforcement learning with verifiable rewards", nullptr, help_train},
      {"explain", "what a training config does, equation by equation, and how it departs from its papers", run_explain,
       help_explain},
      {"make-task", "write the embedded task: problems, demonstrations, tokenizer", run_make_task, help_make_task},
      {"sft", "supervised fine-tuning on prompts and responses", nullptr, help_sft},
      {"verify", "grade answers against the right ones", run_verify, help_verify},
      {"tokenize", "text to token ids, or a check against known ids", run_tokenize, help_tokenize},
      {"generate", "responses of a checkpoint, to a prompt or to problem files", nullptr, help_generate},
      {"score", "per-token log-prob, entropy, confidence of given responses", nullptr, help_score},
      {"evaluate", "greedy and sampled accuracy, pass@k, with intervals", nullptr, help_evaluate},
      {"compare", "runs side by side, and which differences the problems can bear out", run_compare, help_compare},
      {"verify-run", "grade and count an evaluation again, against its run card", run_verify_run, help_verify_run},
      {"study", "several trainings over seeds, from one base, in one table", nullptr, help_study},
      {"advantages", "a saved step under another method: what would have changed", run_advantages, help_advantages},
      {"report", "run directories to one HTML page: results, curves, responses", run_report, help_report},
      {"doctor", "what this machine has and what ucas makes of it", run_doctor, help_doctor},
  };
  return table;
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
    out(find_command(words[1]).help());
    return kDone;
  }
  const Command& command = find_command(words[0]);
  Words rest(words.begin() + 1, words.end());
  if (asks_for_help(rest)) {
    out(command.help());
    return kDone;
  }
  return command.run != nullptr ? command.run(rest) : run_in_engine(command.name, rest);
}

}  // namespace ucas
