#include "rollout/work_stealing.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/str.h"
#include "base/terminal/log.h"
#include "rollout/sampled_bytes.h"

namespace ucas {

namespace {

// A decode step over a few costs hardly more than one over half of them: weights are read once for all.
constexpr int64_t kLeast = 4;
// Known tokens are computed again side by side, which takes a fraction of sampling as many one after another.
constexpr int64_t kKnownPerLeft = 4;
constexpr double kBetweenLooks = 0.02, kPatience = 5;  // seconds; a decode step takes less
constexpr std::chrono::milliseconds kPause{5};
constexpr size_t kMostBytes = 4'000'000;  // of an answer: what a store carries in one piece, with a margin
constexpr int64_t kGone = -1;
const std::string kNothing = "-";

}  // namespace

WorkStealing::WorkStealing(Ranks& ranks, const std::string& name)
    : ranks_(ranks), name_(name), asked_in_vain_(static_cast<size_t>(ranks.size())) {
  names_ = {count_of(ranks.rank()), asked(ranks.rank())};
}

std::string WorkStealing::count_of(int64_t rank) const { return str(name_, "/under-way/", rank); }
std::string WorkStealing::asked(int64_t rank) const { return str(name_, "/asked/", rank); }
std::string WorkStealing::answer(int64_t rank, int64_t number) const {
  return str(name_, "/answer/", rank, "/", number);
}

void WorkStealing::say(int64_t under_way) {
  const int64_t now = under_way < 0 ? kGone : under_way + 1;
  if (now != said_) ranks_.add_to_counter(count_of(ranks_.rank()), now - said_);
  said_ = now;
}

bool WorkStealing::is_asked() { return ranks_.add_to_counter(asked(ranks_.rank()), 0) > answered_; }

// Whether who asked is still there to take them.
bool WorkStealing::give(const std::vector<Sampled>& responses) {
  const std::string name = answer(ranks_.rank(), answered_++), bytes = kNothing + sampled_bytes(responses);
  const bool theirs = ranks_.first_writer_wins(name, bytes) == bytes;
  ranks_.add_to_counter(name + "/said", 1);
  return theirs;
}

std::vector<const Sampled*> WorkStealing::given_of(std::vector<const Sampled*> under_way,
                                                   const std::function<Cost(const Sampled&)>& cost_of,
                                                   const std::function<int64_t(int64_t)>& number_of) {
  const double now = now_seconds();
  if (now - looked_ < kBetweenLooks) return {};
  looked_ = now;
  const auto all = std::ssize(under_way);
  say(all);
  if (!is_asked()) return {};
  std::erase_if(under_way, [&](const Sampled* s) {
    const Cost cost = cost_of(*s);
    return kKnownPerLeft * cost.left < cost.known;
  });
  std::ranges::stable_sort(under_way, {}, [](const Sampled* s) { return s->token.size(); });
  if (all < kLeast) under_way.clear();
  std::vector<const Sampled*> given;
  std::vector<Sampled> copies;
  size_t bytes = 0;
  for (const Sampled* s : under_way) {
    bytes += sampled_bytes({*s}).size();
    if (2 * std::ssize(given) + 2 > all || bytes > kMostBytes) break;
    given.push_back(s);
    copies.push_back(*s);
    copies.back().job = number_of(s->job);
  }
  if (!give(copies)) given.clear();
  say(all - std::ssize(given));
  return given;
}

// Below kLeast no rank is worth asking; -1: none will be, 'size' of ranks: one has not yet reported.
int64_t WorkStealing::who_has_most() {
  int64_t most = kLeast - 1, who = -1;
  for (int64_t rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank() || asked_in_vain_[static_cast<size_t>(rank)] != 0) continue;
    const int64_t said = ranks_.add_to_counter(count_of(rank), 0);
    if (said == 0 && who < 0) who = ranks_.size();
    if (said - 1 <= most) continue;
    most = said - 1;
    who = rank;
  }
  return who;
}

// One rank withdraws what the other has not answered: first writer wins.
std::vector<Sampled> WorkStealing::ask(int64_t rank, const std::function<bool()>& should_stop) {
  const std::string name = answer(rank, ranks_.next_in_counter(asked(rank)));
  names_.push_back(name);
  names_.push_back(name + "/said");
  const double until = now_seconds() + kPatience;
  while (ranks_.add_to_counter(name + "/said", 0) == 0) {
    const bool gone = ranks_.add_to_counter(count_of(rank), 0) < 0;
    if (gone || now_seconds() > until || (should_stop && should_stop())) break;
    if (is_asked()) give({});  // they saw what this one had some time ago
    std::this_thread::sleep_for(kPause);
  }
  const std::string bytes = ranks_.first_writer_wins(name, kNothing);
  return read_sampled(std::string_view(bytes).substr(kNothing.size()), "what a rank gives");
}

std::vector<Sampled> WorkStealing::taken(const std::function<bool()>& should_stop) {
  say(0);
  const double until = now_seconds() + kPatience;
  while (!(should_stop && should_stop())) {
    if (is_asked()) give({});
    const int64_t rank = who_has_most();
    if (rank < 0 || now_seconds() > until) break;
    if (rank == ranks_.size()) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    std::vector<Sampled> responses = ask(rank, should_stop);
    if (responses.empty()) asked_in_vain_[static_cast<size_t>(rank)] = 1;
    if (responses.empty()) continue;
    taken_ += std::ssize(responses);
    say(std::ssize(responses));
    return responses;
  }
  return {};
}

void WorkStealing::leave() {
  while (is_asked()) give({});
  say(-1);
}

void WorkStealing::forget() { ranks_.delete_keys(names_); }

}  // namespace ucas
