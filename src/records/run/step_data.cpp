#include "records/run/step_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "records/run/rollouts.h"
#include "records/run/run_directory.h"

namespace ucas {

namespace {

constexpr const char* kSignalsFormat = "ucas-signals-1";
constexpr int64_t kMostSignalBytes = int64_t{4} << 30;
constexpr const char *kRatio = "ratio", *kClipped = "clipped";  // of the update, not of the batch
constexpr double kLargest = 3.4028235e38;                       // the largest float as it is written

// ------------------------------------------------------------------------------------------------------- writing

// Text that reads back to the same float32 through a float64, as JSON readers do.
void append_number(std::string& out, float value) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
    return;
  }
  if (value == 0) {
    out += std::signbit(value) ? "-0.0" : "0";
    return;
  }
  size_t from = out.size();
  append(out, value);
  double read = 0;
  std::from_chars(out.data() + from, out.data() + out.size(), read);
  if (static_cast<float>(read) == value) return;
  out.resize(from);  // the shortest text of the float is next to the middle of two: write it out as a double
  append(out, static_cast<double>(value));
}

template <class T, class Append>
void append_list(std::string& out, const std::string& key, std::span<const T> values, Append append_value) {
  out += str(", ", json_text(key), ": [");
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    append_value(out, values[i]);
  }
  out += "]";
}

// One term alone is the score.
bool has_terms(const Batch& batch) { return batch.reward_terms.size() > 1; }

std::string header_line(const StepData& data) {
  OrderedJson header;
  header["format"] = kSignalsFormat;
  header["step"] = data.step;
  header["method"] = data.method;
  header["preset"] = data.preset;
  header["settings"] = OrderedJson::object();
  for (const auto& [key, value] : data.settings) header["settings"][key] = value;
  header["groups_of_step"] = data.groups_of_step;
  header["groups"] = data.batch.groups.size();
  if (data.batch.seed != 0) header["seed"] = str(data.batch.seed);  // as text: a JSON reader may keep 53 bits alone
  header["stop_ids"] = data.batch.stop_ids;
  if (has_terms(data.batch)) {
    header["reward_terms"] = OrderedJson::array();
    for (const RewardTerm& term : data.batch.reward_terms) {
      header["reward_terms"].push_back({{"name", term.name}, {"weight", term.weight}});
    }
  }
  header["answer_classes"] = data.answer_classes;
  header["tail_confidence"] = data.batch.has_tails;
  header["arrays"] = OrderedJson::array();
  for (const auto& [key, values] : data.batch.all_signals()) header["arrays"].push_back(key);
  if (!data.ratio.empty()) header["arrays"].push_back(kRatio);
  if (!data.clipped.empty()) header["arrays"].push_back(kClipped);
  header["pieces"] = !data.piece.empty();
  header["trace"] = OrderedJson::array();
  for (const auto& signal : data.trace) {
    header["trace"].push_back({{"name", signal.name}, {"per_token", signal.per_token}});
  }
  return json_text(header) + "\n";
}

void append_response(std::string& out, const StepData& data, size_t row) {
  const Batch& batch = data.batch;
  const Response& o = batch.responses[row];
  out += str("{\"sample\": ", o.sample, ", \"finished\": ", o.finished);
  if (!o.trained) out += ", \"trained\": false";
  for (auto [key, value] : {std::pair{"score", o.score},
                            {"reward", o.reward},
                            {"kl_penalty", o.kl_penalty},
                            {"tail_confidence", o.tail_confidence}}) {
    out += str(", \"", key, "\": ");
    append_number(out, value);
  }
  out += str(", \"verdict\": \"", name_of(o.verdict.kind), "\", \"answer\": ", json_text(o.verdict.answer),
             ", \"answer_class\": ", o.verdict.answer_class);
  if (has_terms(batch)) append_list(out, "terms", std::span<const float>(o.terms), append_number);
  append_list(out, "token", Batch::tokens(batch.token, o), [](std::string& to, int32_t id) { append(to, id); });
  if (!o.inserts.empty()) out += str(", \"inserts\": ", inserts_json(o.inserts));
  if (!data.piece.empty()) {
    append_list(out, "piece", Batch::tokens(data.piece, o),
                [](std::string& to, const std::string& piece) { to += json_text(piece); });
  }
  for (const auto& [key, values] : batch.all_signals()) {
    append_list(out, std::string(key), values.subspan(o.first, o.length), append_number);
  }
  append_list(out, "advantage", Batch::tokens(data.advantage, o), append_number);
  if (!data.ratio.empty()) append_list(out, kRatio, Batch::tokens(data.ratio, o), append_number);
  if (!data.clipped.empty()) {
    append_list(out, kClipped, Batch::tokens(data.clipped, o), [](std::string& to, uint8_t by) { append(to, by); });
  }
  for (const auto& signal : data.trace) {
    std::string key = "trace/" + signal.name;
    if (signal.per_token) {
      append_list(out, key, Batch::tokens(signal.values, o), append_number);
    } else {
      out += str(", ", json_text(key), ": ");
      append_number(out, signal.values[row]);
    }
  }
  out += "}\n";
}

