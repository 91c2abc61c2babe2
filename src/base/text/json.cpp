#include "base/text/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr size_t kMaxDepth = 64;

// Builds the document while it checks depth and duplicate keys (nlohmann's own DOM parser keeps the last duplicate).
class StrictReader : public nlohmann::json_sax<Json> {
 public:
  StrictReader(Json& root, size_t text_bytes, const std::string& where, size_t most)
      : root_(root), where_(where), memory_(text_bytes, where, most) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override {
    memory_.take(JsonMemory::kText);
    return add(std::move(value));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    auto [slot, fresh] = stack_.back()->get_ref<Json::object_t&>().emplace(name, nullptr);
    if (!fresh) throw Error(ErrorKind::dup_key, str(where_, ": duplicate key \"", printable(name), "\""));
    slot_ = &slot->second;
    memory_.take(JsonMemory::kKey);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string text = error.what();
    size_t dash = text.find(" - ");
    std::string reason = text.find("UTF-8") != std::string::npos ? "invalid UTF-8"
                         : dash == std::string::npos             ? text.substr(text.find("] ") + 2)
                                                                 : text.substr(dash + 3);
    throw Error(reason == "invalid UTF-8" ? ErrorKind::utf8 : ErrorKind::header_json,
                str(where_, ": not valid JSON at byte ", position, ": ", printable(reason)));
  }

