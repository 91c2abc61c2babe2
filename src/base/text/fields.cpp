#include "base/text/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr size_t kHelpWidth = 100;
constexpr int kMostUnknown = 20;  // keys that are named one by one

// The first of `ours` that a line of peer_words.txt gives for a word of theirs.
std::string meaning(const std::string& theirs, const std::vector<std::string>& ours) {
  for (const std::string& line : split(*embedded("base/text/peer_words.txt"), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words[0] != theirs) continue;
    for (const std::string& word : words) {
      if (std::ranges::find(ours, word) != ours.end()) return word;
    }
  }
  return "";
}

// 1e+06 is hard to read as a limit: 1,000,000.
std::string limit_text(double value) {
  bool whole = std::fabs(value) < 1e16 && value == std::floor(value);
  return whole ? grouped(static_cast<int64_t>(value)) : str(value);
}

std::string range_text(Range r) {
  bool low = std::isfinite(r.low), high = std::isfinite(r.high);
  if (low && high) return str(limit_text(r.low), " .. ", limit_text(r.high));
  if (low) return ">= " + limit_text(r.low);
  if (high) return "<= " + limit_text(r.high);
  return "";
}

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      const char* hex = "0123456789abcdef";
      out += c == '\n' ? "\\n" : str("\\u00", hex[(c >> 4) & 15], hex[c & 15]);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string toml_number(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = str(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

// Keeps track of the dotted prefix for all visitors.
class Prefixed : public Fields {
 protected:
  void enter(const char* name) override { prefix_ += str(name, "."); }
  void leave() override {
    prefix_.pop_back();
    size_t dot = prefix_.rfind('.');
    prefix_.resize(dot == std::string::npos ? 0 : dot + 1);
  }
  std::string prefix_;
};

// Lists keys with their values as TOML text, range and help.
class Lister final : public Prefixed {
 public:
  struct Row {
    std::string section, key, value, help, type, allowed;
    Effect effect;
  };
  std::vector<Row> rows;

 private:
  void visit(const OptionField& field) override {
    const std::string section = prefix_.empty() ? "" : prefix_.substr(0, prefix_.size() - 1);
    rows.push_back({section, field.key, "", field.help, "", range_text(field.range), field.effect});
    std::visit([&](const auto& value) { show(value, rows.back()); }, field.value);
  }
  template <class List, class Show>
  static std::string list_text(const List& values, Show show) {
    std::vector<std::string> parts;
    for (const auto& v : values) parts.push_back(show(v));
    return "[" + join(parts, ", ") + "]";
  }
  static void set(Row& row, const char* type, std::string value) {
    row.type = type;
    row.value = std::move(value);
  }
  static void show(const bool* v, Row& row) { set(row, "BOOL", str(*v)); }
  static void show(const int64_t* v, Row& row) { set(row, "INT", str(*v)); }
  static void show(const double* v, Row& row) { set(row, "NUM", toml_number(*v)); }
  static void show(const std::string* v, Row& row) { set(row, "TEXT", toml_text(*v)); }
  static void show(const std::vector<std::string>* v, Row& row) { set(row, "A,B,..", list_text(*v, toml_text)); }
  static void show(const std::vector<int64_t>* v, Row& row) {
    set(row, "N,M,..", list_text(*v, [](int64_t n) { return str(n); }));
  }
  static void show(const OptionField::Choice& choice, Row& row) {
    set(row, "NAME", toml_text(choice.words.at(*choice.index)));
    row.allowed = join(choice.words, " | ");
  }
};

// Writes settings into the fields they name.
class Applier final : public Prefixed {
 public:
  explicit Applier(const std::vector<Setting>& settings) : settings_(settings), used_(settings.size()) {}
  std::vector<bool>& used() { return used_; }
  const std::vector<std::string>& keys() const { return keys_; }
  Refusals& refusals() { return refusals_; }

 private:
  // As it is typed "--max-tokens" is "--max_tokens", too.
  static bool is_named(const Setting& setting, const std::string& key) {
    const auto same = [&](char typed, char own) {
      return typed == own || (setting.from_text && typed == '-' && own == '_');
    };
    return std::ranges::equal(setting.key, key, same);
  }
  // The last setting of this key: later ones (the command line) override earlier ones (the file).
  const Setting* find(const char* key) {
    keys_.push_back(prefix_ + key);
    const Setting* found = nullptr;
    for (size_t i = 0; i < settings_.size(); ++i) {
      if (!is_named(settings_[i], keys_.back())) continue;
      used_[i] = true;
      found = &settings_[i];
      if (found->no_value) throw Error(ErrorKind::usage, str(found->where, ": a value is missing after it"));
    }
    return found;
  }
  [[noreturn]] static void bad(const Setting& s, const std::string& expected) { refuse(s, "expected " + expected); }
  [[noreturn]] static void refuse(const Setting& s, const std::string& why) {
    std::string got = std::visit(
        [&](const auto& v) -> std::string {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::string>) {
            return s.from_text && !v.empty() ? printable(v) : toml_text(printable(v));
          } else if constexpr (std::is_arithmetic_v<T>) {
            return str(v);
          } else {
            return "a list";
          }
        },
        s.value);
    // From a file "run.toml:3: steps = 0", from the command line "--steps 0".
    std::string place = s.from_text ? str(s.where, " ", got) : str(s.where, ": ", s.key, " = ", got);
    throw Error(ErrorKind::config, str(place, ": ", why));
  }
  static void check(const Setting& s, double value, Range r) {
    if (std::isnan(value) || value < r.low || value > r.high) bad(s, "a value " + range_text(r));
  }
  template <class Number>
  static std::optional<Number> number(std::string_view text) {
    Number value{};
    if (!text.empty() && text[0] == '+') text.remove_prefix(1);
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  }
  // a,b or [a, b] or ["a", "b\n"]: quoted text is read with its escapes. Blanks around an item belong to it only where
  // it is the whole text, or in quotes.
  static std::vector<std::string> list_items(std::string_view text) {
    const std::string_view inner = trim(text);
    const bool brackets = inner.size() >= 2 && inner.front() == '[' && inner.back() == ']';
    if (brackets) text = inner.substr(1, inner.size() - 2);
    std::vector<std::string> items;
    if (text.empty() || (brackets && trim(text).empty())) return items;
    for (size_t at = 0; at <= text.size();) {
      const size_t begin = std::min(text.find_first_not_of(' ', at), text.size());
      const auto [quoted, after] = quoted_item(text, begin);
      const size_t end = std::min(text.find(',', quoted ? after : at), text.size());
      const std::string_view item = text.substr(at, end - at);
      const bool whole = at == 0 && end == text.size() && !brackets;
      items.push_back(quoted ? *quoted : std::string(whole ? item : brackets ? trim(item) : without_blanks(item)));
      at = end + 1;
    }
    return items;
  }
  // The text in quotes at `begin`, if it is the whole item, and where it ends.
  static std::pair<std::optional<std::string>, size_t> quoted_item(std::string_view text, size_t begin) {
    if (begin == text.size() || text[begin] != '"') return {};
    size_t end = begin + 1;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    const size_t next = end < text.size() ? text.find_first_not_of(' ', end + 1) : 0;
    if (end >= text.size() || (next != std::string_view::npos && text[next] != ',')) return {};
    try {
      return {parse_json(text.substr(begin, end + 1 - begin), "a list").get<std::string>(), end + 1};
    } catch (const Error&) {  // no escape: as it is
      return {std::string(text.substr(begin + 1, end - begin - 1)), end + 1};
    }
  }
  static std::string_view without_blanks(std::string_view item) {
    while (item.size() > 1 && item.front() == ' ') item.remove_prefix(1);
    while (item.size() > 1 && item.back() == ' ') item.remove_suffix(1);
    return item;
  }

  void visit(const OptionField& field) override {
    const Setting* s = find(field.key);
    if (s == nullptr) return;
    refusals_.attempt([&] { std::visit([&](const auto& value) { read(*s, value, field.range); }, field.value); });
  }
  static void read(const Setting& s, bool* value, Range) {
    if (const bool* b = std::get_if<bool>(&s.value)) {
      *value = *b;
    } else if (const auto* t = std::get_if<std::string>(&s.value); s.from_text && (*t == "true" || *t == "false")) {
      *value = *t == "true";
    } else {
      bad(s, "true or false");
    }
  }
  static void read(const Setting& s, int64_t* value, Range range) {
    if (const int64_t* n = std::get_if<int64_t>(&s.value)) {
      *value = *n;
    } else if (s.from_text && number<int64_t>(std::get<std::string>(s.value))) {
      *value = *number<int64_t>(std::get<std::string>(s.value));
    } else {
      bad(s, "a whole number");
    }
    check(s, static_cast<double>(*value), range);
  }
  static void read(const Setting& s, double* value, Range range) {
    if (const double* d = std::get_if<double>(&s.value)) {
      *value = *d;
    } else if (const int64_t* n = std::get_if<int64_t>(&s.value)) {
      *value = static_cast<double>(*n);
    } else if (s.from_text && number<double>(std::get<std::string>(s.value))) {
      *value = *number<double>(std::get<std::string>(s.value));
    } else {
      bad(s, "a number");
    }
    check(s, *value, range);
  }
  static void read(const Setting& s, std::string* value, Range) {
    const auto* t = std::get_if<std::string>(&s.value);
    if (t == nullptr) bad(s, "text in quotes");
    *value = *t;
  }
  static void read(const Setting& s, std::vector<std::string>* value, Range) {
    if (const auto* list = std::get_if<std::vector<std::string>>(&s.value)) {
      *value = *list;
    } else if (const auto* t = std::get_if<std::string>(&s.value)) {
      *value = s.from_text ? list_items(*t) : std::vector<std::string>{*t};
    } else if (const auto* n = std::get_if<std::vector<int64_t>>(&s.value); n != nullptr && n->empty()) {
      value->clear();
    } else {
      bad(s, "a list of texts");
    }
  }
  static void read(const Setting& s, std::vector<int64_t>* value, Range range) {
    std::vector<int64_t> read;
    if (const auto* list = std::get_if<std::vector<int64_t>>(&s.value)) {
      read = *list;
    } else if (const int64_t* n = std::get_if<int64_t>(&s.value)) {
      read = {*n};
    } else if (const auto* t = std::get_if<std::string>(&s.value); t != nullptr && s.from_text) {
      for (const std::string& item : list_items(*t)) {
        auto n = number<int64_t>(item);
        if (!n) bad(s, "a list of whole numbers");
        read.push_back(*n);
      }
    } else {
      bad(s, "a list of whole numbers");
    }
    for (int64_t n : read) check(s, static_cast<double>(n), range);
    *value = read;
  }
  static void read(const Setting& s, const OptionField::Choice& choice, Range) {
    const auto* t = std::get_if<std::string>(&s.value);
    auto at = t == nullptr ? choice.words.end() : std::ranges::find(choice.words, *t);
    if (at == choice.words.end()) {
      std::string near = t == nullptr ? "" : peer_value(*t, choice.words);
      if (near.empty() && t != nullptr) near = nearest(*t, choice.words);
      bad(s, str("one of ", join(choice.words, ", "), did_you_mean(near)));
    }
    *choice.index = static_cast<int>(at - choice.words.begin());
  }

  const std::vector<Setting>& settings_;
  std::vector<bool> used_;
  std::vector<std::string> keys_;
  Refusals refusals_{ErrorKind::config};
};

}  // namespace

