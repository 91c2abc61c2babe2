#include "report/page/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/str.h"
#include "core/metrics.h"
#include "methods/registry.h"
#include "report/page/template.h"
#include "report/svg/svg_chart.h"

namespace ucas {

namespace {

struct Column {
  const std::vector<double>* x = nullptr;
  std::vector<double> y;  // empty: the run lacks it
};

Series collect(const std::vector<RunGroup>& groups, int64_t points,
               const std::function<Column(const RunRecord&)>& column) {
  Series series;
  std::set<double> steps;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      Column c = column(*run);
      for (size_t i = 0; i < c.y.size(); ++i) {
        if (!std::isnan(c.y[i]) && !std::isnan((*c.x)[i])) steps.insert((*c.x)[i]);
      }
    }
  }
  std::vector<double> all(steps.begin(), steps.end());
  auto count = static_cast<int64_t>(all.size());
  series.stride = std::max<int64_t>(1, (count + points - 1) / std::max<int64_t>(1, points));
  for (int64_t i = 0; i < count; ++i) {
    if (i % series.stride == 0 || i == count - 1) series.x.push_back(all[static_cast<size_t>(i)]);
  }
  std::map<double, size_t> place;
  for (size_t i = 0; i < series.x.size(); ++i) place[series.x[i]] = i;

  for (size_t g = 0; g < groups.size(); ++g) {
    GroupSeries own;
    own.group = g;
    for (const RunRecord* run : groups[g].runs) {
      Column c = column(*run);
      if (c.y.empty()) continue;
      std::vector<double> values(series.x.size(), kUnknown);
      bool any = false;
      for (size_t i = 0; i < c.y.size(); ++i) {
        auto found = place.find((*c.x)[i]);
        if (found == place.end()) continue;
        values[found->second] = c.y[i];
        any |= !std::isnan(c.y[i]);
      }
      if (any) own.runs.push_back(std::move(values));
    }
    if (own.runs.empty()) continue;
    for (size_t i = 0; i < series.x.size(); ++i) {
      std::vector<double> known;
      for (const auto& run : own.runs) {
        if (!std::isnan(run[i])) known.push_back(run[i]);
      }
      own.mean.push_back(mean_of(known));
      own.deviation.push_back(deviation_of(known));
    }
    series.groups.push_back(std::move(own));
  }
  return series;
}

}  // namespace

Series series_of(const std::vector<RunGroup>& groups, const std::string& key, int64_t points) {
  return collect(groups, points,
                 [&](const RunRecord& run) { return Column{&run.steps.step, run.steps.mean_over(key)}; });
}

namespace {

constexpr size_t kDotted = 60;         // curves of at most so many points have dots, which say their numbers
constexpr size_t kMostCurveBands = 4;  // more would be fog
constexpr size_t kMostRows = 50;       // of a chart's table
constexpr size_t kMostPanelsOfAPattern = 24;

struct Panel {
  std::string section, key, title, help;
  bool share = false;
  std::string x_name = "step";
  Series series = {};
};

struct PanelRow {
  const char* section;
  const Metric* metric;  // with a *: one panel a source
};

constexpr PanelRow kPanelRows[] = {
    {"Learning", &metric::val_accuracy},
    {"Learning", &metric::critic_score.mean},
    {"Learning", &metric::train_accuracy},
    {"Learning", &metric::actor_entropy},
    {"Learning", &metric::response_length.mean},
    {"Diagnostics", &metric::self_certainty.mean},
    {"Optimisation", &metric::actor_pg_clipfrac},
    {"Optimisation", &metric::actor_grad_norm},
    {"Optimisation", &metric::actor_ppo_kl},
    {"Optimisation", &metric::actor_pg_loss},
    {"Optimisation", &metric::actor_lr},
    {"Optimisation", &metric::critic_advantages.mean},
    {"Health", &metric::response_length_clip_ratio},
    {"Health", &metric::verifier_unparseable_share},
    {"Health", &metric::train_dead_groups},
    {"Health", &metric::rollout_logprob_diff_max},
    {"Health", &metric::rollout_logprob_diff_share},
    {"Health", &metric::train_num_gen_batches},
    {"Health", &metric::train_skipped_steps},
    {"Cost", &metric::perf_throughput},
    {"Cost", &metric::perf_mfu_actor},
    {"Cost", &metric::perf_mfu_rollout},
    {"Cost", &metric::timing_step},
    {"Cost", &metric::timing_gen},
    {"Cost", &metric::timing_update_actor},
    {"Cost", &metric::timing_testing},
    {"Cost", &metric::perf_cpu_memory_used_gb},
};

constexpr const char* kSections[] = {"Learning", "Optimisation", "Diagnostics", "Health", "Cost"};

// "dpo/reward_margin" -> "Reward margin", for a number without a title.
std::string title_of_key(const std::string& key) {
  std::string title = key.substr(key.find('/') + 1);
  for (char& c : title) c = c == '/' || c == '_' ? ' ' : c;
  if (!title.empty() && title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

constexpr const char* kCommonPrefixes[] = {
    "training/", "critic/",  "actor/",        "response_length/", "prompt_length/",       "self_certainty/",
    "rollout/",  "train/",   "verifier/",     "timing_s/",        "timing_per_token_ms/", "perf/",
    "val-core/", "val-aux/", "global_seqlen/"};

bool common(const std::string& key) {
  return key.find('/') == std::string::npos || std::any_of(std::begin(kCommonPrefixes), std::end(kCommonPrefixes),
                                                           [&](const char* prefix) { return key.starts_with(prefix); });
}

std::set<std::string> all_keys(const std::vector<RunGroup>& groups) {
  std::set<std::string> keys;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      for (const auto& [key, values] : run->steps.column) keys.insert(key);
    }
  }
  return keys;
}

// Keys that match "before*after".
std::vector<std::string> matching(const std::set<std::string>& keys, std::string_view pattern) {
  if (pattern.find('*') == std::string_view::npos) return {std::string(pattern)};
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    if (matches_star(key, pattern)) found.push_back(key);
    if (found.size() == kMostPanelsOfAPattern) break;
  }
  return found;
}

