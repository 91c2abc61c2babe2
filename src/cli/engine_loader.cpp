// Loads libucas_engine.so, which needs LibTorch (0.2 s, 100 MB), only for the commands that use it.
#include <dlfcn.h>

#include <cstdlib>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "cli/command.h"

namespace ucas {

namespace {

constexpr const char* kEngineFile = "libucas_engine.so";

// RTLD_GLOBAL: LibTorch's own plugins expect its symbols to be visible. The handle is kept for the life of the process.
void* engine_symbol(const char* symbol) {
  static void* engine = [] {
    std::string path = engine_path();
#ifdef UCAS_NO_ENGINE
    throw Error(ErrorKind::unsupported,
                "this command runs a model and needs LibTorch; the Python package holds only the part that does "
                "without. Build ucas from its sources (`make build`) and use build/ucas, which reads and writes the "
                "same files");
#endif
    if (!exists(path)) {
      throw Error(ErrorKind::path,
                  str(path, ": not found; it is built beside the program (`make build`) and belongs with it"));
    }
    // Read once, when LibTorch's OpenMP runtime is loaded. By default its waiting threads spin for milliseconds: on a
    // machine that is busy with anything else, steps of a tiny model took 20 times longer. Some microseconds keep what
    // spinning gains on an idle one (sleeping at once took 1.7 times longer there). The user's own choice stands.
    if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "3000", 0);
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
      const char* reason = ::dlerror();
      throw Error(ErrorKind::path, str(path, ": cannot be loaded: ", printable(reason ? reason : "unknown reason", 400),
                                       "; is the LibTorch it was built with still there? `make build` mends it"));
    }
    return handle;
  }();
  void* address = ::dlsym(engine, symbol);
  if (address == nullptr) {
    throw Error(ErrorKind::path, str(engine_path(), ": lacks ", symbol, ": of another build; run `make build`"));
  }
  return address;
}

}  // namespace

std::string engine_path() {
  Dl_info info{};
  std::string self;
  if (::dladdr(reinterpret_cast<const void*>(&engine_path), &info) != 0 && info.dli_fname != nullptr) {
    self = info.dli_fname;
  }
  size_t slash = self.rfind('/');
  return slash == std::string::npos ? kEngineFile : path_join(self.substr(0, slash), kEngineFile);
}

int run_in_engine(const char* id, const Words& words) {
  using Run = int (*)(const char*, const Words*);
  return reinterpret_cast<Run>(engine_symbol("ucas_engine_run"))(id, &words);
}

std::vector<std::pair<std::string, std::string>> describe_engine() {
  std::vector<std::pair<std::string, std::string>> rows;
  using Describe = void (*)(decltype(rows)*);
  reinterpret_cast<Describe>(engine_symbol("ucas_engine_describe"))(&rows);
  return rows;
}

std::vector<DeviceCheck> check_device(const std::string& device) {
  std::vector<DeviceCheck> rows;
  using Check = void (*)(const std::string*, decltype(rows)*);
  reinterpret_cast<Check>(engine_symbol("ucas_engine_check_device"))(&device, &rows);
  return rows;
}

}  // namespace ucas
