// `ucas man [COMMAND]`: the manual page of the program or of one command, from the same tables and texts as --help.
#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/option_lines.h"

namespace ucas {

namespace {

// As roff prints it: no escape, no request at the beginning of a line.
std::string roff(const std::string& text) {
  std::string out;
  bool first = true;
  for (char c : text) {
    if (first && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    first = c == '\n';
  }
  return out;
}

std::string capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string page_head(const std::string& name, const std::string& summary) {
  return str(".TH ", capitals(name), " 1 \"\" \"ucas ", version(), "\" \"User Commands\"\n.SH NAME\n", roff(name),
             " \\- ", roff(summary), "\n");
}

// Text as it stands, of help/NAME.txt: its tables and examples are drawn with blanks.
std::string as_it_stands(std::string text) {
  text = trim(text);
  return text.empty() ? "" : str(".nf\n", roff(text), "\n.fi\n");
}

std::string options_section(const Command& command) {
  const std::vector<OptionLine> options = options_of(command);
  if (options.empty()) return "";
  std::string text = ".SH OPTIONS\n";
  for (const OptionLine& option : options) {
    text +=
        str(".TP\n\\fB", roff("--" + option.key), "\\fR \\fI", roff(option.type), "\\fR\n", roff(option.help), "\n");
  }
  return text;
}

std::string exit_section() {
  return ".SH EXIT STATUS\n0 done, 1 differences found, 2 bad input, 70 numeric or internal failure, 74 write failed,\n"
         "75 interrupted and resumable, 78 no sandbox.\n";
}

std::string page_of(const Command& command) {
  // "ucas train - ..\n\nUsage: ..": the head is the page's own, options are its last section.
  std::string text = help_of(command);
  text.erase(0, text.find("\n\n") + 2);
  std::string options = command.options();
  if (const size_t at = options.empty() ? std::string::npos : text.find(options); at != std::string::npos) {
    text.erase(at, options.size());
  }
  if (const size_t first = text.find("{first "); first != std::string::npos) {
    text.erase(first, text.find("}\n", first) + 2 - first);
  }
  const size_t end = std::min(text.find("\n\n"), text.size());  // of the lines of usage
  std::string usage = text.substr(0, end);
  if (usage.starts_with("Usage: ")) usage.erase(0, 7);
  std::string synopsis;
  for (const std::string& line : split(usage, '\n')) synopsis += str(trim(line), "\n");
  return str(page_head("ucas-" + command.name, command.summary), ".SH SYNOPSIS\n", as_it_stands(synopsis),
             ".SH DESCRIPTION\n", as_it_stands(text.substr(end)), options_section(command), exit_section(),
             ".SH SEE ALSO\n", roff("ucas(1), `ucas " + command.name + " --help`"), "\n");
}

std::string page_of_program() {
  std::string text =
      str(page_head("ucas", "reinforcement learning of language models with verifiable rewards"),
          ".SH SYNOPSIS\n\\fBucas\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR] [\\fB\\-\\-key\\fR \\fIvalue\\fR ...]\n",
          ".SH COMMANDS\n");
  for (const Command& command : commands()) {
    text += str(".TP\n\\fB", roff(command.name), "\\fR\n", roff(command.summary), "\n");
  }
  return str(text, exit_section(), ".SH SEE ALSO\n",
             roff("`ucas man COMMAND` prints the page of a command, `ucas COMMAND --help` its usage and options."),
             "\n");
}

}  // namespace

std::string options_man() { return ""; }

int run_man(const Words& words) {
  if (words.size() > 1) throw Error(ErrorKind::usage, "man: expected one COMMAND at most; see `ucas man --help`");
  if (words.empty()) {
    out(page_of_program());
    return kDone;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == words[0]) {
      out(page_of(command));
      return kDone;
    }
    names.push_back(command.name);
  }
  throw Error(ErrorKind::usage, str("man: unknown command ", printable(words[0]), did_you_mean(words[0], names)));
}

}  // namespace ucas
