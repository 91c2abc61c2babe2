// Options of `ucas replay`.
#pragma once

#include <cstdint>
#include <string>

#include "base/text/fields.h"

namespace ucas {

struct ReplayOptions {
  int64_t step = 0;
  std::string problem;
  int64_t sample = -1;
  int64_t threads = 0;
  bool show = false;
  void fields(Fields& f) {
    f.field("step", step, Range{0, 1e9}, "step to regenerate responses of; 0 = the last possible step");
    f.field("problem", problem, "id of the problem to regenerate; empty = all with stored responses");
    f.field("sample", sample, Range{-1, 4e9}, "number of the response to regenerate; -1 = all");
    f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores");
    f.field("show", show, "print the responses, and the run's responses where different");
  }
};

}  // namespace ucas
