#include "data/rows/jsonl.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "data/problems.h"
#include "evaluate/responses_file.h"
#include "support/program.h"

namespace ucas {
namespace {

// Files that pyarrow has written, where it is there.
class parquet : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = str(::testing::TempDir(), "ucas_parquet_", ::getpid(), "/");
    make_directories(folder_);
    const int status = testing::run_program(
        {"python3", "-B", UCAS_SOURCE_DIR "/tests/support/make_parquet.py", folder_, torch_packages()});
    if (status == 77)
      missing_ = "python3 has no pyarrow, nor .venv one for it";
    else if (status != 0)
      missing_ = "broken";
  }
  static void TearDownTestSuite() { remove_all(folder_); }
  void SetUp() override {
    ASSERT_NE(missing_, "broken") << "make_parquet.py failed";
    if (!missing_.empty()) GTEST_SKIP() << missing_;
  }
  static std::string refusal(const std::string& path) {
    try {
      read_problems({path});
      return "accepted";
    } catch (const Error& error) {
      return str(error.word(), " ", error.what());
    }
  }
  static inline std::string folder_, missing_;
};

TEST_F(parquet, files_of_verl_are_the_problems_that_the_same_rows_are_as_json_lines) {
  const std::vector<Problem> expected = read_problems({folder_ + "verl.jsonl"});
  ASSERT_EQ(expected.size(), 1000u);
  EXPECT_EQ(expected[0].earlier.size(), 2u);
  for (const char* codec : {"none", "snappy", "gzip", "zstd", "brotli", "lz4"}) {
    const std::vector<Problem> problems = read_problems({str(folder_, "verl_", codec, ".parquet")});
    EXPECT_EQ(content_hash(problems), content_hash(expected)) << codec;
  }
}

TEST_F(parquet, columns_are_what_they_are_in_json) {
  std::vector<std::string> warnings;
  LogSink before = set_log_sink([&](LogLevel, const std::string& text) { warnings.push_back(text); });
  Json rows = Json::array();
  read_json_lines(folder_ + "plain.parquet", BadRows::stop, [&](const JsonRow& row) {
    EXPECT_EQ(row.line, std::ssize(rows) + 1);
    rows.push_back(row.value);
  });
  set_log_sink(before);
  EXPECT_EQ(rows, Json::parse(R"([
    {"problem": "1+1?", "answer": 2, "id": "a", "choices": ["1", "2"], "share": 0.5, "width": 3.14, "known": true, "n": 1,
     "scores": [1, 2], "tags": {"k": "v"}},
    {"problem": "2+2?", "answer": 4, "id": "b", "choices": null, "share": null, "width": 72.0, "known": false, "n": 2,
     "scores": [3, 4], "tags": {}},
    {"problem": "3+3?", "answer": 6, "id": "a", "choices": ["6", "7"], "share": null, "width": null, "known": null, "n": 3,
     "scores": [5, 6], "tags": null}])"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("are): made"), std::string::npos) << warnings[0];
}

TEST_F(parquet, responses_of_others_are_read_too) {
  const GivenResponses given = read_responses(folder_ + "responses.parquet");
  ASSERT_EQ(given.size(), 5u);
  ASSERT_EQ(given[2].responses.size(), 2u);
  EXPECT_EQ(given[2].responses[1].text, "\\boxed{5}");
}

TEST_F(parquet, what_is_not_read_is_refused_by_class_and_place) {
  EXPECT_TRUE(refusal(folder_ + "missing.parquet").starts_with("path ")) << refusal(folder_ + "missing.parquet");
  EXPECT_TRUE(refusal(folder_ + "dates.parquet").starts_with("schema "));
  EXPECT_TRUE(refusal(folder_ + "empty.parquet").starts_with("empty "));
  EXPECT_TRUE(refusal(folder_ + "bytes.parquet").starts_with("parquet ")) << refusal(folder_ + "bytes.parquet");
  EXPECT_EQ(refusal(folder_ + "deep.parquet"), "accepted") << "with a warning";
  write_file(folder_ + "text.parquet", "{\"problem\": \"1\"}\n");
  EXPECT_TRUE(refusal(folder_ + "text.parquet").starts_with("parquet "));
  write_file(folder_ + "none.parquet", "");
  EXPECT_TRUE(refusal(folder_ + "none.parquet").starts_with("parquet "));
}

// A text that is in every row is kept once, so that a file may hold ten thousand times its size.
TEST_F(parquet, small_files_with_much_in_them_are_refused) {
  for (const char* name : {"same", "rows", "text"}) {
    const std::string file = str(folder_, "bomb_", name, ".parquet");
    EXPECT_LT(file_size(file), int64_t{1} << 20);
    EXPECT_TRUE(refusal(file).starts_with("limit ")) << refusal(file);
  }
}

TEST_F(parquet, broken_files_end_with_an_error_or_are_read) {
  const std::string whole = read_file(folder_ + "small.parquet"), path = folder_ + "broken.parquet";
  LogSink before = set_log_sink([](LogLevel, const std::string&) {});
  int refused = 0;
  const auto put = [&](const std::string& bytes) {
    write_file(path, bytes);
    const std::string why = refusal(path);
    refused += why != "accepted";
    const std::string kind = why.substr(0, why.find(' '));
    const bool known = kind == "accepted" || kind == "parquet" || kind == "schema" || kind == "limit" ||
                       kind == "empty" || kind == "data_line";
    EXPECT_TRUE(known) << why;
  };
  for (size_t at = 5; at < whole.size(); at += whole.size() / 12) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0xff);
    put(broken);
  }
  for (size_t size = 1; size < whole.size(); size += whole.size() / 4) put(whole.substr(0, size));
  set_log_sink(before);
  EXPECT_GT(refused, 6);
}

}  // namespace
}  // namespace ucas
