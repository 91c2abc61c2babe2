#include "train/shared_rollout.h"

#include <algorithm>
#include <string>

#include "train/sampled_bytes.h"

namespace ucas {

namespace {

class SharedRollout final : public Rollout {
 public:
  SharedRollout(Rollout& own, Ranks& ranks) : own_(own), ranks_(ranks) {}

  std::vector<Sampled> run(const RolloutRequest& request) override {
    RolloutRequest mine = request;
    std::vector<PromptJob> jobs;
    const auto count = static_cast<int64_t>(request.jobs.size());
    for (int64_t job = ranks_.rank(); job < count; job += ranks_.size()) jobs.push_back(request.jobs[job]);
    mine.jobs = jobs;
    mine.keep = true;
    mine.on_response = nullptr;
    if (request.on_token) {  // of what is sampled here
      mine.on_token = [&](int64_t job, uint32_t sample, int32_t token) {
        request.on_token(job * ranks_.size() + ranks_.rank(), sample, token);
      };
    }
    std::vector<Sampled> drawn;
    if (!jobs.empty()) drawn = own_.run(mine);
    for (Sampled& s : drawn) s.job = s.job * ranks_.size() + ranks_.rank();
    std::vector<Sampled> all;
    for (const std::string& text : ranks_.gather(sampled_bytes(drawn))) {
      for (Sampled& s : read_sampled(text, "what a rank sends")) all.push_back(std::move(s));
    }
    std::ranges::sort(
        all, [](const Sampled& a, const Sampled& b) { return a.job != b.job ? a.job < b.job : a.sample < b.sample; });
    if (request.on_response) {
      for (const Sampled& s : all) request.on_response(s);
    }
    if (!request.keep) all.clear();
    return all;
  }

 private:
  Rollout& own_;
  Ranks& ranks_;
};

}  // namespace

std::unique_ptr<Rollout> share_rollout(Rollout& own, Ranks& ranks) {
  return std::make_unique<SharedRollout>(own, ranks);
}

}  // namespace ucas
