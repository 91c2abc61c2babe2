#include "report/page/template.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/str.h"
#include "report/escape.h"

namespace ucas {

namespace {

constexpr size_t kRolloutProblems = 2, kRolloutResponses = 4, kMostColumns = 4;
constexpr size_t kMostShownProblems = 8, kMostSamples = 3;  // side by side; folded below the greedy one
constexpr size_t kTextBytes = 3000;                         // of one text

OrderedJson verdict_values(std::optional<VerdictKind> verdict) {
  if (!verdict) return nullptr;
  auto pill = [](const char* kind, const char* words) { return OrderedJson{{"kind", kind}, {"words", words}}; };
  switch (*verdict) {
    case VerdictKind::equal:
      return pill("right", "\xe2\x9c\x93 right");
    case VerdictKind::unequal:
      return pill("wrong", "\xe2\x9c\x97 wrong");
    case VerdictKind::unparseable:
      return pill("none", "\xe2\x88\x85 no answer");
    case VerdictKind::over_budget:
      return pill("none", "\xe2\x8b\xaf gave up grading");
  }
  return nullptr;
}

OrderedJson gold_values(const std::vector<std::string>& gold) {
  OrderedJson answers = OrderedJson::array();
  for (const std::string& answer : gold) {
    answers.push_back({{"more", !answers.empty()}, {"answer", model_text(answer, 400)}});
  }
  return answers;
}

// One problem with the rows of all groups that answered it.
struct Compared {
  const ProblemRow* problem = nullptr;
  std::vector<const ProblemRow*> rows;  // per group; nullptr: not answered
  // Whether some greedy response to it is right and another is not.
  bool differs() const {
    size_t right = 0, answered = 0;
    for (const ProblemRow* row : rows) {
      if (!row || !row->greedy) continue;
      ++answered;
      right += row->greedy->right();
    }
    return right > 0 && right < answered;
  }
};

// The run that speaks for a group: its first seed.
const EvalRecord* shown(const RunGroup& group, const std::string& data) {
  for (const RunRecord* run : group.runs) {
    const EvalRecord* evaluation = final_evaluation(*run, data);
    if (evaluation && !evaluation->rows.empty()) return evaluation;
  }
  return nullptr;
}

std::vector<Compared> compare(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<Compared> all;
  std::map<std::string, size_t> place;
  for (size_t g = 0; g < groups.size(); ++g) {
    const EvalRecord* evaluation = shown(groups[g], data);
    if (!evaluation) continue;
    for (const ProblemRow& row : evaluation->rows) {
      auto [found, fresh] = place.emplace(row.id, all.size());
      if (fresh) {
        all.push_back({&row, std::vector<const ProblemRow*>(groups.size())});
      }
      all[found->second].rows[g] = &row;
    }
  }
  std::ranges::stable_partition(all, &Compared::differs);
  return all;
}

// Every response of the page (response.html).
OrderedJson response_values(std::optional<VerdictKind> verdict, const std::string& answer, int64_t tokens,
                            const std::string& text, size_t bytes) {
  return {{"verdict", verdict_values(verdict)},
          {"read", answer.empty() ? "" : model_text(answer, 200)},
          {"tokens", tokens < 0 ? "" : many(tokens, "token")},
          {"cut", false},
          {"reward", ""},
          {"advantage", ""},
          {"response", text.empty() ? "<i class=\"cut\">empty response</i>" : model_text(text, bytes)}};
}

OrderedJson answer_values(const RunGroup& group, const ProblemRow* row) {
  OrderedJson values = {
      {"color", group.color}, {"group", group.title}, {"evaluated", row != nullptr},      {"greedy", nullptr},
      {"count", ""},          {"samples_shown", ""},  {"responses", OrderedJson::array()}};
  if (!row) return values;
  auto response = [](const SampledResponse& r, size_t bytes) {
    return response_values(r.verdict, r.answer, r.tokens, r.response, bytes);
  };
  if (row->greedy) values["greedy"] = response(*row->greedy, kTextBytes);
  if (row->samples <= 0) return values;
  const size_t n = std::min(row->responses.size(), kMostSamples);
  values["count"] = str(row->correct, " of ", row->samples, " samples right");
  if (n > 0) values["samples_shown"] = str(n);
  for (size_t i = 0; i < n; ++i) values["responses"].push_back(response(row->responses[i], kTextBytes / 2));
  return values;
}

OrderedJson step_values(const std::vector<StoredResponse>& rollouts) {
  std::vector<std::string> problems;
  for (const StoredResponse& r : rollouts) {
    if (problems.size() < kRolloutProblems && std::ranges::find(problems, r.problem) == problems.end()) {
      problems.push_back(r.problem);
    }
  }
  OrderedJson asked = OrderedJson::array();
  for (const std::string& problem : problems) {
    OrderedJson prompt, responses = OrderedJson::array();
    for (const StoredResponse& r : rollouts) {
      if (r.problem != problem || responses.size() == kRolloutResponses) continue;
      if (prompt.is_null()) {
        prompt = {{"prompt", model_text(trim(r.prompt), kTextBytes / 2)}, {"gold", gold_values(r.gold)}};
      }
      const std::string& text = r.transcript.empty() ? r.response : r.transcript;
      OrderedJson values = response_values(r.verdict, "", r.tokens, text, kTextBytes / 2);
      values["cut"] = !r.finished;
      if (!std::isnan(r.reward)) values["reward"] = fixed(r.reward, 2);
      if (!std::isnan(r.advantage)) values["advantage"] = signed_text(r.advantage, 2);
      responses.push_back(std::move(values));
    }
    prompt["responses"] = std::move(responses);
    asked.push_back(std::move(prompt));
  }
  return {{"step", rollouts[0].step}, {"asked", asked}};
}

// Problems on which the models differ come first. Many groups: fewer problems, in rows of a few answers.
OrderedJson evaluation_values(const std::vector<RunGroup>& groups, const std::string& data,
                              const std::vector<Compared>& all) {
  size_t columns = 0;
  for (const RunGroup& group : groups) columns += shown(group, data) != nullptr;
  const size_t most = std::max<size_t>(2, kMostShownProblems * 6 / std::max<size_t>(6, columns));
  OrderedJson values = {{"shown", std::min(most, all.size())},
                        {"all", grouped(std::ssize(all))},
                        {"differ", grouped(std::ranges::count_if(all, &Compared::differs))},
                        {"several", columns > 1},
                        {"columns", std::min(columns, kMostColumns)}};
  for (const Compared& c : std::span(all).first(std::min(most, all.size()))) {
    OrderedJson answers = OrderedJson::array();
    for (size_t g = 0; g < groups.size(); ++g) {
      if (shown(groups[g], data)) answers.push_back(answer_values(groups[g], c.rows[g]));
    }
    values["samples"].push_back({{"id", c.problem->id},
                                 {"gold", gold_values(c.problem->gold)},
                                 {"problem", model_text(trim(c.problem->problem), kTextBytes)},
                                 {"answers", answers}});
  }
  return values;
}

// The first and the last stored step of the first run of each group that stored any.
OrderedJson training_values(const std::vector<RunGroup>& groups) {
  OrderedJson runs = OrderedJson::array();
  for (const RunGroup& group : groups) {
    auto run = std::ranges::find_if(group.runs, [](const RunRecord* r) { return !r->first_rollouts.empty(); });
    if (run == group.runs.end()) continue;
    OrderedJson steps = OrderedJson::array();
    for (const auto* rollouts : {&(*run)->first_rollouts, &(*run)->last_rollouts}) {
      if (!rollouts->empty()) steps.push_back(step_values(*rollouts));
    }
    runs.push_back({{"color", group.color},
                    {"group", group.title},
                    {"run", group.runs.size() > 1 ? (*run)->name : ""},
                    {"steps", steps}});
  }
  return runs;
}

}  // namespace

std::string responses_html(const std::vector<RunGroup>& groups) {
  OrderedJson evaluations = OrderedJson::array(), training = training_values(groups);
  for (const std::string& data : evaluated_data(groups)) {
    std::vector<Compared> all = compare(groups, data);
    if (!all.empty()) evaluations.push_back(evaluation_values(groups, data, all));
  }
  if (evaluations.empty() && training.empty()) return "";
  return render("responses.html", {{"evaluations", evaluations}, {"trained", !training.empty()}, {"runs", training}});
}

}  // namespace ucas
