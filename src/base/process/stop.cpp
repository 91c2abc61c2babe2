#include "base/process/stop.h"

#include <csignal>
#include <ctime>
#include <initializer_list>

namespace ucas {

namespace {

constexpr time_t kOneWish = 2;  // seconds

volatile std::sig_atomic_t stop_signal = 0;
volatile time_t asked_at = 0;

time_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

// GNU timeout, systemd, scancel and a launcher whose whole group is told send it to a process more than once.
void on_signal(int signal) {
  if (stop_signal == 0) {
    stop_signal = signal;
    asked_at = now();
  } else if (now() > asked_at + kOneWish) {  // the last checkpoint stands
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void install_stop_signals() {
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) std::signal(signal, on_signal);
  for (int signal : {SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
}

bool stop_requested() { return stop_signal != 0; }

}  // namespace ucas
