#include "records/evaluation.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/thread_pool.h"
#include "base/str.h"
#include "base/text/json.h"
#include "records/run/rollouts.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

namespace {

constexpr int64_t kFiguresFile = int64_t{64} << 20;

// ------------------------------------------------------------------------------------------------------- writing

OrderedJson json_of(const std::vector<FigureAt>& list) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& [k, f] : list) rows.push_back({{"k", k}, {"value", f.value}, {"low", f.low}, {"high", f.high}});
  return rows;
}

void add_greedy(OrderedJson& out, const EvalNumbers& n) {
  if (n.greedy.known()) out["greedy"] = {{"pass@1", json_of(n.greedy)}};
}

void add_lists(OrderedJson& out, const EvalNumbers& n) {
  out["mean@k"] = json_of(n.mean_at);
  out["pass@k"] = json_of(n.pass_at);
  out["maj@k"] = json_of(n.majority_at);
  if (n.cover.known()) out[kCover] = json_of(n.cover);
}

void add_samples(OrderedJson& out, const EvalNumbers& n) {
  add_lists(out, n);
  out["entropy"] = n.entropy;
  out["length"] = n.length;
  out["truncated_share"] = n.truncated;
  out["unparseable_share"] = n.unparseable;
}

OrderedJson part_json(const EvalNumbers& part) {
  OrderedJson out = {{"problems", part.problems}};
  add_greedy(out, part);
  add_samples(out, part);
  return out;
}

OrderedJson macro_json(const EvalNumbers& macro) {
  OrderedJson out = OrderedJson::object();
  add_greedy(out, macro);
  add_lists(out, macro);
  return out;
}

OrderedJson json_of(const SampledResponse& r) {
  OrderedJson out = {{"response", r.response},    {"verdict", name_of(r.verdict.value_or(VerdictKind::unparseable))},
                     {"answer", r.answer},        {"tokens", r.tokens},
                     {"finished", r.finished},    {"ids", r.ids},
                     {"logprob", r.logprob},      {"entropy", r.entropy},
                     {"confidence", r.confidence}};
  if (r.tokens < 0) out["tokens"] = nullptr;
  if (!r.end_known) out["finished"] = nullptr;
  return out;
}

// ------------------------------------------------------------------------------------------------------- reading

Figure figure_of(const JsonObject& object) {
  return {object.number_or("value", kUnknown), object.number_or("low", kUnknown), object.number_or("high", kUnknown)};
}

std::vector<FigureAt> figures_at_k(const JsonObject& object, const char* key) {
  std::vector<FigureAt> list;
  for (const JsonObject& item : object.children_or_none(key)) {
    list.push_back({item.whole("k", 1), figure_of(item)});
  }
  std::ranges::sort(list, {}, &FigureAt::k);
  return list;
}

void read_numbers(const JsonObject& object, EvalNumbers& n) {
  n.problems = object.whole_or("problems", 0);
  n.entropy = object.number_or("entropy", kUnknown);
  n.length = object.number_or("length", kUnknown);
  n.truncated = object.number_or("truncated_share", kUnknown);
  n.unparseable = object.number_or("unparseable_share", kUnknown);
  if (object.has("greedy") && object.child("greedy").has("pass@1")) {
    n.greedy = figure_of(object.child("greedy").child("pass@1"));
  }
  n.mean_at = figures_at_k(object, "mean@k");
  n.pass_at = figures_at_k(object, "pass@k");
  n.majority_at = figures_at_k(object, "maj@k");
  if (object.has(kCover)) n.cover = figure_of(object.child(kCover));
}

SampledResponse response_of(const JsonObject& row) {
  SampledResponse r;
  r.response = row.text_or("response", "");
  r.answer = row.text_or("answer", "");
  r.verdict = verdict_of(row);
  r.tokens = row.whole_or("tokens", -1);
  r.finished = row.truth_or("finished", true);
  r.logprob = row.number_or("logprob", kUnknown);
  r.entropy = row.number_or("entropy", kUnknown);
  r.confidence = row.number_or("confidence", kUnknown);
  return r;
}

ProblemRow problem_row(const JsonObject& row) {
  ProblemRow out;
  out.id = row.text_or("id", "");
  if (out.id.empty()) row.refuse("\"id\" is missing, expected what problems are paired by");
  out.source = row.text_or("source", "");
  out.subject = row.text_or("subject", "");
  out.problem = row.text_or("problem", "");
  out.gold = row.texts_or_text("gold");
  if (row.has("greedy")) out.greedy = response_of(row.child("greedy"));
  out.samples = row.whole_or("samples", 0);
  out.correct = row.whole_or("correct", 0);
  out.mean_length = row.number_or("mean_length", kUnknown);
  const std::string of = str("correct = ", out.correct, " of samples = ", out.samples, ", expected a part of ");
  if (out.samples < 0 || out.correct < 0 || out.correct > out.samples) row.refuse(of + "them");
  for (const JsonObject& item : row.children_or_none("responses")) out.responses.push_back(response_of(item));
  return out;
}

