#include "data/prompts/templates.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "data/rows/jsonl.h"
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

constexpr int64_t kMostShots = 64;

Template::Example read_example_row(const JsonRow& row) {
  const std::string question = first_key(row, {"problem", "question", "prompt"});
  const std::string answer = first_key(row, {"response", "solution", "answer", "ground_truth"});
  if (question.empty() || answer.empty()) {
    throw Error(ErrorKind::data_line,
                str(row.where, ": an example needs a question (\"problem\", \"question\" or \"prompt\") and ",
                    "what answers it (\"response\", \"solution\" or \"answer\")"));
  }
  return {text_field(row, question), answer_field(row, row.value.at(answer), answer, false).front()};
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

void read_examples(Template& prompt_template, const std::string& where, const std::string& folder) {
  if (prompt_template.shots < 0 || prompt_template.shots > kMostShots) {
    throw Error(ErrorKind::config,
                str(where, ": shots = ", prompt_template.shots, ": expected 1 to ", kMostShots, ", or 0 for all"));
  }
  const int64_t most = prompt_template.shots > 0 ? prompt_template.shots + 1 : kMostShots + 1;
  const bool whole = prompt_template.few_shot.starts_with('/') || folder.empty();
  const std::string path = whole ? prompt_template.few_shot : path_join(folder, prompt_template.few_shot);
  prompt_template.examples.clear();
  read_json_lines(path, BadRows::stop, [&](const JsonRow& row) {
    if (std::ssize(prompt_template.examples) < most) prompt_template.examples.push_back(read_example_row(row));
  });
  if (prompt_template.shots == 0) prompt_template.shots = std::ssize(prompt_template.examples);
  if (prompt_template.shots == 0 || prompt_template.shots > kMostShots) {
    throw Error(ErrorKind::config,
                str(printable(path, 400), ": ", prompt_template.shots == 0 ? "no example" : "more than 64 examples",
                    "; say with shots how many of its rows are meant"));
  }
  if (std::ssize(prompt_template.examples) < prompt_template.shots) {
    throw Error(ErrorKind::empty, str(printable(path, 400), ": ", prompt_template.examples.size(),
                                      " examples, expected ", prompt_template.shots, " (shots of ", where, ")"));
  }
}

std::vector<Template::Example> examples_for(const Template& prompt_template, const Problem& problem) {
  std::vector<Template::Example> out;
  for (const Template::Example& example : prompt_template.examples) {
    if (std::ssize(out) < prompt_template.shots && trim(example.question) != trim(problem.text)) out.push_back(example);
  }
  return out;
}

}  // namespace ucas
