
#include <algorithm>
#include <functional>
#include <map>

#include "base/str.h"
#include "results/table.h"
#include "stats/intervals.h"
#include "verify/audit/verify_report.h"
#include "verify/math/read/extract.h"

namespace ucas {

namespace {

constexpr uint64_t kBootstrapSeed = 1;
constexpr size_t kNameWidth = 16;

bool pays(const Audited& grader, size_t row) { return is_paid(grader.grading.verdicts[row]); }

// The share of ones with its interval: "97.3 % [96.5, 98.0]".
std::string rate(const std::vector<double>& ones) {
  if (ones.empty()) return "-";
  const Figure share = share_mean(ones, kBootstrapSeed);
  return str(percent(share.value), " ", bounds_text(share, true));
}

std::string verdict_table(std::span<const VerifyRow> rows, std::span<const Audited> graders) {
  Table table{{"grader"}};
  for (int kind = 0; kind < 4; ++kind) table.head.emplace_back(name_of(static_cast<VerdictKind>(kind)));
  table.head.emplace_back("per CPU s");
  for (const Audited& grader : graders) {
    int64_t kinds[4] = {};
    double cpu = 0;
    for (const Verdict& verdict : grader.grading.verdicts) ++kinds[static_cast<int>(verdict.kind)];
    for (double seconds : grader.grading.cpu_seconds) cpu += seconds;
    std::vector<Cell> cells = {grader.name};
    for (int64_t count : kinds) cells.push_back(Cell::count(count));
    cells.push_back(Cell::count(static_cast<int64_t>(static_cast<double>(rows.size()) / std::max(cpu, 1e-9))));
    table.add(std::move(cells));
  }
  return table.text("  ");
}

std::string error_table(std::span<const VerifyRow> rows, std::span<const Audited> graders) {
  auto right = std::count_if(rows.begin(), rows.end(), [](const VerifyRow& row) { return row.expected == 1; });
  auto wrong = std::count_if(rows.begin(), rows.end(), [](const VerifyRow& row) { return row.expected == 0; });
  if (right + wrong == 0) return "";
  Table table{{"grader", "agree", "wrong but paid", "right but not paid"}};
  for (const Audited& grader : graders) {
    std::vector<double> agree, wrong_paid, right_unpaid;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].expected < 0) continue;
      bool paid = pays(grader, i), is_right = rows[i].expected == 1;
      agree.push_back(paid == is_right);
      (is_right ? right_unpaid : wrong_paid).push_back(paid != is_right);
    }
    table.add({grader.name, rate(agree), rate(wrong_paid), rate(right_unpaid)});
  }
  return str("\nof ", grouped(right), " right and ", grouped(wrong),
             " wrong answers (95 % intervals: bootstrap over answers)\n", table.text("  "));
}

std::string agreement_by_group(std::span<const VerifyRow> rows, std::span<const Audited> graders) {
  std::map<std::string, std::vector<Tally>> groups;  // by grader
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].expected < 0) continue;
    std::vector<Tally>& tallies = groups[rows[i].group];
    tallies.resize(graders.size());
    for (size_t g = 0; g < graders.size(); ++g) tallies[g].add(rows[i], graders[g].grading.verdicts[i]);
  }
  if (groups.size() < 2) return "";
  Table table{{"group", "answers"}};
  for (const Audited& grader : graders) table.head.emplace_back(grader.name);
  for (const auto& [name, tallies] : groups) {
    std::vector<Cell> cells = {group_name(name), Cell::count(tallies[0].known)};
    for (const Tally& tally : tallies) cells.emplace_back(percent(tally.agreement()));
    table.add(std::move(cells));
  }
  return "\nagreement by group\n" + table.text("  ");
}

std::string who_pays(std::span<const VerifyRow> rows, std::span<const Audited> graders) {
  struct Pattern {
    int64_t rows = 0, right = 0, wrong = 0;
  };
  std::map<std::string, Pattern> patterns;
  int64_t disagree = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> paid;
    for (const Audited& grader : graders) {
      if (pays(grader, i)) paid.push_back(grader.name);
    }
    if (paid.empty() || paid.size() == graders.size()) continue;
    ++disagree;
    Pattern& pattern = patterns[join(paid, ", ")];
    ++pattern.rows;
    pattern.right += rows[i].expected == 1;
    pattern.wrong += rows[i].expected == 0;
  }
  std::string text = str("\nthe graders disagree on ", grouped(disagree), " of ", grouped(rows.size()), " answers\n");
  if (disagree == 0) return text;
  Table table{{"paid only by", "answers", "right", "wrong"}};
  for (const auto& [paid, n] : patterns) {
    table.add({paid, Cell::count(n.rows), Cell::count(n.right), Cell::count(n.wrong)});
  }
  return text + table.text("  ");
}

std::string list_rows(std::span<const VerifyRow> rows, std::span<const Audited> graders, int64_t show) {
  std::string text;
  for (size_t i = 0; i < rows.size() && show > 0; ++i) {
    bool same = true;
    for (const Audited& grader : graders) same = same && pays(grader, i) == pays(graders[0], i);
    if (same) continue;
    --show;
    const VerifyRow& row = rows[i];
    constexpr const char* kExpected[] = {"", ", wrong", ", right"};
    text += str("\n", printable(row.id, 80), row.group.empty() ? "" : str(" (", printable(row.group, 40), ")"),
                kExpected[row.expected + 1], "\n  ", pad_right("gold", kNameWidth), alternatives_text(row.gold), "\n");
    for (const Audited& grader : graders) {
      const Verdict& verdict = grader.grading.verdicts[i];
      text += str("  ", pad_right(grader.name, kNameWidth), pad_right(name_of(verdict.kind), 12),
                  verdict.answer.empty() ? "" : str(printable(verdict.answer, 200), "  "), "(", verdict.reason, ")\n");
    }
  }
  return text;
}

}  // namespace

std::string forms_table(std::span<const VerifyRow> rows, std::span<const Verdict> lenient) {
  struct Form {
    std::string name;
    int64_t rows = 0, right = 0;
  };
  std::vector<Form> forms;
  int64_t all = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].kind == "bare") continue;  // an answer, no response
    const math::Extracted found = math::extract_answer(rows[i].prediction, Extract::lenient);
    const std::string name = found.found ? found.how : "none";
    auto form = std::ranges::find(forms, name, &Form::name);
    if (form == forms.end()) form = forms.insert(forms.end(), {name});
    ++all;
    ++form->rows;
    form->right += is_paid(lenient[i]);
  }
  if (all == 0) return "";
  std::ranges::stable_sort(forms, std::greater<>(), &Form::rows);
  Table table{{"form", "answers", "share", "right"}};
  for (const Form& form : forms) {
    table.add({form.name, Cell::count(form.rows), share_text(form.rows, all), share_text(form.right, form.rows)});
  }
  return "\nwhere responses give their answer (--extract strict reads boxes alone, lenient all of these)\n" +
         table.text("  ");
}

std::string audit_report(std::span<const VerifyRow> rows, std::span<const Audited> graders, int64_t show) {
  return str(verdict_table(rows, graders), error_table(rows, graders), agreement_by_group(rows, graders),
             who_pays(rows, graders), list_rows(rows, graders, show));
}

}  // namespace ucas
