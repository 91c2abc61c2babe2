#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "sharding/heartbeat.h"

extern "C" void ucas_make_device_group(ucas::DeviceGroup* made, const c10::intrusive_ptr<c10d::Store>& store,
                                       int64_t rank, int64_t size, std::chrono::milliseconds patience) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = patience;
  made->group =
      c10::make_intrusive<c10d::ProcessGroupNCCL>(store, static_cast<int>(rank), static_cast<int>(size), options);
}
