#include "sharding/heartbeat.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kBeat{1};
constexpr std::chrono::seconds kHeard{3};  // for the others to read why rank 0, which has the store, ends
constexpr std::chrono::seconds kAsked{2};
constexpr std::chrono::seconds kOwnEnd{3};  // for a rank that meets the loss of another one in its next call
constexpr const char *kLost = "ucas/lost", *kReadBy = "ucas/lost-read", *kLeft = "done";

constexpr int64_t kSlow = 6;  // of the patience: others have waited so long for a rank when it is named

// How far a rank is.
struct Far {
  struct Call {
    int64_t number = 0;
    std::string what;
  };
  Call calls[kChannels];
  int64_t work = 0;  // micro-batches and responses

  std::string text() const {
    std::string text = str(work);
    for (const Call& call : calls) text += str("\t", call.number, "\t", printable(call.what, 60));
    return text;
  }
};
std::optional<Far> far_of(const std::string& text) {
  const std::vector<std::string> part = split(text, '\t');
  if (std::ssize(part) != 1 + 2 * kChannels) return std::nullopt;
  Far far{.work = std::atoll(part[0].c_str())};
  for (int64_t c = 0; c < kChannels; ++c) far.calls[c] = {std::atoll(part[1 + 2 * c].c_str()), part[2 + 2 * c]};
  return far;
}
std::string behind_number(const std::string& beat) {
  return beat.substr(std::min(beat.find('\t'), beat.size() - 1) + 1);
}
std::string in_words(const Far::Call& call) {
  return call.number == 0 ? "before its first call" : str("last in call ", call.number, ", ", call.what);
}

std::string beat_of(int64_t rank) { return str("ucas/beat/", rank); }

}  // namespace

std::chrono::seconds heartbeat_patience() {
  const char* text = std::getenv("UCAS_HEARTBEAT");
  return std::chrono::seconds(text == nullptr ? 10 : std::clamp(std::atoi(text), 0, 86400));
}

class Heartbeat::Beating : public std::enable_shared_from_this<Beating> {
 public:
  Beating(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t size, std::chrono::seconds patience)
      : store_(std::move(store)), rank_(rank), size_(size), patience_(patience) {
    for (int64_t r = 0; r < size; ++r) others_.push_back({.said = "", .at = Clock::now()});
  }

  static void start(const std::shared_ptr<Beating>& self) {
    std::thread([self] { self->beat(); }).detach();
    if (self->rank_ != 0) std::thread([self] { self->watch(); }).detach();
  }

  // Waits for the thread that has the store, unless that is silent; rank 0 at a `calm` end for the others, too, which
  // would miss its store.
  void stop(bool calm) {
    std::unique_lock lock(guard_);
    stopping_ = true;
    lingers_ = calm && rank_ == 0 && lost_.empty() && own_failure_.empty();
    wake_.notify_all();
    const std::chrono::seconds most = lingers_ ? patience_ + kAsked : lost_.empty() ? kAsked : kHeard + kBeat;
    wake_.wait_for(lock, most, [this] { return ended_; });
  }

  void tell(const std::string& text) {
    std::unique_lock lock(guard_);
    own_failure_ = str("rank ", rank_, ": ", text);
    wake_.notify_all();
    wake_.wait_for(lock, kHeard, [this] { return told_ || ended_; });
  }

  std::string lost() {
    std::unique_lock lock(guard_);
    ask(lock);
    return lost_;
  }

  std::string missing(int64_t channel) {
    std::unique_lock lock(guard_);
    ask(lock);
    return missing_[channel];
  }

  void begins(int64_t channel, int64_t number, const char* what) {
    const std::lock_guard lock(guard_);
    far_.calls[channel] = {number, what};
  }

  void works() {
    const std::lock_guard lock(guard_);
    ++far_.work;
  }

 private:
  struct Other {
    std::string said;
    Clock::time_point at;                    // when that was new
    std::string far = {};                    // of it
    Clock::time_point moved = Clock::now();  // when that was new
  };
  // A call that not all have come to.
  struct Waiting {
    int64_t number = 0;
    Clock::time_point since;
    bool named = false;
  };

  void ask(std::unique_lock<std::mutex>& lock) {
    const int64_t asked = ++asked_;
    wake_.notify_all();
    wake_.wait_for(lock, kAsked, [&] { return answered_ >= asked || ended_; });
  }

