// Chat templates: the part of Jinja that the templates of published checkpoints are written in (docs/formats.md lists
// it), with the settings of transformers (trim_blocks, lstrip_blocks, break and continue, its tojson, raise_exception,
// strftime_now, generation blocks). What is outside is refused with its name and line: Error(ErrorKind::config,
// "WHERE:LINE:
// ..."). What a template writes keeps its origin: text of the template itself, or of the data put into it, through
// every filter, slice and macro. A template is code from elsewhere: steps, depth and bytes are bounded, whatever it
// says, and there is nothing that it could reach but its input. Threads: const functions from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/text/json.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace jinja {
struct Node;
}

struct JinjaLimits {
  int64_t steps = 4'000'000;               // evaluations, characters of data passed over by a filter among them
  int64_t bytes = int64_t{128} << 20;      // of all texts and lists made on the way
  int64_t text_bytes = int64_t{16} << 20;  // of one text, and of what is rendered
};

class JinjaTemplate {
 public:
  // `where` is the file, for messages.
  static JinjaTemplate parse(std::string_view source, const std::string& where);
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;

  // Both are objects whose members are the names that the template sees; texts within `data` are data, those within
  // `own` belong to the template (bos_token).
  MarkedText render(const OrderedJson& data, const OrderedJson& own, const JinjaLimits& limits = {}) const;

 private:
  JinjaTemplate(std::unique_ptr<const jinja::Node> program, std::string where);
  std::unique_ptr<const jinja::Node> program_;
  std::string where_;
};

}  // namespace ucas
