#include "base/text/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace ucas {

namespace {

// The class of the error that `text` causes, "" if it is read.
std::string refusal(const std::string& text) {
  try {
    parse_json(text, "f.json");
    return "";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("f.json: ")) << error.what();
    EXPECT_EQ(error.exit_code(), kBadInput);
    return error.word();
  }
}

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST(json, reads_what_it_should) {
  Json value = parse_json(R"({"a": [1, -2, 3.5, true, null, "\u00e4\ud83d\ude00"], "b": {}})", "f.json");
  EXPECT_EQ(value["a"].size(), 6u);
  EXPECT_EQ(value["a"][1].get<int64_t>(), -2);
  EXPECT_EQ(value["a"][5].get<std::string>(), "\xc3\xa4\xf0\x9f\x98\x80");
  EXPECT_EQ(parse_json("18446744073709551615", "f.json").get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(refusal(nested(64)), "");
}

TEST(json, a_key_that_stands_twice_is_refused_however_it_is_spelled) {
  EXPECT_EQ(refusal(R"({"a": 1, "a": 2})"), "dup_key");
  EXPECT_EQ(refusal(R"({"a": 1, "\u0061": 2})"), "dup_key");
  EXPECT_EQ(refusal(R"([{"x": {"k": 1, "b": 2, "k": {}}}])"), "dup_key");
  EXPECT_EQ(refusal(R"([{"a": 1}, {"a": 2}])"), "");
}

TEST(json, deep_nesting_is_refused_before_it_costs_a_stack) {
  EXPECT_EQ(refusal(nested(65)), "header_json");
  EXPECT_EQ(refusal(nested(1000000)), "header_json");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_EQ(refusal(objects), "header_json");
}

TEST(json, everything_that_is_not_json_has_a_class) {
  for (const char* bad : {"", " ", "{", "[1,]", "{\"a\":}", "NaN", "[Infinity]", "-", "01", "1 2", "{} x", "'a'", "\"a",
                          "\"\\ud800\"", "\"\\ud800\\u0041\"", "[1e999]", "// c\n1", "\xef\xbb\xbf{}"}) {
    EXPECT_EQ(refusal(bad), "header_json") << bad;
  }
  EXPECT_EQ(refusal(std::string("{\"a\"\0:1}", 9)), "header_json");
  // A NUL is the end to the library, whatever follows it.
  EXPECT_EQ(refusal(std::string("{}\0", 3)), "header_json");
  EXPECT_EQ(refusal(std::string("{\"a\": 1}\0{{{", 12)), "header_json");
  EXPECT_EQ(refusal(std::string("\0", 1)), "header_json");
  EXPECT_EQ(refusal("\"\\u0000\""), "") << "escaped it is a character like others";
  EXPECT_EQ(refusal("\"\xff\""), "utf8");
  EXPECT_EQ(refusal("\"\xed\xa0\x80\""), "utf8");
  EXPECT_EQ(refusal(std::string("\xff\xfe{\0}\0", 6)), "header_json") << "UTF-16 with its mark";
}

}  // namespace ucas
