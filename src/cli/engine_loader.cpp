// Loads libucas_engine.so, which needs LibTorch (0.2 s, 100 MB), only for the commands that use it. A build from source
// has it next to the program, and it names its LibTorch. The wheel has one for each minor version of torch,
// engines/torch2.13 and others: no interface of LibTorch outlives a minor version. It takes that of the torch that is
// installed, and loads torch's libraries first.
#include <dlfcn.h>

#include <cstdlib>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"

namespace ucas {

namespace {

constexpr const char* kEngineFile = "libucas_engine.so";
constexpr const char* kFolderOfEngines = "torch";  // and the version: torch2.13

// RTLD_GLOBAL: LibTorch's own plugins expect its symbols to be visible. The handle is kept for the life of the process.
void* load(const std::string& path, const char* advice) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    throw Error(ErrorKind::path,
                str(path, ": cannot be loaded: ", printable(reason ? reason : "unknown reason", 400), "; ", advice));
  }
  return handle;
}

// "2.13.0+cpu" -> "2.13"
std::string minor_version(const std::string& version) {
  const size_t dot = version.find('.');
  return dot == std::string::npos ? version : version.substr(0, version.find_first_not_of("0123456789", dot + 1));
}

// A build for CUDA has its devices in two more libraries, which take a second to load: only where there is a driver.
// They need CUDA's own packages, which a build for CUDA that is used on CPUs may lack.
void load_cuda(const std::string& libraries) {
  if (!exists(path_join(libraries, "libtorch_cuda.so"))) return;
  if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr) return;
  for (const char* library : {"libc10_cuda.so", "libtorch_cuda.so"}) {
    if (::dlopen(path_join(libraries, library).c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) continue;
    const char* reason = ::dlerror();
    warn(str("torch is a build for CUDA, but ", library,
             " cannot be loaded, so no GPU is used: ", printable(reason ? reason : "unknown reason", 400)));
    return;
  }
}

// The engine for the torch that is installed, whose own libraries are loaded then.
std::string engine_of_the_wheel() {
  const std::string engines = path_join(own_folder(), "engines");
  std::vector<std::string> served;
  for (const std::string& name : list_directory(engines)) {
    if (name.starts_with(kFolderOfEngines)) served.push_back(name.substr(std::string_view(kFolderOfEngines).size()));
  }
  const std::string folder = torch_folder(), version = torch_version(), minor = minor_version(version);
  if (version.empty()) {
    throw Error(
        ErrorKind::unsupported,
        str("this command runs a model and needs PyTorch, ",
            folder.empty() ? "which is not installed next to ucas" : str("and ", folder, " names no version of it"),
            ": `pip install 'ucas[train]'` brings it (served: torch ", join(served, ", "), ")"));
  }
  const std::string engine = path_join(path_join(engines, kFolderOfEngines + minor), kEngineFile);
  if (!exists(engine)) {
    throw Error(ErrorKind::unsupported,
                str("torch ", printable(version), " in ", folder, ": this package of ucas serves torch ",
                    join(served, ", "), ": `pip install 'ucas[train]'` changes it to one of those"));
  }
  for (const char* library : {"libc10.so", "libtorch_cpu.so"}) {
    load(path_join(path_join(folder, "lib"), library),
         "is torch complete? `pip install --force-reinstall 'ucas[train]'` mends it");
  }
  load_cuda(path_join(folder, "lib"));
  return engine;
}

void* load_engine() {
  const std::string built = path_join(own_folder(), kEngineFile);
  const bool wheel = !exists(built) && is_directory(path_join(own_folder(), "engines"));
  if (!exists(built) && !wheel) {
    throw Error(
        ErrorKind::path,
        str(built, ": not found; `make build` builds it next to the program, with which it belongs, and `make wheel` ",
            "packages it; a package that pip built from ucas's sources has none"));
  }
  // Read once, when LibTorch's OpenMP runtime is loaded. By default its waiting threads spin for milliseconds: on a
  // machine that is busy with anything else, steps of a tiny model took 20 times longer. Some microseconds keep what
  // spinning gains on an idle one (sleeping at once took 1.7 times longer there). The user's own choice has precedence.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "3000", 0);
  return wheel ? load(engine_of_the_wheel(),
                      "are ucas and torch as they were installed? `pip install --force-reinstall 'ucas[train]'` mends "
                      "them")
               : load(built, "is the LibTorch it was built with still there? `make build` mends it");
}

void* engine_symbol(const char* symbol) {
  static void* engine = load_engine();
  void* address = ::dlsym(engine, symbol);
  if (address == nullptr)
    throw Error(ErrorKind::path, str(kEngineFile, ": lacks ", symbol, ": of another build; run `make build`"));
  return address;
}

}  // namespace

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
