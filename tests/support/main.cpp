#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "kernels/dispatch.h"
#include "support/algorithm_cases.h"

// Goldens are named from the project's folder; before the first static object, which may read one.
__attribute__((constructor(101))) static void enter_project() {
  if (::chdir(UCAS_HOME) != 0) std::perror(UCAS_HOME);
}

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--algorithm-cases") == 0) {
    return ucas::testing::algorithm_cases_main(argc, argv);
  }
  // gtest before 1.12 writes to /tmp whatever TMPDIR says.
  if (const char* folder = std::getenv("TMPDIR")) ::setenv("TEST_TMPDIR", folder, 0);
  // Of an instruction set that this CPU lacks, nothing is tested, and that is said: 77, which ctest calls skipped.
  try {
    ucas::kernels::choose_bf16(std::getenv("UCAS_BF16"), *ucas::kernels::choose(std::getenv("UCAS_ISA")).table);
  } catch (const ucas::Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
