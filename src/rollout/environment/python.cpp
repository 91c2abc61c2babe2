// python: the model writes Python, which the sandbox of graded programs runs, and reads what an interactive session
// prints. A block ```python .. ``` is answered by a block ```output, as Qwen2.5-Math has it; a call <tool_call>{"name":
// .., "arguments": {"code": ..}}</tool_call> by a user's turn <tool_response> of the model's chat template, as Qwen3
// has it. An interpreter lives for one answer: kept state is recomputed from the turns before, so that an episode's
// state is their text, no process waits with a sequence, and a turn that was killed leaves what was there before it.
#include <signal.h>

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"
#include "rollout/environment/environment.h"

namespace ucas {

namespace {

constexpr std::string_view kFence = "```", kCall = "<tool_call>", kCallEnd = "</tool_call>";
constexpr int64_t kWall = 10;  // seconds of the clock for one of CPU time: for what waits, not for what is slow

// What all episodes share.
struct Tool {
  code::Sandbox sandbox;
  EnvironmentConfig config;
  UserTurns turn;
};

// The code of the first block of Python that is closed.
std::optional<std::string_view> closed_block(std::string_view text) {
  size_t code = std::string_view::npos;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trim(text.substr(begin, end - begin));
    if (code == std::string_view::npos) {
      if (line.ends_with("```python") && end < text.size()) code = end + 1;
    } else if (line.starts_with(kFence)) {
      return text.substr(code, begin - code);
    }
  }
  return std::nullopt;
}

// The code of a call; nothing where it is none.
std::optional<std::string> code_of_call(std::string_view text) {
  const size_t begin = text.rfind(kCall);
  if (begin == std::string_view::npos) return std::nullopt;
  try {
    return JsonObject::parse(text.substr(begin + kCall.size()), "tool call").child("arguments").text("code");
  } catch (const Error&) {
    return std::nullopt;
  }
}

class Python final : public Environment {
 public:
  explicit Python(std::shared_ptr<const Tool> tool) : tool_(std::move(tool)) {}
  void reset(const Problem& /*problem*/) override { turns_.clear(); }

  std::optional<MarkedText> step(std::string_view text) override {
    if (const size_t end = text.find(kCallEnd); end != std::string_view::npos) {
      const auto code = code_of_call(text.substr(0, end));
      return tool_->turn(
          str("<tool_response>\n",
              code ? output_of(*code) : R"(error: expected {"name": "python", "arguments": {"code": "..."}})",
              "\n</tool_response>"));
    }
    const auto block = closed_block(text);
    if (!block) return MarkedText();
    return MarkedText(str(text.ends_with('\n') ? "" : "\n", "```output\n", output_of(std::string(*block)), "\n```\n"),
                      MarkedText::kData);
  }

 private:
  std::string output_of(std::string code) {
    if (tool_->config.tool_state == ToolState::fresh) turns_.clear();
    turns_.push_back(std::move(code));
    const int64_t number = std::ssize(turns_) - 1, chars = tool_->config.tool_chars;
    std::optional<std::string> output;
    const code::Ended ended = tool_->sandbox.insist(
        code::make_task("turns", str(chars), turns_), 8 * chars + 4096, [&] { output.reset(); },
        [&](const code::Frame& frame) {
          if (frame.kind == 'o' && frame.number == number) output = replace_invalid(frame.payload);
          return true;
        });
    if (output) return *output;
    turns_.pop_back();
    const bool late =
        ended.how == code::Ended::How::out_of_time || (ended.how == code::Ended::How::killed && ended.code == SIGKILL);
    return late ? "error: out of time" : "error: the interpreter ended";
  }

  std::shared_ptr<const Tool> tool_;
  std::vector<std::string> turns_;
};

}  // namespace

EnvironmentRow row_of_python(const EnvironmentSetup& setup) {
  code::CodeOptions options = setup.code;
  options.cpu_seconds = setup.config.tool_seconds;
  options.wall_seconds = kWall * setup.config.tool_seconds;
  const auto tool = std::make_shared<Tool>(Tool{code::Sandbox(options), setup.config, UserTurns(setup.tokenizer)});
  return {.turn_ends = {std::string(kFence), std::string(kCallEnd)}, .says = any_ascii(), .make = [tool] {
            return std::unique_ptr<Environment>(std::make_unique<Python>(tool));
          }};
}

}  // namespace ucas
