#include "evaluate/results/card_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/hash.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/text/json.h"
#include "compare/answers.h"
#include "data/problems.h"
#include "data/rows/jsonl.h"
#include "evaluate/benchmark.h"
#include "evaluate/score.h"
#include "evaluate/sources/stored_samples.h"
#include "records/card.h"
#include "records/outputs.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/unicode.h"
#include "verify/version.h"

namespace ucas {

namespace {

constexpr int64_t kFiguresLimit = int64_t{64} << 20;
constexpr size_t kShown = 160;
// Equal work on another machine may differ in the last digits (its libm); what a reader could see cannot hide in here.
constexpr double kRounding = 1e-9;

std::string shown(const Json& value) { return printable(json_text(value), kShown); }

bool equal_leaf(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number() && (a.is_number_float() || b.is_number_float())) {
    const double x = a.get<double>(), y = b.get<double>();
    return std::fabs(x - y) <= kRounding * std::max({1.0, std::fabs(x), std::fabs(y)});
  }
  return a == b;
}

class Check {
 public:
  Check(const std::string& run, const std::string& name, const CheckAgainst& against)
      : run_(run),
        directory_(path_join(run, "eval")),
        name_(name),
        against_(against),
        card_(read_card(file(".card.json"))) {
    out_.card = card_.name();
    out_.version = card_.version;
    out_.made = card_.made;
  }
  CardCheck run();

 private:
  struct Row {
    Json json;
    std::string where;  // file:line
  };
  std::string file(const char* ending) const { return path_join(directory_, name_ + ending); }
  void find(const std::string& place, const std::string& field, const std::string& stored, const std::string& again) {
    out_.findings.push_back({place, field, printable(stored, kShown), printable(again, kShown)});
  }
  template <class Value>
  void expect(const std::string& place, const std::string& field, const Value& stored, const Value& again) {
    if (stored != again) find(place, field, str(stored), str(again));
  }
  // Every leaf of `again` and `stored`; counts the numbers among them in `counted`.
  void compare(const Json& stored, const Json& again, const std::string& place, const std::string& field,
               int64_t* counted);
  void check_hashes();
  void check_environment();
  void check_settings(const OutputSettings& settings);
  void check_responses(const OutputSettings& settings, const std::vector<Output>& outputs);
  void check_texts(const std::vector<Output>& outputs);
  void check_problem_hashes();
  void check_data();
  void check_data_of(const Card::Set& set);
  void check_model();
  void read_rows();
  EvalRecord rescored(std::vector<Output> outputs) const;
  void check_result(const EvalRecord& result);
  const Card::Set* set_of(const std::string& source) const {
    for (const Card::Set& set : card_.benchmarks) {
      if (set.as.name == source) return &set;
    }
    return nullptr;
  }

  std::string run_, directory_, name_;
  CheckAgainst against_;
  Card card_;
  std::vector<Row> rows_;
  std::vector<Problem> problems_;
  CardCheck out_;
};

CardCheck Check::run() {
  if (card_.grader_version != kGraderVersion) {
    out_.remarks.push_back(str("the card is of grader version ", card_.grader_version, ", this is ", kGraderVersion,
                               ": verdicts may differ for that reason alone"));
  }
  if (card_.version != version()) {
    out_.remarks.push_back(str("the card is of ucas ", printable(card_.version, 40), ", this is ", version()));
  }
  check_hashes();
  check_environment();
  read_rows();
  check_problem_hashes();
  StoredOutputs stored = read_outputs(file(".outputs.jsonl"));
  check_settings(stored.settings);
  check_responses(stored.settings, stored.outputs);
  check_model();
  check_texts(stored.outputs);
  check_data();
  out_.responses = static_cast<int64_t>(stored.outputs.size());
  try {
    check_result(rescored(std::move(stored.outputs)));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::truncated) throw;
    find(file(".outputs.jsonl"), "responses", "not all that the card asks for", error.what());
  }
  return std::move(out_);
}

