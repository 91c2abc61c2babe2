// Where responses come from. Interface so that the trainer can be tested with scripted responses.
// Fed by prompts as token ids; gives token ids with what the sampling pass saw. Token ids travel end to end; nothing
// is re-tokenised. A response depends on its prompt and key alone, so greedy and sampled jobs, and jobs of different
// limits, share one run.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sampling/config.h"

namespace ucas {

struct PromptJob {
  std::span<const int32_t> prompt;  // token ids, at least one
  uint32_t problem = 0;             // key of its randomness (rng.h), and for the caller
  int64_t samples = 1;              // n responses; they share the prompt's prefill
  uint32_t first_sample = 0;        // number of the first of them
  // Where jobs of one run differ from the request.
  bool greedy = false;                     // the most probable token, whatever the request's temperature
  int64_t max_tokens = 0;                  // 0 = the request's
  std::span<const int32_t> stop_ids = {};  // empty = the request's
};

struct Sampled {    // one response; all vectors have its length, end token included
  int64_t job = 0;  // index into the jobs
  uint32_t sample = 0;
  bool finished = false;  // ended by a stop id (which is the last token)
  std::vector<int32_t> token;
  // Of the distribution that was sampled from (temperature applied; log-prob after what is cut is renormalised).
  std::vector<float> logprob;
  std::vector<float> whole_logprob;  // before that renormalisation, where SamplingConfig::truncates(); else empty
  std::vector<float> entropy;        // H of softmax(z), z = logits / temperature
  std::vector<float> confidence;     // C = LSE(z) - mean_v z
  std::vector<float> logit;          // raw logit of the chosen token
};

struct RolloutRequest {
  std::span<const PromptJob> jobs;
  SamplingConfig sampling;
  uint64_t seed = 0;
  uint32_t step = 0;  // with the seed, the problem, the sample and the position the key of each sampled token
  std::vector<int32_t> stop_ids;
  std::function<bool(const Sampled&)> ends;  // asked after each token: true ends the response like a stop id
  // Called from the calling thread as responses end, and per token if on_token is set.
  std::function<void(const Sampled&)> on_response;
  std::function<void(int64_t job, uint32_t sample, int32_t token)> on_token;
  bool keep = true;                   // false: responses go to on_response alone, run() returns none
  std::function<bool()> should_stop;  // polled once per decode step; true = give up and return what is done
  // For runs that others join (serve): polled once per decode step, numbered after the jobs that there are. Their
  // prompts stay where they are until the run ends. Room is made at the beginning: for this many responses, each with
  // its prompt of at most this many tokens.
  std::function<std::vector<PromptJob>()> more;
  int64_t room_responses = 0, room_tokens = 0;
  // Asked after each token; true = cancelled: the response ends here as one that was cut.
  std::function<bool(int64_t job, uint32_t sample)> unwanted;
  std::function<std::string(int64_t job)> name_of;  // what a watchdog calls a prompt; none: its number
};

class Rollout {
 public:
  virtual ~Rollout() = default;
  // All responses, ordered by (job, sample); none where `keep` is false.
  virtual std::vector<Sampled> run(const RolloutRequest& request) = 0;
};
}  // namespace ucas
