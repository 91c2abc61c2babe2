#include "sharding/heartbeat.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;
constexpr seconds kBeat{1}, kAsked{2};
constexpr seconds kHeard{3};   // for the others to read why rank 0, which may have the store, ends
constexpr seconds kOwnEnd{3};  // for a rank that meets the loss of another one in its next call
constexpr int64_t kSlow = 6;   // of the patience: others have waited so long for a rank when it is named
const std::string kAnother = "another rank is lost: ";
constexpr const char *kLost = "lost", *kReadBy = "lost-read", *kLeft = "done";

}  // namespace

seconds heartbeat_patience() {
  const char* text = std::getenv("UCAS_HEARTBEAT");
  return seconds(text == nullptr ? 10 : std::clamp(std::atoi(text), 0, 86400));
}

class Heartbeat::Beating : public std::enable_shared_from_this<Beating> {
 public:
  // The collective that a rank is in, as its heartbeats report it.
  struct Place {
    int64_t call = 0;
    std::string what;

    static Place of(const std::string& beat) {  // its number, call, name
      const std::vector<std::string> part = split(beat, '\t');
      return part.size() == 3 ? Place{std::atoll(part[1].c_str()), part[2]} : Place{};
    }
    std::string words() const { return call == 0 ? "before its first call" : str("last in call ", call, ", ", what); }
  };

  Beating(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t size, seconds patience)
      : store_(std::move(store)), rank_(rank), size_(size), patience_(patience), others_(static_cast<size_t>(size)) {}

  static void start(const std::shared_ptr<Beating>& self) {
    std::thread([self] { self->beat(); }).detach();
    if (self->rank_ != 0) std::thread([self] { self->watch(); }).detach();
  }

  // Joins the thread that uses the store, unless the store does not answer; rank 0 after a `calm` end waits for the
  // others first, which would miss its store.
  void stop(bool calm) {
    std::unique_lock lock(guard_);
    stopping_ = true;
    lingers_ = calm && rank_ == 0 && lost_.empty() && own_failure_.empty();
    wake_.notify_all();
    const seconds most = lingers_ ? patience_ + kAsked : lost_.empty() ? kAsked : kHeard + kBeat;
    wake_.wait_for(lock, most, [this] { return ended_; });
  }

  void publish(const std::string& text) {
    std::unique_lock lock(guard_);
    own_failure_ = str("rank ", rank_, ": ", text);
    wake_.notify_all();
    wake_.wait_for(lock, kHeard, [this] { return told_ || ended_; });
  }

  void begins(int64_t number, const char* what) {
    const std::lock_guard lock(guard_);
    place_ = {number, printable(what, 60)};
  }

  void watch(std::function<std::string()> hangs) {
    const std::lock_guard lock(guard_);
    hangs_ = std::move(hangs);
  }

  std::string reason() {
    std::unique_lock lock(guard_);
    const int64_t asked = ++asked_;
    wake_.notify_all();
    wake_.wait_for(lock, kAsked, [&] { return answered_ >= asked || ended_; });
    if (!lost_.empty()) return "another rank ended: " + printable(lost_, 600);
    return missing_.empty() ? "" : "not in this call: " + missing_;
  }

 private:
  struct Other {
    std::string said;
    Clock::time_point at = Clock::now();  // when that was new
    Place place;
  };

  void beat() {
    try {
      for (bool more = true; more;) {
        std::unique_lock lock(guard_);
        wake_.wait_for(lock, kBeat,
                       [&] { return stopping_ || asked_ > answered_ || (!own_failure_.empty() && !told_); });
        const bool stopping = stopping_, lingers = lingers_;
        const int64_t asked = asked_;
        const std::string failure = told_ ? "" : own_failure_;
        const Place place = place_;
        const std::function<std::string()> hangs = hangs_;
        lock.unlock();
        if (const std::string text = hangs ? hangs() : ""; !text.empty()) {
          tell_others(str("rank ", rank_, ": ", text));
          end_with(text);
        }
        std::string missing;
        if (!failure.empty()) {
          tell_others(failure);
        } else {
          round(stopping, place);
          if (asked > answered_) missing = missing_in(place);
        }
        if (lingers) wait_for_others();
        lock.lock();
        missing_ = missing;
        answered_ = asked;
        told_ = told_ || !failure.empty();
        seen_ = Clock::now();
        wake_.notify_all();
        more = !stopping;
      }
      // What rank 0 knows the others must be able to read, all but the one that is lost.
      if (rank_ == 0 && knows_of_another()) wait_for_readers(size_ - 2);
    } catch (const std::exception&) {  // rank 0, which hosts the store, has ended: the next call reports it
    }
    const std::lock_guard lock(guard_);
    ended_ = true;
    wake_.notify_all();
  }

  std::string beat_of(int64_t rank) {
    const std::string key = str("beat/", rank);
    return store_->check({key}) ? store_->get_to_str(key) : "";
  }

  void round(bool stopping, const Place& place) {
    store_->set(str("beat/", rank_), stopping ? kLeft : str(++count_, "\t", place.call, "\t", place.what));
    std::string lost;
    if (store_->check({kLost})) {
      lost = store_->get_to_str(kLost);
    } else if (!stopping && patience_.count() > 0) {
      lost = missing_rank();
      if (!lost.empty()) store_->set(kLost, lost);
      if (lost.empty() && rank_ == 0) name_who_is_waited_for(place);
    }
    if (!lost.empty()) take(lost, stopping);
  }