// ------------------------------------------------------------------------------------------------------- reading

void expect_count(const JsonObject& line, const std::string& key, int64_t got, int64_t count) {
  if (got == count) return;
  line.refuse(str("\"", printable(key), "\": ", got, " values for ", count, " tokens; expected one a token"));
}

float number32(const JsonObject& line, const std::string& key, const Json& value) {
  if (value == "nan") return std::numeric_limits<float>::quiet_NaN();
  if (value == "inf" || value == "-inf") return (value == "inf" ? 1 : -1) * std::numeric_limits<float>::infinity();
  if (!value.is_number() || std::fabs(value.get<double>()) > kLargest) {
    line.refuse(str("\"", printable(key), "\": expected 32-bit numbers, \"nan\", \"inf\" or \"-inf\""));
  }
  return static_cast<float>(value.get<double>());
}

float number32(const JsonObject& line, const std::string& key) {
  const Json* value = line.find(key);
  if (!value) line.refuse(key, "a 32-bit number");
  return number32(line, key, *value);
}

// Appends exactly `count` numbers.
void append_numbers(const JsonObject& line, const std::string& key, int64_t count, std::vector<float>& to) {
  const Json* values = line.find(key);
  if (!values || !values->is_array()) line.refuse(key, "a list of 32-bit numbers");
  expect_count(line, key, static_cast<int64_t>(values->size()), count);
  for (const Json& value : *values) to.push_back(number32(line, key, value));
}

// The file's lines, one after another.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), text_(read_file(path, kMostSignalBytes)) {}
  bool more() const { return at_ < text_.size(); }
  JsonObject next(const char* what) {
    std::string where = str(printable(path_, 400), ":", ++number_);
    size_t end = text_.find('\n', at_);
    if (end == std::string::npos) {
      throw Error(ErrorKind::data_line, str(where, ": the file ends here, expected ", what, "; it was cut short"));
    }
    std::string_view line = std::string_view(text_).substr(at_, end - at_);
    at_ = end + 1;
    return JsonObject::parse(line, where);
  }

 private:
  std::string path_, text_;
  size_t at_ = 0;
  int64_t number_ = 0;
};

struct Header {
  int64_t groups = 0;
  std::vector<std::string> signals;
  bool ratio = false, clipped = false, pieces = false;
};

uint64_t seed_of(const JsonObject& line) {
  const std::string text = line.text("seed");
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) line.refuse("seed", "a whole number as text");
  return seed;
}

Header read_header(const JsonObject& line, StepData& data) {
  if (line.text_or("format", "") != kSignalsFormat) {
    line.refuse(str("not a step's signals (no \"format\": \"", kSignalsFormat,
                    "\"); they are in RUN/signals/, where train.stored_signals is above 0"));
  }
  Header header;
  data.step = line.whole("step", 0);
  data.method = line.text("method");
  data.preset = line.text("preset");
  const JsonObject settings = line.child("settings");
  for (const std::string& key : settings.keys()) data.settings.emplace_back(key, settings.text(key));
  data.groups_of_step = line.whole("groups_of_step", 1, INT32_MAX);
  header.groups = line.whole("groups", 1, data.groups_of_step);
  if (line.has("seed")) data.batch.seed = seed_of(line);
  data.batch.stop_ids = line.ids("stop_ids");
  if (line.has("reward_terms")) {
    for (const JsonObject& row : line.children("reward_terms")) {
      data.batch.reward_terms.push_back({row.text("name"), row.number("weight")});
    }
  }
  data.answer_classes = line.truth("answer_classes");
  data.batch.has_tails = line.truth("tail_confidence");
  header.pieces = line.truth("pieces");
  std::set<std::string> seen;
  for (const std::string& name : line.texts("arrays")) {
    if (!seen.insert(name).second) line.refuse(str("\"arrays\": duplicate \"", printable(name), "\""));
    if (name == kRatio || name == kClipped) {
      (name == kRatio ? header.ratio : header.clipped) = true;
      continue;
    }
    header.signals.push_back(name);
  }
  for (const JsonObject& row : line.children("trace")) {
    data.trace.push_back({row.text("name"), row.truth("per_token"), {}});
  }
  return header;
}

