#include "rollout/shared_rollout.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"
#include "rollout/recorded_rollout.h"

namespace ucas {

namespace {

constexpr int64_t kClaimed = 4;  // one prompt in so many waits for who is first

// The prompts that one rank samples in one run.
class OwnPart {
 public:
  OwnPart(const RolloutRequest& request, Ranks& ranks, bool claims)
      : request_(request),
        ranks_(ranks),
        claims_(claims),
        name_(str("prompts/", ranks.next_number())),
        needed_(std::ssize(request.jobs)) {
    const auto count = std::ssize(request.jobs);
    dealt_ = claims && count >= 2 * ranks.size() ? count - count / kClaimed : count;
    for (int64_t job = ranks.rank(); job < dealt_; job += ranks.size()) jobs_.push_back(taken(job));
    first_responses_ = under_way_;
    all_claimed_ = dealt_ == count;
  }

  int64_t needed() const { return needed_; }  // prompts before this one, as this rank knew at last

  std::vector<Episode> sampler(Rollouter& own) {
    if (claims_ && jobs_.empty()) jobs_ = claimed();
    return jobs_.empty() ? std::vector<Episode>() : sampled_of_jobs(own);
  }

 private:
  std::vector<Episode> sampled_of_jobs(Rollouter& own) {
    RolloutRequest mine = request_;
    mine.jobs = jobs_;
    mine.sink.keep = true;
    mine.sink.on_response = [this](const Episode&) { --under_way_; };
    if (request_.sink.on_own_response) {
      mine.sink.on_own_response = [this](const Episode& episode) {
        Episode own = episode;
        own.job = number_[episode.job];
        request_.sink.on_own_response(own);
      };
    }
    if (request_.sink.on_token) {  // of what is sampled here
      mine.sink.on_token = [this](int64_t job, uint32_t sample, int32_t token) {
        request_.sink.on_token(number_[job], sample, token);
      };
    }
    if (request_.limits.needed_jobs) mine.limits.needed_jobs = [this] { return needed_of_own(); };
    if (request_.sink.on_aborted) {
      mine.sink.on_aborted = [this](const Episode& episode) {
        Episode own = episode;
        own.job = number_[episode.job];
        request_.sink.on_aborted(own);
      };
    }
    if (request_.name_of) mine.name_of = [this](int64_t job) { return request_.name_of(number_[job]); };
    if (claims_) {
      mine.feed.more = [this] { return claimed(); };
      for (const PromptJob& job : request_.jobs) {
        mine.feed.room_tokens = std::max(mine.feed.room_tokens, std::ssize(job.prompt) + most_tokens(job));
      }
    }
    std::vector<Episode> sampled = own.run(mine);
    for (Episode& s : sampled) s.job = number_[s.job];
    return sampled;
  }

  int64_t most_tokens(const PromptJob& job) const {
    return job.max_tokens > 0 ? job.max_tokens : request_.sampling.max_tokens;
  }
  // As numbers of this rank's prompts. While it has none that is not needed, it may get more that are; from then on
  // all that it would get come later.
  int64_t needed_of_own() {
    needed_ = std::min(needed_, request_.limits.needed_jobs());
    const auto first = std::ranges::lower_bound(number_, needed_);
    return first == number_.end() ? std::numeric_limits<int64_t>::max() : first - number_.begin();
  }
  PromptJob taken(int64_t job) {
    number_.push_back(job);
    under_way_ += request_.jobs[job].samples;
    return request_.jobs[job];
  }
  std::vector<PromptJob> claimed() {
    std::vector<PromptJob> jobs;
    while (!all_claimed_ && 2 * under_way_ < first_responses_) {
      const int64_t job = dealt_ + ranks_.next_in_counter(name_);
      all_claimed_ = job >= needed_;
      if (!all_claimed_) jobs.push_back(taken(job));
    }
    return jobs;
  }

  const RolloutRequest& request_;
  Ranks& ranks_;
  const bool claims_;
  const std::string name_;
  int64_t dealt_ = 0;  // prompts before this one are assigned from the start
  std::vector<PromptJob> jobs_;
  std::vector<int64_t> number_;  // among all prompts, of each that is sampled here
  int64_t under_way_ = 0, first_responses_ = 0;
  bool all_claimed_ = false;
  int64_t needed_;
};

class SharedRollout final : public Rollouter {
 public:
  SharedRollout(Rollouter& own, Ranks& ranks, bool claims) : own_(own), ranks_(ranks), claims_(claims) {}

  std::vector<Episode> run(const RolloutRequest& request) override {
    OwnPart part(request, ranks_, claims_);
    const std::vector<Episode> sampled = part.sampler(own_);
    std::vector<Episode> all;
    bool stopped = false;
    int64_t needed = part.needed();
    // First whether the rank was told to stop, which leaves responses out, and which prompts it takes to be needed:
    // those that all take to be have all their responses.
    const std::string mine =
        str(request.limits.should_stop && request.limits.should_stop() ? 1 : 0, needed, ":") + sampled_bytes(sampled);
    for (const std::string& text : ranks_.all_gather("responses", mine)) {
      stopped = stopped || text[0] == '1';
      const size_t head = text.find(':') + 1;
      needed = std::min<int64_t>(needed, std::stoll(text.substr(1, head - 2)));
      for (Episode& s : read_sampled(std::string_view(text).substr(head), "what a rank sends")) {
        all.push_back(std::move(s));
      }
    }
    std::erase_if(all, [&](const Episode& s) { return s.job >= needed; });
    std::ranges::sort(
        all, [](const Episode& a, const Episode& b) { return a.job != b.job ? a.job < b.job : a.sample < b.sample; });
    if (!stopped) check_all_there(all, request.jobs.first(static_cast<size_t>(needed)));
    if (request.sink.on_response) {
      for (const Episode& s : all) request.sink.on_response(s);
    }
    if (!request.sink.keep) all.clear();
    return all;
  }

