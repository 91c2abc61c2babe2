// Which commit this binary was built from, "+changes" behind it where files had been changed; "" where the build was of
// no clone. Its definition is made by cmake/commit.cmake.
#pragma once

#include <string>

namespace ucas {

std::string commit();

}  // namespace ucas
