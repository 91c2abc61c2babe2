// rollouts/step-NNNNNNN.jsonl: a few responses of a step as text, written by train/loop/step_record, read by the
// report.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/verdict.h"
#include "results/stats/spread.h"

namespace ucas {

// Inserts of an environment (core/batch.h) as every file of a run has them: [{"at": 9, "token": [5, 7], "text":
// "408"}].

class JsonObject;

std::string inserts_json(std::span<const Insert> inserts);
// "inserts" of a row, which may be absent, of a response of so many tokens. Refuses those that are not ascending, have
// no tokens, or are before the first or after the last token.
std::vector<Insert> inserts_of(const JsonObject& row, int64_t tokens);

class JsonObject;

struct StoredResponse {
  int64_t step = 0, sample = 0, tokens = -1;  // tokens -1: not recorded
  std::string problem, source, prompt, response, answer, reason;
  std::vector<std::string> gold;
  std::optional<VerdictKind> verdict;
  bool finished = true;
  std::vector<Insert> inserts;  // of an environment, and with them all that was read and written
  std::string transcript;
  double score = kUnknown, reward = kUnknown, advantage = kUnknown;  // advantage: mean over its tokens
};

std::string rollout_line(const StoredResponse& response);  // with its newline; broken UTF-8 becomes U+FFFD
// A torn last line is left out and remarked.
std::vector<StoredResponse> read_rollouts(const std::string& path, std::vector<std::string>& remarks);

// "verdict" of a row, which may be absent. Any other name is refused.
std::optional<VerdictKind> verdict_of(const JsonObject& row);

}  // namespace ucas
