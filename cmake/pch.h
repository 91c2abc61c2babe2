// Precompiled for the plain library (CMakeLists.txt). Files still include what they use. No JSON: its header makes every file
// that sees it instantiate a parser, a second each; only files that need it include it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/str.h"