 private:
  Json* place(Json&& value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (stack_.back()->is_array()) {
      memory_.take(JsonMemory::kItem);
      stack_.back()->push_back(std::move(value));
      return &stack_.back()->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool add(Json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(Json&& value) {
    if (stack_.size() >= kMaxDepth)
      throw Error(ErrorKind::header_json, str(where_, ": JSON nested deeper than ", kMaxDepth));
    memory_.take(JsonMemory::kOpen);
    stack_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  Json& root_;
  const std::string& where_;
  JsonMemory memory_;
  std::vector<Json*> stack_;
  Json* slot_ = nullptr;
};

constexpr int64_t kLinesLimit = int64_t{4} << 30;

std::string shown_value(const Json& value) {
  if (value.is_null()) return "null";
  return str(value.type_name(), " ", printable(json_text(value), 40));
}

std::string whole_words(int64_t low, int64_t high) {
  std::string words = "a whole number";
  if (low > -JsonObject::kMost) words += str(" from ", low);
  if (high < JsonObject::kMost) words += str(" to ", high);
  return words;
}

}  // namespace

JsonMemory::JsonMemory(size_t text_bytes, const std::string& where, size_t most)
    : most_(most), left_(most + text_bytes / 2), where_(where) {}

void JsonMemory::refuse() const {
  throw Error(ErrorKind::limit,
              str(where_, ": more values than are read from JSON at once: they would take more than ",
                  human_bytes(static_cast<double>(most_)), " besides the file; rows are read as JSON Lines"));
}

namespace {

// Bytes that no JSON text holds and the parser passes over: a byte order mark, a NUL (which nlohmann takes for the end,
// whatever follows it).
void check_json_bytes(std::string_view text, const std::string& where) {
  if (text.starts_with("\xef\xbb\xbf")) {
    throw Error(ErrorKind::header_json, str(where, ": begins with a byte order mark; save it as plain UTF-8"));
  }
  if (size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error(ErrorKind::header_json, str(where, ": not valid JSON at byte ", nul + 1, ": a NUL byte"));
  }
}

Json parse_within(std::string_view text, const std::string& where, size_t most) {
  check_json_bytes(text, where);
  Json root;
  StrictReader reader(root, text.size(), where, most);
  Json::sax_parse(text.begin(), text.end(), &reader);
  return root;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  return parse_within(text, where, JsonMemory::kDocument);
}

Json parse_json_rows(std::string_view text, const std::string& where) {
  return parse_within(text, where, JsonMemory::kRows);
}

OrderedJson parse_ordered_json(std::string_view text) { return OrderedJson::parse(text.begin(), text.end()); }

std::string json_text(const OrderedJson& value, int indent) {
  return value.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_text(const std::string& text) { return json_text(Json(text)); }

Json read_json(const std::string& path, int64_t limit) { return parse_json(read_file(path, limit), path); }

JsonObject::JsonObject(const Json& value, std::string where, ErrorKind kind, const char* advice)
    : object_(&value), where_(std::move(where)), kind_(kind), advice_(advice) {
  if (!value.is_object()) refuse(str(shown_value(value), ", expected an object"));
}

JsonObject::JsonObject(std::shared_ptr<const Json> root, std::string where, ErrorKind kind, const char* advice)
    : JsonObject(*root, std::move(where), kind, advice) {
  root_ = std::move(root);
}

JsonObject JsonObject::parse(std::string_view text, const std::string& where, ErrorKind kind, const char* advice) {
  return {std::make_shared<const Json>(parse_json(text, where)), where, kind, advice};
}

JsonObject JsonObject::read(const std::string& path, int64_t limit, ErrorKind kind, const char* advice) {
  return {std::make_shared<const Json>(read_json(path, limit)), printable(path, 400), kind, advice};
}

JsonObject JsonObject::inner(const Json& value, const std::string& path) const {
  JsonObject out = *this;
  out.object_ = &value;
  out.path_ = path_.empty() ? path : str(path_, ".", path);
  if (!value.is_object()) out.refuse(str(shown_value(value), ", expected an object"));
  return out;
}

std::string JsonObject::place() const { return path_.empty() ? where_ : str(where_, ": ", path_); }

void JsonObject::refuse(const std::string& what) const {
  throw Error(kind_, str(place(), ": ", what, advice_[0] == '\0' ? "" : "; ", advice_));
}

void JsonObject::refuse(std::string_view key, const std::string& expected) const {
  const auto found = object_->find(key);
  if (found == object_->end()) {
    refuse(str("the field \"", printable(key), "\" is missing", expected.empty() ? "" : ", expected ", expected));
  }
  refuse_value(key, *found, expected);
}

void JsonObject::refuse_value(std::string_view key, const Json& got, const std::string& expected) const {
  refuse(str("\"", printable(key), "\": ", shown_value(got), ", expected ", expected));
}

const Json* JsonObject::find(std::string_view key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_->items()) names.push_back(key);
  return names;
}

void JsonObject::only(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : object_->items()) {
    if (std::ranges::find(known, key) == known.end()) refuse(str("unknown field \"", printable(key), "\""));
  }
}

void JsonObject::format(const char* name, const char* hint) const {
  const Json* value = find("format");
  if (!value || *value != name) refuse("format", str("\"", name, "\" (", hint, ")"));
}

const Json& JsonObject::required(std::string_view key, const char* expected) const {
  const auto found = object_->find(key);
  if (found == object_->end()) refuse(key, "");
  if (found->is_null()) refuse(key, expected);
  return *found;
}

const Json& JsonObject::list(std::string_view key, const char* expected) const {
  const Json& value = required(key, expected);
  if (!value.is_array()) refuse_value(key, value, expected);
  return value;
}

int64_t JsonObject::whole_value(std::string_view key, const Json& value, int64_t low, int64_t high) const {
  const double number = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!(std::fabs(number) <= static_cast<double>(kMost)) || number != std::floor(number) ||
      value.get<int64_t>() < low || value.get<int64_t>() > high) {
    refuse_value(key, value, whole_words(low, high));
  }
  return value.get<int64_t>();
}

std::string JsonObject::text(std::string_view key) const {
  const Json& value = required(key, "text");
  if (!value.is_string()) refuse_value(key, value, "text");
  return value.get<std::string>();
}

int64_t JsonObject::whole(std::string_view key, int64_t low, int64_t high) const {
  return whole_value(key, required(key, "a whole number"), low, high);
}

double JsonObject::number(std::string_view key) const {
  if (object_->find(key) == object_->end()) refuse(key, "");
  return number_or(key, std::numeric_limits<double>::quiet_NaN());
}

bool JsonObject::truth(std::string_view key) const {
  const Json& value = required(key, "true or false");
  if (!value.is_boolean()) refuse_value(key, value, "true or false");
  return value.get<bool>();
}

std::vector<std::string> JsonObject::texts(std::string_view key) const {
  std::vector<std::string> out;
  for (const Json& item : list(key, "a list of texts")) {
    if (!item.is_string()) refuse_value(key, item, "a text in the list");
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<double> JsonObject::numbers(std::string_view key) const {
  std::vector<double> out;
  for (const Json& item : list(key, "a list of numbers")) {
    if (!item.is_number() && !item.is_null()) refuse_value(key, item, "a number or null in the list");
    out.push_back(item.is_null() ? std::numeric_limits<double>::quiet_NaN() : item.get<double>());
  }
  return out;
}

std::vector<int32_t> JsonObject::ids(std::string_view key, int64_t vocabulary) const {
  const auto unfit = [&](const std::string& got) {
    refuse(str("\"", printable(key), "\": ", got, ", expected a list of token ids from 0 to ", vocabulary - 1));
  };
  const Json& items = required(key, "a list of token ids");
  if (!items.is_array()) unfit(str("is a ", items.type_name()));
  std::vector<int32_t> out;
  for (const Json& item : items) {
    const bool fits = item.is_number_integer() && !(item.is_number_unsigned() && item.get<uint64_t>() > INT32_MAX);
    if (!fits || item.get<int64_t>() < 0 || item.get<int64_t>() >= vocabulary) {
      unfit("holds " + printable(item.dump(-1, ' ', true), 40));
    }
    out.push_back(item.get<int32_t>());
  }
  return out;
}

JsonObject JsonObject::child(std::string_view key) const { return inner(required(key, "an object"), printable(key)); }

std::vector<JsonObject> JsonObject::children(std::string_view key) const {
  std::vector<JsonObject> out;
  for (const Json& item : list(key, "a list of objects")) {
    out.push_back(inner(item, str(printable(key), "[", out.size(), "]")));
  }
  return out;
}

std::string JsonObject::text_or(std::string_view key, const std::string& otherwise) const {
  return has(key) ? text(key) : otherwise;
}

int64_t JsonObject::whole_or(std::string_view key, int64_t otherwise, int64_t low, int64_t high) const {
  return has(key) ? whole(key, low, high) : otherwise;
}

double JsonObject::number_or(std::string_view key, double otherwise) const {
  const Json* value = find(key);
  if (value && !value->is_number()) refuse_value(key, *value, "a number or null");
  return value ? value->get<double>() : otherwise;
}

bool JsonObject::truth_or(std::string_view key, bool otherwise) const { return has(key) ? truth(key) : otherwise; }

std::vector<std::string> JsonObject::texts_or_text(std::string_view key) const {
  const Json* value = find(key);
  if (!value) return {};
  if (value->is_string()) return {value->get<std::string>()};
  return texts(key);
}

std::vector<JsonObject> JsonObject::children_or_none(std::string_view key) const {
  return has(key) ? children(key) : std::vector<JsonObject>{};
}

void each_json_line(const std::string& path, std::vector<std::string>& remarks,
                    const std::function<void(const JsonObject&)>& each) {
  const std::string bytes = read_file(path, kLinesLimit);
  std::string_view rest = bytes;
  for (int64_t line = 1; !rest.empty(); ++line) {
    const size_t end = rest.find('\n');
    const std::string_view text = trim(rest.substr(0, end));
    const std::string where = str(path, ":", line);
    std::optional<Json> row;
    try {
      if (!text.empty()) row = parse_json(text, where);
    } catch (const Error&) {
      if (end != std::string_view::npos) throw;
      remarks.push_back(str(where, ": incomplete last line left out"));
    }
    if (row) each(JsonObject(*row, where));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace ucas
