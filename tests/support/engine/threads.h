// So many CPU threads while this lives, then as many as before. One thread is also the cheaper choice of tests on a
// busy machine, where two mostly wait for each other; results must not depend on it.
#pragma once

#include <ATen/Parallel.h>

namespace ucas::testing {

class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace ucas::testing
