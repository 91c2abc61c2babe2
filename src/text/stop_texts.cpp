#include "text/stop_texts.h"

#include <algorithm>

#include "base/error.h"

namespace ucas {

namespace {

constexpr size_t kSlack = 8;  // tokens without a text of their own

}  // namespace

StopTexts::StopTexts(const Tokenizer& tokenizer, std::vector<std::string> texts)
    : tokenizer_(&tokenizer), texts_(std::move(texts)) {
  for (const std::string& text : texts_) {
    if (text.empty()) throw Error(ErrorKind::config, "stop: an empty text would end every response");
    tail_ = std::max(tail_, text.size() + kSlack);
  }
}

// What was complete before the last token has ended the response then, so a text in the tail is one that ends here.
bool StopTexts::end(std::span<const int32_t> ids) const {
  if (texts_.empty()) return false;
  const std::string tail = tokenizer_->decode(ids.last(std::min(tail_, ids.size())));
  return std::ranges::any_of(texts_, [&](const std::string& text) { return tail.find(text) != std::string::npos; });
}

}  // namespace ucas