void Check::compare(const Json& stored, const Json& again, const std::string& place, const std::string& field,
                    int64_t* counted) {
  const auto inner = [&](const std::string& key) { return field.empty() ? key : str(field, ".", key); };
  if (stored.is_object() && again.is_object()) {
    for (const auto& [key, value] : again.items()) {
      if (stored.contains(key)) {
        compare(stored.at(key), value, place, inner(key), counted);
      } else {
        find(place, inner(key), "nothing", shown(value));
      }
    }
    for (const auto& [key, value] : stored.items()) {
      if (!again.contains(key)) find(place, inner(key), shown(value), "nothing");
    }
    return;
  }
  if (stored.is_array() && again.is_array() && stored.size() == again.size()) {
    for (size_t i = 0; i < again.size(); ++i) compare(stored[i], again[i], place, str(field, "[", i, "]"), counted);
    return;
  }
  if (counted && again.is_number()) ++*counted;
  if (!equal_leaf(stored, again)) find(place, field, shown(stored), shown(again));
}

void Check::check_hashes() {
  ++out_.hashes;
  expect(card_.path, "sha256", card_.sha256, card_.computed);
  const std::pair<const CardFile*, const char*> files[] = {
      {&card_.outputs, ".outputs.jsonl"}, {&card_.problems, ".jsonl"}, {&card_.figures, ".json"}};
  for (const auto& [said, ending] : files) {
    const CardFile there = card_file(file(ending), name_ + ending);
    ++out_.hashes;
    expect(card_.path, str("files: ", ending, ": name"), said->name, there.name);
    expect(card_.path, str("files: ", ending, ": size"), said->size, there.size);
    expect(card_.path, str("files: ", ending, ": sha256"), said->sha256, there.sha256);
  }
  for (const Card::Set& set : card_.benchmarks) {
    ++out_.hashes;
    expect(card_.path, str("template of ", set.as.name, ": sha256"), set.template_sha256,
           template_sha256(set.as.prompt_template));
  }
}

// The name under which reports show the run.
void Check::check_environment() {
  const std::string path = path_join(run_, "env.json");
  if (!exists(path)) return;
  const Json environment = read_json(path, kFiguresLimit);
  if (!environment.is_object() || !environment.contains("label") || !environment.at("label").is_string()) return;
  const std::string label = environment.at("label").get<std::string>();
  if (!label.empty() && !card_.label.empty()) expect(path, "label", label, card_.label);
}

void Check::read_rows() {
  read_json_lines(file(".jsonl"), BadRows::stop, [&](const JsonRow& row) {
    Problem problem;
    problem.id = text_field(row, "id");
    problem.source = text_field(row, "source");
    problem.text = text_field(row, "problem");
    if (row.value.contains("subject")) problem.subject = text_field(row, "subject");
    const auto gold = row.value.find("gold");
    if (gold == row.value.end()) throw Error(ErrorKind::data_line, str(row.where, ": \"gold\" is missing"));
    problem.gold = answer_field(row, *gold, "gold", true);
    if (set_of(problem.source) == nullptr) {
      find(row.where, "source", problem.source, "one of the card's benchmarks");
      return;
    }
    problems_.push_back(std::move(problem));
    rows_.push_back({row.value, row.where});
  });
  out_.problems = static_cast<int64_t>(rows_.size());
}

void Check::check_problem_hashes() {
  for (const Card::Set& set : card_.benchmarks) {
    const int64_t there =
        std::count_if(problems_.begin(), problems_.end(), [&](const Problem& p) { return p.source == set.as.name; });
    expect(card_.path, str("problems of ", set.as.name), set.problems, there);
    ++out_.hashes;
    expect(card_.path, str("questions and answers of ", set.as.name, ": sha256"), set.problems_sha256,
           problems_sha256(problems_, set.as.name));
  }
}

// What the responses' own file says of how they were made.
void Check::check_settings(const OutputSettings& settings) {
  const std::string place = file(".outputs.jsonl") + ":1";
  expect(place, "keys", settings.keys, card_.keys);
  expect(place, "temperature", settings.temperature, card_.config.temperature);
  expect(place, "top_p", settings.top_p, card_.config.top_p);
  expect(place, "top_k", settings.top_k, card_.config.top_k);
  expect(place, "min_p", settings.min_p, card_.config.min_p);
  expect(place, "seed", settings.seed, card_.config.seed);
  expect(place, "dtype", settings.dtype, std::string(word_of(card_.config.dtype)));
  expect(place, "sources", settings.sources.size(), card_.benchmarks.size());
  for (const OutputSettings::Source& source : settings.sources) {
    const Card::Set* set = set_of(source.name);
    if (set == nullptr) {
      find(place, "sources", source.name, "one of the card's benchmarks");
      continue;
    }
    expect(place, str(source.name, ": max_tokens"), source.max_tokens, set->as.max_tokens);
    expect(place, str(source.name, ": choices"), source.choices, set->as.grader == word_of(GraderKind::choice));
    if (source.stop_ids != set->as.stop_ids) find(place, str(source.name, ": stop_ids"), "a list", "the card's list");
    expect(place, str(source.name, ": end_texts"), join(source.end_texts, "\n"), join(set->as.end_texts, "\n"));
  }
}

