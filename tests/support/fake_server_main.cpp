// ucas-fake-server DIR: a FakeServer as a program, for sampling_server.py. Prints its address; ends with its input.
#include <cstdio>

#include "support/engine/fake_server.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  const ucas::testing::FakeServer server(words[1]);
  std::printf("%s\n", server.address().c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
