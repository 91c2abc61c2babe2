#include "verify/math/read/parser.h"

#include <algorithm>
#include <array>

#include "base/str.h"
#include "verify/math/read/parser_impl.h"

namespace ucas::math {

NodeId Parser::fail(std::string_view reason) {
  if (!failed_) reason_ = reason;
  failed_ = true;
  return kNoNode;
}

NodeId Parser::exceed(std::string_view reason) {
  over_budget_ = true;
  return fail(reason);
}

bool Parser::enter() {
  if (++depth_ <= kDepthLimit) return true;
  exceed("nested too deeply");
  return false;
}

NodeId Parser::make_node(Kind kind, uint8_t tag, std::span<const NodeId> children, std::string_view text,
                         int32_t value) {
  if (failed_) return kNoNode;
  uint16_t height = 0;
  for (NodeId child : children) {
    if (child == kNoNode) return fail("part of it cannot be read");
    height = std::max(height, height_[child]);
  }
  if (height >= kDepthLimit) return exceed("nested too deeply");
  if (tree_.size() >= kNodeLimit) return exceed("too many parts");
  height_.push_back(static_cast<uint16_t>(height + 1));
  return tree_.add(kind, tag, text, children, value);
}

NodeId Parser::number(std::string_view digits, Number n) {
  if (failed_) return kNoNode;
  if (tree_.size() >= kNodeLimit) return exceed("too many parts");
  height_.push_back(1);
  size_t point = digits.find('.');
  n.places = point == std::string_view::npos ? -1 : static_cast<int32_t>(digits.size() - point - 1);
  return tree_.add_number(digits, n);
}

bool Parser::integer_literal(NodeId node) const {
  return kind(node) == Kind::number && tree_[node].number.places < 0 && tree_[node].number.exponent == 0;
}

void Parser::note(std::string_view what) {
  if (options_.explain && result_.rewrites.size() < 64) result_.rewrites.emplace_back(what);
}

void Parser::restart() {
  tree_.clear();
  height_.clear();
  functions_.clear();
  conditions_.clear();
  reason_.clear();
  at_ = 0;
  depth_ = bars_ = 0;
  set_bar_ = failed_ = over_budget_ = in_environment_ = relation_seen_ = false;
}

// One form for texts: lower case (unless it is one letter), no articles, no braces around single parts, no spaces
// between words, so that "two lines" and "twolines" agree.
NodeId Parser::text_of(size_t begin, size_t end) {
  std::string key;
  bool word_before = true;
  size_t single = 0;  // where a brace closes around one part
  auto add = [&](std::string_view part, bool word) {
    if (!word_before && !word) key.push_back(' ');
    key += part;
    word_before = word;
  };
  auto is_word_at = [&](size_t i) { return tokens_[i].kind == TokenKind::word; };
  for (size_t i = begin; i < end; ++i) {
    const Token& token = tokens_[i];
    if (token.kind == TokenKind::word) {
      std::string word = token.text.size() > 1 ? lower_case(token.text) : std::string(token.text);
      bool article = in_words("the a an", word) || (word == "A" && end - begin > 1);
      if (!article) add(word, true);
    } else if (token.kind == TokenKind::number) {
      add(str(token.text, token.exponent ? str("e", token.exponent) : std::string()), false);
    } else if (token.kind == TokenKind::based) {
      add(str(token.text, "_base", token.exponent), false);
    } else if (token.kind == TokenKind::symbol) {
      char c = token.symbol;
      bool stop = c == '.' || (c == ',' && i + 1 == end);
      bool hyphen = c == '-' && i > begin && i + 1 < end && is_word_at(i - 1) && is_word_at(i + 1);  // well-defined
      bool opens = c == '{' && i + 2 < end && tokens_[i + 2].kind == TokenKind::symbol && tokens_[i + 2].symbol == '}';
      if (opens && !stop && !hyphen) single = i + 2;
      if (!stop && !hyphen && !opens && !(i == single && c == '}')) add(std::string_view(&c, 1), false);
    } else if (token.kind == TokenKind::relation) {
      add(std::string_view(&token.symbol, 1), false);
    } else if (token.kind == TokenKind::command || token.kind == TokenKind::unknown) {
      add(str("\\", token.text), false);
    }
  }
  if (key.empty()) return fail("nothing is left of it");
  return make(Kind::text, {}, 0, key);
}

NodeId Parser::choice() {
  size_t i = 0, end = tokens_.size() - 1;
  auto symbol = [&](size_t k, char c) { return tokens_[k].kind == TokenKind::symbol && tokens_[k].symbol == c; };
  while (end > 0 && symbol(end - 1, '.')) --end;
  if (end == 2 && tokens_[0].kind == TokenKind::word) {  // "option B"
    std::string word = lower_case(tokens_[0].text);
    if (word == "option" || word == "choice") ++i;
  }
  bool braced = end >= 3 && symbol(0, '{') && symbol(end - 1, '}');
  if (braced) ++i, --end;
  bool open = i < end && symbol(i, '(');
  if (open) ++i;
  if (i >= end || tokens_[i].kind != TokenKind::word || tokens_[i].text.size() != 1) return kNoNode;
  char letter = tokens_[i].text[0];
  if (letter < 'A' || letter > 'Z' || tokens_[i].style == Style::blackboard) return kNoNode;
  ++i;
  bool marked = false;
  if (i < end && (symbol(i, ')') || (!open && (symbol(i, '.') || symbol(i, ':'))))) {
    marked = open || !symbol(i, ')') || end > i;
    ++i;
  } else if (open) {
    return kNoNode;
  }
  if (i == end) {
    at_ = tokens_.size() - 1;
    return make(Kind::choice, {}, 0, std::string_view(&letter, 1));
  }
  // "(D) Alina", "C. 42": the rest must be words or a formula that offer nothing else and deny nothing.
  bool alone = letter != 'A' && letter != 'I' && tokens_[i].kind == TokenKind::word && tokens_[i].text.size() > 2 &&
               tokens_[i].text[0] >= 'A' && tokens_[i].text[0] <= 'Z';
  if (!marked && !alone) return kNoNode;
  bool formula = marked && !symbol(i - 1, ':');
  for (size_t k = i; k < end; ++k) {
    const Token& token = tokens_[k];
    bool word = token.kind == TokenKind::word;
    bool other = !word || token.text.size() < 2
                     ? !formula || symbol(k, ',') || symbol(k, ';') || symbol(k, ':') ||
                           token.kind == TokenKind::separator || token.kind == TokenKind::row || token.symbol == 'A' ||
                           token.symbol == 'O' || (word && is_upper(token.text[0]))
                     : false;
    bool denied =
        word && in_words("or and not is are was false wrong incorrect no squared cubed", lower_case(token.text));
    if (other || denied) return kNoNode;
  }
  NodeId rest = text_of(i, end);
  return make(Kind::choice, {rest}, 0, std::string_view(&letter, 1));
}

namespace {

// **5** of Markdown, quotation marks, a final full stop.
std::string_view without_markup(std::string_view text) {
  text = trim(text);
  for (int layer = 0; layer < 4; ++layer) {
    if (text.size() > 4 && text.starts_with("**") && text.ends_with("**")) {
      text = trim(text.substr(2, text.size() - 4));
    } else if (text.size() > 2 &&
               ((text.front() == '"' && text.back() == '"') || (text.front() == '`' && text.back() == '`'))) {
      text = trim(text.substr(1, text.size() - 2));
    } else {
      break;
    }
  }
  while (text.ends_with('\\') && !text.ends_with("\\\\")) text = trim(text.substr(0, text.size() - 1));
  return text;
}

void set_error(ParseResult& result, ParseStatus status, std::string reason) {
  result.status = status;
  result.tree.clear();
  result.tree.set_root(result.tree.add_text(Kind::error, reason));
  result.reason = std::move(reason);
}

}  // namespace

ParseResult parse_math(std::string_view text, const ParseOptions& options) {
  ParseResult result;
  std::string restored;
  text = without_markup(restore_commands(text, restored));
  if (text.size() > kCharacterLimit) {
    set_error(result, ParseStatus::over_budget, str("more than ", kCharacterLimit, " bytes"));
    return result;
  }
  Lexer lexer;
  if (!lexer.run(text)) {
    set_error(result, ParseStatus::unparseable, lexer.reason());
    return result;
  }
  std::vector<Token>& tokens = lexer.tokens();
  if (tokens.size() == 1) {
    set_error(result, ParseStatus::empty, "nothing but spaces and braces");
    return result;
  }
  if (!lexer.balanced()) {
    set_error(result, ParseStatus::unparseable, "braces do not match");
    return result;
  }
  std::vector<Token> fresh = tokens;  // parsing takes tokens apart
  Parser parser(tokens, result, options);
  NodeId root = options.choices ? parser.choice() : kNoNode;
  if (root == kNoNode) {
    parser.restart();
    root = parser.answer();
  }
  if (root == kNoNode && !parser.over_budget() && options.free_text) {
    std::string why = parser.reason();
    tokens = std::move(fresh);
    parser.restart();
    root = parser.text_of(0, tokens.size() - 1);
    if (options.explain) result.rewrites.push_back(str("read as text: ", why));
  }
  if (root == kNoNode) {
    bool too_much = parser.over_budget();
    set_error(result, too_much ? ParseStatus::over_budget : ParseStatus::unparseable, parser.reason());
    return result;
  }
  result.status = ParseStatus::ok;
  result.tree.set_root(root);
  return result;
}

namespace {

constexpr const char* kKinds[] = {"error",       "number", "based",  "symbol",   "constant", "sum",      "product",
                                  "/",           "^",      "-",      "+-",       "call",     "percent",  "degree",
                                  "quantity",    "unit",   "text",   "choice",   "tuple",    "interval", "set",
                                  "set-builder", "set-op", "matrix", "relation", "list",     "ratio"};
constexpr const char* kConstants[] = {"pi",       "e",         "i",     "infinity",  "empty-set", "naturals",
                                      "integers", "rationals", "reals", "complexes", "undefined", "no-answer"};
#define UCAS_PRINTED(name, printed) printed,
constexpr const char* kFunctionNames[] = {UCAS_FUNCTIONS(UCAS_PRINTED)};
#undef UCAS_PRINTED
static_assert(std::size(kKinds) == static_cast<size_t>(Kind::ratio) + 1);
static_assert(std::size(kConstants) == static_cast<size_t>(Constant::no_answer) + 1);
constexpr const char* kBrackets[] = {"round", "square", "curly", "angle", "bar", "none"};
constexpr const char* kConnectives[] = {"list", "list;", "and", "or"};
constexpr const char* kSetOperations[] = {"union", "intersection", "difference"};

// The word that opens the brackets of a node with children.
std::string head(const Tree& tree, NodeId id) {
  const Node& node = tree[id];
  switch (node.kind) {
    case Kind::sum:
      return "+";
    case Kind::product:
      return "*";
    case Kind::plus_minus:
      return node.tag ? "-+" : "+-";
    case Kind::call:
      return node.is(Function::user) ? str("call ", tree.text(id)) : kFunctionNames[node.tag];
    case Kind::unit:
      return str(node.tag == static_cast<uint8_t>(UnitKind::word) ? "word " : "unit ", tree.text(id));
    case Kind::tuple:
      return str("tuple ", kBrackets[node.tag]);
    case Kind::interval:
      return str("interval ", node.tag & kLeftClosed ? '[' : '(', node.tag & kRightClosed ? ']' : ')');
    case Kind::set_operation:
      return kSetOperations[node.tag];
    case Kind::matrix:
      return str("matrix ", kBrackets[node.tag], " ", node.value);
    case Kind::relation:
      return str("rel ", tree.text(id));
    case Kind::list:
      return kConnectives[node.tag];
    case Kind::ratio:
      return str("ratio", node.value ? " time" : "", tree.text(id).empty() ? "" : " ", tree.text(id));
    default:
      return kKinds[static_cast<size_t>(node.kind)];
  }
}

std::string leaf(const Tree& tree, NodeId id) {
  const Node& node = tree[id];
  switch (node.kind) {
    case Kind::number:
      return str(tree.text(id), node.number.repeat ? str("r", node.number.repeat) : std::string(),
                 node.number.exponent ? str("e", node.number.exponent) : std::string());
    case Kind::based:
      return str(tree.text(id), "_base", node.value);
    case Kind::symbol:
      return std::string(tree.text(id));
    case Kind::constant:
      return kConstants[node.tag];
    case Kind::error:
    case Kind::text:
    case Kind::choice:
      return str("(", kKinds[static_cast<size_t>(node.kind)], " \"", tree.text(id), "\")");
    default:
      return str("(", head(tree, id), ")");
  }
}

}  // namespace

const char* name_of(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }
const char* name_of(Constant constant) { return kConstants[static_cast<size_t>(constant)]; }
const char* name_of(Function function) { return kFunctionNames[static_cast<size_t>(function)]; }

NodeId Tree::add(Kind kind, uint8_t tag, std::string_view text, std::span<const NodeId> children, int32_t value) {
  Node node;
  node.kind = kind;
  node.tag = tag;
  node.value = value;
  node.text = static_cast<uint32_t>(characters_.size());
  node.text_size = static_cast<uint32_t>(text.size());
  characters_.append(text);
  node.first = static_cast<uint32_t>(links_.size());
  node.child_count = static_cast<uint32_t>(children.size());
  links_.insert(links_.end(), children.begin(), children.end());
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId Tree::add_number(std::string_view digits, Number number) {
  NodeId id = add_text(Kind::number, digits);
  nodes_[id].number = number;
  return id;
}

void Tree::clear() {
  root_ = kNoNode;
  nodes_.clear();
  links_.clear();
  characters_.clear();
}

std::string to_string(const Tree& tree, NodeId id) {
  if (id == kNoNode) return "()";
  std::string out;
  struct Frame {
    NodeId node;
    size_t next;
  };
  std::vector<Frame> open;
  auto enter = [&](NodeId node) {
    if (tree[node].child_count == 0) {
      out += leaf(tree, node);
    } else {
      out += str("(", head(tree, node));
      open.push_back({node, 0});
    }
  };
  enter(id);
  while (!open.empty()) {
    Frame& frame = open.back();
    if (frame.next == tree[frame.node].child_count) {
      out.push_back(')');
      open.pop_back();
      continue;
    }
    out.push_back(' ');
    enter(tree.child(frame.node, frame.next++));
  }
  return out;
}

}  // namespace ucas::math
