#include "text/tokenizer/token_texts.h"

#include "base/error.h"
#include "base/str.h"
#include "text/tokenizer/normalizer.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

constexpr size_t kMostText = size_t{256} << 20;  // bytes, of all tokens

}  // namespace

TokenTexts::TokenTexts(DecoderRules rules, std::vector<std::string> spelling)
    : rules_(std::move(rules)), bytes_(std::move(spelling)) {
  if (rules_.byte_fallback) is_byte_.resize(bytes_.size());
  if (!rules_.first_without.empty()) first_.reserve(bytes_.size());
  size_t all = 0;
  for (size_t id = 0; id < bytes_.size(); ++id) {
    std::string& text = bytes_[id];
    if (rules_.byte_level) {
      // Added tokens are written as text, yet Hugging Face reads them in the byte alphabet too, wherever that is
      // possible.
      if (std::optional<std::string> spelled = bytes_of_spelling(text)) text = std::move(*spelled);
    }
    if (!rules_.first_without.empty()) first_.push_back(replace_all(text, rules_.first_without, ""));
    for (const auto& [from, to] : rules_.replacements) text = replace_all(text, from, to);
    if ((all += text.size()) > kMostText)
      throw Error(ErrorKind::limit,
                  "the tokenizer's decoder makes more text of the tokens than a quarter of a gigabyte");
    if (!rules_.byte_fallback) continue;
    if (std::optional<uint8_t> byte = byte_of_token(text)) {
      text.assign(1, static_cast<char>(*byte));
      is_byte_[id] = 1;
    }
  }
}

void TokenTexts::Joiner::put(std::string_view text, std::string& out) {
  while (to_strip_ > 0 && !text.empty()) {
    if (!text.starts_with(texts_->rules_.strip)) {
      to_strip_ = 0;
    } else {
      text.remove_prefix(texts_->rules_.strip.size());
      --to_strip_;
    }
  }
  out += text;
}

void TokenTexts::Joiner::add(int32_t id, std::string& out) {
  const bool first = !std::exchange(begun_, true);
  if (!texts_->is_byte_.empty() && texts_->is_byte_[id] != 0) {
    run_ += texts_->bytes_[id];
    return;
  }
  if (!run_.empty()) finish(out);
  if (texts_->rules_.spaced && !first) out += ' ';
  put(first && !texts_->first_.empty() ? texts_->first_[id] : texts_->bytes_[id], out);
}

void TokenTexts::Joiner::finish(std::string& out) {
  if (run_.empty()) return;
  std::string text = run_;
  if (!valid_utf8(run_)) {
    text.clear();
    for (size_t i = 0; i < run_.size(); ++i) text += "\xEF\xBF\xBD";
  }
  run_.clear();
  put(text, out);
}

}  // namespace ucas
