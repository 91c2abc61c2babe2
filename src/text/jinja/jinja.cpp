#include "text/jinja/jinja.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/jinja/library.h"
#include "text/jinja/syntax.h"

namespace ucas {

namespace jinja {

// Names of one place; what is not here may be in the place around it.
struct Scope {
  const Scope* around = nullptr;
  std::vector<std::pair<std::string, Value>> names;

  const Value* find(const std::string& name) const {
    for (const auto& [known, value] : names) {
      if (known == name) return &value;
    }
    return nullptr;
  }
  void set(const std::string& name, Value value) {
    for (auto& [known, old] : names) {
      if (known == name) {
        old = std::move(value);
        return;
      }
    }
    names.emplace_back(name, std::move(value));
  }
};

struct MacroValue {
  const Node* node;
  const Scope* around;
};

namespace {

constexpr int kDeepestRun = 400;  // expressions, tags and calls within one another

enum class Flow { on, leave_loop, next_round };

class Rendering {
 public:
  explicit Rendering(const JinjaLimits& limits) : meter_(limits) { scopes_.emplace_back(); }

  int line() const { return line_; }

  MarkedText run(const Node& program, const OrderedJson& data, const OrderedJson& own) {
    for (const auto& [origin, from] : {std::pair(MarkedText::kData, &data), std::pair(MarkedText::kTemplate, &own)}) {
      for (const auto& [name, value] : from->items()) scopes_.front().set(name, value_of(value, origin, meter_));
    }
    MarkedText out;
    scopes_.push_back({&scopes_.front(), {}});
    run_all(program.body, scopes_.back(), out);
    return out;
  }

 private:
  class Deeper {
   public:
    explicit Deeper(Rendering& rendering) : rendering_(rendering) {
      if (++rendering_.depth_ > kDeepestRun)
        fail("more than ", kDeepestRun, " expressions, tags and calls within one another");
      rendering_.meter_.steps();
    }
    ~Deeper() { --rendering_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Rendering& rendering_;
  };

  // A place within `around`, which goes with this unless a macro was defined there, which may be called later.
  class Inner {
   public:
    Inner(Rendering& rendering, const Scope& around) : rendering_(rendering), macros_(rendering.macros_.size()) {
      rendering_.meter_.bytes(sizeof(Scope));
      rendering_.scopes_.push_back({&around, {}});
      scope_ = &rendering_.scopes_.back();
    }
    ~Inner() {
      if (rendering_.macros_.size() == macros_) rendering_.scopes_.pop_back();
    }
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;
    Scope& scope() { return *scope_; }

   private:
    Rendering& rendering_;
    const size_t macros_;
    Scope* scope_;
  };

  // ----------------------------------------------------------------------------------------------- statements

  void write(MarkedText& out, const MarkedText& text) {
    meter_.bytes(2 * text.size());
    meter_.text_size(out.size() + text.size());
    out.append(text);
  }

