#include "data/problems.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr size_t kMostChoices = 26;  // one capital letter each
constexpr uint64_t kOrderOfChoices = 0x67707161;
const std::vector<std::string> kAnswerKeys = {"answer", "ground_truth", "solution"};  // in this order

[[noreturn]] void refuse(const JsonRow& row, const std::string& what) {
  throw Error(ErrorKind::data_line, str(row.where, ": ", what));
}

std::string id_text(const JsonRow& row, const Json& value, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  const std::string number = json_text(value);
  if (value.is_number_integer()) return number;
  if (value.is_number_float() && number.ends_with(".0")) return number.substr(0, number.size() - 2);
  refuse(row, str("\"", key, "\": expected text or a whole number, got ", value.type_name()));
}

// A text, or a list of parts {"type": "text", "text": ..}.
std::string content_of(const JsonRow& message) {
  const auto content = message.value.find("content");
  if (content == message.value.end() || !content->is_array()) return text_field(message, "content");
  std::string text;
  for (const Json& part : *content) {
    if (!part.is_object() || part.value("type", Json()) != "text") {
      refuse(message, "\"content\": expected a text, or a list of parts that are texts");
    }
    text += text_field({part, message.where, message.line}, "text");
  }
  return text;
}

// As verl's prompt: at most one system message, turns of user and assistant, the last of them the user's, which is the
// question.
void read_messages(const JsonRow& row, const std::string& key, Problem& problem) {
  const Json& messages = row.value.at(key);
  std::vector<Turn> turns;
  for (const Json& message : messages) {
    if (!message.is_object()) {
      refuse(row, str("\"", printable(key), "\": expected messages {role, content}, got ", message.type_name()));
    }
    const JsonRow inner{message, row.where, row.line};
    const std::string role = text_field(inner, "role");
    if (role == "system" && &message == &messages.front()) {
      problem.system = content_of(inner);
    } else if ((role == "user" || role == "assistant") && (turns.empty() || turns.back().role != role)) {
      turns.push_back({role, content_of(inner)});
    } else {
      refuse(row, str("\"", printable(key), "\": a message of role \"", printable(role),
                      "\" here; expected at most one system message, the first, then user and assistant by turns"));
    }
  }
  if (turns.empty() || turns.back().role != "user") {
    refuse(row,
           str("\"", printable(key), "\": ", turns.empty() ? "no user message" : "the last message is the assistant's",
               "; expected the user's question as the last message"));
  }
  problem.text = std::move(turns.back().content);
  turns.pop_back();
  problem.earlier = std::move(turns);
}

// The column a file's description names, which must then be there, else the first of the usual ones ("" = none).
std::string column(const JsonRow& row, const std::string& named, const std::vector<std::string>& usual) {
  if (named.empty()) return first_key(row, usual);
  if (first_key(row, {named}).empty()) refuse(row, str("the column \"", printable(named), "\" is missing"));
  return named;
}

// Names that a file has none of are not asked of it.
void drop_absent(const JsonRow& row, ProblemColumns& columns) {
  for (std::string* name : {&columns.id, &columns.problem, &columns.answer, &columns.choices, &columns.subject}) {
    const bool there =
        std::ranges::all_of(split(*name, '|'), [&](const auto& n) { return !first_key(row, {n}).empty(); });
    if (!there) name->clear();
  }
}

std::string another_column(const std::string& key) {
  return str("; a training takes another by --data.columns.", key, " NAME, evaluate and generate by --columns.", key,
             " NAME");
}

void read_question(const JsonRow& row, const std::string& named, Problem& problem) {
  std::string key = column(row, named, {"problem", "question", "prompt", "messages"});
  if (key.empty()) {
    refuse(row, str("no question: expected a field \"problem\", \"question\", \"prompt\" or \"messages\"",
                    another_column("problem")));
  }
  if (row.value.at(key).is_array()) {
    read_messages(row, key, problem);
  } else {
    problem.text = text_field(row, key);
  }
  if (trim(problem.text).empty()) refuse(row, str("\"", key, "\": the question is empty"));
}

