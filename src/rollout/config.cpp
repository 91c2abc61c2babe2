#include "rollout/config.h"

#include "base/str.h"

namespace ucas {

void TrainRolloutConfig::fields(Fields& f) {
  f.field("n", n, Range{1, 1 << 16}, "responses per prompt, the group size G", Effect::size);
  f.field("temperature", temperature, Range{1e-2, 100},
          "sampling temperature; at 0.01, f32 rounding of logits shifts log-probs by 0.001 and more");
  f.field("top_p", top_p, Range{1e-6, 1}, "probability mass of nucleus sampling; 1 = off");
  f.field("response_length", response_length, Range{1, 1 << 20},
          "maximum response length in tokens, end token and inserts of an environment included", Effect::size);
  f.field(
      "stop", stop,
      "stop strings besides the stop tokens, such as \"</answer>\"; a response ends with the token that completes one");
  environment.fields(f);
  f.field("max_slots", max_slots, Range{0, 1 << 16},
          "maximum sequences decoded at once; 0 = chosen from model, lengths and device", Effect::bookkeeping);
  f.choice(
      "old_log_prob", old_log_prob,
      "source of old log-probs: sampler (1/16 of the values checked bit for bit on the CPU), or trainer (recomputed)",
      Effect::bookkeeping);
  f.field("servers", servers,
          "addresses of vLLM servers that sample in the place of this program, such as http://127.0.0.1:8000 "
          "(docs/scale.md)",
          Effect::bookkeeping);
  f.field("retries", retries, Range{0, 1000}, "retries of one failed request to a server", Effect::bookkeeping);
  f.field("request_timeout", request_timeout, Range{0.05, 86400},
          "seconds until one request to a server counts as lost", Effect::bookkeeping);
  f.field("patience", patience, Range{0.1, 86400},
          "seconds without any response from servers until the run saves and stops", Effect::bookkeeping);
}

void EnvironmentConfig::fields(Fields& f) {
  f.choice("environment", kind,
           "environment that answers the model's turns; messages are inserted as context (docs/environments.md)");
  f.field("max_turns", max_turns, Range{1, 1024},
          "maximum turns of the model in an episode with an environment; an episode that asks for more is cut");
  f.choice(
      "tool_state", tool_state,
      "names between turns of the python environment: kept = a turn sees the names of earlier turns, fresh = none");
  f.field("tool_seconds", tool_seconds, Range{1, 60},
          "CPU seconds of a turn in the python environment, replayed turns included; a tool may take 10 times as long");
  f.field(
      "tool_chars", tool_chars, Range{16, 1 << 16},
      "maximum characters of an output in the python environment or of a tool; the middle of a longer one is left out");
  f.field(
      "tools", tools,
      "functions in Python that the model calls, FILE.py:NAME,NAME, or a class that answers (docs/environments.md)");
}

std::string EnvironmentConfig::name() const {
  return tools.empty() ? str("environment = \"", word_of(kind), "\"") : str("tools = ", join(tools, ","));
}

std::string EnvironmentConfig::title() const {
  if (!tools.empty()) return str("tools ", join(tools, ","), ", ", tool_chars, " characters");
  if (kind != EnvironmentKind::python) return word_of(kind);
  return str(word_of(kind), ", state ", word_of(tool_state), ", ", tool_seconds, " s, ", tool_chars, " characters");
}

}  // namespace ucas
