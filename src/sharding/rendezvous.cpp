#include "sharding/rendezvous.h"

#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/process/build_info.h"
#include "base/process/commit.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "kernels/lm_head.h"
#include "sharding/agreement.h"

namespace ucas {

namespace {

constexpr const char *kWhere = "ucas/rank-0", *kNonce = "ucas/nonce", *kHellos = "ucas/hellos",
                     *kAnswer = "ucas/answer", *kHeard = "ucas/heard";
constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::seconds kAnswers{10};  // of a store that is there
constexpr std::chrono::seconds kSaidAfter{20};
constexpr const char *kYes = "yes", *kNo = "no";

using Clock = std::chrono::steady_clock;
using Address = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Address resolved(const std::string& host, int64_t port, int kind) {
  addrinfo hints{};
  hints.ai_socktype = kind;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

class Socket {
 public:
  explicit Socket(const addrinfo& of)
      : fd_(::socket(of.ai_family, of.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, of.ai_protocol)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Whether something listens there: a store that is gone would be asked for again and again, with a warning each time.
bool listens(const std::string& host, int64_t port) {
  const Address found = resolved(host, port, SOCK_STREAM);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const Socket socket(*one);
    if (socket.fd() < 0) continue;
    if (::connect(socket.fd(), one->ai_addr, one->ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS) continue;
    pollfd waits{socket.fd(), POLLOUT, 0};
    int failed = 0;
    socklen_t size = sizeof failed;
    if (::poll(&waits, 1, 3000) == 1 && ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &failed, &size) == 0 &&
        failed == 0) {
      return true;
    }
  }
  return false;
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

std::string random_name() {
  std::random_device random;
  std::string name;
  for (int i = 0; i < 4; ++i) name += str(random(), "-");
  return name;
}

c10::intrusive_ptr<c10d::TCPStore> open_store(const std::string& host, int64_t port, bool serves,
                                              std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = serves;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

// As lines; what a line may not hold is left out.
std::string text_of(const RankFacts& f) {
  std::string text =
      str(f.rank, "\n", f.size, "\n", printable(f.host), "\n", printable(f.cores, 4000), "\n", f.address);
  for (const std::string& fact : f.facts) text += "\n" + printable(fact, 400);
  return text;
}
RankFacts facts_of(const std::string& text) {
  const std::vector<std::string> line = split(text, '\n');
  if (line.size() < 5) throw std::runtime_error("another program answers");
  return {.rank = std::atoll(line[0].c_str()),
          .size = std::atoll(line[1].c_str()),
          .host = line[2],
          .cores = line[3],
          .address = line[4],
          .facts = {line.begin() + 5, line.end()}};
}

// What is wrong with these ranks, "" if nothing.
std::string refusal_of(const std::vector<RankFacts>& ranks) {
  std::vector<std::vector<std::string>> facts;
  for (const RankFacts& rank : ranks) facts.push_back(rank.facts);
  const std::vector<std::string> differences = differences_of(facts);
  if (differences.empty()) return "";
  return str("the ranks are not the same: ", join(differences, "; "),
             "; start one build of ucas on all hosts (UCAS_ISA=avx2 gives hosts of different CPUs the same kernels)");
}

// yes, and for each rank a line with its place and the address it is to be reached at.
std::string places_of(const std::vector<RankFacts>& ranks, const std::string& of_leader) {
  std::string text = kYes;
  for (size_t r = 0; r < ranks.size(); ++r) {
    RankLocation place{.on_host = 0, .local = 0, .sharing_cores = 0};
    for (size_t other = 0; other < ranks.size(); ++other) {
      if (ranks[other].host != ranks[r].host) continue;
      ++place.on_host;
      place.local += other < r ? 1 : 0;
      place.sharing_cores += ranks[other].cores == ranks[r].cores ? 1 : 0;
    }
    const bool beside_leader = r == 0 || is_loopback(ranks[r].address) || ranks[r].address.empty();
    text += str("\n", place.on_host, " ", place.local, " ", place.sharing_cores, " ",
                beside_leader ? of_leader : ranks[r].address);
  }
  return text;
}

Rendezvous take_place(c10::intrusive_ptr<c10d::Store> store, const std::string& answer, int64_t rank) {
  const std::vector<std::string> line = split(answer, '\n');
  if (line[0] == kNo) throw AgreedError(ErrorKind::config, answer.substr(line[0].size() + 1));
  const std::vector<std::string> word = split(line.at(static_cast<size_t>(rank) + 1), ' ');
  const auto number = [&](size_t i) { return static_cast<int64_t>(std::atoll(word.at(i).c_str())); };
  return {std::move(store),
          {},
          word.at(3),
          {.on_host = number(0), .local = number(1), .sharing_cores = std::max<int64_t>(1, number(2))}};
}

class Leader {
 public:
  Leader(RankFacts mine, std::chrono::seconds patience) : until_(Clock::now() + patience), ranks_{std::move(mine)} {
    const auto store = open_store("127.0.0.1", 0, true, patience);
    port_ = store->getPort();
    store_ = store;
    ranks_.resize(static_cast<size_t>(ranks_[0].size));
    there_.insert(0);
    store_->set(kNonce, nonce_);
  }

  // Under one key of the store that all know.
  void publish(c10d::Store& given, const std::string& host, int64_t port) const {
    const std::string address = address_towards(host, port);
    given.set(kWhere, str(nonce_, " ", port_, " ", is_loopback(address) ? "" : address));
  }

  Rendezvous join() {
    std::string refusal;
    const auto began = Clock::now();
    bool said = false;
    while (refusal.empty() && std::ssize(there_) < std::ssize(ranks_)) {
      const std::string next = str(kHellos, "/", heard_ + 1);
      if (!store_->check({next})) {
        if (Clock::now() > until_) throw std::runtime_error(str(missing(), " did not join"));
        if (!said && Clock::now() - began > kSaidAfter) log(str("waiting for ", missing(), " of ", ranks_.size()));
        said = said || Clock::now() - began > kSaidAfter;
        std::this_thread::sleep_for(kPause);
        continue;
      }
      ++heard_;
      refusal = take(facts_of(store_->get_to_str(next)));
    }
    if (refusal.empty()) refusal = refusal_of(ranks_);
    const std::string answer = refusal.empty() ? places_of(ranks_, own_address()) : str(kNo, "\n", refusal);
    store_->set(kAnswer, answer);
    if (!refusal.empty()) wait_until_heard();
    Rendezvous met = take_place(store_, answer, 0);
    met.beats = open_store("127.0.0.1", port_, false, kAnswers);
    return met;
  }

 private:
  std::string take(RankFacts one) {
    const auto size = std::ssize(ranks_);
    if (one.size != size) {
      return str("WORLD_SIZE is ", size, " at rank 0, ", one.size, " at rank ", one.rank,
                 ": give all ranks the number of all");
    }
    if (one.rank <= 0 || one.rank >= size || !there_.insert(one.rank).second) {
      return str("two processes have RANK=", one.rank, ": give each a number of its own");
    }
    const auto at = static_cast<size_t>(one.rank);
    ranks_[at] = std::move(one);
    return "";
  }
  std::string missing() const {
    std::vector<int64_t> numbers;
    for (int64_t r = 0; r < std::ssize(ranks_); ++r)
      if (!there_.contains(r)) numbers.push_back(r);
    return name_ranks(numbers);
  }
  // By which the others are reached: MASTER_ADDR may be a name of this host's that only this host takes for 127.0.1.1.
  std::string own_address() const {
    for (const RankFacts& rank : ranks_) {
      if (!rank.address.empty() && !is_loopback(rank.address)) return address_towards(rank.address, 1);
    }
    return "127.0.0.1";
  }
  // The store ends with this process.
  void wait_until_heard() const {
    const auto until = Clock::now() + kAnswers;
    while (store_->add(kHeard, 0) < std::ssize(ranks_) - 1 && Clock::now() < until) std::this_thread::sleep_for(kPause);
  }

  const Clock::time_point until_;
  const std::string nonce_ = random_name();
  int64_t port_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<RankFacts> ranks_;
  std::set<int64_t> there_;
  int64_t heard_ = 0;
};

class Follower {
 public:
  Follower(RankFacts mine, std::string host, std::chrono::seconds patience)
      : mine_(std::move(mine)), host_(std::move(host)), patience_(patience), until_(Clock::now() + patience) {}

  // What an earlier attempt left does not answer, has no owner any more, or has its ranks.
  Rendezvous join(c10d::Store& given) {
    std::string wrong = "rank 0 does not answer";
    while (Clock::now() < until_) {
      const std::vector<std::string> where = split(given.get_to_str(kWhere), ' ');
      if (where.size() == 3) {
        try {
          if (auto joined = joined_at(where[2].empty() ? host_ : where[2], std::atoll(where[1].c_str()), where[0])) {
            return std::move(*joined);
          }
        } catch (const Error&) {
          throw;
        } catch (const std::exception& failure) {
          wrong = failure.what();
        }
      }
      std::this_thread::sleep_for(5 * kPause);
    }
    throw std::runtime_error(wrong);
  }

 private:
  std::optional<Rendezvous> joined_at(const std::string& host, int64_t port, const std::string& nonce) {
    if (!listens(host, port)) return std::nullopt;
    const c10::intrusive_ptr<c10d::Store> store = open_store(host, port, false, kAnswers);
    if (store->get_to_str(kNonce) != nonce || store->check({kAnswer})) return std::nullopt;
    mine_.address = address_towards(host, port);
    store->set(str(kHellos, "/", store->add(kHellos, 1)), text_of(mine_));
    store->setTimeout(patience_);
    const std::string answer = store->get_to_str(kAnswer);
    store->add(kHeard, 1);
    Rendezvous met = take_place(store, answer, mine_.rank);
    met.beats = open_store(host, port, false, kAnswers);
    return met;
  }

  RankFacts mine_;
  const std::string host_;
  const std::chrono::seconds patience_;
  const Clock::time_point until_;
};

std::string name_of_host() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "?";
  std::ifstream file("/proc/sys/kernel/random/boot_id");  // two hosts may have one name
  std::string boot;
  file >> boot;
  return str(name, " ", boot);
}

std::string names_of_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return "";
  std::string cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores += str(core, " ");
  return cores;
}

}  // namespace

std::string address_towards(const std::string& host, int64_t port) {
  const Address found = resolved(host, port, SOCK_DGRAM);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const Socket socket(*one);
    if (socket.fd() < 0 || ::connect(socket.fd(), one->ai_addr, one->ai_addrlen) != 0) continue;  // sends nothing
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char text[NI_MAXHOST] = {};
    if (::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
      return text;
    }
  }
  return "";
}

RankFacts facts_here(int64_t rank, int64_t size) {
  const std::string program = version_and_commit();
  return {.rank = rank,
          .size = size,
          .host = name_of_host(),
          .cores = names_of_cores(),
          .address = "",
          .facts = {str("ucas = ", program), str("torch = ", torch_version()), str("isa = ", kernels::isa())}};
}

Rendezvous join_ranks(RankFacts mine, const std::string& host, int64_t port, std::chrono::seconds patience) {
  // torchrun's agent serves the store already, under its own process.
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  const bool leads = mine.rank == 0, served = agent != nullptr && std::strcmp(agent, "True") == 0;
  const auto given = open_store(host, port, leads && !served, patience);
  if (!leads) return Follower(std::move(mine), host, patience).join(*given);
  Leader leader(std::move(mine), patience);
  leader.publish(*given, host, port);
  return leader.join();
}

}  // namespace ucas
