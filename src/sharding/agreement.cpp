#include "sharding/agreement.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

std::string name_ranks(const std::vector<int64_t>& numbers) {
  std::vector<std::string> words;
  for (int64_t n : numbers) words.push_back(str(n));
  if (words.size() == 1) return "rank " + words[0];
  const std::string last = words.back();
  words.pop_back();
  return str("ranks ", join(words, ", "), " and ", last);
}

std::vector<std::string> differences_of(const std::vector<std::vector<std::string>>& all) {
  std::vector<std::string> names, differences;
  std::vector<std::vector<std::pair<std::string, std::string>>> pairs;
  for (const std::vector<std::string>& lines : all) {
    auto& of_rank = pairs.emplace_back();
    for (const std::string& line : lines) {
      const size_t end = std::min(line.find(" = "), line.size());
      of_rank.emplace_back(line.substr(0, end), line.substr(std::min(end + 3, line.size())));
      if (std::ranges::find(names, of_rank.back().first) == names.end()) names.push_back(of_rank.back().first);
    }
  }
  for (const std::string& name : names) {
    std::vector<std::pair<std::string, std::vector<int64_t>>> values;  // and who has them
    for (size_t r = 0; r < pairs.size(); ++r) {
      const auto found = std::ranges::find(pairs[r], name, &std::pair<std::string, std::string>::first);
      const std::string value = found == pairs[r].end() ? "(none)" : found->second;
      auto at = std::ranges::find(values, value, &std::pair<std::string, std::vector<int64_t>>::first);
      if (at == values.end()) at = values.insert(values.end(), {value, {}});
      at->second.push_back(static_cast<int64_t>(r));
    }
    if (values.size() < 2) continue;
    std::vector<std::string> words;
    for (const auto& [value, ranks] : values) {
      words.push_back(str(value.empty() ? "\"\"" : value, " at ", name_ranks(ranks)));
    }
    differences.push_back(str(name, " = ", join(words, ", ")));
  }
  return differences;
}

void require_same(Ranks& ranks, const char* what, const std::vector<std::string>& lines) {
  if (ranks.alone()) return;
  constexpr size_t kMostSaid = 5;
  std::vector<std::vector<std::string>> all;
  for (const std::string& text : ranks.all_gather(what, join(lines, "\n"))) all.push_back(split(text, '\n'));
  std::vector<std::string> differences = differences_of(all);
  if (differences.empty()) return;
  if (differences.size() > kMostSaid) {
    const size_t more = differences.size() - kMostSaid;
    differences.resize(kMostSaid);
    differences.push_back(str("and ", more, " more"));
  }
  throw AgreedError(ErrorKind::config, str("the ranks are not at the same run: ", join(differences, "; "),
                                           "; give all of them the same options, files and environment"));
}

Decision decided(Ranks& ranks, const char* what, const Decision& mine) {
  if (ranks.alone()) return mine;
  // Flags, then the numbers of `best`.
  std::string bytes;
  for (const bool flag : {mine.stop, mine.validate, mine.save, mine.last}) bytes += flag ? '1' : '0';
  const auto add = [&](const auto& number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
  add(mine.best.step), add(mine.best.value);
  const std::vector<std::string> all = ranks.all_gather(what, bytes);
  const std::string& leader = all[0];
  Decision decision{.validate = leader[1] == '1', .save = leader[2] == '1', .last = leader[3] == '1'};
  decision.stop = std::ranges::any_of(all, [](const std::string& one) { return one[0] == '1'; });
  size_t at = 4;
  const auto take = [&](auto& number) {
    std::memcpy(&number, leader.data() + at, sizeof number);
    at += sizeof number;
  };
  take(decision.best.step), take(decision.best.value);
  return decision;
}

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
