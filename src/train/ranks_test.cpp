// Ranks as processes of their own, over Gloo on this machine.
#include "train/ranks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"

namespace ucas {
namespace {

int64_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(socket);
  return ntohs(address.sin_port);
}

// Runs body(ranks) in `size` processes; gives what each says is wrong, "" if nothing.
std::vector<std::string> in_processes(int64_t size, const std::function<std::string(Ranks&)>& body) {
  const int64_t port = free_port();
  std::vector<std::pair<pid_t, int>> children;
  for (int64_t rank = 0; rank < size; ++rank) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      std::string said;
      try {
        const std::unique_ptr<Ranks> ranks = make_gloo_ranks(rank, size, "127.0.0.1", port);
        said = body(*ranks);
        ranks->wait_for_all();
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
    all.push_back(said);
  }
  return all;
}

TEST(ranks, gather_add_up_and_broadcast_reach_every_rank) {
  for (int64_t size : {2, 3}) {
    const auto said = in_processes(size, [&](Ranks& ranks) -> std::string {
      const auto texts = ranks.gather(std::string(static_cast<size_t>(5 * ranks.rank()), 'x') + '\0');
      for (int64_t r = 0; r < size; ++r) {
        if (texts[static_cast<size_t>(r)] != std::string(static_cast<size_t>(5 * r), 'x') + '\0') return "gather";
      }
      const at::Tensor sum = at::full({1000}, static_cast<double>(ranks.rank() + 1), at::kFloat);
      ranks.add_up({{sum}});
      if (!sum.eq(size * (size + 1) / 2).all().item<bool>()) return "add_up";
      const at::Tensor given = at::full({7}, static_cast<double>(ranks.rank()), at::kFloat);
      ranks.broadcast({{given}}, size - 1);
      if (!given.eq(size - 1).all().item<bool>()) return "broadcast";
      if (ranks.any(false) || !ranks.any(ranks.rank() == 1)) return "any";
      const RankShare share = share_of(ranks, 10);
      return share.first == 10 * ranks.rank() / size ? "" : "share";
    });
    EXPECT_EQ(said, std::vector<std::string>(static_cast<size_t>(size)));
  }
}

TEST(ranks, in_turn_hands_on_what_each_leaves) {
  const auto said = in_processes(3, [](Ranks& ranks) -> std::string {
    at::Tensor sum = at::full({50}, ranks.leads() ? 1.0 : 99.0, at::kFloat);
    std::string order = ranks.leads() ? "" : "?";
    ranks.in_turn({{sum}}, order, [&] {
      sum.mul_(2).add_(static_cast<double>(ranks.rank()));
      order += std::to_string(ranks.rank());
    });
    // ((1 * 2 + 0) * 2 + 1) * 2 + 2
    return sum.eq(12).all().item<bool>() && order == "012" ? "" : str(order, " ", sum[0].item<float>());
  });
  EXPECT_EQ(said, std::vector<std::string>(3));
}

TEST(ranks, one_that_ends_is_told_of_by_the_others) {
  const auto said = in_processes(2, [](Ranks& ranks) -> std::string {
    ranks.wait_for_all();
    if (ranks.rank() == 1) _exit(0);
    ranks.wait_for_all();
    return "went on";
  });
  EXPECT_NE(said[0].find("rank 0 of 2: exchanging results failed"), std::string::npos) << said[0];
}

TEST(ranks, alone_nothing_is_exchanged) {
  const std::unique_ptr<Ranks> one = alone();
  EXPECT_TRUE(one->alone() && one->leads());
  EXPECT_EQ(one->gather("x"), std::vector<std::string>{"x"});
  EXPECT_TRUE(one->any(true));
  EXPECT_FALSE(one->any(false));
}

}  // namespace
}  // namespace ucas