std::string peer_option(std::string_view key, const std::vector<std::string>& keys) {
  std::string last(key.substr(key.rfind('.') == std::string_view::npos ? 0 : key.rfind('.') + 1));
  std::ranges::replace(last, '-', '_');
  return meaning(last, keys);
}

std::string peer_value(std::string_view value, const std::vector<std::string>& words) {
  std::string lower(value);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return std::ranges::find(words, lower) != words.end() ? lower : meaning(lower, words);
}

void apply_settings(Fielder list, void* config, const std::vector<Setting>& settings, bool strict) {
  Applier applier(settings);
  list(applier, config);
  int unknown = 0;
  for (size_t i = 0; strict && i < settings.size(); ++i) {
    if (applier.used()[i]) continue;
    if (++unknown > kMostUnknown) {  // another kind of file, or one made to be slow
      applier.refusals()(str(printable(settings[i].where), ": and more unknown keys"));
      break;
    }
    const bool typed = settings[i].from_text;
    std::string elsewhere;  // a right name in the wrong table
    const std::string tail = "." + settings[i].key.substr(settings[i].key.rfind('.') + 1);
    for (const std::string& key : applier.keys()) {
      if (("." + key).ends_with(tail)) elsewhere = key;
    }
    std::string near = elsewhere.empty() ? peer_option(settings[i].key, applier.keys()) : "";
    if (near.empty()) near = nearest(settings[i].key, applier.keys());
    if (near.empty()) near = elsewhere;
    applier.refusals()(str(printable(settings[i].where), ": unknown key", typed ? "" : " " + printable(settings[i].key),
                           did_you_mean(near.empty() || !typed ? near : "--" + near)));
  }
  applier.refusals().finish();
}

