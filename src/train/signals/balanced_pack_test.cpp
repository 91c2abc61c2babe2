#include "train/signals/balanced_pack.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include "base/rng.h"
#include "base/str.h"
#include "train/signals/logprobs.h"

namespace ucas {
namespace {

constexpr int64_t kTokens = 16384, kLongest = 3072, kPrompt = 120, kGroup = 16;

// 512 responses to 32 prompts: prompt and response have `mean` tokens in the mean, responses at most 3,072.
Batch paper_batch(uint64_t seed, double mean = 1020) {
  Rng rng(seed, 0);
  std::vector<double> length;
  double sum = 0;
  for (int64_t i = 0; i < 512; ++i) length.push_back(std::exp(0.7 * rng.normal()));
  double scale = 1;
  for (int again = 0; again < 50; ++again) {  // so that it is the mean after the cut
    sum = 0;
    for (const double l : length) sum += std::min<double>(kLongest, scale * l);
    scale *= (mean - kPrompt) * 512 / sum;
  }
  Batch batch;
  for (size_t i = 0; i < length.size(); ++i) {
    if (i % kGroup == 0) {
      batch.groups.push_back(
          {.first = static_cast<int64_t>(i), .count = kGroup, .prompt = std::vector<int32_t>(kPrompt)});
    }
    Response o;
    o.length = std::min<int64_t>(kLongest, std::llround(scale * length[i]));
    o.group = std::ssize(batch.groups) - 1;
    batch.responses.push_back(o);
  }
  return batch;
}

// Qwen2.5-7B.
ModelConfig shape_7b() {
  ModelConfig c;
  c.hidden_size = 3584;
  c.intermediate_size = 18944;
  c.num_hidden_layers = 28;
  c.num_attention_heads = 28;
  c.num_key_value_heads = 4;
  c.head_dim = 128;
  c.vocab_size = 152064;
  return c;
}

std::vector<PackItem> items_of(const Batch& batch, const std::vector<int64_t>& responses) {
  return pack_items(shape_7b(), batch, responses, true);
}

std::vector<double> work_of(const Batch& batch, const std::vector<std::vector<int64_t>>& parts) {
  std::vector<double> work;
  for (const std::vector<int64_t>& part : parts) {
    double sum = 0;
    for (const PackItem& item : items_of(batch, part)) sum += item.work + item.prefix_work;
    work.push_back(sum);
  }
  return work;
}

// Of all ranks' time until the last one is done, where each works off its neighbours.
double used_by(const std::vector<double>& work, int64_t ranks) {
  const auto count = std::ssize(work);
  double all = 0, longest = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const double sum =
        std::accumulate(work.begin() + count * rank / ranks, work.begin() + count * (rank + 1) / ranks, 0.0);
    all += sum;
    longest = std::max(longest, sum);
  }
  return all / (longest * static_cast<double>(ranks));
}

// And where they wait for each other after every wave.
double used_in_waves(const std::vector<double>& work, int64_t ranks) {
  double all = 0, longest = 0;
  for (size_t first = 0; first < work.size(); first += static_cast<size_t>(ranks)) {
    const std::span wave = std::span(work).subspan(first, std::min(static_cast<size_t>(ranks), work.size() - first));
    all += std::accumulate(wave.begin(), wave.end(), 0.0);
    longest += std::ranges::max(wave);
  }
  return all / (longest * static_cast<double>(ranks));
}

int64_t tokens_of(const Batch& batch, const std::vector<int64_t>& part) {
  int64_t tokens = 0;
  for (const int64_t index : part) tokens += batch.responses[static_cast<size_t>(index)].length + kPrompt - 1;
  return tokens;
}

struct Used {
  double by_sum = 1, in_waves = 1, before = 1;
  size_t parts = 0, waves = 0;  // micro-batches
};

// The least of five mini-batches.
Used least_used(int64_t ranks, double mean) {
  const std::vector<int64_t> all = indices(0, 512);
  Used used;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Batch batch = paper_batch(seed, mean);
    const BalancedPack pack = balanced_pack(items_of(batch, all), ranks, kTokens, false),
                       even = pack_for_waves(items_of(batch, all), kTokens, false);
    for (const auto* parts : {&pack.parts, &even.parts})
      for (const auto& part : *parts) EXPECT_LE(tokens_of(batch, part), kTokens);
    const double by_sum = used_by(work_of(batch, pack.parts), ranks);
    EXPECT_NEAR(pack.used, by_sum, 1e-9) << "what it says of itself";
    used.by_sum = std::min(used.by_sum, by_sum);
    used.in_waves = std::min(used.in_waves, used_in_waves(work_of(batch, even.parts), ranks));
    used.parts = std::max(used.parts, pack.parts.size());
    used.waves = std::max(used.waves, even.parts.size());
    const int64_t budget = std::min(kTokens, 512 * 900 / ranks);  // a micro-batch for each rank, as it was
    used.before = std::min(used.before, used_by(work_of(batch, micro_batches(batch, all, budget, false)), ranks));
  }
  return used;
}

