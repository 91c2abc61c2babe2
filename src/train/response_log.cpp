#include "train/response_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/str.h"

namespace ucas {

std::string response_rows(const Collected& collected, const TrainingSet& data, std::span<const float> advantage,
                          int64_t step, int64_t prompts, int64_t responses) {
  const Batch& batch = collected.batch;
  std::string lines;
  for (int64_t g = 0; g < std::min<int64_t>(prompts, static_cast<int64_t>(batch.groups.size())); ++g) {
    const Group& group = batch.groups[static_cast<size_t>(g)];
    const Problem& problem = data.problems[static_cast<size_t>(group.problem)];
    for (int64_t i = group.first; i < group.first + std::min(group.count, responses); ++i) {
      const Response& o = batch.responses[static_cast<size_t>(i)];
      double sum = 0;
      for (int64_t t = 0; t < o.length; ++t) sum += advantage[static_cast<size_t>(o.first + t)];
      OrderedJson row;
      row["step"] = step;
      row["problem"] = problem.id;
      row["source"] = problem.source;
      row["prompt"] = problem.text;
      row["gold"] = problem.gold;
      row["sample"] = o.sample;
      row["response"] = collected.text[static_cast<size_t>(i)];
      row["tokens"] = o.length;
      row["finished"] = o.finished;
      row["score"] = o.score;
      row["reward"] = o.reward;
      row["verdict"] = name_of(o.verdict.kind);
      row["answer"] = o.verdict.answer;
      row["reason"] = o.verdict.reason;
      row["advantage_mean"] = o.length == 0 ? 0 : sum / static_cast<double>(o.length);
      // Model text may hold any bytes: broken UTF-8 becomes U+FFFD.
      lines += row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
    }
  }
  return lines;
}

}  // namespace ucas
