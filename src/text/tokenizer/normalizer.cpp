#include "text/tokenizer/normalizer.h"

#include "base/error.h"
#include "base/str.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

constexpr size_t kLeastRoom = size_t{1} << 20, kMostGrowth = 16;  // bytes, and times the text

// Steps that each double a text would make of a letter more than there is memory for.
void check_room(const std::string& out, size_t most) {
  if (out.size() > most) {
    throw Error(ErrorKind::limit,
                str("the tokenizer's parts that replace text make more than ", most, " bytes of one text"));
  }
}

std::string run(const NfcStep&, std::string text, size_t) { return may_change_under_nfc(text) ? nfc(text) : text; }

std::string run(const PrependStep& step, std::string text, size_t) { return text.empty() ? text : step.content + text; }

std::string replace_matches(const std::string& text, const Regex& regex, const std::string& content, size_t most) {
  const std::string seen = replace_invalid(text);  // expressions read UTF-8
  std::string out;
  size_t done = 0;
  for (const Regex::Match& found : regex.find_all(seen)) {
    out.append(seen, done, found.begin - done).append(content);
    check_room(out, most);
    done = found.end;
  }
  return out.append(seen, done);
}

std::string run(const ReplaceStep& step, std::string text, size_t most) {
  const auto* literal = std::get_if<std::string>(&step.pattern);
  return literal != nullptr ? replace_all(text, *literal, step.content, most)
                            : replace_matches(text, std::get<Regex>(step.pattern), step.content, most);
}

constexpr size_t kMostText = size_t{256} << 20;  // bytes, of all tokens

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to, size_t most) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  for (size_t found; (found = text.find(from, at)) != std::string_view::npos; at = found + from.size()) {
    out.append(text.substr(at, found - at)).append(to);
    check_room(out, most);
  }
  return out.append(text.substr(at));
}

bool Normalizer::changes(std::string_view text) const {
  if (steps_.empty()) return false;
  const bool only_nfc = steps_.size() == 1 && std::holds_alternative<NfcStep>(steps_[0]);
  return !only_nfc || may_change_under_nfc(text);
}

std::string Normalizer::apply(std::string_view text) const {
  std::string out(text);
  const size_t most = kLeastRoom + kMostGrowth * text.size();
  for (const NormalizerStep& step : steps_) {
    out = std::visit([&](const auto& s) { return run(s, std::move(out), most); }, step);
  }
  return out;
}

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
