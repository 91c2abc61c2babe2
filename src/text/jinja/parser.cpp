#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/str.h"
#include "text/jinja/library.h"
#include "text/jinja/syntax.h"

namespace ucas::jinja {

namespace {

constexpr size_t kSourceLimit = size_t{1} << 20;  // bytes
constexpr int kDeepestTree = 200;                 // expressions and statements within one another

using Kind = Word::Kind;

class Parser {
 public:
  Parser(std::string_view source, const std::string& where) : where_(where), words_(words_of(source, where)) {}

  NodePtr program() {
    Node all = node(Op::block);
    all.body = statements({});
    return finished(std::move(all));
  }

 private:
  // ---------------------------------------------------------------------------------------------------- words
  const Word& now() const { return words_[at_]; }
  const Word& next() { return words_[at_ + 1 < words_.size() ? at_++ : at_]; }
  const Word& ahead() const { return words_[std::min(at_ + 1, words_.size() - 1)]; }
  bool is(Kind kind, std::string_view text) const { return now().kind == kind && now().text == text; }
  bool is_sign(std::string_view text) const { return is(Kind::sign, text); }
  bool is_name(std::string_view text) const { return is(Kind::name, text); }
  bool pass_sign(std::string_view text) { return is_sign(text) && (next(), true); }
  bool pass_name(std::string_view text) { return is_name(text) && (next(), true); }

  [[noreturn]] void refuse(const std::string& what, int line) const {
    throw Error(ErrorKind::config, str(where_, ":", line, ": ", what));
  }
  [[noreturn]] void refuse(const std::string& what) const { refuse(what, now().line); }
  [[noreturn]] void outside(const std::string& what) const {
    refuse(str(what, " is outside the part of Jinja that is read here (docs/formats.md lists it)"));
  }
  std::string shown() const {
    switch (now().kind) {
      case Kind::text:
        return "text";
      case Kind::open_output:
        return "{{";
      case Kind::open_tag:
        return "{%";
      case Kind::close_output:
        return "}}";
      case Kind::close_tag:
        return "%}";
      case Kind::end:
        return "the end of the template";
      default:
        return str("\"", printable(now().text, 40), "\"");
    }
  }
  void expect(Kind kind, std::string_view text, std::string_view expected) {
    if (now().kind != kind || (!text.empty() && now().text != text)) {
      refuse(str("expected ", expected, ", got ", shown()));
    }
    next();
  }
  void expect_sign(std::string_view text) { expect(Kind::sign, text, str("\"", text, "\"")); }
  void expect_name(std::string_view text) { expect(Kind::name, text, str("\"", text, "\"")); }
  std::string any_name(std::string_view what) {
    if (now().kind != Kind::name) refuse(str("expected ", what, ", got ", shown()));
    return next().text;
  }

  // ---------------------------------------------------------------------------------------------------- nodes
  Node node(Op op) const {
    Node out{};
    out.op = op;
    out.line = now().line;
    return out;
  }
  NodePtr finished(Node made) const {
    int deepest = 0;
    const auto look = [&](const NodePtr& part) {
      if (part) deepest = std::max(deepest, part->depth);
    };
    for (const NodePtr& part : made.parts) look(part);
    for (const auto& [name, part] : made.named) look(part);
    for (const NodePtr& part : made.body) look(part);
    for (const NodePtr& part : made.otherwise) look(part);
    made.depth = deepest + 1;
    if (made.depth > kDeepestTree)
      refuse(str("more than ", kDeepestTree, " expressions or tags within one another"), made.line);
    return std::make_unique<const Node>(std::move(made));
  }
  NodePtr of_two(Op op, NodePtr left, NodePtr right, int line) const {
    Node out = node(op);
    out.line = line;
    out.parts.push_back(std::move(left));
    out.parts.push_back(std::move(right));
    return finished(std::move(out));
  }
  NodePtr of_one(Op op, NodePtr part) const {
    Node out = node(op);
    out.parts.push_back(std::move(part));
    return finished(std::move(out));
  }
  NodePtr constant(Value value) const {
    Node out = node(Op::constant);
    out.value = std::move(value);
    return finished(std::move(out));
  }
  static Value own_text(const std::string& text) {
    return std::make_shared<const MarkedText>(text, MarkedText::kTemplate);
  }
  // Keeps the recursion of this parser in bounds.
  class Deeper {
   public:
    explicit Deeper(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepestTree) {
        parser_.refuse(str("more than ", kDeepestTree, " expressions or tags within one another"));
      }
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Parser& parser_;
  };