Figure at(const std::vector<FigureAt>& list, int64_t k) {
  const auto found = std::ranges::find(list, k, &FigureAt::k);
  return found == list.end() ? Figure{} : found->share;
}

}  // namespace

void EvalConfig::fields(Fields& f) {
  f.field("greedy", greedy, "generate one greedy response per problem (greedy pass@1)");
  f.field("samples", samples, Range{0, 1 << 16}, "sampled responses per problem, the n of mean@n; 0 = greedy only");
  f.field("temperature", temperature, Range{1e-3, 100}, "sampling temperature of the samples");
  f.field("top_p", top_p, Range{1e-6, 1}, "probability mass of nucleus sampling; 1 = off");
  f.field("top_k", top_k, Range{0, 1 << 24}, "number of most probable tokens to sample from; 0 = off");
  f.field("min_p", min_p, Range{0, 1}, "minimum token probability as a fraction of the most probable token's; 0 = off");
  f.field("max_tokens", max_tokens, Range{1, 1 << 24}, "maximum response length in tokens, end token included");
  f.field("ks", ks, Range{1, 1 << 16}, "values k of pass@k; values above samples are left out");
  f.field("seed", seed, Range{0, 9e15}, "random seed of sampling and bootstrap");
  f.choice("dtype", dtype, kDtypeHelp);
  f.choice("truncated", truncated, "responses cut at max_tokens: grade as usual, or count as wrong", Effect::result,
           kTruncatedGraded);
  f.field("stored_responses", stored_responses, Range{0, 1 << 16}, "sampled responses stored per problem");
  f.field("bootstrap_draws", bootstrap_draws, Range{0, 1e6},
          "bootstrap resamples of the problems per interval; 0 = no intervals");
  f.field("confidence_level", confidence_level, Range{0.5, 0.9999}, "confidence level of the intervals");
}

const EvalNumbers* EvalRecord::of(const std::string& source) const {
  for (const auto& [name, numbers] : by_source) {
    if (name == source) return &numbers;
  }
  return nullptr;
}

std::string to_json(const EvalRecord& record) {
  const EvalConfig& config = record.config;
  OrderedJson out;
  out["label"] = record.label;
  out["model"] = record.model;
  if (!record.suite.empty()) out["suite"] = record.suite;
  out["step"] = record.step < 0 ? OrderedJson(nullptr) : OrderedJson(record.step);
  out["data"] = record.data;
  out["problems"] = record.problems;
  add_greedy(out, record);
  out["samples"] = config.samples;
  out["temperature"] = config.temperature;
  out["top_p"] = config.top_p;
  out["top_k"] = config.top_k;
  if (config.min_p > 0) out["min_p"] = config.min_p;
  out["max_tokens"] = config.max_tokens;
  add_samples(out, record);
  if (record.macro) out["macro"] = macro_json(*record.macro);
  out["interval"] =
      str(percent(config.confidence_level, 0), "; greedy: Clopper-Pearson; samples: bootstrap over problems, ",
          config.bootstrap_draws, " draws");
  out["seed"] = config.seed;
  if (record.asked) {
    OrderedJson& asked = out["asked"] = to_json(*record.asked);
    asked["dtype"] = word_of(config.dtype);
    asked["truncated"] = word_of(config.truncated);
  }
  OrderedJson sources = OrderedJson::object();
  for (const auto& [source, numbers] : record.by_source) sources[source] = part_json(numbers);
  out["by_source"] = std::move(sources);
  for (const auto& [source, by_subject] : record.by_subject) {
    OrderedJson subjects = OrderedJson::object();
    for (const auto& [subject, numbers] : by_subject.subjects) subjects[subject] = part_json(numbers);
    out["by_subject"][source] = {{"macro", macro_json(by_subject.macro)}, {"subjects", std::move(subjects)}};
  }
  return json_text(out, 2) + "\n";
}

std::string to_jsonl(const EvalRecord& record) {
  std::string lines;
  for (const ProblemRow& row : record.rows) {
    OrderedJson out;
    out["id"] = row.id;
    out["source"] = row.source;
    if (!row.subject.empty()) out["subject"] = row.subject;
    out["problem"] = row.problem;
    out["gold"] = row.gold;
    if (row.greedy) out["greedy"] = json_of(*row.greedy);
    out["samples"] = row.samples;
    out["correct"] = row.correct;
    out["mean_length"] = row.mean_length;
    OrderedJson responses = OrderedJson::array();
    for (const SampledResponse& r : row.responses) responses.push_back(json_of(r));
    out["responses"] = std::move(responses);
    lines += json_text(out) + "\n";
  }
  return lines;
}

