#include "sharding/heartbeat.h"

#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/process/build_info.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "kernels/lm_head.h"
#include "sharding/agreement.h"

namespace ucas {

namespace {

constexpr const char *kHellos = "hellos", *kAnswer = "answer", *kAllDone = "done", *kNo = "no";
constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::seconds kAnswers{10};  // of a store that is there
constexpr std::chrono::seconds kSaidAfter{20};

using Clock = std::chrono::steady_clock;

// What a rank publishes of itself. `facts` are "name = value" and must be equal on all.
struct RankFacts {
  int64_t rank = 0, size = 1;
  std::string host, cores;  // that it runs on: only compared for equality
  std::string address;      // of this host, as rank 0 is reached from it
  std::vector<std::string> facts;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "localhost" || host == "::1"; }

// Numeric address of the interface by which `host` is reached; "" where it is not known.
std::string address_towards(const std::string& host, int64_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "";
  std::string address;
  for (const addrinfo* one = found; one != nullptr && address.empty(); one = one->ai_next) {
    const int fd = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (fd < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char text[NI_MAXHOST] = {};
    if (::connect(fd, one->ai_addr, one->ai_addrlen) == 0 &&  // sends nothing
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
      address = text;
    }
    ::close(fd);
  }
  ::freeaddrinfo(found);
  return address;
}

c10::intrusive_ptr<c10d::Store> open_store(const RankFacts& mine, const std::string& host, int64_t port,
                                           Clock::time_point until) {
  const bool agent = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const auto left = [&] { return std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()); };
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = mine.rank == 0 && !agent;
  options.waitWorkers = false;
  if (options.isServer && is_loopback(host)) {  // c10d's own socket listens on every interface
    const std::string handed = variable("UCAS_STORE_FD");
    options.masterListenFd = handed.empty() ? listen_on_loopback(port).fd : std::atoi(handed.c_str());
    ::unsetenv("UCAS_STORE_FD");  // of this process alone
  }
  const std::string attempt = agent ? str("attempt-", variable("TORCHELASTIC_RESTART_COUNT"), "/") : "";
  for (;;) {
    options.timeout = options.isServer ? left() : std::min<std::chrono::milliseconds>(left(), kSaidAfter);
    try {
      const auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
      store->setTimeout(left());
      return c10::make_intrusive<c10d::PrefixStore>(str("ucas/", variable("UCAS_STORE_KEY"), attempt), store);
    } catch (const std::exception& failure) {
      if (options.isServer || left() <= std::chrono::milliseconds(0)) throw;
      warn(str("rank ", mine.rank, ": no rank 0 at ", printable(host, 100), ":", port, " yet; is one started?"));
    }
  }
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

// For each rank a line with its place and the address it is to be reached at.
std::string places_of(const std::vector<RankFacts>& ranks) {
  // MASTER_ADDR may be a name of rank 0's host that only that host takes for 127.0.1.1: the others know better.
  std::string of_leader = "127.0.0.1";
  for (const RankFacts& rank : ranks) {
    if (rank.address.empty() || is_loopback(rank.address)) continue;
    of_leader = address_towards(rank.address, 1);
    break;
  }
  std::vector<std::string> lines;
  for (size_t r = 0; r < ranks.size(); ++r) {
    RankLocation place{.on_host = 0, .local = 0, .sharing_cores = 0};
    for (size_t other = 0; other < ranks.size(); ++other) {
      if (ranks[other].host != ranks[r].host) continue;
      ++place.on_host;
      place.local += other < r ? 1 : 0;
      place.sharing_cores += ranks[other].cores == ranks[r].cores ? 1 : 0;
    }
    const bool with_leader = r == 0 || is_loopback(ranks[r].address) || ranks[r].address.empty();
    lines.push_back(str(place.on_host, " ", place.local, " ", place.sharing_cores, " ",
                        with_leader ? of_leader : ranks[r].address));
  }
  return join(lines, "\n");
}

std::string missing_of(const std::set<int64_t>& there, int64_t size) {
  std::vector<int64_t> numbers;
  for (int64_t r = 0; r < size; ++r)
    if (!there.contains(r)) numbers.push_back(r);
  return name_ranks(numbers);
}

// Rank 0's answer to all.
std::string answer_of_leader(c10d::Store& store, const RankFacts& mine, Clock::time_point until) {
  std::vector<RankFacts> ranks(static_cast<size_t>(mine.size));
  std::set<int64_t> there = {0};
  ranks[0] = mine;
  const auto began = Clock::now();
  bool said = false;
  for (int64_t joined = 1; std::ssize(there) < mine.size;) {
    const std::string next = str(kHellos, "/", joined);
    if (!store.check({next})) {
      if (Clock::now() > until) throw std::runtime_error(str(missing_of(there, mine.size), " did not join"));
      if (!said && Clock::now() - began > kSaidAfter) {
        log(str("waiting for ", missing_of(there, mine.size), " of ", mine.size));
        said = true;
      }
      std::this_thread::sleep_for(kPause);
      continue;
    }
    ++joined;
    RankFacts one = facts_of(store.get_to_str(next));
    if (one.size != mine.size) {
      return str(kNo, "\nWORLD_SIZE is ", mine.size, " at rank 0, ", one.size, " at rank ", one.rank,
                 ": give all ranks the number of all");
    }
    if (one.rank <= 0 || one.rank >= mine.size || !there.insert(one.rank).second) {
      return str(kNo, "\ntwo processes have RANK=", one.rank, ": give each a number of its own");
    }
    ranks[static_cast<size_t>(one.rank)] = std::move(one);
  }
  const std::string refusal = refusal_of(ranks);
  return refusal.empty() ? places_of(ranks) : str(kNo, "\n", refusal);
}

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

Rendezvous join_ranks(int64_t rank, int64_t size, const std::string& host, int64_t port,
                      std::chrono::seconds patience) {
  const RankFacts mine{
      .rank = rank,
      .size = size,
      .host = name_of_host(),
      .cores = names_of_cores(),
      .address = address_towards(host, port),
      .facts = {str("ucas = ", version_and_commit()), str("torch = ", torch_version()), str("isa = ", kernels::isa())}};
  const auto until = Clock::now() + patience;
  const c10::intrusive_ptr<c10d::Store> store = open_store(mine, host, port, until);
  std::string answer;
  if (rank == 0) {
    answer = answer_of_leader(*store, mine, until);
    store->set(kAnswer, answer);
  } else {
    store->set(str(kHellos, "/", store->add(kHellos, 1)), text_of(mine));
    answer = store->get_to_str(kAnswer);
  }
  const std::vector<std::string> line = split(answer, '\n');
  if (line[0] == kNo) {
    store->add(kAllDone, 1);
    const auto most = Clock::now() + kAnswers;  // rank 0's store ends with it
    while (rank == 0 && store->add(kAllDone, 0) < size && Clock::now() < most) std::this_thread::sleep_for(kPause);
    throw AgreedError(ErrorKind::config, answer.substr(line[0].size() + 1));
  }
  const std::vector<std::string> word = split(line.at(static_cast<size_t>(rank)), ' ');
  const auto number = [&](size_t i) { return static_cast<int64_t>(std::atoll(word.at(i).c_str())); };
  Rendezvous met{store,
                 store->clone(),
                 word.at(3),
                 {.on_host = number(0), .local = number(1), .sharing_cores = std::max<int64_t>(1, number(2))}};
  met.beats->setTimeout(kAnswers);
  return met;
}

DeviceGroup::~DeviceGroup() {
  if (!group) return;
  if (std::uncaught_exceptions() == 0) {
    group->shutdown();
    return;
  }
  static_cast<void>(group.release());
  ::on_exit([](int status, void*) { ::fflush(nullptr), ::_exit(status); }, nullptr);
}

}  // namespace ucas
