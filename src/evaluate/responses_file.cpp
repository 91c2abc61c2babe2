#include "evaluate/responses_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "data/problems.h"
#include "data/rows/jsonl.h"
#include "records/outputs.h"
#include "results/stats/spread.h"
#include "text/unicode/unicode.h"
#include "verify/registry.h"

namespace ucas {

namespace {

const std::vector<std::string> kGoldKeys = {"answer",           "gold", "ground_truth", "solution", "target",
                                            "reference_answer", "gts"};
const std::vector<std::string> kQuestionKeys = {"problem", "question", "query", "prompt", "input"};
const std::vector<std::string> kResponseKeys = {"responses",  "response", "completions", "completion",  "generations",
                                                "generation", "outputs",  "output",      "predictions", "prediction"};

[[noreturn]] void refuse_row(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::data_line, str(where, ": ", what));
}

const Json* child(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json* first_of(const Json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (const Json* found = child(object, key.c_str())) return found;
  }
  return nullptr;
}

// A text, or the content of the messages of a chat, the last one's alone where `last`.
std::string text_of(const Json& value, const std::string& where, const char* key, bool last = false) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content")) return text_of(value.at("content"), where, key);
  if (value.is_array() && !value.empty()) {
    std::string text;
    for (const Json& part : value) {
      const bool message = part.is_object() && (part.contains("content") || part.contains("text"));
      if (!message) refuse_row(where, str("\"", key, "\": expected a text or a list of messages"));
      const std::string one = text_of(part.contains("content") ? part.at("content") : part.at("text"), where, key);
      text = last || text.empty() ? one : str(text, "\n", one);
    }
    return text;
  }
  refuse_row(where, str("\"", key, "\": ", value.type_name(), ", expected a text"));
}

std::string id_of(const Json& value) { return value.is_string() ? value.get<std::string>() : json_text(value); }

std::vector<std::string> gold_of(const JsonRow& row, const Json* value) {
  if (!value || value->is_object()) return {};
  std::vector<std::string> gold = answer_field(row, *value, "gold", true);
  for (std::string& one : gold) one = marked_answer(one);
  std::erase(gold, "");
  return gold;
}

// A response of which only the text is known.
Output said(std::string text) {
  Output output;
  output.text = replace_invalid(text);
  output.finished = true;
  output.end_known = false;
  output.logprob = output.entropy = output.confidence = kUnknown;
  return output;
}

struct GivenRow {
  std::string id, source, question;
  std::vector<std::string> gold;
  std::vector<Output> responses;
};

std::vector<int32_t> token_ids(const Json* value) {
  std::vector<int32_t> ids;
  if (!value || !value->is_array()) return ids;
  for (const Json& id : *value) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) return {};
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// What `ucas generate` records of a response, except its text.
void add_what_is_known(const Json& row, Output& response) {
  response.ids = token_ids(child(row, "response_ids"));
  if (const Json* finished = child(row, "finished"); finished && finished->is_boolean()) {
    response.finished = finished->get<bool>();
    response.end_known = true;
  }
  if (const Json* logprob = child(row, "logprob"); logprob && logprob->is_number()) {
    response.logprob = logprob->get<double>();
  }
}

GivenRow given_row(const JsonRow& row) {
  GivenRow out;
  const Json& v = row.value;
  if (const Json* id = first_of(v, {"id", "unique_id", "doc_id"})) out.id = id_of(*id);
  if (const Json* source = first_of(v, {"source", "data_source", "task"})) out.source = id_of(*source);
  if (const Json* question = first_of(v, kQuestionKeys)) out.question = text_of(*question, row.where, "prompt", true);
  out.gold = gold_of(row, first_of(v, kGoldKeys));
  const Json* texts = first_of(v, kResponseKeys);
  if (!texts) refuse_row(row.where, str("expected one of ", join(kResponseKeys, ", ")));
  const bool list = texts->is_array() && !texts->empty() && !texts->front().is_object();
  const Json each = list ? *texts : Json::array({*texts});
  for (const Json& text : each) out.responses.push_back(said(text_of(text, row.where, "response", true)));
  if (!list) add_what_is_known(v, out.responses.front());
  if (out.id.empty() && out.question.empty()) {
    refuse_row(row.where, "neither \"id\" nor a question (problem, question, prompt): whose response is it?");
  }
  return out;
}

