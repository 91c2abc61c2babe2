#include "train/collect/data_order.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/source_weights.h"

namespace ucas {

namespace {

constexpr uint32_t kDataOrderStep = 0x40000000;  // in the key of a draw: no training step, and no evaluation

// Whether a problem was solved so lately that it is passed over; its rest ends here, too.
bool is_in_cooldown(const TrainConfig& config, int64_t problem, int64_t step, DataCursor& cursor) {
  const auto solved = cursor.solved.find(problem);
  if (solved == cursor.solved.end()) return false;
  if (step - solved->second <= config.data.solved_cooldown) return true;
  cursor.solved.erase(solved);
  return false;
}

// All problems in keyed epoch order; those that rest count as sampled.
std::vector<int64_t> in_epoch_order(const TrainConfig& config, int64_t step, int64_t total, DataCursor& cursor,
                                    int64_t& skipped_in_cooldown, int64_t most) {
  const auto count = static_cast<size_t>(std::min(config.gen_batch(), most));
  std::vector<int64_t> picked, order;
  int64_t order_epoch = -1, passed = 0;
  while (picked.size() < count && prompts_left(config, total, cursor) > 0) {
    if (cursor.index >= total) {
      cursor.index = 0;
      ++cursor.epoch;
    }
    if (order_epoch != cursor.epoch && config.data.shuffle) {
      order = epoch_order(static_cast<uint64_t>(config.seed), cursor.epoch, total);
      order_epoch = cursor.epoch;
    }
    const int64_t problem = config.data.shuffle ? order[cursor.index] : cursor.index;
    ++cursor.index;
    if (passed < total && is_in_cooldown(config, problem, step, cursor)) {
      ++passed;
      ++skipped_in_cooldown;
      continue;
    }
    passed = 0;
    picked.push_back(problem);
  }
  return picked;
}

// The problems of a data source, and which of them comes when it is its turn.
class SourceOrder {
 public:
  SourceOrder(const TrainConfig& config, int64_t number, double weight, std::vector<int64_t> members)
      : config_(config), number_(number), weight_(weight), members_(std::move(members)) {}

  // When its next turn would be due: the source with the smallest has it.
  double due(const DataCursor& cursor) const { return static_cast<double>(turn(cursor).selected + 1) / weight_; }
  int64_t next(int64_t step, int64_t total, DataCursor& cursor, int64_t& skipped_in_cooldown) {
    ++cursor.of_source[static_cast<size_t>(number_)].selected;
    return config_.data.order == DataOrder::difficulty ? by_difficulty(step, total, cursor, skipped_in_cooldown)
                                                       : in_order(step, cursor, skipped_in_cooldown);
  }

 private:
  const SourceProgress& turn(const DataCursor& cursor) const { return cursor.of_source[static_cast<size_t>(number_)]; }

  // Its own epochs, each in its own order.
  int64_t in_order(int64_t step, DataCursor& cursor, int64_t& skipped_in_cooldown) {
    const auto size = static_cast<int64_t>(members_.size());
    for (int64_t passed = 0;; ++passed) {
      const int64_t position = cursor.of_source[static_cast<size_t>(number_)].position++;
      const int64_t epoch = position / size;
      if (epoch != epoch_ && config_.data.shuffle) {
        order_ = epoch_order(static_cast<uint64_t>(config_.seed), (number_ + 1) << 40 | epoch, size);
        epoch_ = epoch;
      }
      const int64_t at = position % size, problem = members_[config_.data.shuffle ? order_[at] : at];
      if (passed >= size || !is_in_cooldown(config_, problem, step, cursor)) return problem;
      ++skipped_in_cooldown;
    }
  }

