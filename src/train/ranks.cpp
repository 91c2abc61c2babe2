#include "train/ranks.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

class Alone final : public Ranks {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
  void add_up(std::span<const at::Tensor> /*tensors*/) override {}
  void reduce(std::span<const at::Tensor> /*tensors*/, int64_t /*to*/) override {}
  void hand(std::span<const at::Tensor> /*tensors*/, int64_t /*from*/, int64_t /*to*/) override {}
  void broadcast(std::span<const at::Tensor> /*tensors*/, int64_t /*from*/) override {}
  void in_turn(std::span<const at::Tensor> /*tensors*/, std::string& /*bytes*/,
               const std::function<void()>& turn) override {
    turn();
  }
  int64_t count(const std::string& name, int64_t more) override { return counted_[name] += more; }
  std::string settle(const std::string& name, const std::string& bytes) override {
    return settled_.try_emplace(name, bytes).first->second;
  }
  void forget(const std::vector<std::string>& names) override {
    for (const std::string& name : names) {
      counted_.erase(name);
      settled_.erase(name);
    }
  }

 private:
  std::map<std::string, int64_t> counted_;
  std::map<std::string, std::string> settled_;
};

// A number of the environment.
int64_t number_of(const char* name, int64_t least, int64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    throw Error("config", str("WORLD_SIZE is set, but ", name, " is not: start the ranks by torchrun, or set RANK, ",
                              "WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each"));
  }
  int64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, failed] = std::from_chars(text, end, value);
  if (failed != std::errc{} || at != end || value < least || value > most) {
    throw Error("config", str(name, "=", printable(text), ": expected a whole number from ", least, " to ", most));
  }
  return value;
}

}  // namespace

bool Ranks::any(bool mine) {
  const std::vector<std::string> all = gather(mine ? "1" : "");
  return std::ranges::any_of(all, [](const std::string& one) { return !one.empty(); });
}

std::unique_ptr<Ranks> alone() { return std::make_unique<Alone>(); }

std::unique_ptr<Ranks> open_ranks() {
  const char* world = std::getenv("WORLD_SIZE");
  if (world == nullptr || std::strcmp(world, "1") == 0) return alone();
  constexpr int64_t kMost = 4096;
  const int64_t size = number_of("WORLD_SIZE", 1, kMost), rank = number_of("RANK", 0, size - 1);
  const char* host = std::getenv("MASTER_ADDR");
  return make_gloo_ranks(rank, size, host != nullptr ? host : "127.0.0.1", number_of("MASTER_PORT", 1, 65535));
}

}  // namespace ucas