std::string dump_toml(Fielder list, void* config) {
  Lister lister;
  list(lister, config);
  std::string top, tables, section;
  // Top-level keys must come before the first table.
  for (const auto& row : lister.rows) {
    if (row.section.empty()) top += str(row.key, " = ", row.value, "\n");
  }
  for (const auto& row : lister.rows) {
    if (row.section.empty()) continue;
    if (row.section != section) tables += str(tables.empty() && top.empty() ? "" : "\n", "[", row.section, "]\n");
    section = row.section;
    tables += str(row.key, " = ", row.value, "\n");
  }
  return top + tables;
}

std::string help_text(Fielder list, void* config) {
  Lister lister;
  list(lister, config);
  std::string text, section;
  size_t width = 0;
  auto name_of = [](const Lister::Row& row) {
    return str("  --", row.section.empty() ? "" : row.section + ".", row.key, " ", row.type);
  };
  for (const auto& row : lister.rows) width = std::max(width, name_of(row).size());
  width = std::min<size_t>(width, 44);
  bool first = true;
  for (const auto& row : lister.rows) {
    if (first || row.section != section) {
      text += str(first ? "" : "\n", row.section.empty() ? "Options:\n" : str("[", row.section, "]\n"));
    }
    first = false;
    section = row.section;
    std::string name = name_of(row);
    text += name.size() > width ? name + "\n" + std::string(width, ' ') : pad_right(name, width);
    const std::string help = str(row.help, row.allowed.empty() ? "" : "; " + row.allowed, " [", row.value, "]");
    text += str("  ", wrap_text(help, kHelpWidth, width + 2, width + 2), "\n");
  }
  return text;
}

