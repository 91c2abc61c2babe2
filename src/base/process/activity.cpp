#include "base/process/activity.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <initializer_list>
#include <map>

#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

namespace {

constexpr size_t kMostSaid = 3;
constexpr double kBetweenTexts = 0.5;

struct NamedWork {
  std::string what;
  double since = 0;
};

struct Place {
  std::mutex guard;
  std::string phase;
  std::map<int64_t, NamedWork> active;  // by number: the oldest first
  int64_t next = 0;
  std::atomic<double> moved = now_seconds();
};

// Never destroyed: a worker may outlive the statics.
Place& place() {
  static Place& here = *new Place;
  return here;
}

constexpr time_t kOneWish = 2;  // seconds

volatile std::sig_atomic_t stop_signal = 0;
volatile time_t asked_at = 0;

time_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

// GNU timeout, systemd, scancel and a launcher that signals its whole group send it to a process more than once.
void on_signal(int signal) {
  if (stop_signal == 0) {
    stop_signal = signal;
    asked_at = now();
  } else if (now() > asked_at + kOneWish) {  // the last checkpoint remains
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void progressed() { place().moved.store(now_seconds(), std::memory_order_relaxed); }

void set_phase(const std::string& phase) {
  Place& here = place();
  const std::lock_guard lock(here.guard);
  here.phase = phase;
  progressed();
}

Doing::Doing(std::string what) {
  Place& here = place();
  const std::lock_guard lock(here.guard);
  number_ = here.next++;
  here.active[number_] = {std::move(what), now_seconds()};
  progressed();
}

Doing::~Doing() {
  Place& here = place();
  const std::lock_guard lock(here.guard);
  here.active.erase(number_);
  progressed();
}

void Doing::say(const std::string& what) {
  Place& here = place();
  const std::lock_guard lock(here.guard);
  here.active[number_].what = what;
}

bool Doing::is_due() {
  const double now = now_seconds();
  if (now - said_ < kBetweenTexts) return false;
  said_ = now;
  return true;
}

Activity activity() {
  Place& here = place();
  const std::lock_guard lock(here.guard);
  const double now = now_seconds();
  Activity made{now - here.moved.load(std::memory_order_relaxed), here.phase};
  size_t said = 0;
  for (const auto& [number, work] : here.active) {
    if (said++ == kMostSaid) break;
    made.what += str(made.what.empty() ? "" : "; ", work.what, " for ", human_seconds(now - work.since));
  }
  if (here.active.size() > kMostSaid) made.what += str("; and ", here.active.size() - kMostSaid, " more");
  return made;
}

bool Stillness::after(double still) {
  if (still < seconds_) next_ = seconds_;
  if (still < next_) return false;
  next_ *= 2;
  return true;
}

Watchdog::Watchdog(double seconds) : seconds_(seconds) {
  if (seconds <= 0) return;
  progressed();
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Watchdog::watch(const std::stop_token& stop) {
  std::unique_lock lock(guard_);
  const auto pause = std::chrono::duration<double>(std::clamp(seconds_ / 4, 0.05, 5.0));
  Stillness stillness(seconds_);
  while (!woken_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
    const Activity now = activity();
    if (!stillness.after(now.still)) continue;
    count_warning(Warning::stall);
    log(str("watchdog  nothing has moved for ", human_seconds(now.still), ": ", now.what));
  }
}

void install_stop_signals() {
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) std::signal(signal, on_signal);
  for (int signal : {SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
}

bool stop_requested() { return stop_signal != 0; }

}  // namespace ucas
