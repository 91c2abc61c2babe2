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

}  // namespace ucas
