#include "rollout/rollouter.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/process/activity.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "model/decoder.h"
#include "rollout/sampling/kv_budget.h"

namespace ucas {

namespace {

int64_t max_tokens(const PromptJob& job, const RolloutRequest& request) {
  return job.max_tokens > 0 ? job.max_tokens : request.sampling.max_tokens;
}

void check_jobs(const RolloutRequest& request, const ModelConfig& model) {
  for (size_t j = 0; j < request.jobs.size(); ++j) {
    const auto& prompt = request.jobs[j].prompt;
    if (prompt.empty())
      throw Error(ErrorKind::empty, str("prompt ", j + 1, " has no tokens; every prompt needs at least one"));
    for (int32_t id : prompt) {
      if (id >= 0 && id < model.vocab_size) continue;
      throw Error(ErrorKind::tokenizer,
                  str("prompt ", j + 1, ": token id ", id, " is outside the model's vocabulary of ", model.vocab_size,
                      " ids; use the tokenizer of this checkpoint"));
    }
    const int64_t limit = max_tokens(request.jobs[j], request);
    if (static_cast<int64_t>(prompt.size()) + limit > model.max_position_embeddings) {
      throw Error(ErrorKind::config,
                  str("prompt ", j + 1, " has ", prompt.size(), " tokens and max_tokens is ", limit,
                      ", together more than the model's ", model.max_position_embeddings,
                      " positions (max_position_embeddings); lower max_tokens or drop longer prompts"));
    }
  }
}

// What the weights leave of the device's whole memory. A training knows what else stays there, and gives cache_tokens.
int64_t free_for_cache(Model& model) {
  int64_t weights = 0;
  for (const NamedTensor& p : model.parameters()) weights += static_cast<int64_t>(p.tensor.nbytes());
  return std::max<int64_t>(usable_gpu(cuda_memory(model.device().index())) - weights, 1);
}

KvBudget budget_of(const RolloutRequest& request, const EngineConfig& config, Model& of) {
  const ModelConfig& model = of.config();
  int64_t samples = 0;
  LongestTokens longest;
  for (const PromptJob& job : request.jobs) {
    const auto prompt = static_cast<int64_t>(job.prompt.size()), response = max_tokens(job, request);
    samples += std::max<int64_t>(job.samples, 0);
    longest.whole = std::max(longest.whole, prompt + response);
    longest.prompt = std::max(longest.prompt, prompt);
    longest.response = std::max(longest.response, response);
  }
  const auto prompts = static_cast<int64_t>(request.jobs.size());
  const int64_t number = of.options().dtype == Dtype::bf16 ? 2 : 4;
  const int64_t gpu_free = of.device().is_cpu() ? 0 : free_for_cache(of);
  const int64_t width = model.num_hidden_layers * model.num_key_value_heads * model.head_dim;
  return kv_budget(config, prompts, samples, longest, 2 * number * width, gpu_free);
}

// A cache that slots share: tokens of a block, tokens reserved at admission, headroom for each active sequence.
constexpr int64_t kBlock = 256, kBeginning = 2 * kBlock, kGrowth = kBlock / 4;

// The model's tokens and the inserts.
int64_t length_of(const Episode& response) { return std::ssize(response.token) + inserted_tokens(response.inserts); }

bool waits_for_insert(const Episode& response) {
  return !response.inserts.empty() && response.inserts.back().at == std::ssize(response.token);
}

// A response being decoded.
struct Live {
  size_t result;  // index into the results
  int64_t slot;
  int32_t token = 0, position = 0;  // to feed next
  int64_t inserted = 0;             // tokens of the insert after its last token that were fed or are `token`
};

class Run {
 public:
  Run(Model& model, const EngineConfig& config, const RolloutRequest& request);
  std::vector<Episode> finish();
  std::string state() const;

