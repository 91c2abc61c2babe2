#include "text/tokenizer/tokenizer_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxTokenBytes = 4096;

class Reader : public nlohmann::json_sax<Json> {
 public:
  Reader(Json& root, TokenizerTables& tables, size_t text_bytes, const std::string& where)
      : root_(root), tables_(tables), where_(where), memory_(text_bytes, where) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value); }
  bool binary(binary_t&) override { return false; }

  bool number_integer(number_integer_t value) override {
    if (place_ != Place::vocab) return scalar(value);
    bad_id(str(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::vocab) return scalar(value);
    if (value >= static_cast<uint64_t>(kMaxTokens)) bad_id(str(value));
    tables_.vocab.back().second = static_cast<int32_t>(value);
    return true;
  }
  bool string(string_t& value) override {
    if (place_ == Place::merges) {
      size_t space = value.find(' ');
      if (space == std::string::npos || value.find(' ', space + 1) != std::string::npos) bad_merge(value);
      add_merge(value.substr(0, space), value.substr(space + 1));
    } else if (place_ == Place::pair) {
      pair_.push_back(std::move(value));
    } else {
      return scalar(std::move(value));
    }
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::vocab) {
      if (name.empty()) wrong("model.vocab: an empty token");
      if (name.size() > kMaxTokenBytes) wrong(str("model.vocab: a token longer than ", kMaxTokenBytes, " bytes"));
      if (static_cast<int64_t>(tables_.vocab.size()) >= kMaxTokens)
        wrong(str("model.vocab: more than ", kMaxTokens, " tokens"));
      memory_.take(JsonMemory::kItem);
      tables_.vocab.emplace_back(std::move(name), 0);
      return true;
    }
    auto [slot, fresh] = stack_.back()->get_ref<Json::object_t&>().emplace(name, nullptr);
    if (!fresh)
      throw Error(ErrorKind::dup_key, str(where_, ": the key \"", printable(name), "\" stands twice in one object"));
    slot_ = &slot->second;
    memory_.take(JsonMemory::kKey);
    if (stack_.size() <= 2) path_[stack_.size() - 1] = name;
    return true;
  }
  bool start_object(size_t) override {
    if (place_ == Place::merges || place_ == Place::pair) bad_merge("an object");
    open(Json::object());
    if (at_table("vocab")) place_ = Place::vocab;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ == Place::merges) {
      place_ = Place::pair;
      return true;
    }
    if (place_ == Place::pair) bad_merge("a list in a list");
    open(Json::array());
    if (at_table("merges")) place_ = Place::merges;
    return true;
  }
  bool end_object() override {
    if (place_ == Place::vocab) place_ = Place::document;
    stack_.pop_back();
    return true;
  }
  bool end_array() override {
    if (place_ == Place::pair) {
      if (pair_.size() != 2) bad_merge(str(pair_.size(), " strings"));
      add_merge(std::move(pair_[0]), std::move(pair_[1]));
      pair_.clear();
      place_ = Place::merges;
      return true;
    }
    place_ = Place::document;
    stack_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string reason = error.what();
    bool utf8 = reason.find("UTF-8") != std::string::npos;
    if (size_t colon = reason.rfind("; "); colon != std::string::npos) reason.erase(0, colon + 2);
    throw Error(utf8 ? ErrorKind::utf8 : ErrorKind::header_json,
                str(where_, ": not valid JSON at byte ", position, ": ", utf8 ? "invalid UTF-8" : printable(reason)));
  }

 private:
  enum class Place { document, vocab, merges, pair };

  [[noreturn]] void wrong(const std::string& what) const { throw Error(ErrorKind::tokenizer, str(where_, ": ", what)); }
  [[noreturn]] void bad_id(const std::string& got) const {
    wrong(str("model.vocab: the id of \"", printable(tables_.vocab.back().first), "\" is ", got, "; expected 0 .. ",
              kMaxTokens - 1));
  }
  [[noreturn]] void bad_merge(const std::string& got) const {
    wrong(str("model.merges[", tables_.merges.size(), "] is not two tokens: ", printable(got)));
  }
  void add_merge(std::string left, std::string right) {
    if (static_cast<int64_t>(tables_.merges.size()) >= kMaxTokens) wrong(str("model.merges: more than ", kMaxTokens));
    memory_.take(2 * JsonMemory::kItem);
    tables_.merges.emplace_back(std::move(left), std::move(right));
  }
  bool at_table(const char* name) const {
    return stack_.size() == 3 && path_[0] == "model" && path_[1] == name && stack_[1]->is_object();
  }
  bool scalar(Json&& value) {
    if (place_ == Place::vocab) bad_id(str("not an integer: ", printable(json_text(value), 40)));
    if (place_ != Place::document) bad_merge(json_text(value));
    add(std::move(value));
    return true;
  }
  Json* add(Json&& value) {
    memory_.take(value.is_structured() ? JsonMemory::kOpen : JsonMemory::kItem);
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (stack_.back()->is_array()) {
      stack_.back()->push_back(std::move(value));
      return &stack_.back()->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  void open(Json&& value) {
    if (place_ == Place::vocab) bad_id("not an integer: a list or an object");
    if (stack_.size() >= kMaxDepth)
      throw Error(ErrorKind::tokenizer, str(where_, ": JSON nested deeper than ", kMaxDepth));
    stack_.push_back(add(std::move(value)));
  }

  Json& root_;
  TokenizerTables& tables_;
  const std::string& where_;
  JsonMemory memory_;
  std::vector<Json*> stack_;
  Json* slot_ = nullptr;
  std::string path_[2];  // keys of the outer two objects
  std::vector<std::string> pair_;
  Place place_ = Place::document;
};

}  // namespace

Json read_tokenizer_json(const std::string& path, int64_t limit, TokenizerTables& tables) {
  std::string text = read_file(path, limit);
  check_json_bytes(text, path);
  Json root;
  Reader reader(root, tables, text.size(), path);
  Json::sax_parse(text.data(), text.data() + text.size(), &reader);
  return root;
}

}  // namespace ucas
