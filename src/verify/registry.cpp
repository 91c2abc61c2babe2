#include "verify/registry.h"

namespace ucas {

namespace {

#define UCAS_ROW(kind, name) make_##kind##_grader,
constexpr std::unique_ptr<Grader> (*kMakers[])(const GraderSetup& setup) = {UCAS_GRADERS(UCAS_ROW)};
#undef UCAS_ROW

}  // namespace

std::unique_ptr<Grader> make_grader(GraderKind kind, const GraderSetup& setup) {
  return kMakers[static_cast<size_t>(kind)](setup);
}

void number_classes(std::span<Verdict> group,
                    const std::function<int32_t(const std::string& answer, int32_t next)>& class_of) {
  int32_t next = 0, right = -1;
  for (Verdict& verdict : group) {
    verdict.answer_class = -1;
    if (verdict.answer.empty() || verdict.kind == VerdictKind::over_budget) continue;
    if (verdict.kind == VerdictKind::equal && right < 0) right = next++;
    verdict.answer_class = verdict.kind == VerdictKind::equal ? right : class_of(verdict.answer, next);
    if (verdict.answer_class == next) ++next;
  }
}

}  // namespace ucas
