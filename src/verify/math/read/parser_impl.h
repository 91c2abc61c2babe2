// The grammar, one function a construct; private to verify/math/read/parse*.cpp. Recursive descent over the tokens with
// counted depth and nodes. From loose to tight:
//   answer    item { (, | ; | and | or | new line) item }        clauses "where k is an integer" become items
//   item      operand { relation operand }                       1 < x <= 2, x = 5, x \in A
//   operand   ratio or words; ratio: set { : set }
//   set       sum { \cup | \cap | \setminus sum }
//   sum       [+ - \pm] term { + | - | \pm term }
//   term      factor { [* / mod] factor | unit | fraction of a mixed number }
//   factor    atom { ^ | ! | % | ' | _ | degree }
// A function that fails returns kNoNode and has called fail(); the caller returns at once.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verify/math/read/letters.h"
#include "verify/math/read/lexer.h"
#include "verify/math/read/macros.h"
#include "verify/math/read/parser.h"

namespace ucas::math {

struct RangeWords;

class Parser {
 public:
  Parser(std::vector<Token>& tokens, ParseResult& result, const ParseOptions& options)
      : tokens_(tokens), result_(result), tree_(result.tree), options_(options) {}

  NodeId answer();  // the whole of the tokens
  NodeId choice();  // (B), B., \textbf{(B)} Alina; kNoNode, without failing, for anything else
  void restart();   // after a failure, for another attempt
  bool over_budget() const { return over_budget_; }
  const std::string& reason() const { return reason_; }
  NodeId text_of(size_t begin, size_t end);  // the tokens as a text node

 private:
  // parse_list.cpp
  struct Items {
    std::vector<NodeId> nodes;
    Connective connective = Connective::comma;
    bool logic = false;  // \land or \lor was one
  };
  bool items(Items& out);
  bool arguments(Items& out);  // of a function, behind its bracket
  bool starts_equation(size_t ahead) const;
  bool connective(Items& out);
  void declare_functions();
  NodeId list_of(Items& items);
  NodeId item();
  bool clause(std::vector<NodeId>& conditions);
  bool integer_clause(std::vector<NodeId>& conditions);
  size_t range_clause(RangeWords& range, std::vector<std::string>& names) const;
  bool is_date() const;
  NodeId operand();
  NodeId phrase();
  NodeId indexed_word();
  NodeId words_value(std::string_view key);
  void skip_noise();
  size_t frame_length() const;
  NodeId ratio();
  NodeId set();
  NodeId as_set(NodeId node);

  // parse_terms.cpp
  NodeId sum();
  struct TermReader;
  NodeId term();
  NodeId signed_factor();
  NodeId factor();
  NodeId postfix(NodeId base);
  NodeId raised(NodeId base);
  NodeId atom();
  NodeId number_atom();
  NodeId based_atom();
  NodeId word_atom();
  NodeId segment(NodeId above);
  bool stands_alone() const;
  NodeId named_run();
  NodeId stuck_function();
  NodeId letter_atom();
  NodeId combination(char letter);
  NodeId chosen(NodeId from, NodeId taken, bool ordered);
  NodeId scripted_combination();
  NodeId set_of_numbers(char letter);
  NodeId symbol_named(std::string name);
  NodeId subscript(std::string& name);
  NodeId scientific(NodeId mantissa, NodeId power);
  NodeId mixed(NodeId whole);
  NodeId minutes(NodeId degrees);
  int half_of_day() const;
  size_t numeral_in_brackets(size_t at) const;
  NodeId apply_or_multiply(std::string_view name);
  bool starts_factor(const Token& token) const;
  bool plain_fraction(size_t at) const;

  // parse_commands.cpp
  NodeId command_atom();
  NodeId named(const Command& command);
  NodeId determinant();
  NodeId argument(bool one_digit);
  NodeId fraction();
  NodeId quotient(NodeId top, NodeId bottom);
  bool is_differential(NodeId node, bool alone) const;
  NodeId root();
  NodeId accent(const Command& command);
  NodeId big_operator(const Command& command);
  NodeId function_call(Function function);
  NodeId function_argument(bool trigonometric);
  NodeId environment();
  bool environment_head(std::string& name);
  void drop_marks_of_line();
  NodeId condition_in_words();
  bool cells(bool aligned, bool cases, std::vector<NodeId>& cells, std::vector<size_t>& widths);
  NodeId modulus(NodeId left);

