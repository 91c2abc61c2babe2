#include "cli/command.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr int64_t kLongPage = 149;  // lines
constexpr size_t kTopicWidth = 18;
constexpr std::string_view kFirst = "{first ", kOption = "  --", kWord = "abcdefghijklmnopqrstuvwxyz0123456789_";
constexpr const char *kGeneral = "general", *kMethods = "methods";

// A topic is a section with its sub-sections, a method, or what precedes the first.
struct HelpPart {
  std::string topic, text;  // "" = the head
  bool of_method = false;
  std::vector<std::string> keys = {};
};

// "  --rollout.n INT  responses ..." -> "rollout.n"
std::string key_of_option(const std::string& line) {
  return line.starts_with(kOption) ? line.substr(kOption.size(), line.find(' ', kOption.size()) - kOption.size()) : "";
}

std::vector<HelpPart> parts_of(const std::string& page) {
  std::vector<HelpPart> parts(1);
  bool methods = false;
  for (const std::string& line : split(page, '\n')) {
    std::string topic;
    const size_t colon = line.find(": ");
    if (line.starts_with("Methods (")) {
      topic = kMethods, methods = true;
    } else if (methods) {  // "gspo: GSPO. Zheng ..."
      if (colon != std::string::npos && colon > 0 && line.find_first_not_of(kWord) == colon)
        topic = line.substr(0, colon);
    } else if (line.starts_with('[') && line.ends_with(']')) {  // "[data.columns]" is of data
      topic = line.substr(1, line.find_first_of(".]") - 1);
    } else if (line == "Options:" && parts.size() == 1) {
      topic = kGeneral;
    }
    if (!topic.empty() && topic != parts.back().topic) parts.push_back({topic, "", methods && topic != kMethods});
    parts.back().text += line + "\n";
    if (const std::string key = key_of_option(line); !key.empty()) {
      parts.back().keys.push_back(key.substr(key.find('.') + 1));
    }
  }
  return parts;
}

// Takes the line "{first KEY KEY ...}" out of the page; these options with their help.
std::string take_first(std::string& page) {
  const size_t begin = page.find(kFirst);
  if (begin == std::string::npos) return "";
  const size_t keys = begin + kFirst.size(), end = page.find("}\n", keys);
  const std::vector<std::string> first = split(page.substr(keys, end - keys), ' ');
  page.erase(begin, end + 2 - begin);
  const std::vector<std::string> lines = split(page, '\n');
  std::string text = "Options to know first:\n";
  for (const std::string& key : first) {
    auto line = std::ranges::find(lines, key, key_of_option);
    if (line == lines.end()) continue;
    do text += *line++ + "\n";
    while (line != lines.end() && line->starts_with("     "));
  }
  return text;
}

std::string overview(const std::vector<HelpPart>& parts, const std::string& name, const std::string& first) {
  std::string text = parts.front().text + first;
  if (first.empty() && parts.size() > 1 && parts[1].topic == kGeneral) text += parts[1].text;
  while (text.ends_with("\n\n")) text.pop_back();
  text += str("\nAll options by topic, `ucas ", name, " --help TOPIC` (`--help all` prints everything):\n");
  const auto add = [&](const std::string& topic, const std::vector<std::string>& words) {
    text += str("  ", pad_right(topic, kTopicWidth), wrap_text(join(words, " "), 100, kTopicWidth + 2, kTopicWidth + 2),
                "\n");
  };
  std::vector<std::string> methods;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].of_method) methods.push_back(parts[i].topic);
    const bool shown = parts[i].topic == kGeneral && first.empty();
    if (!parts[i].of_method && parts[i].topic != kMethods && !shown) add(parts[i].topic, parts[i].keys);
  }
  if (!methods.empty()) add("a method", methods);
  return text;
}

}  // namespace

std::string help_on(std::string page, const std::string& name, const std::string& topic) {
  const std::string first = take_first(page);
  if (topic == "all" || (topic.empty() && std::ranges::count(page, '\n') < kLongPage)) return page;
  const std::vector<HelpPart> parts = parts_of(page);
  if (topic.empty()) return overview(parts, name, first);
  std::string text;
  std::vector<std::string> topics = {"all"};
  for (const HelpPart& part : parts) {
    if (!part.topic.empty()) topics.push_back(part.topic);
    if (part.topic == topic || (topic == kMethods && part.of_method)) text += part.text;
  }
  if (!text.empty()) return text;
  throw Error(ErrorKind::usage, str("ucas ", name, " --help ", printable(topic), ": no such topic",
                                    did_you_mean(topic, topics), "; `ucas ", name, " --help` lists them"));
}

}  // namespace ucas
