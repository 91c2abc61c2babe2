#include "serve/service.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "rollout/policy.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

constexpr size_t kMostOfABatch = 10000;   // requests; what a batch remembers of each is freed at its end
constexpr int64_t kMostResponses = 1024;  // that a batch makes room for
constexpr const char* kStopping = "the server is stopping";

bool is_special(const Tokenizer& tokenizer, int32_t id) {
  return tokenizer.decode({&id, 1}, true).empty() && !tokenizer.decode({&id, 1}, false).empty();
}

// Where the first of `stops` begins in `text`; npos: nowhere.
size_t first_stop(const std::string& text, const std::vector<std::string>& stops) {
  size_t first = std::string::npos;
  for (const std::string& stop : stops) first = std::min(first, text.find(stop));
  return first;
}

// Bytes at the end of `text` that may be the beginning of a stop.
size_t doubtful(const std::string& text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops) {
    for (size_t n = std::min(stop.size() - 1, text.size()); n > most; --n) {
      if (text.ends_with(std::string_view(stop).substr(0, n))) most = n;
    }
  }
  return most;
}

// Greedy ones share a batch: each is marked as such.
SamplingConfig sampling_of(const ServeRequest& request) {
  if (request.temperature == 0) return {};
  return {.temperature = request.temperature, .top_p = request.top_p, .top_k = request.top_k, .min_p = request.min_p};
}

bool sampled_alike(const ServeRequest& a, const ServeRequest& b) {
  const SamplingConfig x = sampling_of(a), y = sampling_of(b);
  return x.temperature == y.temperature && x.top_p == y.top_p && x.top_k == y.top_k && x.min_p == y.min_p;
}

}  // namespace

// ----------------------------------------------------------------------------------------------------- one request

ServeTicket::ServeTicket(ServeRequest request, const Tokenizer& tokenizer)
    : request_(std::move(request)), tokenizer_(tokenizer), left_(request_.samples) {
  halves_.resize(static_cast<size_t>(request_.samples));
}

std::optional<ServePiece> ServeTicket::next() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return !pieces_.empty() || left_ == 0 || !failure_.empty(); });
  if (!pieces_.empty()) {
    ServePiece piece = std::move(pieces_.front());
    pieces_.pop_front();
    return piece;
  }
  if (!failure_.empty()) throw Error(ErrorKind::server, failure_);
  return std::nullopt;
}

void ServeTicket::leave() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
}

void ServeTicket::give(ServePiece piece) {
  pieces_.push_back(std::move(piece));
  wake_.notify_all();
}

void ServeTicket::token(uint32_t sample, int32_t id) {
  const std::lock_guard lock(mutex_);
  Half& half = halves_.at(sample);
  if (half.stopped || id >= tokenizer_.vocab_size() || is_special(tokenizer_, id)) return;
  if (!half.stream) half.stream.emplace(tokenizer_);
  half.text += half.stream->push(id);
  const size_t stop = first_stop(half.text, request_.stop);
  half.stopped = stop != std::string::npos;  // unwanted() ends it
  const size_t certain = half.stopped ? stop : half.text.size() - doubtful(half.text, request_.stop);
  if (certain <= half.given) return;
  give({.sample = sample, .text = half.text.substr(half.given, certain - half.given)});
  half.given = certain;
}

void ServeTicket::ended(const Episode& response) {
  const std::lock_guard lock(mutex_);
  Half& half = halves_.at(response.sample);
  std::string whole = replace_invalid(response_text(tokenizer_, response.token));
  const size_t stop = first_stop(whole, request_.stop);
  if (stop != std::string::npos) whole.resize(stop);
  ServePiece last{.sample = response.sample,
                  .ended = true,
                  .finished = response.finished || stop != std::string::npos,
                  .ids = response.token,
                  .logprobs = response.logprob};
  if (whole.size() > half.given) last.text = whole.substr(half.given);
  --left_;
  half = Half();
  give(std::move(last));
}

void ServeTicket::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (left_ > 0) failure_ = why;
  wake_.notify_all();
}

bool ServeTicket::unwanted(uint32_t sample) {
  const std::lock_guard lock(mutex_);
  return gone_ || halves_.at(sample).stopped;
}

// ---------------------------------------------------------------------------------------------------- all of them

std::shared_ptr<ServeTicket> Service::ask(ServeRequest request) {
  auto ticket = std::make_shared<ServeTicket>(std::move(request), tokenizer_);
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error(ErrorKind::server, kStopping);
    waiting_.push_back(ticket);
  }
  wake_.notify_all();
  return ticket;
}

void Service::run(const std::function<bool()>& should_stop) {
  while (!should_stop()) {
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait_for(lock, std::chrono::milliseconds(100), [&] { return !waiting_.empty(); })) continue;
    }
    run_batch(should_stop);
  }
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& ticket : waiting_) ticket->fail(kStopping);
  waiting_.clear();
}

// Those in front that can join the batch active, or begin one.
std::vector<PromptJob> Service::take(Tickets& active) {
  std::vector<PromptJob> jobs;
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && active.size() < kMostOfABatch) {
    const ServeRequest& next = waiting_.front()->request();
    if (!active.empty() && !sampled_alike(next, active.front()->request())) break;
    jobs.push_back({.prompt = next.prompt,
                    .problem = next.key,
                    .samples = next.samples,
                    .greedy = next.temperature == 0,
                    .max_tokens = next.max_tokens,
                    .stop_ids = next.stop_ids});
    active.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  requests_ += static_cast<int64_t>(jobs.size());
  return jobs;
}

void Service::run_batch(const std::function<bool()>& should_stop) {
  Tickets active;
  const std::vector<PromptJob> jobs = take(active);
  const auto of = [&](int64_t job) -> ServeTicket& { return *active[static_cast<size_t>(job)]; };
  RolloutRequest request;
  request.jobs = jobs;
  request.sampling = sampling_of(active.front()->request());
  request.seed = seed_;
  request.sink.keep = false;
  request.limits.should_stop = should_stop;
  request.feed.more = [&] { return take(active); };
  request.feed.room_responses = kMostResponses;
  request.feed.room_tokens = room_;
  request.limits.unwanted = [&](int64_t job, uint32_t sample) { return of(job).unwanted(sample); };
  request.sink.on_token = [&](int64_t job, uint32_t sample, int32_t token) {
    ++tokens_;
    of(job).token(sample, token);
  };
  request.sink.on_response = [&](const Episode& response) { of(response.job).ended(response); };
  std::string failure = kStopping;
  try {
    engine_.run(request);
  } catch (const std::exception& error) {  // the next ones may fare better
    failure = error.what();
    warn(str("a batch of ", active.size(), " requests failed: ", failure));
  }
  for (const auto& ticket : active) ticket->fail(failure);
}

}  // namespace ucas
