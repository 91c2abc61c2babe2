// Recording and replay of episodes, byte for byte: a step that was sampled ahead is kept in its checkpoint, because the
// weights that sampled it no longer exist on resume. Fed by train/collect/prefetched_step. Without inserts: an
// environment is refused where steps are sampled ahead. And episodes as bytes, bit for bit, as ranks send them to each
// other, too: numbers as they lie in memory, as all who read them are the same program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rollout/rollouter.h"

namespace ucas {

std::string sampled_bytes(const std::vector<Episode>& responses);
// Error(ErrorKind::truncated) naming `where` for bytes that are not whole.
std::vector<Episode> read_sampled(std::string_view bytes, const std::string& where);

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
