// The only file that sees the TOML library (3.6 s of compile time).
#include <algorithm>
#include <stdexcept>

// What it takes for granted is not always so (3.3: a table's name that begins with none of a name's characters), and
// what it would end the program by is a refusal here.
[[noreturn]] inline void toml_took_for_granted() { throw std::logic_error("TOML"); }
#define TOML_ASSERT(holds) ((holds) ? void() : toml_took_for_granted())
#include <toml++/toml.h>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr int kMaxDepth = 64;

// Behind the string that begins at `at`, or at the end of the line that it does not end on; counts the lines passed.
size_t skip_string(std::string_view text, size_t at, int64_t& line) {
  const char quote = text[at];
  const bool escapes = quote == '"';
  const std::string three(3, quote);
  const bool many_lines = text.substr(at, 3) == three;
  for (at += many_lines ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\n' && !many_lines) return at;
    if (many_lines ? text.substr(at, 3) == three : text[at] == quote) return at + (many_lines ? 3 : 1);
    if (text[at] == '\n') ++line;
    if (text[at] == '\\' && escapes && at + 1 < text.size() && text[at + 1] != '\n') ++at;
  }
  return at;
}

// Of a line that begins with "[": a name begins where the library takes it for granted that one does.
bool begins_name(std::string_view header) {
  for (int brackets = 0; brackets < 2 && header.starts_with('['); ++brackets) {
    header.remove_prefix(1);
    header.remove_prefix(std::min(header.find_first_not_of(" \t"), header.size()));
  }
  constexpr std::string_view kFirst = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_\"'";
  return header.empty() || kFirst.find(header[0]) != std::string_view::npos || header[0] == ']';
}

// The library makes and frees a table of depth n by n calls in each other, so that one long dotted key would end the
// program. Refuses keys of more parts, and lists and tables deeper in each other, than any config has.
void check_depth(std::string_view text, const std::string& where) {
  int64_t line = 1;
  int parts = 1, nested = 0;
  bool fresh = true;  // nothing but blanks since the line began
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '[' && fresh && nested == 0 && !begins_name(text.substr(at))) {
      throw Error("config", str(where, ":", line, ": not valid TOML: expected the name of a table after \"[\""));
    }
    fresh = c == '\n' || (fresh && (c == ' ' || c == '\t'));
    if (c == '"' || c == '\'') {
      at = skip_string(text, at, line);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '[' || c == '{') ++nested;
    if ((c == ']' || c == '}') && nested > 0) --nested;
    if (c == '.') ++parts;
    if (std::string_view("[]{}=,\n").find(c) != std::string_view::npos) parts = 1;
    if (parts > kMaxDepth || nested > kMaxDepth) {
      throw Error("config", str(where, ":", line, ": ", parts > kMaxDepth ? "a key of" : "lists or tables nested in",
                                " more than ", kMaxDepth, parts > kMaxDepth ? " parts" : " others"));
    }
    if (c == '\n') ++line;
    ++at;
  }
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& where,
             std::vector<Setting>& settings) {
  for (const auto& [key, node] : table) {
    std::string name = prefix + std::string(key.str());
    std::string place = str(where, ":", static_cast<int64_t>(node.source().begin.line));
    auto refuse = [&](const char* what) {
      throw Error("config", str(place, ": ", printable(name), ": ", what, " cannot be a value here"));
    };
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, name + ".", where, settings);
    } else if (const toml::array* array = node.as_array()) {
      std::vector<std::string> texts;
      std::vector<int64_t> numbers;
      std::vector<std::string> reals;  // as text: no option is a list of these, but a study's grid takes any numbers
      bool fractions = false;
      for (const toml::node& item : *array) {
        if (auto text = item.value_exact<std::string>()) {
          texts.push_back(*text);
        } else if (auto number = item.value_exact<int64_t>()) {
          numbers.push_back(*number);
          reals.push_back(str(*number));
        } else if (auto real = item.value_exact<double>()) {
          fractions = true;
          reals.push_back(str(*real));
        } else {
          refuse("a list of anything but texts or numbers");
        }
      }
      if (!texts.empty() && !reals.empty()) refuse("a mixed list");
      if (!texts.empty() || fractions) {
        settings.push_back({name, fractions ? reals : texts, place});
      } else {
        settings.push_back({name, numbers, place});
      }
    } else if (auto flag = node.value_exact<bool>()) {
      settings.push_back({name, *flag, place});
    } else if (auto number = node.value_exact<int64_t>()) {
      settings.push_back({name, *number, place});
    } else if (auto real = node.value_exact<double>()) {
      settings.push_back({name, *real, place});
    } else if (auto text = node.value_exact<std::string>()) {
      settings.push_back({name, *text, place});
    } else {
      refuse("a date or time");
    }
  }
}

}  // namespace

std::vector<Setting> parse_toml(const std::string& text, const std::string& where) {
  check_depth(text, where);
  std::vector<Setting> settings;
  try {
    flatten(toml::parse(text), "", where, settings);
  } catch (const toml::parse_error& error) {
    throw Error("config", str(where, ":", static_cast<int64_t>(error.source().begin.line),
                              ": not valid TOML: ", printable(error.description(), 300)));
  } catch (const std::logic_error&) {
    throw Error("config", str(where, ": not valid TOML"));
  }
  return settings;
}

std::vector<Setting> read_toml(const std::string& path) { return parse_toml(read_file(path, 4 << 20), path); }

}  // namespace ucas
