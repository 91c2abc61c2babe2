// Ranks as processes of their own, over Gloo on this machine.
#include "sharding/ranks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "model/transformer.h"
#include "rollout/rollouter.h"
#include "sharding/agreement.h"
#include "sharding/heartbeat.h"
#include "support/engine/gpu_views.h"
#include "support/engine/process_ranks.h"
#include "train/optimizer/optimizer.h"
#include "train/update/config.h"

namespace ucas {
namespace {

using testing::in_processes;
using testing::Joining;

TEST(ranks, gather_add_up_and_broadcast_reach_every_rank) {
  for (int64_t size : {2, 3}) {
    const auto said = in_processes(size, [&](Ranks& ranks) -> std::string {
      const auto texts = ranks.all_gather("texts", std::string(static_cast<size_t>(5 * ranks.rank()), 'x') + '\0');
      for (int64_t r = 0; r < size; ++r) {
        if (texts[static_cast<size_t>(r)] != std::string(static_cast<size_t>(5 * r), 'x') + '\0') return "gather";
      }
      const at::Tensor sum = at::full({1000}, static_cast<double>(ranks.rank() + 1), at::kFloat);
      ranks.all_reduce("sum", {{sum}});
      if (!sum.eq(size * (size + 1) / 2).all().item<bool>()) return "add_up";
      const at::Tensor given = at::full({7}, static_cast<double>(ranks.rank()), at::kFloat);
      ranks.broadcast("given", {{given}}, size - 1);
      if (!given.eq(size - 1).all().item<bool>()) return "broadcast";
      const at::Tensor summed = at::full({9}, static_cast<double>(ranks.rank() + 1), at::kFloat);
      std::vector<std::vector<at::Tensor>> sums(static_cast<size_t>(size));
      sums[1] = {summed};
      ranks.reduce("summed", sums);
      if (ranks.rank() == 1 && !summed.eq(size * (size + 1) / 2).all().item<bool>()) return "reduce";
      if (ranks.any("none", false) || !ranks.any("one", ranks.rank() == 1)) return "any";
      if (ranks.from_leader("from_leader", str(ranks.rank())) != "0") return "from_leader";
      const RankLocation place = ranks.place();
      if (place.on_host != size || place.local != ranks.rank() || place.sharing_cores != size) return "place";
      const RankShare share = share_of(ranks, 10);
      return share.first == 10 * ranks.rank() / size ? "" : "share";
    });
    EXPECT_EQ(said, std::vector<std::string>(static_cast<size_t>(size)));
  }
}

// What rank r has for an owner: numbers whose sum depends on its order.
std::vector<std::vector<at::Tensor>> in_order_of(int64_t rank, int64_t size, int64_t large) {
  std::vector<std::vector<at::Tensor>> to(static_cast<size_t>(size));
  const auto made = [&](int64_t n, double phase) {
    return at::arange(n, at::kFloat).mul_(0.37).add_(phase + static_cast<double>(rank)).sin_().mul_(std::pow(10, rank));
  };
  to[0] = {made(7, 1).view({7, 1}), made(large, 2)};
  if (size > 2) to[2] = {made(300, 3).view({3, 100})};  // rank 1 owns nothing
  return to;
}

TEST(ranks, in_order_owners_add_what_one_process_would_and_ranks_send_what_others_own) {
  for (const int64_t size : {2, 3, 4}) {
    const int64_t large = size == 4 ? kExchangeElements / size + 1001 : 5000;  // in two exchanges, or one
    const auto said = in_processes(size, [&](Ranks& ranks) -> std::string {
      for (const int64_t contributors : {size, int64_t{1}, size - 1}) {
        const auto self = static_cast<size_t>(ranks.rank());
        const auto like = in_order_of(0, size, large);
        std::vector<at::Tensor> sums, expected;
        for (const at::Tensor& one : like[self]) {
          sums.push_back(one.mul(0.123));
          expected.push_back(one.mul(0.123));
        }
        for (int64_t r = 0; r < contributors; ++r) {
          const auto of_rank = in_order_of(r, size, large)[self];
          for (size_t i = 0; i < expected.size(); ++i) expected[i].add_(of_rank[i]);
        }
        const int64_t before = ranks.bytes();
        ranks.add_in_order("in order", in_order_of(ranks.rank(), size, large), sums, contributors);
        for (size_t i = 0; i < sums.size(); ++i)
          if (!sums[i].equal(expected[i])) return str("other bits of ", contributors, " contributors: ", i);
        const std::vector<int64_t> owned = {7 + large, 0, 300, 0};
        int64_t others = 0;
        for (int64_t r = 0; r < size; ++r) others += r == ranks.rank() ? 0 : owned[static_cast<size_t>(r)];
        if (ranks.bytes() - before != (ranks.rank() < contributors ? 4 * others : 0)) return "sends something else";
      }
      return "";
    });
    EXPECT_EQ(said, std::vector<std::string>(static_cast<size_t>(size)));
  }
}

// Parameters of different sizes; the gradient of step s is the same on every rank.
struct RanksTrained {
  std::vector<NamedTensor> parameters;
  RanksTrained() {
    for (int64_t i = 0; i < 6; ++i) {
      const std::string name = str("model.layers.", i, ".mlp.up_proj.weight");
      parameters.push_back({name, at::full({8, 16 + 4 * i}, 0.1, at::kFloat).set_requires_grad(true)});
    }
  }
  void set_gradients(int64_t step) {
    for (NamedTensor& p : parameters) {
      p.tensor.mutable_grad() =
          at::arange(p.tensor.numel(), at::kFloat).view(p.tensor.sizes()).sin() * static_cast<double>(step + 1);
    }
  }
  double elements() const {
    double sum = 0;
    for (const NamedTensor& p : parameters) sum += static_cast<double>(p.tensor.numel());
    return sum;
  }
};

double elements_of(const std::vector<NamedTensor>& tensors) {
  double sum = 0;
  for (const NamedTensor& t : tensors) sum += static_cast<double>(t.tensor.numel());
  return sum;
}

TEST(ranks, each_keeps_its_share_of_the_moments_and_all_get_the_weights_of_one) {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
    OptimizerConfig config;
    config.kind = kind;
    const auto said = in_processes(3, [&](Ranks& ranks) -> std::string {
      RanksTrained one, shared;
      Optimizer of_one(one.parameters, config), of_all(shared.parameters, config);
      of_all.shard_over(ranks);
      const double whole = elements_of(of_one.state()), kept = elements_of(of_all.state());
      if (std::abs(kept / whole - 1.0 / 3) > 0.1) return str("keeps ", kept, " of ", whole);
      for (int64_t step = 0; step < 3; ++step) {
        one.set_gradients(step);
        shared.set_gradients(step);
        of_one.step(0.01);
        of_all.step(0.01);
      }
      for (size_t i = 0; i < one.parameters.size(); ++i)
        if (!one.parameters[i].tensor.equal(shared.parameters[i].tensor)) return "other weights";
      std::vector<NamedTensor> whole_state = of_one.state();
      for (const NamedTensor& mine : of_all.state()) {
        const auto found = std::ranges::find(whole_state, mine.name, &NamedTensor::name);
        if (found == whole_state.end() || !found->tensor.equal(mine.tensor)) return str("other ", mine.name);
        whole_state.erase(found);
      }
      if (elements_of(whole_state) != whole - kept) return "another state";
      return elements_of(of_all.state()) == kept ? "" : "keeps more than its share";
    });
    EXPECT_EQ(said, std::vector<std::string>(3));
  }
}

// Masters of the model's trained parameters that are here, in elements.
double masters_of(Model& model) {
  double sum = 0;
  for (const Bf16Copy& copy : model.bf16_copies())
    if (has_values(copy.master)) sum += static_cast<double>(copy.master.numel());
  return sum;
}

ModelConfig small_shape() {
  ModelConfig c;
  c.family = &kFamilies[1];
  c.vocab_size = 64;
  c.num_hidden_layers = 4;
  return c;
}

// Gradients that are the same on every rank.
void set_gradients(Model& model, int64_t step) {
  for (const NamedTensor& p : model.trainable()) {
    p.tensor.mutable_grad() =
        at::arange(p.tensor.numel(), at::kFloat).view(p.tensor.sizes()).sin() * static_cast<double>(step + 1);
  }
}

// What GEMMs read of the trained matrices, and the vectors next to them; "" where they are the same.
std::string difference_of_weights(Model& a, Model& b) {
  const auto of_a = a.bf16_copies(), of_b = b.bf16_copies();
  if (of_a.empty() || of_a.size() != of_b.size()) return str(of_a.size(), " copies, ", of_b.size());
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (!of_a[i].compute.equal(of_b[i].compute)) return str("other weights: copy ", i);
    if (has_values(of_b[i].master) && !of_a[i].master.equal(of_b[i].master)) return str("another master: ", i);
  }
  const auto all_a = a.trainable(), all_b = b.trainable();
  for (size_t i = 0; i < all_a.size(); ++i) {
    if (has_values(all_b[i].tensor) && !all_a[i].tensor.equal(all_b[i].tensor)) return str("other ", all_a[i].name);
  }
  return "";
}

