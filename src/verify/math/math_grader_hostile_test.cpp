// Answers made to hang, overflow or cheat a grader: each is a verdict within counted steps, as an answer and as a gold.
#include <gtest/gtest.h>

#include "base/str.h"
#include "support/patience.h"
#include "support/verdicts.h"

namespace ucas::math {

namespace {

std::string times(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string nested(std::string_view opening, std::string_view middle, std::string_view closing) {
  return str(times(opening, 100'000), middle, times(closing, 100'000));
}

std::vector<std::pair<const char*, std::string>> hostile_answers() {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  return {
      {"a tower of powers", "10^{10^{10^{10}}}"},
      {"a tower of 9s", "9^{9^{9^{9^{9^{9}}}}}"},
      {"a tower under a root", "\\sqrt{10^{10^{10^{10}}}}"},
      {"a tower below a line", "\\frac{1}{10^{10^{10}}}"},
      {"a sine of a tower", "\\sin(10^{10^{10}})"},
      {"a logarithm of a tower", "\\ln(7^{7^{7^7}})"},
      {"factorials of a factorial", "((1000!)!)!"},
      {"many factorials", times("(", 100) + "3" + times("!)", 100)},
      {"a large factorial", "10^9!"},
      {"a large binomial", "\\binom{10^{12}}{10^{11}}"},
      {"10^6 digits", times("1", 1'000'000)},
      {"10^6 decimals", "0." + times("3", 1'000'000)},
      {"8000 digits", times("7", 8000)},
      {"8000 digits to a power", str("(", times("7", 4000), ")^{", times("7", 3000), "}")},
      {"an exponent of 10^6 digits", str("2^{", times("9", 1'000'000), "}")},
      {"an exponent of e notation", "1e999999999999999999999"},
      {"a negative exponent of e notation", "1e-999999999999999999999"},
      {"deep parentheses", nested("(", "1", ")")},
      {"deep braces", nested("{", "1", "}")},
      {"deep fractions", nested("\\frac{1}{", "1", "}")},
      {"deep roots", nested("\\sqrt{", "2", "}")},
      {"deep powers", nested("2^{", "2", "}")},
      {"190 deep roots", times("\\sqrt{1+", 190) + "2" + times("}", 190)},
      {"190 deep fractions", times("\\frac{1}{1+", 190) + "2" + times("}", 190)},
      {"190 deep parentheses", times("(x+", 190) + "2" + times(")^2", 190)},
      {"many boxes", times("\\boxed{1}", 100'000)},
      {"boxes in boxes", nested("\\boxed{", "1", "}")},
      {"open braces", times("{", 100'000)},
      {"closed braces", times("}", 100'000)},
      {"an unclosed box", "\\boxed{" + times("1", 100'000)},
      {"dollars", times("$", 100'000)},
      {"a high power of a sum", "(x+1)^{99999}"},
      {"a high power of a long sum", "(a+b+c+d+f+g+h+k+m+n)^{40}"},
      {"a product of sums", times("(x+y+1)", 1000)},
      {"a product of large powers", "(x^{100}+1)^{100}(y^{100}-1)^{100}"},
      {"a sum of roots",
       "\\sqrt{2}+\\sqrt{3}+\\sqrt{5}+\\sqrt{7}+\\sqrt{11}+\\sqrt{13}+\\sqrt{17}+\\sqrt{19}+\\sqrt{23}"},
      {"roots of roots", "\\sqrt[97]{2+\\sqrt[89]{3+\\sqrt[83]{5}}}"},
      {"nothing, in disguise", "\\sqrt{2}+\\sqrt{3}-\\sqrt{5+2\\sqrt{6}}"},
      {"almost nothing", "e^{\\pi\\sqrt{163}}-262537412640768744"},
      {"many signs", times("-", 100'000) + "1"},
      {"many plus-minus signs", times("\\pm 1", 1000)},
      {"a long list", times("1,", 4000) + "1"},
      {"a long set", "\\{" + times("\\frac12,", 900) + "1\\}"},
      {"a large matrix", "\\begin{pmatrix}" + times("1&2&3&4\\\\", 500) + "\\end{pmatrix}"},
      {"a determinant", "\\begin{vmatrix}" + times(times("x&", 19) + "1\\\\", 20) + "\\end{vmatrix}"},
      {"powers of powers of a matrix",
       "(((\\begin{pmatrix}" + times(times("x+1&", 9) + "y\\\\", 10) + "\\end{pmatrix})^{16})^{16})^{16}"},
      {"a product of many matrices", times("\\begin{pmatrix}x&1\\\\1&y\\end{pmatrix}", 190)},
      {"determinants in determinants", times("\\begin{vmatrix}x&2\\\\3&", 90) + "1" + times("\\end{vmatrix}", 90)},
      {"many letters", "f(x)=" + times("a+b+c+C_1+k+", 300) + "x"},
      {"many implications", times("x=1\\implies ", 600) + "x=2"},
      {"many circled numerals", times("\\textcircled{1}", 500)},
      {"words with digits", times("R2D2 ", 40'000)},
      {"boxes in words", times("the next is \\boxed{1}, and ", 20'000)},
      {"a long decimal comma", times("1", 2000) + "," + times("3", 2000)},
      {"many lost letters", times("\frac{1}{", 400) + "1" + times("}", 400)},
      {"many unions", times("[0,1]\\cup", 700) + "[2,3]"},
      {"NUL", std::string("1\0002", 3)},
      {"all bytes", bytes},
      {"cut UTF-8", "\xe2\x88"},
      {"overlong UTF-8", "\xc0\xb7"},
      {"a surrogate", "\xed\xa0\x80"},
      {"backslashes", times("\\", 100'001)},
      {"an endless command", "\\" + times("a", 100'000)},
      {"carets", times("^", 5000)},
      {"subscripts", times("x_", 5000)},
      {"absolute values", times("|", 5000)},
      {"environments", times("\\begin{pmatrix}", 2000)},
      {"left", times("\\left(", 2000)},
      {"division by nothing", "\\frac{1}{0}"},
      {"0/0", "\\frac{0}{0}"},
      {"0^0", "0^{0}"},
      {"log of 0", "\\ln 0"},
      {"log of base 1", "\\log_1 7"},
      {"the root of index 0", "\\sqrt[0]{7}"},
      {"modulo 0", "7 \\bmod 0"},
      {"infinity less infinity", "\\infty-\\infty"},
      {"tan of a right angle", "\\tan\\frac{\\pi}{2}"},
      {"injected Python", "__import__('os').system('true')"},
      {"a macro", "\\def\\a{\\a\\a}\\a"},
  };
}

TEST(verifier_hostile, no_answer_is_paid_hangs_or_throws) {
  // 50 ms without sanitizers on a quiet machine; the bound here only separates a verdict from a hang.
  constexpr double kBound = 1;
  const std::vector<std::string> gold = {"41", "\\frac{\\sqrt{3}}{2}", "x^2+1"};
  for (const auto& [name, text] : hostile_answers()) {
    for (Extract extract : {Extract::bare, Extract::strict, Extract::lenient}) {
      double began = testing::cpu_seconds();
      Verdict as_answer = grade_one(gold, extract == Extract::strict ? str("\\boxed{", text, "}") : text, extract);
      EXPECT_LT(testing::cpu_seconds() - began, kBound) << name;
      EXPECT_NE(as_answer.kind, VerdictKind::equal) << name << ": " << as_answer.answer.substr(0, 80);
    }
    double began = testing::cpu_seconds();
    EXPECT_NE(grade_one({text}, "7").kind, VerdictKind::equal) << name;
    EXPECT_NE(grade_one({text}, text).kind, VerdictKind::unequal) << name;
    EXPECT_LT(testing::cpu_seconds() - began, 2 * kBound) << name;
  }
}

TEST(verifier_hostile, the_right_answer_beside_them_is_paid) {
  for (const auto& [name, text] : hostile_answers()) {
    EXPECT_EQ(grade_one({text, "7"}, "\\boxed{7}", Extract::strict).kind, VerdictKind::equal) << name;
  }
}

TEST(verifier_hostile, an_empty_gold_is_never_met) {
  for (const char* answer : {"", " ", "7", "None", "\\emptyset", "{}", "\\boxed{}"}) {
    EXPECT_NE(grade_one({""}, answer).kind, VerdictKind::equal) << answer;
    EXPECT_NE(grade_one({}, answer).kind, VerdictKind::equal) << answer;
    EXPECT_NE(grade_one({"", " ", "\\text{}"}, answer).kind, VerdictKind::equal) << answer;
  }
}

}  // namespace

}  // namespace ucas::math