 private:
  int64_t cache_tokens() const;
  int64_t admissible() const;
  void fill_slots();
  bool resume_evicted(size_t result);
  void allocate_values();
  bool has_place_for_prompts() const;
  bool prefill_next();
  void admit(const std::vector<Scheduler::Admission>& admissions);
  void decode_step();
  SampleRequest ask(size_t result, int64_t row) const;
  bool take(size_t result, const SampledToken& sampled);
  bool goes_on_with_reply(Episode& response, int64_t limit) const;
  bool next_of_insert(Live& live) const;
  [[noreturn]] void not_finite(const Episode& response) const;
  const PromptJob& job(int64_t index) const { return request_.jobs[static_cast<size_t>(index)]; }

  Model& model_;
  const RolloutRequest& request_;
  const EngineConfig config_;
  const int64_t vocab_;
  const KvBudget room_;
  int64_t longest_prompt_ = 0;
  Scheduler scheduler_;
  std::unique_ptr<KvCache> cache_;    // slots of samples first, then those of prompts
  std::vector<int64_t> free_slots_;   // of samples
  at::Tensor first_logits_;           // [prompt slots, V], of the prompts' last tokens
  std::vector<Live> live_;            // in the order in which they began
  std::vector<size_t> evicted_;       // results that wait for room, the oldest last
  std::vector<size_t> first_result_;  // by job
  std::vector<Episode> results_;
  std::vector<char> done_;                 // by result
  std::unique_ptr<TokenSampler> sampler_;  // of first tokens
  std::unique_ptr<Decoder> decoder_;       // of the others
};

Run::Run(Model& model, const EngineConfig& config, const RolloutRequest& request)
    : model_(model),
      request_(request),
      config_(config),
      vocab_(model.config().vocab_size),
      room_(budget_of(request, config, model)),
      scheduler_(request.jobs, room_.prompt_slots, config.prefill_tokens) {
  check_jobs(request, model.config());
  for (const PromptJob& job : request.jobs) {
    longest_prompt_ = std::max(longest_prompt_, std::ssize(job.prompt));
    first_result_.push_back(results_.size());
    for (int64_t i = 0; i < job.samples; ++i) {
      Episode& response = results_.emplace_back();
      response.job = std::ssize(first_result_) - 1;
      response.sample = job.first_sample + static_cast<uint32_t>(i);
    }
  }
  done_.resize(results_.size());
  if (results_.empty()) return;
  KvBudget room = room_;
  room.tokens = cache_tokens();
  cache_ = model.make_cache(room);
  for (int64_t slot = room_.slots - 1; slot >= 0; --slot) free_slots_.push_back(slot);
  first_logits_ = at::empty({room_.prompt_slots, vocab_}, at::TensorOptions().dtype(at::kFloat).device(model.device()));
  sampler_ = model.head().make_sampler(request.sampling);
  decoder_ = model.make_decoder(*cache_, request.sampling);
}

// For a watchdog: how far it is, and the longest response active.
std::string Run::state() const {
  const auto longest =
      std::ranges::max_element(live_, {}, [&](const Live& l) { return results_[l.result].token.size(); });
  const Episode& of = results_[longest->result];
  return str("sampling ", results_.size(), " responses, ", std::ranges::count(done_, 1), " ended, ", live_.size(),
             " active, the longest to ", request_.name_of ? request_.name_of(of.job) : str("prompt ", of.job + 1),
             ", sample ", of.sample, ", at token ", of.token.size());
}

std::vector<Episode> Run::finish() {
  Doing doing(str("sampling ", results_.size(), " responses"));
  while (!results_.empty()) {
    if (request_.limits.should_stop && request_.limits.should_stop()) break;
    fill_slots();
    if (live_.empty()) break;
    progressed();
    doing.say_now_and_then([this] { return state(); });
    decode_step();
  }
  std::vector<Episode> ended;
  for (size_t i = 0; i < results_.size(); ++i) {
    if (done_[i]) ended.push_back(std::move(results_[i]));
  }
  return ended;
}

// Of a cache whose slots share it: one response at full length fits with all prompts.
int64_t Run::cache_tokens() const {
  if (room_.tokens == 0) return 0;
  return std::max(room_.tokens, room_.length + kBeginning) + room_.prompt_slots * (longest_prompt_ + kBlock);
}

// How many more responses may begin now: each needs a block or two in its next steps, and active ones keep growing.
int64_t Run::admissible() const {
  const auto slots = static_cast<int64_t>(free_slots_.size());
  const int64_t room = (cache_->free_tokens() - kGrowth * static_cast<int64_t>(live_.size())) / kBeginning;
  return std::min(slots, live_.empty() ? std::max<int64_t>(room, 1) : room);
}

// Evicted responses go first.
void Run::fill_slots() {
  while (!evicted_.empty()) {
    if (admissible() <= 0 || !resume_evicted(evicted_.back())) return;
    evicted_.pop_back();
  }
  while (admissible() > 0) {
    auto admissions = scheduler_.next_samples(admissible());
    if (!admissions.empty()) {
      admit(admissions);
    } else if (!prefill_next()) {
      return;
    }
  }
}

// Prompts have so many places, in a cache where responses share them; each one active keeps its own.
bool Run::has_place_for_prompts() const {
  if (!room_.shares() || room_.prompts >= std::ssize(request_.jobs)) return true;
  std::set<int64_t> active;
  for (const Live& live : live_) active.insert(results_[live.result].job);
  return static_cast<int64_t>(active.size()) + room_.prompt_slots <= room_.prompts;
}

bool Run::prefill_next() {
  if (!has_place_for_prompts()) return false;
  const int64_t most = std::max(config_.prefill_tokens, longest_prompt_) + room_.prompt_slots * kBlock;
  if (!live_.empty() && cache_->free_tokens() < most) return false;
  const auto batch = scheduler_.next_prefill();
  if (batch.empty()) return false;
  Packed packed;
  std::vector<int64_t> slots;
  for (const auto& [job_index, prompt_slot] : batch) {
    packed.append(job(job_index).prompt);
    slots.push_back(room_.slots + prompt_slot);
  }
  const at::Tensor hidden = model_.prefill(packed, *cache_, slots);
  std::vector<at::Tensor> last;
  for (size_t i = 0; i < batch.size(); ++i) last.push_back(hidden.select(0, packed.begin[i + 1] - 1));
  const at::Tensor logits = model_.head().logits(at::stack(last));  // [prompts, V]
  for (size_t i = 0; i < batch.size(); ++i) first_logits_.select(0, batch[i].prompt_slot).copy_(logits.select(0, i));
  return true;
}

// Room for the next tokens of every response active. Where there is none, the ones that began last wait.
void Run::allocate_values() {
  const int64_t steps = decoder_->most_steps();
  for (size_t i = 0; i < live_.size();) {
    if (cache_->reserve(live_[i].slot, live_[i].position + steps)) {
      ++i;
      continue;
    }
    UCAS_CHECK(live_.size() > 1, "the KV cache must hold one response of full length");
    const Live last = live_.back();
    live_.pop_back();
    cache_->release(last.slot);
    free_slots_.push_back(last.slot);
    evicted_.push_back(last.result);
  }
}

// Resumes an evicted response: re-prefills its KV cache. False: there is no room yet.
bool Run::resume_evicted(size_t result) {
  const Episode& response = results_[result];
  const std::span<const int32_t> prompt = job(response.job).prompt;
  const std::vector<int32_t> context = with_inserts(response.token, response.inserts);
  const size_t known = context.size() - 1;
  const auto length = static_cast<int64_t>(prompt.size() + known);
  if (!live_.empty() && cache_->free_tokens() < length + kBeginning) return false;
  const int64_t slot = free_slots_.back();
  Packed packed;
  packed.append(prompt, std::span(context).first(known));
  model_.prefill(packed, *cache_, std::span(&slot, 1));
  free_slots_.pop_back();
  live_.push_back({result, slot, context.back(), static_cast<int32_t>(length)});
  if (waits_for_insert(response)) live_.back().inserted = std::ssize(response.inserts.back().token);
  return true;
}

void Run::admit(const std::vector<Scheduler::Admission>& admissions) {
  std::vector<size_t> result;
  std::vector<SampleRequest> asks;
  for (const auto& a : admissions) {
    result.push_back(first_result_[a.job] + (a.sample - job(a.job).first_sample));
    asks.push_back(ask(result.back(), a.prompt_slot));
  }
  const std::vector<SampledToken> sampled = sampler_->sample(first_logits_, asks);
  for (size_t i = 0; i < asks.size(); ++i) {
    if (!take(result[i], sampled[i])) continue;
    const auto prompt_length = static_cast<int64_t>(job(admissions[i].job).prompt.size());
    const int64_t slot = free_slots_.back();
    free_slots_.pop_back();
    cache_->copy(room_.slots + admissions[i].prompt_slot, slot, prompt_length);
    live_.push_back({result[i], slot, sampled[i].token, static_cast<int32_t>(prompt_length)});
  }
}

// Some tokens of every response active; what comes after one's end is ignored.
void Run::decode_step() {
  allocate_values();
  std::vector<Lane> lanes;
  for (const Live& live : live_) {
    const Episode& response = results_[live.result];
    const SampleRequest next = ask(live.result, 0);
    // An environment is asked after each token, so that a GPU decodes one at a time.
    const int64_t left = request_.environment ? 1 : max_tokens(job(response.job), request_) - length_of(response);
    lanes.push_back({live.slot, live.token, live.position, left, next.key, next.greedy});
  }
  const std::vector<SampledToken> sampled = decoder_->next(lanes);
  std::vector<Live> still;
  for (size_t i = 0; i < lanes.size(); ++i) {
    Live live = live_[i];
    bool goes_on = true;
    for (size_t at = i; goes_on && at < sampled.size(); at += lanes.size()) {
      ++live.position;
      if (next_of_insert(live)) continue;  // the token sampled before it is dropped
      goes_on = take(live.result, sampled[at]);
      live.token = sampled[at].token;
      live.inserted = 0;
    }
    if (goes_on) {
      still.push_back(live);
    } else {
      cache_->release(live.slot);
      free_slots_.push_back(live.slot);
    }
  }
  live_ = std::move(still);
}

// The next token of a response, from this row of logits.
SampleRequest Run::ask(size_t result, int64_t row) const {
  const Episode& response = results_[result];
  const SampleKey key{.seed = request_.seed,
                      .step = request_.step,
                      .problem = job(response.job).problem,
                      .response = response.sample,
                      .position = static_cast<uint32_t>(response.token.size())};
  return {row, key, job(response.job).greedy};
}

// Puts the insert's next token in the place of a sampled one: its keys and values join the
// cache like those of any token.
bool Run::next_of_insert(Live& live) const {
  const Episode& response = results_[live.result];
  if (!waits_for_insert(response)) return false;
  const std::vector<int32_t>& said = response.inserts.back().token;
  if (live.inserted == std::ssize(said)) return false;
  live.token = said[static_cast<size_t>(live.inserted++)];
  return true;
}

// The environment's turn, after a token; false when the episode ends.
bool Run::goes_on_with_reply(Episode& response, int64_t limit) const {
  EnvironmentReply reply = request_.environment(response);
  if (reply.kind == EnvironmentReply::Kind::nothing) return !response.finished && length_of(response) < limit;
  response.finished = reply.kind == EnvironmentReply::Kind::done;
  if (reply.kind != EnvironmentReply::Kind::insert) return false;
  UCAS_CHECK(!reply.token.empty(), "an environment's message has tokens");
  if (length_of(response) + std::ssize(reply.token) >= limit) return false;
  response.inserts.push_back({std::ssize(response.token), std::move(reply.token), std::move(reply.text)});
  return true;
}

// Appends the token; false when it ends the response.
bool Run::take(size_t result, const SampledToken& sampled) {
  Episode& response = results_[result];
  if (sampled.token < 0) not_finite(response);
  response.token.push_back(sampled.token);
  response.logprob.push_back(sampled.logprob);
  if (request_.sampling.truncates()) response.whole_logprob.push_back(sampled.whole_logprob);
  response.entropy.push_back(sampled.entropy);
  response.confidence.push_back(sampled.confidence);
  response.logit.push_back(sampled.logit);
  if (request_.sink.on_token) request_.sink.on_token(response.job, response.sample, sampled.token);
  const PromptJob& its = job(response.job);
  const std::span<const int32_t> stops = its.stop_ids.empty() ? request_.limits.stop_ids : its.stop_ids;
  response.finished = std::find(stops.begin(), stops.end(), sampled.token) != stops.end();
  if (request_.limits.ends && !response.finished) response.finished = request_.limits.ends(response);
  const int64_t limit = max_tokens(its, request_);
  const bool goes_on =
      request_.environment ? goes_on_with_reply(response, limit) : !response.finished && length_of(response) < limit;
  if (goes_on) return true;
  done_[result] = request_.sink.keep;
  if (request_.sink.on_response) request_.sink.on_response(response);
  if (!request_.sink.keep) {
    Episode empty;  // frees its vectors
    empty.job = response.job;
    empty.sample = response.sample;
    response = std::move(empty);
  }
  return false;
}

void Run::not_finite(const Episode& response) const {
  throw Error(ErrorKind::numeric,
              str("logits are not finite: prompt ", response.job + 1, ", sample ", response.sample, ", token ",
                  response.token.size() + 1,
                  " of the response; the weights have diverged or the checkpoint is damaged. Go back to an earlier "
                  "checkpoint, or lower the learning rate"),
              kNumeric);
}

class Engine final : public Rollouter {
 public:
  Engine(Model& model, EngineConfig config) : model_(model), config_(config) {}

