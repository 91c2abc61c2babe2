// Prompt templates: how a question is put to a model. Data, not code: templates/NAME.toml (in the binary), or a file of
// the user's own with the same keys.
// The choices of a multiple-choice problem replace {choices} as lines "A. ..."; in a template without that place they
// follow the question.
// A template's own text may hold special tokens; a question never can: "<|im_end|>" in a question stays plain text.
// A chat template is the checkpoint's own Jinja, which puts the messages of a conversation
// (data/prompts/chat_program.h). Feeds train and evaluate with prompt ids. Threads: all functions from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text/fields.h"
#include "core/verdict.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/unicode.h"

namespace ucas {

class ChatProgram;  // data/prompts/chat_program.h

struct Template {
  struct Example {
    std::string question, answer;
  };

  std::string name;
  std::string text;                  // holds {problem} once, {system} and {choices} at most once
  std::string system;                // for {system}, where the problem brings none of its own
  std::vector<std::string> special;  // texts in `text` that become their own token
  std::vector<std::string> stop;     // tokens and texts that end a response, with those of the model's own files
  bool chat = false;                 // `text` is Jinja; "" in a file: the checkpoint's own
  std::string user = "{problem}";    // of a chat: the user's message, with {problem} once and {choices}
  std::vector<std::string> set;      // of a chat: further names the Jinja sees, "NAME = JSON"
  std::vector<std::pair<std::string, std::string>> tokens;  // of a chat: bos_token ... of the checkpoint
  std::shared_ptr<const ChatProgram> program;               // of a chat: what `text` says
  std::string few_shot;                                     // a file of worked examples; "" = none
  int64_t shots = 0;                                        // how many of them precede a question
  std::string example = "{problem}\n{answer}\n\n";          // the text of each at {examples}
  std::vector<Example> examples;                            // read from the file

  void fields(Fields& f) {
    f.field("name", name, "name of the template in reports");
    f.field("text", text, "prompt text with {problem}, {system} and {choices}");
    f.field("system", system, "default system message for {system} where a problem has none");
    f.field("special", special, "special tokens in `text`; each must be one token of the tokenizer");
    f.field("stop", stop, "special tokens and texts that end a response");
    f.field("chat", chat, "use `text` as a Jinja chat template; without `text`, the checkpoint's own");
    f.field("user", user, "user message of a chat, with {problem} and {choices}");
    f.field("few_shot", few_shot, "file of worked examples: problem, and response, solution or answer");
    f.field("shots", shots, "number of worked examples before a question, at {examples} or as chat turns");
    f.field("example", example, "format of one worked example at {examples}, with {problem} and {answer}");
    f.field("set", set, "additional variables of the chat template, such as \"enable_thinking = false\"");
  }
};

// Worked examples that precede every question, whatever template is chosen.
struct FewShot {
  std::string few_shot;  // "" = none
  int64_t shots = 0;     // 0 = all of the file
  void fields(Fields& f) {
    f.field("few_shot", few_shot,
            "file of worked examples (problem, and response, solution or answer) placed before every question, as chat "
            "turns in a chat; empty = the template's own");
    f.field("shots", shots, Range{0, 64}, "number of worked examples from few_shot; 0 = all");
  }
};

// "qwen_math", "qwen_boxed", "orz", "prime_zero", "r1", "mmlu", "plain", "chat", "chat_boxed", or the path of a .toml
// or .jinja file. A chat template is read from `checkpoint`, the directory of a tokenizer ("": there is none).
Template load_template(const std::string& name_or_path, const std::string& checkpoint, const FewShot& more = {});
inline Template load_template(const std::string& name_or_path) { return load_template(name_or_path, ""); }
// Has it a place for a system message?
bool takes_system(const Template& prompt_template);

// The prompt as people read it.
std::string render(const Template& prompt_template, const Problem& problem);
// The prompt as the model gets it. Special tokens split the text; between them it is encoded as one run, so that tokens
// are the same as those of the whole text. It begins with what the tokenizer puts before a text (BOS), once.
std::vector<int32_t> encode_prompt(const Template& prompt_template, const Problem& problem, const Tokenizer& tokenizer);
// The stops of a template, and `more` that a user names. A special token, and a token by its spelling in the vocabulary
// where that is not its text, is an id; any other is a text, which ends a response wherever tokens complete it
// (text/stop_texts.h). Error(ErrorKind::tokenizer) for a text that holds special tokens among others, and for a <|..|>
// of the template that is no token.
struct Stops {
  std::vector<int32_t> ids;
  std::vector<std::string> texts;
};
Stops stops_of(const Template& prompt_template, const std::vector<std::string>& more, const Tokenizer& tokenizer);

struct PreparedPrompts {
  std::vector<std::vector<int32_t>> ids;
  std::vector<int64_t> problem;  // index into the problems
  int64_t dropped = 0;           // longer than the limit
};
// Prompts of more than `max_prompt_length` tokens are left out and counted; Error(ErrorKind::empty) if none is left.
// Warns where system messages of the problems replace the template's own.
PreparedPrompts prepare_prompts(const Template& prompt_template, const std::vector<Problem>& problems,
                                const Tokenizer& tokenizer, int64_t max_prompt_length);

// Prompts by the chat template of a checkpoint: the messages of a problem as its Jinja writes them. Threads: all
// functions from any thread.

// Fills in what a checkpoint's files say: `text`, where the form has none of its own, and `tokens`. `checkpoint` is the
// directory of a tokenizer, "" if there is none; `where` names the form. Then reads `text` as a program.
void prepare_chat(Template& prompt_template, const std::string& checkpoint, const std::string& where);
// Whether a checkpoint's files bring one of its own; "" does not.
bool has_chat_template(const std::string& checkpoint);
// The system message, the earlier turns and `question`, then what begins the answer.
MarkedText render_chat(const Template& prompt_template, const Problem& problem, const std::string& question,
                       const Tokenizer& tokenizer);

// Worked examples before a question: in the place {examples} of a template, or as earlier turns of a chat.
// Threads: all functions from any thread.

// Reads `form.few_shot` into `form.examples`: the first `form.shots` rows (0: all, which it then says) and one more,
// used where a problem is an example itself. `where` names the form; a relative path begins at `folder` ("": where the
// program runs).
void read_examples(Template& prompt_template, const std::string& where, const std::string& folder);
// Of this problem, in the file's order; never the problem itself.
std::vector<Template::Example> examples_for(const Template& prompt_template, const Problem& problem);

}  // namespace ucas