// `answer` of a problem without a right answer: missing, null, or an empty text or list.
bool no_answer(const Json& value) {
  return value.is_null() || (value.is_array() && value.empty()) ||
         (value.is_string() && trim(value.get<std::string>()).empty());
}

// "1,234" -> "1234", where that is what the commas mean.
std::string without_thousands_commas(const std::string& number) {
  const size_t begin = number.find_first_of("0123456789"), end = std::min(number.find('.'), number.size());
  if (begin == std::string::npos || begin > 2 || number.find(',') == std::string::npos) return number;
  std::string plain = number.substr(0, begin);
  for (size_t i = begin; i < number.size(); ++i) {
    const bool digit = number[i] >= '0' && number[i] <= '9', whole = i < end;
    // A comma precedes every three digits that end the whole part, and nowhere else.
    const bool comma_due = whole && (end - i) % 4 == 0;
    if (comma_due != (number[i] == ',') || !(digit || comma_due || i == end)) return number;
    if (!comma_due) plain += number[i];
  }
  return plain;
}

constexpr size_t kRepeatsShown = 5;
constexpr size_t kLongestForPattern = 200;  // bytes; std::regex recurses by the length of a text

void add_value(ColumnSummary& column, const Json& value) {
  ++column.rows;
  ++column.types[value.type_name()];
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    column.lengths.add(static_cast<int64_t>(characters(text)));
    column.empty += trim(text).empty();
  } else if (value.is_array()) {
    column.lengths.add(std::ssize(value));
    column.empty += value.empty();
  }
  if (column.example.empty()) column.example = value.is_string() ? value.get<std::string>() : json_text(value);
}

bool matches(const std::string& text, const std::regex& pattern) {
  return text.size() <= kLongestForPattern && std::regex_match(text, pattern);
}

std::string kind_of_text(const std::string& gold) {
  static const std::regex kWhole("[-+]?(\\d+|\\d{1,3}(,\\d{3})+)");
  static const std::regex kDecimal("[-+]?(\\d+|\\d{1,3}(,\\d{3})+)?\\.\\d+|[-+]?\\d+(\\.\\d+)?[eE][-+]?\\d+");
  static const std::regex kFraction(
      "[-+]?\\d+\\s*/\\s*\\d+|[-+]?\\\\[dt]?frac\\s*(\\{[-+]?\\d+\\}|\\d)(\\{\\d+\\}|\\d)");
  std::string text(trim(gold));
  if (text.size() > 1 && text.front() == '$' && text.back() == '$') text = trim(text.substr(1, text.size() - 2));
  if (text.empty()) return "none";
  if (matches(text, kWhole)) return "whole number";
  if (matches(text, kDecimal)) return "decimal";
  if (matches(text, kFraction)) return "fraction";
  if (is_prose(text)) return "prose";
  if (text.find('\\') != std::string::npos || text.find_first_of("^_=") != std::string::npos) return "LaTeX or formula";
  if (text.find(',') != std::string::npos && text.find_first_of("0123456789") != std::string::npos) {
    return "several values";
  }
  return std::ranges::any_of(text, [](unsigned char c) { return std::isalpha(c) != 0 || c >= 0x80; }) ? "words"
                                                                                                      : "other";
}

}  // namespace

bool is_prose(const std::string& gold) {
  constexpr int kFewestWords = 6;
  int words = 0;
  for (size_t i = 0; i < gold.size();) {
    size_t end = i;
    while (end < gold.size() && std::isalpha(static_cast<unsigned char>(gold[end])) != 0) ++end;
    words += end - i >= 2 && (i == 0 || gold[i - 1] != '\\');
    i = end + 1;
  }
  return words >= kFewestWords;
}

namespace {

// What a file's right answers look like, over its rows.
class GoldCheck {
 public:
  void add(const std::string& key, const Problem& problem) {
    if (problem.gold.empty() || !problem.choices.empty()) return;
    ++rows_;
    if (!std::ranges::all_of(problem.gold, is_prose)) return;
    if (prose_++ == 0) example_ = problem.gold.front();
    key_ = key;
  }
  void warn_about(const std::string& file) const {
    if (2 * prose_ <= rows_) return;
    warn(str(printable(file, 400), ": \"", printable(key_), "\" is prose in ", grouped(prose_), " of ", grouped(rows_),
             " rows (\"", printable(example_, 60),
             "\"), and only the same words would be right: give the answer alone, or reasoning whose last line is "
             "#### ANSWER"));
  }