std::vector<FieldValue> list_fields(Fielder list, void* config) {
  Lister lister;
  list(lister, config);
  std::vector<FieldValue> values;
  for (const auto& row : lister.rows) {
    values.push_back({row.section.empty() ? row.key : row.section + "." + row.key, row.value, row.help, row.effect});
  }
  return values;
}

CommandLine parse_command_line(const std::vector<std::string>& arguments, const std::vector<std::string>& flags) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "-h" || word == "--help") {
      line.help = true;
    } else if (word == "-o" && i + 1 < arguments.size()) {
      line.settings.push_back({"out", arguments[++i], "-o", true});
    } else if (word.size() > 2 && word.starts_with("--")) {
      size_t equals = word.find('=');
      std::string key = word.substr(2, equals == std::string::npos ? equals : equals - 2);
      bool flag = std::find(flags.begin(), flags.end(), key) != flags.end();
      if (equals != std::string::npos) {
        line.settings.push_back({key, word.substr(equals + 1), "--" + key, true});
      } else if (flag) {
        line.settings.push_back({key, true, "--" + key, true});
      } else {
        const bool last = i + 1 == arguments.size();
        line.settings.push_back({key, last ? "" : arguments[++i], "--" + key, true, last});
      }
    } else if (word.size() > 1 && word[0] == '-' && word != "-") {
      throw Error(ErrorKind::usage, str(printable(word), ": unknown option (options are written --key value)"));
    } else {
      line.positionals.push_back(word);
    }
  }
  return line;
}

}  // namespace ucas
