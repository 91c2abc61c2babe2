#include "report/page/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/str.h"
#include "base/text/star.h"
#include "report/escape.h"
#include "report/page/template.h"
#include "report/svg/svg_chart.h"

namespace ucas {

namespace {

constexpr size_t kLongestTitle = 400;  // bytes

constexpr PanelRow kRows[] = {
    {"Learning", "val-core/*/acc/mean@1", "Held-out accuracy", "greedy responses to the validation problems", true},
    {"Learning", "critic/score/mean", "Mean reward", "mean verifier score of the responses trained on"},
    {"Learning", "train/accuracy", "Accuracy in training", "share of right responses among all that were sampled",
     true},
    {"Learning", "actor/entropy", "Mean entropy", "mean over response tokens of the policy's entropy, nats"},
    {"Learning", "response_length/mean", "Mean response length", "mean tokens of a response, end token included"},
    {"Diagnostics", "self_certainty/mean", "Mean confidence", "mean over tokens of C = logsumexp minus mean logit"},
    {"Optimisation", "actor/pg_clipfrac", "Clip fraction", "share of tokens whose ratio left the clip range", true},
    {"Optimisation", "actor/grad_norm", "Gradient norm", "global L2 norm before clipping"},
    {"Optimisation", "actor/ppo_kl", "Policy change", "mean of old minus new log-prob within the step's updates, nats"},
    {"Optimisation", "actor/pg_loss", "Policy loss", "the clipped objective that is minimised"},
    {"Optimisation", "actor/lr", "Learning rate", "of the step's updates"},
    {"Optimisation", "critic/advantages/mean", "Mean advantage", "mean advantage over the step's tokens"},
    {"Health", "response_length/clip_ratio", "Truncated responses", "share that hit the length limit", true},
    {"Health", "verifier/unparseable_share", "Responses without an answer",
     "share without an answer that could be read", true},
    {"Health", "train/dead_groups", "Dead groups", "share of prompts whose responses are all right or all wrong", true},
    {"Health", "rollout/logprob_diff_max", "Sampler against trainer",
     "largest log-prob difference of a token; 0 = bit-equal"},
    {"Health", "rollout/logprob_diff_share", "Tokens beyond 1e-3",
     "share of tokens on which sampler and trainer differ", true},
    {"Health", "train/num_gen_batches", "Generation batches", "rounds of sampling that dynamic sampling needed"},
    {"Health", "train/skipped_steps", "Skipped steps", "optimizer steps left out so far"},
    {"Cost", "perf/throughput", "Tokens per second", "generated tokens of the step over its time"},
    {"Cost", "perf/mfu/actor", "Update against the machine",
     "operations of the update as a share of what a product of this machine reaches", true},
    {"Cost", "perf/mfu/rollout", "Sampling against the machine",
     "operations of sampling as a share of what a product of this machine reaches", true},
    {"Cost", "timing_s/step", "Time of a step", "seconds, everything included"},
    {"Cost", "perf/cpu_memory_used_gb", "Memory", "resident memory of the process, GB"},
};

// A method's own numbers; docs/metrics.md has the formulas.
struct DiagnosticRow {
  const char* key;
  const char* title;
  const char* help;
};
constexpr DiagnosticRow kDiagnostics[] = {
    {"policy/kl_uniform_p", "Distance from uniform", "mean KL(U||p), how far from uniform: C minus ln V"},
    {"policy/kl_p_uniform", "Distance to uniform", "mean KL(p||U) = ln V minus entropy"},
    {"ucas/weight/mean", "Mean response weight", "mean of the response weights W (Eq. 8)"},
    {"ucas/weight/std", "Spread of response weights", "spread of the response weights W (Eq. 8)"},
    {"ucas/weight/min", "Smallest response weight", "smallest response weight W (Eq. 8)"},
    {"ucas/weight/max", "Largest response weight", "largest response weight W (Eq. 8)"},
    {"ucas/clamped_share", "Clamped tokens", "share of tokens of rewarded responses that Eq. 10 clamps to zero"},
    {"ucas/confidence/mean", "Mean token confidence", "mean over tokens of C = logsumexp minus mean logit (Eq. 5)"},
    {"ucas/net_advantage/mean", "Net advantage of groups",
     "mean over groups of the net shaped advantage; shaping makes it nonzero"},
    {"ucas/net_advantage/abs_mean", "Size of the net advantage", "mean over groups of its size"},
};

// "dpo/reward_margin" -> "Reward margin", for a number that is not in the table.
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
constexpr size_t kMostPanelsOfAPattern = 24;

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

Panel pass_panel(const std::vector<RunGroup>& groups, const ResultTable& summary, bool several) {
  bool seeds = std::any_of(groups.begin(), groups.end(), [](const RunGroup& group) { return group.runs.size() > 1; });
  Panel panel{"Learning",
              "pass@k",
              several && !summary.data.empty() ? str("pass@k, ", short_path(summary.data, 1)) : "pass@k",
              str("chance that one of k samples is right; band: ",
                  seeds ? "95 % interval of the mean over seeds" : "95 % interval over problems"),
              true,
              Axis::samples,
              "k",
              {},
              {}};
  std::set<int64_t> all_k;
  for (const EvalRecord* evaluation : evaluations_of(groups, summary.data)) {
    for (const FigureAt& item : evaluation->pass_at) all_k.insert(item.k);
  }
  for (int64_t k : all_k) panel.series.x.push_back(static_cast<double>(k));
  for (size_t g = 0; g < groups.size(); ++g) {
    GroupSeries own;
    own.group = g;
    std::vector<Figure> bounds;
    for (const RunRecord* run : groups[g].runs) {
      const EvalRecord* evaluation = final_evaluation(*run, summary.data);
      if (!evaluation || evaluation->pass_at.empty()) continue;
      own.runs.emplace_back();
      for (int64_t k : all_k) own.runs.back().push_back(figure_named(*evaluation, str("pass@", k)).value);
    }
    if (own.runs.empty()) continue;
    for (int64_t k : all_k) {
      const SummaryCell cell = measured(groups[g], summary.data, str("pass@", k));
      own.mean.push_back(cell.mean);
      own.deviation.push_back(cell.deviation);
      bounds.push_back(cell.interval);
    }
    panel.bounds.push_back(std::move(bounds));
    panel.series.groups.push_back(std::move(own));
  }
  return panel;
}

// Six significant digits are enough for a picture; unknown becomes null.
OrderedJson numbers(const std::vector<double>& values) {
  OrderedJson list = OrderedJson::array();
  for (double value : values) {
    if (std::isfinite(value)) {
      char text[40];
      std::snprintf(text, sizeof text, "%.6g", value);
      list.push_back(std::strtod(text, nullptr));
    } else {
      list.push_back(nullptr);
    }
  }
  return list;
}

}  // namespace

std::span<const PanelRow> panel_rows() { return kRows; }

std::vector<Panel> make_panels(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries,
                               int64_t budget) {
  std::set<std::string> keys = all_keys(groups);
  int64_t lines = 0;
  for (const RunGroup& group : groups) lines += static_cast<int64_t>(group.runs.size()) + 6;
  // A number takes about eight bytes in the page; a point of a curve and its band as many as four of them.
  int64_t points = std::clamp<int64_t>(budget / (50 * 8 * std::max<int64_t>(1, lines)), 40, 800);
  std::vector<Panel> panels;
  auto add = [&](Panel panel) {
    if (!panel.series.empty()) panels.push_back(std::move(panel));
  };
  auto add_rows = [&](std::string_view section) {
    for (const PanelRow& row : kRows) {
      if (row.section != section) continue;
      std::vector<std::string> found = matching(keys, row.key);
      for (const std::string& key : found) {
        std::string title =
            found.size() == 1
                ? row.title
                : str(row.title, ", ",
                      key.substr(key.find('/') + 1, key.find('/', key.find('/') + 1) - key.find('/') - 1));
        add({row.section, key, title, row.help, row.share, Axis::step, "step", series_of(groups, key, points), {}});
      }
    }
  };
  add_rows("Learning");
  for (const ResultTable& summary : summaries) add(pass_panel(groups, summary, summaries.size() > 1));
  add_rows("Optimisation");
  add_rows("Diagnostics");
  size_t own = 0;
  for (const std::string& key : keys) {
    if (common(key) || own == kMostPanelsOfAPattern) continue;
    size_t before = panels.size();
    const auto* known = std::ranges::find_if(kDiagnostics, [&](const DiagnosticRow& row) { return key == row.key; });
    const bool listed = known != std::end(kDiagnostics);
    add({"Diagnostics",
         key,
         listed ? known->title : title_of_key(key),
         listed ? known->help : "",
         key.ends_with("_share"),
         Axis::step,
         "step",
         series_of(groups, key, points),
         {}});
    own += panels.size() - before;
  }
  add_rows("Health");
  add_rows("Cost");
  add({"Warm-up",
       "loss",
       "SFT loss",
       "cross-entropy on response tokens, nats, by SFT step",
       false,
       Axis::step,
       "SFT step",
       sft_series(groups, points),
       {}});
  return panels;
}

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

namespace {

constexpr size_t kDotted = 12;  // curves of at most so many points have dots

// Lower and upper edge of a curve's band at one place; unknown where there is none.
Figure band_of(const Panel& panel, size_t s, size_t i) {
  const GroupSeries& own = panel.series.groups[s];
  if (s < panel.bounds.size() && !panel.bounds[s].empty()) return panel.bounds[s][i];
  if (own.runs.size() < 2) return {};
  Figure f{own.mean[i], own.mean[i] - own.deviation[i], own.mean[i] + own.deviation[i]};
  if (panel.share && f.bounded()) f.low = std::max(0.0, f.low), f.high = std::min(1.0, f.high);
  return f;
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

std::string drawing_of(const Panel& panel, const std::vector<RunGroup>& groups, PlotFrame& frame) {
  Chart chart;
  chart.title = panel.title;
  chart.width = 520;
  chart.height = 196;
  chart.compact = true;
  chart.x.title = panel.x_name;
  chart.x.doubling = panel.axis == Axis::samples;
  chart.y.percent = panel.share;
  const std::vector<double>& x = panel.series.x;
  if (!chart.x.doubling) {
    chart.x.marks = step_marks(x);
    if (x.size() > 1) chart.x.low = x.front(), chart.x.high = x.back();
  }
  size_t trained = 0;
  for (size_t s = 0; s < panel.series.groups.size(); ++s) {
    const GroupSeries& own = panel.series.groups[s];
    ChartSeries series;
    series.color = groups[own.group].color;
    series.kind = str("of", own.group);
    series.dashed = groups[own.group].trained && trained++ % 2 == 1;  // where two runs agree, both stay visible
    for (size_t i = 0; i < x.size(); ++i) {
      const Figure band = band_of(panel, s, i);
      if (!std::isnan(own.mean[i])) series.marks.push_back({x[i], own.mean[i], band.low, band.high, ""});
    }
    series.dots = chart.x.doubling || series.marks.size() <= kDotted;
    chart.series.push_back(std::move(series));
  }
  return svg_for_page(svg_of(chart, &frame));
}

// What a chart says, for those who do not see it.
std::string gist_of(const Panel& panel, const std::vector<RunGroup>& groups) {
  std::string text = panel.title;
  for (const GroupSeries& own : panel.series.groups) {
    std::vector<double> known;
    for (double value : own.mean) {
      if (!std::isnan(value)) known.push_back(value);
    }
    if (known.empty()) continue;
    text += str("; ", groups[own.group].title, " from ", number_text(known.front(), panel.share), " to ",
                number_text(known.back(), panel.share), panel.share ? " percent" : "");
  }
  return text;
}

OrderedJson json_of(const Panel& panel, const PlotFrame& f) {
  OrderedJson item;
  item["share"] = panel.share;
  item["log"] = panel.axis == Axis::samples;
  item["xName"] = panel.x_name;
  item["frame"] = numbers({f.left, f.top, f.width, f.height, f.x_low, f.x_high, f.y_low, f.y_high});
  item["x"] = numbers(panel.series.x);
  item["series"] = OrderedJson::array();
  for (size_t s = 0; s < panel.series.groups.size(); ++s) {
    const GroupSeries& own = panel.series.groups[s];
    OrderedJson line;
    line["group"] = own.group;
    line["mean"] = numbers(own.mean);
    const bool bounded = s < panel.bounds.size() && !panel.bounds[s].empty();
    if (own.runs.size() > 1) {
      if (!bounded) line["std"] = numbers(own.deviation);
      line["runs"] = OrderedJson::array();
      for (const auto& run : own.runs) line["runs"].push_back(numbers(run));
    }
    if (bounded) {
      std::vector<double> low, high;
      for (const Figure& bound : panel.bounds[s]) {
        low.push_back(bound.low);
        high.push_back(bound.high);
      }
      line["low"] = numbers(low);
      line["high"] = numbers(high);
    }
    item["series"].push_back(std::move(line));
  }
  return item;
}

}  // namespace

CurvesPage curves_page(const std::vector<RunGroup>& groups, const std::vector<Panel>& panels) {
  CurvesPage page;
  OrderedJson data = {{"groups", OrderedJson::array()}, {"panels", OrderedJson::array()}};
  for (const RunGroup& group : groups) {
    data["groups"].push_back({{"title", visible_text(group.title, kLongestTitle)}, {"color", group.color}});
  }
  OrderedJson parts = OrderedJson::array();
  for (const Panel& panel : panels) {
    page.stride = std::max(page.stride, panel.series.stride);
    if (parts.empty() || parts.back()["name"] != panel.section) {
      parts.push_back({{"name", panel.section},
                       {"open", parts.empty()},
                       {"panels", OrderedJson::array()},
                       {"constants", OrderedJson::array()},
                       {"some_constant", false}});
    }
    OrderedJson& part = parts.back();
    if (std::string value = constant_text(panel, groups); !value.empty()) {
      part["constants"].push_back({{"title", panel.title}, {"metric", panel.key}, {"value", value}});
      part["some_constant"] = true;
      continue;
    }
    PlotFrame frame;
    part["panels"].push_back({{"index", data["panels"].size()},
                              {"title", panel.title},
                              {"metric", panel.key},
                              {"help", panel.help},
                              {"gist", gist_of(panel, groups)},
                              {"svg", drawing_of(panel, groups, frame)}});
    data["panels"].push_back(json_of(panel, frame));
  }
  for (OrderedJson& part : parts) part["count"] = part["panels"].empty() ? "" : str(part["panels"].size());
  page.html = parts.empty() ? "" : render("curves.html", {{"parts", parts}});
  page.json = data.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return page;
}

}  // namespace ucas