 private:
  int64_t rows_ = 0, prose_ = 0;
  std::string key_, example_;
};

// What a program must begin with, where the data set keeps it apart from the question.
void add_starter_code(const JsonRow& row, Problem& problem) {
  const auto code = row.value.find("starter_code");
  if (code == row.value.end() || !code->is_string() || trim(code->get<std::string>()).empty()) return;
  problem.text += str("\n\nStarter code:\n```python\n", trim(code->get<std::string>()), "\n```");
}

// Returns the field that it was found under; "" where there is none, or tests are the answer.
std::string read_gold(const JsonRow& row, const ProblemOptions& options, Problem& problem) {
  const bool labels = options.labels;
  auto reward = row.value.find("reward_model");
  if (options.columns.answer.empty() && reward != row.value.end() && !reward->is_null()) {
    if (!labels && reward->is_object() &&
        (!reward->contains("ground_truth") || no_answer(reward->at("ground_truth")))) {
      return "";
    }
    if (!reward->is_object() || !reward->contains("ground_truth")) {
      refuse(row, "\"reward_model\": expected an object with \"ground_truth\"");
    }
    if (!labels && reward->at("ground_truth").is_object()) return "";  // for a scorer of its own
    problem.gold = answer_field(row, reward->at("ground_truth"), "reward_model.ground_truth", false);
    std::string tests = problem.gold.size() == 1 ? gold_of_truth(row, problem.gold.front()) : "";
    if (!tests.empty()) problem.gold = {std::move(tests)};
    return "reward_model.ground_truth";
  }
  const std::string& named = options.columns.answer;
  std::string key = labels || named.empty() ? column(row, named, kAnswerKeys) : first_key(row, {named});
  if (key.empty() && named.empty()) {
    if (std::string tests = gold_of_tests(row); !tests.empty()) {
      problem.gold = {std::move(tests)};
      add_starter_code(row, problem);
      return "";
    }
  }
  if (!labels && (key.empty() || no_answer(row.value.at(key)))) return "";
  if (key.empty()) {
    refuse(
        row,
        str("no answer: expected a field \"answer\", \"ground_truth\", \"solution\" or \"reward_model\", or tests of a "
            "program",
            another_column("answer")));
  }
  problem.gold = answer_field(row, row.value.at(key), key, false);
  return key;
}

// ARC's {"text": [..], "label": [..]}, {"A": .., "B": ..}, [{"label": .., "text": ..}], or those as JSON text: texts in
// the order of their labels.
struct Choices {
  std::vector<std::string> texts, labels;  // no labels: A, B, C ..
};

std::optional<std::string> choice_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return json_text(value);
  return std::nullopt;
}

bool add_choice(const Json& text, const Json& label, Choices& out) {
  auto words = choice_text(text), name = choice_text(label);
  if (!words || !name) return false;
  out.texts.push_back(std::move(*words));
  out.labels.push_back(std::move(*name));
  return true;
}

std::optional<Choices> choices_of(const Json& value) {
  Choices out;
  const auto field = [](const Json& object, std::initializer_list<const char*> names) -> const Json* {
    for (const char* name : names) {
      if (const auto at = object.find(name); at != object.end()) return &*at;
    }
    return nullptr;
  };
  if (value.is_object()) {
    const Json *texts = field(value, {"text", "texts"}), *labels = field(value, {"label", "labels"});
    if (texts != nullptr && labels != nullptr && texts->is_array() && labels->is_array()) {
      if (texts->size() != labels->size()) return std::nullopt;
      for (size_t i = 0; i < texts->size(); ++i) {
        if (!add_choice((*texts)[i], (*labels)[i], out)) return std::nullopt;
      }
      return out;
    }
    for (const auto& [key, text] : value.items()) {
      if (!add_choice(text, key, out)) return std::nullopt;
    }
    return out;
  }
  if (!value.is_array()) return std::nullopt;
  for (const Json& item : value) {
    if (auto text = choice_text(item)) {
      out.texts.push_back(std::move(*text));
      continue;
    }
    if (!item.is_object()) return std::nullopt;
    const Json *text = field(item, {"text", "content", "value"}), *label = field(item, {"label", "key", "id"});
    if (text == nullptr || label == nullptr || !add_choice(*text, *label, out)) return std::nullopt;
  }
  return out.labels.empty() || out.labels.size() == out.texts.size() ? std::optional(out) : std::nullopt;
}

