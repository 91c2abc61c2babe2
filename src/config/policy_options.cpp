#include "config/policy_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "data/prompts/templates.h"

namespace ucas {

namespace {

constexpr const char* kGenerateTemplateHelp =
    "prompt template: auto, chat, plain, qwen_math, qwen_boxed, orz or a file; auto = the checkpoint's chat template, "
    "else plain";
constexpr const char* kEvaluateTemplateHelp =
    "prompt template: auto, chat, plain, qwen_math, qwen_boxed, orz or a file; auto = the checkpoint's chat template, "
    "else qwen_math";
constexpr const char* kStopHelp =
    "stop tokens or strings besides the model's stop tokens, such as \"</answer>\"; a response ends with the token "
    "that completes one";

}  // namespace

void MachineOptions::fields(Fields& f) {
  f.field("device", device, "device to run on: cpu, cuda or cuda:N");
  f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores");
}

void GenerateOptions::fields(Fields& f) {
  f.field("model", model, OptionNames::checkpoint,
          "Hugging Face checkpoint or PEFT adapter directory; also as the first word");
  f.field("prompt", prompt, "question to answer on standard output");
  f.field("data", data, OptionNames::evaluation_data, "problem files, JSONL (may be given several times)");
  f.field("template", prompt_template, kGenerateTemplateHelp);
  examples.fields(f);
  f.field("stop", stop, kStopHelp);
  f.field("out", out, "JSONL file to write; empty = standard output");
  f.choice("dtype", dtype, kDtypeHelp);
  f.field("samples", samples, Range{1, 1 << 20}, "responses per prompt");
  sampling.fields(f);
  f.field("seed", seed, Range{0, 9e15}, "random seed of sampling");
  f.field("limit", limit, Range{0, 1 << 30}, "number of problems, from the first; 0 = all");
  problems.fields(f);
  engine.fields(f);
  machine.fields(f);
  f.section("columns", problems.columns);
}

void GenerateOptions::validate() const {
  if (model.empty()) throw Error(ErrorKind::usage, "MODEL is missing; see `ucas generate --help`");
  if (prompt.empty() == data.empty()) {
    throw Error(ErrorKind::usage, prompt.empty() ? "nothing to answer: give --prompt TEXT or --data FILE.jsonl"
                                                 : "--prompt and --data are both given; choose one of them");
  }
  if (sampling.temperature > 0 && sampling.temperature < 1e-3) {
    throw Error(ErrorKind::config,
                str("temperature = ", sampling.temperature, ": expected 0 (greedy) or at least 0.001"));
  }
}

void ScoreOptions::fields(Fields& f) {
  f.field("model", model, OptionNames::checkpoint,
          "Hugging Face checkpoint or PEFT adapter directory; also as the first word");
  f.field("out", out, "JSONL file to write; empty = standard output");
  f.choice("dtype", dtype, kDtypeHelp);
  f.field("temperature", temperature, Range{1e-3, 100}, "temperature that divides the logits");
  f.field("batch_tokens", batch_tokens, Range{16, 1 << 24}, "tokens per forward pass");
  machine.fields(f);
}

void EvaluateOptions::fields(Fields& f) {
  f.field("suite", suite, "suite, benchmark, or file that describes one, such as math5");
  f.field("data", data, OptionNames::evaluation_data,
          "problem files, JSONL (may be given several times); with --suite, the directory of the suite's files");
  f.field("name", name, "name of the result files; empty = the suite's name, or test");
  f.field("template", prompt_template, kEvaluateTemplateHelp);
  examples.fields(f);
  f.field("stop", stop, kStopHelp);
  f.field("out", out, "directory for run directories; empty = print only");
  f.field("responses", responses, "JSONL file of responses generated elsewhere, evaluated as one more MODEL");
  f.field("limit", limit, Range{0, 1 << 30}, "number of problems, from the first (per benchmark); 0 = all");
  f.choice("extract", extract,
           "answer extraction: strict = last \\boxed{}; lenient = or usual phrases; answer_tag = in "
           "<answer>..</answer>; auto = lenient for chat prompts that ask for no box, else strict");
  f.choice("grader", grader,
           "grader of --data problems: mathematics, choice letter, number, programs run on tests, or one for "
           "comparison; benchmarks name another");
  f.field("graders", graders, "graders by data source, SOURCE=GRADER; other sources use --grader");
  eval.fields(f);
  environment.fields(f);
  problems.fields(f);
  engine.fields(f);
  machine.fields(f);
  f.section("columns", problems.columns);  // what comes after a section would have a heading of its own
  f.section("code", code);
}

PolicyLine read_policy_line(const std::vector<std::string>& words, const std::vector<std::string>& lists) {
  CommandLine line = parse_command_line(words, {});
  PolicyLine out;
  out.positionals = std::move(line.positionals);
  for (Setting& setting : line.settings) {
    std::replace(setting.key.begin(), setting.key.end(), '-', '_');
    if (std::find(lists.begin(), lists.end(), setting.key) != lists.end()) {
      auto before = std::find_if(out.settings.begin(), out.settings.end(),
                                 [&](const Setting& s) { return s.key == setting.key; });
      if (before != out.settings.end()) {
        std::get<std::string>(before->value) += "," + std::get<std::string>(setting.value);
        continue;
      }
    }
    out.settings.push_back(std::move(setting));
  }
  return out;
}

std::string choose_template(const std::string& asked, const std::string& checkpoint, const std::string& otherwise) {
  if (asked != kAutoTemplate) return asked;
  return has_chat_template(checkpoint) ? "chat" : otherwise;
}

bool may_be_chat(const std::string& name) {
  const bool file = name.find('/') != std::string::npos || name.find('.') != std::string::npos;
  return name == kAutoTemplate || name.starts_with("chat") || file;
}

bool asks_for_box(const Template& prompt_template, std::span<const Problem> problems) {
  constexpr size_t kLookedAt = 32;
  const std::span<const Problem> first = problems.first(std::min(problems.size(), kLookedAt));
  const auto boxed = std::ranges::count_if(first, [&](const Problem& problem) {
    const std::string prompt = render(prompt_template, problem);
    return prompt.find("\\boxed") != std::string::npos || prompt.find("\\fbox") != std::string::npos;
  });
  return 2 * static_cast<size_t>(boxed) > first.size();
}

Extract choose_extract(ExtractOption asked, const Template& prompt_template, std::span<const Problem> problems,
                       GraderKind grader) {
  if (const std::optional<Extract> extract = said(asked)) return *extract;
  const bool of_text = grader == GraderKind::math || grader == GraderKind::numeric;
  return prompt_template.chat && of_text && !asks_for_box(prompt_template, problems) ? Extract::lenient
                                                                                     : Extract::strict;
}

std::string template_in_words(const std::string& chosen) {
  return str("template ", chosen,
             chosen == "chat" ? " (the checkpoint's own)" : " (the checkpoint has no chat template)");
}

std::string PromptChoice::in_words() const {
  std::string text;
  if (asked_template == kAutoTemplate) text = template_in_words(prompt_template);
  // A template that was named and answers in boxes: as ever.
  if (asked_extract != ExtractOption::automatic || (text.empty() && extract == Extract::strict)) return text;
  return str(text, text.empty() ? "" : ", ", "extract ", word_of(extract),
             extract == Extract::lenient ? " (no prompt asks for \\boxed{})"
             : boxed                     ? " (the prompts ask for \\boxed{})"
                                         : "");
}

}  // namespace ucas