// All panels that have data, in reading order. Where a pattern has several metrics, each bears the part of its name
// that differs; metrics of a method's own are among the diagnostics.
std::vector<Panel> make_panels(const std::vector<RunGroup>& groups, int64_t points) {
  const std::set<std::string> keys = all_keys(groups);
  std::vector<Panel> panels;
  for (const std::string section : kSections) {
    for (const PanelRow& row : kPanelRows) {
      if (row.section != section) continue;
      const std::vector<std::string> found = matching(keys, row.metric->key);
      for (const std::string& key : found) {
        const size_t from = key.find('/') + 1;
        const std::string own = found.size() == 1 ? "" : ", " + key.substr(from, key.find('/', from) - from);
        panels.push_back({section, key, row.metric->title + own, row.metric->caption, row.metric->unit == Unit::share});
      }
    }
    if (section != "Diagnostics") continue;
    size_t own = 0;
    for (const std::string& key : keys) {
      if (common(key) || own++ == kMostPanelsOfAPattern) continue;
      const Metric* declared = find_any_metric(key);
      const bool titled = declared != nullptr && *declared->title != '\0';
      panels.push_back({section, key, titled ? declared->title : title_of_key(key), titled ? declared->caption : "",
                        declared != nullptr ? declared->unit == Unit::share : key.ends_with("_share")});
    }
  }
  for (Panel& panel : panels) panel.series = series_of(groups, panel.key, points);
  const auto loss = [](const RunRecord& run) { return Column{&run.sft.step, run.sft.loss}; };
  panels.push_back({"Warm-up", metric::sft_loss.key, metric::sft_loss.title, metric::sft_loss.caption, false,
                    "SFT step", collect(groups, points, loss)});
  std::erase_if(panels, [](const Panel& panel) { return panel.series.empty(); });
  return panels;
}

// The one value of a number that never changed over at least three steps, for people ("0.001", "DAPO 1, UCAS 2"); "" if
// it did.
std::string constant_text(const Panel& panel, const std::vector<RunGroup>& groups) {
  std::vector<std::string> names, values;
  for (const GroupSeries& own : panel.series.groups) {
    double value = kUnknown;
    size_t known = 0;
    for (const std::vector<double>& run : own.runs) {
      for (double v : run) {
        if (std::isnan(v)) continue;
        if (known++ == 0) value = v;
        if (v != value) return "";
      }
    }
    if (known < 3) return "";
    names.push_back(groups[own.group].title);
    values.push_back(value == 0 ? "0" : str(number_text(value, panel.share), panel.share ? " %" : ""));
  }
  if (std::ranges::count(values, values[0]) == std::ssize(values)) return values[0];
  for (size_t i = 0; i < values.size(); ++i) values[i] = str(names[i], " ", values[i]);
  return join(values, ", ");
}

Cell curve_cell(const Panel& panel, const GroupSeries& own, size_t i) {
  return Cell::mean({own.mean[i]}, own.deviation[i], panel.share);
}

