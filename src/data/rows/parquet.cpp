#include "data/rows/jsonl.h"

#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/python_child.h"
#include "base/str.h"

namespace ucas {

namespace {

using ReadParquet = void (*)(const std::string*, int64_t, const std::function<void(int64_t, Json)>*);

void* load_library(const std::string& library, const char* advice) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    throw Error(ErrorKind::path,
                str(library, ": cannot be loaded: ", printable(reason ? reason : "unknown reason", 400), "; ", advice));
  }
  return handle;
}

constexpr const char* kAsJsonLines =
    "; or write the rows as JSON Lines: python3 -c \"import pandas; pandas.read_parquet('FILE').to_json('FILE.jsonl', "
    "orient='records', "
    "lines=True)\"";

// The wheel has one for each libarrow.so.NNNN that it serves, parquet/arrowNNNN: Arrow's libraries are numbered by the
// interface.
void* reader_of_the_wheel(const std::string& path, const std::string& readers) {
  const std::string folder = python_package("pyarrow");
  constexpr std::string_view kBefore = "arrow";
  std::vector<std::string> served;
  for (const std::string& name : list_directory(readers)) {
    if (!name.starts_with(kBefore)) continue;
    const std::string number = name.substr(kBefore.size());
    if (!folder.empty() && exists(path_join(folder, "libarrow.so." + number))) {
      for (const char* library : {"libarrow.so.", "libparquet.so."}) {
        load_library(path_join(folder, library + number),
                     "is pyarrow complete? `pip install --force-reinstall 'ucas[parquet]'` mends it");
      }
      return load_library(path_join(path_join(readers, name), "libucas_parquet.so"),
                          "of another build than libucas.so");
    }
    served.push_back(number.substr(0, number.size() < 3 ? number.size() : number.size() - 2));
  }
  throw Error(ErrorKind::unsupported,
              str(printable(path, 400), ": reading Parquet needs pyarrow ", join(served, ", "), ", ",
                  folder.empty() ? "which is not installed next to ucas" : str("and another is in ", folder),
                  ": `pip install 'ucas[parquet]'` brings it", kAsJsonLines));
}

// Next to libucas.so, as it was built.
ReadParquet load_reader(const std::string& path) {
  const std::string built = path_join(own_folder(), "libucas_parquet.so"), readers = path_join(own_folder(), "parquet");
  void* handle = nullptr;
  if (exists(built)) {
    handle = load_library(built, "is the pyarrow it was built with still there? `make build` mends it");
  } else if (is_directory(readers)) {
    handle = reader_of_the_wheel(path, readers);
  } else {
    throw Error(ErrorKind::unsupported,
                str(printable(path, 400), ": this build reads no Parquet, because pyarrow was not there (tools/setup ",
                    "gets it, then `make build`)", kAsJsonLines));
  }
  void* symbol = ::dlsym(handle, "ucas_read_parquet");
  if (symbol == nullptr)
    throw Error(ErrorKind::path, str(built, ": lacks ucas_read_parquet: of another build; run `make build`"));
  return reinterpret_cast<ReadParquet>(symbol);
}

}  // namespace

void each_parquet_row(const std::string& path, int64_t most, const std::function<void(int64_t row, Json value)>& take) {
  file_size(path);  // what is not there is refused as any other file
  static const ReadParquet read = load_reader(path);
  read(&path, most, &take);
}

}  // namespace ucas
