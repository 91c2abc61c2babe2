// What the program does, for people who wait: the phase, the active task in it, and when anything last advanced. A
// watchdog reports it when nothing has advanced for long (docs/reliability.md). Kept by the process, like its log.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace ucas {

void progressed();                         // a token, an update, a reply: cheap enough for each
void set_phase(const std::string& phase);  // "step 12, generating"; progress, too

// An active task, while the object lives: named in the report if it hangs.
class Doing {
 public:
  explicit Doing(std::string what);
  ~Doing();
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;
  void say(const std::string& what);  // another text; no progress
  // The same, at most twice a second, from whatever makes the text.
  template <class Make>
  void say_now_and_then(Make make) {
    if (is_due()) say(make());
  }

 private:
  bool is_due();
  int64_t number_;
  double said_ = 0;
};

struct Activity {
  double still = 0;  // seconds since something moved
  std::string what;  // the phase, then the oldest active task
};
Activity activity();

// Whether a report is due when nothing has advanced for so long: after `seconds`, again after twice that, and so on.
class Stillness {
 public:
  explicit Stillness(double seconds) : seconds_(seconds), next_(seconds) {}
  bool after(double still);

 private:
  double seconds_, next_;
};

// Says what the program is at when a word is due. 0: never.
class Watchdog {
 public:
  explicit Watchdog(double seconds);
  ~Watchdog();

 private:
  void watch(const std::stop_token& stop);
  double seconds_;
  std::mutex guard_;
  std::condition_variable_any woken_;
  std::jthread thread_;  // last: it ends before what it uses
};

// The wish that a long command ends: a signal that asks, and a flag that loops look at between two pieces of work.

// SIGTERM, SIGINT and SIGUSR1 ask for a save and exit 75; repeats within two seconds are one wish, and a later one ends
// the program at once. SIGHUP and SIGPIPE are ignored: a terminal that left must not end a run.
void install_stop_signals();
bool stop_requested();

}  // namespace ucas