// Steps are whole: so are the marks below them.
std::vector<std::pair<double, std::string>> step_marks(const std::vector<double>& x) {
  std::vector<std::pair<double, std::string>> marks;
  for (double v : round_ticks(x.front(), x.back(), 7).at) {
    if (v >= x.front() && v <= x.back() && v == std::floor(v)) marks.emplace_back(v, tick_text(v, 1, false));
  }
  if (marks.empty()) marks.emplace_back(x.back(), tick_text(x.back(), 1, false));
  return marks;
}

std::string drawing_of(const Panel& panel, const std::vector<RunGroup>& groups) {
  Chart chart;
  chart.title = panel.title;
  chart.height = 220;
  chart.x.title = panel.x_name;
  chart.y.percent = panel.share;
  const std::vector<double>& x = panel.series.x;
  chart.x.marks = step_marks(x);
  if (x.size() > 1) chart.x.low = x.front(), chart.x.high = x.back();
  size_t trained = 0;
  for (const GroupSeries& own : panel.series.groups) {
    const RunGroup& group = groups[own.group];
    ChartSeries series;
    series.color = group.color;
    series.name = group.title;
    series.dashed = group.trained && trained++ % 2 == 1;  // where two runs agree, both stay visible
    series.radius = 2;
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(own.mean[i])) continue;
      Figure band{own.mean[i], own.mean[i] - own.deviation[i], own.mean[i] + own.deviation[i]};
      if (panel.share && band.bounded()) band = within_share(band);
      if (panel.series.groups.size() > kMostCurveBands) band = {};
      const std::string about = str(group.title, ", ", panel.x_name, " ", x[i], ": ", curve_cell(panel, own, i).text(),
                                    panel.share ? " %" : "");
      series.marks.push_back({x[i], own.mean[i], band.low, band.high, about});
    }
    series.dots = series.marks.size() <= kDotted;
    chart.series.push_back(std::move(series));
  }
  return svg_for_page(svg_of(chart));
}

// The numbers of a chart; of many steps every so many, and the last.
std::string panel_table(const Panel& panel, const std::vector<RunGroup>& groups) {
  Table table{.head = {panel.x_name}, .kind = "plain"};
  for (const GroupSeries& own : panel.series.groups) {
    table.head.push_back(name_cell(groups[own.group]));
    if (panel.share) table.head.back().unit = "%";
  }
  const std::vector<double>& x = panel.series.x;
  const size_t every = (x.size() + kMostRows - 1) / kMostRows;
  for (size_t i = (x.size() - 1) % every; i < x.size(); i += every) {
    std::vector<Cell> row = {Cell(str(x[i]))};
    for (const GroupSeries& own : panel.series.groups) row.push_back(curve_cell(panel, own, i));
    table.add(std::move(row));
  }
  return render(table);
}

}  // namespace

CurvesPage curves_page(const std::vector<RunGroup>& groups, int64_t budget) {
  int64_t lines = 0;
  for (const RunGroup& group : groups) lines += static_cast<int64_t>(group.runs.size()) + 6;
  // A coordinate takes about eight bytes in the page; a point of a curve and its band as many as four of them.
  const int64_t points = std::clamp<int64_t>(budget / (50 * 8 * std::max<int64_t>(1, lines)), 40, 400);
  CurvesPage page;
  OrderedJson parts = OrderedJson::array();
  for (const Panel& panel : make_panels(groups, points)) {
    page.stride = std::max(page.stride, panel.series.stride);
    if (parts.empty() || parts.back()["name"] != panel.section) {
      parts.push_back({{"name", panel.section},
                       {"open", parts.empty()},
                       {"panels", OrderedJson::array()},
                       {"constants", OrderedJson::array()},
                       {"some_constant", false}});
    }
    OrderedJson& part = parts.back();
    const OrderedJson named = {{"title", panel.title}, {"metric", panel.key}};
    if (std::string value = constant_text(panel, groups); !value.empty()) {
      part["constants"].push_back(named);
      part["constants"].back()["value"] = value;
      part["some_constant"] = true;
      continue;
    }
    part["panels"].push_back(named);
    part["panels"].back().update(
        {{"help", panel.help}, {"svg", drawing_of(panel, groups)}, {"table", panel_table(panel, groups)}});
  }
  for (OrderedJson& part : parts) part["count"] = part["panels"].empty() ? "" : str(part["panels"].size());
  page.html = parts.empty() ? "" : render("curves.html", {{"parts", parts}});
  return page;
}

}  // namespace ucas
