#include "data/contamination.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/str.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

using WordRun = std::span<const std::string>;

uint64_t hash_of_words(WordRun words) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const std::string& word : words) XXH3_64bits_update(&state, word.c_str(), word.size() + 1);
  return XXH3_64bits_digest(&state);
}

// Chinese, Japanese, Thai: a letter is a word.
bool stands_alone(uint32_t code) {
  return (code >= 0x0E00 && code < 0x0E80) || (code >= 0x2E80 && code < 0xAC00) || (code >= 0xF900 && code < 0xFB00) ||
         code >= 0x20000;
}

// A word, or one sign of an expression.
struct SpelledPiece {
  std::string text;
  bool sign = false;
  bool prose = false;  // of two letters or more, and no command of LaTeX
  bool apart = false;  // a space stands before it
};

constexpr std::pair<std::string_view, std::string_view> kCommands[] = {
    {"times", "*"},     {"cdot", "*"}, {"ast", "*"},  {"div", "/"},       {"le", "<="}, {"leq", "<="},
    {"leqslant", "<="}, {"ge", ">="},  {"geq", ">="}, {"geqslant", ">="}, {"ne", "!="}, {"neq", "!="},
    {"pm", "+-"},       {"lt", "<"},   {"gt", ">"},   {"mid", "|"},       {"vert", "|"}};
constexpr std::string_view kLayout[] = {"left", "right", "displaystyle", "text", "textbf", "textit", "mathrm", "mathbf",
                                        "quad", "qquad", "big",          "Big",  "bigl",   "bigr",   "Bigl",   "Bigr"};
constexpr std::pair<uint32_t, std::string_view> kSigns[] = {
    {'+', "+"},  {'-', "-"},    {'*', "*"},  {'/', "/"},     {'=', "="},     {'<', "<"},     {'>', ">"},
    {'^', "^"},  {'%', "%"},    {'|', "|"},  {'(', "("},     {')', ")"},     {0x2212, "-"},  {0xD7, "*"},
    {0xB7, "*"}, {0x22C5, "*"}, {0xF7, "/"}, {0x2264, "<="}, {0x2265, ">="}, {0x2260, "!="}, {0xB1, "+-"}};

std::string_view sign_of(uint32_t code) {
  for (const auto& [from, to] : kSigns) {
    if (from == code) return to;
  }
  return "";
}

// `\times` is `*`, `\left` nothing, `\dfrac` `\frac`: what a command of LaTeX is here.
void read_command(SpelledPiece piece, std::vector<SpelledPiece>& into) {
  for (const auto& [name, sign] : kCommands) {
    if (piece.text != name) continue;
    into.push_back({std::string(sign), true, false, piece.apart});
    return;
  }
  if (std::ranges::find(kLayout, piece.text) != std::end(kLayout)) return;
  if (piece.text == "dfrac" || piece.text == "tfrac") piece.text = "frac";
  piece.prose = false;
  into.push_back(std::move(piece));
}

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
  }
  return text;
}

bool is_digit(const std::string& text, size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; }

// From `at`, which is a letter's or a number's first byte: 12, 1.5, x, train, or one Chinese letter.
SpelledPiece read_word(const std::string& text, size_t& at) {
  SpelledPiece piece;
  int64_t letters = 0;
  const bool number = is_digit(text, at);
  for (size_t begin = at; at < text.size();) {
    const Char c = char_at(text, at);
    const bool point = number && c.code == '.' && is_digit(text, at - 1) && is_digit(text, at + 1);
    const uint32_t kind = char_class(c.code);
    if (!point && (kind & (kLetter | kNumber)) == 0) break;
    if (stands_alone(c.code) && at > begin) break;
    letters += (kind & kLetter) != 0;
    piece.text += text.substr(at, c.length);
    at += c.length;
    if (stands_alone(c.code)) break;
  }
  piece.prose = letters >= 2;
  return piece;
}

std::vector<SpelledPiece> pieces_of(const std::string& text) {
  std::vector<SpelledPiece> pieces;
  bool apart = true, command = false;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if ((char_class(c.code) & (kLetter | kNumber)) != 0) {
      SpelledPiece piece = read_word(text, at);
      piece.apart = apart;
      if (command) {
        read_command(std::move(piece), pieces);
      } else {
        piece.text = lower_case(std::move(piece.text));
        pieces.push_back(std::move(piece));
      }
      apart = command = false;
      continue;
    }
    // `--` is a dash, `**` marks bold text; `<=` is one sign.
    size_t end = at + c.length;
    while (c.length == 1 && end < text.size() && text[end] == text[at] && (text[at] == '-' || text[at] == '*')) ++end;
    if (const std::string_view sign = sign_of(c.code); !sign.empty() && end == at + c.length) {
      pieces.push_back({std::string(sign), true, false, apart});
      const bool bound = sign == "<" || sign == ">";
      if (bound && end < text.size() && text[end] == '=') {
        pieces.back().text += '=';
        ++end;
      }
      apart = false;
    } else if (c.code == ' ' || c.code == '\n' || c.code == '\t') {
      apart = true;
    }
    command = c.code == '\\';
    at = end;
  }
  return pieces;
}

bool is_parenthesis(const SpelledPiece& piece) { return piece.sign && (piece.text == "(" || piece.text == ")"); }

