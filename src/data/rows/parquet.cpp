#include "data/rows/parquet.h"

#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {

namespace {

using ReadParquet = void (*)(const std::string*, int64_t, const std::function<void(int64_t, Json)>*);

// Beside libucas.so, as it was built.
std::string parquet_library() {
  Dl_info info{};
  std::string self;
  if (::dladdr(reinterpret_cast<const void*>(&each_parquet_row), &info) != 0 && info.dli_fname != nullptr) {
    self = info.dli_fname;
  }
  return path_join(self.substr(0, self.rfind('/')), "libucas_parquet.so");
}

ReadParquet load_reader(const std::string& path) {
  const std::string library = parquet_library();
  if (!exists(library)) {
    throw Error(ErrorKind::unsupported,
                str(printable(path, 400), ": this build reads no Parquet, because pyarrow was not there (tools/setup ",
                    "gets it, then `make build`); or write the rows as JSON Lines: python3 -c \"import pandas; ",
                    "pandas.read_parquet('FILE').to_json('FILE.jsonl', orient='records', lines=True)\""));
  }
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle ? ::dlsym(handle, "ucas_read_parquet") : nullptr;
  if (symbol == nullptr) {
    const char* reason = ::dlerror();
    throw Error(ErrorKind::path,
                str(library, ": cannot be loaded: ", printable(reason ? reason : "unknown reason", 400),
                    "; is the pyarrow it was built with still there? `make build` mends it"));
  }
  return reinterpret_cast<ReadParquet>(symbol);
}

}  // namespace

void each_parquet_row(const std::string& path, int64_t most, const std::function<void(int64_t row, Json value)>& take) {
  file_size(path);  // what is not there is refused as any other file
  static const ReadParquet read = load_reader(path);
  read(&path, most, &take);
}

}  // namespace ucas