// A response ends by a stop token, a text or at the limit; probabilities are at most 1.
void Check::check_responses(const OutputSettings& settings, const std::vector<Output>& outputs) {
  int64_t line = 1;
  for (const Output& output : outputs) {
    const std::string place = str(file(".outputs.jsonl"), ":", ++line);
    const Card::Set* set = set_of(output.source);
    if (set == nullptr) {
      find(place, "source", output.source, "one of the card's benchmarks");
      continue;
    }
    if (output.logprob > 1e-3) find(place, "logprob", str(output.logprob), "at most 0");
    if (output.entropy < -1e-6) find(place, "entropy", str(output.entropy), "at least 0");
    if (set->as.grader == word_of(GraderKind::choice) || !card_.origin.empty()) continue;
    const int64_t length = std::ssize(output.ids) + inserted_tokens(output.inserts);
    const auto holds = [&](const std::string& text) { return output.text.find(text) != std::string::npos; };
    // What is graded leaves special tokens out: it may hold an end text that the tokens do not.
    const bool ended =
        !output.ids.empty() && (std::count(set->as.stop_ids.begin(), set->as.stop_ids.end(), output.ids.back()) > 0 ||
                                (output.finished && std::ranges::any_of(set->as.end_texts, holds)));
    expect(place, "finished", output.finished, ended);
    const auto less = set->as.max_tokens_of.find(output.id);
    const int64_t limit = less == set->as.max_tokens_of.end() ? set->as.max_tokens : less->second;
    // An environment's last message has no room, or no turn is left for it.
    const bool may_stop_short = !settings.environment.empty();
    if (length > limit || (!output.finished && !ended && length != limit && !may_stop_short)) {
      find(place, "ids", str(length, " tokens"), str(output.finished ? "at most " : "cut at ", limit, " tokens"));
    }
  }
}

void Check::check_model() {
  if (!card_.origin.empty()) {
    out_.remarks.push_back(str("the responses were not generated here (", printable(card_.origin, 40),
                               "): what the model is, and where its responses end, is what that said"));
    return;
  }
  if (against_.model.empty()) {
    out_.remarks.push_back("the model's files were not at hand: give --model DIR");
    return;
  }
  const std::vector<CardFile> there = hash_model_files(against_.model);
  std::map<std::string, const CardFile*> by_name;
  for (const CardFile& file : there) by_name[file.name] = &file;
  for (const CardFile& said : card_.model_files) {
    ++out_.hashes;
    const auto found = by_name.find(said.name);
    const std::string field = str("model file ", printable(said.name), ": sha256");
    if (found == by_name.end()) {
      find(card_.path, field, said.sha256, str("nothing: ", against_.model, " has no such file"));
      continue;
    }
    expect(card_.path, field, said.sha256, found->second->sha256);
    by_name.erase(found);
  }
  for (const auto& [name, file] : by_name) find(card_.path, str("model file ", name), "nothing", file->sha256);
}

// With the tokenizer at hand: the text is what the ids say.
void Check::check_texts(const std::vector<Output>& outputs) {
  if (against_.model.empty() || !card_.origin.empty()) return;
  const Tokenizer tokenizer = Tokenizer::load(against_.model);
  const int64_t vocabulary = tokenizer.vocab_size();
  for (const Card::Set& set : card_.benchmarks) {
    std::vector<std::string> texts;
    for (int32_t id : set.as.stop_ids) texts.push_back(id < vocabulary ? tokenizer.decode({&id, 1}, false) : "");
    texts.insert(texts.end(), set.as.end_texts.begin(), set.as.end_texts.end());
    expect(card_.path, str(set.as.name, ": stop_texts"), join(set.as.stop_texts, " "), join(texts, " "));
  }
  int64_t line = 1;
  for (const Output& output : outputs) {
    ++line;
    const Card::Set* set = set_of(output.source);
    if (set == nullptr || set->as.grader == word_of(GraderKind::choice)) continue;
    std::vector<int32_t> known;
    std::copy_if(output.ids.begin(), output.ids.end(), std::back_inserter(known),
                 [&](int32_t id) { return id < vocabulary; });
    ++out_.decoded;
    expect(str(file(".outputs.jsonl"), ":", line), "text", output.text, replace_invalid(tokenizer.decode(known, true)));
  }
}