// Which parentheses change what an expression says: those around a sign and no words, as in 2(x + 1).
std::vector<bool> grouping_parentheses(const std::vector<SpelledPiece>& pieces) {
  struct Open {
    size_t at;
    bool sign = false, prose = false;
  };
  std::vector<bool> groups(pieces.size());
  std::vector<Open> open;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const SpelledPiece& piece = pieces[i];
    if (piece.sign && piece.text == "(") {
      open.push_back({i});
    } else if (piece.sign && piece.text == ")" && !open.empty()) {
      const Open last = open.back();
      open.pop_back();
      groups[last.at] = groups[i] = last.sign && !last.prose;
      if (open.empty()) continue;
      open.back().sign |= last.sign;
      open.back().prose |= last.prose;
    } else if (!open.empty()) {
      open.back().sign |= piece.sign;
      open.back().prose |= piece.prose;
    }
  }
  return groups;
}

// A minus, and no hyphen (ten-sided, part-2) or dash (a number - any number).
bool is_minus(const std::vector<SpelledPiece>& pieces, size_t at) {
  if (at + 1 < pieces.size() && pieces[at + 1].prose) return false;
  return at == 0 || !pieces[at - 1].prose || pieces[at].apart;
}

// Where a run of words begins: which evaluated problem, and at which word.
struct Begin {
  uint32_t problem, at;
};

// Of a run that very many problems have (a standing phrase), only so many are followed.
constexpr size_t kMostBegins = 256;

class Search {
 public:
  Search(const std::vector<Problem>& evaluated, int64_t run)
      : run_(static_cast<size_t>(run)), found_(evaluated.size()) {
    for (size_t i = 0; i < evaluated.size(); ++i) {
      words_.push_back(words_of_problem(evaluated[i].text));
      const WordRun words = words_.back();
      if (words.empty()) continue;
      const auto problem = static_cast<uint32_t>(i);
      whole_[hash_of_words(words)].push_back({problem, 0});
      for (size_t at = 0; at + run_ <= words.size(); ++at) {
        auto& begins = begins_[hash_of_words(words.subspan(at, run_))];
        if (begins.size() < kMostBegins) begins.push_back({problem, static_cast<uint32_t>(at)});
      }
    }
  }

  void look_at(const Problem& problem, size_t index) {
    const std::vector<std::string> own = words_of_problem(problem.text);
    const WordRun words = own;
    if (words.empty()) return;
    best_.clear();
    if (const auto same = whole_.find(hash_of_words(words)); same != whole_.end()) {
      for (const Begin& begin : same->second) note(begin, words.size(), true);
    }
    for (size_t at = 0; at + run_ <= words.size(); ++at) {
      const auto here = begins_.find(hash_of_words(words.subspan(at, run_)));
      if (here == begins_.end()) continue;
      for (const Begin& begin : here->second) note(begin, length_of_run(words, at, begin), false);
    }
    for (const auto& [problem_index, best] : best_) take(problem_index, best, index);
  }

  std::vector<Overlap> all() {
    std::vector<Overlap> out;
    for (Overlap& overlap : found_) {
      if (overlap.shared > 0) out.push_back(std::move(overlap));
    }
    return out;
  }

 private:
  struct Best {
    size_t at = 0, length = 0;
    bool whole = false;
  };

  size_t length_of_run(WordRun words, size_t at, const Begin& begin) const {
    const std::vector<std::string>& other = words_[begin.problem];
    size_t length = 0;
    while (at + length < words.size() && begin.at + length < other.size() &&
           words[at + length] == other[begin.at + length]) {
      ++length;
    }
    return length;
  }
  void note(const Begin& begin, size_t length, bool whole) {
    Best& best = best_[begin.problem];
    best.whole = best.whole || whole || length == words_[begin.problem].size();
    if (length > best.length) {
      best.length = length;
      best.at = begin.at;
    }
  }
  void take(uint32_t problem, const Best& best, size_t trained) {
    if (best.length == 0) return;
    Overlap& overlap = found_[problem];
    const bool first = overlap.shared == 0;
    if (!first) ++overlap.others;
    overlap.whole = overlap.whole || best.whole;
    if (!first && static_cast<int64_t>(best.length) <= overlap.shared) return;
    overlap.evaluated = problem;
    overlap.trained = trained;
    overlap.shared = static_cast<int64_t>(best.length);
    overlap.words = std::ssize(words_[problem]);
    const auto begin = words_[problem].begin() + static_cast<int64_t>(best.at);
    overlap.text = join({begin, begin + overlap.shared}, " ");
  }

  const size_t run_;
  std::vector<std::vector<std::string>> words_;  // of each evaluated problem
  std::unordered_map<uint64_t, std::vector<Begin>> begins_, whole_;
  std::unordered_map<uint32_t, Best> best_;  // of the training problem at hand
  std::vector<Overlap> found_;
};

}  // namespace

std::vector<std::string> words_of_problem(const std::string& text) {
  const std::vector<SpelledPiece> pieces = pieces_of(text);
  const std::vector<bool> grouping = grouping_parentheses(pieces);
  std::vector<std::string> words;
  std::string signs;  // before the next word
  for (size_t i = 0; i < pieces.size(); ++i) {
    const SpelledPiece& piece = pieces[i];
    if (!piece.sign) {
      words.push_back(signs + piece.text);
      signs.clear();
    } else if (is_parenthesis(piece) ? !grouping[i] : piece.text == "-" && !is_minus(pieces, i)) {
      continue;
    } else if ((piece.text == "%" || piece.text == ")") && signs.empty() && !words.empty()) {
      words.back() += piece.text;
    } else {
      signs += piece.text;
    }
  }
  if (!words.empty()) words.back() += signs;
  return words;
}

std::vector<Overlap> find_overlaps(const std::vector<Problem>& trained, const std::vector<Problem>& evaluated,
                                   int64_t run) {
  Search search(evaluated, run);
  for (size_t i = 0; i < trained.size(); ++i) search.look_at(trained[i], i);
  return search.all();
}

}  // namespace ucas