  void beat() {
    try {
      for (;;) {
        std::string failure;
        int64_t asked = 0;
        bool stopping = false, lingers = false;
        {
          std::unique_lock lock(guard_);
          wake_.wait_for(lock, kBeat,
                         [&] { return stopping_ || asked_ > answered_ || (!own_failure_.empty() && !told_); });
          stopping = stopping_;
          lingers = lingers_;
          asked = asked_;
          if (!told_) failure = own_failure_;
        }
        if (!failure.empty()) {
          tell_others(failure);
        } else {
          round(stopping);
          if (asked > answered_) look_who_is_missing();
        }
        if (lingers) wait_for_others();
        const std::lock_guard lock(guard_);
        answered_ = asked;
        told_ = told_ || !failure.empty();
        seen_ = Clock::now();
        wake_.notify_all();
        if (stopping) break;
      }
      // What rank 0 knows the others must be able to read, all but the one that is lost.
      if (rank_ == 0 && knows_of_another()) wait_for_readers(size_ - 2);
    } catch (const std::exception&) {  // rank 0, whose store it is, has ended: the next call says so
    }
    const std::lock_guard lock(guard_);
    ended_ = true;
    wake_.notify_all();
  }

  void round(bool stopping) {
    store_->set(beat_of(rank_), stopping ? kLeft : str(++count_, "\t", own_far().text()));
    std::string lost;
    if (store_->check({kLost})) {
      lost = store_->get_to_str(kLost);
    } else if (rank_ == 0 && !stopping && patience_.count() > 0) {
      lost = silent_one();
      if (!lost.empty()) store_->set(kLost, lost);
      if (lost.empty()) name_who_is_waited_for();
    }
    if (!lost.empty()) take(lost, stopping);
  }

  // The first rank that has said nothing new for so long, in words. This process may have stood still itself.
  std::string silent_one() {
    const Clock::time_point now = Clock::now();
    const bool late = now - looked_ > 3 * kBeat;
    looked_ = now;
    for (int64_t r = 1; r < size_; ++r) {
      Other& other = others_[static_cast<size_t>(r)];
      const std::string said = store_->check({beat_of(r)}) ? store_->get_to_str(beat_of(r)) : "";
      if (late || said != other.said || said == kLeft) {
        other.said = said;
        other.at = now;
        const std::string far = behind_number(said);
        if (far != other.far) other.far = far, other.moved = now;
      } else if (now - other.at >= patience_) {
        return str("rank ", r, ": nothing was heard of it for ", patience_.count(), " s");
      }
    }
    return "";
  }

  Far own_far() {
    const std::lock_guard lock(guard_);
    return far_;
  }

  // Rank 0, of what it has heard: once for a call, in its log.
  void name_who_is_waited_for() {
    const Clock::time_point now = Clock::now();
    others_[0].far = own_far().text();
    for (int64_t c = 0; c < kChannels; ++c) {
      Far::Call most;
      std::vector<std::pair<int64_t, Far>> fars;
      for (int64_t r = 0; r < size_; ++r) {
        const std::optional<Far> far = far_of(others_[static_cast<size_t>(r)].far);
        if (!far) continue;
        fars.emplace_back(r, *far);
        if (far->calls[c].number > most.number) most = far->calls[c];
      }
      std::vector<std::string> late;
      for (const auto& [r, far] : fars) {
        if (far.calls[c].number == most.number) continue;
        const auto idle = std::chrono::duration_cast<std::chrono::seconds>(now - others_[static_cast<size_t>(r)].moved);
        late.push_back(str("rank ", r, " of ", size_, " (", in_words(far.calls[c]), "; ", far.work,
                           " micro-batches and responses done",
                           r == 0 ? "" : str(", nothing new for ", idle.count(), " s"), ")"));
      }
      Waiting& waiting = waiting_[c];
      if (late.empty() || most.number != waiting.number) waiting = {late.empty() ? 0 : most.number, now};
      if (late.empty() || waiting.named || now - waiting.since < kSlow * patience_) continue;
      waiting.named = true;
      log(str("in call ", most.number, ", ", most.what, ", the others have waited for ", (kSlow * patience_).count(),
              " s for ", join(late, ", ")));
    }
  }

  void look_who_is_missing() {
    const Far own = own_far();
    std::string missing[kChannels];
    for (int64_t r = 0; r < size_; ++r) {
      const std::string said = r != rank_ && store_->check({beat_of(r)}) ? store_->get_to_str(beat_of(r)) : "";
      const std::optional<Far> far = far_of(behind_number(said));
      for (int64_t c = 0; c < kChannels && far; ++c) {
        if (far->calls[c].number >= own.calls[c].number) continue;
        missing[c] += str(missing[c].empty() ? "" : "; ", "rank ", r, ", ", in_words(far->calls[c]));
      }
    }
    const std::lock_guard lock(guard_);
    for (int64_t c = 0; c < kChannels; ++c) missing_[c] = missing[c];
  }

