// Which measure of certainty would protect rare right responses, and which would shrink them? Stage 1 of UCAS (Eq. 6-8)
// weighs the reward of a right response by W = exp(-alpha C_hat), C_hat the z-score of its confidence within its group:
// below 1 where C_hat > 0. Exploration is kept alive only by a confidence that is low where a right response is rare.
// Whether it is can be seen on any model's samples before a training. Fed by the stored samples of an evaluation; for
// `ucas diagnose`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "records/evaluation.h"
#include "results/stats/spread.h"

namespace ucas {

// Of a response: C(o|q) of Eq. 6, the mean of ln pi over its tokens, minus their mean entropy, the share of its group
// with the same answer, its number of tokens, which may explain the others.
enum class Signal { kl_uniform, logprob, neg_entropy, self_consistency, length };
constexpr size_t kSignals = 5;
constexpr std::array<const char*, kSignals> names(Signal) {
  return {"kl_uniform", "logprob", "neg_entropy", "self_consistency", "length"};
}

struct SignalledResponse {
  std::string opening;  // its strategy: how it begins
  bool right = false;
  std::array<double, kSignals> signal{};  // by Signal; unknown where not recorded
};
struct SignalledGroup {
  std::string problem;                       // groups of one problem are one case for the intervals
  std::vector<SignalledResponse> responses;  // with at least one token each
};

// By what a right response is rare in its group:
//   opening   few responses begin as it does: strategies by their first words
//   accuracy  few responses of its group are right
//   logprob   it is among the least likely right ones of its group, by the mean of ln pi over its tokens
enum class RareBy { opening, accuracy, logprob };
constexpr std::array<const char*, 3> names(RareBy) { return {"opening", "accuracy", "logprob"}; }

struct DiagnosisOptions {
  double rare = 0.25;  // rare is at most this share: of its group's responses, or (logprob) of the right ones
  RareBy rare_by = RareBy::opening;
  double level = 0.95;
};

// What stage 1 would do to rare right responses: z below 0, above 0, or not significantly different from 0.
enum class RareEffect { unclear, protects, shrinks };
constexpr std::array<const char*, 3> names(RareEffect) { return {"-", "protects", "shrinks"}; }

struct SignalDiagnosis {
  Signal signal = Signal::kl_uniform;
  int64_t groups = 0;                 // mixed groups in which it is known
  double auroc = kUnknown;            // right against wrong within a group, mean over groups
  double z_right = kUnknown;          // of right responses, mean over problems
  Figure z_rare;                      // of rare right responses, mean over problems: Student's t
  int64_t rare = 0, rare_over = 0;    // rare right responses, and those of them with z > 0
  int64_t right = 0, right_over = 0;  // all right responses: what being right alone does
  bool selects = false;               // rare responses were chosen by this very signal: its z says nothing
  RareEffect effect = RareEffect::unclear;
};

struct Diagnosis {
  int64_t groups = 0, mixed = 0;         // with right and wrong responses: the others have no advantage to shape
  int64_t problems = 0;                  // of the mixed groups
  int64_t responses = 0;                 // of the mixed groups
  int64_t rare = 0, rare_problems = 0;   // rare right responses there, and their problems
  std::vector<SignalDiagnosis> signals;  // those that are known anywhere
  // Fewer say nothing reliable: then every effect is unclear.
  static constexpr int64_t kFewestRare = 20, kFewestProblems = 5;
  bool enough() const { return rare >= kFewestRare && rare_problems >= kFewestProblems; }
};
Diagnosis diagnose(std::span<const SignalledGroup> groups, const DiagnosisOptions& options);

// The first `words` words of a text, one space between.
std::string opening_of(const std::string& text, int64_t words);

// One group a problem, of its stored samples; problems with fewer than two are left out. Log-probs are of the
// distribution sampled from, as the evaluation has them.
std::vector<SignalledGroup> signalled_groups(std::span<const ProblemRow> rows, int64_t words);

// What `ucas diagnose` prints.
struct DiagnosisReport {
  std::string source;                // what was read, for people
  std::vector<std::string> remarks;  // what is missing
  int64_t opening = 1;               // words that make a strategy
  DiagnosisOptions options;
  Diagnosis found;
};

std::string diagnosis_text(const DiagnosisReport& report);

}  // namespace ucas
