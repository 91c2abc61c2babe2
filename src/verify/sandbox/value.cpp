#include "verify/sandbox/sandbox.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas::code {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<Value> whole() {
    Value value;
    skip();
    if (!read(value, 0)) return std::nullopt;
    skip();
    if (at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool word(std::string_view name) {
    if (!text_.substr(at_).starts_with(name) || is_name(peek(name.size()))) return false;
    at_ += name.size();
    return true;
  }

  bool read(Value& out, size_t depth) {
    if (depth > kValueDepth) return false;
    const char c = peek();
    if (c == '[') return sequence(out, Value::Kind::list, ']', depth);
    if (c == '(') return sequence(out, Value::Kind::tuple, ')', depth);
    if (c == '{') return braces(out, depth);
    if (c == '"' || c == '\'' || c == 'b') return texts(out);
    if (is_digit(c) || c == '-' || c == '+' || c == '.') return number(out);
    if (word("None")) return true;
    const bool yes = word("True");
    if (yes || word("False")) {
      out.kind = Value::Kind::boolean;
      out.real = yes ? 1 : 0;
      return true;
    }
    if (word("set()") || word("frozenset()")) {
      out.kind = Value::Kind::set;
      return true;
    }
    return real_name(out, 1);
  }

  bool real_name(Value& out, double sign) {
    const bool infinite = word("inf");
    if (!infinite && !word("nan")) return false;
    out.kind = Value::Kind::real;
    out.real = infinite ? sign * HUGE_VAL : NAN;
    return true;
  }

  bool number(Value& out) {
    bool minus = false;
    while (peek() == '-' || peek() == '+') minus ^= text_[at_++] == '-';
    if (!is_digit(peek()) && peek() != '.') {
      // -inf; a boolean or a text has no sign here
      return real_name(out, minus ? -1 : 1);
    }
    const size_t begin = at_;
    bool real = false;
    while (is_digit(peek()) || peek() == '_' || peek() == '.' || peek() == 'e' || peek() == 'E' ||
           ((peek() == '-' || peek() == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'))) {
      real |= !is_digit(peek()) && peek() != '_';
      ++at_;
    }
    if (is_name(peek())) return false;
    std::string digits(text_.substr(begin, at_ - begin));
    std::erase(digits, '_');
    if (!real) {
      digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
      if (digits.size() > kIntegerDigits) return false;
      out.kind = Value::Kind::integer;
      out.text = minus && digits != "0" ? "-" + digits : digits;
      return true;
    }
    out.kind = Value::Kind::real;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.real);
    if (error == std::errc::result_out_of_range) {
      out.real = std::strtod(digits.c_str(), nullptr);  // 1e400 is inf, 1e-400 is 0
    } else if (error != std::errc() || end != digits.data() + digits.size()) {
      return false;
    }
    if (minus) out.real = -out.real;
    return true;
  }

  // As ascii() writes it.
  bool texts(Value& out) {
    const bool bytes = take('b');
    const char quote = peek();
    if (quote != '"' && quote != '\'') return false;
    out.kind = bytes ? Value::Kind::bytes : Value::Kind::text;
    for (++at_; at_ < text_.size();) {
      if (take(quote)) return true;
      if (peek() == '\n') return false;
      if (peek() != '\\') {
        out.text += text_[at_++];
      } else if (!escape(out.text, bytes)) {
        return false;
      }
    }
    return false;
  }

  bool escape(std::string& out, bool bytes) {
    const char c = peek(1);
    at_ += 2;
    if (at_ > text_.size()) return false;
    constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    if (c == '\n') return true;
    if (const size_t found = kFrom.find(c); found != std::string_view::npos) {
      out += kTo[found];
      return true;
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' && !bytes ? 4 : c == 'U' && !bytes ? 8 : 0;
    uint32_t code = 0;
    if (digits > 0) {
      if (at_ + digits > text_.size()) return false;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + digits, code, 16);
      if (error != std::errc() || end != text_.data() + at_ + digits || code > 0x10FFFF) return false;
      at_ += digits;
    } else if (c >= '0' && c <= '7') {
      --at_;
      for (int i = 0; i < 3 && peek() >= '0' && peek() <= '7'; ++i)
        code = code * 8 + static_cast<uint32_t>(text_[at_++] - '0');
    } else {
      out += '\\';  // an unknown escape is itself
      out += c;
      return c != 'N';
    }
    if (bytes) {
      out += static_cast<char>(code);
    } else {
      append_utf8(out, code);
    }
    return true;
  }

  bool sequence(Value& out, Value::Kind kind, char close, size_t depth) {
    ++at_;
    out.kind = kind;
    bool comma = false;
    for (skip(); !take(close); skip()) {
      if (!out.items.empty() && !comma) return false;
      if (!read(out.items.emplace_back(), depth + 1)) return false;
      skip();
      comma = take(',');
    }
    // (1) is 1, (1,) a tuple
    if (kind == Value::Kind::tuple && out.items.size() == 1 && !comma) {
      Value inner = std::move(out.items[0]);
      out = std::move(inner);
    }
    return true;
  }

  bool braces(Value& out, size_t depth) {
    ++at_;
    out.kind = Value::Kind::dict;
    bool comma = true;
    for (skip(); !take('}'); skip()) {
      if (!comma) return false;
      const bool first = out.items.empty();
      if (!read(out.items.emplace_back(), depth + 1)) return false;
      skip();
      const bool pair = take(':');
      if (first) out.kind = pair ? Value::Kind::dict : Value::Kind::set;
      if (pair != (out.kind == Value::Kind::dict)) return false;
      if (pair) {
        skip();
        if (!read(out.items.emplace_back(), depth + 1)) return false;
        skip();
      }
      comma = take(',');
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

bool is_number(const Value& v) {
  return v.kind == Value::Kind::boolean || v.kind == Value::Kind::integer || v.kind == Value::Kind::real;
}

// Of a boolean or an integer, and of a real that is a whole number; "" for other reals.
std::string integer_of(const Value& v) {
  if (v.kind == Value::Kind::integer) return v.text;
  if (v.kind == Value::Kind::boolean) return v.real != 0 ? "1" : "0";
  if (!std::isfinite(v.real) || v.real != std::floor(v.real)) return "";
  char digits[400];
  std::snprintf(digits, sizeof digits, "%.0f", v.real);
  return std::string(digits) == "-0" ? "0" : digits;
}

bool equal_numbers(const Value& a, const Value& b) {
  if (a.kind == Value::Kind::real && b.kind == Value::Kind::real) return a.real == b.real;
  const std::string x = integer_of(a), y = integer_of(b);
  return !x.empty() && x == y;
}

// Elements (pairs of a dict) that are each met by one of the other side. Those of numbers and texts are found by their
// sorted forms; the rest, seldom, one against all.
std::string sort_key(const Value& v) {
  if (is_number(v)) {
    const std::string whole = integer_of(v);
    return whole.empty() ? str("r", v.real) : "i" + whole;
  }
  if (v.kind == Value::Kind::text) return "t" + v.text;
  if (v.kind == Value::Kind::bytes) return "b" + v.text;
  std::string key = str("(", static_cast<int>(v.kind));
  if (v.kind == Value::Kind::set || v.kind == Value::Kind::dict) return key;  // no order to speak of
  for (const Value& item : v.items) key += sort_key(item) + ",";
  return key;
}

bool equal_unordered(const Value& a, const Value& b, size_t step) {
  const auto sorted = [step](const Value& v) {
    std::vector<std::pair<std::string, const Value*>> rows;
    for (size_t i = 0; i + step <= v.items.size(); i += step) rows.emplace_back(sort_key(v.items[i]), &v.items[i]);
    std::ranges::stable_sort(rows, {}, &std::pair<std::string, const Value*>::first);
    // A key that comes twice in a literal counts once, and its last value is kept.
    std::vector<std::pair<std::string, const Value*>> once;
    for (auto& row : rows) {
      if (!once.empty() && once.back().first == row.first && equal(*once.back().second, *row.second)) once.pop_back();
      once.push_back(std::move(row));
    }
    return once;
  };
  const auto x = sorted(a), y = sorted(b);
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].first != y[i].first || !equal(*x[i].second, *y[i].second)) return false;
    if (step == 2 && !equal(x[i].second[1], y[i].second[1])) return false;
  }
  return true;
}

void write_literal(const Json& value, std::string& out) {
  if (value.is_null()) {
    out += "None";
  } else if (value.is_boolean()) {
    out += value.get<bool>() ? "True" : "False";
  } else if (value.is_array()) {
    out += "[";
    for (const Json& item : value) write_literal(item, out), out += ",";
    out += "]";
  } else if (value.is_object()) {
    out += "{";
    for (const auto& [key, item] : value.items()) {
      out += json_text(key) + ":";
      write_literal(item, out);
      out += ",";
    }
    out += "}";
  } else {
    out += json_text(value);  // numbers; texts, whose escapes Python shares
  }
}

}  // namespace

