// Options [rollout]: how many responses to a prompt, how they are sampled, and by whom.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "rollout/sampling/config.h"

// Options of multi-turn rollouts, in [rollout] and of `ucas evaluate`: which environment answers the model, and for how
// many turns. An environment is a row here and a file in rollout/environment: X(name, name in options).
#define UCAS_ENVIRONMENTS(X)  \
  X(calculator, "calculator") \
  X(python, "python")

namespace ucas {

#define UCAS_ENVIRONMENT_KIND(kind, name) kind,
enum class EnvironmentKind : uint8_t { none, UCAS_ENVIRONMENTS(UCAS_ENVIRONMENT_KIND) };
#undef UCAS_ENVIRONMENT_KIND

#define UCAS_ENVIRONMENT_NAME(kind, name) name,
constexpr auto names(EnvironmentKind) {
  return std::to_array<const char*>({"none", UCAS_ENVIRONMENTS(UCAS_ENVIRONMENT_NAME)});
}
#undef UCAS_ENVIRONMENT_NAME

// What a program of one turn sees of those before it: the names they left, or nothing.
enum class ToolState { kept, fresh };
constexpr std::array<const char*, 2> names(ToolState) { return {"kept", "fresh"}; }

struct EnvironmentConfig {
  EnvironmentKind kind = EnvironmentKind::none;
  int64_t max_turns = 4;
  ToolState tool_state = ToolState::kept;
  int64_t tool_seconds = 2, tool_chars = 2000;
  std::vector<std::string> tools;  // of the user's own, in the place of a row
  void fields(Fields& f);
  bool some() const { return kind != EnvironmentKind::none || !tools.empty(); }
  std::string name() const;   // what chose it, for messages: environment = "python"
  std::string title() const;  // "python, state kept, 2 s, 2000 characters": all that decides what it says
};

// Whose figures of the sampled tokens are the old policy's: the sampler's, which on the CPU are the trainer's bit for
// bit, or those of a pass of the trainer over all of them.
enum class OldPolicy { sampler, trainer };
constexpr std::array<const char*, 2> names(OldPolicy) { return {"sampler", "trainer"}; }
// Of the sampler's, the trainer computes every so many-th response, too.
inline constexpr int64_t kCheckedOf = 16;

// In flight to servers, and the largest mean |theirs - ours| of log-probs of a known text, nats.
inline constexpr int64_t kRequestsInFlight = 32;
inline constexpr double kWeightSyncTolerance = 0.05;

struct TrainRolloutConfig {
  int64_t n = 16;  // G: responses per prompt
  double temperature = 1.0;
  double top_p = 1.0;
  int64_t response_length = 1024;  // limit, end token and inserts included
  int64_t max_slots = 0;           // responses decoded at once; 0 = chosen
  OldPolicy old_log_prob = OldPolicy::sampler;
  std::vector<std::string> stop;     // texts that end a response, as stop tokens do
  std::vector<std::string> servers;  // who samples in the place of this program (rollout/served_rollout.h)
  int64_t retries = 10;              // of one request
  double request_timeout = 600;      // seconds of one try
  double patience = 300;             // seconds without any response
  EnvironmentConfig environment;     // of multi-turn episodes
  void fields(Fields& f);
  bool served() const { return !servers.empty(); }
  SamplingConfig sampling() const { return {temperature, top_p, 0, 0, response_length}; }
};

}  // namespace ucas