// The masters that rank 0 asks for, against those of one process; "" where they are the same. What is thrown meanwhile
// comes out on rank 0, and the others go on.
std::string difference_of_lent(const Optimizer& optimizer, Model& one, Model& shared, bool fails) {
  std::string other;
  try {
    optimizer.with_masters([&](const MasterValues& values) {
      const auto a = one.trainable(), b = shared.trainable();
      for (size_t i = a.size(); i-- > 0;) {  // in any order
        if (fails && i == a.size() / 2) throw Error(ErrorKind::io, "no room");
        if (!values(b[i].tensor).equal(a[i].tensor)) other = "lent other " + a[i].name;
      }
    });
  } catch (const Error& error) {
    return fails && error.kind() == ErrorKind::io ? other : error.what();
  }
  return other;
}

TEST(ranks, each_keeps_its_share_of_the_masters_and_all_get_the_bf16_weights_of_one) {
  const LoraConfig lora{.rank = 4, .modules_to_save = {"embed_tokens"}};
  for (const ModelOptions& options :
       {ModelOptions{.dtype = Dtype::bf16},
        ModelOptions{.dtype = Dtype::bf16, .trained = ucas::Trained::adapter, .lora = lora}}) {
    const auto said = in_processes(3, [&](Ranks& ranks) -> std::string {
      const auto one = make_model(small_shape(), 5, at::kCPU, options),
                 shared = make_model(small_shape(), 5, at::kCPU, options);
      Optimizer of_one(one->trainable(), {}), of_all(shared->trainable(), {});
      of_all.shard_over(ranks, Shard::moments, shared->bf16_copies());
      const double whole = masters_of(*one), kept = masters_of(*shared);
      if (std::abs(kept / whole - 1.0 / 3) > 0.12) return str("keeps ", kept, " of ", whole);
      const int64_t sent = ranks.bytes();
      for (int64_t step = 0; step < 3; ++step) {
        set_gradients(*one, step);
        set_gradients(*shared, step);
        of_one.step(0.01);
        of_all.step(0.01);
        one->refresh();
        shared->refresh();
        if (const std::string other = difference_of_weights(*one, *shared); !other.empty()) return other;
      }
      double most = 0;  // matrices in bf16, vectors in f32
      for (const NamedTensor& p : one->trainable()) most += static_cast<double>(p.tensor.numel());
      if (static_cast<double>(ranks.bytes() - sent) != 3 * (4 * most - 2 * whole)) return "sends masters";
      for (int again = 0; again < 2; ++again) {
        if (const std::string other = difference_of_lent(of_all, *one, *shared, again == 1); !other.empty())
          return other;
        if (masters_of(*shared) != kept) return "keeps more than its share";
      }
      return "";
    });
    EXPECT_EQ(said, std::vector<std::string>(3));
  }
}