  // ----------------------------------------------------------------------------------------------- statements
  using Nodes = std::vector<NodePtr>;

  // Up to a tag that begins with one of `ends`, whose name is then the word at hand.
  Nodes statements(const std::vector<std::string>& ends) {
    const Deeper deeper(*this);
    const int began = now().line;
    Nodes out;
    while (now().kind != Kind::end) {
      if (now().kind == Kind::text) {
        Node text = node(Op::data);
        text.value = own_text(now().text);
        out.push_back(finished(std::move(text)));
        next();
      } else if (now().kind == Kind::open_output) {
        next();
        out.push_back(of_one(Op::output, tuple_expression()));
        expect(Kind::close_output, "", "}}");
      } else {
        expect(Kind::open_tag, "", "a tag");
        if (std::ranges::count(ends, now().text) > 0 && now().kind == Kind::name) return out;
        out.push_back(statement());
        close();
      }
    }
    if (!ends.empty()) refuse(str("the tag of line ", began, " is never closed: expected ", join(ends, " or ")));
    return out;
  }
  void close() { expect(Kind::close_tag, "", "%}"); }
  Nodes body(const std::vector<std::string>& ends) {
    pass_sign(":");
    close();
    return statements(ends);
  }

  NodePtr statement() {
    if (now().kind != Kind::name) refuse(str("expected the name of a tag, got ", shown()));
    const std::string& tag = now().text;
    if (tag == "set") return set();
    if (tag == "for") return loop();
    if (tag == "if") return branch();
    if (tag == "macro") return macro();
    if (tag == "generation") {
      Node out = node(Op::block);
      next();
      out.body = body({"endgeneration"});
      next();
      return finished(std::move(out));
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) refuse(str(tag, " outside a loop"));
      Node out = node(tag == "break" ? Op::leave_loop : Op::next_round);
      next();
      return finished(std::move(out));
    }
    outside(str("the tag {% ", printable(tag, 40), " %}"));
  }

  // A name, namespace.attribute, or several names.
  NodePtr target(bool attributes) {
    Node first = node(Op::name);
    first.name = any_name("a name to set");
    if (attributes && pass_sign(".")) {
      Node out = node(Op::space_target);
      out.words = {first.name, any_name("the name of an attribute")};
      return finished(std::move(out));
    }
    NodePtr one = finished(std::move(first));
    if (!is_sign(",")) return one;
    Node all = node(Op::tuple);
    all.parts.push_back(std::move(one));
    while (pass_sign(",")) {
      if (now().kind != Kind::name || is_name("in")) break;
      Node more = node(Op::name);
      more.name = any_name("a name to set");
      all.parts.push_back(finished(std::move(more)));
    }
    return finished(std::move(all));
  }
  NodePtr bracketed_target() {
    if (!pass_sign("(")) return target(false);
    NodePtr out = target(false);
    expect_sign(")");
    return out;
  }

  NodePtr set() {
    Node out = node(Op::set);
    next();
    out.parts.push_back(is_sign("(") ? bracketed_target() : target(true));
    if (pass_sign("=")) {
      out.parts.push_back(tuple_expression());
      return finished(std::move(out));
    }
    out.op = Op::set_block;
    out.parts.push_back(is_sign("|") ? filters(constant(None{})) : nullptr);
    out.body = body({"endset"});
    next();
    return finished(std::move(out));
  }

