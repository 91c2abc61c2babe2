#include "verify/math/read/expr.h"

#include <array>

#include "base/str.h"

namespace ucas::math {

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
