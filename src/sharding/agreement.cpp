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
  BytesWriter writer;
  writer.part(mine);
  std::vector<Decision> all;
  for (const std::string& bytes : ranks.all_gather(what, writer.bytes))
    BytesReader(bytes, what).part(all.emplace_back());
  Decision decision = all[0];
  decision.stop = std::ranges::any_of(all, &Decision::stop);
  return decision;
}

namespace {

// Its class is set by who has the group.
template <class V, class Visitor>
void each_part(V& verdict, Visitor& bytes) {
  bytes.part(verdict.kind);
  bytes.part(verdict.score);
  bytes.part(verdict.answer);
  bytes.part(verdict.reason);
}

}  // namespace

std::vector<Verdict> grade_shared(const Graders& graders, std::span<const GradeItem> items, Ranks& ranks) {
  if (ranks.alone()) return grade_all(graders, items);
  std::vector<GradeItem> own;
  const auto size = static_cast<size_t>(ranks.size());
  for (auto i = static_cast<size_t>(ranks.rank()); i < items.size(); i += size) own.push_back(items[i]);
  BytesWriter writer;
  for (const Verdict& verdict : ranks.together("grading responses", [&] { return grade_all(graders, own); })) {
    each_part(verdict, writer);
  }
  std::vector<BytesReader> of_ranks;
  const std::vector<std::string> all = ranks.all_gather("verdicts of responses", writer.bytes);
  for (const std::string& bytes : all) of_ranks.emplace_back(bytes, "the verdicts that a rank sends");
  std::vector<Verdict> verdicts(items.size());
  for (size_t i = 0; i < items.size(); ++i) each_part(verdicts[i], of_ranks[i % size]);
  return verdicts;
}

}  // namespace ucas
