#include "sharding/ranks_device.h"

namespace ucas {

c10::intrusive_ptr<c10d::Backend> make_device_group(const c10::intrusive_ptr<c10d::Store>& /*store*/, int64_t /*rank*/,
                                                    int64_t /*size*/, std::chrono::milliseconds /*patience*/) {
  return {};
}

}  // namespace ucas