void write_evaluation(const EvalRecord& record, const std::string& directory, const std::string& name) {
  make_directories(directory);
  write_file(path_join(directory, name + ".jsonl"), to_jsonl(record));
  write_file(path_join(directory, name + ".json"), to_json(record));
}

EvalRecord read_evaluation(const std::string& directory, const std::string& name, std::vector<std::string>& missing,
                           std::vector<std::string>& remarks) {
  EvalRecord out;
  out.name = name;
  const std::string path = path_join(directory, name + ".json");
  const JsonObject root = JsonObject::read(path, kFiguresFile, ErrorKind::data_line);
  out.label = root.text_or("label", "");
  out.model = root.text_or("model", "");
  out.suite = root.text_or("suite", "");
  out.data = join(root.texts_or_text("data"), ", ");
  out.interval = root.text_or("interval", "");
  out.step = root.whole_or("step", -1);
  out.config.samples = root.whole_or("samples", 0);
  out.config.seed = root.whole_or("seed", -1);
  out.config.temperature = root.number_or("temperature", kUnknown);
  out.config.top_p = root.number_or("top_p", 1);
  out.config.top_k = root.whole_or("top_k", 0);
  out.config.min_p = root.number_or("min_p", 0);
  out.config.greedy = root.has("greedy");
  out.config.max_tokens = root.whole_or("max_tokens", out.config.max_tokens);
  if (root.has("asked")) {
    const JsonObject asked = root.child("asked");
    std::vector<Setting> words;
    for (const char* key : {"dtype", "truncated"}) words.push_back({key, asked.text(key), asked.place()});
    ucas::apply(out.config, words);
    out.asked = asked_of(asked);
  }
  read_numbers(root, out);
  if (root.has("by_source")) {
    const JsonObject sources = root.child("by_source");
    // Read once more for the order of the suite.
    const OrderedJson ordered = parse_ordered_json(read_file(path, kFiguresFile))["by_source"];
    for (const auto& [source, ignored] : ordered.items()) {
      read_numbers(sources.child(source), out.by_source.emplace_back(source, EvalNumbers{}).second);
    }
  }
  if (root.has("macro")) read_numbers(root.child("macro"), out.macro.emplace());
  const std::string rows = path_join(directory, name + ".jsonl");
  if (exists(rows)) {
    each_json_line(rows, remarks, [&](const JsonObject& row) { out.rows.push_back(problem_row(row)); });
  } else {
    missing.push_back(str("eval/", name, ".jsonl (the responses of each problem)"));
  }
  return out;
}

Figure figure_named(const EvalNumbers& n, const std::string& name) {
  auto alone = [](double value) { return Figure{value, kUnknown, kUnknown}; };
  if (name == "greedy") return n.greedy;
  if (name == kCover) return n.cover;
  for (const auto& [prefix, list] : {std::pair{"mean@", &n.mean_at}, {"pass@", &n.pass_at}, {"maj@", &n.majority_at}}) {
    std::string_view before = prefix;
    if (!name.starts_with(before)) continue;
    int64_t k = 0;
    const char* end = name.data() + name.size();
    auto [stop, error] = std::from_chars(name.data() + before.size(), end, k);
    return error == std::errc() && stop == end ? at(*list, k) : Figure{};
  }
  if (name == "entropy") return alone(n.entropy);
  if (name == "length") return alone(n.length);
  if (name == "truncated") return alone(n.truncated);
  if (name == "unparseable") return alone(n.unparseable);
  return {};
}

std::vector<std::string> shares_of(const EvalNumbers& n) {
  std::vector<std::string> names;
  if (n.greedy.known()) names.emplace_back("greedy");
  for (const auto& [name, list] : {std::pair{"mean@", &n.mean_at}, {"maj@", &n.majority_at}, {"pass@", &n.pass_at}}) {
    for (const FigureAt& figure : *list) names.push_back(str(name, figure.k));
  }
  if (n.cover.known()) names.emplace_back(kCover);
  return names;
}

std::string metric_title(const std::string& name) { return name == "greedy" ? "greedy pass@1" : name; }

bool is_share(const std::string& name) {
  return name == "greedy" || name.find('@') != std::string::npos || name == "truncated" || name == "unparseable";
}

namespace {

constexpr size_t kShownDigits = 8, kMostSets = 100;

// Files of a checkpoint that decide what it answers; moments of the optimizer and auxiliary models do not.
bool decides(const std::string& name) {
  const std::vector<std::string>& of_tokenizer = tokenizer_files();
  return name == "config.json" || name == "generation_config.json" || name == "model.safetensors" ||
         name == "model.safetensors.index.json" || name == "adapter_config.json" ||
         name == "adapter_model.safetensors" || std::ranges::find(of_tokenizer, name) != of_tokenizer.end() ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));
}

