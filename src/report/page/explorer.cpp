#include "report/page/template.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "records/run/run_directory.h"
#include "records/run/step_data.h"
#include "report/escape.h"

namespace ucas {

namespace {

using TokenKind = TokenQuantity::Kind;
constexpr size_t kMostTraceRows = 24, kNameBytes = 60;

struct Known {
  const char* name;  // of the trace row
  bool per_token;
  const char* title;
  const char* equation;
};
// Rows that methods record, under the symbols of their articles. A row that is not listed is shown by its name.
constexpr Known kKnown[] = {
    {"A", false, "group advantage", "Eq. 3"},
    {"A", true, "advantage before it is shaped", ""},
    {"C", false, "confidence of the response", "Eq. 6"},
    {"C_hat", false, "its z-score within the group", "Eq. 7"},
    {"W", false, "weight of the response", "Eq. 8"},
    {"A_mod", false, "weighted advantage", "Eq. 8"},
    {"l_hat", true, "logit, 0 to 1 within the response", "Eq. 9"},
    {"K", true, "key-token value", ""},
    {"psi", true, "entropy bonus", ""},
    {"SE", false, "semantic entropy of the prompt", ""},
    {"scale", false, "factor of the group advantage", ""},
    {"V", true, "the critic's value before the token", ""},
    {"A_gae", true, "generalised advantage before normalisation", ""},
    {"q", true, "log-ratio of the process reward model", ""},
    {"r", true, "process reward of the token", ""},
    {"v", false, "reward of the verdict", ""},
    {"u", false, "the response's own certainty, its reward", ""},
    {"R", true, "return from the token on", ""},
};

std::vector<float> finite(const std::vector<float>& values) {
  std::vector<float> out = values;
  for (float& v : out) v = std::isfinite(v) ? v : std::nanf("");
  return out;
}

std::vector<float> exponential(const std::vector<float>& a, const std::vector<float>& less) {
  std::vector<float> out(a.size());
  for (size_t t = 0; t < a.size(); ++t) out[t] = std::exp(a[t] - (less.empty() ? 0.0f : less[t]));
  return finite(out);
}

std::vector<float> means(const StepData& data, const std::vector<float>& values) {
  std::vector<float> mean;
  for (const Response& o : data.batch.responses) {
    double sum = 0;
    for (float v : Batch::tokens(values, o)) sum += v;
    mean.push_back(o.length > 0 ? static_cast<float>(sum / static_cast<double>(o.length)) : std::nanf(""));
  }
  return mean;
}

TokenQuantity of_trace(const StepData::Signal& signal) {
  TokenQuantity q{
      visible_text(signal.name, kNameBytes), "", "", TokenKind::trace, signal.per_token, finite(signal.values), {}};
  for (const Known& known : kKnown) {
    if (signal.name != known.name || signal.per_token != known.per_token) continue;
    q.title = known.title;
    q.equation = known.equation;
  }
  return q;
}

}  // namespace

std::vector<TokenQuantity> token_quantities(const StepData& data) {
  const Batch& b = data.batch;
  std::vector<TokenQuantity> all;
  auto signal = [&](const char* symbol, const char* title, const char* equation, std::vector<float> values) {
    if (!values.empty()) all.push_back({symbol, title, equation, TokenKind::signal, true, std::move(values), {}});
  };
  auto traced = [&](const char* name) {
    return std::ranges::any_of(data.trace, [&](const StepData::Signal& s) { return s.name == name; });
  };
  signal("p", "probability, old policy", "", exponential(b.old_logprob, {}));
  signal("H", "entropy of the distribution", "", finite(b.entropy));
  signal("C_t", "confidence of the distribution", "Eq. 5", finite(b.confidence));
  signal("l", "raw logit", "Eq. 5", finite(b.logit));
  signal("p_ref", "probability, reference policy", "", exponential(b.signal("ref_logprob"), {}));
  signal("p_T", "probability, teacher", "", exponential(b.signal("teacher_logprob"), {}));
  const std::vector<float>& sampler = b.sampler_logprob();
  if (sampler.size() == b.old_logprob.size() && sampler != b.old_logprob) {
    signal("p/p_s", "trainer over sampler, 1 if they agree", "", exponential(b.old_logprob, sampler));
  }
  if (!b.rollout_whole_logprob.empty()) {
    signal("q_p", "mass that top-p and top-k kept", "", exponential(b.rollout_whole_logprob, b.rollout_logprob));
  }
  if (!traced("V")) signal("V", "the critic's value before the token", "", finite(b.signal("value")));
  if (!traced("q")) signal("q", "log-ratio of the process reward model", "", finite(b.signal("prm_logratio")));
  signal("R_kl", "KL taken off the token's reward", "", finite(b.reward_kl));
  for (size_t i = 0; i < std::min(data.trace.size(), kMostTraceRows); ++i) all.push_back(of_trace(data.trace[i]));
  const char* equation = traced("A_mod") ? "Eq. 10" : "";
  all.push_back({"A_t", "advantage, as trained on", equation, TokenKind::advantage, true, finite(data.advantage),
                 means(data, data.advantage)});
  auto update = [&](const char* symbol, const char* title, const char* of, std::vector<float> values) {
    if (!values.empty()) all.push_back({symbol, title, of, TokenKind::update, true, std::move(values), {}});
  };
  update("r_t", "ratio of the new policy to the old", "Eq. 2", finite(data.ratio));
  update("clip", "1: the clip held the token, 2: the dual clip did", "Eq. 1",
         std::vector<float>(data.clipped.begin(), data.clipped.end()));
  return all;
}

namespace {

constexpr size_t kMostSteps = 6, kMostPrompts = 8, kMostResponses = 32;  // of a run, of a step, of a prompt
constexpr int64_t kMostTokens = 2048;                                    // of a response
constexpr size_t kLongestPiece = 60, kLongestText = 4000;

// Four significant digits: what the page shows.
OrderedJson short_number(float value) {
  if (!std::isfinite(value)) return nullptr;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", static_cast<double>(value));
  return std::strtod(text, nullptr);
}

// A list, or one number if all are equal.
OrderedJson short_numbers(std::span<const float> values) {
  if (!values.empty() && std::ranges::all_of(values, [&](float v) { return v == values[0]; }))
    return short_number(values[0]);
  OrderedJson list = OrderedJson::array();
  for (float value : values) list.push_back(short_number(value));
  return list;
}

// The members of a step but its prompts.
std::string head_json(const StepData& data, const std::vector<TokenQuantity>& quantities) {
  OrderedJson rows = OrderedJson::array();
  for (const TokenQuantity& q : quantities) {
    const char* kinds[] = {"signal", "trace", "advantage", "update"};
    rows.push_back({{"symbol", q.symbol},
                    {"title", q.title},
                    {"equation", q.equation},
                    {"kind", kinds[static_cast<int>(q.kind)]},
                    {"token", q.per_token}});
  }
  return str("\"step\":", data.step, ",\"quantities\":", json_text(rows));
}

OrderedJson explorer_response(const StepData& data, const std::vector<TokenQuantity>& quantities, size_t i) {
  const Response& o = data.batch.responses[i];
  const auto first = static_cast<size_t>(o.first), shown = static_cast<size_t>(std::min(o.length, kMostTokens));
  OrderedJson json = {{"sample", o.sample},
                      {"verdict", name_of(o.verdict.kind)},
                      {"answer", visible_text(o.verdict.answer, 200)},
                      {"finished", o.finished},
                      {"length", o.length},
                      {"reward", short_number(o.reward)}};
  for (const char* list : {"id", "text", "inserts", "values", "mean"}) json[list] = OrderedJson::array();
  for (size_t t = first; t < first + shown; ++t) {
    json["id"].push_back(data.batch.token[t]);
    if (!data.piece.empty()) json["text"].push_back(visible_text(data.piece[t], kLongestPiece));
  }
  for (const auto& insert : o.inserts) {
    json["inserts"].push_back(OrderedJson::array({insert.at, visible_text(insert.text, kLongestPiece)}));
  }
  for (const TokenQuantity& q : quantities) {
    const std::span<const float> values = q.values;
    json["values"].push_back(short_numbers(q.per_token ? values.subspan(first, shown) : values.subspan(i, 1)));
    json["mean"].push_back(q.mean.empty() ? OrderedJson(nullptr) : short_number(q.mean[i]));
  }
  return json;
}

std::string prompt_json(const StepData& data, const std::vector<TokenQuantity>& quantities, size_t g) {
  const Group& group = data.batch.groups[g];
  OrderedJson json = {
      {"problem", visible_text(data.problem[g], 200)},
      {"question", data.question.empty() ? "" : visible_text(data.question[g], kLongestText)},
      {"gold", OrderedJson::array()},
      {"right", std::ranges::count_if(data.batch.of(group),
                                      [](const Response& o) { return o.verdict.kind == VerdictKind::equal; })},
      {"count", group.count},
      {"responses", OrderedJson::array()}};
  for (size_t a = 0; !data.gold.empty() && a < std::min<size_t>(data.gold[g].size(), 8); ++a) {
    json["gold"].push_back(visible_text(data.gold[g][a], 200));
  }
  for (size_t i = 0; i < std::min(static_cast<size_t>(group.count), kMostResponses); ++i) {
    json["responses"].push_back(explorer_response(data, quantities, static_cast<size_t>(group.first) + i));
  }
  return json_text(json);
}

// Prompts that were answered right and wrong teach the most; in order of the file otherwise.
std::vector<size_t> chosen_prompts(const StepData& data) {
  std::vector<size_t> order;
  for (bool mixed : {true, false}) {
    for (size_t g = 0; g < data.batch.groups.size(); ++g) {
      auto o = data.batch.of(data.batch.groups[g]);
      auto right = std::ranges::count_if(o, [](const Response& r) { return r.verdict.kind == VerdictKind::equal; });
      if (mixed == (right > 0 && right < static_cast<int64_t>(o.size()))) order.push_back(g);
    }
  }
  order.resize(std::min(order.size(), kMostPrompts));
  return order;
}

// The first, the last, and evenly between.
std::vector<int64_t> spread(const std::vector<int64_t>& steps) {
  if (steps.size() <= kMostSteps) return steps;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < kMostSteps; ++i) chosen.push_back(steps[i * (steps.size() - 1) / (kMostSteps - 1)]);
  return chosen;
}

// What came of the steps, in numbers.
struct ExplorerCount {
  int64_t saved = 0, steps = 0, prompts = 0, of_prompts = 0;
};

// The step with as many prompts as `budget` bytes hold; "" where that is none.
std::string explorer_step(const std::string& file, size_t budget, ExplorerCount& count) {
  const StepData data = read_step_data(file);
  const std::vector<TokenQuantity> quantities = token_quantities(data);
  std::vector<std::string> prompts;
  for (size_t g : chosen_prompts(data)) {
    std::string prompt = prompt_json(data, quantities, g);
    if (prompt.size() > budget) continue;
    budget -= prompt.size();
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) return "";
  ++count.steps;
  count.prompts += std::ssize(prompts);
  count.of_prompts += data.groups_of_step;
  return str("{", head_json(data, quantities), ",\"prompts\":[", join(prompts, ","), "]}");
}

}  // namespace

