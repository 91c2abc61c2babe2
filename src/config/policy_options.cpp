#include "config/policy_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr const char* kGenerateTemplateHelp =
    "prompt template: auto (chat where the checkpoint has a chat template, else plain), chat (the checkpoint's own), "
    "plain, qwen_math, qwen_boxed, orz, or a file";
constexpr const char* kEvaluateTemplateHelp =
    "prompt template: auto (chat where the checkpoint has a chat template, else qwen_math), chat (the checkpoint's "
    "own), "
    "plain, qwen_math, qwen_boxed, orz, or a file";
constexpr const char* kStopHelp =
    "tokens or texts that end a response, beside the model's own stop tokens, such as \"</answer>\"; it goes up to the "
    "token that completes one";

}  // namespace

void MachineOptions::fields(Fields& f) {
  f.field("device", device, "cpu, cuda or cuda:N");
  f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores");
}

void GenerateOptions::fields(Fields& f) {
  f.field("model", model, "Hugging Face checkpoint directory, or that of a PEFT adapter");
  f.field("prompt", prompt, "one question, answered on standard output");
  f.field("data", data, "problem files, JSONL (may be given several times)");
  f.field("template", prompt_template, kGenerateTemplateHelp);
  examples.fields(f);
  f.field("stop", stop, kStopHelp);
  f.field("out", out, "file to write the rows to; empty = standard output");
  f.choice("dtype", dtype, "of products, activations, keys and values");
  f.field("samples", samples, Range{1, 1 << 20}, "responses per prompt");
  sampling.fields(f);
  f.field("seed", seed, Range{0, 9e15}, "of the draws");
  f.field("limit", limit, Range{0, 1 << 30}, "only the first N problems; 0 = all");
  problems.fields(f);
  engine.fields(f);
  machine.fields(f);
  f.section("columns", problems.columns);
}

void GenerateOptions::validate() const {
  if (model.empty()) throw Error("usage", "--model DIR is missing; see `ucas generate --help`");
  if (prompt.empty() == data.empty()) {
    throw Error("usage", prompt.empty() ? "nothing to answer: give --prompt TEXT or --data FILE.jsonl"
                                        : "--prompt and --data are both given; choose one of them");
  }
  if (sampling.temperature > 0 && sampling.temperature < 1e-3) {
    throw Error("config", str("temperature = ", sampling.temperature, ": expected 0 (greedy) or at least 0.001"));
  }
}

void ScoreOptions::fields(Fields& f) {
  f.field("model", model, "Hugging Face checkpoint directory, or that of a PEFT adapter");
  f.field("out", out, "file to write the rows to; empty = standard output");
  f.choice("dtype", dtype, "of products and activations");
  f.field("temperature", temperature, Range{1e-3, 100}, "logits are divided by it");
  f.field("batch_tokens", batch_tokens, Range{16, 1 << 24}, "tokens per forward pass");
  machine.fields(f);
}

void MergeOptions::fields(Fields& f) { f.field("out", out, "directory to write; must not exist"); }

void EvaluateOptions::fields(Fields& f) {
  f.field("suite", suite, "benchmarks to run, such as math5: a suite, a benchmark, or a file that describes one");
  f.field("data", data, "problem files, JSONL (may be given several times); with --suite the directory of its files");
  f.field("name", name, "of the result's files; empty = the suite's, or test");
  f.field("template", prompt_template, kEvaluateTemplateHelp);
  examples.fields(f);
  f.field("stop", stop, kStopHelp);
  f.field("out", out, "directory of the runs; empty = print only");
  f.field("server", server, "address of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1: one more MODEL");
  f.field("responses", responses, "file of responses that something else generated (JSONL): one more MODEL");
  f.field("models", models, "a file with [model.LABEL] tables: path, template, stop, max_tokens, extract");
  f.field("labels", labels, "names of the models in table and files; empty = from their paths");
  f.field("limit", limit, Range{0, 1 << 30}, "only the first N problems (of each benchmark); 0 = all");
  f.choice("extract", extract,
           "where the answer is looked for: strict, the last \\boxed{}; lenient, that, else the usual phrases; "
           "answer_tag, inside <answer>..</answer>; auto, lenient after a chat template whose prompts ask for no box, "
           "else strict");
  f.choice(
      "grader", grader,
      "who grades the problems of --data files: mathematics, a choice letter, a number, programs run on tests, or a "
      "grader to compare with; benchmarks name theirs");
  f.field("graders", graders, "graders of data sources with one of their own, each SOURCE=GRADER");
  eval.fields(f);
  served.fields(f);
  problems.fields(f);
  engine.fields(f);
  machine.fields(f);
  f.section("columns", problems.columns);  // what stands after a section would have a heading of its own
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

}  // namespace ucas
