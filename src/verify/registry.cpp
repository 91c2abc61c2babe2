#include "verify/registry.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/process/activity.h"
#include "base/process/machine.h"
#include "base/process/thread_pool.h"
#include "base/str.h"

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

const Grader& Graders::for_source(const std::string& source) const {
  const auto own = of.find(source);
  const auto& grader = own == of.end() ? standard : own->second;
  UCAS_CHECK(grader != nullptr, "expected one grader per data source");
  return *grader;
}

std::map<std::string, GraderKind> parse_graders(const std::vector<std::string>& by_source, const std::string& where) {
  const auto known = names(GraderKind{});
  std::map<std::string, GraderKind> kinds;
  for (const std::string& entry : by_source) {
    const size_t sign = entry.rfind('=');
    const std::string source = entry.substr(0, sign), grader = sign == std::string::npos ? "" : entry.substr(sign + 1);
    const auto found = std::ranges::find(known, grader);
    if (source.empty() || found == known.end()) {
      throw Error(ErrorKind::config, str(where, ": \"", printable(entry, 60), "\": expected SOURCE=GRADER with one of ",
                                         join(std::vector<std::string>(known.begin(), known.end()), ", ")));
    }
    if (!kinds.emplace(source, static_cast<GraderKind>(found - known.begin())).second) {
      throw Error(ErrorKind::config, str(where, ": duplicate source \"", printable(source, 60), "\""));
    }
  }
  return kinds;
}

Graders make_graders(GraderKind standard, const std::map<std::string, GraderKind>& by_source,
                     const GraderSetup& setup) {
  std::map<GraderKind, std::shared_ptr<const Grader>> made;
  const auto get = [&](GraderKind kind) {
    std::shared_ptr<const Grader>& grader = made[kind];
    if (!grader) grader = make_grader(kind, setup);
    return grader;
  };
  Graders graders{.standard = get(standard), .of = {}};
  for (const auto& [source, kind] : by_source) graders.of[source] = get(kind);
  return graders;
}

std::vector<Verdict> grade_all(const Graders& graders, std::span<const GradeItem> items) {
  std::vector<const Grader*> in_order;  // of first appearance: an order that does not depend on where they lie
  std::map<const Grader*, std::vector<size_t>> places;
  for (size_t i = 0; i < items.size(); ++i) {
    const Grader& grader = graders.for_source(items[i].problem->source);
    std::vector<size_t>& own = places[&grader];
    if (own.empty()) in_order.push_back(&grader);
    own.push_back(i);
  }
  std::vector<Verdict> verdicts(items.size());
  for (const Grader* grader : in_order) {
    const std::vector<size_t>& own = places[grader];
    const Problem& first = *items[own.front()].problem;
    const Doing doing(str("grading ", own.size(), " responses of source ", printable(first.source, 60),
                          ", the first to ", printable(first.id, 60)));
    std::vector<Answer> answers;
    for (const size_t i : own) answers.push_back({items[i].response, &items[i].problem->gold});
    if (grader->is_slow()) {  // it has threads of its own
      std::vector<Verdict> graded = grader->grade(answers);
      for (size_t i = 0; i < own.size(); ++i) verdicts[own[i]] = std::move(graded[i]);
      continue;
    }
    in_thread_pool(std::ssize(answers), 1, usable_cores(), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) verdicts[own[i]] = std::move(grader->grade({&answers[i], 1}).front());
    });
  }
  return verdicts;
}

void check_golds(const Graders& graders, std::span<const Problem> problems) {
  std::set<const Grader*> prepared;
  for (const Problem& problem : problems) {
    const Grader& grader = graders.for_source(problem.source);
    if (prepared.insert(&grader).second) grader.prepare();
    if (!problem.gold.empty()) grader.check_gold(problem.gold, str("problem ", printable(problem.id)));
  }
}

}  // namespace ucas
