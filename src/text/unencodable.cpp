#include "text/unencodable.h"

#include "base/process/warning_counters.h"
#include "base/str.h"
#include "base/terminal/log.h"

namespace ucas {

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
