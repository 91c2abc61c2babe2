#include "http/ask_many.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {

constexpr double kFirstWait = 0.25, kLongestWait = 20;  // seconds before a second try, and before any
constexpr int64_t kRefusedAtOnce = 8;                   // refusals with no response between them: the rest is not asked

// "Retry-After: 7" in seconds; below 0: not said. Dates are not read.
double wait_asked(const HttpReply& reply) {
  const auto found = reply.headers.find("retry-after");
  if (found == reply.headers.end()) return -1;
  char* end = nullptr;
  const double seconds = std::strtod(found->second.c_str(), &end);
  return end == found->second.c_str() || !(seconds >= 0) ? -1 : std::min(seconds, 3600.0);
}

}  // namespace

std::string api_key() {
  for (const char* name : {"UCAS_API_KEY", "OPENAI_API_KEY"}) {
    const char* value = std::getenv(name);
    if (value && *value) return value;
  }
  return "";
}

HttpHeaders headers_with(const std::string& key) {
  HttpHeaders headers;
  if (!key.empty()) headers["Authorization"] = str("Bearer ", key);
  return headers;
}

std::optional<Json> json_of(const std::string& body) {
  try {
    return parse_json(body, "reply");
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string words_of(const HttpReply& reply, const std::string& key) {
  if (reply.status == 0) return reply.failure;
  std::string text = reply.body;
  if (const std::optional<Json> body = json_of(reply.body)) {
    const Json* found = &*body;
    for (const char* name : {"error", "detail", "message"}) {
      if (found->is_object() && found->contains(name) && !found->at(name).is_null()) found = &found->at(name);
    }
    text = found->is_string() ? found->get<std::string>() : json_text(*found);
  }
  for (size_t at; !key.empty() && (at = text.find(key)) != std::string::npos;) text.replace(at, key.size(), "***");
  return str("HTTP ", reply.status, text.empty() ? "" : ": ", printable(trim(text), 200));
}

bool tried_again(int status) {
  return status == 0 || status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

HttpReply ask_patiently(int64_t retries, double first_wait, double patience, const std::function<HttpReply()>& once,
                        const std::function<void(const HttpReply&)>& failed) {
  const double until = now_seconds() + patience;
  HttpReply reply = once();
  double wait = first_wait;
  for (int64_t tries = 0; tries < retries && tried_again(reply.status) && now_seconds() < until; ++tries) {
    if (failed) failed(reply);
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(wait, std::max(0.0, until - now_seconds()))));
    wait = std::min(2 * wait, kLongestWait);
    reply = once();
  }
  return reply;
}

AskMany::AskMany(std::vector<Url> servers, size_t items, const Limits& limits, Hooks hooks)
    : servers_(std::move(servers)),
      items_(items),
      limits_(limits),
      hooks_(std::move(hooks)),
      key_(api_key()),
      headers_(headers_with(key_)) {}

void AskMany::run() {
  const auto threads = std::min<size_t>(static_cast<size_t>(limits_.requests), items_);
  progressed_ = now_seconds();
  for (size_t i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>(servers_, limits_.timeout));
  for (auto& worker : workers_) worker->thread = std::thread([this, &worker] { work(*worker); });
  try {
    collect();
  } catch (...) {
    end();
    throw;
  }
  end();
}

std::string AskMany::missing() const {
  if (lost_.empty()) return gave_up_.empty() ? "" : recent_;
  std::vector<std::string> parts;
  for (const auto& [why, count] : lost_) {
    if (parts.size() == 4) {
      parts.push_back("..");
      break;
    }
    parts.push_back(str(grouped(count), " x ", why));
  }
  return join(parts, ", ");
}

void AskMany::work(Worker& worker) {
  {
    const std::lock_guard lock(mutex_);
    ++working_;
  }
  for (size_t item; !stopping_ && (item = next_++) < items_;) {
    Ended ended = attempt(worker, item);
    const std::lock_guard lock(mutex_);
    if (!stopping_ || ended.answered) ended_.push_back(std::move(ended));
    wake_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  --working_;
  wake_.notify_all();
}

// Until there is a whole answer, a refusal, or no try left. Waiting because the server asks for it takes none.
AskMany::Ended AskMany::attempt(Worker& worker, size_t item) {
  Ended out{.item = item};
  const std::string body = hooks_.ask(item);
  size_t server = item;
  for (int64_t tries = 0; !stopping_; ++server) {
    worker.since = now_seconds();
    const HttpReply reply = worker.clients[server % servers_.size()]->post(hooks_.path, body, headers_);
    worker.since = 0;
    if (reply.status == 200) {
      out.why = hooks_.read(item, reply);
      if ((out.answered = out.why.empty())) return out;
    } else {
      out.why = words_of(reply, key_);
      if (!tried_again(reply.status)) {
        out.refused = true;
        return out;
      }
    }
    const double asked = reply.status == 429 || reply.status == 503 ? wait_asked(reply) : -1;
    if (stopping_ || (asked < 0 && tries++ >= limits_.retries)) return out;
    ++again_;
    count_warning(Warning::request);
    {
      const std::lock_guard lock(mutex_);
      recent_ = out.why;
    }
    const auto key = SampleKey{.step = static_cast<uint32_t>(tries), .problem = static_cast<uint32_t>(item)};
    const double backoff =
        std::min(kFirstWait * std::pow(2.0, static_cast<double>(std::max<int64_t>(tries - 1, 0))), kLongestWait);
    pause(asked >= 0 ? asked + 0.1 * uniform(key) : backoff * (0.5 + uniform(key)));
  }
  return out;
}

void AskMany::pause(double seconds) {
  const double until = now_seconds() + seconds;
  std::unique_lock lock(mutex_);
  while (!stopping_ && now_seconds() < until) {
    wake_.wait_for(lock, std::chrono::duration<double>(std::min(until - now_seconds(), 0.2)));
  }
}

void AskMany::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker->stop();
}

void AskMany::end() {
  stop();
  for (auto& worker : workers_) {
    // One between two requests when stopped begins none; one that just began is stopped again.
    while (worker->since > 0) {
      worker->stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    worker->thread.join();
  }
  for (const Ended& ended : ended_) take(ended);  // answers that came meanwhile
  ended_.clear();
}

void AskMany::take(const Ended& ended) {
  if (!ended.answered) {
    if (!ended.why.empty()) ++lost_[ended.why];
    refused_in_a_row_ = ended.refused ? refused_in_a_row_ + 1 : 0;
    return;
  }
  refused_in_a_row_ = 0;
  progressed_ = now_seconds();
  ++came_;
  hooks_.took(ended.item);
}

void AskMany::collect() {
  for (;;) {
    std::deque<Ended> ended;
    bool over = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(100), [&] { return !ended_.empty(); });
      ended.swap(ended_);
      over = ended.empty() && working_ == 0 && next_ >= items_;
    }
    for (const Ended& one : ended) take(one);
    if (over || (hooks_.should_stop && hooks_.should_stop())) return;
    const double now = now_seconds();
    if (now - progressed_ > limits_.patience) {
      gave_up_ = str("no response for ", human_seconds(limits_.patience), " (rollout.patience)");
    } else if (refused_in_a_row_ >= kRefusedAtOnce && came_ == 0) {
      gave_up_ = "the server refuses them all";
    } else {
      continue;
    }
    return;
  }
}

}  // namespace ucas
