#include "cli/verify_audit.h"

#include <algorithm>
#include <map>

#include "base/str.h"
#include "stats/intervals.h"

namespace ucas {

namespace {

constexpr uint64_t kBootstrapSeed = 1;
constexpr size_t kNameWidth = 16, kRateWidth = 24, kGroupWidth = 20;

bool pays(const Audited& grader, size_t row) { return grader.grading.verdicts[row].kind == VerdictKind::equal; }

// The share of ones with its interval: "97.3 % [96.5, 98.0]". Resampling cannot see what never happened; none or all
// of n gets the exact interval instead.
std::string rate(const std::vector<double>& ones) {
  if (ones.empty()) return "-";
  double sum = 0;
  for (double one : ones) sum += one;
  double mean = sum / static_cast<double>(ones.size());
  auto count = static_cast<int64_t>(ones.size());
  bool same = sum == 0 || sum == static_cast<double>(count);
  Interval interval = same ? clopper_pearson(static_cast<int64_t>(sum), count) : bootstrap_mean(ones, kBootstrapSeed);
  return str(percent(mean), " [", fixed(100 * interval.low, 1), ", ", fixed(100 * interval.high, 1), "]");
}

std::string verdict_table(std::span<const VerifyRow> rows, std::span<const Audited> graders) {
  std::string text = str("  ", pad_right("grader", kNameWidth));
  for (int kind = 0; kind < 4; ++kind) text += pad_left(name_of(static_cast<VerdictKind>(kind)), 13);
  text += str(pad_left("per CPU s", 13), "\n");
  for (const Audited& grader : graders) {
    int64_t kinds[4] = {};
    double cpu = 0;
    for (const Verdict& verdict : grader.grading.verdicts) ++kinds[static_cast<int>(verdict.kind)];
    for (double seconds : grader.grading.cpu_seconds) cpu += seconds;
    text += str("  ", pad_right(grader.name, kNameWidth));
    for (int64_t count : kinds) text += pad_left(grouped(count), 13);
    double speed = static_cast<double>(rows.size()) / std::max(cpu, 1e-9);
    text += str(pad_left(grouped(static_cast<int64_t>(speed)), 13), "\n");
  }
  return text;
}

std::string error_table(std::span<const VerifyRow> rows, std::span<const Audited> graders) {
  int64_t right = 0, wrong = 0;
  for (const VerifyRow& row : rows) {
    right += row.expected == 1;
    wrong += row.expected == 0;
  }
  if (right + wrong == 0) return "";
  std::string text = str("\nof ", grouped(right), " right and ", grouped(wrong),
                         " wrong answers (95 % intervals: bootstrap over answers)\n  ", pad_right("grader", kNameWidth),
                         pad_left("agree", kRateWidth), pad_left("wrong but paid", kRateWidth),
                         pad_left("right but not paid", kRateWidth), "\n");
  for (const Audited& grader : graders) {
    std::vector<double> agree, wrong_paid, right_unpaid;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].expected < 0) continue;
      bool paid = pays(grader, i), is_right = rows[i].expected == 1;
      agree.push_back(paid == is_right);
      if (is_right) {
        right_unpaid.push_back(!paid);
      } else {
        wrong_paid.push_back(paid);
      }
    }
    text += str("  ", pad_right(grader.name, kNameWidth), pad_left(rate(agree), kRateWidth),
                pad_left(rate(wrong_paid), kRateWidth), pad_left(rate(right_unpaid), kRateWidth), "\n");
  }
  return text;
}

std::string agreement_by_group(std::span<const VerifyRow> rows, std::span<const Audited> graders) {
  struct Cell {
    int64_t known = 0;
    std::vector<int64_t> agree;
  };
  std::map<std::string, Cell> groups;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].expected < 0) continue;
    Cell& cell = groups[rows[i].group];
    cell.agree.resize(graders.size());
    ++cell.known;
    for (size_t g = 0; g < graders.size(); ++g) cell.agree[g] += pays(graders[g], i) == (rows[i].expected == 1);
  }
  if (groups.size() < 2) return "";
  std::string text = str("\nagreement by group\n  ", pad_right("group", kGroupWidth), pad_left("answers", 9));
  for (const Audited& grader : graders) text += pad_left(grader.name, kNameWidth);
  text += "\n";
  for (const auto& [name, cell] : groups) {
    text += str("  ", pad_right(name.empty() ? "(none)" : printable(name, kGroupWidth - 1), kGroupWidth),
                pad_left(grouped(cell.known), 9));
    for (int64_t agree : cell.agree) {
      text += pad_left(percent(static_cast<double>(agree) / static_cast<double>(cell.known)), kNameWidth);
    }
    text += "\n";
  }
  return text;
}

std::string who_pays(std::span<const VerifyRow> rows, std::span<const Audited> graders) {
  struct Cell {
    int64_t rows = 0, right = 0, wrong = 0;
  };
  std::map<std::string, Cell> patterns;
  int64_t disagree = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string paid;
    size_t count = 0;
    for (const Audited& grader : graders) {
      if (!pays(grader, i)) continue;
      paid += str(paid.empty() ? "" : ", ", grader.name);
      ++count;
    }
    if (count == 0 || count == graders.size()) continue;
    ++disagree;
    Cell& cell = patterns[paid];
    ++cell.rows;
    cell.right += rows[i].expected == 1;
    cell.wrong += rows[i].expected == 0;
  }
  std::string text = str("\nthe graders disagree on ", grouped(disagree), " of ",
                         grouped(static_cast<int64_t>(rows.size())), " answers\n");
  if (disagree == 0) return text;
  text += str("  ", pad_right("paid only by", 34), pad_left("answers", 9), pad_left("right", 9), pad_left("wrong", 9),
              "\n");
  for (const auto& [paid, cell] : patterns) {
    text += str("  ", pad_right(paid, 34), pad_left(grouped(cell.rows), 9), pad_left(grouped(cell.right), 9),
                pad_left(grouped(cell.wrong), 9), "\n");
  }
  return text;
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
                kExpected[row.expected + 1], "\n  ", pad_right("gold", kNameWidth));
    for (size_t k = 0; k < row.gold.size(); ++k) text += str(k == 0 ? "" : " | ", printable(row.gold[k], 200));
    text += "\n";
    for (const Audited& grader : graders) {
      const Verdict& verdict = grader.grading.verdicts[i];
      text += str("  ", pad_right(grader.name, kNameWidth), pad_right(name_of(verdict.kind), 12),
                  verdict.answer.empty() ? "" : str(printable(verdict.answer, 200), "  "), "(", verdict.reason, ")\n");
    }
  }
  return text;
}

}  // namespace

std::string audit_report(std::span<const VerifyRow> rows, std::span<const Audited> graders, int64_t show) {
  return str(verdict_table(rows, graders), error_table(rows, graders), agreement_by_group(rows, graders),
             who_pays(rows, graders), list_rows(rows, graders, show));
}

}  // namespace ucas