// Computed: no clock is read. 1,060 tokens need one or two micro-batches more than 32.
TEST(balanced_pack, uses_the_ranks_time_on_responses_as_long_as_the_papers) {
  for (const double mean : {1020, 1060}) {
    for (const int64_t ranks : {2, 4, 8, 16, 32}) {
      const Used used = least_used(ranks, mean);
      std::cout << mean << " tokens, " << ranks << " ranks, time used: sum " << percent(used.by_sum) << " in "
                << used.parts << " micro-batches, micro " << percent(used.in_waves) << " in " << used.waves
                << "; in order and by number " << percent(used.before) << "\n";
      EXPECT_GE(used.by_sum, 0.92);
      EXPECT_GT(used.by_sum, used.before);
      EXPECT_TRUE(used.in_waves >= 0.92 || (mean == 1060 && ranks == 32));
    }
  }
}

// Where prompts are shared, a group that is parted passes its prompt twice.
TEST(balanced_pack, parts_groups_that_share_a_prompt_only_as_far_as_that_is_quicker) {
  Batch batch = paper_batch(3);
  for (Group& group : batch.groups) group.prompt.resize(2000);
  const std::vector<PackItem> items = items_of(batch, indices(0, 512));
  const BalancedPack apart = balanced_pack(items, 4, kTokens, false), shared = balanced_pack(items, 4, kTokens, true);
  EXPECT_LT(shared.work, 0.6 * apart.work) << "the prompts' passes are most of it";
  EXPECT_GT(shared.used, 0.92);
}

TEST(balanced_pack, for_waves_has_a_number_that_small_powers_of_two_divide) {
  std::vector<PackItem> items;
  for (int64_t i = 0; i < 100; ++i) items.push_back({i, i, 10, 0, 10, 0});
  const auto count = [&](int64_t tokens) { return std::ssize(pack_for_waves(items, tokens, false).parts); };
  EXPECT_EQ(count(1000), 1);
  EXPECT_EQ(count(340), 3);
  EXPECT_EQ(count(200), 6);   // 5
  EXPECT_EQ(count(110), 12);  // 10
  EXPECT_EQ(count(30), 48);   // 34
  EXPECT_EQ(count(10), 100) << "one item each: no part is empty";
}

TEST(balanced_pack, has_every_item_once_within_the_budget_and_nothing_empty) {
  EXPECT_TRUE(balanced_pack({}, 4, 100, true).parts.empty());
  rc::check("of any items", [] {
    const auto count = *rc::gen::inRange<int64_t>(0, 60), ranks = *rc::gen::inRange<int64_t>(1, 9),
               budget = *rc::gen::inRange<int64_t>(1, 400);
    const bool share = *rc::gen::arbitrary<bool>();
    std::vector<PackItem> items;
    for (int64_t i = 0; i < count; ++i) {
      const auto tokens = *rc::gen::inRange<int64_t>(1, 200);
      items.push_back({i, i / 4, tokens, 10, static_cast<double>(tokens), 10});
    }
    const BalancedPack pack = balanced_pack(items, ranks, budget, share);
    std::vector<int64_t> seen;
    for (const auto& part : pack.parts) {
      RC_ASSERT(!part.empty());
      RC_ASSERT(std::ranges::is_sorted(part));
      int64_t tokens = 0;
      for (size_t k = 0; k < part.size(); ++k) {
        const bool shares = share && k > 0 && part[k - 1] + 1 == part[k] && part[k] % 4 != 0;
        tokens += items[static_cast<size_t>(part[k])].tokens + (shares ? 0 : 10);
      }
      RC_ASSERT(tokens <= budget || part.size() == 1);
      seen.insert(seen.end(), part.begin(), part.end());
    }
    std::ranges::sort(seen);
    RC_ASSERT(seen == indices(0, count));
    RC_ASSERT(share || std::ssize(pack.parts) >= std::min(count, ranks));
  });
}

}  // namespace
}  // namespace ucas
