// steps.jsonl, the log of a training: one line of numbers a step, written by train/metrics, read by report, study and
// progress as columns. sft.jsonl, the log of a fine-tuning, with it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ucas {

// {"training/global_step": 1, ...} in the order given; numbers that are not finite are null. Error(config)
// where two have one name.
std::string step_line(std::span<const std::pair<std::string, double>> values);

// Columns; a number that a step lacks, or that was not finite, is unknown (NaN).
struct StepTable {
  std::vector<double> step;                                // [S] training/global_step, ascending
  std::map<std::string, std::vector<double>> column;       // each [S]
  std::vector<std::pair<std::string, double>> not_finite;  // key and step of each null
  bool empty() const { return step.empty(); }
  const std::vector<double>* find(const std::string& key) const;
  // Columns that fit a pattern with one *, "val-core/*/acc/mean@1"; a key without one is itself, if it is there.
  std::vector<std::string> fitting(const std::string& pattern) const;
  // Their mean at each step, over those that are known there, [S]. Empty if there is none.
  std::vector<double> mean_over(const std::string& pattern) const;
  double last(const std::string& key) const;  // last known value, or unknown
  double first(const std::string& key) const;
};
// Throws Error: data_line, limit, or those of the JSON. A torn last line is left out and remarked.
StepTable read_steps(const std::string& path, std::vector<std::string>& remarks);

struct SftTable {
  std::vector<double> step, loss, lr, tokens;
};
SftTable read_sft_steps(const std::string& path, std::vector<std::string>& remarks);

}  // namespace ucas
