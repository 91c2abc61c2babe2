#pragma once

#include <chrono>

#include "gloo/transport/device.h"

namespace gloo {

class Context {
 public:
  virtual ~Context();
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
