// What can go wrong in a training: eight signs, a table that is data (assets/signs.toml), and the one engine that looks
// for them in the numbers of a run. The report's alarms, the terminal and `ucas diagnose` read it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/metrics.h"
#include "records/run/steps.h"
#include "results/stats/spread.h"

namespace ucas {

enum class Sign : uint8_t {
  entropy_collapse,
  dead_groups,
  no_right_answer,
  length_clipping,
  unparseable,
  mismatch,
  unstable_updates,
  validation_fell
};
constexpr std::array<const char*, 8> names(Sign) {
  return {"entropy_collapse", "dead_groups", "no_right_answer",  "length_clipping",
          "unparseable",      "mismatch",    "unstable_updates", "validation_fell"};
}

// When a number is a sign.
enum class SignRuleKind : uint8_t {
  none,
  above,        // mean of the size of the last ten over the limit, and still
  under_first,  // under so many times the first
  ever,         // one step beyond the limit is enough
  counter,      // it only grows; 0 is healthy
  never_right,  // 0 for so many steps, though answers were graded
  not_finite,   // any number of any step
  fell          // from its best (Trend, below)
};
constexpr std::array<const char*, 8> names(SignRuleKind) {
  return {"none", "above", "under_first", "ever", "counter", "never_right", "not_finite", "fell"};
}

struct SignRule {
  SignRuleKind kind = SignRuleKind::none;
  std::string key, words;  // of core/metrics.h; what it counts
  double limit = 0;
  void fields(Fields& f);
};

// Which stored responses show it.
enum class ShownBy : uint8_t { none, cut, unreadable, wrong, paid_wrong };
constexpr std::array<const char*, 5> names(ShownBy) { return {"none", "cut", "unreadable", "wrong", "paid_wrong"}; }

struct SignRow {
  Sign sign{};
  std::string title, meaning;
  std::string easy;                // what to say instead while the reward has risen and stays: then it is a note
  std::vector<std::string> also;   // numbers that are shown with it
  std::vector<std::string> tries;  // "option: what to do with it"
  ShownBy responses = ShownBy::none;
  std::array<SignRule, 3> rules;  // one is enough
  void fields(Fields& f);
  std::string advice() const;  // meaning and tries, in sentences
};
std::span<const SignRow> sign_rows();  // in the order of Sign
inline const SignRow& row_of(Sign sign) { return sign_rows()[static_cast<size_t>(sign)]; }
// When it is active, in Markdown: "mean of the last 10 `train/dead_groups` above 50 %".
std::string when_of(const SignRow& row);

struct FoundSign {
  const SignRow* row = nullptr;
  const SignRule* rule = nullptr;  // the first active one
  double since = 0;                // the step
  bool at_once = false;            // it happened at that step; otherwise it is active
  bool note = false;               // not harmful here
  std::string what;                // the figures, in words
  std::string advice() const { return note ? row->easy : row->advice(); }  // what it means and what to do
};

struct Signs {
  std::vector<FoundSign> found;              // in the order of the table
  std::vector<const SignRow*> quiet, blind;  // looked for in vain; of what the run has no numbers for
};
Signs find_signs(const StepTable& table);

constexpr size_t kSignWindow = 10;  // steps over which shares are averaged

// What became of a number over a training: it rose, stayed, or fell from its best, and since when.

// The known values of one column, with their steps.
struct KnownSteps {
  std::vector<double> step, value;
  size_t size() const { return value.size(); }
  // Mean of the last `count` values up to index i, that one included.
  double trailing(size_t i, size_t count) const;
  // Mean of the `count` values before index i, and of those from it on to the end, at most the last `count`.
  double before(size_t i, size_t count) const;
  double after(size_t i, size_t count) const;
};
KnownSteps series_of(const StepTable& table, const std::string& key);  // with a *: the mean of the columns that fit

enum class Course : uint8_t { unknown, rose, flat, fell };

struct Trend {
  std::string key;
  Course course = Course::unknown;
  double first = kUnknown, best = kUnknown, last = kUnknown;  // means over a window
  double best_step = kUnknown;                                // the last step of that window
  double since = kUnknown;                                    // fell: the first step after which it stayed below
  double first_step = kUnknown, last_step = kUnknown;         // of few validations: from when to when,
  double low = kUnknown, high = kUnknown;                     // and the 95 % interval of last - first, where known
};
// Over windows of a fifth of the values, at most ten; at least four values, otherwise unknown. A difference counts from
// 0.03 on and from four standard errors of the difference of two windows, as the differences of neighbours give them.
// Validations, two at least, also fell where the last is below the first by an interval (Agresti and Caffo, as of two
// samples of so many problems) that excludes zero; fewer than four are judged by it alone.
Trend trend_of(const StepTable& table, const std::string& key);

// What a training is judged by: its reward, its accuracy, its validation.
constexpr std::array<const char*, 3> kJudged = {metric::critic_score.mean.key, metric::train_accuracy.key,
                                                metric::val_accuracy.key};
// One of these rose and none fell.
bool has_risen(const StepTable& table);

}  // namespace ucas
