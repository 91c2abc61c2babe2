#include "report/page/template.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <kainjow/mustache.hpp>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "core/metrics.h"
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
  if (value.is_number()) return stache::data(value.dump());
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

constexpr std::array kPhases = {
    &metric::timing_gen,     &metric::timing_reward, &metric::timing_old_log_prob,  &metric::timing_ref,
    &metric::timing_values,  &metric::timing_adv,    &metric::timing_update_critic, &metric::timing_update_actor,
    &metric::timing_testing, &metric::timing_prm,    &metric::timing_teacher};
constexpr size_t kOther = kPhases.size();  // what a step holds beyond them

const char* title_of_phase(size_t p) { return p == kOther ? "other" : kPhases[p]->title; }
// Of the page's eleven. No method has a reward model and a teacher: they share one.
size_t color_of_phase(size_t p) { return p == kOther ? 10 : std::min<size_t>(p, 9); }

struct PhaseBar {
  const RunGroup* group = nullptr;
  std::array<double, kOther + 1> seconds{};  // a step
  int64_t steps = 0;
  double total = 0;  // of all steps and runs
  double step() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
};

std::string short_seconds(double seconds) { return seconds < 10 ? fixed(seconds, 2) + " s" : human_seconds(seconds); }

// Seconds a phase per step, averaged over all steps and runs of the group.
PhaseBar phases_of(const RunGroup& group) {
  PhaseBar bar{&group};
  auto& [of, seconds, steps, total] = bar;
  for (const RunRecord* run : group.runs) {
    const auto* whole = run->steps.find(metric::timing_step.key);
    for (size_t i = 0; whole && i < whole->size(); ++i) {
      if (std::isnan((*whole)[i])) continue;
      total += (*whole)[i];
      if (run->steps.step[i] < 1) continue;  // the validation before the first step
      ++steps;
      double named = 0;
      for (size_t p = 0; p < kOther; ++p) {
        const auto* values = run->steps.find(kPhases[p]->key);
        if (!values || std::isnan((*values)[i])) continue;
        seconds[p] += (*values)[i];
        named += (*values)[i];
      }
      seconds.back() += std::max(0.0, (*whole)[i] - named);
    }
  }
  for (double& value : seconds) value /= std::max<double>(1, static_cast<double>(steps));
  return bar;
}

Table phase_table(const std::vector<PhaseBar>& bars) {
  Table table{.head = {"seconds a step"}, .kind = "plain"};
  for (const PhaseBar& bar : bars) table.head.emplace_back(bar.group->title);
  for (size_t p = 0; p <= kOther; ++p) {
    if (std::ranges::all_of(bars, [&](const PhaseBar& bar) { return bar.seconds[p] <= 0; })) continue;
    std::vector<Cell> row = {Cell(title_of_phase(p)).with(&Cell::mark, str("p", color_of_phase(p)))};
    for (const PhaseBar& bar : bars) row.push_back(Cell::decimal(bar.seconds[p], 3));
    table.add(std::move(row));
  }
  std::vector<Cell> step = {Cell("step").with(&Cell::strong, true)}, all = {"all steps"};
  for (const PhaseBar& bar : bars) {
    const size_t runs = bar.group->runs.size();
    step.push_back(Cell::decimal(bar.step(), 3).with(&Cell::strong, true));
    all.emplace_back(human_seconds(bar.total) + (runs > 1 ? str(" in ", runs, " runs") : ""));
  }
  table.add(std::move(step));
  table.add(std::move(all));
  return table;
}

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

std::string time_html(const std::vector<RunGroup>& groups) {
  std::vector<PhaseBar> bars;
  double longest = 0;
  for (const RunGroup& group : groups) {
    PhaseBar bar = phases_of(group);
    if (bar.steps == 0) continue;
    longest = std::max(longest, bar.step());
    bars.push_back(bar);
  }
  if (bars.empty() || longest <= 0) return "";
  OrderedJson drawn = OrderedJson::array();
  for (const PhaseBar& bar : bars) {
    OrderedJson parts = OrderedJson::array();
    for (size_t p = 0; p <= kOther; ++p) {
      if (bar.seconds[p] <= 0) continue;
      parts.push_back({{"phase", color_of_phase(p)},
                       {"width", fixed(100 * std::clamp(bar.seconds[p] / longest, 0.0, 1.0), 2)},
                       {"words", str(title_of_phase(p), " ", short_seconds(bar.seconds[p]))}});
    }
    drawn.push_back({{"color", bar.group->color},
                     {"group", bar.group->title},
                     {"parts", parts},
                     {"step", short_seconds(bar.step())}});
  }
  return render("time.html", {{"bars", drawn}, {"table", render(phase_table(bars))}});
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
