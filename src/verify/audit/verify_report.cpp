#include "verify/audit/verify_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "base/text/json.h"
#include "results/table.h"
#include "verify/audit/explain.h"

namespace ucas {

namespace {

constexpr size_t kListed = 300;  // bytes of a text in a listing

void add_share(Table& table, const std::string& name, int64_t count, int64_t all) {
  table.add({name, Cell::count(count), share_text(count, all)});
}

std::string group_table(const std::map<std::string, Tally>& groups) {
  Table table{{"group", "answers", "agree", "false pos", "false neg"}};
  for (const auto& [name, tally] : groups) {
    table.add({group_name(name), Cell::count(tally.known), percent(tally.agreement()),
               Cell::count(tally.false_positive), Cell::count(tally.false_negative)});
  }
  return table.text("  ");
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return str(fixed(seconds * 1e6, 1), " us");
  if (seconds < 1) return str(fixed(seconds * 1e3, 2), " ms");
  return str(fixed(seconds, 2), " s");
}

std::string speed_lines(const Grading& grading) {
  auto count = static_cast<double>(grading.verdicts.size());
  double cpu = 0;
  std::vector<double> sorted = grading.cpu_seconds;
  for (double seconds : sorted) cpu += seconds;
  std::sort(sorted.begin(), sorted.end());
  auto at = [&](double share) {  // nearest rank
    auto rank = static_cast<size_t>(share * count);
    return duration(sorted.empty() ? 0 : sorted[std::min(rank, sorted.size() - 1)]);
  };
  std::string text = str("  ", grouped(static_cast<int64_t>(count / std::max(grading.seconds, 1e-9))), " verdicts/s\n");
  if (cpu == 0) return text;  // processes of their own did it
  return str(text, "  ", grouped(static_cast<int64_t>(count / std::max(cpu, 1e-9))),
             " verdicts per CPU second; each p50 ", at(0.5), ", p99 ", at(0.99), ", max ", at(1), "\n");
}

struct Counts {
  int64_t kinds[4] = {};  // by VerdictKind
  Tally all;
  std::map<std::string, Tally> groups;
};

Counts counts_of(std::span<const VerifyRow> rows, const Grading& grading) {
  Counts counts;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Verdict& verdict = grading.verdicts[i];
    ++counts.kinds[static_cast<int>(verdict.kind)];
    counts.all.add(rows[i], verdict);
    if (rows[i].expected >= 0) counts.groups[rows[i].group].add(rows[i], verdict);
  }
  return counts;
}

}  // namespace

void Tally::add(const VerifyRow& row, const Verdict& verdict) {
  if (row.expected < 0) return;
  ++known;
  agree += is_paid(verdict) == (row.expected == 1);
  false_positive += is_paid(verdict) && row.expected == 0;
  false_negative += !is_paid(verdict) && row.expected == 1;
}

std::string alternatives_text(const std::vector<std::string>& alternatives) {
  std::string text;
  for (const std::string& one : alternatives) text += str(text.empty() ? "" : " | ", printable(one, kListed));
  return text.empty() ? "(none)" : text;
}

std::string group_name(const std::string& name) { return name.empty() ? "(none)" : printable(name, 40); }

std::string verify_summary(std::span<const VerifyRow> rows, const Grading& grading) {
  const auto [kinds, all, groups] = counts_of(rows, grading);
  Table verdicts;
  for (int kind = 0; kind < 4; ++kind) {
    add_share(verdicts, name_of(static_cast<VerdictKind>(kind)), kinds[kind], std::ssize(rows));
  }
  std::string text = verdicts.text("  ");
  if (all.known > 0) {
    Table agreement;
    add_share(agreement, "agree", all.agree, all.known);
    add_share(agreement, "false positives", all.false_positive, all.known);
    add_share(agreement, "false negatives", all.false_negative, all.known);
    text += str("where \"expected\" says what is right (", grouped(all.known), " rows)\n", agreement.text("  "));
    if (groups.size() > 1) text += group_table(groups);
  }
  return text + speed_lines(grading);
}

std::string verify_json(const std::string& path, std::span<const VerifyRow> rows, const Grading& grading) {
  OrderedJson object = {{"file", path}, {"rows", rows.size()}, {"verdicts", OrderedJson::object()}};
  const auto [kinds, all, groups] = counts_of(rows, grading);
  for (int kind = 0; kind < 4; ++kind) object["verdicts"][name_of(static_cast<VerdictKind>(kind))] = kinds[kind];
  const auto tally = [](const Tally& t) {
    return OrderedJson{{"rows", t.known},
                       {"agree", t.agree},
                       {"false_positives", t.false_positive},
                       {"false_negatives", t.false_negative}};
  };
  if (all.known > 0) object["expected"] = tally(all);
  for (const auto& [group, t] : groups) {
    if (groups.size() > 1) object["groups"][group] = tally(t);
  }
  object["seconds"] = grading.seconds;
  return json_text(object, 2) + "\n";
}

std::string disagreements(std::span<const VerifyRow> rows, std::span<const Verdict> verdicts, int64_t limit,
                          std::span<const Answer> explained) {
  std::string text;
  int64_t shown = 0, all = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const VerifyRow& row = rows[i];
    if (row.expected < 0 || is_paid(verdicts[i]) == (row.expected == 1)) continue;
    if (++all > limit) continue;
    ++shown;
    text += str("\n", printable(row.id, 80), row.group.empty() ? "" : str(" (", printable(row.group, 40), ")"), ": ",
                row.expected == 1 ? "right" : "wrong", ", graded ", name_of(verdicts[i].kind), ": ", verdicts[i].reason,
                "\n  gold       ", alternatives_text(row.gold), "\n  extracted  ",
                verdicts[i].answer.empty() ? "(nothing)" : printable(verdicts[i].answer, kListed), "\n");
    if (row.prediction != verdicts[i].answer) {
      bool cut = row.prediction.size() > kListed;  // an answer stands at the end
      std::string_view tail = std::string_view(row.prediction).substr(cut ? row.prediction.size() - kListed : 0);
      text += str("  prediction ", cut ? "..." : "", printable(tail, kListed), "\n");
    }
    if (explained.empty()) continue;
    for (const std::string& line : to_lines(explain(explained[i], Extract::strict))) text += str("    ", line, "\n");
  }
  return str(many(all, "disagreement"), shown < all ? str(", the first ", grouped(shown), " of them") : "", "\n", text);
}

}  // namespace ucas
