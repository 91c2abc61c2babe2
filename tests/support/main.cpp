#include <gtest/gtest.h>

#include <cstring>

#include "support/algorithm_cases.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--algorithm-cases") == 0) {
    return ucas::testing::algorithm_cases_main(argc, argv);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