  std::vector<Episode> run(const RolloutRequest& request) override {
    const at::NoGradGuard no_grad;
    return Run(model_, config_, request).finish();
  }

 private:
  Model& model_;
  EngineConfig config_;
};

}  // namespace

std::unique_ptr<Rollouter> make_engine(Model& model, EngineConfig config) {
  return std::make_unique<Engine>(model, config);
}

Scheduler::Scheduler(std::span<const PromptJob> jobs, int64_t prompt_slots, int64_t prefill_tokens)
    : jobs_(jobs), prefill_tokens_(prefill_tokens) {
  for (int64_t slot = prompt_slots - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

std::vector<Scheduler::Prefill> Scheduler::next_prefill() {
  std::vector<Prefill> batch;
  int64_t tokens = 0;
  while (next_job_ < std::ssize(jobs_) && !free_slots_.empty()) {
    const PromptJob& job = jobs_[next_job_];
    if (job.samples <= 0) {
      ++next_job_;
      continue;
    }
    const auto length = static_cast<int64_t>(job.prompt.size());
    if (!batch.empty() && tokens + length > prefill_tokens_) break;
    tokens += length;
    batch.push_back({next_job_, free_slots_.back()});
    waiting_.push_back({next_job_, free_slots_.back(), 0});
    free_slots_.pop_back();
    ++next_job_;
  }
  return batch;
}

std::vector<Scheduler::Admission> Scheduler::next_samples(int64_t limit) {
  std::vector<Admission> admitted;
  while (static_cast<int64_t>(admitted.size()) < limit && !waiting_.empty()) {
    Waiting& prompt = waiting_.front();
    const PromptJob& job = jobs_[prompt.job];
    admitted.push_back({prompt.job, job.first_sample + static_cast<uint32_t>(prompt.next), prompt.prompt_slot});
    if (++prompt.next == job.samples) {
      free_slots_.push_back(prompt.prompt_slot);
      waiting_.pop_front();
    }
  }
  return admitted;
}

}  // namespace ucas
