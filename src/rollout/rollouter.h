// Where episodes come from: problems go in, each as a prompt, and a stream of episodes comes out. An episode is what
// the model sampled after a prompt, with what the sampling pass saw of each token, and the inserts of an environment.
// Sources are the engine (engine.cpp) and servers (rollout/served_rollout.h); decorators over them share the
// prompts among ranks (shared_rollout.cpp) and let an environment speak (environment/environment.h). Token ids travel
// end to end; nothing is re-tokenised. An episode depends on its prompt and key alone, so greedy and sampled jobs, and
// jobs of different limits, share one run.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.h"
#include "core/verdict.h"
#include "model/model.h"
#include "rollout/sampling/config.h"
#include "sharding/ranks.h"

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
  const Problem* asked = nullptr;          // what an environment is reset to; needed where there is one
};

struct Episode {    // one response; vectors of its tokens have its length, end token included
  int64_t job = 0;  // index into the jobs
  uint32_t sample = 0;
  bool finished = false;       // ended by a stop id or text (which is the last token), or by the environment
  std::vector<int32_t> token;  // the model's
  // Of the distribution that was sampled from (temperature applied; log-prob after what is cut is renormalised).
  std::vector<float> logprob;
  std::vector<float> whole_logprob;  // before that renormalisation, where SamplingConfig::truncates(); else empty
  std::vector<float> entropy;        // H of softmax(z), z = logits / temperature
  std::vector<float> confidence;     // C = LSE(z) - mean_v z
  std::vector<float> logit;          // raw logit of the chosen token
  std::vector<Insert> inserts = {};  // of an environment between them, ascending
};

// Who takes the episodes. Called from the calling thread.
struct RolloutSink {
  std::function<void(const Episode&)> on_response;  // as they end; of several ranks (shared_rollout.cpp) at the end
  std::function<void(int64_t job, uint32_t sample, int32_t token)> on_token;
  bool keep = true;  // false: episodes go to on_response alone, run() returns none
};

// What ends an episode, or the run.
struct RolloutLimits {
  std::vector<int32_t> stop_ids;
  std::function<bool(const Episode&)> ends;  // called after each token: true ends the response like a stop id
  std::function<bool()> should_stop;         // polled once per decode step; true = give up and return what is done
};

// What an environment answers to an episode.
struct EnvironmentReply {
  enum class Kind { nothing, insert, done, cut };
  Kind kind = Kind::nothing;        // of an unfinished turn; done and cut end the episode: finished, not finished
  std::vector<int32_t> token = {};  // of an insert
  std::string text = {};
};

struct RolloutRequest {
  std::span<const PromptJob> jobs;
  SamplingConfig sampling;  // its max_tokens counts inserts
  uint64_t seed = 0;
  uint32_t step = 0;  // with the seed, the problem, the sample and the position the key of each sampled token
  RolloutSink sink;
  RolloutLimits limits;
  // Called after each token; Episode::finished says whether it ended the response. An insert lets the model go on, if
  // there is room for it and a token more; else the episode ends as one that was cut.
  std::function<EnvironmentReply(const Episode&)> environment;
  std::function<std::string(int64_t job)> name_of;  // what a watchdog calls a prompt; none: its number
};

class Rollouter {
 public:
  virtual ~Rollouter() = default;
  // All episodes, ordered by (job, sample); none where the sink does not keep them.
  virtual std::vector<Episode> run(const RolloutRequest& request) = 0;
};

// The rollout engine: continuous batching over a KV cache. Every prompt is prefilled once; the slots of its n samples
// read its keys and values there (on the CPU; elsewhere copies), and one whose response ends is refilled before the
// next. Fed by train/collect, evaluate and `ucas generate`; reads a Model (borrowed) with its weights of the moment.
// Determinism: on the CPU the result depends on (weights, jobs, sampling, seed, step) alone, not on slots, prefill
// packing, admission order or threads.

std::unique_ptr<Rollouter> make_engine(Model& model, EngineConfig config = {});

// Sampling on all ranks: each samples every size-th prompt, and all get all responses, as from one process. A response
// depends on its prompt and key alone, so on CPUs its bits do not depend on the rank. Responses are exchanged as bytes,
// bit for bit: numbers in memory order, as all readers are the same program. Without inserts: an environment is refused
// under several ranks.

// Borrows both.
std::unique_ptr<Rollouter> share_rollout(Rollouter& own, Ranks& ranks);

std::string sampled_bytes(const std::vector<Episode>& responses);
// Error(ErrorKind::truncated) naming `where` for bytes that are not whole.
std::vector<Episode> read_sampled(std::string_view bytes, const std::string& where);

// The order of the engine's work: which prompts are prefilled next, and which sample takes the next free slot. Pure
// bookkeeping, no tensors. Prompts wait in a few slots of their own, so that many samples, or a refill, find their
// prefill done; jobs are served in order.

class Scheduler {
 public:
  struct Prefill {
    int64_t job, prompt_slot;
  };
  struct Admission {
    int64_t job;
    uint32_t sample;
    int64_t prompt_slot;
  };

  Scheduler(std::span<const PromptJob> jobs, int64_t prompt_slots, int64_t prefill_tokens);

  // The next prompts, as many as free prompt slots and the token budget allow, one at least if a slot is free. They
  // count as prefilled from here on.
  std::vector<Prefill> next_prefill();
  // At most `limit` samples of prefilled prompts. A prompt slot whose last sample is among them is free for the next
  // call of next_prefill: copy from it before.
  std::vector<Admission> next_samples(int64_t limit);

 private:
  struct Waiting {
    int64_t job, prompt_slot, next;
  };
  std::span<const PromptJob> jobs_;
  int64_t prefill_tokens_;
  int64_t next_job_ = 0;
  std::vector<int64_t> free_slots_;  // of prompts
  std::deque<Waiting> waiting_;      // prefilled, samples left to admit
};

}  // namespace ucas
