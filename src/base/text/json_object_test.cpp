#include "base/text/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/text/fields.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

// What reading `text` says, as "kind: message"; "" if nothing is refused.
template <class Read>
std::string refusal(const std::string& text, Read read, ErrorKind kind = ErrorKind::data_line) {
  try {
    read(JsonObject::parse(text, "f:3", kind));
  } catch (const Error& error) {
    return error.word() + ": " + error.what();
  }
  return "";
}

TEST(json_object, values_are_read_with_their_types) {
  const JsonObject o = JsonObject::parse(R"({"t":"x","n":2.5,"w":7,"big":1e3,"b":true,"l":["a","b"],"i":[0,5],
      "d":[1,null],"o":{"k":1},"list":[{"k":1},{"k":2}],"nothing":null})",
                                         "f:3");
  EXPECT_EQ(o.text("t"), "x");
  EXPECT_EQ(o.number("n"), 2.5);
  EXPECT_EQ(o.whole("w", 0, 7), 7);
  EXPECT_EQ(o.whole("big"), 1000);
  EXPECT_TRUE(o.truth("b"));
  EXPECT_EQ(o.texts("l"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(o.texts_or_text("t"), std::vector<std::string>{"x"});
  EXPECT_EQ(o.ids("i", 6), (std::vector<int32_t>{0, 5}));
  EXPECT_TRUE(std::isnan(o.numbers("d").at(1)));
  EXPECT_EQ(o.child("o").whole("k"), 1);
  EXPECT_EQ(o.children("list").at(1).whole("k"), 2);
  EXPECT_EQ(o.keys().front(), "b");
}

TEST(json_object, null_and_absent_are_the_same_where_a_value_may_be_absent) {
  const JsonObject o = JsonObject::parse(R"({"nothing":null})", "f");
  for (const char* key : {"nothing", "absent"}) {
    EXPECT_FALSE(o.has(key));
    EXPECT_EQ(o.text_or(key, "z"), "z");
    EXPECT_EQ(o.whole_or(key, -1), -1);
    EXPECT_EQ(o.number_or(key, 0.5), 0.5);
    EXPECT_TRUE(o.truth_or(key, true));
    EXPECT_TRUE(o.texts_or_text(key).empty());
    EXPECT_TRUE(o.children_or_none(key).empty());
  }
  EXPECT_TRUE(std::isnan(o.number("nothing")));  // how files write a number that is not finite
}

TEST(json_object, a_refusal_names_place_key_what_is_there_and_what_was_expected) {
  using O = const JsonObject&;
  EXPECT_EQ(refusal(R"({"a":1})", [](O o) { o.text("b"); }), "data_line: f:3: the field \"b\" is missing");
  EXPECT_EQ(refusal(R"({"a":1})", [](O o) { o.text("a"); }), "data_line: f:3: \"a\": number 1, expected text");
  EXPECT_EQ(refusal(R"({"a":null})", [](O o) { o.text("a"); }), "data_line: f:3: \"a\": null, expected text");
  EXPECT_EQ(refusal(R"({"a":"1"})", [](O o) { o.number("a"); }),
            "data_line: f:3: \"a\": string \"1\", expected a number or null");
  EXPECT_EQ(refusal(R"({"a":1.5})", [](O o) { o.whole("a"); }),
            "data_line: f:3: \"a\": number 1.5, expected a whole number");
  EXPECT_EQ(refusal(R"({"a":9})", [](O o) { o.whole("a", 0, 8); }),
            "data_line: f:3: \"a\": number 9, expected a whole number from 0 to 8");
  EXPECT_EQ(refusal(R"({"a":18446744073709551615})", [](O o) { o.whole("a", 0); }),
            "data_line: f:3: \"a\": number 18446744073709551615, expected a whole number from 0");
  EXPECT_EQ(refusal(R"({"a":1})", [](O o) { o.truth("a"); }),
            "data_line: f:3: \"a\": number 1, expected true or false");
  EXPECT_EQ(refusal(R"({"a":[2,9]})", [](O o) { o.ids("a", 9); }),
            "data_line: f:3: \"a\": holds 9, expected a list of token ids from 0 to 8");
  EXPECT_EQ(refusal(R"({"a":1,"b":2})", [](O o) { o.only({"a"}); }), "data_line: f:3: unknown field \"b\"");
  EXPECT_EQ(refusal(
                R"({"o":{"l":[{"k":1},{"k":"x"}]}})", [](O o) { o.child("o").children("l").at(1).whole("k"); },
                ErrorKind::config),
            "config: f:3: o.l[1]: \"k\": string \"x\", expected a whole number");
  EXPECT_EQ(refusal("[1]", [](O) {}), "data_line: f:3: array [1], expected an object");
}

TEST(json_object, a_last_line_that_was_being_written_is_left_out_and_remarked) {
  testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/f.jsonl";
  std::vector<std::string> remarks;
  int64_t sum = 0;
  write_file(path, "{\"a\":1}\n\n{\"a\":2}\n{\"a\":");
  each_json_line(path, remarks, [&](const JsonObject& row) { sum += row.whole("a"); });
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(remarks, std::vector<std::string>{path + ":4: incomplete last line left out"});
  write_file(path, "{\"a\":\n{\"a\":2}\n");
  EXPECT_THROW(each_json_line(path, remarks, [](const JsonObject&) {}), Error);
}

}  // namespace
}  // namespace ucas
