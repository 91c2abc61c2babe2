// From the whole answer down to one side of a relation: lists, clauses, chains, words, ratios, sets.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/str.h"
#include "verify/math/read/parser_impl.h"

namespace ucas::math {

namespace {

constexpr std::string_view kClauseWords = "where for if when with such given while as";
// What people write before an answer: adverbs alone, or a phrase that ends with "is", "are" or a colon.
constexpr std::string_view kAdverbs =
    "only precisely thus so hence therefore then about approximately roughly exactly around nearly approx circa ca "
    "environ etwa";
constexpr std::string_view kIntroduction =
    "the answer answers solution solutions set final value correct result our required my there";
// Behind "the" and in front of a verb: the ratio is 3:4.
constexpr std::string_view kQuantities = "ratio number total sum area volume length probability range perimeter";
// Whole phrases of the same, also in other languages.
// clang-format off
constexpr std::string_view kFrames[] = {
    "a total of", "in total", "il y a", "la r\u00e9ponse est", "le r\u00e9sultat est", "le nombre est",
    "le nombre total est", "die antwort ist", "das ergebnis ist", "es gibt", "la respuesta es", "el resultado es",
    "a v\u00e1lasz"};
// clang-format on
// In front of a number in Chinese: in all, there are, the answer is.
constexpr std::string_view kChineseFrames =
    "\u5171 \u5171\u6709 \u4e00\u5171 \u4e00\u5171\u6709 \u603b\u5171 \u603b\u5171\u6709 \u5171\u8ba1 "
    "\u7b54\u6848\u662f \u7b54\u6848\u4e3a \u7b54\u6848 \u7ed3\u679c\u662f \u7ed3\u679c\u4e3a \u6709";

struct PhraseGroup {
  Constant constant;
  std::string_view keys;
};
constexpr PhraseGroup kPhrases[] = {
    {Constant::reals, "allrealnumbers allreals anyrealnumber realnumbers reals allreal"},
    {Constant::integers, "allintegers integers anyinteger"},
    {Constant::naturals, "allnaturalnumbers"},
    {Constant::no_answer,
     "nosolution nosolutions norealsolution norealsolutions none nointegersolutions therearenosolutions"},
    {Constant::undefined, "doesnotexist dne undefined notdefined"},
    {Constant::empty_set, "emptyset"},
    {Constant::infinity, "infinity positiveinfinity"},
};

// "infinitely many", "there is an infinite number of solutions" (articles are gone already).
bool says_infinite(std::string_view key) {
  for (std::string_view start : {std::string_view("thereare"), std::string_view("thereis")}) {
    if (key.starts_with(start)) key.remove_prefix(start.size());
  }
  if (!key.starts_with("infinite")) return false;
  key.remove_prefix(8);
  for (std::string_view filler : {std::string_view("ly"), std::string_view("many"), std::string_view("numberof"),
                                  std::string_view("amountof"), std::string_view("number")}) {
    if (key.starts_with(filler)) key.remove_prefix(filler.size());
  }
  constexpr std::string_view kCounted[] = {"",         "solution", "solutions",    "value",   "values",
                                           "numbers",  "ways",     "many",         "answers", "roots",
                                           "integers", "choices",  "possibilities"};
  return among(kCounted, key);
}

}  // namespace

bool Parser::is_connective(size_t ahead) const {
  const Token& token = peek(ahead);
  if (token.kind == TokenKind::symbol) {
    return token.symbol == ',' || token.symbol == ';' || token.symbol == 'A' || token.symbol == 'O' ||
           (token.symbol == '&' && !in_environment_) ||
           (token.symbol == 'U' && relation_seen_ && starts_equation(ahead + 1));
  }
  if (token.kind == TokenKind::separator || (token.kind == TokenKind::row && !in_environment_)) return true;
  if (token.kind != TokenKind::word) return false;
  // Of other languages only where they are set apart: 3et is a product.
  bool apart = token.style != Style::math || token.space_before;
  if (apart) return conjunction(token.text) != '\0';
  std::string low = lower_case(token.text);
  return (low == "or" || low == "and") && conjunction(token.text) != '\0';
}

// x = or x_1 =: behind another equation \cup then parts two of them, x_1 = 2 \cup x_2 = 3.
bool Parser::starts_equation(size_t ahead) const {
  if (peek(ahead).kind != TokenKind::word || peek(ahead).text.size() != 1) return false;
  size_t next = ahead + 1;
  if (is_symbol('_', next)) {
    bool brace = is_symbol('{', next + 1);
    next += 2 + 2 * static_cast<size_t>(brace);
  }
  return peek(next).kind == TokenKind::relation && peek(next).symbol == relation::kEqual;
}

bool Parser::at_stop(size_t ahead) const {
  const Token& token = peek(ahead);
  if (token.kind == TokenKind::end || is_connective(ahead)) return true;
  if (token.kind == TokenKind::row) return true;
  if (token.kind == TokenKind::command) {
    return token.command->meaning == Meaning::closing || token.command->meaning == Meaning::end;
  }
  if (token.kind != TokenKind::symbol) return false;
  if (token.symbol == '.')
    return peek(ahead + 1).kind == TokenKind::end || peek(ahead + 1).kind == TokenKind::separator;
  if (token.symbol == '|' || token.symbol == 'V') return bars_ > 0 || set_bar_;
  return token.symbol == ')' || token.symbol == ']' || token.symbol == '}' || token.symbol == '&' ||
         (token.symbol == ':' && set_bar_);
}

bool Parser::connective(Items& out) {
  bool any = false;
  while (is_connective() || (any && is_symbol('.') && at_stop())) {
    const Token& token = peek();
    Connective found = Connective::comma;
    if (token.kind == TokenKind::word) {
      found = conjunction(token.text) == 'o' ? Connective::conj_or : Connective::conj_and;
    }
    if (token.kind == TokenKind::symbol && token.symbol == ';') found = Connective::semicolon;
    if (token.kind == TokenKind::symbol && (token.symbol == 'O' || token.symbol == 'U')) found = Connective::conj_or;
    if (token.kind == TokenKind::symbol && (token.symbol == 'A' || token.symbol == '&')) found = Connective::conj_and;
    out.logic |= token.kind == TokenKind::symbol && (token.symbol == 'A' || token.symbol == 'O');
    if (token.kind == TokenKind::row) found = Connective::semicolon;
    if (!any || static_cast<int>(found) > static_cast<int>(out.connective)) out.connective = found;
    any = true;
    advance();
  }
  return any;
}

// Items up to a closing bracket or the end, then grouped: "x = 1, y = 2 or x = 2, y = 1" is an or of two lists.
bool Parser::items(Items& out) {
  std::vector<Connective> gaps;
  std::vector<NodeId> nodes, conditions;
  bool outer_relation = std::exchange(relation_seen_, false);
  while (is_connective() && peek().kind != TokenKind::word && peek().kind != TokenKind::symbol) advance();
  while (!failed_) {
    if (!nodes.empty() && peek().kind == TokenKind::word && integer_clause(conditions)) {
    } else if (!nodes.empty() && peek().kind == TokenKind::word && in_words(kClauseWords, lower_case(peek().text)) &&
               clause(conditions)) {
    } else {
      relation_seen_ = false;
      NodeId node = item();
      if (node == kNoNode) return false;
      nodes.push_back(node);
      gaps.push_back(Connective::comma);
      if (peek().kind == TokenKind::word && !is_connective() && in_words(kClauseWords, lower_case(peek().text))) {
        if (!clause(conditions)) return fail("a clause that cannot be read"), false;
      }
    }
    if (take_symbol('.') && peek().kind == TokenKind::end) break;
    Items gap;
    if (!connective(gap)) break;
    out.logic |= gap.logic;
    if (!gaps.empty()) gaps.back() = gap.connective;
    if (at_stop()) break;  // a trailing comma
  }
  relation_seen_ = outer_relation;
  if (failed_) return false;
  if (!gaps.empty()) gaps.pop_back();
  if (gaps.size() >= nodes.size() && !nodes.empty()) gaps.resize(nodes.size() - 1);
  if (nodes.empty()) return fail("nothing to read"), false;
  auto has = [&](Connective c) { return std::find(gaps.begin(), gaps.end(), c) != gaps.end(); };
  // What parts the groups, if two kinds of connectives occur: or before ; before comma. "1, 2, or 3" is one group.
  size_t first_or = static_cast<size_t>(std::find(gaps.begin(), gaps.end(), Connective::conj_or) - gaps.begin());
  bool after_or = std::any_of(gaps.begin() + static_cast<std::ptrdiff_t>(std::min(first_or, gaps.size())), gaps.end(),
                              [](Connective c) { return c != Connective::conj_or; });
  bool or_groups = has(Connective::conj_or) && (after_or || has(Connective::conj_and) || has(Connective::semicolon));
  bool line_groups = has(Connective::semicolon) && (has(Connective::comma) || has(Connective::conj_and));
  if (or_groups || line_groups) {
    Connective outer = or_groups ? Connective::conj_or : Connective::semicolon;
    Items group;
    for (size_t i = 0; i < nodes.size() && !failed_; ++i) {
      group.logic = out.logic;
      group.nodes.push_back(nodes[i]);
      if (i < gaps.size() && gaps[i] != outer) {
        group.connective = std::max(group.connective, gaps[i]);
        continue;
      }
      out.nodes.push_back(list_of(group));
      group = Items();
    }
    out.connective = outer;
  } else {
    out.nodes = nodes;
    out.connective = Connective::comma;
    for (Connective gap : gaps) out.connective = std::max(out.connective, gap);
  }
  conditions_.insert(conditions_.end(), conditions.begin(), conditions.end());
  return !failed_;
}

// One item is itself. "x = 1, 2" is one relation whose right side is the list 1, 2.
NodeId Parser::list_of(Items& items) {
  std::vector<NodeId> nodes;
  for (size_t i = 0; i < items.nodes.size() && !failed_; ++i) {
    NodeId node = items.nodes[i];
    if (node == kNoNode) return kNoNode;
    std::string_view gaps = kind(node) == Kind::relation ? tree_.text(node) : std::string_view();
    if (gaps == "=" || gaps == "!") {
      std::vector<NodeId> values{tree_.child(node, 1)};
      while (i + 1 < items.nodes.size() && items.nodes[i + 1] != kNoNode) {
        Kind next = kind(items.nodes[i + 1]);
        if (next == Kind::relation || next == Kind::text || next == Kind::list) break;
        values.push_back(items.nodes[++i]);
      }
      if (values.size() > 1) {
        std::string relation(gaps);
        NodeId left = tree_.child(node, 0);
        NodeId right = make(Kind::list, items.connective, values);
        node = make(Kind::relation, {left, right}, 0, relation);
        note("values after \"x = 1\" read as values of x");
      }
    }
    nodes.push_back(node);
  }
  if (nodes.size() == 1) return nodes[0];
  return make(Kind::list, items.connective, nodes, {}, items.logic);
}

// P(x) = .. and (P(x), Q(x)) = .. make P and Q functions in all of the answer.
void Parser::declare_functions() {
  bool tuple = is_symbol('(');
  for (size_t i = 0; i + 3 < tokens_.size(); ++i) {
    tuple = tuple && tokens_[i].kind != TokenKind::relation;
    const Token* before = i == 0 ? nullptr : &tokens_[i - 1];
    bool start =
        before == nullptr || before->kind == TokenKind::word || before->kind == TokenKind::separator ||
        (before->kind == TokenKind::symbol && std::string_view(",;({").find(before->symbol) != std::string_view::npos);
    bool letter = (tokens_[i].kind == TokenKind::word && tokens_[i].text.size() == 1) ||
                  (tokens_[i].kind == TokenKind::command && tokens_[i].command->meaning == Meaning::greek);
    if (!start || !letter || functions_.size() >= 8) continue;
    std::string name(tokens_[i].text);
    auto symbol = [&](size_t k, char c) {
      return k < tokens_.size() && tokens_[k].kind == TokenKind::symbol && tokens_[k].symbol == c;
    };
    size_t k = i + 1;
    if (symbol(k, '_')) {
      bool brace = symbol(k + 1, '{');
      k += 1 + brace;
      if (k + 1 >= tokens_.size() || tokens_[k].text.empty()) continue;
      name += str("_", tokens_[k].text);
      k += 1 + brace;
    }
    if (!symbol(k, '(')) continue;
    for (size_t close = k + 2; close < std::min(k + 9, tokens_.size() - 1); ++close) {
      if (!symbol(close, ')')) continue;
      bool equation = tokens_[close + 1].kind == TokenKind::relation && tokens_[close + 1].symbol == relation::kEqual;
      if (equation || tuple) functions_.push_back(name);
      break;
    }
  }
}

NodeId Parser::answer() {
  declare_functions();
  Items all;
  if (!items(all)) return kNoNode;
  while (is_symbol('.')) advance();
  if (peek().kind != TokenKind::end) return fail("something is left over");
  NodeId root = list_of(all);
  if (conditions_.empty() || root == kNoNode) return root;
  // An equation between functions holds for every argument anyhow: f(n) = n for all positive integers n.
  if (kind(root) == Kind::relation) {
    NodeId left = tree_.child(root, 0);
    if (kind(left) == Kind::tuple) left = tree_.child(left, 0);
    bool range = std::all_of(conditions_.begin(), conditions_.end(), [&](NodeId n) { return tree_.text(n) == "e"; });
    if (kind(left) == Kind::call && range) return root;
  }
  std::vector<NodeId> parts{root};
  parts.insert(parts.end(), conditions_.begin(), conditions_.end());
  return make(Kind::list, Connective::comma, parts);
}

// How many tokens here say that an answer follows, in another language.
size_t Parser::frame_length() const {
  if (peek().kind != TokenKind::word) return 0;
  if (in_words(kChineseFrames, peek().text)) return peek(1).kind == TokenKind::number ? 1 : 0;
  for (std::string_view frame : kFrames) {
    size_t length = 0;
    bool fits = true;
    each_word(frame, [&](std::string_view word) {
      const Token& token = peek(length++);
      fits = fits && token.kind == TokenKind::word && lower_case(token.text) == word;
    });
    if (fits) return length;
  }
  return 0;
}

void Parser::skip_noise() {
  size_t start = at_;
  while (peek().kind == TokenKind::word && !at_stop(1) && in_words(kAdverbs, lower_case(peek().text))) {
    advance();
    if (is_symbol('.') && !at_stop()) advance();  // approx.
  }
  if (size_t frame = frame_length(); frame > 0 && !at_stop(frame)) advance(frame);
  size_t i = 0;
  auto introduces = [&] {
    if (peek(i).kind != TokenKind::word) return false;
    std::string word = lower_case(peek(i).text);
    bool verb = is_word("is", i + 1) || is_word("are", i + 1);
    return in_words(kIntroduction, word) || (i > 0 && verb && in_words(kQuantities, word));
  };
  while (introduces()) ++i;
  bool verb = is_word("is", i) || is_word("are", i);
  if ((i > 0 && (verb || is_symbol(':', i))) || (i == 0 && verb)) {
    i += 1 + (verb && is_symbol(':', i + 1));
    if (!at_stop(i)) {
      advance(i);
    }
  }
  if (at_ != start) note("introductory words left out");
  // "= 5", "\approx 3.2"
  const Token& token = peek();
  bool leading = token.kind == TokenKind::relation &&
                 (token.symbol == relation::kEqual || token.symbol == relation::kApproximately ||
                  token.symbol == relation::kSimilar);
  if (leading && depth_ == 0 && !at_stop(1)) advance();
}

NodeId Parser::item() {
  skip_noise();
  std::vector<NodeId> parts;
  std::string relations;
  bool followed = false;
  NodeId first = operand();
  if (first == kNoNode) return kNoNode;
  parts.push_back(first);
  while (!failed_ && peek().kind == TokenKind::relation) {
    char symbol = peek().symbol;
    relation_seen_ = true;
    advance();
    NodeId next = operand();
    if (next == kNoNode) return kNoNode;
    bool follows = symbol == relation::kImplies || symbol == relation::kEquivalent;
    if (follows && !relations.empty()) {  // 2x = 10 \Rightarrow x = 5: what follows is the answer
      followed = true;
      relations.clear();
      parts.assign(1, next);
      continue;
    }
    bool modulo = tree_[next].is(Function::mod);
    if (symbol == relation::kCongruent && !modulo) symbol = relation::kEqual;  // f(x) \equiv 0
    if (symbol == relation::kIn || symbol == relation::kNotIn) next = as_set(next);
    relations.push_back(symbol);
    parts.push_back(next);
  }
  if (failed_) return kNoNode;
  if (parts.size() == 1) return followed ? fail("a value that follows from an equation") : parts[0];
  return make(Kind::relation, 0, parts, relations);
}

// "where k is an integer", "for n \ge 1": relations among the conditions. Puts everything back if it is none.
bool Parser::clause(std::vector<NodeId>& conditions) {
  while (peek().kind == TokenKind::word && (in_words(kClauseWords, lower_case(peek().text)) || is_word("that")))
    advance();
  if (integer_clause(conditions)) return true;
  Items inner;
  if (!items(inner)) return false;
  for (NodeId node : inner.nodes) {
    if (kind(node) != Kind::relation) return fail("a clause that cannot be read"), false;
    conditions.push_back(node);
  }
  return true;
}

// What "k is a positive integer" says of its letters.
struct RangeWords {
  bool positive = false, real = false, natural = false, fixed = false, whole = false, other = false, every = false;

