#include "train/signals/balanced_pack.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"

namespace ucas {

namespace {

// Consecutive items that stay together.
struct PackRun {
  size_t first = 0, last = 0;  // items
  int64_t tokens = 0;
  double work = 0;
};

std::vector<PackRun> pack_runs_of(std::span<const PackItem> items, size_t longest, bool share) {
  std::vector<PackRun> runs;
  for (size_t i = 0; i < items.size(); ++i) {
    const bool joins = share && !runs.empty() && runs.back().last - runs.back().first < longest &&
                       items[runs.back().first].group == items[i].group;
    if (!joins) runs.push_back({i, i, items[i].prefix, items[i].prefix_work});
    runs.back().last = i + 1;
    runs.back().tokens += items[i].tokens;
    runs.back().work += items[i].work;
  }
  return runs;
}

struct PackPart {
  std::vector<size_t> runs;
  int64_t tokens = 0;
  double work = 0;
};

// The longest first, each into the part with the least work that has room for it.
std::optional<std::vector<PackPart>> pack_runs(std::span<const PackRun> runs, size_t count, int64_t max_tokens) {
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](size_t run) { return runs[run].work; });
  std::vector<PackPart> parts(count);
  for (const size_t run : order) {
    PackPart* least = nullptr;
    for (PackPart& part : parts) {
      const bool room = part.runs.empty() || part.tokens + runs[run].tokens <= max_tokens;
      if (room && (least == nullptr || part.work < least->work)) least = &part;
    }
    if (least == nullptr) return std::nullopt;
    least->runs.push_back(run);
    least->tokens += runs[run].tokens;
    least->work += runs[run].work;
  }
  return parts;
}

// Round after round, as the ranks work them off at the same time: those of a round are alike, and who has had the most
// gets the least of it.
std::vector<std::vector<PackPart>> dealt(std::vector<PackPart> parts, int64_t ranks) {
  std::ranges::stable_sort(parts, std::greater{}, &PackPart::work);
  std::vector<std::vector<PackPart>> of_ranks(static_cast<size_t>(ranks));
  std::vector<double> had(of_ranks.size());
  for (size_t first = 0; first < parts.size(); first += of_ranks.size()) {
    std::vector<size_t> order(of_ranks.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](size_t rank) { return had[rank]; });
    for (size_t i = 0; i < order.size() && first + i < parts.size(); ++i) {
      had[order[i]] += parts[first + i].work;
      of_ranks[order[i]].push_back(std::move(parts[first + i]));
    }
  }
  return of_ranks;
}

struct PackCut {
  std::vector<std::vector<PackPart>> of_ranks;
  double longest = 0, all = 0;  // work of the slowest rank, of all ranks
};

PackCut pack_cut(std::span<const PackRun> runs, int64_t ranks, int64_t max_tokens, int64_t least) {
  int64_t tokens = 0;
  for (const PackRun& run : runs) tokens += run.tokens;
  // One part for each run has room for all.
  for (int64_t each = std::max(least, tokens / (ranks * max_tokens));; ++each) {
    std::optional<std::vector<PackPart>> parts = pack_runs(runs, static_cast<size_t>(each * ranks), max_tokens);
    if (!parts) continue;
    PackCut cut{dealt(std::move(*parts), ranks)};
    for (const std::vector<PackPart>& of_rank : cut.of_ranks) {
      double work = 0;
      for (const PackPart& part : of_rank) work += part.work;
      cut.longest = std::max(cut.longest, work);
      cut.all += work;
    }
    return cut;
  }
}

}  // namespace

BalancedPack balanced_pack(std::span<const PackItem> items, int64_t ranks, int64_t max_tokens, bool share,
                           int64_t least) {
  UCAS_CHECK(ranks > 0 && max_tokens > 0 && least > 0, "expected ranks, a token budget and a number above 0");
  if (items.empty()) return {};
  std::vector<PackRun> runs;
  std::optional<PackCut> best;
  for (size_t longest = share ? items.size() : 1; longest > 0; longest /= 2) {
    std::vector<PackRun> tried = pack_runs_of(items, longest, share);
    const bool fits =
        longest == 1 || std::ranges::all_of(tried, [&](const PackRun& run) { return run.tokens <= max_tokens; });
    if (!fits || (best && tried.size() == runs.size())) continue;
    PackCut cut = pack_cut(tried, ranks, max_tokens, least);
    if (best && cut.longest >= best->longest) continue;
    best = std::move(cut);
    runs = std::move(tried);
  }
  BalancedPack pack{.work = best->all};
  pack.used = best->longest > 0 ? best->all / (best->longest * static_cast<double>(ranks)) : 1;
  for (const std::vector<PackPart>& of_rank : best->of_ranks) {
    for (const PackPart& part : of_rank) {
      if (part.runs.empty()) continue;
      std::vector<int64_t>& list = pack.parts.emplace_back();
      std::vector<size_t> order = part.runs;
      std::ranges::sort(order);
      for (const size_t run : order)
        for (size_t i = runs[run].first; i < runs[run].last; ++i) list.push_back(items[i].index);
    }
  }
  return pack;
}

BalancedPack pack_for_waves(std::span<const PackItem> items, int64_t max_tokens, bool share) {
  BalancedPack pack = balanced_pack(items, 1, max_tokens, share);
  const auto count = std::ssize(pack.parts);
  if (count < 4) return pack;
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count))) / 2;
  const int64_t rounded = (count + power - 1) / power * power;
  return rounded == count ? pack : balanced_pack(items, 1, max_tokens, share, rounded);
}

std::vector<MicroBatch> pack(std::span<const int64_t> lengths, int64_t max_tokens, std::span<const int64_t> prefix,
                             std::span<const uint8_t> shares) {
  UCAS_CHECK(max_tokens > 0, "expected a token budget above 0");
  std::vector<MicroBatch> batches;
  for (size_t i = 0; i < lengths.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    const int64_t alone = lengths[i] + (prefix.empty() ? 0 : prefix[i]);
    int64_t joined = prefix.empty() || shares[i] == 0 ? alone : lengths[i];
    if (batches.empty() || (batches.back().tokens > 0 && batches.back().tokens + joined > max_tokens)) {
      batches.push_back({at, at, 0});
      joined = alone;
    }
    batches.back().last = at + 1;
    batches.back().tokens += joined;
  }
  return batches;
}

}  // namespace ucas
