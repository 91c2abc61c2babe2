#include "sharding/ranks.h"

#include <ATen/core/grad_mode.h>

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/process/machine.h"
#include "base/str.h"

namespace ucas {

namespace {

class Alone final : public Ranks {
 public:
  Alone() : Ranks(0, 1) {}
  void barrier(const char* /*what*/) override {}
  std::vector<std::string> all_gather(const char* /*what*/, const std::string& bytes) override { return {bytes}; }
  void all_reduce(const char* /*what*/, std::span<const at::Tensor> /*tensors*/) override {}
  void reduce(const char* /*what*/, OfRanks /*to*/) override {}
  void add_in_order(const char* /*what*/, OfRanks to, std::span<const at::Tensor> sums, int64_t /*of*/) override {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < sums.size(); ++i) sums[i].add_(to[0][i]);
  }
  void broadcast(const char* /*what*/, OfRanks /*from*/) override {}
};

// A number of the environment.
int64_t number_of(const char* name, int64_t least, int64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    throw Error(ErrorKind::config,
                str("WORLD_SIZE is set, but ", name, " is not: start the ranks by torchrun, or set RANK, ",
                    "WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each"));
  }
  int64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, failed] = std::from_chars(text, end, value);
  if (failed != std::errc{} || at != end || value < least || value > most) {
    throw Error(ErrorKind::config,
                str(name, "=", printable(text), ": expected a whole number from ", least, " to ", most));
  }
  return value;
}

bool several_by_environment() {
  const char* world = std::getenv("WORLD_SIZE");
  return world != nullptr && std::strcmp(world, "1") != 0;
}

constexpr int64_t kMostRanks = 4096;

// A rank without one to spare would wait for its connections for ever.
void require_descriptors(int64_t ranks) {
  const rlim_t least = 64 + 4 * static_cast<rlim_t>(ranks);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= least) return;
  throw AgreedError(ErrorKind::limit, str("ulimit -n is ", limit.rlim_cur, ": ", ranks, " ranks need ", least,
                                          " open files each; raise it"));
}

}  // namespace

void BytesReader::copy(void* to, size_t size) {
  if (size > left_.size()) refuse();
  if (size > 0) std::memcpy(to, left_.data(), size);
  left_.remove_prefix(size);
}

void BytesReader::refuse() const {
  throw Error(ErrorKind::truncated, str(where_, ": not whole, ", left_.size(), " bytes before its end"));
}

void Ranks::broadcast(const char* what, std::span<const at::Tensor> tensors, int64_t from) {
  std::vector<std::vector<at::Tensor>> of_ranks(static_cast<size_t>(size()));
  of_ranks[static_cast<size_t>(from)].assign(tensors.begin(), tensors.end());
  broadcast(what, of_ranks);
}

bool Ranks::any(const char* what, bool mine) {
  const std::vector<std::string> all = all_gather(what, mine ? "1" : "");
  return std::ranges::any_of(all, [](const std::string& one) { return !one.empty(); });
}

// A failure as "exit code, kind, text", one a line; "": none.
void Ranks::agree(const char* what, const std::optional<Error>& failure) {
  const std::string mine = failure ? str(failure->exit_code(), "\n", failure->word(), "\n", failure->what()) : "";
  const std::vector<std::string> all = all_gather(what, mine);
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;
    const size_t kind = all[r].find('\n') + 1, text = all[r].find('\n', kind) + 1;
    std::string message = all[r].substr(text);
    if (r > 0) {  // a line for each thing that is wrong
      std::vector<std::string> lines;
      for (const std::string& line : split(message, '\n')) lines.push_back(str("rank ", r, ": ", line));
      message = join(lines, "\n");
    }
    throw AgreedError(error_kind_of(all[r].substr(kind, text - kind - 1)), message, std::atoi(all[r].c_str()));
  }
}

std::unique_ptr<Ranks> alone() { return std::make_unique<Alone>(); }

std::unique_ptr<Ranks> open_ranks() {
  if (!several_by_environment()) return alone();
  const int64_t size = number_of("WORLD_SIZE", 1, kMostRanks), rank = number_of("RANK", 0, size - 1);
  require_descriptors(size);
  const char* host = std::getenv("MASTER_ADDR");
  const int64_t port = number_of("MASTER_PORT", 1, 65535);
  std::unique_ptr<Ranks> ranks = make_gloo_ranks(rank, size, host != nullptr ? host : "127.0.0.1", port);
  share_cores(ranks->place().sharing_cores);
  return ranks;
}

int64_t rank_of_environment() {
  if (!several_by_environment() || std::getenv("RANK") == nullptr) return 0;
  try {
    return number_of("RANK", 0, kMostRanks);
  } catch (const Error&) {
    return 0;  // open_ranks() refuses it
  }
}

}  // namespace ucas
