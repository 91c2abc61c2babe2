#include "rollout/rollouter.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

template <class S, class Visitor>
void each_part(S& sampled, Visitor& visitor) {
  visitor.part(sampled.job);
  visitor.part(sampled.sample);
  visitor.part(sampled.finished);
  visitor.part(sampled.token);
  visitor.part(sampled.logprob);
  visitor.part(sampled.whole_logprob);
  visitor.part(sampled.entropy);
  visitor.part(sampled.confidence);
  visitor.part(sampled.logit);
}

class SharedRollout final : public Rollouter {
 public:
  SharedRollout(Rollouter& own, Ranks& ranks) : own_(own), ranks_(ranks) {}

  std::vector<Episode> run(const RolloutRequest& request) override {
    const std::vector<Episode> sampled = sample_own(request);
    std::vector<Episode> all;
    bool stopped = false;
    // First whether the rank was interrupted, which leaves responses out.
    const std::string mine = (request.limits.should_stop && request.limits.should_stop() ? "1" : "0");
    for (const std::string& text : ranks_.all_gather("responses", mine + sampled_bytes(sampled))) {
      stopped = stopped || text[0] == '1';
      for (Episode& s : read_sampled(std::string_view(text).substr(1), "what a rank sends")) {
        all.push_back(std::move(s));
      }
    }
    std::ranges::sort(
        all, [](const Episode& a, const Episode& b) { return a.job != b.job ? a.job < b.job : a.sample < b.sample; });
    if (!stopped) check_all_there(all, request.jobs);
    if (request.sink.on_response) {
      for (const Episode& s : all) request.sink.on_response(s);
    }
    if (!request.sink.keep) all.clear();
    return all;
  }

 private:
  // Every size-th prompt; its number here is not that among all.
  std::vector<Episode> sample_own(const RolloutRequest& request) {
    const auto number = [&](int64_t job) { return ranks_.rank() + job * ranks_.size(); };
    std::vector<PromptJob> jobs;
    for (int64_t job = 0; number(job) < std::ssize(request.jobs); ++job) jobs.push_back(request.jobs[number(job)]);
    if (jobs.empty()) return {};
    RolloutRequest mine = request;
    mine.jobs = jobs;
    mine.sink.keep = true;
    mine.sink.on_response = nullptr;
    if (request.sink.on_token) {
      mine.sink.on_token = [&](int64_t job, uint32_t sample, int32_t token) {
        request.sink.on_token(number(job), sample, token);
      };
    }
    if (request.name_of) mine.name_of = [&](int64_t job) { return request.name_of(number(job)); };
    std::vector<Episode> sampled = own_.run(mine);
    for (Episode& s : sampled) s.job = number(s.job);
    return sampled;
  }

  // Every requested response, once: a missing one would be an empty group, and count as solved by none.
  void check_all_there(const std::vector<Episode>& all, std::span<const PromptJob> jobs) const {
    int64_t asked = 0;
    for (const PromptJob& job : jobs) asked += job.samples;
    const auto refuse = [&](int64_t job) {
      throw Error(ErrorKind::ranks,
                  str("rank ", ranks_.rank(), " of ", ranks_.size(), ": the ranks have ", all.size(), " of ", asked,
                      " responses together; prompt ", job, " of the step lacks one or has a duplicate (a bug in ucas; ",
                      "please report it with the command)"),
                  kNumeric);
    };
    size_t at = 0;
    for (int64_t job = 0; job < std::ssize(jobs); ++job) {
      const size_t first = at;
      const uint32_t first_sample = jobs[job].first_sample;
      while (at < all.size() && all[at].job == job && all[at].sample == first_sample + (at - first)) ++at;
      if (at - first != static_cast<size_t>(jobs[job].samples)) refuse(job);
    }
    if (at != all.size()) refuse(std::ssize(jobs) - 1);
  }

  Rollouter& own_;
  Ranks& ranks_;
};

}  // namespace

std::string sampled_bytes(const std::vector<Episode>& responses) {
  BytesWriter writer;
  for (const Episode& s : responses) each_part(s, writer);
  return std::move(writer.bytes);
}

std::vector<Episode> read_sampled(std::string_view bytes, const std::string& where) {
  std::vector<Episode> responses;
  for (BytesReader reader(bytes, where); !reader.at_end();) each_part(responses.emplace_back(), reader);
  return responses;
}

std::unique_ptr<Rollouter> share_rollout(Rollouter& own, Ranks& ranks) {
  return std::make_unique<SharedRollout>(own, ranks);
}

}  // namespace ucas
