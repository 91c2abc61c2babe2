// A sampler elsewhere in this process: vLLM's interface over HTTP on localhost, answered by a model of its own, which
// it loads from the directory that is handed over. It can be told to be at fault.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "model/model.h"

namespace httplib {
class Server;
}

namespace ucas::testing {

class FakeServer {
 public:
  explicit FakeServer(const std::string& checkpoint);
  ~FakeServer();
  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Of the next so many replies to samples.
  std::atomic<int> damaged{0}, refused{0}, outside{0};
  // Weights are acknowledged, and those from before are kept.
  std::atomic<bool> keeps_weights{false};
  // Called when weights are handed over, before they are taken.
  std::function<void()> on_weights;

  std::vector<std::string> versions() const;  // handed over, in order
  int64_t sampled() const { return sampled_; }

 private:
  using Answer = std::pair<int, std::string>;  // status, body
  Answer complete(const std::string& body);
  Answer take_weights(const std::string& body);
  Json sample(const Json& asked);
  Json score(const Json& asked);

  mutable std::mutex mutex_;  // of the model and what belongs to it
  std::unique_ptr<Model> model_;
  std::vector<std::string> versions_;
  std::atomic<int64_t> sampled_{0};
  std::unique_ptr<httplib::Server> server_;
  int64_t port_ = 0;
  std::thread thread_;
};

}  // namespace ucas::testing
