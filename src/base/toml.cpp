// The only file that sees the TOML library (3.6 s of compile time).
#include <toml++/toml.h>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/str.h"

namespace ucas {

namespace {

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
  std::vector<Setting> settings;
  try {
    flatten(toml::parse(text), "", where, settings);
  } catch (const toml::parse_error& error) {
    throw Error("config", str(where, ":", static_cast<int64_t>(error.source().begin.line),
                              ": not valid TOML: ", printable(error.description(), 300)));
  }
  return settings;
}

std::vector<Setting> read_toml(const std::string& path) { return parse_toml(read_file(path, 4 << 20), path); }

}  // namespace ucas
