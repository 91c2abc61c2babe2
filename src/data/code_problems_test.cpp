#include "data/problems.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace ucas {
namespace {

std::string unpacked(const std::string& packed) {
  try {
    return unpack_text(packed, "t.jsonl:1");
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "data_line");
    return std::string("refused: ") + error.what();
  }
}

std::string gold_of(const char* json) {
  const Json value = Json::parse(json);
  const std::string where = "t.jsonl:1";
  try {
    return gold_of_tests({value, where, 1});
  } catch (const Error& error) {
    return error.word() + ": " + error.what();
  }
}

// base64.b64encode(zlib.compress(pickle.dumps(..., protocol=P)))
TEST(packed_tests, the_pickle_of_one_text_is_read_whatever_its_protocol) {
  for (const char* packed :
       {"eJxrYIoQYGBgiK5WyswrKC1RslJQMlSqjS1k0AMAVJsGfQ==", "eJxrYI4QYGBgiK5WyswrKC1RslJQMlSqjS1k0AMAVLQGfg==",
        "eJxrYJkqwgABPQLR1UqZeQWlJUpWCkqGSrWxU/QAZ8kHfw==", "eJxrYJ0qwgABPQLR1UqZeQWlJUpWCkqGSrWxU/QAZ+cHgA=="}) {
    EXPECT_EQ(unpacked(packed), "[{\"input\": \"1\"}]");
  }
  EXPECT_EQ(unpacked("eJxrYJlqzMgABhE6QEbFKCAaTNEDAAgajzU="), std::string(300, 'x'));
}

TEST(packed_tests, everything_else_is_refused) {
  // No base64, no zlib; pickles of a list, a call of os.system, a dict, a number, bytes; a text with a call behind it.
  for (const char* bad :
       {"", "!!!!", "eJw=", "YWJj",
        "eJxrYJnKwQABsVN6GBOnJOoBACKxBCQ=", "eJxrYJmqzgABPawF+cWZFVN62Iori0tSc6dMntLDU5JfmpyhkJyYl1hUOaV1StAUPQCCchGl",
        "eJxrYJnKxQABtVN6GBOneDMW6wEALJIEpA==", "eJxrYPFm1QMAA64BAw==", "eJxrYJnKygABzoyJU/QAFH8Chg==",
        "eJxrYJnKygABPYyJU/QaWKaqw/isBfnFmRVTetiKK4tLUnOnTJ7Sw1OSX5qcoZCcmJdYVDmldUrQFD0AJKkUcw=="}) {
    EXPECT_EQ(unpacked(bad).find("refused: t.jsonl:1: packed"), 0u) << bad;
  }
}

TEST(code_rows, each_known_form_of_tests_becomes_one_gold) {
  EXPECT_EQ(gold_of(R"({"test": "assert f(1) == 2", "entry_point": "f"})"),
            R"({"entry_point":"f","asserts":"assert f(1) == 2"})");
  EXPECT_EQ(gold_of(R"({"test_list": ["assert f(1) == 2", "assert f(2) == 3"]})"),
            R"({"asserts":"assert f(1) == 2\nassert f(2) == 3\n"})");
  EXPECT_EQ(gold_of(R"({"test": null, "entry_point": "f", "input_output": [{"input": "n = 1", "output": "2"}]})"),
            R"({"entry_point":"f","calls":[{"input":"n = 1","output":"2"}]})");
  EXPECT_EQ(gold_of(R"({"input_output": "{\"inputs\": [\"1\\n\"], \"outputs\": [\"2\\n\"]}"})"),
            R"({"stdin":[{"input":"1\n","output":"2\n"}]})");
  EXPECT_EQ(gold_of(R"({"input_output": {"inputs": [[1, "a"]], "outputs": [[2]], "fn_name": "f"}})"),
            R"({"entry_point":"f","wrapped":true,"values":[{"input":"1\n\"a\"\n","output":"[2]"}]})");
  EXPECT_EQ(gold_of(R"({"test_imports": ["import math"], "test_list": ["assert f(1) == 2"]})"),
            R"({"asserts":"import math\nassert f(1) == 2\n"})");
  EXPECT_EQ(gold_of(R"({"public_test_cases": "[{\"input\": \"1\", \"output\": \"2\", \"testtype\": \"functional\"}]",
                        "private_test_cases": "", "metadata": "{\"func_name\": \"f\"}"})"),
            R"({"entry_point":"f","values":[{"input":"1","output":"2"}]})");
  EXPECT_EQ(gold_of(R"({"answer": "4"})"), "");
}

TEST(code_rows, what_looks_like_tests_and_is_none_is_refused) {
  EXPECT_EQ(gold_of(R"({"input_output": {"inputs": ["1"], "outputs": []}})").find("data_line: t.jsonl:1"), 0u);
  EXPECT_EQ(gold_of(R"({"public_test_cases": [{"input": "1"}]})").find("data_line: t.jsonl:1"), 0u);
  EXPECT_EQ(gold_of(R"({"public_test_cases": [{"input": "1", "output": "1", "testtype": "functional"}]})")
                .find("data_line: t.jsonl:1"),
            0u);
  EXPECT_EQ(gold_of(R"({"public_test_cases": [{"input": "1", "output": "1", "testtype": "other"}]})")
                .find("data_line: t.jsonl:1: \"public_test_cases\": testtype \"other\""),
            0u);
  EXPECT_EQ(gold_of(R"({"test_list": []})").find("data_line: t.jsonl:1"), 0u);
}

}  // namespace
}  // namespace ucas
