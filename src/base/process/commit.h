// Which commit this binary was built from, "+changes" behind it where files had been changed; "" where the build was of
// no clone. Its definition is made by cmake/commit.cmake.
#pragma once

#include <string>

#include "base/process/build_info.h"
#include "base/str.h"

namespace ucas {

std::string commit();

// "0.2.0, commit 1d2e..", as env.json keeps it.
inline std::string version_and_commit() { return commit().empty() ? version() : str(version(), ", commit ", commit()); }

}  // namespace ucas
