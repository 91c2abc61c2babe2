#include "sharding/shared_grading.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace ucas {

namespace {

// A verdict as bytes: texts may hold any. Its class is set by who has the group.
void append_verdict(std::string& bytes, const Verdict& verdict) {
  const auto append = [&](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append(verdict.kind);
  append(verdict.score);
  for (const std::string* text : {&verdict.answer, &verdict.reason}) {
    append(static_cast<uint64_t>(text->size()));
    bytes += *text;
  }
}

Verdict take_verdict(std::string_view& bytes) {
  const auto take = [&](void* into, size_t size) {
    UCAS_CHECK(bytes.size() >= size, "the verdicts that a rank sends must be complete");
    std::memcpy(into, bytes.data(), size);
    bytes.remove_prefix(size);
  };
  Verdict verdict;
  take(&verdict.kind, sizeof verdict.kind);
  take(&verdict.score, sizeof verdict.score);
  for (std::string* text : {&verdict.answer, &verdict.reason}) {
    uint64_t size = 0;
    take(&size, sizeof size);
    UCAS_CHECK(bytes.size() >= size, "the verdicts that a rank sends must be complete");
    text->assign(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return verdict;
}

}  // namespace

std::vector<int64_t> graded_by(const Ranks& ranks, size_t count) {
  std::vector<int64_t> by;
  for (size_t i = 0; i < count; ++i) by.push_back(static_cast<int64_t>(i) % ranks.size());
  return by;
}

std::vector<Verdict> gather_verdicts(Ranks& ranks, std::span<const int64_t> by, const GradeSome& grade) {
  std::vector<size_t> own;
  for (size_t i = 0; i < by.size(); ++i)
    if (by[i] == ranks.rank()) own.push_back(i);
  std::vector<Verdict> graded = ranks.together("grading responses", [&] { return grade(own); });
  UCAS_CHECK(graded.size() == own.size(), "expected one verdict per response");
  if (ranks.alone()) return graded;
  std::string bytes;
  for (const Verdict& verdict : graded) append_verdict(bytes, verdict);
  const std::vector<std::string> of_ranks = ranks.all_gather("verdicts of responses", bytes);
  std::vector<std::string_view> left(of_ranks.begin(), of_ranks.end());
  std::vector<Verdict> verdicts;
  for (const int64_t rank : by) verdicts.push_back(take_verdict(left[static_cast<size_t>(rank)]));
  return verdicts;
}

std::vector<Verdict> grade_shared(const Graders& graders, std::span<const GradeItem> items, Ranks& ranks) {
  return gather_verdicts(ranks, graded_by(ranks, items.size()), [&](std::span<const size_t> numbers) {
    std::vector<GradeItem> own;
    for (const size_t i : numbers) own.push_back(items[i]);
    return grade_all(graders, own);
  });
}

}  // namespace ucas
