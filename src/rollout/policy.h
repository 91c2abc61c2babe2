// A checkpoint ready to generate: model, tokenizer and the ids that end a response.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/stored.h"
#include "rollout/rollouter.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

// Ids that end a response: eos of config.json and generation_config.json, eos_token of the tokenizer, and what the
// prompt template ends a turn with (data/prompts/templates: stop_ids). Sorted, each once.
std::vector<int32_t> collect_stop_ids(const ModelConfig& config, const Tokenizer& tokenizer,
                                      std::span<const int32_t> template_stops = {});

// Text of a response as verifiers and people read it: special tokens left out, and so are ids beyond the vocabulary
// (the padding rows of an LM head can be sampled, they mean no text).
std::string response_text(const Tokenizer& tokenizer, std::span<const int32_t> ids);
// The same as a reward sees it: without the stop token, with a stop text.
std::string graded_text(const Tokenizer& tokenizer, std::span<const int32_t> ids, bool finished,
                        std::span<const int32_t> stop_ids);

// RolloutLimits::ends for texts that end a response (rollout.stop, text/stop_texts.h); null where there are none.
// Borrows the tokenizer. Error(ErrorKind::config) for an empty text.
std::function<bool(const Episode&)> ends_at(const Tokenizer& tokenizer, const std::vector<std::string>& texts);

struct Policy {
  std::unique_ptr<Model> model;
  Tokenizer tokenizer;
};

// Why there is no CUDA device, and what to do: from the versions that LibTorch was built for and that the driver
// serves, as CUDA writes them (13000 for 13.0; 0: none).
std::string no_cuda_device(int built_for, int driver);
// What a build can do on GPUs, and what it lacks, for `ucas doctor`: from LibTorch's CUDA (0: none), and whether
// kernels and NCCL were built (not known where no GPU is usable).
std::string cuda_in_words(int built_for, bool kernels, std::optional<bool> nccl);
std::string cuda_in_words();
// "cpu", "cuda" or "cuda:N", which becomes the current device; refuses one that is not there.
at::Device parse_device(const std::string& name);
int64_t visible_cuda_devices();
// `device` of the rank that is number `local` on its host: "cuda" is the local-th of the `visible` devices where there
// are several, and never stored, so that a run resumes wherever its ranks are. Error(ErrorKind::config) where there are
// too few.
std::string device_of_rank(const std::string& device, int64_t local, int64_t visible);
// Whether ranks divide the cores that they share: of `threads` = 0, unless OMP_NUM_THREADS says otherwise.
bool cores_are_divided(int64_t threads);
// CPU threads of everything that follows; 0: the default, or this rank's share of the cores. Call before the first
// operation.
void use_threads(int64_t threads);
// Refuses a tokenizer with more ids than the LM head has rows.
void check_vocabulary(const Tokenizer& tokenizer, const ModelConfig& config);
// A checkpoint with its tokenizer, which may be elsewhere ("": next to the weights); checks the vocabulary before it
// reads the weights. `masters` as load_model() has it.
Policy open_policy(const std::string& directory, at::Device device, const ModelOptions& options,
                   const std::string& tokenizer = "", const KeptMasters& masters = nullptr);

}  // namespace ucas
