// Letters and what they name: variables with indices and primes, functions, words, numerals in other bases.
#include <algorithm>

#include "base/str.h"
#include "verify/math/read/letters.h"
#include "verify/math/read/parser_impl.h"

namespace ucas::math {

namespace {

constexpr std::string_view kShortNames = "tg sh ch th cth";  // of functions; plain letters of a formula are a product

int digit_value(char c) { return is_digit(c) ? c - '0' : (c | 32) - 'a' + 10; }

}  // namespace

// A run of letters in a formula is a product of variables unless it looks like a word: four letters or more with a
// vowel, not in alphabetical order (abcd), or letters beyond ASCII.
bool looks_like_word(std::string_view run) {
  bool ascii = std::all_of(run.begin(), run.end(), [](char c) { return is_lower(c) || is_upper(c); });
  if (!ascii) return true;
  if (run.size() < 3) return run == "no" || run == "No" || run == "NO";
  std::string low = lower_case(run);
  constexpr std::string_view kShort =
      "yes odd one two six ten all any not red the for and are has can may set even none";
  if (in_words(kShort, low)) return true;
  if (run.size() == 3) return false;
  bool capitals = std::all_of(run.begin(), run.end(), is_upper);
  bool vowel = low.find_first_of("aeiou") != std::string::npos;
  bool alphabet = std::is_sorted(low.begin(), low.end()) && low.back() - low.front() <= static_cast<int>(low.size());
  return vowel && !capitals && !alphabet;
}

// 1011_2, 2A_{16}, \text{AF}_{16}, 11_{\text{two}}, 101 base 2; kNoNode without failing for anything else.
NodeId Parser::based_atom() {
  std::string digits;
  size_t i = 0;
  bool letters = false;
  for (; i < 8; ++i) {
    const Token& token = peek(i);
    bool part = (token.kind == TokenKind::number && token.exponent == 0 && token.repeat == 0) ||
                (token.kind == TokenKind::word && std::all_of(token.text.begin(), token.text.end(), is_upper));
    if (!part || (i > 0 && token.space_before)) break;
    letters |= token.kind == TokenKind::word;
    digits += token.text;
  }
  if (i == 0) return kNoNode;
  size_t base_at = i;
  bool brace = false;
  if (is_symbol('_', i)) {
    brace = is_symbol('{', i + 1);
    base_at = i + 1 + brace;
  } else if (is_word("base", i) && !letters) {
    base_at = i + 1;
  } else {
    return kNoNode;
  }
  const Token& token = peek(base_at);
  int base = 0;
  if (token.kind == TokenKind::number && token.text.size() <= 2 && token.text.find('.') == std::string_view::npos) {
    for (char c : token.text) base = base * 10 + (c - '0');
  } else if (token.kind == TokenKind::word) {
    base = number_word(lower_case(token.text));
    if (token.text == "sixteen") base = 16;
  }
  size_t end = base_at + 1;
  if (brace && !is_symbol('}', end)) return kNoNode;
  end += brace;
  // "A_2" is a variable: digits come first, or the base needs letters.
  if (base < 2 || base > 36 || (peek().kind == TokenKind::word && base <= 10)) return kNoNode;
  int points = 0;
  for (char& c : digits) {
    points += c == '.';
    if (c != '.' && digit_value(c) >= base) return kNoNode;
    if (is_upper(c)) c = static_cast<char>(c + 32);
  }
  if (points > 1) return kNoNode;
  advance(end);
  return make(Kind::based, 0, {}, digits, base);
}

NodeId Parser::subscript(std::string& name) {
  // Index texts become part of the name: x_1, a_{n+1}, x_{\max}.
  advance();
  std::string index;
  auto add = [&](const Token& token) {
    if (token.kind == TokenKind::symbol || token.kind == TokenKind::relation) {
      index.push_back(token.symbol);
    } else {
      index += token.text;
    }
  };
  if (is_symbol('{')) {
    int depth = 0;
    do {
      if (peek().kind == TokenKind::end) return fail("an index is not closed");
      depth += is_symbol('{') ? 1 : is_symbol('}') ? -1 : 0;
      if (!is_symbol('{') && !is_symbol('}')) add(peek());
      advance();
    } while (depth > 0);
  } else if (peek().kind == TokenKind::word && peek().style == Style::math && peek().text.size() > 1 &&
             !looks_like_word(peek().text)) {
    index += peek().text.substr(0, 1);
    current().text.remove_prefix(1);
    current().space_before = false;
  } else if (peek().kind == TokenKind::end || at_stop()) {
    return fail("an index is missing");
  } else {
    add(peek());
    advance();
  }
  name += "_" + index;
  return 0;
}

NodeId Parser::symbol_named(std::string name) {
  if (is_symbol('_') && subscript(name) == kNoNode) return kNoNode;
  std::string primes;
  while (is_symbol('\'')) {
    primes.push_back('\'');
    advance();
  }
  while (is_symbol('^') && (is_symbol('\'', 1) || (is_symbol('{', 1) && is_symbol('\'', 2)))) {
    advance();
    bool brace = take_symbol('{');
    while (take_symbol('\'')) primes.push_back('\'');
    if (brace && !take_symbol('}')) return fail("a prime with more");
  }
  return apply_or_multiply(name + primes);
}

// A numeral alone between brackets, (0) or (-2), or such a value of another letter, (t(3)); how many tokens it has.
size_t Parser::numeral_in_brackets(size_t at) const {
  if (!is_symbol('(', at) || at > 60) return 0;
  size_t i = at + 1;
  if (peek(i).kind == TokenKind::word && peek(i).text.size() == 1) {
    size_t inner = numeral_in_brackets(i + 1);
    i = inner > 0 ? i + 1 + inner : i;
  } else {
    i += is_symbol('-', i);
    if (peek(i).kind == TokenKind::number) ++i;
  }
  bool any = i > at + 1 && !is_symbol('-', i - 1);
  return any && is_symbol(')', i) ? i + 1 - at : 0;
}

// x(y) is a product, f(x) a call: names that an equation of the answer defines ("P(x) = ..") and f, g, F, G, \phi with
// primes or indices are functions; so is any letter at a number, y(0). Everything else is a factor.
NodeId Parser::apply_or_multiply(std::string_view name) {
  auto base = name.substr(0, name.find_first_of("_'"));
  bool usual = base == "f" || base == "g" || base == "F" || base == "G" || base == "phi" || base == "varphi";
  bool defined = std::find(functions_.begin(), functions_.end(), name) != functions_.end();
  bool inverse = usual && is_symbol('^') && is_symbol('{', 1) && is_symbol('-', 2) && peek(3).text == "1" &&
                 is_symbol('}', 4) && is_symbol('(', 5);
  bool function = usual || defined || name.find('\'') != std::string_view::npos || numeral_in_brackets(0) > 0;
  if (!function || (!is_symbol('(') && !inverse)) {
    return symbol(name);
  }
  std::string called(name);
  if (inverse) {
    called += "^-1";
    advance(5);
  }
  Items given;
  if (!arguments(given)) return kNoNode;
  return make(Kind::call, Function::user, given.nodes, called);
}

// sinx, lnx, 2sin2x: a function stuck to its argument; kNoNode without failing for anything else.
NodeId Parser::stuck_function() {
  Token& token = current();
  std::string_view run = token.text;
  for (size_t length = std::min<size_t>(6, run.size() - 1); length >= 2; --length) {
    auto function = find_function(run.substr(0, length));
    std::string_view name = run.substr(0, length);  // that, ship
    bool product = in_words(kShortNames, name) && (token.style == Style::math || name != "tg");
    if (!function || product || run.size() - length > 2 || *function == Function::real_part ||
        *function == Function::imaginary_part || *function == Function::max || *function == Function::min) {
      continue;
    }
    token.text.remove_prefix(length);
    token.space_before = false;
    return function_call(*function);
  }
  return kNoNode;
}

// Neither a factor nor a term, nor a part of a fraction or an exponent: HTHH and ABC are words there, and NRT of
// \frac{NRT}{P} a product.
bool Parser::stands_alone() const {
  if (!at_stop(1) && peek(1).kind != TokenKind::relation && !is_symbol(':', 1)) return false;
  if (at_ == 0) return true;
  const Token &before = tokens_[at_ - 1], &outer = tokens_[at_ > 1 ? at_ - 2 : 0];
  bool group = before.symbol == '{' && at_ > 1 &&
               (std::string_view("}^_").find(outer.symbol) != std::string_view::npos ||
                (outer.kind == TokenKind::command && outer.command->meaning == Meaning::fraction));
  bool operation = before.kind == TokenKind::symbol && std::string_view(",;([{:|AO&").find(before.symbol) == kNone;
  bool factor = before.kind == TokenKind::number || before.kind == TokenKind::command ||
                (before.kind == TokenKind::word && conjunction(before.text) == '\0');
  return !group && !operation && !factor;
}

// A run of letters that is a name as a whole: sin, pi, infinity, theta; kNoNode without failing for a product of
// letters.
NodeId Parser::named_run() {
  const Token& token = current();
  std::string_view run = token.text;
  bool product = in_words(kShortNames, run) && token.style == Style::math;
  if (auto function = find_function(run); function && !product) {
    advance();
    return function_call(*function);
  }
  if (run.size() > 2 && run != "INF" && std::all_of(run.begin(), run.end(), is_upper) && stands_alone()) {
    std::string word(run);
    advance();
    NodeId value = words_value(lower_case(word));
    return value != kNoNode || failed_ ? value : symbol_named(word);
  }
  if (run == "pi" || run == "Pi" || run == "PI") {
    advance();
    return constant(Constant::pi);
  }
  std::string low = lower_case(run);
  if (low == "inf" || low == "infty" || low == "infinity" || low == "oo") {
    advance();
    return constant(Constant::infinity);
  }
  if (const Command* greek = find_command(run); greek && greek->meaning == Meaning::greek && run.size() > 2) {
    std::string name(run);
    advance();
    return symbol_named(name);
  }
  if (NodeId call = stuck_function(); call != kNoNode || failed_) return call;
  bool formula = token.style == Style::math || token.style == Style::bold || token.style == Style::blackboard;
  if (looks_like_word(run) || (!formula && is_lower(run.back()) && run.size() > 2)) {
    return fail(str("the word \"", run.substr(0, 24), "\""));
  }
  return kNoNode;
}

// \mathbb{Z}, \mathbb{Z}^+, \mathbb{R}_{>0}; \mathbb{R}^2 leaves its power to postfix().
NodeId Parser::set_of_numbers(char letter) {
  size_t which = std::string_view("NZQRC").find(letter);
  if (which == std::string_view::npos) return kNoNode;
  NodeId node = constant(static_cast<Constant>(static_cast<size_t>(Constant::naturals) + which));
  bool power = is_symbol('^') && peek(1).kind == TokenKind::number;
  if (power || (!is_symbol('^') && !is_symbol('_'))) return node;
  std::string name = str("set ", letter);
  if (subscript(name) == kNoNode) return kNoNode;
  return symbol(name);
}

NodeId Parser::chosen(NodeId from, NodeId taken, bool ordered) {
  NodeId call = make(Kind::call, {from, taken}, Function::binomial);
  return ordered ? make(Kind::product, {call, make(Kind::call, {taken}, Function::factorial)}) : call;
}

// C_{10}^{3}, C^3_{10} and C^{10}_3, P_8^3 and A_8^3, C(10, 3) and P(8, 3): of two numerals behind the letter, which
// has been read; kNoNode without failing for other indices, of which C_2^2 is one: the square of a constant.
NodeId Parser::combination(char letter) {
  auto whole = [&](size_t k) { return peek(k).kind == TokenKind::number && peek(k).text.find('.') == kNone; };
  if (letter != 'A' && is_symbol('(') && whole(1) && is_symbol(',', 2) && whole(3) && is_symbol(')', 4) &&
      std::pair(peek(1).text.size(), peek(1).text) >= std::pair(peek(3).text.size(), peek(3).text)) {
    NodeId from = number(peek(1).text), taken = number(peek(3).text);
    advance(5);
    return chosen(from, taken, letter == 'P');
  }
  bool above_first = is_symbol('^');
  int values[2] = {-1, -1};  // below, above
  size_t i = 0;
  for (int k = 0; k < 2; ++k) {
    bool above = is_symbol('^', i);
    if (!above && !is_symbol('_', i)) return kNoNode;
    bool brace = is_symbol('{', i + 1);
    const Token& token = peek(i + 1 + brace);
    bool numeral = token.kind == TokenKind::number && token.text.size() <= 4 && token.exponent == 0 &&
                   token.text.find('.') == std::string_view::npos;
    if (!numeral || (brace && !is_symbol('}', i + 3)) || values[above] >= 0) return kNoNode;
    values[above] = 0;
    for (char c : token.text) values[above] = values[above] * 10 + (c - '0');
    i += brace ? 4 : 2;
  }
  auto [n, k] = values;
  if (above_first && k > n && k > 2) std::swap(n, k);
  if (n < 2 || k > n || (n == 2 && k == 2)) return kNoNode;
  advance(i);
  note("a letter with two numerals read as a number of choices");
  return chosen(number(str(n)), number(str(k)), letter != 'C');
}

// {}^{10}C_3, {}_{10}C_3 and {}^{10}P_3, of which the order counts.
NodeId Parser::scripted_combination() {
  advance();
  NodeId from = argument(false);
  bool ordered = is_word("P");
  if (from == kNoNode || !(ordered || is_word("C")) || !is_symbol('_', 1)) return fail("an exponent without a base");
  advance(2);
  return chosen(from, argument(false), ordered);
}

// One letter of a run of variables.
NodeId Parser::letter_atom() {
  Token& token = current();
  char letter = token.text[0];
  Style style = token.style;
  if (static_cast<unsigned char>(letter) >= 0x80) return fail("a letter that is no variable");
  if (token.text.size() > 1) {
    token.text.remove_prefix(1);
    token.space_before = false;
  } else {
    advance();
  }
  if (style == Style::blackboard) {
    if (NodeId set = set_of_numbers(letter); set != kNoNode || failed_) return set;
  }
  if (letter == 'C' || letter == 'P' || letter == 'A') {
    if (NodeId choices = combination(letter); choices != kNoNode || failed_) return choices;
  }
  if (style != Style::bold && !is_symbol('_') && !is_symbol('\'')) {
    if (letter == 'e') return constant(Constant::e);
    if (letter == 'i') return constant(Constant::i);
  }
  return symbol_named(std::string(1, letter));
}

// BC behind AB/ and dx behind dy/: the letters of a segment belong together; kNoNode without failing for anything else.
NodeId Parser::segment(NodeId above) {
  const Token& token = peek();
  bool pair = token.kind == TokenKind::word && !token.grouped && token.text.size() == 2 &&
              (std::all_of(token.text.begin(), token.text.end(), is_upper) ||
               (token.text[0] == 'd' && above != kNoNode && is_differential(above, true)));
  if (!pair || peek(1).kind == TokenKind::word) return kNoNode;
  NodeId first = symbol(token.text.substr(0, 1)), second = symbol(token.text.substr(1));
  advance();
  return make(Kind::product, {first, second});
}

NodeId Parser::word_atom() {
  if (is_word("nPr") && is_symbol('(', 1)) {
    advance();
    NodeId ordered = combination('P');
    return ordered != kNoNode ? ordered : fail("a number of choices out of what");
  }
  if (!current().grouped && current().text.size() > 1) {
    if (NodeId name = named_run(); name != kNoNode || failed_) return name;
    current().grouped = true;  // letters, one by one
  }
  return letter_atom();
}

}  // namespace ucas::math