ExplorerPage explorer_page(const std::vector<RunGroup>& groups, size_t budget) {
  std::vector<std::pair<std::string, std::vector<std::string>>> files;  // of each run: its head, its steps
  ExplorerCount count;
  size_t shown = 0;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      const std::vector<int64_t> steps = steps_with_signals(run->path);
      if (steps.empty()) continue;
      count.saved += std::ssize(steps);
      files.emplace_back(str("{\"name\":", json_text(visible_text(run->name, 200)),
                             ",\"title\":", json_text(visible_text(group.title, 200)), ",\"steps\":["),
                         std::vector<std::string>());
      for (int64_t step : spread(steps)) {
        files.back().second.push_back(path_join(path_join(run->path, "signals"), step_name(step) + ".jsonl"));
      }
      shown += files.back().second.size();
    }
  }
  if (files.empty()) return {};
  std::vector<std::string> runs;
  for (const auto& [head, steps] : files) {
    std::vector<std::string> texts;
    for (const std::string& file : steps) {
      if (std::string text = explorer_step(file, budget / shown, count); !text.empty())
        texts.push_back(std::move(text));
    }
    if (!texts.empty()) runs.push_back(str(head, join(texts, ","), "]}"));
  }
  ExplorerPage page;
  if (!runs.empty()) page.json = str("{\"runs\":[", join(runs, ","), "]}");
  page.html = render("tokens.html", {{"nothing_fits", runs.empty()},
                                     {"steps", count.steps > 0 ? str(count.steps) : ""},
                                     {"saved", count.saved},
                                     {"prompts", count.prompts},
                                     {"of_prompts", count.of_prompts},
                                     {"most_responses", kMostResponses},
                                     {"most_tokens", kMostTokens}});
  return page;
}

}  // namespace ucas
