#include "data/source_weights.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ucas {
namespace {

TEST(source_weights, the_last_sign_parts_name_and_weight) {
  const std::vector<SourceWeight> weights = parse_source_weights({"gsm8k=2", "a=b=0.5"});
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[1].source, "a=b");
  EXPECT_EQ(weights[0].weight, 2);
  EXPECT_EQ(weights[1].weight, 0.5);
  for (const char* entry : {"", "a", "=1", "a=", "a=0", "a=-1", "a=x", "a=1x", "a=inf", "a=nan"}) {
    EXPECT_THROW(parse_source_weights({entry}), Error) << entry;
  }
  EXPECT_THROW(parse_source_weights({"a=1", "a=2"}), Error);
}

}  // namespace
}  // namespace ucas