void Check::check_data() {
  if (against_.data.empty()) {
    out_.remarks.push_back("the problem files were not at hand: give --data DIR");
    return;
  }
  for (const Card::Set& set : card_.benchmarks) check_data_of(set);
}

void Check::check_data_of(const Card::Set& set) {
  std::map<std::string, Problem> known;
  for (const CardFile& said : set.files) {
    // The longest end of the path that is there below the directory.
    std::string path = against_.data;
    if (is_directory(path)) {
      std::vector<std::string> parts = split(said.name, '/');
      while (parts.size() > 1 && !exists(path_join(path, join(parts, "/")))) parts.erase(parts.begin());
      path = path_join(path, join(parts, "/"));
    }
    const std::string field = str("data file ", printable(said.name, 200), ": sha256");
    if (!exists(path)) {
      find(card_.path, field, said.sha256, str("nothing: ", path, " is not there"));
      continue;
    }
    ++out_.hashes;
    expect(card_.path, field, said.sha256, sha256_of_file(path));
    ProblemOptions options;
    options.bad_rows = BadRows::skip;
    options.labels = false;  // benchmarks may hold problems without an answer
    options.columns = set.as.columns;
    std::set<std::string> seen;
    for (Problem& problem : read_problems({path}, options)) {
      const std::string id = problem.id;
      for (int64_t n = 2; !seen.insert(problem.id).second; ++n) problem.id = str(id, "#", n);
      known.emplace(problem.id, std::move(problem));
    }
  }
  if (known.empty()) return;
  for (size_t i = 0; i < problems_.size(); ++i) {
    const Problem& problem = problems_[i];
    if (problem.source != set.as.name) continue;
    const auto found = known.find(problem.id);
    if (found == known.end()) {
      find(rows_[i].where, "id", problem.id, "a problem of the data file");
      continue;
    }
    expect(rows_[i].where, "problem", problem.text, found->second.text);
    expect(rows_[i].where, "subject", problem.subject, found->second.subject);
    expect(rows_[i].where, "gold", join(problem.gold, " | "), join(found->second.gold, " | "));
  }
}

EvalRecord Check::rescored(std::vector<Output> outputs) const {
  std::vector<std::string> compared;
  const Graders graders = graders_of(card_, compared);
  const std::vector<Responses> responses =
      by_problem(problems_, std::move(outputs), card_.config.greedy, card_.config.samples, compared);
  EvalRecord result = score(problems_, responses, graders, card_.config);
  result.label = card_.label;
  result.model = card_.model;
  result.suite = card_.suite;
  result.step = card_.step;
  return result;
}

void Check::check_result(const EvalRecord& result) {
  // `data` names files and is not computed; card and figures must agree on it.
  const Json said = parse_json(card_.figures_json, card_.path);
  Json again = parse_json(to_json(result), "figures");
  const Json stored = read_json(file(".json"), kFiguresLimit);
  if (said.is_object() && said.contains("data")) again["data"] = said.at("data");
  compare(stored, again, file(".json"), "", &out_.figures);
  compare(said, again, card_.path, "figures", nullptr);
  const std::vector<std::string> lines = split(to_jsonl(result), '\n');
  for (size_t i = 0; i < rows_.size(); ++i) {
    Json row = parse_json(lines.at(i), "row");
    const std::string first = str("correct@", kQuotedSamples);  // earlier versions did not write it
    if (!rows_[i].json.contains(first)) row.erase(first);
    compare(rows_[i].json, row, rows_[i].where, "", &out_.figures);
  }
}

}  // namespace

CardCheck check_card(const std::string& run, const std::string& name, const CheckAgainst& against) {
  return Check(run, name, against).run();
}

std::vector<std::string> carded_evaluations(const std::string& run) {
  constexpr std::string_view kEnding = ".card.json";
  std::vector<std::string> names;
  const std::string directory = path_join(run, "eval");
  if (!is_directory(directory)) return names;
  for (const std::string& name : list_directory(directory)) {
    if (name.ends_with(kEnding)) names.push_back(name.substr(0, name.size() - kEnding.size()));
  }
  return names;
}

}  // namespace ucas