void refuse_other_rows(const JsonRow& row) {
  const Json& v = row.value;
  const auto format = v.find("format");
  if (format != v.end() && format->is_string() && format->get<std::string>().starts_with("ucas-outputs")) {
    throw Error(ErrorKind::unsupported, str(row.where,
                                            ": these are the responses of an evaluation of ucas itself: `ucas "
                                            "verify RUN` grades and counts them again"));
  }
  if (first_of(v, kResponseKeys)) return;
  std::vector<std::string> keys;
  for (const auto& [key, value] : v.items()) keys.push_back(key);
  refuse_row(row.where, str("keys ", printable(join(keys, ", "), 200), ": no response among them, expected one of ",
                            join(kResponseKeys, ", ")));
}

// Parquet is known by its name; without it, it would be read as JSON lines.
void refuse_parquet(const std::string& path) {
  if (path.ends_with(".parquet") || !exists(path) || is_directory(path) || file_size(path) < 4) return;
  char magic[4];
  read_at(path, 0, magic, 4);
  if (std::string_view(magic, 4) != "PAR1") return;
  throw Error(ErrorKind::unsupported,
              str(printable(path, 400), ": a Parquet file by its content but not by its name; call it *.parquet"));
}

}  // namespace

GivenResponses read_responses(const std::string& path) {
  refuse_parquet(path);
  GivenResponses out;
  std::map<std::string, size_t> place;  // by what distinguishes problems
  std::string step;                     // of the training that the responses are of
  const std::string name = path.substr(path.find_last_of('/') + 1), stem = name.substr(0, name.rfind('.'));
  read_json_lines(path, BadRows::stop, [&](const JsonRow& line) {
    if (out.empty()) refuse_other_rows(line);
    GivenRow row = given_row(line);
    const Json* of_step = child(line.value, "step");
    const std::string mine = of_step ? of_step->dump() : "";
    if (out.empty()) step = mine;
    if (mine != step) {
      refuse_row(line.where, str("of step ", mine, ", the rows before are of step ", step,
                                 ": responses of two models; expected those of one step alone"));
    }
    if (row.source.empty()) row.source = stem;
    const std::string problem_name = str(row.source, "\n", row.id.empty() ? row.question : row.id);
    const auto [at, fresh] = place.try_emplace(problem_name, out.size());
    if (fresh) out.push_back({line.where, row.id, row.source, row.question, row.gold, {}});
    GivenProblem& problem = out[at->second];
    if (problem.gold != row.gold) refuse_row(line.where, str("another right answer than in ", problem.where));
    for (Output& response : row.responses) {
      response.sample = static_cast<int64_t>(problem.responses.size());
      problem.responses.push_back(std::move(response));
    }
  });
  return out;
}

std::vector<Problem> problems_of(const GivenResponses& given, const std::string& path) {
  std::vector<Problem> out;
  for (size_t i = 0; i < given.size(); ++i) {
    const GivenProblem& from = given[i];
    if (from.gold.empty()) {
      refuse_row(
          from.where,
          str("the file has no right answer; give the problems with --data FILE.jsonl or --suite NAME --data DIR"));
    }
    Problem& problem = out.emplace_back();
    problem.id = from.id.empty() ? str(from.source, "/", i + 1) : from.id;
    problem.source = from.source;
    problem.text = from.question;
    problem.gold = from.gold;
  }
  return out;
}