// The question and its answers: files of earlier versions have none, so absent is empty.
void read_question(const JsonObject& line, StepData& data) {
  if (line.has("question")) data.question.resize(data.problem.size() - 1);
  if (line.has("question") || !data.question.empty()) data.question.push_back(line.text_or("question", ""));
  if (line.has("gold")) data.gold.resize(data.problem.size() - 1);
  if (line.has("gold") || !data.gold.empty()) data.gold.push_back(line.texts_or_text("gold"));
  const std::string grader = line.text_or("grader", word_of(GraderKind::math));
  constexpr auto kinds = names(GraderKind{});
  const auto found = std::ranges::find(kinds, grader);
  if (found == kinds.end()) line.refuse(str("\"grader\": \"", printable(grader), "\" is no grader of this version"));
  data.grader.push_back(static_cast<GraderKind>(found - kinds.begin()));
}

void read_response(const JsonObject& line, const Header& header, StepData& data) {
  Batch& batch = data.batch;
  Response o;
  o.first = batch.token_count();
  o.group = static_cast<int64_t>(batch.groups.size()) - 1;
  o.sample = line.whole("sample", 0, INT32_MAX);
  o.finished = line.truth("finished");
  o.trained = line.truth_or("trained", true);
  o.score = number32(line, "score");
  o.reward = number32(line, "reward");
  o.kl_penalty = number32(line, "kl_penalty");
  o.tail_confidence = number32(line, "tail_confidence");
  if (has_terms(batch)) {
    append_numbers(line, "terms", static_cast<int64_t>(batch.reward_terms.size()), o.terms);
  }
  line.text("verdict");  // required
  o.verdict.kind = *verdict_of(line);
  o.verdict.answer = line.text("answer");
  o.verdict.answer_class = static_cast<int32_t>(line.whole("answer_class", -1, INT32_MAX));
  const std::vector<int32_t> ids = line.ids("token");
  o.length = static_cast<int64_t>(ids.size());
  batch.token.insert(batch.token.end(), ids.begin(), ids.end());
  o.inserts = inserts_of(line, o.length);
  if (header.pieces) {
    const std::vector<std::string> pieces = line.texts("piece");
    expect_count(line, "piece", static_cast<int64_t>(pieces.size()), o.length);
    data.piece.insert(data.piece.end(), pieces.begin(), pieces.end());
  }
  for (const std::string& key : header.signals) append_numbers(line, key, o.length, batch.signal(key));
  append_numbers(line, "advantage", o.length, data.advantage);
  if (header.ratio) append_numbers(line, kRatio, o.length, data.ratio);
  if (header.clipped) {
    const std::vector<int32_t> clipped = line.ids(kClipped, 3);
    expect_count(line, kClipped, static_cast<int64_t>(clipped.size()), o.length);
    data.clipped.insert(data.clipped.end(), clipped.begin(), clipped.end());
  }
  for (StepData::Signal& signal : data.trace) {
    const std::string key = "trace/" + signal.name;
    if (signal.per_token) {
      append_numbers(line, key, o.length, signal.values);
    } else {
      signal.values.push_back(number32(line, key));
    }
  }
  batch.responses.push_back(std::move(o));
}

}  // namespace

Batch leading_groups(const Batch& batch, int64_t tokens) {
  int64_t count = 0, end = 0, responses = 0;
  for (const Group& group : batch.groups) {
    int64_t next = end;
    for (const Response& o : batch.of(group)) next += o.length;
    if (count > 0 && tokens > 0 && next > tokens) break;
    end = next;
    responses += group.count;
    ++count;
  }
  Batch part;
  auto cut = [&]<class T>(const std::vector<T>& from, int64_t size) {
    return std::vector<T>(from.begin(), from.begin() + std::min(size, static_cast<int64_t>(from.size())));
  };
  part.groups = cut(batch.groups, count);
  part.responses = cut(batch.responses, responses);
  part.reward_terms = batch.reward_terms;
  part.seed = batch.seed;
  part.has_tails = batch.has_tails;
  part.stop_ids = batch.stop_ids;
  part.token = cut(batch.token, end);
  for (const auto& [key, values] : batch.all_signals()) part.signal(key).assign(values.begin(), values.begin() + end);
  return part;
}

