// update.shard = "auto": what ranks keep shares of, by the plan.
#include "base/str.h"
#include "hf/model_config.h"
#include "plan/plan.h"

namespace ucas {

namespace {

// What costs least first: shares of gradients travel more often, offload passes the link to the host in every update,
// shares of weights travel in every pass.
struct Candidate {
  Shard shard;
  bool may_offload;  // where update.offload is auto as well
};
constexpr Candidate kCandidates[] = {{Shard::moments, false},
                                     {Shard::gradients, false},
                                     {Shard::gradients, true},
                                     {Shard::weights, false},
                                     {Shard::weights, true}};

}  // namespace

std::string why_not_by_weights(const TrainConfig& config, const PlannedModels& models) {
  if (config.reference.moves()) return "a reference that moves needs whole weights of its own";
  if (models.gpu == 0) return "";
  const std::string unsuited =
      models.kernels ? unsuited_for_kernels(models.policy, config.model_options()) : "none of them runs here";
  return unsuited.empty() ? "" : str("the model runs by LibTorch's operations, not by GPU kernels (", unsuited, ")");
}

std::string decide_shard(TrainConfig& config, const PlannedModels& models, int64_t memory) {
  if (config.update.shard != Shard::automatic) return "";
  const auto said = [&](const std::string& why) {
    return str("update.shard = \"auto\": ", word_of(config.update.shard), why);
  };
  config.update.shard = Shard::moments;
  if (models.ranks == 1) return said(", as one process shares nothing");
  const Offload asked = config.update.offload;
  Shard least = Shard::moments;
  const std::string no_weights = why_not_by_weights(config, models);
  for (const Candidate& candidate : kCandidates) {
    if (candidate.may_offload && asked != Offload::automatic) continue;
    if (candidate.shard == Shard::weights && !no_weights.empty()) continue;
    TrainConfig tried = config;
    tried.update.shard = least = candidate.shard;
    if (asked == Offload::automatic && !candidate.may_offload) tried.update.offload = Offload::none;
    const int64_t peak = plan_memory(tried, models).peak();
    if (peak > memory) continue;
    config.update.shard = candidate.shard;
    return said(str(", the first that fits: planned peak ", human_bytes(static_cast<double>(peak)), " of ",
                    human_bytes(static_cast<double>(memory)), " for each of ", models.ranks, " ranks"));
  }
  config.update.shard = least;
  return said(str(", the smallest, though its plan does not fit ", human_bytes(static_cast<double>(memory)),
                  no_weights.empty() ? "" : str("; not \"weights\": ", no_weights)));
}

}  // namespace ucas