  // Without replacement, each with a chance by its weight: the smallest -ln(1 - u) / w first (Efraimidis and Spirakis).
  int64_t by_difficulty(int64_t step, int64_t total, DataCursor& cursor, int64_t& skipped_in_cooldown) {
    if (order_.empty()) {
      std::vector<std::pair<double, int64_t>> keys;
      const auto nonce = static_cast<uint64_t>(cursor.selected(total));
      for (bool all : {false, true}) {
        for (int64_t problem : members_) {
          if (!all && is_in_cooldown(config_, problem, step, cursor)) continue;
          const SampleKey key{.seed = static_cast<uint64_t>(config_.seed),
                              .step = kDataOrderStep,
                              .problem = static_cast<uint32_t>(problem),
                              .response = static_cast<uint32_t>(nonce >> 32),
                              .position = static_cast<uint32_t>(nonce)};
          const auto seen = cursor.seen.find(problem);
          const double w = difficulty_weight(seen == cursor.seen.end() ? SuccessCount{} : seen->second);
          keys.emplace_back(-std::log1p(-uniform(key)) / w, problem);
        }
        if (!keys.empty()) break;
      }
      skipped_in_cooldown += std::ssize(members_) - std::ssize(keys);
      std::ranges::sort(keys, std::greater<>());
      for (const auto& [key, problem] : keys) order_.push_back(problem);
    }
    const int64_t problem = order_.back();
    order_.pop_back();
    return problem;
  }

  const TrainConfig& config_;
  int64_t number_;
  double weight_;
  std::vector<int64_t> members_, order_;
  int64_t epoch_ = -1;
};

std::vector<SourceOrder> sources_of(const TrainConfig& config, const TrainingSet& data) {
  std::vector<SourceOrder> sources;
  const std::vector<SourceWeight> weights = parse_source_weights(config.data.weights);
  for (size_t s = 0; s < std::max<size_t>(1, weights.size()); ++s) {
    std::vector<int64_t> members;
    for (int64_t p = 0; p < data.size(); ++p) {
      if (weights.empty() || data.problems[p].source == weights[s].source) members.push_back(p);
    }
    sources.emplace_back(config, static_cast<int64_t>(s), weights.empty() ? 1 : weights[s].weight, std::move(members));
  }
  return sources;
}

}  // namespace

std::vector<int64_t> next_problems(const TrainConfig& config, int64_t step, const TrainingSet& data, DataCursor& cursor,
                                   int64_t& skipped_in_cooldown, int64_t most) {
  const int64_t total = data.size();
  if (config.data.weights.empty() && config.data.order == DataOrder::shuffled) {
    return in_epoch_order(config, step, total, cursor, skipped_in_cooldown, most);
  }
  std::vector<SourceOrder> sources = sources_of(config, data);
  cursor.of_source.resize(sources.size());
  std::vector<int64_t> picked;
  while (std::ssize(picked) < std::min(config.gen_batch(), most) && prompts_left(config, total, cursor) > 0) {
    const auto due = std::ranges::min_element(sources, {}, [&](const SourceOrder& s) { return s.due(cursor); });
    picked.push_back(due->next(step, total, cursor, skipped_in_cooldown));
    if (++cursor.index >= total) {  // a pass: as many draws as there are problems
      cursor.index = 0;
      ++cursor.epoch;
    }
  }
  return picked;
}

void note_outcome(const TrainConfig& config, int64_t problem, int64_t step, std::span<const Response> responses,
                  DataCursor& cursor) {
  const auto right = static_cast<int64_t>(
      std::ranges::count_if(responses, [](const Response& o) { return o.verdict.kind == VerdictKind::equal; }));
  if (config.data.order == DataOrder::difficulty) cursor.seen[problem] = {right, std::ssize(responses)};
  if (config.data.solved_cooldown > 0 && right == std::ssize(responses)) cursor.solved[problem] = step;
}

double difficulty_weight(const SuccessCount& last) {
  const double p = static_cast<double>(last.right + 1) / static_cast<double>(last.responses + 2);
  return p * (1 - p);
}

void check_sources(const TrainConfig& config, const TrainingSet& data) {
  if (config.data.weights.empty()) return;
  std::set<std::string> there, named;
  for (const Problem& problem : data.problems) there.insert(problem.source);
  for (const SourceWeight& w : parse_source_weights(config.data.weights)) named.insert(w.source);
  if (there == named) return;
  const auto words = [](const std::set<std::string>& names) {
    return printable(join(std::vector<std::string>(names.begin(), names.end()), ", "), 300);
  };
  throw Error(ErrorKind::config,
              str("data.weights names ", words(named), ", but the problems are of ", words(there),
                  ": give each of these a weight, and no other (a source is a row's data_source, or the "
                  "name of its file)"));
}

}  // namespace ucas
