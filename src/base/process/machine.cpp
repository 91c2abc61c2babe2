#include "base/process/machine.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

int64_t sharing_cores = 1;

// The kernel's files have no size, so base/files/file would read nothing of them.
int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  return file >> word && word != "max" ? std::atoll(word.c_str()) : -1;
}

int64_t kernel_bytes(std::string_view key) { return 1024 * std::atoll(kernel_table("/proc/meminfo", key).c_str()); }

// The folders of the process's control group and those above it, version 2 and 1.
std::vector<std::string> control_groups() {
  std::vector<std::string> folders;
  std::ifstream table("/proc/self/cgroup");
  std::string line;
  while (std::getline(table, line)) {
    const std::vector<std::string> part = split(line, ':');
    if (part.size() < 3 || (!part[1].empty() && part[1] != "memory")) continue;
    const std::string root = part[1].empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string path = part[2]; path.size() > 1; path = path.substr(0, path.rfind('/'))) {
      folders.push_back(root + path);
    }
    folders.push_back(root);
  }
  return folders;
}

// Calls a function of the driver by its name: 0 says that it did. Loaded once, and kept.
template <class... Arguments>
bool ask_driver(const char* name, Arguments... arguments) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, name));
  return function != nullptr && function(arguments...) == 0;
}

}  // namespace

int cuda_driver_version() {
  int version = 0;
  return ask_driver("cuDriverGetVersion", &version) ? version : 0;
}

int64_t cuda_devices() {
  int count = 0;
  return ask_driver("cuInit", 0U) && ask_driver("cuDeviceGetCount", &count) ? count : 0;
}

int64_t cuda_memory(int64_t device) {
  int handle = 0;
  size_t bytes = 0;
  const bool known = ask_driver("cuInit", 0U) && ask_driver("cuDeviceGet", &handle, static_cast<int>(device)) &&
                     ask_driver("cuDeviceTotalMem_v2", &bytes, handle);
  return known ? static_cast<int64_t>(bytes) : 0;
}

std::string kernel_table(const char* path, std::string_view key) {
  std::ifstream table(path);
  std::string line;
  while (std::getline(table, line)) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return "";
}

MachineMemory machine_memory() {
  MachineMemory memory{.total = kernel_bytes("MemTotal"), .free = kernel_bytes("MemAvailable")};
  for (const std::string& folder : control_groups()) {
    const int64_t limit = std::max(number_in(folder + "/memory.max"), number_in(folder + "/memory.limit_in_bytes"));
    if (limit < 0 || limit >= memory.total) continue;
    const int64_t used = std::max(number_in(folder + "/memory.current"), number_in(folder + "/memory.usage_in_bytes"));
    memory.total = limit;
    memory.free = std::clamp<int64_t>(limit - std::max<int64_t>(used, 0), 0, memory.free);
    memory.limited = true;
  }
  return memory;
}

void share_cores(int64_t processes) { sharing_cores = std::max<int64_t>(1, processes); }
bool cores_are_shared() { return sharing_cores > 1; }
int64_t usable_cores() { return std::max<int64_t>(1, all_cores() / sharing_cores); }

int64_t all_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : ::sysconf(_SC_NPROCESSORS_ONLN);
}

Listener listen_on_loopback(int64_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  if (fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 && ::bind(fd, address, size) == 0 &&
      ::listen(fd, SOMAXCONN) == 0 && ::getsockname(fd, address, &size) == 0) {
    return {fd, ntohs(at.sin_port)};
  }
  const std::string why = std::strerror(errno);
  if (fd >= 0) ::close(fd);
  throw Error(ErrorKind::io, str("port ", port, " of 127.0.0.1 cannot be listened on: ", why), kIoFailure);
}

}  // namespace ucas