  // Is this a word of such a clause?
  bool take(std::string_view word) {
    positive |= word == "positive";
    other |= in_words("negative nonnegative non rational", word);
    real |= in_words("real reals", word);
    natural |= word == "natural";
    fixed |= in_words("constant constants", word);
    whole |= in_words("integer integers whole", word);
    every |= in_words("all every any", word);
    return in_words(
        "positive negative nonnegative real integer integers number numbers natural constant constants non reals whole "
        "rational is are be an a any all every each some arbitrary being the denotes can both for and of set",
        word);
  }
  bool says_range() const { return whole || real || natural || fixed; }
};

// The tokens of such a clause from here on; the names in it.
size_t Parser::range_clause(RangeWords& range, std::vector<std::string>& names) const {
  for (size_t i = 0;; ++i) {
    const Token& token = peek(i);
    if (token.kind == TokenKind::symbol && (token.symbol == ',' || token.symbol == '-')) {
      if (token.symbol == ',' && range.says_range()) return i;
    } else if (is_command(Meaning::greek, i)) {
      names.emplace_back(token.text);
    } else if (token.kind == TokenKind::word && token.text.size() == 1 && lower_case(token.text) != "a") {
      std::string name(token.text);
      if (is_symbol('_', i + 1) && (peek(i + 2).kind == TokenKind::number || peek(i + 2).kind == TokenKind::word)) {
        name += str("_", peek(i + 2).text);
        i += 2;
      }
      names.push_back(name);
    } else if (token.kind != TokenKind::word || !range.take(lower_case(token.text))) {
      return i;
    }
  }
}

// "k is an integer", "k, m integers", "any integer n", "C is a constant".
bool Parser::integer_clause(std::vector<NodeId>& conditions) {
  RangeWords range;
  std::vector<std::string> names;
  size_t size = range_clause(range, names);
  bool ends = at_stop(size) || is_symbol('.', size);
  bool unbounded =
      range.every && !names.empty() && !(range.says_range() || range.other || range.positive);  // for all n
  if (!ends || !(range.says_range() || unbounded) || (names.empty() && at_ == 0)) return false;
  advance(size);
  if (unbounded) return true;
  for (const std::string& name : names) {
    if (range.fixed) break;
    NodeId letter = symbol(name);
    NodeId domain = range.other ? make(Kind::text, {}, 0, range.whole ? "someintegers" : "somenumbers")
                    : range.natural || (range.positive && range.whole) ? constant(Constant::naturals)
                    : range.whole                                      ? constant(Constant::integers)
                                                                       : constant(Constant::reals);
    conditions.push_back(make(Kind::relation, {letter, domain}, 0, "e"));
  }
  note("a clause on the range of a variable");
  return true;
}

// 2023-01-02, 02-01-2023: digits joined by hyphens without blanks are a date, no difference.
bool Parser::is_date() const {
  size_t sizes[3] = {};
  for (size_t k = 0; k < 5; ++k) {
    if (k > 0 && peek(k).space_before) return false;
    if (k % 2 == 1) {
      if (!is_symbol('-', k)) return false;
      continue;
    }
    const Token& token = peek(k);
    bool digits = token.kind == TokenKind::number && token.exponent == 0 && !token.grouped &&
                  token.text.find('.') == std::string_view::npos;
    if (!digits) return false;
    sizes[k / 2] = token.text.size();
  }
  bool year_first = sizes[0] == 4 && sizes[1] == 2 && sizes[2] == 2;
  bool year_last = sizes[0] <= 2 && sizes[1] <= 2 && sizes[2] == 4;
  return (year_first || year_last) && at_stop(5);
}

NodeId Parser::operand() {
  if (!enter()) return kNoNode;
  if (is_date()) {
    NodeId date = text_of(at_, at_ + 5);
    advance(5);
    leave();
    return date;
  }
  NodeId node = phrase();
  if (node != kNoNode && is_symbol(':') && !set_bar_) {  // "Paolo: 18" is a value with a label
    advance();
    NodeId value = operand();
    node = value == kNoNode ? kNoNode : make(Kind::relation, {node, value}, 0, "=");
  } else if (node == kNoNode && !failed_) {
    node = ratio();
  }
  leave();
  return node;
}

// \text{Area}_{ABC} in front of what it is; puts everything back where something else follows.
NodeId Parser::indexed_word() {
  size_t before = at_;
  std::string name = lower_case(peek().text);
  advance();
  if (subscript(name) == kNoNode) return kNoNode;
  if (peek().kind == TokenKind::relation || is_symbol(':')) return make(Kind::text, {}, 0, name);
  at_ = before;
  return kNoNode;
}

// Words up to the end of the item, or kNoNode without failing where a formula is.
NodeId Parser::phrase() {
  const Token& first = peek();
  if (first.kind != TokenKind::word || first.grouped || starts_factor(first) || first.text.size() < 2) return kNoNode;
  size_t i = 0;
  for (;; ++i) {
    const Token& token = peek(i);
    bool hyphen = token.kind == TokenKind::symbol && (token.symbol == '-' || token.symbol == '\'') && i > 0;
    if (at_stop(i) || token.kind == TokenKind::relation || (token.kind == TokenKind::symbol && token.symbol == ':'))
      break;
    if (i == 1 && is_symbol('_', i)) return indexed_word();
    if (token.kind != TokenKind::word && !hyphen) return kNoNode;
    if (i > 0 && in_words(kClauseWords, lower_case(token.text)) && token.text != "for" && token.text != "with") break;
  }
  bool label = peek(i).kind == TokenKind::relation || is_symbol(':', i);
  constexpr std::string_view kDenials = "not never neither except excluding without but unless false wrong incorrect";
  if (label && in_words(kDenials, lower_case(first.text))) return fail("a denial");
  size_t begin = at_, end = at_ + i;
  NodeId node = text_of(begin, end);
  if (node == kNoNode) return kNoNode;
  std::string key(tree_.text(node));
  advance(i);
  NodeId value = words_value(key);
  return value == kNoNode && !failed_ ? node : value;
}

NodeId Parser::words_value(std::string_view key) {
  for (const PhraseGroup& phrase : kPhrases) {
    if (in_words(phrase.keys, key)) return constant(phrase.constant);
  }
  if (says_infinite(key)) return constant(Constant::infinity);
  if (key.starts_with("minus") || key.starts_with("negative")) {
    NodeId positive = words_value(key.substr(key[0] == 'm' ? 5 : 8));
    return positive == kNoNode ? kNoNode : make(Kind::negate, {positive});
  }
  for (size_t cut = 3; cut < key.size(); ++cut) {  // seven dozen, two million
    const Multiplier* by = number_word(key.substr(0, cut)) > 0 ? multiplier(key.substr(cut)) : nullptr;
    if (by == nullptr || by->power < 0 || by->over != "1") continue;
    NodeId count = number(str(number_word(key.substr(0, cut))), {by->power, -1, 0});
    return by->power > 0 ? count : make(Kind::product, {count, number(by->times)});
  }
  int value = number_word(key);
  if (value < 0) return kNoNode;
  note("a number in words");
  return number(str(value));
}

NodeId Parser::ratio() {
  NodeId first = set();
  if (first == kNoNode || (!is_symbol(':') && !is_word("to")) || set_bar_) {
    if (first == kNoNode || kind(first) != Kind::ratio || tree_[first].child_count != 1) return first;
    std::string half(tree_.text(first));  // 3 pm is 3:00 pm
    return make(Kind::ratio, 0, std::vector{tree_.child(first, 0), number("00")}, half, 1);
  }
  std::vector<NodeId> parts{first};
  while (is_symbol(':') || is_word("to")) {  // 3 : 4, 3 to 4
    advance();
    NodeId next = set();
    if (next == kNoNode) return fail("a part of a ratio is missing");
    parts.push_back(next);
  }
  // 12:30 is a time, whose last part may have PM or p.m. behind it, unless it may be a ratio in lowest terms.
  bool last_half = kind(parts.back()) == Kind::ratio;
  auto digits = [&](size_t k) { return integer_literal(parts[k]) ? tree_.text(parts[k]) : std::string_view(); };
  auto value = [&](size_t k) { return std::stoi(std::string(digits(k))); };
  bool clock = parts.size() <= 3 && !digits(0).empty() && digits(0).size() <= 2 && digits(1).size() == 2 &&
               digits(1)[0] < '6' && value(0) < 25;
  bool time = last_half || (clock && (digits(1)[0] == '0' || std::gcd(value(0), value(1)) > 1));
  std::string half;
  if (last_half) {
    half = tree_.text(parts.back());
    parts.back() = tree_.child(parts.back(), 0);
  }
  return make(Kind::ratio, 0, parts, half, time);
}

NodeId Parser::as_set(NodeId node) {
  if (node == kNoNode || kind(node) != Kind::tuple || tree_[node].child_count != 2 ||
      !tree_[node].has(Bracket::round)) {
    return node;
  }
  return make(Kind::interval, {tree_.child(node, 0), tree_.child(node, 1)});
}

NodeId Parser::set() {
  NodeId left = sum();
  while (!failed_ && left != kNoNode && (is_symbol('U') || is_symbol('N') || is_symbol('D'))) {
    if (is_connective()) break;
    char symbol = peek().symbol;
    std::vector<NodeId> parts{as_set(left)};
    while (take_symbol(symbol)) {
      NodeId next = sum();
      if (next == kNoNode) return kNoNode;
      parts.push_back(as_set(next));
      if (symbol == 'D') break;
    }
    SetOperation operation = symbol == 'U'   ? SetOperation::unite
                             : symbol == 'N' ? SetOperation::intersect
                                             : SetOperation::subtract;
    left = make(Kind::set_operation, operation, parts);
  }
  return left;
}

}  // namespace ucas::math