  Flow run_all(const std::vector<NodePtr>& body, Scope& scope, MarkedText& out) {
    for (const NodePtr& node : body) {
      if (const Flow flow = run_one(*node, scope, out); flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow run_one(const Node& node, Scope& scope, MarkedText& out) {
    const Deeper deeper(*this);
    line_ = node.line;
    switch (node.op) {
      case Op::data:
        write(out, *as_text(node.value));
        return Flow::on;
      case Op::output:
        write(out, str_of(eval(*node.parts[0], scope), meter_));
        return Flow::on;
      case Op::set:
        assign(*node.parts[0], eval(*node.parts[1], scope), scope);
        return Flow::on;
      case Op::set_block:
        set_block(node, scope);
        return Flow::on;
      case Op::branch:
        return run_all(truth(eval(*node.parts[0], scope)) ? node.body : node.otherwise, scope, out);
      case Op::loop:
        return run_loop(node, scope, out);
      case Op::macro:
        meter_.bytes(sizeof(MacroValue));
        macros_.push_back({&node, &scope});
        scope.set(node.name, &macros_.back());
        return Flow::on;
      case Op::block: {
        Inner inner(*this, scope);
        return run_all(node.body, inner.scope(), out);
      }
      case Op::leave_loop:
        return Flow::leave_loop;
      case Op::next_round:
        return Flow::next_round;
      default:
        break;
    }
    UCAS_CHECK(false, "Jinja: expected an expression, found a statement");
    return Flow::on;
  }

  void assign(const Node& target, const Value& value, Scope& scope) {
    meter_.steps(scope.names.size() / 8);
    if (target.op == Op::name) return scope.set(target.name, value);
    if (target.op == Op::space_target) {
      const Value space = look_up(target.words[0], scope);
      SpaceValue* const* found = as<SpaceValue*>(space);
      if (found == nullptr) fail("cannot set an attribute of ", kind_of(space), "; only of a namespace");
      for (auto& [name, old] : (*found)->items) {
        if (name == target.words[1]) {
          old = value;
          return;
        }
      }
      (*found)->items.emplace_back(target.words[1], value);
      return;
    }
    const ListPtr items = items_of(value, meter_);
    if (items->items.size() != target.parts.size()) {
      fail(items->items.size(), " values for ", target.parts.size(), " names");
    }
    for (size_t i = 0; i < target.parts.size(); ++i) assign(*target.parts[i], items->items[i], scope);
  }

  void set_block(const Node& node, Scope& scope) {
    MarkedText text;
    {
      Inner inner(*this, scope);
      if (run_all(node.body, inner.scope(), text) != Flow::on) fail("break or continue within a block of set");
    }
    Value value = text_value(std::move(text), meter_);
    if (node.parts[1]) value = through_filters(*node.parts[1], value, scope);
    assign(*node.parts[0], value, scope);
  }
  Value through_filters(const Node& node, const Value& to, Scope& scope) {
    if (node.op != Op::filter) return to;
    const Value inner = through_filters(*node.parts[0], to, scope);
    return apply_filter(node.name, inner, arguments(node, scope), meter_);
  }

  Flow run_loop(const Node& node, Scope& scope, MarkedText& out) {
    ListPtr items = items_of(eval(*node.parts[1], scope), meter_);
    if (node.parts[2]) {
      std::vector<Value> kept;
      for (const Value& item : items->items) {
        Inner inner(*this, scope);
        assign(*node.parts[0], item, inner.scope());
        if (truth(eval(*node.parts[2], inner.scope()))) kept.push_back(item);
      }
      items = *as<ListPtr>(list_value(std::move(kept), meter_));
    }
    if (items->items.empty()) {
      Inner inner(*this, scope);
      return run_all(node.otherwise, inner.scope(), out);
    }
    for (size_t i = 0; i < items->items.size(); ++i) {
      meter_.bytes(sizeof(LoopValue));
      Inner inner(*this, scope);
      inner.scope().set("loop", std::make_shared<const LoopValue>(LoopValue{items, i}));
      assign(*node.parts[0], items->items[i], inner.scope());
      if (run_all(node.body, inner.scope(), out) == Flow::leave_loop) break;
    }
    return Flow::on;
  }

  // ---------------------------------------------------------------------------------------------- expressions

  Value look_up(const std::string& name, const Scope& scope) {
    for (const Scope* at = &scope; at != nullptr; at = at->around) {
      meter_.steps(at->names.size() / 16);
      if (const Value* found = at->find(name)) return *found;
    }
    if (name == "namespace" || is_function(name)) return FunctionValue{name};
    if (name == "cycler" || name == "joiner" || name == "lipsum") {
      fail("the function ", name, "() is outside the part of Jinja that is read here");
    }
    return Undefined{name};
  }

  Arguments arguments(const Node& node, Scope& scope) {
    Arguments out;
    for (size_t i = 1; i < node.parts.size(); ++i) out.list.push_back(eval(*node.parts[i], scope));
    for (const auto& [name, part] : node.named) out.named.emplace_back(name, eval(*part, scope));
    return out;
  }

  Value eval(const Node& node, Scope& scope) {
    const Deeper deeper(*this);
    line_ = node.line;
    const auto part = [&](size_t i) { return eval(*node.parts[i], scope); };
    switch (node.op) {
      case Op::constant:
        return node.value;
      case Op::name:
        return look_up(node.name, scope);
      case Op::list:
      case Op::tuple:
        return list_of(node, scope);
      case Op::map:
        return map_of(node, scope);
      case Op::attribute:
        return attribute_of(part(0), node.name, meter_);
      case Op::item: {
        const Value of = part(0);
        return item_of(of, part(1), meter_);
      }
      case Op::slice:
        return slice(node, scope);
      case Op::call:
        return call(node, scope);
      case Op::filter: {
        const Value to = part(0);
        return apply_filter(node.name, to, arguments(node, scope), meter_);
      }
      case Op::test: {
        const Value to = part(0);
        return apply_test(node.name, to, arguments(node, scope), meter_);
      }
      case Op::logical_not:
        return !truth(part(0));
      case Op::logical_and: {
        Value left = part(0);
        return truth(left) ? part(1) : left;
      }
      case Op::logical_or: {
        Value left = part(0);
        return truth(left) ? left : part(1);
      }
      case Op::condition:
        if (truth(part(0))) return part(1);
        return node.parts[2] ? part(2) : Value(Undefined{"the value of an inline if without else"});
      case Op::comparison:
        return comparison(node, scope);
      case Op::concat:
        return concatenation(node, scope);
      case Op::negative:
      case Op::positive:
        return signed_value(part(0), node.op == Op::negative);
      default:
        break;
    }
    const Value left = part(0);
    return arithmetic(node.op, left, part(1));
  }

  Value list_of(const Node& node, Scope& scope) {
    std::vector<Value> items;
    for (const auto& part : node.parts) items.push_back(eval(*part, scope));
    return list_value(std::move(items), meter_, node.op == Op::tuple);
  }

  Value concatenation(const Node& node, Scope& scope) {
    MarkedText text;
    for (const auto& part : node.parts) {
      text.append(str_of(eval(*part, scope), meter_));
      meter_.text_size(text.size());
    }
    return text_value(std::move(text), meter_);
  }

  Value map_of(const Node& node, Scope& scope) {
    std::vector<std::pair<Value, Value>> items;
    for (size_t i = 0; i < node.parts.size(); i += 2) {
      Value key = eval(*node.parts[i], scope);
      if (as_text(key) == nullptr && !number_of(key) && !as<None>(key)) fail("a map with ", kind_of(key), " as key");
      Value value = eval(*node.parts[i + 1], scope);
      const Value* old = found_in(items, key, meter_);
      const auto place = std::ranges::find_if(items, [&](const auto& item) { return &item.second == old; });
      if (place != items.end()) {
        place->second = std::move(value);
      } else {
        items.emplace_back(std::move(key), std::move(value));
      }
    }
    return map_value(std::move(items), meter_);
  }

  Value slice(const Node& node, Scope& scope) {
    const Value of = eval(*node.parts[0], scope);
    std::optional<Value> bounds[3];
    const Value* given[3] = {};
    for (size_t i = 0; i < 3; ++i) {
      if (!node.parts[i + 1]) continue;
      bounds[i] = eval(*node.parts[i + 1], scope);
      given[i] = &*bounds[i];
    }
    return slice_of(of, given[0], given[1], given[2], meter_);
  }

  Value comparison(const Node& node, Scope& scope) {
    Value left = eval(*node.parts[0], scope);
    for (size_t i = 0; i < node.words.size(); ++i) {
      Value right = eval(*node.parts[i + 1], scope);
      const std::string& word = node.words[i];
      bool holds;
      if (word == "==" || word == "!=") {
        holds = equal(left, right, meter_) == (word == "==");
      } else if (word == "in" || word == "not in") {
        holds = contains(right, left, meter_) == (word == "in");
      } else {
        const int order = compare(left, right, meter_);
        holds = word == "<" ? order < 0 : word == "<=" ? order <= 0 : word == ">" ? order > 0 : order >= 0;
      }
      if (!holds) return false;
      left = std::move(right);
    }
    return true;
  }

  Value call(const Node& node, Scope& scope) {
    const Value what = eval(*node.parts[0], scope);
    const Arguments given = arguments(node, scope);
    line_ = node.line;
    if (const MethodPtr* method = as<MethodPtr>(what)) return call_method(**method, given, meter_);
    if (MacroValue* const* macro = as<MacroValue*>(what)) return call_macro(**macro, given);
    const FunctionValue* function = as<FunctionValue>(what);
    if (function == nullptr) fail("cannot call ", kind_of(what));
    if (function->name != "namespace") return call_function(function->name, given, meter_);
    meter_.bytes(sizeof(SpaceValue) + given.named.size() * sizeof(Value));
    SpaceValue& space = spaces_.emplace_back();
    space.items = given.named;
    if (given.list.size() > 1 || (given.list.size() == 1 && as<MapPtr>(given.list[0]) == nullptr)) {
      fail("namespace() of something else than NAME = VALUE");
    }
    if (given.list.size() == 1) {
      for (const auto& [name, value] : (*as<MapPtr>(given.list[0]))->items) {
        const MarkedText* text = as_text(name);
        if (text == nullptr) fail("namespace() with ", kind_of(name), " as a name");
        meter_.bytes(text->size() + sizeof(Value));
        space.items.emplace_back(text->text, value);
      }
    }
    return &space;
  }

  Value call_macro(const MacroValue& macro, const Arguments& given) {
    const auto& parameters = macro.node->named;
    if (given.list.size() > parameters.size()) {
      fail("the macro ", macro.node->name, "() takes ", parameters.size(), " arguments, got ", given.list.size());
    }
    Inner inner(*this, *macro.around);
    for (const auto& [name, value] : given.named) {
      const auto known = std::ranges::find_if(parameters, [&](const auto& p) { return p.first == name; });
      if (known == parameters.end()) fail("the macro ", macro.node->name, "() has no parameter ", printable(name, 40));
      if (known - parameters.begin() < std::ssize(given.list)) {
        fail("the macro ", macro.node->name, "() gets ", printable(name, 40), " twice");
      }
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto& [name, otherwise] = parameters[i];
      const auto found = std::ranges::find_if(given.named, [&](const auto& p) { return p.first == name; });
      if (i < given.list.size()) {
        inner.scope().set(name, given.list[i]);
      } else if (found != given.named.end()) {
        inner.scope().set(name, found->second);
      } else {
        inner.scope().set(name, otherwise ? eval(*otherwise, inner.scope()) : Value(Undefined{name}));
      }
    }
    MarkedText text;
    run_all(macro.node->body, inner.scope(), text);
    return text_value(std::move(text), meter_);
  }

  static Value signed_value(const Value& value, bool negative) {
    if (const double* real = as<double>(value)) return negative ? -*real : *real;
    const std::optional<int64_t> whole = whole_of(value);
    if (!whole || *whole == INT64_MIN) fail("a sign before ", kind_of(value));
    return negative ? -*whole : *whole;
  }

  Value repeated(const MarkedText& text, int64_t times) {
    MarkedText out;
    if (times > 0)
      meter_.text_size(text.size() > 0 && times > (int64_t{1} << 40) ? size_t{1} << 40
                                                                     : text.size() * static_cast<size_t>(times));
    for (int64_t i = 0; i < times && text.size() > 0; ++i) out.append(text);
    return text_value(std::move(out), meter_);
  }

  Value arithmetic(Op op, const Value& left, const Value& right) {
    const MarkedText *a = as_text(left), *b = as_text(right);
    if (op == Op::add && a && b) {
      MarkedText sum = *a;
      sum.append(*b);
      return text_value(std::move(sum), meter_);
    }
    if (op == Op::multiply && a && whole_of(right)) return repeated(*a, *whole_of(right));
    if (op == Op::multiply && b && whole_of(left)) return repeated(*b, *whole_of(left));
    const ListPtr *x = as<ListPtr>(left), *y = as<ListPtr>(right);
    if (op == Op::add && x && y && (*x)->tuple == (*y)->tuple) {
      std::vector<Value> all = (*x)->items;
      all.insert(all.end(), (*y)->items.begin(), (*y)->items.end());
      meter_.steps(all.size());
      return list_value(std::move(all), meter_, (*x)->tuple);
    }
    if (!number_of(left) || !number_of(right)) fail("cannot calculate with ", kind_of(left), " and ", kind_of(right));
    const bool whole = whole_of(left) && whole_of(right) && op != Op::divide;
    if (whole && !(op == Op::power && *whole_of(right) < 0)) return of_whole(op, *whole_of(left), *whole_of(right));
    return of_real(op, *number_of(left), *number_of(right));
  }

  static Value of_whole(Op op, int64_t a, int64_t b) {
    int64_t out = 0;
    bool over = false;
    switch (op) {
      case Op::add:
        over = __builtin_add_overflow(a, b, &out);
        break;
      case Op::subtract:
        over = __builtin_sub_overflow(a, b, &out);
        break;
      case Op::multiply:
        over = __builtin_mul_overflow(a, b, &out);
        break;
      case Op::power:
        out = 1;
        if (a == 0 || a == 1 || a == -1)
          return a == -1 ? (b % 2 == 0 ? int64_t{1} : int64_t{-1}) : b == 0 ? int64_t{1} : a;
        for (int64_t i = 0; i < b && !over; ++i) over = __builtin_mul_overflow(out, a, &out);
        break;
      default:
        if (b == 0) fail("division by 0");
        if (b == -1) return op == Op::modulo ? Value(int64_t{0}) : signed_value(a, true);
        // Rounded downwards, as in Python.
        out = op == Op::modulo ? a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0)
                               : a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
    }
    if (over) fail("a whole number beyond 64 bits");
    return out;
  }

  static Value of_real(Op op, double a, double b) {
    switch (op) {
      case Op::add:
        return a + b;
      case Op::subtract:
        return a - b;
      case Op::multiply:
        return a * b;
      case Op::power:
        return std::pow(a, b);
      default:
        break;
    }
    if (b == 0) fail("division by 0");
    if (op == Op::divide) return a / b;
    const double rest = std::fmod(a, b);
    const double modulo = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    return op == Op::modulo ? modulo : std::floor((a - modulo) / b + 0.5);
  }

  Meter meter_;
  int line_ = 1, depth_ = 0;
  // What values point to; a deque keeps its places.
  std::deque<Scope> scopes_;
  std::deque<MacroValue> macros_;
  std::deque<SpaceValue> spaces_;
};

}  // namespace

}  // namespace jinja

JinjaTemplate::JinjaTemplate(std::unique_ptr<const jinja::Node> program, std::string where)
    : program_(std::move(program)), where_(std::move(where)) {}
JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;

JinjaTemplate JinjaTemplate::parse(std::string_view source, const std::string& where) {
  return {jinja::parse_program(source, where), where};
}

MarkedText JinjaTemplate::render(const OrderedJson& data, const OrderedJson& own, const JinjaLimits& limits) const {
  jinja::Rendering rendering(limits);
  try {
    return rendering.run(*program_, data, own);
  } catch (const jinja::Fault& fault) {
    throw Error(ErrorKind::config, str(where_, ":", rendering.line(), ": ", fault.what));
  }
}

}  // namespace ucas