// Each choice in a column of its own, the right one always in the same: their order is a hash of the question, so that
// it is the same in every run and file. A label is the column's name.
Choices shuffled_columns(const JsonRow& row, const std::vector<std::string>& columns, const std::string& question) {
  Choices out;
  for (const std::string& name : columns) {
    const auto text = choice_text(row.value.at(column(row, name, {})));
    if (!text) refuse(row, str("\"", printable(name), "\": expected the text of a choice"));
    out.texts.push_back(*text);
  }
  out.labels = columns;
  Rng rng(XXH3_64bits(question.data(), question.size()), kOrderOfChoices);
  for (size_t i = columns.size(); i-- > 1;) {
    const auto j = static_cast<size_t>(rng.below(static_cast<int64_t>(i) + 1));
    std::swap(out.texts[i], out.texts[j]);
    std::swap(out.labels[i], out.labels[j]);
  }
  return out;
}

// Labels as data sets have them, A to Z or 1 to 26; the answer names one of them.
void read_choices(const JsonRow& row, const ProblemColumns& columns, Problem& problem,
                  std::vector<std::string>& labels) {
  const std::vector<std::string> apart = split(columns.choices, '|');
  const std::string key = apart.size() > 1 ? columns.choices : column(row, columns.choices, {"choices"});
  if (key.empty()) return;
  Json value = apart.size() > 1 ? Json() : row.value.at(key);
  if (value.is_string()) {
    try {
      value = parse_json(value.get<std::string>(), row.where);
    } catch (const Error&) {  // refused below
    }
  }
  if (value.is_structured() && value.empty()) return;  // a question without
  auto choices = apart.size() > 1 ? shuffled_columns(row, apart, problem.text) : choices_of(value);
  if (!choices || choices->texts.size() < 2 || choices->texts.size() > kMostChoices) {
    refuse(row, str("\"", printable(key), "\": choices are expected as a list of 2 to ", kMostChoices,
                    " texts, {\"text\": [..], \"label\": [..]}, {\"A\": .., \"B\": ..}, or JSON text of one of them"));
  }
  problem.choices = std::move(choices->texts);
  labels = std::move(choices->labels);
  for (const std::string& choice : problem.choices) {
    if (trim(choice).empty()) refuse(row, str("\"", printable(key), "\": an empty choice"));
    if (choice.find('\0') != std::string::npos) refuse(row, str("\"", printable(key), "\": contains a NUL character"));
  }
}

// "C", the number 2, or the text of the third choice -> "C".
std::string choice_letter_of(const JsonRow& row, const std::string& gold, bool number, const Problem& problem,
                             const std::vector<std::string>& labels) {
  const auto count = static_cast<int64_t>(problem.choices.size());
  const auto letter = [](int64_t index) { return std::string(1, static_cast<char>('A' + index)); };
  const std::string_view text = trim(gold);
  if (const auto at = std::ranges::find(labels, text, [](const std::string& label) { return trim(label); });
      at != labels.end()) {
    return letter(at - labels.begin());
  }
  if (!number) {
    if (text.size() == 1 && text[0] >= 'A' && text[0] < 'A' + count) return std::string(text);
    for (int64_t i = 0; i < count; ++i) {
      if (trim(problem.choices[static_cast<size_t>(i)]) == text) return letter(i);
    }
  } else if (text.size() <= 2 && text.find_first_not_of("0123456789") == std::string_view::npos) {
    if (const int64_t index = std::stoi(std::string(text)); index < count) return letter(index);
  }
  refuse(row, str("the answer \"", printable(gold, 60), "\" is none of the ", count, " choices; expected A to ",
                  letter(count - 1), ", a number from 0 to ", count - 1, ", or the text of a choice"));
}

