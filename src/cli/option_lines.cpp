#include "cli/option_lines.h"

#include <algorithm>

#include "base/str.h"
#include "cli/command.h"

namespace ucas {

namespace {

constexpr size_t kContinued = 8;  // a help text goes on in lines that begin with as many blanks at least

// "dtype of matmuls; f32 | bf16 ["f32"]" -> f32, bf16
std::vector<std::string> choices_in(const std::string& help) {
  const std::string text = help.substr(0, help.rfind(" ["));
  const size_t begin = text.rfind("; ");
  std::vector<std::string> choices;
  for (const std::string& word : split(begin == std::string::npos ? text : text.substr(begin + 2), '|')) {
    choices.emplace_back(trim(word));
  }
  return choices;
}

}  // namespace

std::vector<OptionLine> option_lines(const std::string& options) {
  std::vector<OptionLine> rows;
  bool within = false;
  for (const std::string& line : split(options, '\n')) {
    if (line.starts_with("  --")) {
      OptionLine row;
      const size_t blank = std::min(line.find(' ', 4), line.size());
      row.key = line.substr(4, blank - 4);
      // "  --resume RUN  text", or of a flag "  --allow-changes  text"
      const bool flag = line.compare(blank, 2, "  ") == 0 || blank == line.size();
      const size_t end = flag ? blank : std::min(line.find(' ', blank + 1), line.size());
      row.type = flag ? "" : line.substr(blank + 1, end - blank - 1);
      row.help = trim(std::string_view(line).substr(end));
      rows.push_back(std::move(row));
      within = true;
    } else if (within && line.size() > kContinued && line.find_first_not_of(' ') >= kContinued) {
      std::string& help = rows.back().help;
      help += str(help.empty() ? "" : " ", trim(line));
    } else {
      within = false;
    }
  }
  std::vector<OptionLine> once;
  for (OptionLine& row : rows) {
    if (std::ranges::find(once, row.key, &OptionLine::key) != once.end()) continue;
    if (row.type == "NAME") row.choices = choices_in(row.help);
    if (row.type == "BOOL") row.choices = {"true", "false"};
    once.push_back(std::move(row));
  }
  return once;
}

std::vector<OptionLine> options_of(const Command& command) {
  std::vector<OptionLine> rows = option_lines(command.options());
  for (OptionLine& row : option_lines(help_of(command))) {
    if (std::ranges::find(rows, row.key, &OptionLine::key) == rows.end()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace ucas
