// Ranks as processes of their own, forked from this one, over Gloo on this machine.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/process/machine.h"
#include "base/str.h"
#include "sharding/ranks.h"

namespace ucas::testing {

using Joining = std::function<std::unique_ptr<Ranks>(int64_t rank)>;

// Runs body(ranks) in `size` processes that join so; gives what each says is wrong, "" if nothing.
inline std::vector<std::string> in_processes(int64_t size, const Joining& joined,
                                             const std::function<std::string(Ranks&)>& body) {
  std::vector<std::pair<pid_t, int>> children;
  for (int64_t rank = 0; rank < size; ++rank) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      at::set_num_threads(1);         // a fork has none of the pool's
      std::signal(SIGPIPE, SIG_IGN);  // as main() does: another rank may be gone
      std::string said;
      try {
        const std::unique_ptr<Ranks> ranks = joined(rank);
        said = body(*ranks);
        ranks->barrier("the end");
      } catch (const std::exception& e) {
        said += str("threw: ", e.what());
      }
      if (write(ends[1], said.data(), said.size()) < 0) _exit(3);
      _exit(0);
    }
    close(ends[1]);
    children.emplace_back(child, ends[0]);
  }
  std::vector<std::string> all;
  for (const auto& [child, end] : children) {
    std::string said;
    char part[512];
    for (ssize_t n = 0; (n = read(end, part, sizeof part)) > 0;) said.append(part, static_cast<size_t>(n));
    close(end);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) said += str("ended by signal ", WTERMSIG(status));
    all.push_back(said);
  }
  return all;
}
// As `--ranks` starts them; `named`: the rank and the size that each process is told.
using Naming = std::function<std::pair<int64_t, int64_t>(int64_t number)>;
inline std::vector<std::string> in_processes(int64_t size, const Naming& named,
                                             const std::function<std::string(Ranks&)>& body) {
  const Listener store = listen_on_loopback(0);
  const Joining joined = [&](int64_t number) {
    const auto [rank, of] = named(number);
    if (number == 0) setenv("UCAS_STORE_FD", str(store.fd).c_str(), 1);
    if (number > 0) close(store.fd);
    return make_gloo_ranks(rank, of, "127.0.0.1", store.port);
  };
  std::vector<std::string> said = in_processes(size, joined, body);
  close(store.fd);
  return said;
}
inline std::vector<std::string> in_processes(int64_t size, const std::function<std::string(Ranks&)>& body) {
  return in_processes(size, Naming([size](int64_t number) { return std::pair(number, size); }), body);
}

}  // namespace ucas::testing
