#include "plan/micro_batch.h"

#include "base/str.h"

namespace ucas {

namespace {

constexpr int64_t kTileRows = 128, kTileColumns = 256;
// Beyond, a micro-batch gains little: gradients are read and written less often.
constexpr int64_t kEnoughTokens = 16384;
constexpr double kWorthIt = 0.02;

int64_t over(int64_t n, int64_t by) { return (n + by - 1) / by; }

}  // namespace

double tile_share(const ModelConfig& model, int64_t rows, int64_t multiprocessors) {
  // A GPU multiplies by q, k and v as one matrix, and by gate and up as one (model/weights.h).
  const int64_t D = model.hidden_size, F = model.intermediate_size;
  const int64_t heads = model.num_attention_heads * model.head_dim, keys = model.num_key_value_heads * model.head_dim;
  const int64_t in[] = {D, heads, D, F}, out[] = {heads + 2 * keys, D, 2 * F, D};
  double work = 0, time = 0;
  for (int i = 0; i < 4; ++i) {
    const int64_t tiles = over(rows, kTileRows) * over(out[i], kTileColumns);
    work += static_cast<double>(rows * out[i] * in[i]);
    time += static_cast<double>(over(tiles, multiprocessors) * multiprocessors * kTileRows * kTileColumns * in[i]);
  }
  return work / time;
}

MicroBatchProposal propose_micro_batch(const TrainConfig& config, const PlannedModels& models, const Device& device) {
  if (device.multiprocessors == 0 || config.dtype != Dtype::bf16) return {};
  MicroBatchProposal found;
  found.before = tile_share(models.policy, config.update.micro_batch_tokens, device.multiprocessors);
  const int64_t step = device.multiprocessors / 2 * kTileRows;
  const int64_t longest = config.data.max_prompt_length + config.rollout.response_length;
  TrainConfig other = config;
  for (int64_t tokens = over(longest, step) * step;; tokens += step) {
    other.update.micro_batch_tokens = tokens;
    const int64_t peak = plan_memory(other, models).peak();
    if (peak > with_spare(device.memory)) break;
    found.tokens = tokens, found.peak = peak;
    if (tokens >= kEnoughTokens) break;
  }
  if (found.tokens == 0) return found;
  found.share = tile_share(models.policy, found.tokens, device.multiprocessors);
  if (found.share < found.before + kWorthIt) found.tokens = 0;
  return found;
}

std::string proposal_text(const MicroBatchProposal& proposal, const TrainConfig& config, const Device& device) {
  if (proposal.tokens == 0) return "";
  return str("tiles   update.micro_batch_tokens = ", proposal.tokens, " gives the GEMMs ", percent(proposal.share, 0),
             " of the ", device.multiprocessors, " multiprocessors, ", config.update.micro_batch_tokens, " gives ",
             percent(proposal.before, 0), "; peak ", human_bytes(static_cast<double>(proposal.peak)),
             "; counted by tiles of 128 x 256, not timed\n");
}

}  // namespace ucas