  // parse_commands.cpp
  NodeId bracket(char open);
  NodeId close_bracket(char open, char close, Items& items);
  NodeId bars(char kind);
  NodeId curly();
  NodeId group();  // { .. } of LaTeX
  NodeId wrap_matrix(NodeId matrix, char open);

  // parse_units.cpp
  struct UnitReader;
  NodeId with_unit(NodeId value, bool numeric);
  NodeId lift_unit(std::vector<NodeId>& terms);
  NodeId money();

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token& current() { return tokens_[at_]; }
  void advance(size_t count = 1) { at_ = std::min(at_ + count, tokens_.size() - 1); }
  bool is_symbol(char c, size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::symbol && peek(ahead).symbol == c;
  }
  bool is_command(Meaning meaning, size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::command && peek(ahead).command->meaning == meaning;
  }
  bool is_word(std::string_view word, size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::word && peek(ahead).text == word;
  }
  bool is_connective(size_t ahead = 0) const;
  bool at_stop(size_t ahead = 0) const;  // the end of an item: a separator, a closing bracket, the end
  bool take_symbol(char c) {
    if (!is_symbol(c)) return false;
    advance();
    return true;
  }
  NodeId fail(std::string_view reason);
  NodeId exceed(std::string_view reason);
  bool failed() const { return failed_; }
  bool enter();  // one level deeper
  void leave() { --depth_; }
  NodeId make_node(Kind kind, uint8_t tag, std::span<const NodeId> children, std::string_view text, int32_t value);
  template <class Tag>
  NodeId make(Kind kind, Tag tag, std::span<const NodeId> children, std::string_view text = {}, int32_t value = 0) {
    return make_node(kind, static_cast<uint8_t>(tag), children, text, value);
  }
  template <class Tag = uint8_t>
  NodeId make(Kind kind, std::initializer_list<NodeId> children, Tag tag = {}, std::string_view text = {}) {
    return make_node(kind, static_cast<uint8_t>(tag), std::span(children.begin(), children.size()), text, 0);
  }
  NodeId symbol(std::string_view name) { return make(Kind::symbol, {}, 0, name); }
  NodeId constant(Constant c) { return make(Kind::constant, {}, c); }
  NodeId number(std::string_view digits, Number n = {});
  bool integer_literal(NodeId node) const;
  Kind kind(NodeId node) const { return tree_[node].kind; }
  bool is_constant(NodeId node, Constant c) const { return tree_[node].is(c); }
  void note(std::string_view what);
  // Nested brackets have their own bars: inside them | opens again.
  struct BarScope {
    explicit BarScope(Parser& p, int depth = 0, bool set = false) : parser(p), depth(p.bars_), set(p.set_bar_) {
      p.bars_ = depth;
      p.set_bar_ = set;
    }
    ~BarScope() {
      parser.bars_ = depth;
      parser.set_bar_ = set;
    }
    Parser& parser;
    int depth;
    bool set;
  };

  // Brackets inside an environment: neither & nor a line break ends what is in them.
  struct Inside {
    explicit Inside(Parser& p) : parser(p), outer(std::exchange(p.in_environment_, false)) {}
    ~Inside() { parser.in_environment_ = outer; }
    Parser& parser;
    bool outer;
  };

  std::vector<Token>& tokens_;
  ParseResult& result_;
  Tree& tree_;
  const ParseOptions& options_;
  std::vector<uint16_t> height_;        // of each node
  std::vector<std::string> functions_;  // names defined in this answer: f of f(x) = ..
  std::vector<NodeId> conditions_;      // "(k \in \mathbb{Z})" behind a value
  std::string reason_;
  size_t at_ = 0;
  int depth_ = 0, bars_ = 0;
  bool set_bar_ = false, failed_ = false, over_budget_ = false, in_environment_ = false;
  bool relation_seen_ = false;  // in the item being read
};

bool looks_like_word(std::string_view run);  // rather than a product of variables

}  // namespace ucas::math
