// Work stealing: an idle rank takes over half of the busiest rank's unfinished responses, and continues them by their
// token ids. A response depends on its prompt and key alone, so on CPUs its bits do not depend on the rank; when one
// moves depends on timing, what comes out does not. Fed by rollout/shared_rollout, one for each of its runs, on every
// rank; carried by Ranks::add_to_counter and first_writer_wins. No rank waits for one that is gone: a request without
// an answer for some seconds is withdrawn, and the first writer wins.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rollout/rollout.h"
#include "sharding/ranks.h"

namespace ucas {

class WorkStealing {
 public:
  // `name`: the same on each rank, another one for each run.
  WorkStealing(Ranks& ranks, const std::string& name);

  // On a rank that samples. Which of these may go: `left` says how many tokens a response may still get, `known`
  // how many were to be computed again elsewhere. Returns the stolen ones; most calls only look at the clock.
  struct Cost {
    int64_t left, known;
  };
  std::vector<const Sampled*> given_of(std::vector<const Sampled*> under_way,
                                       const std::function<Cost(const Sampled&)>& cost_of,
                                       const std::function<int64_t(int64_t)>& number_of);
  // Where it has nothing left: what another one gives, with the numbers of jobs that number_of gave. None: it is over.
  std::vector<Sampled> taken(const std::function<bool()>& should_stop);
  int64_t taken_so_far() const { return taken_; }
  // This rank takes and gives no more; to be said before it waits for all.
  void leave();
  // After all have left.
  void forget();

 private:
  std::string count_of(int64_t rank) const;
  std::string asked(int64_t rank) const;
  std::string answer(int64_t rank, int64_t number) const;
  void say(int64_t under_way);
  int64_t who_has_most();
  std::vector<Sampled> ask(int64_t rank, const std::function<bool()>& should_stop);
  bool give(const std::vector<Sampled>& responses);
  bool is_asked();

  Ranks& ranks_;
  const std::string name_;
  int64_t said_ = 0;      // what the others see of this rank: active sequences + 1, 0 before it began, then below 0
  int64_t answered_ = 0;  // of those who asked
  int64_t taken_ = 0;
  double looked_ = 0;
  std::vector<char> asked_in_vain_;  // by rank
  std::vector<std::string> names_;   // to forget
};

}  // namespace ucas
