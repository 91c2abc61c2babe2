#include "sharding/ranks_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {

constexpr int kTakes = 3;
constexpr int64_t kValues = 1009;  // below it, so that sums over 4,096 ranks are exact in f32

using Lists = std::vector<std::vector<at::Tensor>>;

class RanksCheck {
 public:
  RanksCheck(Ranks& ranks, at::Device device, int64_t elements)
      : ranks_(ranks), device_(device), each_(std::max<int64_t>(1, elements / ranks.size())) {}

  std::vector<RanksFinding> made() {
    bytes();
    all_reduce();
    reduce();
    in_order();
    broadcast(at::kFloat, "broadcast, f32");
    broadcast(at::kBFloat16, "broadcast, bf16");
    send();
    return std::move(found_);
  }

 private:
  // What rank r has for an owner, [each].
  at::Tensor whole_numbers(int64_t rank, int64_t owner) const {
    return at::arange(each_, at::kFloat).add_(static_cast<double>(17 * rank + 31 * owner)).remainder_(kValues);
  }
  // Of these a sum in another order has other bits.
  at::Tensor fractions(int64_t rank, int64_t owner) const {
    return whole_numbers(rank, owner).add_(0.37).mul_(1 + 0.1 * static_cast<double>(rank));
  }
  using Make = at::Tensor (RanksCheck::*)(int64_t rank, int64_t owner) const;
  Lists lists(Make make, at::ScalarType type = at::kFloat) const {
    Lists lists;
    for (int64_t owner = 0; owner < ranks_.size(); ++owner) {
      lists.push_back({(this->*make)(ranks_.rank(), owner).to(device_, type)});
    }
    return lists;
  }
  at::Tensor sum_for(Make make, int64_t owner) const {
    const at::Tensor sum = at::zeros({each_}, at::kFloat);
    for (int64_t rank = 0; rank < ranks_.size(); ++rank) sum.add_((this->*make)(rank, owner));
    return sum;
  }
  int64_t tensor_bytes() const { return 4 * each_ * ranks_.size(); }

  // prepare() makes what call() is given; right() says whether what it left is what it should be.
  void note(const char* what, int64_t bytes, const std::function<void()>& prepare, const std::function<void()>& call,
            const std::function<bool()>& right) {
    bool ok = true;
    double best = std::numeric_limits<double>::infinity();
    for (int take = 0; take < kTakes; ++take) {
      prepare();
      ranks_.barrier("before a call that is timed");
      const double began = now_seconds();
      call();
      if (!device_.is_cpu()) at::zeros({1}, device_).cpu();  // waits for what was queued before
      best = std::min(best, slowest(now_seconds() - began));
      ok = right() && ok;
    }
    found_.push_back({what, bytes, best, !ranks_.any("whether a call gave other bits", !ok)});
  }
  double slowest(double seconds) {
    double most = 0;
    const std::string mine(reinterpret_cast<const char*>(&seconds), sizeof seconds);
    for (const std::string& bytes : ranks_.all_gather("the seconds of a call", mine)) {
      double of_rank = 0;
      std::memcpy(&of_rank, bytes.data(), sizeof of_rank);
      most = std::max(most, of_rank);
    }
    return most;
  }

  void bytes() {
    const auto text = [&](int64_t rank) {
      return std::string(static_cast<size_t>(4 * each_ + rank), char('a' + rank % 26));
    };
    std::vector<std::string> all;
    note(
        "all-gather of bytes", 4 * each_, [] {}, [&] { all = ranks_.all_gather("bytes", text(ranks_.rank())); },
        [&] {
          for (int64_t rank = 0; rank < ranks_.size(); ++rank)
            if (all[static_cast<size_t>(rank)] != text(rank)) return false;
          return true;
        });
  }

  void all_reduce() {
    Lists given;
    note(
        "all-reduce", tensor_bytes(), [&] { given = lists(&RanksCheck::whole_numbers); },
        [&] {
          std::vector<at::Tensor> all;
          for (const auto& list : given) all.push_back(list[0]);
          ranks_.all_reduce("all-reduce", all);
        },
        [&] { return are_sums(given, 0, ranks_.size()); });
  }
  bool are_sums(const Lists& given, int64_t first, int64_t last) const {
    for (int64_t owner = first; owner < last; ++owner) {
      if (!given[static_cast<size_t>(owner)][0].cpu().equal(sum_for(&RanksCheck::whole_numbers, owner))) return false;
    }
    return true;
  }

  void reduce() {
    Lists given;
    note(
        "reduce to owners", tensor_bytes(), [&] { given = lists(&RanksCheck::whole_numbers); },
        [&] { ranks_.reduce("reduce", given); }, [&] { return are_sums(given, ranks_.rank(), ranks_.rank() + 1); });
  }

  void in_order() {
    Lists given;
    at::Tensor sum;
    note(
        "add in order (micro)", tensor_bytes(),
        [&] {
          given = lists(&RanksCheck::fractions);
          sum = at::zeros_like(given[0][0]);
        },
        [&] { ranks_.add_in_order("add in order", given, {{sum}}, ranks_.size()); },
        [&] { return sum.cpu().equal(sum_for(&RanksCheck::fractions, ranks_.rank())); });
  }

  void broadcast(at::ScalarType type, const char* what) {
    Lists given;
    note(
        what, tensor_bytes() * (type == at::kFloat ? 2 : 1) / 2, [&] { given = lists(&RanksCheck::fractions, type); },
        [&] { ranks_.broadcast(what, given); },
        [&] {
          for (int64_t owner = 0; owner < ranks_.size(); ++owner) {
            if (!given[static_cast<size_t>(owner)][0].cpu().equal(fractions(owner, owner).to(type))) return false;
          }
          return true;
        });
  }

  // From rank 0 to each other one.
  void send() {
    at::Tensor given;
    note(
        "send", 4 * each_ * (ranks_.size() - 1), [&] { given = fractions(ranks_.rank(), 0).to(device_); },
        [&] {
          for (int64_t to = 1; to < ranks_.size(); ++to)
            if (ranks_.leads() || ranks_.rank() == to) ranks_.send("send", {{given}}, 0, to);
        },
        [&] { return given.cpu().equal(fractions(0, 0)); });
  }

  Ranks& ranks_;
  const at::Device device_;
  const int64_t each_;  // elements for an owner
  std::vector<RanksFinding> found_;
};

}  // namespace

std::vector<RanksFinding> check_ranks(Ranks& ranks, at::Device device, int64_t elements) {
  const at::NoGradGuard no_grad;
  return RanksCheck(ranks, device, elements).made();
}

}  // namespace ucas