// Samples the first token of each prompt; leaves out so many responses at the end.
class Drawing final : public Rollouter {
 public:
  explicit Drawing(size_t missing) : missing_(missing) {}
  std::vector<Episode> run(const RolloutRequest& request) override {
    std::vector<Episode> sampled;
    for (size_t job = 0; job < request.jobs.size(); ++job) {
      for (uint32_t i = 0; i < request.jobs[job].samples; ++i)
        sampled.push_back({.job = static_cast<int64_t>(job), .sample = i, .token = {request.jobs[job].prompt[0]}});
    }
    sampled.resize(sampled.size() - missing_);
    return sampled;
  }

 private:
  const size_t missing_;
};

TEST(ranks, one_that_ends_is_told_of_by_the_others) {
  const auto said = in_processes(2, [](Ranks& ranks) -> std::string {
    ranks.barrier("one");
    if (ranks.rank() == 1) _exit(0);
    ranks.barrier("another");
    return "went on";
  });
  EXPECT_NE(said[0].find("rank 0 of 2: another failed"), std::string::npos) << said[0];
}

// Until calls were named these ended in std::terminate, in a sum of other numbers or in waiting for each other.
TEST(ranks, calls_that_are_not_the_same_end_in_an_error_that_names_both) {
  const auto tensor = [](int64_t elements) { return at::full({elements}, 1.0, at::kFloat); };
  struct Case {
    std::function<void(Ranks&)> first, second;
    std::vector<std::string> named;
  };
  const std::vector<Case> cases = {
      {[](Ranks& r) { r.all_gather("responses", "abc"); },
       [&](Ranks& r) { r.all_reduce("summing gradients", {{tensor(2000)}}); },
       {"responses of 3 bytes", "summing gradients of 8000 bytes"}},
      {[](Ranks& r) { r.all_gather("responses", "abc"); },
       [](Ranks& r) { r.any("whether to stop", true); },
       {"responses of 3 bytes", "whether to stop of 1 bytes"}},
      {[&](Ranks& r) { r.all_reduce("summing gradients", {{tensor(2000)}}); },
       [&](Ranks& r) { r.all_reduce("summing gradients", {{tensor(2001)}}); },
       {"summing gradients of 8000 bytes", "summing gradients of 8004 bytes"}},
      {[&](Ranks& r) { r.broadcast("broadcasting parameters", {{tensor(5)}}, 0); },
       [](Ranks& r) { r.barrier("gathering master weights"); },
       {"broadcasting parameters of 20 bytes", "gathering master weights"}},
      {[&](Ranks& r) {
         r.add_in_order("adding gradients", std::vector<std::vector<at::Tensor>>{{tensor(5)}, {}}, {{tensor(5)}}, 2);
       },
       [&](Ranks& r) { r.reduce("adding gradients", std::vector<std::vector<at::Tensor>>(2)); },
       {"adding gradients of 20 bytes", "adding gradients of 0 bytes"}}};
  for (const Case& c : cases) {
    const auto said = in_processes(2, [&](Ranks& ranks) -> std::string {
      ranks.barrier("the beginning");
      try {
        (ranks.leads() ? c.first : c.second)(ranks);
      } catch (const Error& e) {
        if (e.exit_code() != kNumeric || e.word() != "ranks") return "another kind of error";
        throw;
      }
      return "went on";
    });
    for (const std::string& named : c.named) {
      for (const std::string& text : said) EXPECT_NE(text.find(named), std::string::npos) << text;
    }
    EXPECT_NE(said[0].find("the ranks do not do the same: rank 0 is at call "), std::string::npos) << said[0];
    EXPECT_NE(said[0].find("rank 1 is at call "), std::string::npos) << said[0];
  }
}

