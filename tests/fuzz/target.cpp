#include "fuzz/target.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "support/temporary_directory.h"

namespace ucas::fuzz {

namespace {

std::string support_folder;

}  // namespace

void set_support(const std::string& folder) { support_folder = folder; }

std::string support(const std::string& name) { return support_folder + "/support/" + name; }

const std::string& scratch() {
  static const auto* folder = new testing::TemporaryDirectory();  // removed by main: workers end without destructors
  return folder->path();
}

std::string put(const std::string& name, std::string_view bytes) {
  const std::string path = scratch() + "/" + name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  UCAS_CHECK(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
             "a file to read");
  ::close(file);
  return path;
}

const Problem& sum_problem() {
  static const Problem problem{.id = "1",
                               .source = "x",
                               .subject = "",
                               .text = "1+1?",
                               .system = "",
                               .gold = {"2"},
                               .choices = {},
                               .earlier = {}};
  return problem;
}

}  // namespace ucas::fuzz
