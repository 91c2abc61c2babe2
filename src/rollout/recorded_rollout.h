// Recording and replay of episodes, byte for byte: a step that was sampled ahead is kept in its checkpoint, because the
// weights that sampled it no longer exist on resume. Fed by train/collect/prefetched_step. Without inserts: an
// environment is refused where steps are sampled ahead.
#pragma once

#include <string>
#include <vector>

#include "rollout/rollouter.h"

namespace ucas {

// Records what `own` samples: one run after another, each with its length before it.
class RecordingRollout final : public Rollouter {
 public:
  explicit RecordingRollout(Rollouter& own) : own_(own) {}
  std::vector<Episode> run(const RolloutRequest& request) override;
  std::string bytes;

 private:
  Rollouter& own_;
};

// Gives back what was recorded. Error(ErrorKind::truncated) naming `where` for bytes that are not of these runs.
class ReplayedRollout final : public Rollouter {
 public:
  ReplayedRollout(const std::string& bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}
  std::vector<Episode> run(const RolloutRequest& request) override;

 private:
  [[noreturn]] void refuse() const;
  const std::string& bytes_;
  const std::string where_;
  size_t at_ = 0;
};

}  // namespace ucas