TEST(ranks, an_error_of_one_ends_all_with_its_text_and_code) {
  for (const int64_t failing : {0, 1, 2}) {
    const auto said = in_processes(3, [&](Ranks& ranks) -> std::string {
      const int64_t given = ranks.together("a", [&] { return ranks.rank() + 5; });
      if (given != ranks.rank() + 5) return "another value";
      try {
        ranks.together("b", [&] {
          if (ranks.rank() == failing) throw Error(ErrorKind::io, "no such file", kIoFailure);
        });
      } catch (const AgreedError& e) {
        return str(e.word(), " ", e.exit_code(), " ", e.what());
      }
      return "went on";
    });
    const std::string text = str("io 74 ", failing > 0 ? str("rank ", failing, ": ") : "", "no such file");
    EXPECT_EQ(said, std::vector<std::string>(3, text));
  }
}

TEST(ranks, what_is_not_the_same_on_all_is_named) {
  EXPECT_EQ(differences_of({{"a = 1", "b = x"}, {"a = 1", "b = x"}}), std::vector<std::string>());
  EXPECT_EQ(differences_of({{"a = 1", "b = x = y"}, {"a = 2", "b = x"}, {"a = 1", "b = x", "c = "}}),
            (std::vector<std::string>{"a = 1 at ranks 0 and 2, 2 at rank 1", "b = x = y at rank 0, x at ranks 1 and 2",
                                      "c = (none) at ranks 0 and 1, \"\" at rank 2"}));
  const auto said = in_processes(2, [](Ranks& ranks) -> std::string {
    require_same(ranks, "same", {"a = 1"});
    try {
      require_same(ranks, "not the same", {str("a = ", ranks.rank()), "b = 1"});
    } catch (const AgreedError& e) {
      return str(e.word(), " ", e.exit_code(), " ", e.what());
    }
    return "went on";
  });
  for (const std::string& text : said) {
    EXPECT_EQ(text.find("config 2 the ranks are not at the same run: a = 0 at rank 0, 1 at rank 1; "), 0) << text;
  }
}

