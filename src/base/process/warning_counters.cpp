#include "base/process/warning_counters.h"

#include <array>
#include <atomic>

#include "base/str.h"

namespace ucas {

namespace {

constexpr struct {
  const char *one, *many;
} kWarningWords[] = {
#define UCAS_ROW(name, one, many) {one, many},
    UCAS_WARNINGS(UCAS_ROW)
#undef UCAS_ROW
};

std::array<std::atomic<int64_t>, std::size(kWarningWords)> counts{};

}  // namespace

void count_warning(Warning what, int64_t count) { counts[static_cast<size_t>(what)] += count; }

int64_t warnings_counted(Warning what) { return counts[static_cast<size_t>(what)]; }

std::string warnings_in_words() {
  std::vector<std::string> parts;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t n = counts[i];
    if (n > 0) parts.push_back(str(grouped(n), " ", n == 1 ? kWarningWords[i].one : kWarningWords[i].many));
  }
  return parts.empty() ? "" : kWarningsBegin + join(parts, ", ");
}

}  // namespace ucas
