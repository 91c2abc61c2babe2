#include "data/problems.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

[[noreturn]] void refuse(const JsonRow& row, const std::string& what) {
  throw Error("data_line", str(row.where, ": ", what));
}

std::string id_text(const JsonRow& row, const Json& value, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return value.dump();
  refuse(row, str("\"", key, "\": expected text or a whole number, got ", value.type_name()));
}

// verl: prompt = [{"role": "system", "content": ..}, {"role": "user", "content": ..}]
void read_messages(const JsonRow& row, Problem& problem) {
  const Json& messages = row.value.at("prompt");
  int64_t users = 0, systems = 0;
  for (const Json& message : messages) {
    if (!message.is_object())
      refuse(row, str("\"prompt\": expected messages {role, content}, got ", message.type_name()));
    JsonRow inner{message, row.where, row.line};
    std::string role = text_field(inner, "role"), content = text_field(inner, "content");
    if (role == "user") {
      ++users;
      problem.text = content;
    } else if (role == "system" && users == 0) {
      ++systems;
      problem.system = content;
    } else {
      refuse(row, str("\"prompt\": a message of role \"", printable(role),
                      "\" here; expected at most one system message, then one user message"));
    }
  }
  if (users != 1 || systems > 1) {
    refuse(row, str("\"prompt\": ", users, " user and ", systems, " system messages; expected one and at most one"));
  }
}

void read_question(const JsonRow& row, Problem& problem) {
  std::string key = first_key(row, {"problem", "question", "prompt"});
  if (key.empty()) refuse(row, "no question: expected a field \"problem\", \"question\" or \"prompt\"");
  if (key == "prompt" && row.value.at(key).is_array()) {
    read_messages(row, problem);
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

void read_gold(const JsonRow& row, bool labels, Problem& problem) {
  auto reward = row.value.find("reward_model");
  if (reward != row.value.end() && !reward->is_null()) {
    if (!labels && reward->is_object() &&
        (!reward->contains("ground_truth") || no_answer(reward->at("ground_truth")))) {
      return;
    }
    if (!reward->is_object() || !reward->contains("ground_truth")) {
      refuse(row, "\"reward_model\": expected an object with \"ground_truth\"");
    }
    problem.gold = answer_field(row, reward->at("ground_truth"), "reward_model.ground_truth", false);
    return;
  }
  std::string key = first_key(row, {"answer", "ground_truth"});
  if (!labels && (key.empty() || no_answer(row.value.at(key)))) return;
  if (key.empty()) refuse(row, "no answer: expected a field \"answer\", \"ground_truth\" or \"reward_model\"");
  problem.gold = answer_field(row, row.value.at(key), key, false);
}

void read_names(const JsonRow& row, const std::string& stem, Problem& problem) {
  problem.source = first_key(row, {"data_source"}).empty() ? stem : text_field(row, "data_source");
  std::string key = first_key(row, {"id", "unique_id"});
  auto extra = row.value.find("extra_info");
  if (!key.empty()) {
    problem.id = id_text(row, row.value.at(key), key);
  } else if (extra != row.value.end() && extra->is_object() && extra->contains("index")) {
    problem.id = id_text(row, extra->at("index"), "extra_info.index");
  } else {
    problem.id = str(stem, "/", row.line);
  }
}

}  // namespace

std::vector<Problem> read_problems(const std::vector<std::string>& files, const ProblemOptions& options) {
  if (files.empty()) throw Error("usage", "no problem file given: expected one or more JSONL files");
  std::vector<Problem> problems;
  for (const std::string& file : files) {
    std::string stem = std::filesystem::path(file).stem().string();
    read_json_lines(file, options.bad_rows, [&](const JsonRow& row) {
      Problem problem;
      read_question(row, problem);
      read_gold(row, options.labels, problem);
      read_names(row, stem, problem);
      problems.push_back(std::move(problem));
    });
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
  }
  return XXH3_64bits_digest(&state);
}

}  // namespace ucas
