#include "train/optimizer/skipped_updates.h"

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {
constexpr int64_t kMostInARow = 3;
constexpr const char *kTotal = "skipped_updates", *kInARow = "nonfinite_streak";
}  // namespace

void SkippedUpdates::note(bool applied, const std::string& where, const std::string& whose, const std::string& advice) {
  in_a_row = applied ? 0 : in_a_row + 1;
  if (applied) return;
  ++total;
  ucas::count_warning(Warning::update);
  warn(str(where, ": ", whose, " is not finite; update skipped (", total, " so far)"));
  if (in_a_row < kMostInARow) return;
  throw Error(ErrorKind::numeric,
              str(where, ": ", whose, " was not finite in ", kMostInARow, " updates in a row; ", advice), kNumeric);
}

std::map<std::string, double> SkippedUpdates::state() const {
  return {{kTotal, static_cast<double>(total)}, {kInARow, static_cast<double>(in_a_row)}};
}

void SkippedUpdates::restore(const std::map<std::string, double>& state) {
  auto saved = [&](const char* key) {
    auto found = state.find(key);
    return found == state.end() ? int64_t{0} : static_cast<int64_t>(found->second);
  };
  total = saved(kTotal);
  in_a_row = saved(kInARow);
}

}  // namespace ucas
