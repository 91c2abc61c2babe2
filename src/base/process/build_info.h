// What this binary was built from; the build system says it.
#pragma once

#include <string>

#include "base/str.h"

namespace ucas {

std::string version();     // of ucas
std::string build_type();  // CMake's: "Release"
// Of the LibTorch it was built against; in the wheel, of the torch that is installed, "" where none is.
std::string torch_version();
// The folder of Python packages that holds this LibTorch; "" where none is.
std::string torch_packages();

// Which commit this binary was built from, "+changes" behind it where files had been changed; "" where the build was of
// no clone. Its definition is made by cmake/commit.cmake.

std::string commit();

// "0.2.0, commit 1d2e..", as env.json keeps it.
inline std::string version_and_commit() { return commit().empty() ? version() : str(version(), ", commit ", commit()); }

}  // namespace ucas