  NodePtr loop() {
    Node out = node(Op::loop);
    next();
    out.parts.push_back(bracketed_target());
    expect_name("in");
    out.parts.push_back(tuple_expression(false));
    out.parts.push_back(pass_name("if") ? expression() : nullptr);
    if (is_name("recursive")) outside("a recursive loop");
    ++loops_;
    out.body = body({"endfor", "else"});
    --loops_;
    if (next().text == "else") {
      out.otherwise = body({"endfor"});
      next();
    }
    return finished(std::move(out));
  }

  NodePtr branch() {
    const Deeper deeper(*this);
    Node out = node(Op::branch);
    next();
    out.parts.push_back(tuple_expression(false));
    out.body = body({"elif", "else", "endif"});
    if (is_name("elif")) {
      out.otherwise.push_back(branch());
    } else if (next().text == "else") {
      out.otherwise = body({"endif"});
      next();
    }
    return finished(std::move(out));
  }

  NodePtr macro() {
    Node out = node(Op::macro);
    next();
    out.name = any_name("the name of a macro");
    expect_sign("(");
    while (!is_sign(")")) {
      if (!out.named.empty()) expect_sign(",");
      const std::string name = any_name("the name of a parameter");
      const bool optional = pass_sign("=");
      if (!optional && !out.named.empty() && out.named.back().second) {
        refuse(str("the parameter ", name, " without a default follows one that has one"));
      }
      out.named.emplace_back(name, optional ? expression() : nullptr);
    }
    next();
    const int outer = std::exchange(loops_, 0);
    ++macros_;
    out.body = body({"endmacro"});
    --macros_;
    loops_ = outer;
    next();
    return finished(std::move(out));
  }

  // ---------------------------------------------------------------------------------------------- expressions
  bool ends_tuple() const { return now().kind == Kind::close_output || now().kind == Kind::close_tag || is_sign(")"); }

  NodePtr tuple_expression(bool conditions = true) {
    Node all = node(Op::tuple);
    bool several = false;
    while (true) {
      if (!all.parts.empty()) expect_sign(",");
      if (ends_tuple()) break;
      all.parts.push_back(conditions ? expression() : either());
      if (!is_sign(",")) break;
      several = true;
    }
    if (!several && all.parts.empty()) refuse(str("expected an expression, got ", shown()));
    return several ? finished(std::move(all)) : std::move(all.parts.front());
  }

  NodePtr expression() {
    const Deeper deeper(*this);
    NodePtr value = either();
    while (is_name("if")) {
      Node out = node(Op::condition);
      next();
      out.parts.push_back(either());
      out.parts.push_back(std::move(value));
      out.parts.push_back(pass_name("else") ? expression() : nullptr);
      value = finished(std::move(out));
    }
    return value;
  }

  // `part`, and as many more as the signs or names of `ops` join, from the left.
  NodePtr joined(NodePtr (Parser::*part)(), std::initializer_list<std::pair<const char*, Op>> ops) {
    NodePtr left = (this->*part)();
    while (true) {
      const auto op =
          std::ranges::find_if(ops, [&](const auto& pair) { return is_sign(pair.first) || is_name(pair.first); });
      if (op == ops.end()) return left;
      const int line = next().line;
      left = of_two(op->second, std::move(left), (this->*part)(), line);
    }
  }
  NodePtr either() { return joined(&Parser::both, {{"or", Op::logical_or}}); }
  NodePtr both() { return joined(&Parser::negation, {{"and", Op::logical_and}}); }
  NodePtr sum() { return joined(&Parser::concatenation, {{"+", Op::add}, {"-", Op::subtract}}); }
  NodePtr product() {
    return joined(&Parser::power,
                  {{"*", Op::multiply}, {"/", Op::divide}, {"//", Op::floor_divide}, {"%", Op::modulo}});
  }
  NodePtr power() { return joined(&Parser::filtered_unary, {{"**", Op::power}}); }
  NodePtr filtered_unary() { return unary(true); }

  NodePtr negation() {
    if (!is_name("not")) return comparison();
    const Deeper deeper(*this);
    next();
    return of_one(Op::logical_not, negation());
  }

