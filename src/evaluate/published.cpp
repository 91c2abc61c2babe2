#include "evaluate/published.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/embedded.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/str.h"

namespace ucas {

namespace {

[[noreturn]] void refuse(const Setting& setting, const std::string& what) {
  throw Error("config", str(setting.where, ": ", printable(setting.key), ": ", what));
}

std::string text_of(const Setting& setting) {
  const auto* text = std::get_if<std::string>(&setting.value);
  if (text == nullptr) refuse(setting, "expected text");
  return *text;
}

double percent_of(const Setting& setting) {
  double value = -1;
  if (const auto* whole = std::get_if<int64_t>(&setting.value)) {
    value = static_cast<double>(*whole);
  } else if (const auto* real = std::get_if<double>(&setting.value)) {
    value = *real;
  } else {
    refuse(setting, "expected a percentage such as 68.7 under the name of a benchmark");
  }
  if (!(value >= 0 && value <= 100)) refuse(setting, str(value, ", expected a percentage from 0 to 100"));
  return value;
}

int64_t line_of(const Setting& setting) {
  return std::strtoll(setting.where.c_str() + setting.where.rfind(':') + 1, nullptr, 10);
}

void take(const Setting& setting, PublishedTable& table, std::map<std::string, PublishedRow*>& rows) {
  if (setting.key == "title" || setting.key == "source" || setting.key == "note") {
    (setting.key == "title" ? table.title : setting.key == "source" ? table.source : table.note) = text_of(setting);
    return;
  }
  const std::vector<std::string> parts = split(setting.key, '.');
  if (parts.size() != 3 || parts[0] != "row") {
    refuse(setting, "unknown key; expected title, source, note, and in a table [row.KEY] name, size and percentages");
  }
  PublishedRow& row = *rows.at(parts[1]);
  if (parts[2] == "name" || parts[2] == "size") {
    (parts[2] == "name" ? row.name : row.size) = text_of(setting);
  } else {
    row.figure.emplace_back(parts[2], percent_of(setting));
  }
}

}  // namespace

PublishedTable load_published(const std::string& name_or_path) {
  const auto text = embedded(str("published/", name_or_path, ".toml"));
  if (!text && name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".toml")) {
    std::vector<std::string> names;
    for (const std::string& name : embedded_names("published/")) names.push_back(name.substr(10, name.size() - 15));
    throw Error("config", str("published figures \"", printable(name_or_path), "\": unknown; there are ",
                              join(names, ", "), ", or give the path of a .toml file"));
  }
  const std::string where = text ? str("published/", name_or_path, ".toml") : name_or_path;
  std::vector<Setting> settings = text ? parse_toml(std::string(*text), where) : read_toml(name_or_path);
  std::ranges::stable_sort(settings, {}, line_of);  // the library hands them out by name

  PublishedTable table;
  std::vector<std::string> order;
  for (const Setting& setting : settings) {
    const std::vector<std::string> parts = split(setting.key, '.');
    if (parts.size() == 3 && parts[0] == "row" && std::find(order.begin(), order.end(), parts[1]) == order.end()) {
      order.push_back(parts[1]);
    }
  }
  table.rows.resize(order.size());
  std::map<std::string, PublishedRow*> rows;
  for (size_t i = 0; i < order.size(); ++i) rows[order[i]] = &table.rows[i];
  for (const Setting& setting : settings) take(setting, table, rows);
  for (size_t i = 0; i < order.size(); ++i) {
    if (table.rows[i].name.empty()) table.rows[i].name = order[i];
  }
  if (table.source.empty())
    throw Error("config", str(where, ": source is missing: where were these figures published?"));
  if (table.rows.empty()) throw Error("config", str(where, ": no table [row.KEY] with figures"));
  return table;
}

}  // namespace ucas
