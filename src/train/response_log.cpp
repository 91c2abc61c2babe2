#include "train/response_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/str.h"
#include "core/step_data.h"

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

std::string signal_rows(const TrainConfig& config, const Collected& collected, const TrainingSet& data,
                        const Tokenizer& tokenizer, std::span<const float> advantage, const Recording& recording,
                        const TokenUpdates& updates, int64_t step) {
  StepData kept;
  kept.step = step;
  kept.method = config.method_name;
  kept.preset = config.method_preset;
  auto list = [](Fields& f, void* method) { static_cast<Method*>(method)->fields(f); };
  for (const FieldValue& field : list_fields(list, config.method.get())) {
    kept.settings.emplace_back(field.key, field.value);
  }
  kept.answer_classes = config.needs().answer_classes;
  kept.tail_confidence = true;  // the trainer computes it for every step that is saved
  kept.groups_of_step = static_cast<int64_t>(collected.batch.groups.size());
  kept.batch = leading_groups(collected.batch, config.train.stored_signal_tokens);
  for (const Group& group : kept.batch.groups) {
    const Problem& problem = data.problems[static_cast<size_t>(group.problem)];
    kept.problem.push_back(problem.id);
    kept.question.push_back(problem.text);
    kept.gold.push_back(problem.gold);
  }
  size_t N = kept.batch.token.size(), B = kept.batch.responses.size();
  for (int32_t id : kept.batch.token) kept.piece.push_back(tokenizer.token_text(id));
  auto leading = [&](const auto& values, auto& to) {
    to.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(N));
  };
  leading(advantage, kept.advantage);
  leading(updates.ratio, kept.ratio);
  leading(updates.clipped, kept.clipped);
  for (const Recording::Row& row : recording.rows) {
    auto end = row.values.begin() + static_cast<std::ptrdiff_t>(row.per_token ? N : B);
    kept.trace.push_back({row.name, row.per_token, std::vector<float>(row.values.begin(), end)});
  }
  return step_data_lines(kept);
}

}  // namespace ucas
