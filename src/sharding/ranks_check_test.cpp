#include "sharding/ranks_check.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <mutex>

#include "support/engine/process_ranks.h"
#include "support/engine/thread_ranks.h"

namespace ucas {
namespace {

using testing::in_processes;
using testing::ThreadRanks;

std::vector<std::string> failed(const std::vector<RanksFinding>& found) {
  std::vector<std::string> names;
  for (const RanksFinding& f : found)
    if (!f.ok) names.push_back(f.what);
  return names;
}

TEST(ranks_check, finds_nothing_wrong_between_processes) {
  for (const int64_t size : {2, 3}) {
    const auto said = in_processes(size, [](Ranks& ranks) -> std::string {
      const std::vector<RanksFinding> found = check_ranks(ranks, at::kCPU, 3000);
      if (found.size() != 7) return str(found.size(), " calls");
      for (const RanksFinding& f : found)
        if (f.bytes <= 0 || !(f.seconds > 0)) return "no speed of " + f.what;
      return join(failed(found), ", ");
    });
    EXPECT_EQ(said, std::vector<std::string>(static_cast<size_t>(size)));
  }
}

// Ranks of which one is a bit off.
class Faulty final : public Ranks {
 public:
  Faulty(Ranks& right, std::string call) : right_(right), call_(std::move(call)) {}
  int64_t rank() const override { return right_.rank(); }
  int64_t size() const override { return right_.size(); }
  void barrier(const char* what) override { right_.barrier(what); }
  std::vector<std::string> all_gather(const char* what, const std::string& bytes) override {
    auto all = right_.all_gather(what, bytes);
    if (call_ == "all_gather" && std::string(what) == "bytes" && rank() == 1) all[0][1] ^= 1;
    return all;
  }
  void all_reduce(const char* what, std::span<const at::Tensor> tensors) override {
    right_.all_reduce(what, tensors);
    spoil("all_reduce", tensors[0]);
  }
  void reduce(const char* what, OfRanks to) override {
    right_.reduce(what, to);
    spoil("reduce", to[1][0]);
  }
  void add_in_order(const char* what, OfRanks to, std::span<const at::Tensor> sums, int64_t givers) override {
    right_.add_in_order(what, to, sums, givers);
    spoil("add_in_order", sums[0]);
  }
  using Ranks::broadcast;
  void broadcast(const char* what, OfRanks from) override {
    right_.broadcast(what, from);
    spoil("broadcast", from[0][0]);
  }
  void send(const char* what, std::span<const at::Tensor> tensors, int64_t from, int64_t to) override {
    right_.send(what, tensors, from, to);
    spoil("send", tensors[0]);
  }
  int64_t add_to_counter(const std::string& name, int64_t more) override { return right_.add_to_counter(name, more); }
  std::unique_ptr<Ranks> open_channel() override { return nullptr; }

 private:
  void spoil(const std::string& call, const at::Tensor& tensor) const {
    if (call == call_ && rank() == 1) tensor[5].add_(1);
  }
  Ranks& right_;
  const std::string call_;
};

TEST(ranks_check, names_the_call_that_gives_other_bits_on_one_rank_to_all) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"all_gather", {"all-gather of bytes"}},
      {"all_reduce", {"all-reduce"}},
      {"reduce", {"reduce to owners"}},
      {"add_in_order", {"add in order (micro)"}},
      {"broadcast", {"broadcast, f32", "broadcast, bf16"}},
      {"send", {"send"}}};
  for (const auto& [call, names] : cases) {
    std::mutex mutex;
    std::vector<std::vector<std::string>> all;
    ThreadRanks::run(2, [&, &of_call = call](const std::shared_ptr<Ranks>& right) {
      Faulty ranks(*right, of_call);
      const std::vector<RanksFinding> found = check_ranks(ranks, at::kCPU, 200);
      const std::lock_guard lock(mutex);
      all.push_back(failed(found));
    });
    EXPECT_EQ(all, (std::vector<std::vector<std::string>>(2, names))) << call;
  }
}

}  // namespace
}  // namespace ucas
