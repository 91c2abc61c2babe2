// Requests of many clients on one engine: each joins the batch that is active as soon as a slot is free, unless it
// samples otherwise (temperature, top_p, top_k, min_p); then it waits for that batch to end, and those behind it wait,
// too. Fed by serve/api; owns what is waiting, borrows engine and tokenizer. Threads: run() is the one that calls the
// engine; ask() and all of ServeTicket from any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rollout/rollouter.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

struct ServeRequest {
  std::vector<int32_t> prompt;  // ids of the model's vocabulary, one at least
  int64_t samples = 1;
  int64_t max_tokens = 16;  // with the prompt no more than the service has room for
  double temperature = 1;   // 0 = greedy
  double top_p = 1;
  int64_t top_k = 0;
  double min_p = 0;
  uint32_t key = 0;               // of sampling: the same key, the same response
  std::vector<int32_t> stop_ids;  // all of them
  std::vector<std::string> stop;  // texts that end a response, and are left out
};

// What became known of one response.
struct ServePiece {
  int64_t sample = 0;
  std::string text;  // more of it, UTF-8
  bool ended = false;
  // With `ended`: of the whole response.
  bool finished = false;  // by a stop; false: by its limit
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
};

class ServeTicket {
 public:
  ServeTicket(ServeRequest request, const Tokenizer& tokenizer);
  // Waits. nullopt: all responses have ended. Throws Error(ErrorKind::server) when there will be no more.
  std::optional<ServePiece> next();
  void leave();  // the client has left; the engine drops the rest
  const ServeRequest& request() const { return request_; }

  // For the service:
  void token(uint32_t sample, int32_t id);
  void ended(const Episode& response);
  void fail(const std::string& why);  // unless it has ended
  bool unwanted(uint32_t sample);

 private:
  struct Half {  // a response on its way
    std::optional<Tokenizer::Stream> stream;
    std::string text;  // as far as it is certain
    size_t given = 0;  // bytes of it
    bool stopped = false;
  };
  void give(ServePiece piece);

  const ServeRequest request_;
  const Tokenizer& tokenizer_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Half> halves_;
  std::deque<ServePiece> pieces_;
  int64_t left_ = 0;  // responses that have not ended
  bool gone_ = false;
  std::string failure_;
};

class Service {
 public:
  // `room`: tokens of a prompt and its response together.
  Service(Rollouter& engine, const Tokenizer& tokenizer, int64_t room, uint64_t seed)
      : engine_(engine), tokenizer_(tokenizer), room_(room), seed_(seed) {}
  std::shared_ptr<ServeTicket> ask(ServeRequest request);
  int64_t room() const { return room_; }
  // Until it should stop; waiting clients then get an error.
  void run(const std::function<bool()>& should_stop);
  int64_t requests() const { return requests_; }
  int64_t tokens() const { return tokens_; }

 private:
  using Tickets = std::vector<std::shared_ptr<ServeTicket>>;
  std::vector<PromptJob> take(Tickets& active);
  void run_batch(const std::function<bool()>& should_stop);

  Rollouter& engine_;
  const Tokenizer& tokenizer_;
  const int64_t room_;
  const uint64_t seed_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<ServeTicket>> waiting_;
  bool closed_ = false;
  int64_t requests_ = 0, tokens_ = 0;  // of run()'s thread
};

}  // namespace ucas
