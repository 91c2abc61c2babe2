// A chat template as a program: Jinja, rendered by Python's jinja2 with the settings of transformers
// (python/ucas/chat_template.py), in a process of its own that stays for as long as this one.
// Threads: all functions from any thread; one at a time has the process.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/process/line_child.h"
#include "base/text/json.h"
#include "core/verdict.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

// A conversation; its last turn is the question.
struct Chat {
  std::vector<Turn> turns;
  std::string problem;  // its id, for messages
};

class ChatProgram {
 public:
  // `where` is the file of `text`, for messages. What was loaded before comes back as it is. Error(ErrorKind::config)
  // "WHERE:LINE: .." for what is no Jinja, Error(ErrorKind::python) without a Python that has jinja2.
  static std::shared_ptr<const ChatProgram> load(const std::string& text, const std::string& where);

  // The prompts of conversations. `own`: an object of what the template sees besides them. Special tokens of
  // `tokenizer` (nullptr: none) that came with a conversation are data, unless the template itself looks at them: those
  // are what transformers makes of them. Error(ErrorKind::config) where the template refuses, or leaves out a question.
  std::vector<MarkedText> render(std::span<const Chat> chats, const OrderedJson& own, const Tokenizer* tokenizer) const;

  // "jinja2 3.1.6 of /usr/bin/python3"
  const std::string& made_by() const { return made_by_; }

 private:
  struct Made;
  ChatProgram(const std::string& text, const std::string& where);
  std::string start() const;
  std::string ask(const std::string& lines, size_t count) const;
  std::string refusal_of(const JsonObject& reply) const;
  std::vector<Made> made_of(std::span<const OrderedJson> requests) const;
  void mark_data(std::span<const Chat> chats, const OrderedJson& own, const Tokenizer& tokenizer,
                 std::vector<Made>& all) const;

  const std::string text_, where_;
  std::string made_by_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<LineChild> child_;  // none after it has failed: the next request starts one
};

}  // namespace ucas
