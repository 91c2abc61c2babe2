// The wish that a long command ends: a signal that asks, and a flag that loops look at between two pieces of work.
#pragma once

namespace ucas {

// SIGTERM, SIGINT and SIGUSR1 ask for a save and exit 75; repeats within two seconds are one wish, and a later one ends
// the program at once. SIGHUP and SIGPIPE are ignored: a terminal that left must not end a run.
void install_stop_signals();
bool stop_requested();

}  // namespace ucas
