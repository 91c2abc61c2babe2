// What must be the same for a resumed run to equal an uninterrupted one, as text with one `name = value` a line: kept
// in every checkpoint and compared on resume.
#pragma once

#include <string>
#include <vector>

#include "config/train_config.h"
#include "model/model.h"

namespace ucas {

// True for options that do not change what a step computes: they may change between a run and its resumption.
// As train.steps and train.epochs may.
bool is_free_option(const std::string& key);

// Hash over everything that decides what a checkpoint's model computes; of an adapter's directory its base as well.
std::string hash_of_model(const std::string& directory);

// Of "cuda:1" as of "cuda": which of the devices is no property of a run.
std::string kind_of_device(const std::string& device);

struct FingerprintInput {
  const TrainConfig& config;
  std::string data, validation;  // hashes of the problems
  std::string tokenizer;         // directory it was loaded from
  int64_t ranks = 1;
};
std::string make_fingerprint(const FingerprintInput& input);

// "rollout.n = 8, now rollout.n = 16" for each line that is not the same.
std::vector<std::string> compare_fingerprints(const std::string& saved, const std::string& now);

// What must be the same on all ranks, as lines "name = value": every option but those of the place, what a resume
// compares, and the weights that the run begins with. In bf16 no rank has all masters: those of a `fresh` run are what
// its files say, those of a resumed one what the manifest of its checkpoint says, which is compared before.
std::vector<std::string> lines_of_run(const TrainConfig& config, const std::string& fingerprint, const std::string& out,
                                      Model& model, bool fresh);

}  // namespace ucas
