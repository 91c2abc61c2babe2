#include "report/escape.h"

#include <gtest/gtest.h>

#include <string>

namespace ucas {
namespace {

TEST(escape, markup_becomes_entities) {
  EXPECT_EQ(html_text("<b a='1' c=\"2\">&amp;"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;");
}

TEST(escape, characters_that_act_on_the_page_become_names) {
  EXPECT_EQ(html_text(std::string("a\0b", 3)), "a[U+0000]b");
  EXPECT_EQ(html_text("x\xe2\x80\xaey"), "x[U+202E]y");   // right-to-left override
  EXPECT_EQ(html_text("\xe2\x81\xa6"), "[U+2066]");       // isolate
  EXPECT_EQ(html_text("\xe2\x80\xa8"), "[U+2028]");       // line separator
  EXPECT_EQ(html_text("\xef\xbb\xbf"), "[U+FEFF]");       // byte order mark
  EXPECT_EQ(html_text("\xf3\xa0\x81\x81"), "[U+E0041]");  // tag character
  EXPECT_EQ(html_text("\x1b[31m"), "[U+001B][31m");
  EXPECT_EQ(html_text("\xc2\x9b"), "[U+009B]");                              // C1
  EXPECT_EQ(html_text("\xff\xc3"), "[\\xFF][\\xC3]");                        // not UTF-8
  EXPECT_EQ(html_text("\xf4\x90\x80\x80").find('\xf4'), std::string::npos);  // beyond Unicode
}

TEST(escape, text_for_scripts_keeps_its_markup_but_no_character_that_acts) {
  EXPECT_EQ(visible_text("<b>&\n", 99), "<b>&\n");
  EXPECT_EQ(visible_text("x\xe2\x80\xaey", 99), "x[U+202E]y");
  EXPECT_EQ(visible_text("a\xc3\xa9z", 2), "a...");
}

TEST(escape, ordinary_text_of_any_language_stays) {
  std::string text = "na\xc3\xafve \xe6\x95\xb0\xe5\xad\xa6 \xf0\x9f\x99\x82 \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\n\tx";
  EXPECT_EQ(html_text(text), text);
}

TEST(escape, model_text_marks_what_it_replaced_and_says_what_it_cut) {
  EXPECT_EQ(model_text(std::string("\0", 1)), "<i class=\"cc\">U+0000</i>");
  std::string cut = model_text(std::string(5000, 'x'), 100);
  EXPECT_EQ(cut.substr(0, 101), std::string(100, 'x') + "<");
  EXPECT_NE(cut.find("4,900 more bytes not shown"), std::string::npos);
  // The cut never splits a character.
  EXPECT_EQ(model_text("\xe6\x95\xb0\xe5\xad\xa6", 4).substr(0, 4), "\xe6\x95\xb0<");
}

TEST(escape, paths_are_shown_by_their_last_parts) {
  EXPECT_EQ(short_path("/data/runs/base/model", 2), "base/model");
  EXPECT_EQ(short_path("/data/task/test.jsonl", 1), "test.jsonl");
  EXPECT_EQ(short_path("test.jsonl", 1), "test.jsonl");
  EXPECT_EQ(short_path("Qwen/Qwen2.5-Math-7B", 2), "Qwen/Qwen2.5-Math-7B");
  EXPECT_EQ(short_path("problems of kind a/b", 1), "problems of kind a/b");
  EXPECT_EQ(short_path("/", 1), "/");
  EXPECT_EQ(short_path("", 1), "");
}

TEST(escape, json_cannot_end_its_script) {
  std::string safe = script_json("{\"a\":\"</script><!--&\xe2\x80\xa8\xe2\x80\xa9\xe2\x82\xac\"}");
  EXPECT_EQ(safe, "{\"a\":\"\\u003c/script\\u003e\\u003c!--\\u0026\\u2028\\u2029\xe2\x82\xac\"}");
}

}  // namespace
}  // namespace ucas
