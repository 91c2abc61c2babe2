#include "records/run/rollouts.h"

#include <nlohmann/json.hpp>

#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

std::string inserts_json(std::span<const Insert> inserts) {
  std::string out;
  for (const Insert& insert : inserts) {
    out += str(out.empty() ? "" : ", ", "{\"at\": ", insert.at, ", \"token\": [");
    for (size_t i = 0; i < insert.token.size(); ++i) out += str(i > 0 ? ", " : "", insert.token[i]);
    out += str("], \"text\": ", json_text(insert.text), "}");
  }
  return "[" + out + "]";
}

std::vector<Insert> inserts_of(const JsonObject& row, int64_t tokens) {
  std::vector<Insert> inserts;
  if (!row.has("inserts")) return inserts;
  int64_t last = 0;
  for (const JsonObject& one : row.children("inserts")) {
    Insert insert{one.whole("at"), one.ids("token"), one.text("text")};
    if (insert.at <= last || insert.at >= tokens || insert.token.empty()) {
      one.refuse(str("an insert of ", insert.token.size(), " tokens at ", insert.at, " of ", tokens,
                     "; expected tokens, at ascending places between the response's own"));
    }
    last = insert.at;
    inserts.push_back(std::move(insert));
  }
  return inserts;
}

std::string rollout_line(const StoredResponse& r) {
  OrderedJson row = {{"step", r.step},
                     {"problem", r.problem},
                     {"source", r.source},
                     {"prompt", r.prompt},
                     {"gold", r.gold},
                     {"sample", r.sample},
                     {"response", r.response},
                     {"tokens", r.tokens},
                     {"finished", r.finished},
                     {"score", r.score},
                     {"reward", r.reward},
                     {"verdict", name_of(r.verdict.value_or(VerdictKind::unparseable))},
                     {"answer", r.answer},
                     {"reason", r.reason},
                     {"advantage_mean", r.advantage}};
  if (!r.inserts.empty()) {
    row["inserts"] = parse_ordered_json(inserts_json(r.inserts));
    row["transcript"] = r.transcript;
  }
  return json_text(row) + "\n";
}

std::vector<StoredResponse> read_rollouts(const std::string& path, std::vector<std::string>& remarks) {
  std::vector<StoredResponse> rollouts;
  each_json_line(path, remarks, [&](const JsonObject& row) {
    StoredResponse& r = rollouts.emplace_back();
    r.step = row.whole_or("step", 0);
    r.sample = row.whole_or("sample", 0);
    r.tokens = row.whole_or("tokens", -1);
    r.problem = row.text_or("problem", "");
    r.source = row.text_or("source", "");
    r.prompt = row.text_or("prompt", "");
    r.response = row.text_or("response", "");
    r.inserts = inserts_of(row, r.tokens);
    r.transcript = row.text_or("transcript", "");
    r.verdict = verdict_of(row);
    r.answer = row.text_or("answer", "");
    r.reason = row.text_or("reason", "");
    r.gold = row.texts_or_text("gold");
    r.finished = row.truth_or("finished", true);
    r.score = row.number_or("score", kUnknown);
    r.reward = row.number_or("reward", kUnknown);
    r.advantage = row.number_or("advantage_mean", kUnknown);
  });
  return rollouts;
}

std::optional<VerdictKind> verdict_of(const JsonObject& row) {
  if (!row.has("verdict")) return std::nullopt;
  const std::optional<VerdictKind> kind = verdict_named(row.text("verdict"));
  if (!kind) row.refuse("verdict", "equal, unequal, unparseable or over_budget");
  return kind;
}

}  // namespace ucas
