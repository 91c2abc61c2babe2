// What samplers elsewhere are asked and answer, as SGLang (0.5) and vLLM (0.32) document it: token ids out, token ids
// and log-probs back; weights by a directory that both sides see. Texts alone; who sends them is
// rollout/served_rollout. Threads: any; nothing is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rollout/config.h"
#include "train/collect/config.h"

namespace ucas {

struct SamplerAsk {
  std::span<const int32_t> prompt;
  std::span<const int32_t> stop_ids;
  int64_t max_tokens = 1;
  double temperature = 1;  // 0 = greedy
  uint32_t seed = 0;
};

// What a reply says. Whether it can be true is checked by who asked.
struct SamplerReply {
  std::vector<int32_t> token;  // the stop token included
  std::vector<double> logprob;
  bool stopped = false;      // by a stop token; false: at the limit
  std::string version = {};  // of the weights; "" where replies do not say
};

class SamplerDialect {
 public:
  virtual ~SamplerDialect() = default;
  virtual const char* name() const = 0;
  virtual std::string path() const = 0;  // of both questions
  virtual std::string sample(const SamplerAsk& ask) const = 0;
  virtual std::string score(std::span<const int32_t> ids) const = 0;
  // Throw where a body is not what the interface says.
  virtual SamplerReply sampled(const std::string& body) const = 0;
  // Log-probs of all ids but the first, at temperature 1.
  virtual std::vector<double> scored(const std::string& body, std::span<const int32_t> ids) const = 0;

  // The calls that hand weights over, in order. After each the server has said 200; `refuses` finds what a body that
  // came with it says against that, or "".
  struct Call {
    std::string path, body;
  };
  virtual std::vector<Call> hand_over(const std::string& directory, const std::string& version) const = 0;
  virtual std::string refuses(const std::string& body) const = 0;
  virtual const char* needs() const = 0;  // how a server must be started to have these calls

  // Weights by a group of c10d instead of a directory (rollout/weight_sync). Only SGLang's joins one; the others'
  // throw.
  struct Group {
    std::string name, backend, address;  // of rank 0, and by which of "nccl" and "gloo"
    int64_t port = 0, size = 1, first_rank = 1;
  };
  struct Bucket {
    std::vector<std::string> names;
    std::vector<std::vector<int64_t>> shapes;
    std::string dtype;    // of all, as PyTorch names it
    std::string version;  // "": others follow before these weights are whole
  };
  virtual std::vector<std::string> info_paths() const;      // any of these answers; the first that is known
  virtual int64_t ranks_in(const std::string& info) const;  // of the group; throws where it cannot join
  virtual Call join_group(const Group& group) const;        // answers once it has joined
  virtual Call receive(const Group& group, const Bucket& bucket) const;  // answers once it has loaded what came
  virtual Call leave_group(const Group& group) const;
};

// `model`: the name that the server knows it by.
std::unique_ptr<SamplerDialect> make_dialect(SampledBy sampler, const std::string& model);

}  // namespace ucas
