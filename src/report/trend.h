// What became of a number over a training: it rose, stayed, or fell from its best, and since when.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "records/run/steps.h"
#include "stats/spread.h"

namespace ucas {

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
constexpr std::array<const char*, 4> names(Course) { return {"unknown", "rose", "flat", "fell"}; }

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
// 0.03 on and from four standard errors of the difference of two windows, as the differences of neighbours tell them.
// Validations, two at least, also fell where the last lies below the first by an interval (Agresti and Caffo, as of two
// samples of so many problems) that excludes zero; fewer than four are judged by it alone.
Trend trend_of(const StepTable& table, const std::string& key);

// What a training is judged by: its reward, its accuracy, its validation.
constexpr std::array<const char*, 3> kJudged = {metric::critic_score.mean.key, metric::train_accuracy.key,
                                                metric::val_accuracy.key};
// One of these rose and none fell.
bool has_risen(const StepTable& table);

}  // namespace ucas