  // The first rank whose heartbeats are missing, in words. This process may have been stopped itself.
  std::string missing_rank() {
    const Clock::time_point now = Clock::now();
    const bool late = now - looked_ > 3 * kBeat;
    looked_ = now;
    for (int64_t r = rank_ == 0 ? 1 : 0; r < (rank_ == 0 ? size_ : 1); ++r) {
      Other& other = others_[static_cast<size_t>(r)];
      const std::string said = beat_of(r);
      if (late || said != other.said || said == kLeft) {
        other = {said, now, Place::of(said)};
      } else if (now - other.at >= patience_) {
        return str("rank ", r, ": no heartbeat for ", patience_.count(), " s");
      }
    }
    return "";
  }

  // Rank 0 logs once a call which ranks are late.
  void name_who_is_waited_for(const Place& own) {
    others_[0].place = own;
    const Place most = std::ranges::max_element(others_, {}, [](const Other& one) { return one.place.call; })->place;
    std::vector<std::string> late;
    for (int64_t r = 0; r < size_; ++r) {
      const Place& place = others_[static_cast<size_t>(r)].place;
      if (place.call < most.call) late.push_back(str("rank ", r, " of ", size_, " (", place.words(), ")"));
    }
    const Clock::time_point now = Clock::now();
    if (late.empty() || most.call != waited_in_) waited_in_ = most.call, waited_since_ = now, named_ = false;
    if (late.empty() || named_ || now - waited_since_ < kSlow * patience_) return;
    named_ = true;
    log(str("in call ", most.call, ", ", most.what, ", the others have waited for ", (kSlow * patience_).count(),
            " s for ", join(late, ", ")));
  }

  std::string missing_in(const Place& own) {
    std::vector<std::string> missing;
    for (int64_t r = 0; r < size_; ++r) {
      const Place place = Place::of(r == rank_ ? "" : beat_of(r));
      if (place.call > 0 && place.call < own.call) missing.push_back(str("rank ", r, ", ", place.words()));
    }
    return join(missing, "; ");
  }

  void wait_for_others() {
    const auto until = Clock::now() + patience_;
    for (int64_t r = 1; r < size_; ++r) {
      while (beat_of(r) != kLeft && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(20));
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
    std::thread([self = shared_from_this()] {  // unless its next call ends this rank first
      std::unique_lock lock(self->guard_);
      const auto ends = [&] { return self->stopping_ || !self->own_failure_.empty(); };
      if (!self->wake_.wait_for(lock, kOwnEnd, ends)) self->end_with(kAnother + self->lost_);
    })
        .detach();
  }

  // Whether rank 0's store answers.
  void watch() {
    std::unique_lock lock(guard_);
    Clock::time_point before = Clock::now();
    while (!wake_.wait_for(lock, kBeat, [this] { return stopping_ || ended_; })) {
      const Clock::time_point now = Clock::now();
      if (now - before > 3 * kBeat) seen_ = now;  // this process was stopped
      before = now;
      if (patience_.count() > 0 && now - seen_ > patience_ + kBeat) {
        end_with(str(kAnother, "rank 0: no heartbeat for ", patience_.count(), " s"));
      }
    }
    // Rank 0 has ended. The call that this rank is in may wait for yet another one.
    if (stopping_ || patience_.count() == 0) return;
    if (wake_.wait_for(lock, patience_, [this] { return stopping_ || !own_failure_.empty(); })) return;
    end_with(kAnother + (lost_.empty() ? "rank 0: its store is gone" : lost_));
  }

  [[noreturn]] void end_with(const std::string& why) const {
    const std::string line =
        str("ucas: error[", word_of(ErrorKind::ranks), "]: rank ", rank_, " of ", size_, ": ", why, "\n");
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) ::_exit(kNumeric);
    ::_exit(kNumeric);
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  const int64_t rank_, size_;
  const seconds patience_;
  // Of the thread that has the store.
  int64_t count_ = 0, waited_in_ = 0;
  std::vector<Other> others_;  // that this rank looks at
  Clock::time_point looked_ = Clock::now(), waited_since_ = looked_;
  bool named_ = false;
  std::mutex guard_;  // of what follows
  std::condition_variable wake_;
  bool stopping_ = false, lingers_ = false, ended_ = false, told_ = false;
  int64_t asked_ = 0, answered_ = 0;
  std::string own_failure_, lost_, missing_;
  Place place_;
  std::function<std::string()> hangs_;
  Clock::time_point seen_ = Clock::now();  // when the store answered
};

Heartbeat::Heartbeat(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t size, seconds patience)
    : beating_(std::make_shared<Beating>(std::move(store), rank, size, patience)) {
  Beating::start(beating_);
}

Heartbeat::~Heartbeat() { beating_->stop(std::uncaught_exceptions() == 0); }

void Heartbeat::publish_failure(const std::string& text) { beating_->publish(text); }
void Heartbeat::begins(int64_t number, const char* what) { beating_->begins(number, what); }
void Heartbeat::watch(std::function<std::string()> hangs) { beating_->watch(std::move(hangs)); }
std::string Heartbeat::reason() { return beating_->reason(); }

void DeviceCalls::add(int64_t number, const char* what, c10::intrusive_ptr<c10d::Work> work) {
  const std::lock_guard lock(guard_);
  while (!calls_.empty() && calls_.front().work->isCompleted()) calls_.pop_front();
  calls_.push_back({number, what, std::move(work), Clock::now()});
}

std::string DeviceCalls::overdue() {
  const std::lock_guard lock(guard_);
  while (!calls_.empty() && calls_.front().work->isCompleted()) calls_.pop_front();
  if (calls_.empty() || Clock::now() - calls_.front().since < patience_) return "";
  return str("call ", calls_.front().number, ", ", calls_.front().what, ": all ranks began it, and after ",
             patience_.count(),
             " s it is not over on this GPU; look at NCCL_DEBUG=INFO, the links (nvidia-smi, dmesg: ",
             "Xid) and the network's interface (NCCL_SOCKET_IFNAME)");
}

}  // namespace ucas
