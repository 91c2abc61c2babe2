#include "text/normalizer.h"

#include "base/str.h"
#include "text/unicode.h"

namespace ucas {

namespace {

std::string run(const NfcStep&, std::string text) { return may_change_under_nfc(text) ? nfc(text) : text; }

std::string run(const PrependStep& step, std::string text) { return text.empty() ? text : step.content + text; }

std::string replace_matches(const std::string& text, const Regex& regex, const std::string& content) {
  const std::string seen = replace_invalid(text);  // expressions read UTF-8
  std::string out;
  size_t done = 0;
  for (const Regex::Match& found : regex.find_all(seen)) {
    out.append(seen, done, found.begin - done).append(content);
    done = found.end;
  }
  return out.append(seen, done);
}

std::string run(const ReplaceStep& step, std::string text) {
  if (const auto* literal = std::get_if<std::string>(&step.pattern)) return replace_all(text, *literal, step.content);
  return replace_matches(text, std::get<Regex>(step.pattern), step.content);
}

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  for (size_t found; (found = text.find(from, at)) != std::string_view::npos; at = found + from.size()) {
    out.append(text.substr(at, found - at)).append(to);
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
  for (const NormalizerStep& step : steps_) {
    out = std::visit([&](const auto& s) { return run(s, std::move(out)); }, step);
  }
  return out;
}

}  // namespace ucas
