// Fakes for trainer tests: responses from a script, and a verifier that compares text with gold.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "rollout/rollouter.h"
#include "verify/grader.h"

namespace ucas {

// script(problem, sample, step) -> token ids, the stop id last unless the response is cut.
class ScriptedRollout final : public Rollouter {
 public:
  using Script = std::function<std::vector<int32_t>(uint32_t problem, uint32_t sample, uint32_t step)>;
  explicit ScriptedRollout(Script script) : script_(std::move(script)) {}

  std::vector<Episode> run(const RolloutRequest& request) override {
    ++calls;
    std::vector<Episode> all;
    for (size_t at = 0; at < request.jobs.size(); ++at) {
      const size_t j = backwards ? request.jobs.size() - 1 - at : at;
      const PromptJob& job = request.jobs[j];
      for (int64_t i = 0; i < job.samples; ++i) {
        Episode s;
        s.job = static_cast<int64_t>(j);
        s.sample = job.first_sample + static_cast<uint32_t>(i);
        s.token = script_(job.problem, s.sample, request.step);
        for (int32_t stop : request.limits.stop_ids)
          s.finished = s.finished || (!s.token.empty() && s.token.back() == stop);
        s.logprob.assign(s.token.size(), -1.0f);
        s.entropy.assign(s.token.size(), 0.5f);
        s.confidence.assign(s.token.size(), 4.0f);
        s.logit.assign(s.token.size(), 1.0f);
        if (said_to) s.inserts = said_to(s);
        sampled_tokens += static_cast<int64_t>(s.token.size());
        if (request.sink.on_response) request.sink.on_response(s);
        if (request.sink.keep) all.push_back(std::move(s));
      }
    }
    std::ranges::sort(all, {}, [](const Episode& s) { return std::pair(s.job, s.sample); });
    return all;
  }
  int64_t calls = 0;
  int64_t sampled_tokens = 0;
  bool backwards = false;                                      // the prompts end from the last to the first
  std::function<std::vector<Insert>(const Episode&)> said_to;  // by an environment

 private:
  Script script_;
};

class SameTextGrader final : public Grader {
 public:
  std::vector<Verdict> grade(std::span<const Answer> answers) const override {
    std::vector<Verdict> verdicts;
    for (const Answer& a : answers) {
      Verdict v;
      v.answer = std::string(a.response);
      v.kind = a.response.empty() || a.gold->empty() ? VerdictKind::unparseable
               : a.response == a.gold->front()       ? VerdictKind::equal
                                                     : VerdictKind::unequal;
      verdicts.push_back(v);
    }
    return verdicts;
  }
  void classify(std::span<Verdict> group) const override {
    std::map<std::string, int32_t> seen;
    for (Verdict& v : group) v.answer_class = seen.emplace(v.answer, static_cast<int32_t>(seen.size())).first->second;
  }
};

}  // namespace ucas
