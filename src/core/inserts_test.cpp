#include "core/batch.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

TEST(inserts, stand_where_the_model_read_them) {
  const std::vector<int32_t> own = {1, 2, 3, 4};
  EXPECT_EQ(with_inserts(own, {}), own);
  const std::vector<Insert> inserts = {{1, {10, 11}, "a"}, {3, {12}, "b"}};
  EXPECT_EQ(with_inserts(own, inserts), (std::vector<int32_t>{1, 10, 11, 2, 3, 12, 4}));
  EXPECT_EQ(inserted_tokens(inserts), 3);
  for (const auto& [at, before] : {std::pair{0, 0}, {1, 2}, {2, 2}, {3, 3}}) {
    EXPECT_EQ(inserted_before(inserts, at), before) << at;
  }
}

}  // namespace
}  // namespace ucas
