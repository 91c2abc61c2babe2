// Many requests to servers that fail now and then: a bounded number in flight, each tried again, later and later, until
// it has been answered whole, refused, or no try is left; where there are several servers, each try at the next one.
// What the requests say and what an answer is decides the caller.
// A key is taken from UCAS_API_KEY, else OPENAI_API_KEY; it is in no message, log or file.
// Threads: one caller; it has a thread of its own for each request in flight.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/text/json.h"
#include "http/client.h"

namespace ucas {

std::string api_key();  // "": none
HttpHeaders headers_with(const std::string& key);
// As hostile as a file is. nullopt: no JSON, or more of it than is read.
std::optional<Json> json_of(const std::string& body);
// What went wrong, in the server's own words, without the key: some repeat it.
std::string words_of(const HttpReply& reply, const std::string& key);
bool tried_again(int status);  // whether another try may end otherwise
// One request, up to `retries` times again while another try may end otherwise, each time after twice the wait, at most
// 20 seconds; the last reply. After `patience` seconds none is tried again. `failed` is called for each that is.
HttpReply ask_patiently(int64_t retries, double first_wait, double patience, const std::function<HttpReply()>& once,
                        const std::function<void(const HttpReply&)>& failed = nullptr);

class AskMany {
 public:
  struct Limits {
    int64_t requests = 32;  // in flight
    int64_t retries = 10;   // of one request
    double timeout = 600;   // seconds of one try
    double patience = 300;  // seconds without any answer until all is given up
  };
  struct Hooks {
    std::string path;                             // of all requests
    std::function<std::string(size_t item)> ask;  // its body; from any thread
    // From any thread, but never two of one item: "" keeps what was answered, else why it is no answer.
    std::function<std::string(size_t item, const HttpReply& reply)> read;
    std::function<void(size_t item)> took;   // from the caller's thread, once for each item that was answered
    std::function<bool()> should_stop = {};  // polled
  };
  AskMany(std::vector<Url> servers, size_t items, const Limits& limits, Hooks hooks);

  void run();
  int64_t tried_again_count() const { return again_; }
  // "2 x HTTP 500: .., 1 x no connection"; "" where all came.
  std::string missing() const;
  int64_t came() const { return came_; }
  int64_t asked() const { return static_cast<int64_t>(items_); }
  const std::string& gave_up() const { return gave_up_; }

 private:
  struct Worker {
    Worker(const std::vector<Url>& servers, double timeout) {
      for (const Url& url : servers) clients.push_back(std::make_unique<HttpClient>(url, timeout));
    }
    void stop() {
      for (auto& client : clients) client->stop();
    }
    std::vector<std::unique_ptr<HttpClient>> clients;
    std::thread thread;
    std::atomic<double> since{0};  // when its request began; 0: none is active
  };
  struct Ended {
    size_t item;
    bool answered = false;
    std::string why = {};  // where it was not
    bool refused = false;
  };

  void work(Worker& worker);
  Ended attempt(Worker& worker, size_t item);
  void pause(double seconds);
  void collect();
  void take(const Ended& ended);
  void stop();
  void end();

  const std::vector<Url> servers_;
  const size_t items_;
  const Limits limits_;
  const Hooks hooks_;
  const std::string key_;
  const HttpHeaders headers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> again_{0};
  std::mutex mutex_;
  std::condition_variable wake_;  // of collect(), and of those that wait for a second try
  std::deque<Ended> ended_;
  size_t working_ = 0;
  std::string recent_;  // why a try failed, the last one
  // of collect() alone
  double progressed_ = 0;
  int64_t came_ = 0, refused_in_a_row_ = 0;
  std::map<std::string, int64_t> lost_;
  std::string gave_up_;
};

}  // namespace ucas
