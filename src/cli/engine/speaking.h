// Of several ranks rank 0 speaks for all; but what ends another one may have happened there alone, and is said by it. A
// bad option is the same on all.
#pragma once

#include <string>

#include "base/error.h"
#include "base/log.h"
#include "train/ranks.h"

namespace ucas {

template <class Work>
int speaking_once(const Ranks& ranks, Work work) {
  if (ranks.leads()) return work();
  const LogSink before = set_log_sink([](LogLevel, const std::string&) {});
  try {
    return work();
  } catch (const Error& error) {
    const std::string kind = error.kind();
    if (kind != "usage" && kind != "config") set_log_sink(before);
    throw;
  } catch (...) {
    set_log_sink(before);
    throw;
  }
}

}  // namespace ucas