std::vector<int64_t> steps_with_signals(const std::string& run) {
  const std::string folder = path_join(run, "signals");
  std::set<int64_t> steps;
  for (const std::string& name : is_directory(folder) ? list_directory(folder) : std::vector<std::string>()) {
    if (name.ends_with(".jsonl") && parse_step_name(name) >= 0) steps.insert(parse_step_name(name));
  }
  return {steps.begin(), steps.end()};
}

std::string step_data_lines(const StepData& data) {
  const Batch& batch = data.batch;
  size_t N = batch.token.size(), B = batch.responses.size();
  UCAS_CHECK(data.problem.size() == batch.groups.size() && data.advantage.size() == N,
             "the parts of a stored step must have matching sizes");
  UCAS_CHECK((data.ratio.empty() || data.ratio.size() == N) && (data.clipped.empty() || data.clipped.size() == N),
             "an update's record has a value a token");
  UCAS_CHECK(data.question.empty() || data.question.size() == data.problem.size(),
             "either all rows have a question, or none has");
  UCAS_CHECK(data.gold.empty() || data.gold.size() == data.problem.size(),
             "either all rows have a gold answer, or none has");
  for (const auto& signal : data.trace) {
    UCAS_CHECK(signal.values.size() == (signal.per_token ? N : B), "a trace row has a value per token or response");
  }
  std::string out = header_line(data);
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const Group& group = batch.groups[g];
    out += str("{\"problem\": ", json_text(data.problem[g]), ", \"index\": ", group.problem,
               ", \"responses\": ", group.count);
    append_list(out, "prompt", std::span<const int32_t>(group.prompt),
                [](std::string& to, int32_t id) { append(to, id); });
    if (!data.question.empty()) out += ", \"question\": " + json_text(data.question[g]);
    if (!data.gold.empty()) {
      append_list(out, "gold", std::span<const std::string>(data.gold[g]),
                  [](std::string& to, const std::string& answer) { to += json_text(answer); });
    }
    if (!data.grader.empty() && data.grader[g] != GraderKind::math) {
      out += str(", \"grader\": ", json_text(std::string(word_of(data.grader[g]))));
    }
    out += "}\n";
    for (int64_t i = 0; i < group.count; ++i) append_response(out, data, static_cast<size_t>(group.first + i));
  }
  return out;
}

Batch with_answer_classes(const StepData& data) {
  Batch out = data.batch;
  for (size_t g = 0; !data.answer_classes && g < out.groups.size(); ++g) {
    const Group& group = out.groups[g];
    std::vector<Verdict> verdicts;
    for (const Response& o : out.of(group)) verdicts.push_back(o.verdict);
    make_grader(data.grader.empty() ? GraderKind::math : data.grader[g])->classify(verdicts);
    for (size_t i = 0; i < verdicts.size(); ++i) {
      out.responses[static_cast<size_t>(group.first) + i].verdict.answer_class = verdicts[i].answer_class;
    }
  }
  return out;
}

StepData read_step_data(const std::string& path) {
  Lines lines(path);
  StepData data;
  Header header = read_header(lines.next("a step's signals"), data);
  for (int64_t g = 0; g < header.groups; ++g) {
    const JsonObject line = lines.next("a prompt");
    Group group;
    group.problem = line.whole("index", 0);
    group.first = static_cast<int64_t>(data.batch.responses.size());
    group.count = line.whole("responses", 1, INT32_MAX);
    group.prompt = line.ids("prompt");
    data.problem.push_back(line.text("problem"));
    read_question(line, data);
    data.batch.groups.push_back(std::move(group));
    for (int64_t i = 0; i < data.batch.groups.back().count; ++i) {
      read_response(lines.next("a response"), header, data);
    }
  }
  if (lines.more()) lines.next("nothing").refuse("expected the end of the file: all groups have been read");
  return data;
}

}  // namespace ucas
