#include "report/report.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "report/escape.h"
#include "support/synthetic_run.h"

namespace ucas {
namespace {

class report : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ucas-report-XXXXXX";
    root_ = mkdtemp(name);
  }
  void TearDown() override {
    if (const char* keep = std::getenv("UCAS_KEEP_REPORT")) {
      write_file(keep, read_file(path_join(root_, "report.html")));
    }
    remove_all(root_);
  }
  std::string root_;
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

TEST_F(report, the_demo_becomes_one_page_that_asks_the_network_for_nothing) {
  std::vector<std::string> runs = write_synthetic_demo(root_, 3);
  std::string file = path_join(root_, "report.html");
  write_report(runs, file, "A synthetic demo");
  std::string html = read_file(file);
  EXPECT_LT(html.size(), 10u << 20);
  for (const char* id : {"results", "alarms", "curves", "responses", "time", "settings", "sources"}) {
    EXPECT_EQ(count(html, str("<section id=\"", id, "\"")), 1u) << id;
  }
  for (const char* word : {" src=", "@import", "url(", "fetch(", "XMLHttpRequest", "<link", "https://"}) {
    EXPECT_EQ(count(html, word), 0u) << word;
  }
  EXPECT_EQ(count(html, "http://"), 1u);  // the name of the SVG namespace
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
}

}  // namespace
}  // namespace ucas
