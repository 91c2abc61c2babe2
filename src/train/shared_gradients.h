// What ranks exchange of a mini-batch that each has worked off a part of. Every call is made by all ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>

#include "objective/aggregate.h"
#include "train/gradients.h"
#include "train/ranks.h"

namespace ucas {

// The sums of what each has.
LossMetrics sum_of(Ranks& ranks, const LossMetrics& mine);
// Each rank's turn, one after the other: `metrics` and the gradients go from rank to rank, and the last one's to all.
LossMetrics in_turn(Ranks& ranks, std::span<const at::Tensor> gradients, LossMetrics& metrics,
                    const std::function<void()>& turn);
// Where ranks keep shares of gradients: works off the micro-batches, `learn` those of this rank, which adds to
// `metrics`. In order all end with the same; by sums each with its own part.
LossMetrics learn_in_shards(const ObjectiveInput& in, int64_t micros, LossMetrics& metrics,
                            const std::function<void(int64_t micro)>& learn);
// Into in.record: each rank has noted the tokens of its micro-batches, [N], and 0 for all others.
void share_record(const ObjectiveInput& in, TokenUpdates& noted);

}  // namespace ucas