std::optional<Value> parse_value(std::string_view text) { return Parser(text).whole(); }

bool equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return equal_numbers(a, b);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Value::Kind::text:
    case Value::Kind::bytes:
      return a.text == b.text;
    case Value::Kind::set:
      return equal_unordered(a, b, 1);
    case Value::Kind::dict:
      return equal_unordered(a, b, 2);
    default:
      return std::ranges::equal(a.items, b.items, [](const Value& x, const Value& y) { return equal(x, y); });
  }
}

bool same_decimal(std::string_view a, std::string_view b) {
  struct Decimal {
    bool minus = false;
    std::string digits;  // without zeros at either end
    int64_t exponent = 0;
  };
  const auto read = [](std::string_view text) -> std::optional<Decimal> {
    Decimal d;
    if (text.starts_with('-') || text.starts_with('+')) {
      d.minus = text[0] == '-';
      text.remove_prefix(1);
    }
    bool point = false, any = false;
    size_t i = 0;
    for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
      if (text[i] == '.') {
        point = true;
        continue;
      }
      any = true;
      d.digits += text[i];
      if (point) --d.exponent;
    }
    if (!any) return std::nullopt;
    if (i < text.size()) {
      if (text[i] != 'e' && text[i] != 'E') return std::nullopt;
      std::string_view power = text.substr(i + 1);
      if (power.starts_with('+')) power.remove_prefix(1);
      int64_t value = 0;
      const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), value);
      if (error != std::errc() || end != power.data() + power.size() || std::abs(value) > 1000000) return std::nullopt;
      d.exponent += value;
    }
    while (d.digits.ends_with('0')) d.digits.pop_back(), ++d.exponent;
    d.digits.erase(0, std::min(d.digits.find_first_not_of('0'), d.digits.size()));
    if (d.digits.empty()) return Decimal{};
    return d;
  };
  const auto x = read(a), y = read(b);
  return x && y && x->minus == y->minus && x->digits == y->digits && x->exponent == y->exponent;
}

std::optional<std::string> literal_of_json(std::string_view json) {
  try {
    std::string out;
    write_literal(parse_json(json, "a value"), out);
    return out;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace ucas::code
