// Which values a weight file can hold as finite numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ucas {

// Index of the first value that is NaN or infinite, or becomes infinite when it is rounded to `torch_dtype` ("float32",
// "float16", "bfloat16"); -1 if there is none.
int64_t first_not_finite(std::span<const float> values, const std::string& torch_dtype = "float32");

}  // namespace ucas
