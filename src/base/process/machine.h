// What this machine lets the process have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ucas {

// The value after "KEY :" in one of the kernel's tables, such as /proc/cpuinfo; "" where it is not.
std::string kernel_table(const char* path, std::string_view key);

struct MachineMemory {   // bytes; 0: not known
  int64_t total = 0;     // of the machine, or the limit of the process's control group where that is lower
  int64_t free = 0;      // of it, what can be had now without swapping
  bool limited = false;  // by the control group
};
MachineMemory machine_memory();

// What the NVIDIA driver says, asked by libcuda.so.1 itself: it is there where CUDA's runtime is not, and makes no
// context. 0 where there is no driver. Devices are those that CUDA_VISIBLE_DEVICES leaves, from 0.
int cuda_driver_version();  // as CUDA writes versions, 13000 for 13.0
int64_t cuda_devices();
int64_t cuda_memory(int64_t device);  // bytes in all

// Of so many processes this is one that run on the same cores: each takes its share. 1 at first.
void share_cores(int64_t processes);
int64_t usable_cores();  // this one's share, 1 at least
int64_t all_cores();     // that it may run on, shared or not
bool cores_are_shared();

// A TCP socket that processes of this host alone can reach, which is handed to the one that will answer on it.

struct Listener {
  int fd = -1;
  int64_t port = 0;
};

// Listens on the loopback address; port 0: on a free one. Closed by exec. Error io (exit 74) where it cannot.
Listener listen_on_loopback(int64_t port);

}  // namespace ucas
