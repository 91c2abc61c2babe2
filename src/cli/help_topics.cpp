#include "cli/command.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr size_t kLongPage = 150;  // lines
constexpr size_t kTopicWidth = 18;

constexpr const char* kFirst = "{first ";
constexpr const char* kGeneral = "general";

struct HelpPart {
  std::string topic;  // "" = the head
  std::string text;
  std::vector<std::string> keys;
};

// "[data.columns]" -> "data": one topic holds its sub-sections.
std::string topic_of_section(const std::string& line) {
  if (line.size() < 3 || line.front() != '[' || line.back() != ']') return "";
  const std::string name = line.substr(1, line.size() - 2);
  return name.substr(0, name.find('.'));
}

// "gspo: GSPO. Zheng ..." -> "gspo"
std::string topic_of_method(const std::string& line) {
  const size_t colon = line.find(": ");
  if (colon == std::string::npos || colon == 0) return "";
  const std::string name = line.substr(0, colon);
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos ? name : "";
}

// "  --rollout.n INT  responses ..." -> "rollout.n"
std::string key_of_option(const std::string& line) {
  return line.starts_with("  --") ? line.substr(4, line.find(' ', 4) - 4) : "";
}

std::string without_section(const std::string& key) { return key.substr(key.find('.') + 1); }

// The keys of the line "{first KEY KEY ...}", which is taken out of the page.
std::vector<std::string> take_first(std::string& page) {
  const size_t begin = page.find(kFirst);
  if (begin == std::string::npos) return {};
  const size_t keys = begin + std::string(kFirst).size(), end = page.find("}\n", keys);
  std::vector<std::string> first = split(page.substr(keys, end - keys), ' ');
  page.erase(begin, end + 2 - begin);
  return first;
}

// The lines of an option of the page.
std::string lines_of_option(const std::vector<std::string>& lines, const std::string& key) {
  auto line = std::ranges::find(lines, key, key_of_option);
  if (line == lines.end()) return "";
  std::string text = *line++ + "\n";
  while (line != lines.end() && line->starts_with("     ")) text += *line++ + "\n";
  return text;
}

std::vector<HelpPart> parts_of(const std::string& page) {
  std::vector<HelpPart> parts(1);
  bool methods = false;
  for (const std::string& line : split(page, '\n')) {
    if (line.starts_with("Methods (")) {
      methods = true;
      parts.push_back({"methods", "", {}});
    } else if (const std::string method = methods ? topic_of_method(line) : ""; !method.empty()) {
      parts.push_back({method, "", {}});
    } else if (const std::string section = methods ? "" : topic_of_section(line); !section.empty()) {
      if (section != parts.back().topic) parts.push_back({section, "", {}});
    }
    if (line == "Options:" && parts.size() == 1) parts.push_back({kGeneral, "", {}});
    parts.back().text += line + "\n";
    if (const std::string key = key_of_option(line); !key.empty()) parts.back().keys.push_back(without_section(key));
  }
  return parts;
}

std::string overview(const std::string& page, const std::string& name, const std::vector<std::string>& first) {
  const std::vector<HelpPart> parts = parts_of(page);
  std::string text = parts.front().text;
  if (first.empty()) {
    if (parts.size() > 1 && parts[1].topic == kGeneral) text += parts[1].text;
  } else {
    text += "Options to know first:\n";
    const std::vector<std::string> lines = split(page, '\n');
    for (const std::string& key : first) text += lines_of_option(lines, key);
  }
  while (text.ends_with("\n\n")) text.pop_back();
  text += str("\nAll options by topic, `ucas ", name, " --help TOPIC` (`--help all` prints everything):\n");
  std::vector<std::string> methods;
  bool in_methods = false;
  for (size_t i = 1; i < parts.size(); ++i) {
    const HelpPart& part = parts[i];
    if (part.topic == kGeneral && first.empty()) continue;
    in_methods |= part.topic == "methods";
    if (in_methods) {
      if (part.topic != "methods") methods.push_back(part.topic);
      continue;
    }
    text += str("  ", pad_right(part.topic, kTopicWidth),
                wrap_text(join(part.keys, " "), 110, kTopicWidth + 2, kTopicWidth + 2), "\n");
  }
  if (!methods.empty()) {
    text += str("  ", pad_right("a method", kTopicWidth),
                wrap_text(join(methods, " "), 110, kTopicWidth + 2, kTopicWidth + 2), "\n");
  }
  return text;
}

}  // namespace

std::string help_on(std::string page, const std::string& name, const std::string& topic) {
  const std::vector<std::string> first = take_first(page);
  if (topic == "all" || (topic.empty() && split(page, '\n').size() < kLongPage)) return page;
  if (topic.empty()) return overview(page, name, first);
  const std::vector<HelpPart> parts = parts_of(page);
  std::string text;
  std::vector<std::string> topics = {"all"};
  bool in_methods = false;
  for (const HelpPart& part : parts) {
    in_methods |= part.topic == "methods";
    if (!part.topic.empty()) topics.push_back(part.topic);
    if (part.topic == topic || (topic == "methods" && in_methods)) text += part.text;
  }
  if (!text.empty()) return text;
  throw Error(ErrorKind::usage, str("ucas ", name, " --help ", printable(topic), ": no such topic",
                                    did_you_mean(topic, topics), "; `ucas ", name, " --help` lists them"));
}

}  // namespace ucas
