#include "rollout/recorded_rollout.h"

#include <cstring>

#include "base/error.h"
#include "base/str.h"
#include "rollout/sampled_bytes.h"

namespace ucas {

std::vector<Episode> RecordingRollout::run(const RolloutRequest& request) {
  std::vector<Episode> sampled = own_.run(request);
  const std::string run = sampled_bytes(sampled);
  const uint64_t size = run.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += run;
  return sampled;
}

std::vector<Episode> ReplayedRollout::run(const RolloutRequest& request) {
  uint64_t size = 0;
  if (bytes_.size() - at_ < sizeof size) refuse();
  std::memcpy(&size, bytes_.data() + at_, sizeof size);
  at_ += sizeof size;
  if (size > bytes_.size() - at_) refuse();
  std::vector<Episode> sampled = read_sampled(std::string_view(bytes_).substr(at_, size), where_);
  at_ += size;
  for (const Episode& s : sampled) {
    if (s.job < 0 || s.job >= static_cast<int64_t>(request.jobs.size()) || s.logprob.size() != s.token.size()) refuse();
    if (request.sink.on_response) request.sink.on_response(s);
  }
  return sampled;
}

void ReplayedRollout::refuse() const {
  throw Error(ErrorKind::truncated,
              str(where_, ": not the responses of the run's next step; go on from an earlier checkpoint"));
}

}  // namespace ucas
