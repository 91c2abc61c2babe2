#include "report/samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/str.h"
#include "report/escape.h"

namespace ucas {

namespace {

constexpr size_t kRolloutProblems = 2, kRolloutResponses = 4, kMostColumns = 4;

std::string verdict_pill(std::optional<VerdictKind> verdict) {
  if (!verdict) return "";
  switch (*verdict) {
    case VerdictKind::equal:
      return "<span class=\"pill right\">&#10003; right</span>";
    case VerdictKind::unequal:
      return "<span class=\"pill wrong\">&#10007; wrong</span>";
    case VerdictKind::unparseable:
      return "<span class=\"pill none\">&#8709; no answer</span>";
    case VerdictKind::over_budget:
      return "<span class=\"pill none\">&#8943; gave up grading</span>";
  }
  return "";
}

std::string gold_text(const std::vector<std::string>& gold) {
  std::vector<std::string> texts;
  for (const std::string& answer : gold) texts.push_back(str("<bdi>", model_text(answer, 400), "</bdi>"));
  return join(texts, " <span class=\"or\">or</span> ");
}

// One problem with the rows of all groups that answered it.
struct Compared {
  const ProblemRow* problem = nullptr;
  std::vector<const ProblemRow*> rows;  // per group; nullptr: not answered
  size_t kind = 0;                      // index into kKinds
};

struct Kind {
  const char* id;
  const char* title;
};
constexpr std::array<Kind, 6> kKinds = {{{"gained", "solved after training"},
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

using ByKind = std::array<std::vector<const Compared*>, kKinds.size()>;

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

std::string response_html(const SampledResponse& r, size_t bytes) {
  std::string out = str("<div class=\"meta\">", verdict_pill(r.verdict));
  if (!r.answer.empty()) out += str("<span>answer <b><bdi>", model_text(r.answer, 200), "</bdi></b></span>");
  if (r.tokens >= 0) out += str("<span>", r.tokens, r.tokens == 1 ? " token" : " tokens", "</span>");
  out += "</div>";
  out += r.response.empty() ? "<pre class=\"text\"><i class=\"cut\">empty response</i></pre>"
                            : str("<pre class=\"text\" dir=\"auto\">", model_text(r.response, bytes), "</pre>");
  return out;
}

std::string answer_html(const RunGroup& group, size_t index, const ProblemRow* row, const SampleLimits& limits) {
  std::string out = str("<div class=\"answer g", group.color, "\"><h4>", html_text(group.title), "</h4>");
  if (!row) return out + "<p class=\"quiet\">not evaluated</p></div>";
  if (row->greedy) out += response_html(*row->greedy, limits.bytes);
  if (row->samples > 0) {
    std::string count = str(row->correct, " of ", row->samples, " samples right");
    size_t n = std::min(row->responses.size(), limits.responses);
    if (n == 0) {
      out += str("<p class=\"quiet\">", count, "</p>");
    } else {
      out += str("<details><summary>", count, "; show ", n, "</summary>");
      for (size_t i = 0; i < n; ++i) out += response_html(row->responses[i], limits.bytes / 2);
      out += "</details>";
    }
  }
  return out + "</div>";
}

// How many problems each trained group gained and lost against the first untrained one.
std::string flow_html(const std::vector<Compared>& all, const std::vector<RunGroup>& groups) {
  size_t base = groups.size();
  for (size_t g = groups.size(); g-- > 0;) {
    if (!groups[g].trained) base = g;
  }
  if (base == groups.size()) return "";
  std::string rows;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!groups[g].trained) continue;
    std::array<int64_t, 4> count{};  // before * 2 + after
    int64_t total = 0;
    for (const Compared& c : all) {
      const ProblemRow *before = c.rows[base], *after = c.rows[g];
      if (!before || !after || !before->greedy || !after->greedy) continue;
      count[static_cast<size_t>(2 * (before->greedy->right()) + (after->greedy->right()))]++;
      ++total;
    }
    if (total == 0) continue;
    rows += str("<tr><th scope=\"row\"><span class=\"key g", groups[g].color, "\"></span>", html_text(groups[g].title),
                "</th>");
    for (size_t i : {1, 2, 3, 0}) rows += str("<td>", grouped(count[i]), "</td>");
    rows += "</tr>";
  }
  if (rows.empty()) return "";
  return str(
      "<p class=\"note\">What training changed: problems by their greedy response, first seed, against ",
      html_text(groups[base].title),
      ".</p><div class=\"scroll\"><table class=\"plain\"><thead><tr><td></td><th scope=\"col\">gained</th>"
      "<th scope=\"col\">lost</th><th scope=\"col\">right in both</th><th scope=\"col\">wrong in both</th></tr></thead>"
      "<tbody>",
      rows, "</tbody></table></div>");
}

// Half a bar to either side of zero; `most` fills a half.
std::string advantage_bar(double advantage, double most) {
  if (std::isnan(advantage)) return "";
  double width = most > 0 ? std::min(1.0, std::fabs(advantage) / most) * 50 : 0;
  return str("<span class=\"adv\" title=\"mean advantage of its tokens\"><i class=\"", advantage < 0 ? "down" : "up",
             "\" style=\"width:", fixed(width, 1), "%\"></i></span><span class=\"num\">", advantage > 0 ? "+" : "",
             fixed(advantage, 2), "</span>");
}

std::string step_html(const std::vector<StoredResponse>& rollouts, const SampleLimits& limits) {
  if (rollouts.empty()) return "";
  std::vector<std::string> problems;
  double most = 0;
  for (const StoredResponse& r : rollouts) {
    if (problems.size() < kRolloutProblems &&
        std::find(problems.begin(), problems.end(), r.problem) == problems.end()) {
      problems.push_back(r.problem);
    }
    if (!std::isnan(r.advantage)) most = std::max(most, std::fabs(r.advantage));
  }
  std::string out = str("<div class=\"step\"><h4>Step ", rollouts[0].step, "</h4>");
  for (const std::string& problem : problems) {
    size_t shown = 0;
    for (const StoredResponse& r : rollouts) {
      if (r.problem != problem || shown == kRolloutResponses) continue;
      if (shown++ == 0) {
        out +=
            str("<div class=\"asked\"><pre class=\"text\" dir=\"auto\">", model_text(trim(r.prompt), limits.bytes / 2),
                "</pre><p class=\"quiet\">gold ", gold_text(r.gold), "</p></div>");
      }
      out += str("<div class=\"rollout\"><div class=\"meta\">", verdict_pill(r.verdict));
      if (!r.finished) out += "<span class=\"pill none\">cut at the limit</span>";
      if (r.tokens >= 0) out += str("<span>", r.tokens, " tokens</span>");
      if (!std::isnan(r.reward)) out += str("<span>reward ", fixed(r.reward, 2), "</span>");
      out += str(advantage_bar(r.advantage, most), "</div><pre class=\"text\" dir=\"auto\">",
                 model_text(r.response, limits.bytes / 2), "</pre></div>");
    }
  }
  return out + "</div>";
}

}  // namespace

std::string samples_html(const std::vector<RunGroup>& groups, const std::string& data, const SampleLimits& limits) {
  std::vector<Compared> all = compare(groups, data);
  if (all.empty()) return "";
  size_t columns = 0;
  for (const RunGroup& group : groups) columns += shown(group, data) != nullptr;
  // Many groups: fewer problems, in rows of a few answers.
  std::vector<const Compared*> chosen =
      choose(all, std::max<size_t>(2, limits.problems * 6 / std::max<size_t>(6, columns)));
  std::string out = flow_html(all, groups);

  std::array<int64_t, kKinds.size()> count{}, picked{};
  for (const Compared& c : all) count[c.kind]++;
  for (const Compared* c : chosen) picked[c->kind]++;
  out +=
      str("<div class=\"chips\" role=\"group\" aria-label=\"which problems\"><button type=\"button\" data-kind=\"\" "
          "aria-pressed=\"true\">all ",
          chosen.size(), " shown</button>");
  for (size_t k = 0; k < kKinds.size(); ++k) {
    if (picked[k] == 0) continue;
    out += str("<button type=\"button\" data-kind=\"", kKinds[k].id, "\" aria-pressed=\"false\">", kKinds[k].title,
               " <b>", picked[k], "</b> of ", grouped(count[k]), "</button>");
  }
  out += "</div>";
  for (const Compared* c : chosen) {
    out += str("<article class=\"sample\" data-kind=\"", kKinds[c->kind].id, "\"><header><span class=\"kind\">",
               kKinds[c->kind].title, "</span><code>", html_text(c->problem->id),
               "</code></header><pre class=\"text problem\" "
               "dir=\"auto\">",
               model_text(trim(c->problem->problem), limits.bytes), "</pre><p class=\"gold\">gold ",
               gold_text(c->problem->gold),
               "</p><div class=\"answers\" style=\"--columns:", std::min(columns, kMostColumns), "\">");
    for (size_t g = 0; g < groups.size(); ++g) {
      if (shown(groups[g], data)) out += answer_html(groups[g], g, c->rows[g], limits);
    }
    out += "</div></article>";
  }
  return out;
}

std::string rollouts_html(const std::vector<RunGroup>& groups, const SampleLimits& limits) {
  std::string out;
  for (size_t g = 0; g < groups.size(); ++g) {
    const RunRecord* run = nullptr;
    for (const RunRecord* candidate : groups[g].runs) {
      if (!candidate->first_rollouts.empty()) {
        run = candidate;
        break;
      }
    }
    if (!run) continue;
    out += str("<details class=\"fold\"><summary><span class=\"key g", groups[g].color, "\"></span>",
               html_text(groups[g].title),
               groups[g].runs.size() > 1 ? str(" <span class=\"quiet\">", html_text(run->name), "</span>") : "",
               "</summary><div class=\"steps\">", step_html(run->first_rollouts, limits),
               step_html(run->last_rollouts, limits), "</div></details>");
  }
  return out;
}

}  // namespace ucas
