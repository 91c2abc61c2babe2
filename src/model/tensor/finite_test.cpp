#include "model/stored.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "hf/safetensors.h"

namespace ucas {
namespace {

TEST(finite, the_first_value_that_is_not_is_found_wherever_it_stands) {
  const float largest = std::numeric_limits<float>::max();
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    for (size_t place : {0, 1, 4095, 4096, 9999}) {
      std::vector<float> values(10000, -largest);
      EXPECT_EQ(first_not_finite(values), -1);
      values[place] = bad;
      values[9999] = bad;
      EXPECT_EQ(first_not_finite(values), static_cast<int64_t>(place));
    }
  }
  EXPECT_EQ(first_not_finite({}), -1);
}

// Exactly the values that the writer's rounding turns into infinity.
TEST(finite, a_narrower_type_refuses_what_it_would_round_to_infinity) {
  for (float value : {65504.0f, 65519.0f, std::nextafter(65520.0f, 0.0f), 65520.0f, 1e6f, -65520.0f}) {
    EXPECT_EQ(first_not_finite({&value, 1}, "float16") == 0, std::isinf(f32_of_f16(f16_of_f32(value)))) << value;
  }
  const float edge = 3.3961775e38f;
  for (float value : {1e38f, 3.38e38f, std::nextafter(edge, 0.0f), edge, -std::numeric_limits<float>::max()}) {
    EXPECT_EQ(first_not_finite({&value, 1}, "bfloat16") == 0, (bf16_of_f32(value) & 0x7fff) == 0x7f80) << value;
  }
}

}  // namespace
}  // namespace ucas
