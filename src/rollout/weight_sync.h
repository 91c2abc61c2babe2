// Weights to servers without a disk: rank 0 broadcasts them in a group of c10d that the servers' workers join
// (sharding/weight_group.h), bucket by bucket, while a request over HTTP tells each server what comes. The types and
// names are those of the model's files. Whether the servers then compute with them is asked by rollout/served_rollout.
// Borrows the interface and the addresses. Threads: one caller; requests have their own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/client.h"
#include "model/masters.h"
#include "model/model.h"
#include "rollout/sampler_dialect.h"
#include "sharding/weight_group.h"

namespace ucas {

class WeightSync {
 public:
  WeightSync(const TrainRolloutConfig& config, const std::vector<Url>& servers, const SamplerDialect& dialect,
             at::Device device);
  ~WeightSync();  // has the servers leave the group
  WeightSync(const WeightSync&) = delete;
  WeightSync& operator=(const WeightSync&) = delete;

  // Joins the group first where there is none yet. Error(ErrorKind::server, exit 75) where a server does not join,
  // refuses, or is gone before all has come.
  void send(Model& model, int64_t weights, const MasterValues& values);

 private:
  using CallOf = std::function<SamplerDialect::Call(size_t server)>;
  using Work = std::function<void(const WeightGroup::GivenUp&)>;
  void join();
  int64_t ranks_of(size_t server) const;
  void send_bucket(const std::vector<at::Tensor>& tensors, const SamplerDialect::Bucket& bucket, int64_t weights);
  void together(const std::string& what, const CallOf& call_of, const Work& work);

  const std::vector<Url>& servers_;
  const SamplerDialect& dialect_;
  const std::string backend_;
  const double patience_;
  const at::Device device_;  // of what is broadcast
  std::unique_ptr<WeightGroup> group_;
  std::vector<SamplerDialect::Group> joined_;  // by server
};

}  // namespace ucas
