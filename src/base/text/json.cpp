#include "base/text/json.h"

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
    if (!fresh)
      throw Error(ErrorKind::dup_key, str(where_, ": the key \"", printable(name), "\" stands twice in one object"));
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

}  // namespace

JsonMemory::JsonMemory(size_t text_bytes, const std::string& where, size_t most)
    : most_(most), left_(most + text_bytes / 2), where_(where) {}

void JsonMemory::refuse() const {
  throw Error(ErrorKind::limit,
              str(where_, ": more values than are read from JSON at once: they would take more than ",
                  human_bytes(static_cast<double>(most_)), " beside the file; rows are read as JSON Lines"));
}

void check_json_bytes(std::string_view text, const std::string& where) {
  if (text.starts_with("\xef\xbb\xbf")) {
    throw Error(ErrorKind::header_json, str(where, ": begins with a byte order mark; save it as plain UTF-8"));
  }
  if (size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error(ErrorKind::header_json, str(where, ": not valid JSON at byte ", nul + 1, ": a NUL byte"));
  }
}

namespace {

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

}  // namespace ucas
