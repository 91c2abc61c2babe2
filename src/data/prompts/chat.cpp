#include "data/prompts/chat.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "text/jinja/jinja.h"
#include "text/tokenizer/tokenizer_file.h"

namespace ucas {

namespace {

// `set` of a template file: texts of the form NAME = JSON.
OrderedJson settings_of(const Template& prompt_template, const std::string& where) {
  OrderedJson out = OrderedJson::object();
  for (const std::string& setting : prompt_template.set) {
    const size_t sign = setting.find('=');
    const std::string name(trim(setting.substr(0, sign)));
    if (sign == std::string::npos || name.empty()) {
      throw Error(ErrorKind::config, str(where, ": set: expected \"NAME = VALUE\", got \"", printable(setting), "\""));
    }
    try {
      out[name] = OrderedJson(parse_json(trim(setting.substr(sign + 1)), where));
    } catch (const Error&) {
      throw Error(ErrorKind::config,
                  str(where, ": set: \"", printable(setting), "\": expected JSON after the sign, such as true, ",
                      "3 or \"a text\" in double quotes"));
    }
  }
  return out;
}

// Some templates want the content of a message as a list of parts.
OrderedJson message(const std::string& role, const std::string& content, bool parts) {
  if (!parts) return {{"role", role}, {"content", content}};
  return {{"role", role}, {"content", OrderedJson::array({{{"type", "text"}, {"text", content}}})}};
}

OrderedJson messages_of(const std::string& system, const Problem& problem, const std::string& question, bool parts) {
  OrderedJson messages = OrderedJson::array();
  if (!system.empty()) messages.push_back(message("system", system, parts));
  for (const Turn& turn : problem.earlier) messages.push_back(message(turn.role, turn.content, parts));
  messages.push_back(message("user", question, parts));
  return messages;
}

// But for blanks, which a template may trim.
bool holds(std::string text, std::string question) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  std::erase_if(text, is_blank);
  std::erase_if(question, is_blank);
  return text.find(question) != std::string::npos;
}

}  // namespace

bool has_chat_template(const std::string& checkpoint) {
  return !checkpoint.empty() && !read_chat_files(checkpoint).text.empty();
}

void prepare_chat(Template& prompt_template, const std::string& checkpoint, const std::string& where) {
  std::string file = where;
  if (!checkpoint.empty()) {
    ChatFiles files = read_chat_files(checkpoint);
    prompt_template.tokens = std::move(files.tokens);
    if (prompt_template.text.empty()) {
      if (files.text.empty()) {
        throw Error(ErrorKind::config, str(where, ": ", printable(checkpoint, 400),
                                           " has no chat template (neither chat_template.jinja nor a chat_template in ",
                                           "tokenizer_config.json); name another template or a .jinja file"));
      }
      prompt_template.text = std::move(files.text);
      file = files.where;
    }
  } else if (prompt_template.text.empty()) {
    throw Error(ErrorKind::config,
                str(where, ": the template is read from a checkpoint's tokenizer, and here there is none; ",
                    "name another template or a .jinja file"));
  }
  settings_of(prompt_template, where);  // refused here, not at the first prompt
  prompt_template.program =
      std::make_shared<const JinjaTemplate>(JinjaTemplate::parse(prompt_template.text, printable(file, 400)));
}

MarkedText render_chat(const Template& prompt_template, const Problem& problem, const std::string& question) {
  const std::string& system = problem.system.empty() ? prompt_template.system : problem.system;
  OrderedJson own = settings_of(prompt_template, prompt_template.name);
  for (const auto& [name, text] : prompt_template.tokens) own[name] = text;
  own["add_generation_prompt"] = true;
  own["tools"] = nullptr;
  own["documents"] = nullptr;
  UCAS_CHECK(prompt_template.program != nullptr, "a chat template that was not loaded");
  std::string refusal = "the question is not in the prompt that it makes";
  ErrorKind kind = ErrorKind::config;
  for (const bool parts : {false, true}) {
    try {
      MarkedText made =
          prompt_template.program->render({{"messages", messages_of(system, problem, question, parts)}}, own);
      if (holds(made.text, question)) return made;
    } catch (const Error& error) {
      if (parts) continue;
      refusal = error.what();
      kind = error.kind();
    }
  }
  if (kind == ErrorKind::config) refusal = str("template ", printable(prompt_template.name, 400), ": ", refusal);
  throw Error(kind, str(refusal, " (problem ", printable(problem.id), ")"));
}

}  // namespace ucas
