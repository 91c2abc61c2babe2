// Precompiled for the plain library (CMakeLists.txt). Files still include what they use. No JSON: its header makes every file
// that sees it instantiate a parser, a second each; only files that need it include it. None of
// our own headers: a compiler cache would serve one clone what was made of another's.
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