TEST(ranks, rank_0_decides_and_any_stops) {
  const auto said = in_processes(2, [](Ranks& ranks) -> std::string {
    Decision mine{.validate = true, .stop = false, .best = {7, 0.5}};
    if (!ranks.leads()) mine = {.save = true, .last = true, .stop = true, .best = {9, 0.75}};
    const Decision all = decided(ranks, "a step", mine);
    const bool as_0 = all.validate && !all.save && !all.last && all.best.step == 7 && all.best.value == 0.5;
    return as_0 && all.stop ? "" : "another decision";
  });
  EXPECT_EQ(said, std::vector<std::string>(2));
}

// Their empty groups would be trained on.
TEST(ranks, responses_that_are_missing_end_all) {
  const auto said = in_processes(2, [](Ranks& ranks) -> std::string {
    std::vector<std::vector<int32_t>> prompts;
    for (int32_t i = 0; i < 25; ++i) prompts.push_back({100 + i});
    std::vector<PromptJob> jobs;
    for (const auto& prompt : prompts) jobs.push_back({.prompt = prompt, .samples = 2});
    RolloutRequest request;
    request.jobs = jobs;
    Drawing whole(0), part(ranks.leads() ? 0 : 3);
    const std::vector<Episode> all = share_rollout(whole, ranks)->run(request);
    if (all.size() != 50) return str(all.size(), " responses");
    for (size_t i = 0; i < all.size(); ++i) {
      const Episode& s = all[i];
      const bool right = s.job == static_cast<int64_t>(i / 2) && s.sample == i % 2 && s.token[0] == 100 + s.job;
      if (!right) return str("response ", i, " is of prompt ", s.job);
    }
    bool stops = false;
    request.limits.should_stop = [&] { return stops; };
    const std::unique_ptr<Rollouter> shared = share_rollout(part, ranks);
    try {
      shared->run(request);
      return "went on";
    } catch (const Error& e) {
      if (std::string(e.what()).find("the ranks have 47 of 50 responses") == std::string::npos) return e.what();
    }
    ranks.barrier("again");
    stops = ranks.rank() == 1;  // the interrupted rank leaves some out
    return shared->run(request).size() == 47 ? "" : "not those that are there";
  });
  EXPECT_EQ(said, std::vector<std::string>(2));
}

// As torchrun's agent has it: one store for all attempts, with what the one before left in it.
TEST(ranks, another_attempt_under_the_same_store_begins_anew) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto agent = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  const auto joined = [port = agent->getPort()](int attempt) {
    return [port, attempt](int64_t rank) {
      ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
      ::setenv("TORCHELASTIC_RESTART_COUNT", str(attempt).c_str(), 1);
      return make_gloo_ranks(rank, 2, "127.0.0.1", port);
    };
  };
  const auto cut = in_processes(2, joined(0), [](Ranks& ranks) -> std::string {
    ranks.barrier("one");
    if (ranks.rank() == 1) _exit(0);
    ranks.barrier("another");
    return "went on";
  });
  EXPECT_NE(cut[0].find("if another rank ended"), std::string::npos) << cut[0];
  for (int attempt = 1; attempt < 3; ++attempt) {
    const auto said = in_processes(2, joined(attempt), [](Ranks& ranks) -> std::string {
      ranks.barrier("one");
      return "";
    });
    EXPECT_EQ(said, std::vector<std::string>(2));
  }
}

TEST(ranks, processes_that_are_not_of_one_run_are_refused_on_all) {
  const auto nothing = [](Ranks&) -> std::string { return "went on"; };
  auto said = in_processes(2, [&](int64_t rank) { return std::pair(rank, 2 + rank); }, nothing);
  for (const std::string& text : said) {
    EXPECT_EQ(text.find("threw: WORLD_SIZE is 2 at rank 0, 3 at rank 1: "), 0) << text;
  }
  said = in_processes(3, [&](int64_t rank) { return std::pair(std::min<int64_t>(rank, 1), int64_t{3}); }, nothing);
  for (const std::string& text : said) EXPECT_EQ(text.find("threw: two processes have RANK=1: "), 0) << text;
}

class DeviceWork final : public c10d::Work {
 public:
  bool isCompleted() override { return over; }
  bool over = false;
};

