// How a training, by rewards or by demonstrations, shows itself on standard error: --progress auto, plain, dashboard or
// none.
#pragma once

#include <memory>
#include <string>

#include "core/observer.h"

namespace ucas {

enum class ProgressMode { automatic, plain, dashboard, none };
// "" is automatic. Throws Error(ErrorKind::usage) naming the choices.
ProgressMode parse_progress_mode(const std::string& word);
// `automatic` is the dashboard on a terminal, else plain lines.
std::unique_ptr<TrainObserver> make_train_observer(ProgressMode mode);

}  // namespace ucas