  void wait_for_others() {
    const auto until = Clock::now() + patience_;
    for (int64_t r = 1; r < size_; ++r) {
      const auto left = [&] { return store_->check({beat_of(r)}) && store_->get_to_str(beat_of(r)) == kLeft; };
      while (!left() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void tell_others(const std::string& failure) {
    if (!store_->check({kLost})) store_->set(kLost, failure);
    if (rank_ == 0) wait_for_readers(size_ - 1);
  }

  bool knows_of_another() {
    const std::lock_guard lock(guard_);
    return own_failure_.empty() && !lost_.empty();
  }

  void wait_for_readers(int64_t count) {
    const auto until = Clock::now() + kHeard;
    while (store_->add(kReadBy, 0) < count && Clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void take(const std::string& lost, bool stopping) {
    {
      const std::lock_guard lock(guard_);
      if (!lost_.empty()) return;
      lost_ = lost;
      if (!own_failure_.empty()) return;
    }
    if (rank_ != 0) store_->add(kReadBy, 1);
    if (stopping) return;
    std::thread([self = shared_from_this()] { self->end_process(); }).detach();
  }

  // Unless the next call of this rank ends it first.
  void end_process() {
    std::unique_lock lock(guard_);
    if (wake_.wait_for(lock, kOwnEnd, [this] { return stopping_ || !own_failure_.empty(); })) return;
    end_with(lost_);
  }

  // Whether rank 0's store answers.
  void watch() {
    std::unique_lock lock(guard_);
    Clock::time_point before = Clock::now();
    for (;;) {
      if (wake_.wait_for(lock, kBeat, [this] { return stopping_ || ended_; })) return end_without_store(lock);
      const Clock::time_point now = Clock::now();
      if (now - before > 3 * kBeat) seen_ = now;  // this process stood still
      before = now;
      if (patience_.count() > 0 && now - seen_ > patience_ + kBeat) {
        end_with(str("rank 0: nothing was heard of it for ", patience_.count(), " s"));
      }
    }
  }

  // Rank 0 has ended. The call that this rank is in may wait for yet another one.
  void end_without_store(std::unique_lock<std::mutex>& lock) {
    if (stopping_ || patience_.count() == 0) return;
    if (wake_.wait_for(lock, patience_, [this] { return stopping_ || !own_failure_.empty(); })) return;
    end_with(lost_.empty() ? "rank 0: its store is gone" : lost_);
  }

  [[noreturn]] void end_with(const std::string& lost) const {
    const std::string line = str("ucas: error[", word_of(ErrorKind::ranks), "]: rank ", rank_, " of ", size_,
                                 ": another rank is lost: ", lost, "\n");
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) ::_exit(kNumeric);
    ::_exit(kNumeric);
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  const int64_t rank_, size_;
  const std::chrono::seconds patience_;
  int64_t count_ = 0;
  std::vector<Other> others_;                // of rank 0
  Clock::time_point looked_ = Clock::now();  // of rank 0
  Waiting waiting_[kChannels];               // of rank 0
  std::mutex guard_;                         // of what follows
  std::condition_variable wake_;
  bool stopping_ = false, lingers_ = false, ended_ = false, told_ = false;
  int64_t asked_ = 0, answered_ = 0;
  std::string own_failure_, lost_, missing_[kChannels];
  Far far_;
  Clock::time_point seen_ = Clock::now();  // when the store answered
};

Heartbeat::Heartbeat(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t size, std::chrono::seconds patience)
    : beating_(std::make_shared<Beating>(std::move(store), rank, size, patience)) {
  Beating::start(beating_);
}

Heartbeat::~Heartbeat() { beating_->stop(std::uncaught_exceptions() == 0); }

void Heartbeat::tell_failure(const std::string& text) { beating_->tell(text); }

void Heartbeat::begins(int64_t channel, int64_t number, const char* what) { beating_->begins(channel, number, what); }

void Heartbeat::works() { beating_->works(); }

std::string Heartbeat::missing(int64_t channel) { return beating_->missing(channel); }

std::string Heartbeat::lost() { return beating_->lost(); }

}  // namespace ucas
