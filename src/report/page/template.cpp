#include "report/page/template.h"

#include <algorithm>
#include <kainjow/mustache.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "report/escape.h"

namespace ucas {

namespace {

namespace stache = kainjow::mustache;

// The template with those it names in their places: the library would read them again for every row of a table.
std::string with_parts(const std::string& name) {
  std::string text(asset(name));
  for (size_t at = 0; (at = text.find("{{> ", at)) != std::string::npos;) {
    const size_t end = text.find("}}", at);
    text.replace(at, end + 2 - at, with_parts(text.substr(at + 4, end - at - 4)));
  }
  return text;
}

stache::data converted(const OrderedJson& value) {
  if (value.is_object()) {
    stache::data object(stache::data::type::object);
    for (const auto& [key, member] : value.items()) object.set(key, converted(member));
    return object;
  }
  if (value.is_array()) {
    stache::data list(stache::data::type::list);
    for (const OrderedJson& item : value) list.push_back(converted(item));
    return list;
  }
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text.empty() ? stache::data(false) : stache::data(text);
  }
  if (value.is_number()) return stache::data(json_text(value));
  return stache::data(value.is_boolean() && value.get<bool>());
}

OrderedJson cell_values(const Cell& cell) {
  const std::string text = cell.known() ? cell.number_only() : "";
  const bool plain = !cell.strong && !cell.code && !cell.markup;
  std::string below = cell.below;
  if (cell.bounded)
    below = str(number_text(cell.number.low, cell.share), "\xe2\x80\x93", number_text(cell.number.high, cell.share));
  return {{"strong", cell.strong ? text : ""},
          {"spread", cell.spread()},
          {"text", plain ? text : ""},
          {"code", cell.code ? text : ""},
          {"html", cell.markup ? text : ""},
          {"bounds", below},
          {"unit", cell.unit},
          {"about", cell.about},
          {"key", cell.mark},
          {"quiet", !cell.known()}};
}

}  // namespace

std::string_view asset(const std::string& name) {
  const auto text = embedded("report/assets/" + name);
  UCAS_CHECK(text.has_value(), "an asset of the report was not compiled in");
  return *text;
}

std::string render(const std::string& name, const OrderedJson& values) {
  stache::mustache page{with_parts(name)};
  UCAS_CHECK(page.is_valid(), "a template of the report is not Mustache");
  page.set_custom_escape([](const std::string& value) { return html_text(value); });
  return page.render(converted(values));
}

std::string render(const Table& table) {
  OrderedJson head = OrderedJson::array(), rows = OrderedJson::array();
  for (const Cell& cell : table.head) head.push_back(cell_values(cell));
  for (const Table::Row& row : table.rows) {
    if (row.cells.empty()) continue;
    OrderedJson cells = OrderedJson::array();
    for (size_t i = 1; i < row.cells.size(); ++i) cells.push_back(cell_values(row.cells[i]));
    rows.push_back({{"row", row.kind}, {"begins", row.begins}, {"name", cell_values(row.cells[0])}, {"cells", cells}});
  }
  return render("table.html", {{"kind", table.kind}, {"caption", table.caption}, {"head", head}, {"rows", rows}});
}

namespace {

// The distinct values of one setting among the runs of a group.
std::string setting_values(const RunGroup& group, const std::string& key) {
  std::vector<std::string> values;
  for (const RunRecord* run : group.runs) {
    std::string value = run->setting(key);
    if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
  }
  return join(values, " | ");
}

}  // namespace

Cell name_cell(const RunGroup& group, const std::string& below) {
  return Cell(group.title).with(&Cell::below, below).with(&Cell::mark, str("g", group.color));
}

Cell value_cell(const SummaryCell& value, bool share, bool with_interval) {
  Cell cell = value.shown(share).with(&Cell::strong, true);
  cell.bounded = with_interval && value.interval.bounded();
  return cell;
}

std::string settings_html(const std::vector<RunGroup>& groups) {
  std::vector<const RunGroup*> with;
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const RunGroup& group : groups) {
    bool any = false;
    for (const RunRecord* run : group.runs) {
      for (const auto& [key, value] : run->config) {
        any = true;
        if (seen.insert(key).second) keys.push_back(key);
      }
    }
    if (any) with.push_back(&group);
  }
  if (with.empty()) return "";
  Table all{.head = {"setting"}, .kind = "settings"};
  for (const RunGroup* group : with) all.head.push_back(name_cell(*group));
  Table differing = all;
  for (const std::string& key : keys) {
    Table::Row row{Cell(key).with(&Cell::code, true)};
    std::set<std::string> values;
    for (const RunGroup* group : with) {
      std::string value = setting_values(*group, key);
      row.cells.push_back(value.empty() ? Cell::unknown() : Cell(model_text(value, 400)).with(&Cell::markup, true));
      values.insert(std::move(value));
    }
    if (values.size() > 1) {
      row.kind = "differs";
      differing.rows.push_back(row);
    }
    all.rows.push_back(std::move(row));
  }
  const size_t count = differing.rows.size();
  differing.caption = count == 1 ? "One setting differs" : str(count, " settings differ");
  return render("settings.html", {{"same", with.size() > 1 && count == 0},
                                  {"differing", with.size() > 1 && count > 0 ? render(differing) : ""},
                                  {"count", keys.size()},
                                  {"all", render(all)}});
}

}  // namespace ucas