std::vector<size_t> match_responses(const GivenResponses& given, const std::vector<Problem>& problems,
                                    const std::string& path) {
  std::multimap<std::string, size_t> by_id, by_question;
  for (size_t i = 0; i < problems.size(); ++i) {
    by_id.emplace(problems[i].id, i);
    by_question.emplace(std::string(trim(problems[i].text)), i);
  }
  const auto only = [](const std::multimap<std::string, size_t>& map, const std::string& key) -> std::optional<size_t> {
    const auto [low, high] = map.equal_range(key);
    if (low == high || std::next(low) != high) return std::nullopt;
    return low->second;
  };
  std::vector<std::optional<size_t>> of(problems.size());
  for (size_t g = 0; g < given.size(); ++g) {
    const GivenProblem& from = given[g];
    std::optional<size_t> found = only(by_question, std::string(trim(from.question)));
    if (!found && !from.id.empty()) found = only(by_id, from.id);
    if (!found && !from.question.empty()) {
      // The longest question that the prompt holds: a short one may be inside another.
      size_t longest = 0;
      for (size_t i = 0; i < problems.size(); ++i) {
        const std::string_view question = trim(problems[i].text);
        if (question.size() <= longest || from.question.find(question) == std::string::npos) continue;
        longest = question.size();
        found = i;
      }
    }
    if (!found) {
      refuse_row(from.where, str("a response to no problem of the data: neither its id ",
                                 from.id.empty() ? "(it has none)" : str("\"", printable(from.id, 60), "\""),
                                 " nor its question is there; is --data the set that was asked?"));
    }
    if (of[*found]) {
      refuse_row(from.where, str("responses to problem ", printable(problems[*found].id, 60), ", as in ",
                                 given[*of[*found]].where, "; expected one prompt a problem"));
    }
    of[*found] = g;
  }
  std::vector<size_t> out;
  const auto missing = std::ranges::count_if(of, [](const auto& g) { return !g; });
  for (size_t i = 0; i < problems.size(); ++i) {
    if (of[i]) {
      out.push_back(*of[i]);
      continue;
    }
    throw Error(
        ErrorKind::data_line,
        str(printable(path, 400), ": ", missing, " of ", problems.size(), " problems have no response, the first is ",
            printable(problems[i].source), "/", printable(problems[i].id),
            "; a response that is missing is not a wrong one: leave the problems out of --data, or "
            "--data away where the file has the right answers"));
  }
  return out;
}

Graders graders_of(const Asked& asked) {
  Graders graders;
  for (const AskedSet& set : asked.sets) {
    graders.of[set.name] = make_grader(set.grader, set.extract);
  }
  return graders;
}

std::vector<Problem> problems_of(const EvalRecord& evaluation) {
  std::vector<Problem> problems;
  for (const ProblemRow& row : evaluation.rows) {
    Problem& problem = problems.emplace_back();
    problem.id = row.id;
    problem.source = row.source;
    problem.subject = row.subject;
    problem.text = row.problem;
    problem.gold = row.gold;
  }
  return problems;
}

std::vector<ProblemRow> rows_with_all_samples(const std::string& directory, const EvalRecord& evaluation) {
  const auto lacks = [](const ProblemRow& row) { return std::ssize(row.responses) < row.samples; };
  const std::string outputs = path_join(directory, evaluation.name + ".outputs.jsonl");
  const bool whole = std::ranges::none_of(evaluation.rows, lacks);
  if (whole || !exists(outputs) || !evaluation.asked) return evaluation.rows;
  const Graders graders = graders_of(*evaluation.asked);
  for (const ProblemRow& row : evaluation.rows) {
    if (graders.of.contains(row.source)) continue;
    throw Error(ErrorKind::data_line,
                str(path_join(directory, evaluation.name + ".jsonl"), ": problem ", printable(row.id),
                    " is of source \"", printable(row.source), "\", expected one that ", evaluation.name,
                    ".json names; evaluate again with another --out"));
  }
  const std::vector<Problem> problems = problems_of(evaluation);
  EvalConfig config = evaluation.config;
  config.stored_responses = config.samples;
  config.bootstrap_draws = 0;  // no figure of it is read
  const std::vector<Responses> responses =
      by_problem(problems, read_outputs(outputs).outputs, config.greedy, config.samples);
  return score(problems, responses, graders, config).rows;
}

}  // namespace ucas
