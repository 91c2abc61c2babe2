// No short answer may be worth something everywhere: each is rewarded for those gold answers that say it, and for few
// others. What a gold answer says is read here by a few lines of text, which know nothing of the verifier.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/rng.h"
#include "base/str.h"
#include "support/golds.h"
#include "verify/math/compare/compare.h"

namespace ucas::math {

namespace {

const std::vector<std::string>& short_answers() {
  static const std::vector<std::string> kAnswers = {"0",
                                                    "1",
                                                    "2",
                                                    "3",
                                                    "4",
                                                    "5",
                                                    "6",
                                                    "7",
                                                    "10",
                                                    "12",
                                                    "100",
                                                    "-1",
                                                    "-2",
                                                    "\\frac{1}{2}",
                                                    "0.5",
                                                    "\\pi",
                                                    "2\\pi",
                                                    "e",
                                                    "i",
                                                    "\\infty",
                                                    "-\\infty",
                                                    "\\emptyset",
                                                    "\\varnothing",
                                                    "\\{\\}",
                                                    "\\{0\\}",
                                                    "\\{\\emptyset\\}",
                                                    "\\text{none}",
                                                    "\\text{no solution}",
                                                    "\\text{does not exist}",
                                                    "\\text{all real numbers}",
                                                    "\\mathbb{R}",
                                                    "\\mathbb{Z}",
                                                    "(-\\infty, \\infty)",
                                                    "x",
                                                    "n",
                                                    "C",
                                                    "A",
                                                    "\\text{Yes}",
                                                    "\\text{No}",
                                                    "(0, 0)",
                                                    "(1, 1)",
                                                    "(1, 0)",
                                                    "[0, 1]",
                                                    "(0, 1)",
                                                    "[7, -3)",
                                                    "(2, 1]",
                                                    "5 < x < 3",
                                                    "\\pm 1",
                                                    "x > 0",
                                                    "x \\ge 0",
                                                    "x = x",
                                                    "x = y",
                                                    "0 = 0",
                                                    "x \\in \\mathbb{R}",
                                                    "f(x)",
                                                    "...",
                                                    "0/0",
                                                    "0x0",
                                                    "\\text{NaN}",
                                                    "1^\\infty",
                                                    "\\begin{pmatrix} 0 \\\\ 0 \\end{pmatrix}",
                                                    "0 \\cdot x",
                                                    "x^2",
                                                    "\\text{the answer}"};
  return kAnswers;
}

// Pieces of answers in no order.
std::string answer_of_pieces(Rng& rng) {
  static const std::vector<std::string> kPieces = {
      "0",   "1", "2",   "x", "n",       "\\pi", "\\infty", "(", ")",    "[", "]", ",", "+",          "-",      "^",
      "\\{", "=", "\\}", "<", "\\text{", "}",    "\\%",     "k", "\\pm", "/", "|", ":", "\\emptyset", "\\cup ", "..."};
  std::string text;
  for (int64_t left = 1 + rng.below(5); left > 0; --left) {
    text += kPieces[static_cast<size_t>(rng.below(static_cast<int64_t>(kPieces.size())))];
  }
  return text;
}

// What is left of a text without marks, blanks, words of units and a name in front.
std::string core_of(std::string text) {
  for (const char* mark :
       {"$",   "\\left", "\\right", "\\text", "\\mbox", "\\mathrm", "\\mathbb", "\\!",     "\\,", "\\;",
        "\\ ", "\\$",    "{",       "}",      " ",      "\n",       "~",        "^\\circ", "\\%", "Solutionis:"}) {
    for (size_t at; (at = text.find(mark)) != std::string::npos;) text.erase(at, std::string(mark).size());
  }
  for (size_t at; (at = text.find("dfrac")) != std::string::npos;) text.erase(at, 1);
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (size_t equals = text.rfind('='); equals != std::string::npos && equals + 1 < text.size())
    text.erase(0, equals + 1);
  while (text.ends_with('.') && text.size() > 1 && !text.ends_with("..")) text.pop_back();
  if (text.ends_with(":1")) text.resize(text.size() - 2);
  bool number = !text.empty() &&
                text.find_first_not_of("0123456789.+-abcdefghijklmnopqrstuvwxyz/") == std::string::npos &&
                std::string("0123456789.-+").find(text[0]) != std::string::npos;
  if (number) text = text.substr(0, text.find_first_of("abcdefghijklmnopqrstuvwxyz"));
  return text;
}

std::optional<double> number_of(const std::string& core) {
  std::string text = core;
  if (text.starts_with("\\frac") && text.size() == 7) text = str(text.substr(5, 1), "/", text.substr(6));
  std::replace(text.begin(), text.end(), ':', '/');
  if (text.empty() || text.find_first_not_of("0123456789.+-/") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (*end == '/') value /= std::strtod(end + 1, &end);
  return *end == '\0' && end != text.c_str() ? std::optional(value) : std::nullopt;
}

// Texts that say the same as others, after core_of().
std::string said_by(const std::string& core) {
  static const std::map<std::string, std::string> kSame = {{"0\\cdotx", "0"},
                                                           {"nosolution", "none"},
                                                           {"\\emptyset", "none"},
                                                           {"\\varnothing", "none"},
                                                           {"\\\\", "none"},
                                                           {"allrealnumbers", "r"},
                                                           {"x\\inr", "r"},
                                                           {"(-\\infty,\\infty)", "r"},
                                                           {"doesnotexist", "undefined"},
                                                           {"180", "\\pi"},
                                                           {"360", "2\\pi"},
                                                           {"infinitenumberofsolutions", "\\infty"},
                                                           {"x\\ge0", "[0,\\infty)"},
                                                           {"\\x\\midx\\geq0\\", "[0,\\infty)"},
                                                           {"x>0", "(0,\\infty)"},
                                                           {"-1,1", "\\pm1"},
                                                           {"1,-1", "\\pm1"}};
  if (auto at = kSame.find(core); at != kSame.end()) return at->second;
  if (core.size() == 3 && core[0] == '(' && core[2] == ')') return core.substr(1, 1);  // (A)
  if (core.starts_with("\\0") && core.size() == 3) return "0";
  return core;
}

bool says(const std::string& gold, const std::string& answer) {
  std::string g = core_of(gold), a = core_of(answer);
  auto x = number_of(g), y = number_of(said_by(a));
  bool gold_share = gold.find('%') != std::string::npos, answer_share = answer.find('%') != std::string::npos;
  if (x && y && (*x == *y || (gold_share && *x == 100 * *y) || (answer_share && *y == 100 * *x))) return true;
  return said_by(g) == said_by(a);
}

struct Rewarded {
  int64_t all = 0, other = 0;  // other: the gold answer does not say it
  std::string examples;
};

Rewarded rewarded_for(const std::string& text, const std::vector<ReadAnswer>& golds) {
  Rewarded rewarded;
  ReadAnswer answer = read_answer(text);
  for (const ReadAnswer& gold : golds) {
    Budget budget;
    if (compare_answers(gold, answer, budget).kind != VerdictKind::equal) continue;
    ++rewarded.all;
    if (says(gold.source, text)) continue;
    ++rewarded.other;
    rewarded.examples += str("  ", gold.source, "\n");
  }
  return rewarded;
}

void expect_no_universal_answer(const std::vector<std::string>& texts, size_t random, int64_t other) {
  std::vector<ReadAnswer> golds;
  for (const std::string& text : texts) golds.push_back(read_answer(text));
  Rng rng(5, 3);
  std::vector<std::string> answers = short_answers();
  for (size_t k = 0; k < random; ++k) answers.push_back(answer_of_pieces(rng));
  for (const std::string& answer : answers) {
    Rewarded rewarded = rewarded_for(answer, golds);
    EXPECT_LE(rewarded.other, other) << answer << " is rewarded for " << rewarded.all << " gold answers, of which "
                                     << rewarded.other << " do not say it:\n"
                                     << rewarded.examples;
  }
}

TEST(verifier_universal, no_short_answer_is_paid_for_more_golds_of_our_own_than_say_it) {
  expect_no_universal_answer(math_golds::own(), 500, 2);
}

TEST(verifier_universal, no_short_answer_is_paid_for_more_golds_of_the_data_sets_than_say_it) {
  std::vector<std::string> golds = math_golds::shared();
  if (golds.empty()) GTEST_SKIP() << "no shared data (set UCAS_SHARED_DATA)";
  expect_no_universal_answer(golds, 12, 3);
}

}  // namespace

}  // namespace ucas::math