  NodePtr comparison() {
    NodePtr left = sum();
    Node out = node(Op::comparison);
    while (true) {
      std::string word;
      for (const char* sign : {"==", "!=", "<", "<=", ">", ">="}) {
        if (is_sign(sign)) word = sign;
      }
      if (is_name("in")) word = "in";
      if (is_name("not") && ahead().kind == Kind::name && ahead().text == "in") {
        word = "not in";
        next();
      }
      if (word.empty()) break;
      next();
      out.words.push_back(word);
      if (out.parts.empty()) out.parts.push_back(std::move(left));
      out.parts.push_back(sum());
    }
    return out.parts.empty() ? std::move(left) : finished(std::move(out));
  }

  NodePtr concatenation() {
    NodePtr first = product();
    if (!is_sign("~")) return first;
    Node out = node(Op::concat);
    out.parts.push_back(std::move(first));
    while (pass_sign("~")) out.parts.push_back(product());
    return finished(std::move(out));
  }

  NodePtr unary(bool with_filters) {
    const Deeper deeper(*this);
    NodePtr value;
    if (is_sign("-") || is_sign("+")) {
      const Op op = is_sign("-") ? Op::negative : Op::positive;
      next();
      value = of_one(op, unary(false));
    } else {
      value = primary();
    }
    value = postfix(std::move(value));
    return with_filters ? filtered(std::move(value)) : std::move(value);
  }

  NodePtr primary() {
    const Word word = now();
    switch (word.kind) {
      case Kind::name:
        return named();
      case Kind::quoted: {
        std::string text;
        while (now().kind == Kind::quoted) text += next().text;
        return constant(own_text(text));
      }
      case Kind::whole:
      case Kind::real: {
        next();
        return constant(number(word));
      }
      default:
        break;
    }
    if (pass_sign("(")) {
      NodePtr inner = is_sign(")") ? finished(node(Op::tuple)) : tuple_expression();
      expect_sign(")");
      return inner;
    }
    if (pass_sign("[")) {
      Node out = node(Op::list);
      out.parts = series("]");
      return finished(std::move(out));
    }
    if (pass_sign("{")) return map();
    refuse(str("expected an expression, got ", shown()));
  }

  NodePtr named() {
    const std::string name = next().text;
    if (name == "true" || name == "True") return constant(true);
    if (name == "false" || name == "False") return constant(false);
    if (name == "none" || name == "None") return constant(None{});
    const bool of_call = name == "varargs" || name == "kwargs" || name == "caller";
    if ((of_call && macros_ > 0) || name == "self" || name == "super") outside(str("the name ", name));
    Node out = node(Op::name);
    out.name = name;
    return finished(std::move(out));
  }

  Value number(const Word& word) const {
    if (word.kind == Kind::real) {
      double value = 0;
      std::from_chars(word.text.data(), word.text.data() + word.text.size(), value);
      return value;
    }
    int64_t value = 0;
    const auto result = std::from_chars(word.text.data(), word.text.data() + word.text.size(), value);
    if (result.ec != std::errc{}) refuse(str("the number ", printable(word.text, 40), " is too large"), word.line);
    return value;
  }

  Nodes series(std::string_view end) {
    Nodes out;
    while (!is_sign(end)) {
      if (!out.empty()) expect_sign(",");
      if (is_sign(end)) break;
      out.push_back(expression());
    }
    next();
    return out;
  }

  NodePtr map() {
    Node out = node(Op::map);
    while (!is_sign("}")) {
      if (!out.parts.empty()) expect_sign(",");
      if (is_sign("}")) break;
      out.parts.push_back(expression());
      expect_sign(":");
      out.parts.push_back(expression());
    }
    next();
    return finished(std::move(out));
  }

  NodePtr postfix(NodePtr value) {
    while (true) {
      if (pass_sign(".")) {
        if (now().kind == Kind::whole) {
          value = of_two(Op::item, std::move(value), constant(number(now())), now().line);
          next();
          continue;
        }
        Node out = node(Op::attribute);
        out.name = any_name("the name of an attribute");
        out.parts.push_back(std::move(value));
        value = finished(std::move(out));
      } else if (pass_sign("[")) {
        value = subscript(std::move(value));
      } else if (is_sign("(")) {
        value = call(std::move(value));
      } else {
        return value;
      }
    }
  }

