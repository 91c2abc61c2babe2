#include "base/process/stop.h"

#include <csignal>
#include <initializer_list>

namespace ucas {

namespace {

volatile std::sig_atomic_t stop_signal = 0;

void on_signal(int signal) {
  stop_signal = signal;
  std::signal(signal, SIG_DFL);  // a second one ends the program at once; the last checkpoint stands
}

}  // namespace

void install_stop_signals() {
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) std::signal(signal, on_signal);
  for (int signal : {SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
}

bool stop_requested() { return stop_signal != 0; }

}  // namespace ucas