TEST(ranks, the_first_call_that_a_device_does_not_end_is_named) {
  DeviceCalls calls(std::chrono::seconds(0)), patient(std::chrono::hours(1));
  EXPECT_EQ(calls.overdue(), "");
  const auto first = c10::make_intrusive<DeviceWork>(), second = c10::make_intrusive<DeviceWork>();
  for (DeviceCalls* one : {&calls, &patient}) {
    one->add(7, "summing gradients", first);
    one->add(9, "broadcasting parameters", second);
  }
  EXPECT_EQ(calls.overdue().find("call 7, summing gradients: all ranks began it"), 0U) << calls.overdue();
  EXPECT_EQ(patient.overdue(), "");
  first->over = true;
  EXPECT_EQ(calls.overdue().find("call 9, broadcasting parameters"), 0U) << calls.overdue();
  second->over = true;
  EXPECT_EQ(calls.overdue(), "");
}

// Its own thread waits in the device for ever.
TEST(ranks, a_process_whose_device_hangs_ends_with_the_name_of_the_call) {
  const auto hangs = [] {
    Heartbeat heartbeat(c10::make_intrusive<c10d::HashStore>(), 0, 2, std::chrono::hours(1));
    heartbeat.watch([] { return std::string("call 7, summing gradients: it hangs"); });
    ::pause();
  };
  EXPECT_EXIT(hangs(), ::testing::ExitedWithCode(kNumeric), "rank 0 of 2: call 7, summing gradients: it hangs");
}

// A device's group that must be ended before it goes, as NCCL's.
class EndedGroup final : public c10d::Backend {
 public:
  EndedGroup() : Backend(0, 1) {}
  ~EndedGroup() override {
    if (!ended) std::abort();
  }
  void shutdown() override { ended = true; }
  bool ended = false;
};

TEST(ranks, a_devices_group_is_ended_where_all_is_well_and_left_alone_where_not) {
  const auto group = c10::make_intrusive<EndedGroup>();
  {
    const DeviceGroup of_ranks{group};
  }
  EXPECT_TRUE(group->ended);
  const auto fails = [] {
    std::atexit([] { std::abort(); });  // what other libraries do at the end may wait for the device, too
    try {
      const DeviceGroup of_ranks{c10::make_intrusive<EndedGroup>()};
      throw Error(ErrorKind::ranks, "another rank ended");
    } catch (const Error&) {
    }
    std::exit(kNumeric);
  };
  EXPECT_EXIT(fails(), ::testing::ExitedWithCode(kNumeric), "");
}

// Every call of a group of one, on the host and, where there is a GPU, by NCCL: what it gives is what is there.
TEST(ranks, one_rank_makes_every_call_on_every_device) {
  std::vector<at::Device> devices = {at::kCPU};
  if (testing::has_cuda()) devices.emplace_back(at::kCUDA, 0);
  for (const at::Device device : devices) {
    const Listener store = listen_on_loopback(0);
    ::setenv("UCAS_STORE_FD", str(store.fd).c_str(), 1);
    const std::unique_ptr<Ranks> one = make_gloo_ranks(0, 1, "127.0.0.1", store.port);
    ::unsetenv("UCAS_STORE_FD");
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::arange(1000, at::TensorOptions().dtype(type).device(device)),
                       large = at::ones({1 << 21}, x.options());
      const std::vector<std::vector<at::Tensor>> lists = {{x, large}};
      const at::Tensor before = x.clone();
      one->all_reduce("all-reduce", lists[0]);
      one->reduce("reduce", lists);
      one->broadcast("broadcast", lists);
      EXPECT_TRUE(x.equal(before) && large.eq(1).all().item<bool>()) << device.str();
      if (type != at::kFloat) continue;
      const at::Tensor sum = at::ones_like(x);
      one->add_in_order("all-to-all", std::vector<std::vector<at::Tensor>>{{x}}, {{sum}}, 1);
      EXPECT_TRUE(sum.equal(before + 1)) << device.str();
    }
    one->barrier("the end");
  }
}

TEST(ranks, alone_nothing_is_exchanged) {
  const std::unique_ptr<Ranks> one = alone();
  EXPECT_TRUE(one->alone() && one->leads());
  EXPECT_EQ(one->all_gather("what", "x"), std::vector<std::string>{"x"});
  EXPECT_TRUE(one->any("what", true));
  EXPECT_FALSE(one->any("what", false));
}

}  // namespace
}  // namespace ucas
