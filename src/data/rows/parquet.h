// Rows of Parquet files as JSON objects, by libucas_parquet.so, which holds what needs Arrow (the C++ library of the
// pyarrow wheel) and is loaded when the first such file is read.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/text/json.h"

namespace ucas {

// Calls `take` with each row, from 1. Texts, numbers, booleans, lists and structs become what they are in JSON, a map
// with texts as keys an object; not-a-number is null. A column of any other type is left out with a warning.
// Errors: path; parquet (no Parquet, broken, or texts that are not UTF-8); schema (no column that is read, or one
// twice); limit (a footer, page, text or batch of rows too large, or rows that come to more than `most` bytes, since a
// text that stands in every row is kept once); unsupported (a build without Arrow).
void each_parquet_row(const std::string& path, int64_t most, const std::function<void(int64_t row, Json value)>& take);

}  // namespace ucas