void gold_to_letters(const JsonRow& row, const std::string& named, const std::vector<std::string>& labels,
                     Problem& problem) {
  if (problem.choices.empty()) {
    const bool letter = problem.gold.size() == 1 && problem.gold[0].size() == 1 && problem.gold[0] >= "A" &&
                        problem.gold[0] <= "Z" && row.value.contains("choices") && !row.value.at("choices").is_null();
    if (letter) refuse(row, str("the answer is the letter ", problem.gold[0], ", and \"choices\" is empty"));
    return;
  }
  const std::string key = named.empty() ? first_key(row, kAnswerKeys) : named;
  const bool number = !key.empty() && row.value.at(key).is_number();
  if (std::ranges::find(labels, named) != labels.end()) problem.gold = {named};  // the column, not what it holds
  for (std::string& gold : problem.gold) gold = choice_letter_of(row, gold, number, problem, labels);
}

void read_names(const JsonRow& row, const std::string& stem, int64_t number, const ProblemColumns& columns,
                Problem& problem) {
  if (const std::string subject = column(row, columns.subject, {"subject"}); !subject.empty()) {
    if (!columns.subject.empty() || row.value.at(subject).is_string()) problem.subject = text_field(row, subject);
  }
  problem.source = first_key(row, {"data_source"}).empty() ? stem : text_field(row, "data_source");
  std::string key = column(row, columns.id, {"id", "unique_id"});
  auto extra = row.value.find("extra_info");
  if (!key.empty()) {
    problem.id = id_text(row, row.value.at(key), key);
  } else if (extra != row.value.end() && extra->is_object() && extra->contains("index") &&
             !extra->at("index").is_null()) {
    problem.id = id_text(row, extra->at("index"), "extra_info.index");
  } else {
    problem.id = str(stem, "/", number);
  }
}

// What each file's problems are called by: its stem, and its folder's name before it where two files have one stem, so
// that gsm8k/test.jsonl and math/test.jsonl are two sources.
std::vector<std::string> names_of_files(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const std::string& file : files) {
    const std::string stem = data_stem(file);
    const auto has_it = [&](const std::string& other) { return other != file && data_stem(other) == stem; };
    const std::string folder = std::filesystem::path(file).parent_path().filename().string();
    const bool longer = !folder.empty() && !hub_origin(file) && std::ranges::any_of(files, has_it);
    names.push_back(longer ? str(folder, "-", stem) : stem);
  }
  return names;
}

}  // namespace

std::string marked_answer(const std::string& gold) {
  const std::string_view text = trim(gold);
  const size_t line = text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1;
  const std::string_view last = trim(text.substr(line));
  if (!last.starts_with("####") || last.starts_with("#####")) return gold;
  const std::string answer(trim(last.substr(4)));
  return answer.empty() ? gold : without_thousands_commas(answer);
}

namespace {

using TakeProblem = std::function<void(const JsonRow& row, Problem problem)>;
struct Enough {};  // thrown by one that has all it wants

void each_problem(const std::vector<std::string>& files, const ProblemOptions& options, const TakeProblem& take) {
  if (files.empty()) throw Error(ErrorKind::usage, "no problem file given: expected one or more JSONL files");
  const std::vector<std::string> names = names_of_files(files);
  std::map<std::string, int64_t> earlier;  // rows of the files before of a data set of the hub: its shards
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string &file = files[i], &stem = names[i];
    GoldCheck gold_check;
    const int64_t before = hub_origin(file) ? earlier[stem] : 0;
    read_json_lines(file, options.bad_rows, [&](const JsonRow& row) {
      Problem problem;
      ProblemOptions here = options;
      std::vector<std::string> labels;  // of its choices
      if (options.columns_where_there) drop_absent(row, here.columns);
      read_question(row, here.columns.problem, problem);
      read_choices(row, here.columns, problem, labels);
      const std::string key = read_gold(row, here, problem);
      for (std::string& gold : problem.gold) gold = marked_answer(gold);
      if (!key.empty()) gold_check.add(key, problem);
      gold_to_letters(row, here.columns.answer, labels, problem);
      read_names(row, stem, before + row.line, here.columns, problem);
      earlier[stem] = before + row.line;
      take(row, std::move(problem));
    });
    gold_check.warn_about(file);
  }
}

}  // namespace

