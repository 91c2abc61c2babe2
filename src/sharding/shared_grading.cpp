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

std::vector<Verdict> grade_shared(const Graders& graders, std::span<const GradeItem> items, Ranks& ranks) {
  if (ranks.alone()) return grade_all(graders, items);
  std::vector<GradeItem> own;
  const auto size = static_cast<size_t>(ranks.size());
  for (auto i = static_cast<size_t>(ranks.rank()); i < items.size(); i += size) own.push_back(items[i]);
  std::string bytes;
  for (const Verdict& verdict : ranks.together("grading responses", [&] { return grade_all(graders, own); })) {
    append_verdict(bytes, verdict);
  }
  const std::vector<std::string> of_ranks = ranks.all_gather("verdicts of responses", bytes);
  std::vector<std::string_view> left(of_ranks.begin(), of_ranks.end());
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < items.size(); ++i) verdicts.push_back(take_verdict(left[i % size]));
  return verdicts;
}

}  // namespace ucas