  NodePtr subscript(NodePtr value) {
    const int line = now().line;
    NodePtr begin = is_sign(":") ? nullptr : expression();
    if (!is_sign(":")) {
      if (is_sign(",")) outside("a subscript of several parts");
      expect_sign("]");
      return of_two(Op::item, std::move(value), std::move(begin), line);
    }
    Node out = node(Op::slice);
    out.parts.push_back(std::move(value));
    out.parts.push_back(std::move(begin));
    for (int i = 0; i < 2; ++i) {
      const bool there = pass_sign(":") && !is_sign("]") && !is_sign(":");
      out.parts.push_back(there ? expression() : nullptr);
    }
    expect_sign("]");
    return finished(std::move(out));
  }

  void arguments(Node& out) {
    expect_sign("(");
    bool first = true;
    while (!is_sign(")")) {
      if (!first) expect_sign(",");
      if (is_sign(")")) break;
      first = false;
      if (is_sign("*") || is_sign("**")) outside("a call with * or **");
      if (now().kind == Kind::name && ahead().kind == Kind::sign && ahead().text == "=") {
        const std::string name = next().text;
        next();
        out.named.emplace_back(name, expression());
      } else if (out.named.empty()) {
        out.parts.push_back(expression());
      } else {
        refuse("an argument without a name after one that has one");
      }
    }
    next();
  }

  NodePtr call(NodePtr what) {
    Node out = node(Op::call);
    out.parts.push_back(std::move(what));
    arguments(out);
    return finished(std::move(out));
  }

  NodePtr filters(NodePtr value) {
    while (pass_sign("|")) {
      Node out = node(Op::filter);
      out.name = any_name("the name of a filter");
      if (!is_filter(out.name)) outside(str("the filter ", printable(out.name, 40)));
      out.parts.push_back(std::move(value));
      if (is_sign("(")) arguments(out);
      value = finished(std::move(out));
    }
    return value;
  }

  NodePtr filtered(NodePtr value) {
    while (true) {
      if (is_sign("|")) {
        value = filters(std::move(value));
      } else if (is_name("is")) {
        value = test(std::move(value));
      } else if (is_sign("(")) {
        value = call(std::move(value));
      } else {
        return value;
      }
    }
  }

  NodePtr test(NodePtr value) {
    Node out = node(Op::test);
    next();
    const bool negated = pass_name("not");
    out.name = any_name("the name of a test");
    if (!is_test(out.name)) outside(str("the test ", printable(out.name, 40)));
    out.parts.push_back(std::move(value));
    const bool word_follows = now().kind == Kind::name && !is_name("else") && !is_name("or") && !is_name("and");
    const bool value_follows = now().kind == Kind::quoted || now().kind == Kind::whole || now().kind == Kind::real ||
                               is_sign("[") || is_sign("{");
    if (is_sign("(")) {
      arguments(out);
    } else if (word_follows || value_follows) {
      if (is_name("is")) refuse("a test after a test");
      out.parts.push_back(postfix(primary()));
    }
    NodePtr made = finished(std::move(out));
    return negated ? of_one(Op::logical_not, std::move(made)) : std::move(made);
  }

  const std::string& where_;
  const std::vector<Word> words_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0, macros_ = 0;
};

}  // namespace

NodePtr parse_program(std::string_view source, const std::string& where) {
  if (source.size() > kSourceLimit) {
    throw Error(ErrorKind::limit, str(where, ": a chat template of ", human_bytes(static_cast<double>(source.size())),
                                      ", the limit is ", human_bytes(static_cast<double>(kSourceLimit))));
  }
  if (!valid_utf8(source)) throw Error(ErrorKind::utf8, str(where, ": the chat template is not UTF-8"));
  return Parser(source, where).program();
}

}  // namespace ucas::jinja
