// Responses of the base and of every group to the same problems, side by side, as Markdown.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "report/escape.h"
#include "report/study_figures.h"

namespace ucas {

namespace {

constexpr size_t kCases = 2, kColumns = 4, kMostBytes = 3000;

struct Case {
  const ProblemRow* problem = nullptr;
  std::vector<std::pair<const RunGroup*, const ProblemRow*>> answers;
  // How much the groups differ: trained ones among themselves first, then from the untrained.
  int interest = 0;
};

bool right(const ProblemRow& row) { return row.greedy->right(); }

std::vector<Case> cases_of(const std::vector<RunGroup>& groups, const std::string& data) {
  std::vector<Case> all;
  std::map<std::pair<std::string, std::string>, size_t> place;
  for (const RunGroup& group : groups) {
    const EvalRecord* shown = nullptr;  // of the first seed that has rows
    for (const RunRecord* run : group.runs) {
      const EvalRecord* e = final_evaluation(*run, data);
      if (!shown && e && !e->rows.empty()) shown = e;
    }
    for (size_t i = 0; shown && i < shown->rows.size(); ++i) {
      const ProblemRow& row = shown->rows[i];
      if (!row.greedy) continue;
      auto [found, fresh] = place.emplace(std::pair(row.source, row.id), all.size());
      if (fresh) all.push_back({&row, {}, 0});
      all[found->second].answers.emplace_back(&group, &row);
    }
  }
  for (Case& c : all) {
    std::set<bool> trained, untrained;
    std::set<std::string> answers;
    for (auto [group, row] : c.answers) {
      (group->trained ? trained : untrained).insert(right(*row));
      answers.insert(row->greedy->answer);
    }
    c.interest = (trained.size() > 1 ? 100 : 0) + (trained.contains(true) && untrained.contains(false) ? 50 : 0) +
                 static_cast<int>(std::min<size_t>(answers.size(), 9)) + 10 * static_cast<int>(trained.contains(true));
  }
  return all;
}

std::vector<const Case*> choose(const std::vector<Case>& all, const std::vector<std::string>& asked) {
  std::vector<const Case*> chosen;
  for (const std::string& id : asked) {
    for (const Case& c : all) {
      if (c.problem->id == id) chosen.push_back(&c);
    }
  }
  if (!asked.empty()) return chosen;
  for (const Case& c : all) chosen.push_back(&c);
  std::ranges::stable_sort(chosen, [](const Case* a, const Case* b) { return a->interest > b->interest; });
  if (chosen.size() > kCases) chosen.resize(kCases);
  return chosen;
}

// Text inside an HTML block of Markdown: an empty line would end the block.
std::string cell_text(const std::string& text, size_t limit = kMostBytes) {
  std::string safe = html_text(visible_text(text, limit)), out;
  for (char c : safe) out += c == '\n' ? std::string("&#10;") : std::string(1, c);
  return out;
}

std::string verdict_words(const ProblemRow& row) {
  std::string out = right(row) ? "right" : row.greedy->verdict == VerdictKind::unequal ? "wrong" : "no answer";
  if (!row.greedy->answer.empty()) out += str(", answer ", cell_text(row.greedy->answer, 200));
  if (row.greedy->tokens >= 0) out += str(", ", row.greedy->tokens, " tokens");
  if (!row.greedy->finished) out += ", cut at the limit";
  if (std::isfinite(row.greedy->confidence)) out += str(", confidence ", fixed(row.greedy->confidence, 2));
  return out;
}

std::string markdown_of(const Case& c) {
  std::string out = str("\n## ", file_word(c.problem->source), ": <code>", cell_text(c.problem->id, 120),
                        "</code>\n\n<pre>", cell_text(c.problem->problem), "</pre>\n\nGold: ");
  std::vector<std::string> gold;
  for (const std::string& answer : c.problem->gold) gold.push_back(str("<code>", cell_text(answer, 200), "</code>"));
  out += join(gold, " or ") + "\n";
  for (size_t first = 0; first < c.answers.size(); first += kColumns) {
    size_t end = std::min(first + kColumns, c.answers.size());
    out += "\n<table>\n<tr>";
    for (size_t i = first; i < end; ++i) out += str("<th>", cell_text(c.answers[i].first->title, 120), "</th>");
    out += "</tr>\n<tr>";
    for (size_t i = first; i < end; ++i) {
      out += str("<td valign=\"top\">", verdict_words(*c.answers[i].second), "<pre>",
                 cell_text(c.answers[i].second->greedy->response), "</pre></td>");
    }
    out += "</tr>\n</table>\n";
  }
  return out;
}

}  // namespace

std::vector<StudyFigure> case_figures(const FigureInput& in) {
  std::string data = asked_data(in);
  std::vector<Case> all = cases_of(in.groups, data);
  std::vector<const Case*> chosen = choose(all, in.request.problems);
  if (chosen.empty()) {
    throw Error(ErrorKind::empty, all.empty()
                                      ? "no evaluation holds responses (eval/*.jsonl)"
                                      : str("no problem has the id ", printable(join(in.request.problems, ", "))));
  }
  StudyFigure figure;
  figure.name = "cases";
  figure.title = "Responses to the same problem";
  figure.note = str("Greedy responses of the first seed of each group on ", data_words(in, data), "; ",
                    in.request.problems.empty() ? "problems that the groups answer differently, the first found."
                                                : "problems as asked for.");
  figure.markdown = str("# ", figure.title, "\n\n", html_text(figure.note), "\n");
  Table numbers{{"source", "problem", "group", "verdict", "answer", "tokens", "finished", "confidence"}};
  for (const Case* c : chosen) {
    figure.markdown += markdown_of(*c);
    for (auto [group, row] : c->answers) {
      const SampledResponse& greedy = *row->greedy;
      numbers.add({row->source, row->id, group->title, greedy.verdict ? name_of(*greedy.verdict) : "", greedy.answer,
                   Cell::count(greedy.tokens), Cell::count(greedy.finished), Cell::value(greedy.confidence, false)});
    }
  }
  figure.csv = numbers.csv();
  return {figure};
}

}  // namespace ucas
