#include "report/page/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/str.h"
#include "report/escape.h"
#include "report/page/template.h"

namespace ucas {

namespace {

constexpr size_t kRolloutProblems = 2, kRolloutResponses = 4, kMostColumns = 4;

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
  size_t kind = 0;                      // index into kChanges
};

struct ChangeKind {
  const char* id;
  const char* title;
};
constexpr std::array<ChangeKind, 6> kChanges = {{{"gained", "solved after training"},
                                                 {"mixed", "methods disagree"},
                                                 {"lost", "lost by training"},
                                                 {"failed", "wrong throughout"},
                                                 {"kept", "right throughout"},
                                                 {"other", "one model"}}};

size_t kind_of(const Compared& c, const std::vector<RunGroup>& groups) {
  int before = -1;  // -1 unknown, 0 wrong, 1 right
  size_t right = 0, wrong = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!c.rows[g] || !c.rows[g]->greedy) continue;
    bool ok = c.rows[g]->greedy->right();
    if (!groups[g].trained) {
      before = std::max(before, ok ? 1 : 0);
    } else {
      (ok ? right : wrong)++;
    }
  }
  if (right + wrong == 0) return 5;
  if (right > 0 && wrong > 0) return 1;
  if (right > 0) return before == 0 ? 0 : 4;
  return before == 1 ? 2 : 3;
}

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
        all.push_back({&row, std::vector<const ProblemRow*>(groups.size()), 0});
      }
      all[found->second].rows[g] = &row;
    }
  }
  for (Compared& c : all) c.kind = kind_of(c, groups);
  return all;
}

using ByKind = std::array<std::vector<const Compared*>, kChanges.size()>;

void take_in_turn(const ByKind& by_kind, size_t limit, std::vector<const Compared*>& chosen) {
  for (size_t round = 0;; ++round) {
    bool any = false;
    for (const auto& list : by_kind) {
      if (chosen.size() == limit) return;
      if (round >= list.size()) continue;
      chosen.push_back(list[round]);
      any = true;
    }
    if (!any) return;
  }
}

// A few of each kind, in turn, so that no kind hides the others; of those that training left alone only one at first.
std::vector<const Compared*> choose(const std::vector<Compared>& all, size_t limit) {
  ByKind by_kind, later;
  for (const Compared& c : all) by_kind[c.kind].push_back(&c);
  std::vector<const Compared*> chosen;
  for (size_t k : {3, 4}) {
    if (by_kind[k].size() > 1) later[k].assign(by_kind[k].begin() + 1, by_kind[k].end());
    by_kind[k].resize(std::min<size_t>(by_kind[k].size(), 1));
  }
  take_in_turn(by_kind, limit, chosen);
  take_in_turn(later, limit, chosen);
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Compared* a, const Compared* b) { return a->kind < b->kind; });
  return chosen;
}

// Every response of the page (response.html).
OrderedJson response_values(std::optional<VerdictKind> verdict, const std::string& answer, int64_t tokens,
                            const std::string& text, size_t bytes) {
  return {{"verdict", verdict_values(verdict)},
          {"read", answer.empty() ? "" : model_text(answer, 200)},
          {"tokens", tokens < 0 ? "" : many(tokens, "token")},
          {"cut", false},
          {"reward", ""},
          {"advantage", nullptr},
          {"response", text.empty() ? "<i class=\"cut\">empty response</i>" : model_text(text, bytes)}};
}

OrderedJson answer_values(const RunGroup& group, const ProblemRow* row, const SampleLimits& limits) {
  OrderedJson values = {
      {"color", group.color}, {"group", group.title}, {"evaluated", row != nullptr},      {"greedy", nullptr},
      {"count", ""},          {"samples_shown", ""},  {"responses", OrderedJson::array()}};
  if (!row) return values;
  auto response = [](const SampledResponse& r, size_t bytes) {
    return response_values(r.verdict, r.answer, r.tokens, r.response, bytes);
  };
  if (row->greedy) values["greedy"] = response(*row->greedy, limits.bytes);
  if (row->samples <= 0) return values;
  const size_t n = std::min(row->responses.size(), limits.responses);
  values["count"] = str(row->correct, " of ", row->samples, " samples right");
  if (n > 0) values["samples_shown"] = str(n);
  for (size_t i = 0; i < n; ++i) values["responses"].push_back(response(row->responses[i], limits.bytes / 2));
  return values;
}

// How many problems each trained group gained and lost against the first untrained one.
void add_flow(OrderedJson& values, const std::vector<Compared>& all, const std::vector<RunGroup>& groups) {
  auto base = std::ranges::find_if(groups, [](const RunGroup& group) { return !group.trained; });
  values["base"] = "";
  if (base == groups.end()) return;
  const auto b = static_cast<size_t>(base - groups.begin());
  Table table{.head = {"", "gained", "lost", "right in both", "wrong in both"}, .kind = "plain"};
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!groups[g].trained) continue;
    std::array<int64_t, 4> count{};  // before * 2 + after
    int64_t total = 0;
    for (const Compared& c : all) {
      const ProblemRow *before = c.rows[b], *after = c.rows[g];
      if (!before || !after || !before->greedy || !after->greedy) continue;
      count[static_cast<size_t>(2 * before->greedy->right() + after->greedy->right())]++;
      ++total;
    }
    if (total == 0) continue;
    std::vector<Cell> row = {name_cell(groups[g])};
    for (size_t i : {1, 2, 3, 0}) row.push_back(Cell::count(count[i]));
    table.add(std::move(row));
  }
  if (table.rows.empty()) return;
  values["base"] = base->title;
  values["flow"] = render(table);
}

