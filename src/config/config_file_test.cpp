#include <gtest/gtest.h>

#include "config/train_config.h"
#include "methods/registry.h"

namespace ucas {
namespace {

// TOML has a table's own keys before the tables in it: an option declared behind a method's section would open the
// table twice.
TEST(config_file, of_every_method_is_read_back_as_it_was_written) {
  for (const MethodRow& row : method_rows()) {
    const std::string written = to_toml(make_train_config({{"method.name", row.name, "test"}}));
    EXPECT_EQ(to_toml(make_train_config(parse_toml(written, row.name))), written) << row.name;
  }
}

}  // namespace
}  // namespace ucas