 private:
  // Every response that was asked for, once: what is missing would be an empty group, and count as solved by none.
  void check_all_there(const std::vector<Episode>& all, std::span<const PromptJob> jobs) const {
    int64_t asked = 0;
    for (const PromptJob& job : jobs) asked += job.samples;
    const auto refuse = [&](int64_t job) {
      throw Error(ErrorKind::ranks,
                  str("rank ", ranks_.rank(), " of ", ranks_.size(), ": the ranks have ", all.size(), " of ", asked,
                      " responses together; prompt ", job, " of the step lacks one or has one twice (a bug in ucas; ",
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
  const bool claims_;
};

// What followers must know of a request, as text.
std::string request_text(const RolloutRequest& request) {
  const SamplingConfig& s = request.sampling;
  Json text = {{"sampling", {s.temperature, s.top_p, s.top_k, s.min_p, s.max_tokens}},
               {"seed", request.seed},
               {"step", request.step},
               {"stop_ids", request.limits.stop_ids}};
  for (const PromptJob& job : request.jobs) {
    text["jobs"].push_back({std::vector<int32_t>(job.prompt.begin(), job.prompt.end()), job.problem, job.samples,
                            job.first_sample, job.greedy, job.max_tokens,
                            std::vector<int32_t>(job.stop_ids.begin(), job.stop_ids.end())});
  }
  return text.dump();
}

// A request with what its jobs point to.
struct HeardRequest {
  explicit HeardRequest(const std::string& text) {
    const Json said = parse_json(text, "what rank 0 sends");
    const Json& s = said.at("sampling");
    request.sampling = {.temperature = s[0], .top_p = s[1], .top_k = s[2], .min_p = s[3], .max_tokens = s[4]};
    request.seed = said.at("seed");
    request.step = said.at("step");
    request.limits.stop_ids = said.at("stop_ids").get<std::vector<int32_t>>();
    for (const Json& job : said.at("jobs")) {
      const auto& prompt = ids.emplace_back(job[0].get<std::vector<int32_t>>());
      const auto& stops = ids.emplace_back(job[6].get<std::vector<int32_t>>());
      jobs.push_back({.prompt = prompt,
                      .problem = job[1],
                      .samples = job[2],
                      .first_sample = job[3],
                      .greedy = job[4],
                      .max_tokens = job[5],
                      .stop_ids = stops});
    }
    request.jobs = jobs;
  }
  std::deque<std::vector<int32_t>> ids;  // their places stay
  std::vector<PromptJob> jobs;
  RolloutRequest request;
};

class LeadingRollout final : public Rollouter {
 public:
  LeadingRollout(Rollouter& own, Ranks& ranks) : ranks_(ranks), shared_(own, ranks, true) {}

  // In pieces: finished responses are passed on before the next chunk begins.
  std::vector<Episode> run(const RolloutRequest& request) override {
    UCAS_CHECK(!request.limits.ends && !request.feed.more, "follower ranks know stop ids only, no stop strings");
    UCAS_CHECK(!request.sink.on_own_response, "what followers sample is heard of at the end");
    std::vector<Episode> all;
    const size_t piece = static_cast<size_t>(ranks_.size() * kPromptsAtOnce);
    for (size_t first = 0; first < request.jobs.size(); first += piece) {
      if (request.limits.should_stop && request.limits.should_stop()) break;
      RolloutRequest part = request;
      part.jobs = request.jobs.subspan(first, std::min(piece, request.jobs.size() - first));
      if (request.sink.on_response)
        part.sink.on_response = [&](const Episode& s) { request.sink.on_response(of_all(s, first)); };
      if (request.sink.on_token) {
        part.sink.on_token = [&](int64_t job, uint32_t sample, int32_t token) {
          request.sink.on_token(job + static_cast<int64_t>(first), sample, token);
        };
      }
      part.name_of = nullptr;
      tell_followers(ranks_, request_text(part));
      for (Episode& s : shared_.run(part)) all.push_back(of_all(std::move(s), first));
    }
    return all;
  }

 private:
  static constexpr int64_t kPromptsAtOnce = 64;  // of each rank
  static Episode of_all(Episode s, size_t first) {
    s.job += static_cast<int64_t>(first);
    return s;
  }
  Ranks& ranks_;
  SharedRollout shared_;
};

}  // namespace

std::unique_ptr<Rollouter> lead_rollout(Rollouter& own, Ranks& ranks) {
  return std::make_unique<LeadingRollout>(own, ranks);
}

void tell_followers(Ranks& ranks, const std::string& work) { ranks.from_leader("what to do", work); }

void dismiss_followers(Ranks& ranks) { tell_followers(ranks, ""); }

void follow_rollout(Rollouter& own, Ranks& ranks, const std::function<bool()>& should_stop,
                    const std::function<void(const std::string& work)>& other) {
  SharedRollout shared(own, ranks, true);
  for (std::string text; !(text = ranks.from_leader("what to do", "")).empty();) {
    if (!text.starts_with('{')) {
      UCAS_CHECK(other != nullptr, "expected followers that do more than sample");
      other(text);
      continue;
    }
    HeardRequest heard(text);
    heard.request.limits.should_stop = should_stop;
    heard.request.sink.keep = false;
    shared.run(heard.request);
  }
}

std::unique_ptr<Rollouter> share_rollout(Rollouter& own, Ranks& ranks, bool claims) {
  return std::make_unique<SharedRollout>(own, ranks, claims);
}

}  // namespace ucas
