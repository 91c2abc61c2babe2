#include "report/page/explorer.h"

#include <algorithm>
#include <charconv>
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
#include "report/page/template.h"

namespace ucas {

namespace {

using TokenKind = TokenQuantity::Kind;
constexpr size_t kMostTraceRows = 24, kMostMethods = 24, kNameBytes = 60;

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

std::vector<TokenQuantity> token_quantities(const StepData& data, std::span<const MethodAdvantages> methods) {
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
  if (!b.ref_logprob.empty()) signal("p_ref", "probability, reference policy", "", exponential(b.ref_logprob, {}));
  if (!b.teacher_logprob.empty()) signal("p_T", "probability, teacher", "", exponential(b.teacher_logprob, {}));
  const std::vector<float>& sampler = b.sampler_logprob();
  if (sampler.size() == b.old_logprob.size() && sampler != b.old_logprob) {
    signal("p/p_s", "trainer over sampler, 1 if they agree", "", exponential(b.old_logprob, sampler));
  }
  if (!b.rollout_whole_logprob.empty()) {
    signal("q_p", "mass that top-p and top-k kept", "", exponential(b.rollout_whole_logprob, b.rollout_logprob));
  }
  if (!traced("V")) signal("V", "the critic's value before the token", "", finite(b.value));
  if (!traced("q")) signal("q", "log-ratio of the process reward model", "", finite(b.prm_logratio));
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
  for (size_t i = 0; i < std::min(methods.size(), kMostMethods); ++i) {
    const MethodAdvantages& m = methods[i];
    std::string preset = m.preset.empty() ? "" : ", preset " + visible_text(m.preset, kNameBytes);
    all.push_back({visible_text(m.title, kNameBytes), str("advantage under ", visible_text(m.name, kNameBytes), preset),
                   "", TokenKind::method, true, finite(m.advantage), means(data, m.advantage)});
  }
  return all;
}

namespace {

constexpr size_t kMostSteps = 6, kMostPrompts = 8, kMostResponses = 32;  // of a run, of a step, of a prompt
constexpr int64_t kMostTokens = 2048;                                    // of a response
constexpr size_t kLongestPiece = 60, kLongestText = 4000;
constexpr size_t kHeld = size_t{24} << 20;  // bytes of JSON kept before the page's budget is known

std::string quoted(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// Four significant digits: what the page shows.
void append_short(std::string& out, float value) {
  if (std::isnan(value)) {
    out += "null";
    return;
  }
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4);
  out.append(text, error == std::errc() ? end : text);
}

// A list, or one number if all are equal.
void append_values(std::string& out, std::span<const float> values) {
  bool level = !values.empty() && std::ranges::all_of(values, [&](float v) { return v == values[0]; });
  if (level) return append_short(out, values[0]);
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append_short(out, values[i]);
  }
  out += ']';
}

std::string head_json(const StepData& data, const std::vector<TokenQuantity>& quantities) {
  OrderedJson rows = OrderedJson::array();
  for (const TokenQuantity& q : quantities) {
    const char* kinds[] = {"signal", "trace", "advantage", "update", "method"};
    rows.push_back({{"symbol", q.symbol},
                    {"title", q.title},
                    {"equation", q.equation},
                    {"kind", kinds[static_cast<int>(q.kind)]},
                    {"token", q.per_token}});
  }
  return str("\"step\":", data.step,
             ",\"quantities\":", rows.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

void append_response(std::string& out, const StepData& data, const std::vector<TokenQuantity>& quantities, size_t i) {
  const Response& o = data.batch.responses[i];
  auto first = static_cast<size_t>(o.first), shown = static_cast<size_t>(std::min(o.length, kMostTokens));
  out += str("{\"sample\":", o.sample, ",\"verdict\":\"", name_of(o.verdict.kind),
             "\",\"answer\":", quoted(visible_text(o.verdict.answer, 200)), ",\"finished\":", o.finished,
             ",\"length\":", o.length, ",\"reward\":");
  append_short(out, std::isfinite(o.reward) ? o.reward : std::nanf(""));
  out += ",\"id\":[";
  for (size_t t = first; t < first + shown; ++t) out += str(t > first ? "," : "", data.batch.token[t]);
  out += "],\"text\":[";
  for (size_t t = first; t < first + shown && !data.piece.empty(); ++t) {
    out += str(t > first ? "," : "", quoted(visible_text(data.piece[t], kLongestPiece)));
  }
  if (!o.inserts.empty()) {
    out += "],\"inserts\":[";
    for (size_t i = 0; i < o.inserts.size(); ++i) {
      out +=
          str(i > 0 ? "," : "", "[", o.inserts[i].at, ",", quoted(visible_text(o.inserts[i].text, kLongestPiece)), "]");
    }
  }
  out += "],\"values\":[";
  for (size_t q = 0; q < quantities.size(); ++q) {
    if (q > 0) out += ',';
    std::span<const float> values = quantities[q].values;
    append_values(out, quantities[q].per_token ? values.subspan(first, shown) : values.subspan(i, 1));
  }
  out += "],\"mean\":[";
  for (size_t q = 0; q < quantities.size(); ++q) {
    if (q > 0) out += ',';
    append_short(out, quantities[q].mean.empty() ? std::nanf("") : quantities[q].mean[i]);
  }
  out += "]}";
}

std::string prompt_json(const StepData& data, const std::vector<TokenQuantity>& quantities, size_t g) {
  const Group& group = data.batch.groups[g];
  auto count = std::min(static_cast<size_t>(group.count), kMostResponses);
  int64_t right = 0;
  for (const Response& o : data.batch.of(group)) right += o.verdict.kind == VerdictKind::equal;
  std::string gold;
  for (size_t a = 0; !data.gold.empty() && a < std::min<size_t>(data.gold[g].size(), 8); ++a) {
    gold += str(a > 0 ? "," : "", quoted(visible_text(data.gold[g][a], 200)));
  }
  std::string out =
      str("{\"problem\":", quoted(visible_text(data.problem[g], 200)),
          ",\"question\":", quoted(data.question.empty() ? "" : visible_text(data.question[g], kLongestText)),
          ",\"gold\":[", gold, "],\"right\":", right, ",\"count\":", group.count, ",\"responses\":[");
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    append_response(out, data, quantities, static_cast<size_t>(group.first) + i);
  }
  return out + "]}";
}

// Of one response: the mean over its tokens of the distance between the highest and the lowest advantage that a method
// gives the token, as a share of the largest of all these advantages.
double distance_of_methods(const Response& o, const std::vector<TokenQuantity>& quantities) {
  double sum = 0, most = 0;
  size_t methods = 0;
  for (const TokenQuantity& q : quantities) {
    methods += q.kind == TokenQuantity::Kind::advantage || q.kind == TokenQuantity::Kind::method;
  }
  if (methods < 2 || o.length == 0) return 0;
  for (int64_t t = o.first; t < o.first + o.length; ++t) {
    double low = kUnknown, high = kUnknown;
    for (const TokenQuantity& q : quantities) {
      if (!q.per_token) continue;
      const double v = q.values[t];
      const bool advantage = q.kind == TokenQuantity::Kind::advantage || q.kind == TokenQuantity::Kind::method;
      if (!advantage || std::isnan(v)) continue;
      low = std::isnan(low) ? v : std::min(low, v);
      high = std::isnan(high) ? v : std::max(high, v);
      most = std::max(most, std::fabs(v));
    }
    if (!std::isnan(low)) sum += high - low;
  }
  return most > 0 ? sum / most / static_cast<double>(o.length) : 0;
}

ExplorerPrompt prompt_of(const StepData& data, const std::vector<TokenQuantity>& quantities, size_t g) {
  ExplorerPrompt prompt{prompt_json(data, quantities, g), 0, 0};
  const Group& group = data.batch.groups[g];
  for (size_t i = 0; i < std::min(static_cast<size_t>(group.count), kMostResponses); ++i) {
    const double differ = distance_of_methods(data.batch.responses[group.first + i], quantities);
    if (differ <= prompt.differ) continue;
    prompt.differ = differ;
    prompt.response = i;
  }
  return prompt;
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

void read_step(const std::string& file, size_t run, size_t& held, Explorer& explorer) {
  StepData data = read_step_data(file);
  std::vector<MethodAdvantages> methods;
  if (std::string beside = step_methods_file(file); exists(beside)) {
    try {
      methods = read_step_methods(beside, data, hash_of_file(file));
    } catch (const Error& error) {
      explorer.remarks.push_back(error.what());
    }
  }
  std::vector<TokenQuantity> quantities = token_quantities(data, methods);
  ExplorerStep step{run, head_json(data, quantities), data.groups_of_step, {}};
  for (size_t g : chosen_prompts(data)) {
    if (held > kHeld) break;
    step.prompts.push_back(prompt_of(data, quantities, g));
    held += step.prompts.back().json.size();
  }
  if (!step.prompts.empty()) explorer.steps.push_back(std::move(step));
}

// How many prompts of each step fit into the budget, taken in turn: first every step's first, then every second ...
std::vector<size_t> share_out(const Explorer& explorer, size_t budget) {
  std::vector<size_t> taken(explorer.steps.size(), 0);
  size_t used = 0;
  for (size_t rank = 0; rank < kMostPrompts; ++rank) {
    for (size_t s = 0; s < explorer.steps.size(); ++s) {
      const auto& prompts = explorer.steps[s].prompts;
      if (rank >= prompts.size() || taken[s] < rank || used + prompts[rank].json.size() > budget) continue;
      used += prompts[rank].json.size();
      taken[s] = rank + 1;
    }
  }
  return taken;
}

}  // namespace

Explorer read_explorer(const std::vector<RunGroup>& groups) {
  Explorer explorer;
  size_t held = 0;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      std::vector<int64_t> steps = steps_with_signals(run->path);
      if (steps.empty()) continue;
      explorer.saved_steps += static_cast<int64_t>(steps.size());
      explorer.runs.emplace_back(run->name, group.title);
      for (int64_t step : spread(steps)) {
        std::string file = path_join(path_join(run->path, "signals"), step_name(step) + ".jsonl");
        read_step(file, explorer.runs.size() - 1, held, explorer);
      }
    }
  }
  return explorer;
}

ExplorerPage explorer_page(const Explorer& explorer, size_t budget) {
  ExplorerPage page;
  std::vector<size_t> taken = share_out(explorer, budget);
  int64_t steps = 0, prompts = 0, of_prompts = 0, shown_runs = 0;
  std::string runs, opens;
  double differ = 0;
  for (size_t r = 0; r < explorer.runs.size(); ++r) {
    std::string list;
    int64_t step_of_run = 0;
    for (size_t s = 0; s < explorer.steps.size(); ++s) {
      const ExplorerStep& step = explorer.steps[s];
      if (step.run != r || taken[s] == 0) continue;
      list += str(list.empty() ? "" : ",", "{", step.head, ",\"prompts\":[");
      for (size_t p = 0; p < taken[s]; ++p) {
        const ExplorerPrompt& prompt = step.prompts[p];
        list += (p > 0 ? "," : "") + prompt.json;
        if (prompt.differ <= differ) continue;
        differ = prompt.differ;
        opens = str(",\"opens\":{\"run\":", shown_runs, ",\"step\":", step_of_run, ",\"prompt\":", p,
                    ",\"response\":", prompt.response, "}");
      }
      list += "]}";
      ++step_of_run;
      ++steps;
      prompts += static_cast<int64_t>(taken[s]);
      of_prompts += step.prompts_of_step;
    }
    if (list.empty()) continue;
    ++shown_runs;
    const auto& [name, title] = explorer.runs[r];
    runs += str(runs.empty() ? "" : ",", "{\"name\":", quoted(visible_text(name, 200)),
                ",\"title\":", quoted(visible_text(title, 200)), ",\"steps\":[", list, "]}");
  }
  if (explorer.empty()) return page;
  if (!runs.empty()) page.json = str("{\"runs\":[", runs, "]", opens, "}");
  page.html = render("tokens.html", {{"nothing_fits", runs.empty()},
                                     {"steps", steps > 0 ? str(steps) : ""},
                                     {"saved", explorer.saved_steps},
                                     {"prompts", prompts},
                                     {"of_prompts", of_prompts},
                                     {"most_responses", kMostResponses},
                                     {"most_tokens", kMostTokens},
                                     {"remarks", explorer.remarks}});
  return page;
}

}  // namespace ucas