std::vector<Problem> read_problems(const std::vector<std::string>& files, const ProblemOptions& options,
                                   std::vector<std::string>* rows) {
  std::vector<Problem> problems;
  try {
    each_problem(files, options, [&](const JsonRow& row, Problem problem) {
      problems.push_back(std::move(problem));
      if (rows != nullptr) rows->push_back(json_text(row.value));
      if (std::ssize(problems) == options.most) throw Enough();
    });
  } catch (const Enough&) {
  }
  return problems;
}

uint64_t content_hash(const std::vector<Problem>& problems) {
  // Each text goes in with its length before it, so that moving a character between fields changes the hash.
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  auto add_count = [&](uint64_t count) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(count >> (8 * i));
    XXH3_64bits_update(&state, bytes, sizeof bytes);
  };
  auto add = [&](const std::string& text) {
    add_count(text.size());
    XXH3_64bits_update(&state, text.data(), text.size());
  };
  add_count(problems.size());
  for (const Problem& p : problems) {
    for (const std::string* text : {&p.id, &p.source, &p.text, &p.system}) add(*text);
    add_count(p.gold.size());
    for (const std::string& gold : p.gold) add(gold);
    if (!p.earlier.empty()) {
      add_count(UINT64_MAX - p.earlier.size());
      for (const Turn& turn : p.earlier) {
        add(turn.role);
        add(turn.content);
      }
    }
    if (p.choices.empty()) continue;  // so that data without choices keep the hash that older runs wrote down
    add_count(p.choices.size());
    for (const std::string& choice : p.choices) add(choice);
  }
  return XXH3_64bits_digest(&state);
}

int64_t Lengths::at(double share) const {
  if (all_.empty()) return 0;
  if (!std::exchange(sorted_, true)) std::ranges::sort(all_);
  return all_[static_cast<size_t>(share * static_cast<double>(all_.size() - 1))];
}

FileSummary summarize_file(const std::string& path) {
  FileSummary summary{.path = path, .columns = {}};
  std::unordered_map<std::string, size_t> places;
  read_json_lines(path, BadRows::stop, [&](const JsonRow& row) {
    ++summary.rows;
    for (const auto& [key, value] : row.value.items()) {
      const auto [place, fresh] = places.emplace(key, summary.columns.size());
      if (fresh) summary.columns.push_back({.name = key, .types = {}, .lengths = {}, .example = {}});
      if (!value.is_null()) add_value(summary.columns[place->second], value);
    }
  });
  return summary;
}

std::string gold_kind(const Problem& problem) {
  if (problem.gold.empty()) return "none";
  if (!problem.choices.empty()) return "choice";
  if (holds_tests(problem.gold.front())) return "program tests";
  return kind_of_text(problem.gold.front());
}

ProblemsSummary summarize_problems(const std::vector<Problem>& problems) {
  ProblemsSummary summary;
  std::unordered_map<std::string, const Problem*> questions;
  std::unordered_set<std::string> ids;
  for (const Problem& problem : problems) {
    ++summary.problems;
    ++summary.kinds[gold_kind(problem)];
    ++summary.sources[problem.source];
    ++summary.alternatives[str(problem.gold.size())];
    summary.conversations += !problem.earlier.empty();
    summary.with_system += !problem.system.empty();
    summary.questions.add(static_cast<int64_t>(characters(problem.text)));
    summary.repeated_ids += !ids.insert(str(problem.source, "\n", problem.id)).second;
    std::string question;
    for (const Turn& turn : problem.earlier) question += str(turn.role, ": ", turn.content, "\n");
    question += trim(problem.text);
    const auto [first, fresh] = questions.emplace(std::move(question), &problem);
    if (fresh) continue;
    ++summary.repeated_questions;
    summary.contradictions += first->second->gold != problem.gold;
    if (summary.examples.size() < kRepeatsShown) {
      summary.examples.push_back(str(printable(first->second->id, 60), " and ", printable(problem.id, 60),
                                     first->second->gold != problem.gold ? " (with different answers): " : ": ",
                                     printable(trim(problem.text), 100)));
    }
  }
  return summary;
}

}  // namespace ucas
