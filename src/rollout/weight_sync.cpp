#include "rollout/weight_sync.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>

#include "base/error.h"
#include "base/str.h"
#include "http/ask_many.h"
#include "sharding/rendezvous.h"

namespace ucas {

namespace {

constexpr int64_t kBucket = int64_t{512} << 20;  // bytes: a server holds a bucket beside its weights
constexpr double kLater = 5;                     // seconds that a request outlives what it waits for
constexpr std::chrono::seconds kLastWords{2};    // for servers to say why a broadcast failed
constexpr double kLeaving = 5;

at::ScalarType type_of(const std::string& dtype) {
  return dtype == "bfloat16" ? at::kBFloat16 : dtype == "float16" ? at::kHalf : at::kFloat;
}

std::string first_line(const std::string& text) { return printable(text.substr(0, text.find('\n')), 200); }

}  // namespace

WeightSync::WeightSync(const TrainRolloutConfig& config, const std::vector<Url>& servers, const SamplerDialect& dialect,
                       at::Device device)
    : servers_(servers),
      dialect_(dialect),
      backend_(word_of(config.weight_sync)),
      patience_(config.patience),
      device_(config.weight_sync == WeightSyncBy::nccl ? device : at::Device(at::kCPU)) {}

// A server that does not hear it keeps some memory, no more.
WeightSync::~WeightSync() {
  if (!group_) return;
  for (size_t server = 0; server < servers_.size(); ++server) {
    const SamplerDialect::Call leave = dialect_.leave_group(joined_[server]);
    HttpClient(servers_[server], kLeaving).post(leave.path, leave.body, headers_with(api_key()));
  }
}

int64_t WeightSync::ranks_of(size_t server) const {
  HttpReply reply;
  std::string path;
  for (const std::string& next : dialect_.info_paths()) {
    path = next;
    reply = HttpClient(servers_[server], patience_).get(path, headers_with(api_key()));
    if (reply.status != 404) break;
  }
  std::string why = words_of(reply, api_key());
  if (reply.status == 200) {
    try {
      return dialect_.ranks_in(reply.body);
    } catch (const std::exception& problem) {
      why = first_line(problem.what());
    }
  }
  throw Error(ErrorKind::server, str(servers_[server].text(), path, ": ", why), kInterrupted);
}

// Sends every server its request, does `work` meanwhile, and waits for all replies. What a server says goes before
// what happened here: it knows why.
void WeightSync::together(const std::string& what, const CallOf& call_of, const Work& work) {
  std::atomic<bool> refused{false};
  std::vector<std::string> said(servers_.size());
  std::vector<std::unique_ptr<HttpClient>> clients;
  std::vector<std::future<void>> asking;
  for (size_t server = 0; server < servers_.size(); ++server) {
    clients.push_back(std::make_unique<HttpClient>(servers_[server], patience_ + kLater));
    asking.push_back(std::async(std::launch::async, [&, server, call = call_of(server)] {
      const HttpReply reply = clients[server]->post(call.path, call.body, headers_with(api_key()));
      said[server] = reply.status == 200 ? dialect_.refuses(reply.body) : words_of(reply, api_key());
      if (reply.status == 404) said[server] += str("; ", dialect_.needs());
      if (!said[server].empty()) refused = true;
    }));
  }
  std::string here;
  try {
    work([&] { return refused.load(); });
  } catch (const std::exception& problem) {
    here = first_line(problem.what());
  }
  std::vector<std::string> missing;
  const auto until = std::chrono::steady_clock::now() + kLastWords;
  for (size_t server = 0; server < servers_.size(); ++server) {
    if (here.empty() || asking[server].wait_until(until) == std::future_status::ready) continue;
    missing.push_back(servers_[server].text());
    clients[server]->stop();
  }
  for (std::future<void>& one : asking) one.get();
  if (here.empty() && !refused) return;
  group_.reset();
  for (size_t server = 0; server < servers_.size(); ++server) {
    const std::string& address = servers_[server].text();
    if (said[server].empty() || std::ranges::find(missing, address) != missing.end()) continue;
    throw Error(ErrorKind::server, str(address, call_of(server).path, ": ", what, ": ", printable(said[server], 300)),
                kInterrupted);
  }
  const bool silent = !missing.empty();
  for (const Url& server : servers_) {
    if (!silent) missing.push_back(server.text());
  }
  throw Error(ErrorKind::server,
              str(ucas::join(missing, ", "), ": ", what, ": ", here, silent ? ", and no answer came" : ""),
              kInterrupted);
}

void WeightSync::join() {
  std::vector<SamplerDialect::Group> groups;
  int64_t size = 1;
  for (size_t server = 0; server < servers_.size(); ++server) {
    const std::string address = address_towards(servers_[server].host, servers_[server].port);
    groups.push_back({.backend = backend_, .address = address.empty() ? "127.0.0.1" : address, .first_rank = size});
    size += ranks_of(server);
  }
  group_ = std::make_unique<WeightGroup>(WeightGroup::Options{.backend = backend_,
                                                              .address = groups.front().address,
                                                              .size = size,
                                                              .patience = patience_,
                                                              .device = device_.str()});
  for (SamplerDialect::Group& group : groups) {
    group.name = group_->name();
    group.port = group_->port();
    group.size = size;
  }
  joined_ = groups;
  together(
      str("the group of ", size, " ranks that gets weights (rollout.weight_sync = \"", backend_, "\") was not joined"),
      [&](size_t server) { return dialect_.join_group(groups[server]); },
      [&](const WeightGroup::GivenUp& given_up) { group_->join(given_up); });
}

void WeightSync::send_bucket(const std::vector<at::Tensor>& tensors, const SamplerDialect::Bucket& bucket,
                             int64_t weights) {
  together(
      str("the weights of step ", weights, " are not taken"),
      [&](size_t server) { return dialect_.receive(joined_[server], bucket); },
      [&](const WeightGroup::GivenUp& given_up) { group_->broadcast(tensors, given_up); });
}

void WeightSync::send(Model& model, int64_t weights, const MasterValues& values) {
  if (!group_) join();
  const std::string dtype = stored_dtype(model);
  const std::vector<NamedTensor> all = tensors_saved(model);
  std::vector<at::Tensor> tensors;
  SamplerDialect::Bucket bucket{.dtype = dtype};
  int64_t bytes = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const at::Tensor& tensor = all[i].tensor;
    const at::Tensor now = has_values(tensor) ? tensor.detach() : values(tensor);
    tensors.push_back(now.to(device_, type_of(dtype)).contiguous());
    bucket.names.push_back(all[i].name);
    bucket.shapes.push_back(tensor.sizes().vec());
    bytes += static_cast<int64_t>(tensors.back().nbytes());
    const bool last = i + 1 == all.size();
    if (!last && bytes < kBucket) continue;
    if (last) bucket.version = str(weights);
    send_bucket(tensors, bucket, weights);
    tensors.clear();
    bucket = {.dtype = dtype};
    bytes = 0;
  }
}

}  // namespace ucas