// Half a bar to either side of zero; `most` fills a half.
OrderedJson advantage_values(double advantage, double most) {
  if (std::isnan(advantage)) return nullptr;
  const double width = most > 0 ? std::min(1.0, std::fabs(advantage) / most) * 50 : 0;
  return {{"side", advantage < 0 ? "down" : "up"}, {"width", fixed(width, 1)}, {"value", signed_text(advantage, 2)}};
}

OrderedJson step_values(const std::vector<StoredResponse>& rollouts, const SampleLimits& limits) {
  std::vector<std::string> problems;
  double most = 0;
  for (const StoredResponse& r : rollouts) {
    if (problems.size() < kRolloutProblems && std::ranges::find(problems, r.problem) == problems.end()) {
      problems.push_back(r.problem);
    }
    if (!std::isnan(r.advantage)) most = std::max(most, std::fabs(r.advantage));
  }
  OrderedJson asked = OrderedJson::array();
  for (const std::string& problem : problems) {
    OrderedJson prompt, responses = OrderedJson::array();
    for (const StoredResponse& r : rollouts) {
      if (r.problem != problem || responses.size() == kRolloutResponses) continue;
      if (prompt.is_null()) {
        prompt = {{"prompt", model_text(trim(r.prompt), limits.bytes / 2)}, {"gold", gold_values(r.gold)}};
      }
      const std::string& text = r.transcript.empty() ? r.response : r.transcript;
      OrderedJson values = response_values(r.verdict, "", r.tokens, text, limits.bytes / 2);
      values["cut"] = !r.finished;
      if (!std::isnan(r.reward)) values["reward"] = fixed(r.reward, 2);
      values["advantage"] = advantage_values(r.advantage, most);
      responses.push_back(std::move(values));
    }
    prompt["responses"] = std::move(responses);
    asked.push_back(std::move(prompt));
  }
  return {{"step", rollouts[0].step}, {"asked", asked}};
}

OrderedJson evaluation_values(const std::vector<RunGroup>& groups, const std::string& data,
                              const std::vector<Compared>& all, const SampleLimits& limits) {
  size_t columns = 0;
  for (const RunGroup& group : groups) columns += shown(group, data) != nullptr;
  // Many groups: fewer problems, in rows of a few answers.
  std::vector<const Compared*> chosen =
      choose(all, std::max<size_t>(2, limits.problems * 6 / std::max<size_t>(6, columns)));
  OrderedJson values = {{"shown", chosen.size()}, {"columns", std::min(columns, kMostColumns)}};
  add_flow(values, all, groups);
  std::array<int64_t, kChanges.size()> count{}, picked{};
  for (const Compared& c : all) count[c.kind]++;
  for (const Compared* c : chosen) picked[c->kind]++;
  for (size_t k = 0; k < kChanges.size(); ++k) {
    if (picked[k] == 0) continue;
    values["kinds"].push_back(
        {{"id", kChanges[k].id}, {"title", kChanges[k].title}, {"picked", picked[k]}, {"of", grouped(count[k])}});
  }
  for (const Compared* c : chosen) {
    OrderedJson answers = OrderedJson::array();
    for (size_t g = 0; g < groups.size(); ++g) {
      if (shown(groups[g], data)) answers.push_back(answer_values(groups[g], c->rows[g], limits));
    }
    values["samples"].push_back({{"kind", kChanges[c->kind].id},
                                 {"title", kChanges[c->kind].title},
                                 {"id", c->problem->id},
                                 {"gold", gold_values(c->problem->gold)},
                                 {"problem", model_text(trim(c->problem->problem), limits.bytes)},
                                 {"answers", answers}});
  }
  return values;
}

// The first and the last stored step of the first run of each group that stored any.
OrderedJson training_values(const std::vector<RunGroup>& groups, const SampleLimits& limits) {
  OrderedJson runs = OrderedJson::array();
  for (const RunGroup& group : groups) {
    auto run = std::ranges::find_if(group.runs, [](const RunRecord* r) { return !r->first_rollouts.empty(); });
    if (run == group.runs.end()) continue;
    OrderedJson steps = OrderedJson::array();
    for (const auto* rollouts : {&(*run)->first_rollouts, &(*run)->last_rollouts}) {
      if (!rollouts->empty()) steps.push_back(step_values(*rollouts, limits));
    }
    runs.push_back({{"color", group.color},
                    {"group", group.title},
                    {"run", group.runs.size() > 1 ? (*run)->name : ""},
                    {"steps", steps}});
  }
  return runs;
}

}  // namespace

std::string responses_html(const std::vector<RunGroup>& groups, const SampleLimits& limits) {
  OrderedJson evaluations = OrderedJson::array(), training = training_values(groups, limits);
  for (const std::string& data : evaluated_data(groups)) {
    std::vector<Compared> all = compare(groups, data);
    if (!all.empty()) evaluations.push_back(evaluation_values(groups, data, all, limits));
  }
  if (evaluations.empty() && training.empty()) return "";
  return render("responses.html", {{"evaluations", evaluations}, {"trained", !training.empty()}, {"runs", training}});
}

}  // namespace ucas
