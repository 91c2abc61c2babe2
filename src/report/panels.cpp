#include "report/panels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/str.h"
#include "report/escape.h"

namespace ucas {

namespace {

constexpr size_t kLongestTitle = 400;  // bytes

constexpr PanelRow kRows[] = {
    {"Learning", "val-core/*/acc/mean@1", "Held-out accuracy", "greedy responses to the validation problems", true},
    {"Learning", "critic/score/mean", "Reward", "mean verifier score of the responses trained on"},
    {"Learning", "train/accuracy", "Accuracy in training", "share of right responses among all that were sampled",
     true},
    {"Learning", "actor/entropy", "Entropy", "mean over response tokens of the policy's entropy, nats"},
    {"Learning", "response_length/mean", "Response length", "mean tokens of a response, end token included"},
    {"Diagnostics", "self_certainty/mean", "Confidence", "mean over tokens of C = logsumexp minus mean logit"},
    {"Optimisation", "actor/pg_clipfrac", "Clip fraction", "share of tokens whose ratio left the clip range", true},
    {"Optimisation", "actor/grad_norm", "Gradient norm", "global L2 norm before clipping"},
    {"Optimisation", "actor/ppo_kl", "Policy change", "mean of old minus new log-prob within the step's updates, nats"},
    {"Optimisation", "actor/pg_loss", "Policy loss", "the clipped objective that is minimised"},
    {"Optimisation", "actor/lr", "Learning rate", "of the step's updates"},
    {"Optimisation", "critic/advantages/mean", "Net advantage", "mean advantage over the step's tokens"},
    {"Health", "response_length/clip_ratio", "Truncated responses", "share that hit the length limit", true},
    {"Health", "verifier/unparseable_share", "Unparseable responses", "share without an answer that could be read",
     true},
    {"Health", "train/dead_groups", "Dead groups", "share of prompts whose responses are all right or all wrong", true},
    {"Health", "rollout/logprob_diff_max", "Sampler against trainer",
     "largest log-prob difference of a token; 0 = bit-equal"},
    {"Health", "rollout/logprob_diff_share", "Tokens beyond 1e-3",
     "share of tokens on which sampler and trainer differ", true},
    {"Health", "train/num_gen_batches", "Generation batches", "rounds of sampling that dynamic sampling needed"},
    {"Health", "train/skipped_steps", "Skipped steps", "optimizer steps left out so far"},
    {"Cost", "perf/throughput", "Tokens per second", "generated tokens of the step over its time"},
    {"Cost", "timing_s/step", "Time of a step", "seconds, everything included"},
    {"Cost", "perf/cpu_memory_used_gb", "Memory", "resident memory of the process, GB"},
};

// A method's own numbers; docs/metrics.md has the formulas.
constexpr std::pair<const char*, const char*> kDiagnostics[] = {
    {"policy/kl_uniform_p", "mean KL(U||p), how far from uniform: C minus ln V"},
    {"policy/kl_p_uniform", "mean KL(p||U) = ln V minus entropy"},
    {"ucas/weight/mean", "mean of the response weights W (Eq. 8)"},
    {"ucas/weight/std", "spread of the response weights W (Eq. 8)"},
    {"ucas/weight/min", "smallest response weight W (Eq. 8)"},
    {"ucas/weight/max", "largest response weight W (Eq. 8)"},
    {"ucas/clamped_share", "share of tokens of rewarded responses that Eq. 10 clamps to zero"},
    {"ucas/confidence/mean", "mean over tokens of C = logsumexp minus mean logit (Eq. 5)"},
    {"ucas/net_advantage/mean", "mean over groups of the net shaped advantage; shaping makes it nonzero"},
    {"ucas/net_advantage/abs_mean", "mean over groups of its size"},
};

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
  size_t star = pattern.find('*');
  if (star == std::string_view::npos) return {std::string(pattern)};
  std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    if (key.size() > before.size() + after.size() && key.starts_with(before) && key.ends_with(after))
      found.push_back(key);
    if (found.size() == kMostPanelsOfAPattern) break;
  }
  return found;
}

