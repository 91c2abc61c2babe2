// bench_gpu what=budget: the tables of docs/gpu.md, counted from a shape; nothing is run.
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench_model.h"
#include "hf/model_config.h"
#include "model/backend/gpu/gpu_budget.h"

namespace ucas {

struct DeviceLimits {
  double operations, bandwidth;  // a second
  double seconds(const BudgetPart& part) const {
    return std::max(part.operations / operations, part.bytes / bandwidth);
  }
};

// The parts of each group together; times add up, since one kernel runs after another.
struct BudgetColumn {
  std::string title;
  std::map<std::string, BudgetPart> of_group;
  std::map<std::string, double> seconds;
  double all_seconds = 0, all_operations = 0, all_bytes = 0;

  BudgetColumn(std::string name, const std::vector<BudgetPart>& parts, const DeviceLimits& limits)
      : title(std::move(name)) {
    for (const BudgetPart& part : parts) {
      BudgetPart& group = of_group[part.group];
      group.calls += part.calls;
      group.operations += part.operations;
      group.bytes += part.bytes;
      seconds[part.group] += limits.seconds(part);
      all_seconds += limits.seconds(part);
      all_operations += part.operations;
      all_bytes += part.bytes;
    }
  }
};

inline std::string budget_cell(double calls, double operations, double bytes, double seconds) {
  char text[120];
  std::snprintf(text, sizeof text, "%.0f; %.2f TFLOP, %.2f GB: %.2f ms", calls, 1e-12 * operations, 1e-9 * bytes,
                1e3 * seconds);
  return text;
}

inline void print_budget_table(const std::vector<BudgetColumn>& columns, const std::vector<std::string>& groups) {
  std::string head = "| part |", rule = "| --- |";
  for (const BudgetColumn& column : columns) head += " " + column.title + " |", rule += " --- |";
  std::printf("%s\n%s\n", head.c_str(), rule.c_str());
  for (const std::string& name : groups) {
    std::string line = "| " + name + " |";
    for (const BudgetColumn& column : columns) {
      const BudgetPart& group = column.of_group.at(name);
      line += " " + budget_cell(group.calls, group.operations, group.bytes, column.seconds.at(name)) + " |";
    }
    std::printf("%s\n", line.c_str());
  }
  std::string line = "| all |";
  for (const BudgetColumn& column : columns) {
    double calls = 0;
    for (const auto& [name, group] : column.of_group) calls += group.calls;
    line += " " + budget_cell(calls, column.all_operations, column.all_bytes, column.all_seconds) + " |";
  }
  std::printf("%s\n\n", line.c_str());
}

inline std::vector<int64_t> budget_numbers(const std::string& list) {
  std::vector<int64_t> numbers;
  std::stringstream words(list);
  for (std::string word; std::getline(words, word, ',');) numbers.push_back(std::stoll(word));
  return numbers;
}

// A step of RL: `prompts` groups of n are sampled with all lanes in use, `trained` of them scored and trained on; mean
// lengths stand for all. What stays idle at the end of a generation batch is not in it.
inline void print_step_budget(const Arguments& args, const ModelConfig& c, const DeviceLimits& limits) {
  const auto number = [&](const char* name, int64_t otherwise) { return args.number(name, otherwise); };
  const int64_t n = number("n", 16), prompts = number("prompts", 1024), trained = number("trained", 512);
  const int64_t prompt = number("prompt", 120), response = number("response", 900), lanes = number("step_lanes", 1024);
  const int64_t whole = prompt + response, rows = number("micro_batch", 16896), updates = number("updates", 16);
  const auto seconds = [&](const std::vector<BudgetPart>& parts) {
    return BudgetColumn("", parts, limits).all_seconds;
  };
  const double decoded = static_cast<double>(prompts * n * response) / static_cast<double>(lanes);
  const double tokens = static_cast<double>(trained * n * whole), packs = tokens / static_cast<double>(rows);
  const double prefill = static_cast<double>(prompts * prompt) / static_cast<double>(rows);
  std::printf("| %s | least seconds |\n| --- | --- |\n", "a step");
  std::printf("| generation: %ld x %ld responses | %.1f |\n", prompts, n,
              decoded * seconds(decoding_budget(c, lanes, prompt + response / 2, false)) +
                  prefill * seconds(scoring_budget(c, rows, prompt)));
  std::printf("| old log-probs: %ld x %ld | %.1f |\n", trained, n, packs * seconds(scoring_budget(c, rows, whole)));
  std::printf("| update, forward and backward | %.1f |\n",
              packs * seconds(training_budget(c, rows, whole, HeadLogits::again)));
  std::printf("| %ld x AdamW, moments of 32 bits | %.2f |\n", updates,
              static_cast<double>(updates) * seconds(update_budget(c, 32)));
}

inline void print_budget(const Arguments& args) {
  const std::string file = args.word("config", "");
  const ModelConfig c = file.empty() ? config_of(args.word("shape", "q15b")) : read_model_config_file(file);
  const DeviceLimits limits{1e12 * std::stod(args.word("tops", "789")), 1e12 * std::stod(args.word("tbs", "2.98"))};
  const int64_t sequence = args.number("sequence", 1024), context = args.number("context", 1000);
  std::vector<BudgetColumn> training;
  for (const int64_t rows : budget_numbers(args.word("rows", "4096,16896"))) {
    training.emplace_back(str(rows, " rows"), training_budget(c, rows, sequence, HeadLogits::again), limits);
  }
  print_budget_table(training, {"GEMMs of blocks", "LM head GEMMs", "LM head kernels", "attention", "row kernels"});
  std::vector<BudgetColumn> heads;
  for (const auto& [name, how] :
       {std::pair{"again", HeadLogits::again}, {"kept", HeadLogits::kept}, {"whole", HeadLogits::whole}}) {
    heads.emplace_back(str("head=", name, ", 4,096 rows"), training_budget(c, 4096, sequence, how), limits);
  }
  print_budget_table(heads, {"LM head GEMMs", "LM head kernels"});
  std::vector<BudgetColumn> updates;
  for (const int64_t bits : {32, 16, 8})
    updates.emplace_back(str("moments of ", bits, " bits"), update_budget(c, bits), limits);
  print_budget_table(updates, {"AdamW"});
  for (const bool truncated : {false, true}) {
    std::vector<BudgetColumn> decoding;
    for (const int64_t lanes : budget_numbers(args.word("lanes", "16,64,256,1024"))) {
      decoding.emplace_back(str(lanes, " lanes", truncated ? ", truncated" : ""),
                            decoding_budget(c, lanes, context, truncated), limits);
    }
    if (truncated) {
      print_budget_table(decoding, {"draw"});
    } else {
      print_budget_table(decoding, {"GEMMs of blocks", "KV cache", "logits", "draw", "row kernels"});
    }
  }
  print_step_budget(args, c, limits);
}

}  // namespace ucas
