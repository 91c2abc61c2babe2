// Python packages whose C++ libraries the program of the wheel loads: torch for the engine, pyarrow for Parquet. No
// Python is started. A build from source has paths of its own and does not ask.
#pragma once

#include <string>

namespace ucas {

// The folder that holds libucas.so, and what lies next to it: build/ or .../site-packages/ucas.
std::string own_folder();

// Where the package is installed: what UCAS_TORCH_DIR, UCAS_PYARROW_DIR name (the `ucas` command sets them to what its
// Python would import), else the folder NAME beside ours. "" where neither is there.
std::string python_package(const std::string& name);

}  // namespace ucas