// What decides the prompts. Templates that are no chat template have the keys that they always had.
OrderedJson content_of(const Template& prompt_template) {
  OrderedJson out = {{"text", prompt_template.text},
                     {"system", prompt_template.system},
                     {"special", prompt_template.special},
                     {"stop", prompt_template.stop}};
  if (!prompt_template.examples.empty()) {
    out["shots"] = prompt_template.shots;
    out["example"] = prompt_template.example;
    out["examples"] = OrderedJson::array();
    for (const Template::Example& e : prompt_template.examples) {
      out["examples"].push_back(OrderedJson{{"question", e.question}, {"answer", e.answer}});
    }
  }
  if (!prompt_template.chat) return out;
  out["chat"] = true;
  out["user"] = prompt_template.user;
  out["set"] = prompt_template.set;
  out["tokens"] = OrderedJson::object();
  for (const auto& [name, text] : prompt_template.tokens) out["tokens"][name] = text;
  return out;
}

template <class Enum>
Enum choice_of(const JsonObject& object, const char* key) {
  const auto known = names(Enum{});
  const auto found = std::ranges::find(known, object.text(key));
  if (found == known.end()) {
    object.refuse(key, "one of " + join(std::vector<std::string>(known.begin(), known.end()), ", "));
  }
  return static_cast<Enum>(found - known.begin());
}

AskedSet set_of(const JsonObject& row) {
  return {.name = row.text("name"),
          .prompt_template = row.text("template"),
          .template_sha256 = row.text("template_sha256"),
          .stop_texts = row.texts("stop_texts"),
          .max_tokens = row.whole("max_tokens"),
          .problems = row.whole("problems"),
          .problems_sha256 = row.text("problems_sha256"),
          .grader = choice_of<GraderKind>(row, "grader"),
          .extract = choice_of<Extract>(row, "extract")};
}

}  // namespace

std::vector<ModelFile> hash_model_files(const std::string& directory) {
  std::vector<std::string> names;
  for (const std::string& name : list_directory(directory)) {
    if (decides(name)) names.push_back(name);
  }
  // Reading is what takes time: shards side by side, as many as a disk likes.
  constexpr int64_t kAtOnce = 4;
  std::vector<ModelFile> files(names.size());
  share_out(names.size(), 1, kAtOnce, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const std::string path = path_join(directory, names[i]);
      files[i] = {names[i], file_size(path), sha256_of_file(path)};
    }
  });
  return files;
}

std::string name_and_hash(const std::string& name, const std::string& sha256) {
  return str(printable(name), " (", printable(sha256.substr(0, kShownDigits)), ")");
}

OrderedJson to_json(const Asked& asked) {
  OrderedJson out = {{"ucas", asked.version}, {"grader_version", asked.grader_version}, {"keys", asked.keys}};
  if (!asked.origin.empty()) out["origin"] = asked.origin;
  out["model_files"] = OrderedJson::array();
  for (const ModelFile& file : asked.model_files) {
    out["model_files"].push_back({{"name", file.name}, {"size", file.size}, {"sha256", file.sha256}});
  }
  out["sets"] = OrderedJson::array();
  for (const AskedSet& set : asked.sets) {
    out["sets"].push_back({{"name", set.name},
                           {"problems", set.problems},
                           {"problems_sha256", set.problems_sha256},
                           {"template", set.prompt_template},
                           {"template_sha256", set.template_sha256},
                           {"stop_texts", set.stop_texts},
                           {"max_tokens", set.max_tokens},
                           {"grader", word_of(set.grader)},
                           {"extract", word_of(set.extract)}});
  }
  return out;
}

Asked asked_of(const JsonObject& object) {
  Asked asked{.version = object.text("ucas"),
              .grader_version = object.whole("grader_version"),
              .origin = object.text_or("origin", ""),
              .keys = object.text("keys")};
  for (const JsonObject& file : object.children("model_files")) {
    asked.model_files.push_back({file.text("name"), file.whole("size"), file.text("sha256")});
  }
  for (const JsonObject& row : object.children("sets")) {
    if (asked.sets.size() == kMostSets) object.refuse(str("\"sets\": expected at most ", kMostSets));
    asked.sets.push_back(set_of(row));
  }
  return asked;
}

std::string problems_sha256(std::span<const Problem> problems, const std::string& source) {
  std::string lines;
  for (const Problem& problem : problems) {
    if (problem.source != source) continue;
    OrderedJson line = {{"id", problem.id}, {"problem", problem.text}, {"gold", problem.gold}};
    if (!problem.subject.empty()) line["subject"] = problem.subject;
    lines += json_text(line) + "\n";
  }
  return sha256_of_text(lines);
}

std::string template_sha256(const Template& prompt_template) {
  return sha256_of_text(json_text(content_of(prompt_template)));
}

}  // namespace ucas
