#include "text/stop_texts.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"

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

void UnencodableRows::look_at(std::string_view text, const std::string& name) {
  if (tokenizer_->unencodable_bytes(text) == 0) return;
  if (count_ > 0 && name == last_) return;
  if (count_++ == 0) first_ = name;
  last_ = name;
}

void UnencodableRows::say(const std::string& what, int64_t of) const {
  if (count_ == 0) return;
  count_warning(Warning::unencodable, count_);
  warn(str(grouped(count_), " of ", grouped(of), " ", what,
           " hold bytes that the tokenizer has no token for, and reach ",
           "the model without them or with its unknown token instead; the first is ", printable(first_, 400)));
}

}  // namespace ucas
