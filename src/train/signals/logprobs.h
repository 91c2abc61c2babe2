// Packs prompts with their responses and inserts, and reads the old policy's signals off one forward pass: log-prob, H,
// C and the raw logit of every generated token (Eq. 5). Legend: R rows of a packed micro-batch, N response tokens in
// it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.h"
#include "model/model.h"
#include "sharding/gradient_schedule.h"
#include "train/signals/balanced_pack.h"

namespace ucas {

// Some responses of a batch as one packed micro-batch. Row `row[k]` of the hidden states produced token `target[k]`.
struct PackedResponses {
  Packed packed;                     // prompt + response and inserts without the last token, in their order
  std::vector<int64_t> row;          // [N], and one of each tail
  std::vector<int32_t> target;       // as many as row; of a tail meaningless
  std::vector<int64_t> token_index;  // [N] position in Batch::token
  std::vector<int64_t> response;     // indices in Batch::responses, in packed order; empty ones are left out
  std::vector<int64_t> tail;         // responses whose rows after the last token are at the end of `row`
};
// Responses shorter than `tail_limit` are packed with their last token, whose row is their tail. If prompts are shared
// (Model::shares_prefixes), consecutive responses of one group follow one sequence, their prompt without its last
// token; else, and if it is the only one of its group, a response is one sequence with its prompt.
PackedResponses pack_responses(const Batch& batch, std::span<const int64_t> responses, bool share_prompts,
                               int64_t tail_limit = 0);

// Groups responses into micro-batches under a token budget, in order.
std::vector<std::vector<int64_t>> micro_batches(const Batch& batch, std::span<const int64_t> responses,
                                                int64_t token_budget, bool share_prompts);
// All of its responses.
std::vector<std::vector<int64_t>> micro_batches(const Batch& batch, int64_t token_budget, bool share_prompts);
// Of an update (sharding/gradient_schedule.h says which are whose): by sums in order on one process, on several ranks
// as much work for each; by micro-batches the same for any number of ranks, in waves of as much work
// (train/signals/balanced_pack.h; `head`: that of the LM head, too).
std::vector<std::vector<int64_t>> micro_batches(Model& model, const Batch& batch, std::span<const int64_t> responses,
                                                int64_t token_budget, const Among& among, bool head = true);
// What is packed there, in multiply-adds of a model of this shape.
std::vector<PackItem> pack_items(const ModelConfig& shape, const Batch& batch, std::span<const int64_t> responses,
                                 bool head);
std::vector<int64_t> indices(int64_t first, int64_t last);  // first, .. last - 1

// Those of this rank.
std::span<const std::vector<int64_t>> own_micro_batches(std::span<const std::vector<int64_t>> micros, Ranks* ranks);
// The value of a number that another rank computes: x + -0.0 has the bits of x for every x, -0.0 too.
constexpr float kFilledByOtherRank = -0.0f;
// Numbers of which each was computed by one rank, to all.
void all_gather(Ranks* ranks, const std::vector<std::vector<float>*>& parts);

// Some rows of a micro-batch.
struct RowRange {
  int64_t first = 0, count = 0;
};

// Whole responses, as many at a time as have at most so many rows, without tails; a longer one alone, or cut into
// parts of as many rows.
std::vector<RowRange> head_parts(const Batch& batch, const PackedResponses& micro, int64_t rows, bool cut);

// Hidden states of those rows, and their LM-head statistics; differentiable when gradients are on.
at::Tensor response_rows(Model& model, const PackedResponses& packed);
HeadStats response_stats(Model& model, const PackedResponses& packed, double temperature,
                         std::span<const TokenSignal> signals = {});

// Copies a [N] tensor to the host.
std::vector<float> to_host(const at::Tensor& values);

// Backward from one scalar whose gradient with respect to each of these, [n], is exactly the one given. After the
// first those that are 0 everywhere are left out.
struct GivenGradient {
  at::Tensor values;
  std::span<const float> gradient;
};
void backward_from(const std::vector<GivenGradient>& terms);

// Fills old_logprob, entropy, confidence and logit of the whole batch and those of `signals` that the head computes,
// from one forward pass. `tail_limit` > 0: also Response::tail_confidence of responses shorter than that, the length
// limit.
// Of several ranks each computes some micro-batches; the result is bit-identical to one process.
void compute_signals(Model& model, Batch& batch, double temperature, int64_t token_budget, int64_t tail_limit = 0,
                     std::span<const TokenSignal> signals = {}, Ranks* ranks = nullptr);

// The same from the sampler's figures, which entropy, confidence and logit hold already: taken for the
// trainer's if those of every kCheckedOf-th response, the first of them `step` modulo that, have the trainer's bits.
// Gives how many tokens were compared (0: these responses are all empty), or -1 if some differ; then, and where none
// was compared, nothing is taken.
int64_t accept_sampled(Model& model, Batch& batch, double temperature, int64_t token_budget, int64_t step);

// Log-probs of the batch's tokens under another model, [N], without gradients; bit-equal to compute_signals' where the
// weights are equal.
std::vector<float> compute_logprobs(Model& model, const Batch& batch, double temperature, int64_t token_budget,
                                    Ranks* ranks = nullptr);

// The sampler/trainer mismatch of log-probs, over all tokens; of the same distribution, the whole
// vocabulary's.
struct Mismatch {
  double max = 0;  // largest |rollout - old|
  double mean = 0;
  double share = 0;  // of tokens beyond 1e-3
};
Mismatch mismatch(const Batch& batch);

}  // namespace ucas
