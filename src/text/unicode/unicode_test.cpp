#include "text/unicode/unicode.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/str.h"

namespace ucas {
namespace {

std::string utf8(std::initializer_list<uint32_t> codes) {
  std::string text;
  for (uint32_t code : codes) append_utf8(text, code);
  return text;
}

TEST(unicode, every_character_reads_back_as_written) {
  for (uint32_t code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 7) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text = "x" + utf8({code});
    Char forward = char_at(text, 1), backward = char_before(text, text.size());
    ASSERT_EQ(forward.code, code);
    ASSERT_EQ(backward.code, code);
    ASSERT_EQ(forward.length, text.size() - 1);
    ASSERT_EQ(backward.length, text.size() - 1);
    ASSERT_EQ(unfinished_tail(text), 0u);
    for (size_t cut = 2; cut < text.size(); ++cut) ASSERT_EQ(unfinished_tail(text.substr(0, cut)), cut - 1);
  }
}

TEST(unicode, broken_sequences_are_single_bytes_and_replaced_as_python_does) {
  // b"...".decode("utf-8", "replace")
  const std::string u = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid("a\xC3"), "a" + u);
  EXPECT_EQ(replace_invalid("\xE2\x80x"), u + "x");
  EXPECT_EQ(replace_invalid("\xED\xA0\x80"), u + u + u);  // a surrogate
  EXPECT_EQ(replace_invalid("\xC0\xAF"), u + u);          // overlong
  EXPECT_EQ(replace_invalid("\xF4\x90\x80\x80"), u + u + u + u);
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98"), u);
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(char_at("\xED\xA0\x80", 0).code, kInvalid);
  EXPECT_EQ(char_before("a\x80", 2).code, kInvalid);
  EXPECT_EQ(unfinished_tail("\xC0"), 0u);
  EXPECT_EQ(unfinished_tail("\xE2\x28"), 0u);
  EXPECT_EQ(unfinished_tail("\x80\x80"), 0u);
}

TEST(unicode, classes_are_those_of_the_patterns) {
  EXPECT_EQ(char_class('a') & (kLetter | kNumber | kSpace), kLetter);
  EXPECT_EQ(char_class(0x661) & (kLetter | kNumber | kSpace), kNumber);
  EXPECT_EQ(char_class(0x2167) & (kLetter | kNumber | kSpace), kNumber);  // roman numeral eight
  EXPECT_EQ(char_class(0x3000) & (kLetter | kNumber | kSpace), kSpace);
  EXPECT_EQ(char_class(0x180E) & kSpace, 0);  // a space until Unicode 6.3
  EXPECT_EQ(char_class(0x1C) & kSpace, 0);
  EXPECT_EQ(char_class(0x105C9) & kLetter, kLetter);  // new in Unicode 16
  EXPECT_EQ(char_class(kInvalid), 0);
  EXPECT_NE(char_class('_') & kWord, 0);
  EXPECT_EQ(char_class('-') & kWord, 0);
}

TEST(unicode, nfc_composes_orders_and_leaves_the_rest) {
  EXPECT_EQ(nfc("plain ASCII"), "plain ASCII");
  EXPECT_EQ(nfc(utf8({'e', 0x301})), utf8({0xE9}));
  EXPECT_EQ(nfc(utf8({0x212B})), utf8({0xC5}));                                  // singleton
  EXPECT_EQ(nfc(utf8({0x958})), utf8({0x915, 0x93C}));                           // composition exclusion
  EXPECT_EQ(nfc(utf8({0x1100, 0x1161, 0x11A8})), utf8({0xAC01}));                // Hangul
  EXPECT_EQ(nfc(utf8({0xAC00, 0x11A7})), utf8({0xAC00, 0x11A7}));                // T base is no jamo
  EXPECT_EQ(nfc(utf8({'a', 0x315, 0x300, 0x5AE})), utf8({0xE0, 0x5AE, 0x315}));  // UAX 15: order, then compose
  EXPECT_EQ(nfc(utf8({'a', 0x334, 0x301})), utf8({0xE1, 0x334}));                // not blocked by a lower class
  EXPECT_EQ(nfc(utf8({'a', 0x308, 0x301})), utf8({0xE4, 0x301}));                // blocked by the same class
  EXPECT_EQ(nfc(utf8({0x301, 'a'})), utf8({0x301, 'a'}));
  EXPECT_EQ(nfc(utf8({0x1E131, 0x334})), utf8({0x1E131, 0x334}));  // later than Unicode 9
}

TEST(unicode, broken_bytes_pass_through_nfc_and_keep_marks_apart) {
  EXPECT_EQ(nfc("e\xFF\xCC\x81"), "e\xFF\xCC\x81");
  EXPECT_EQ(nfc("\xCC"), "\xCC");
  EXPECT_EQ(nfc("e\xCC\x81\xE2\x82"), "\xC3\xA9\xE2\x82");
}

TEST(unicode, nfc_of_nfc_is_the_same_text) {
  const std::vector<uint32_t> codes = {'a',    'e',    0x301,  0x308, 0x323, 0x345, 0x334,  0x1F80, 0x1100,
                                       0x1161, 0x11A8, 0xAC00, 0x93C, 0x915, 0x958, 0xFB1D, 0x2126, 0x1D15E};
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed, 3);
    std::string text;
    for (int64_t n = rng.below(10); n > 0; --n) append_utf8(text, codes[rng.below(codes.size())]);
    std::string once = nfc(text);
    ASSERT_EQ(nfc(once), once) << printable(text);
    ASSERT_TRUE(once == text || may_change_under_nfc(text)) << printable(text);
  }
}

}  // namespace
}  // namespace ucas