// t intervals of shares; without bounds where only one run has a value.
std::vector<Figure> over_seeds(const GroupSeries& own) {
  std::vector<Figure> bounds;
  for (size_t i = 0; i < own.mean.size(); ++i) {
    std::vector<double> known;
    for (const auto& run : own.runs) {
      if (!std::isnan(run[i])) known.push_back(run[i]);
    }
    Figure f = mean_estimate(known);
    bounds.push_back({f.value, std::max(0.0, f.low), std::min(1.0, f.high)});
    if (!f.bounded()) bounds.back().low = bounds.back().high = kUnknown;
  }
  return bounds;
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
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      const EvalRecord* evaluation = final_evaluation(*run, summary.data);
      for (size_t i = 0; evaluation && i < evaluation->pass_at.size(); ++i) all_k.insert(evaluation->pass_at[i].k);
    }
  }
  for (int64_t k : all_k) panel.series.x.push_back(static_cast<double>(k));
  for (size_t g = 0; g < groups.size(); ++g) {
    GroupSeries own;
    own.group = g;
    std::vector<Figure> bounds(all_k.size());
    for (const RunRecord* run : groups[g].runs) {
      const EvalRecord* evaluation = final_evaluation(*run, summary.data);
      if (!evaluation || evaluation->pass_at.empty()) continue;
      std::vector<double> values(all_k.size(), kUnknown);
      for (const FigureAt& item : evaluation->pass_at) {
        auto i = static_cast<size_t>(std::distance(all_k.begin(), all_k.find(item.k)));
        values[i] = item.share.value;
        bounds[i] = item.share;
      }
      own.runs.push_back(std::move(values));
    }
    if (own.runs.empty()) continue;
    for (size_t i = 0; i < all_k.size(); ++i) {
      std::vector<double> known;
      for (const auto& run : own.runs) {
        if (!std::isnan(run[i])) known.push_back(run[i]);
      }
      own.mean.push_back(mean_of(known));
      own.deviation.push_back(deviation_of(known));
    }
    if (own.runs.size() > 1) bounds = over_seeds(own);
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

std::string diagnostic_help(const std::string& key) {
  for (const auto& [name, help] : kDiagnostics) {
    if (key == name) return help;
  }
  return "";
}

std::vector<Panel> make_panels(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries,
                               int64_t budget) {
  std::set<std::string> keys = all_keys(groups);
  int64_t lines = 0;
  for (const RunGroup& group : groups) lines += static_cast<int64_t>(group.runs.size()) + 2;
  // A number takes about eight bytes in the page.
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
    add({"Diagnostics",
         key,
         key.substr(key.find('/') + 1),
         diagnostic_help(key),
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

std::string panels_json(const std::vector<RunGroup>& groups, const std::vector<Panel>& panels) {
  OrderedJson root;
  root["groups"] = OrderedJson::array();
  for (const RunGroup& group : groups) {
    root["groups"].push_back({{"title", visible_text(group.title, kLongestTitle)},
                              {"trained", group.trained},
                              {"color", group.color},
                              {"runs", group.runs.size()}});
  }
  root["panels"] = OrderedJson::array();
  for (const Panel& panel : panels) {
    OrderedJson item;
    item["title"] = visible_text(panel.title, kLongestTitle);
    item["share"] = panel.share;
    item["axis"] = panel.axis == Axis::samples ? "samples" : "step";
    item["xName"] = panel.x_name;
    item["x"] = numbers(panel.series.x);
    item["series"] = OrderedJson::array();
    for (size_t s = 0; s < panel.series.groups.size(); ++s) {
      const GroupSeries& own = panel.series.groups[s];
      OrderedJson line;
      line["group"] = own.group;
      line["mean"] = numbers(own.mean);
      bool bounded = s < panel.bounds.size() && !panel.bounds[s].empty();
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
    root["panels"].push_back(std::move(item));
  }
  return root.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace ucas
