#include "verify/audit/verify_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "base/text/json.h"
#include "verify/audit/explain.h"

namespace ucas {

namespace {

constexpr size_t kListed = 300;  // bytes of a text in a listing

std::string share_line(const std::string& name, int64_t count, int64_t all) {
  double share = all == 0 ? 0 : static_cast<double>(count) / static_cast<double>(all);
  return table_line(name, 16, {grouped(count), percent(share)}, 9);
}

std::string group_table(const std::map<std::string, Tally>& groups) {
  size_t width = 8;
  for (const auto& [name, tally] : groups) width = std::max(width, std::min<size_t>(name.size(), 40));
  auto line = [&](const std::string& name, const std::vector<std::string>& cells) {
    return str("  ", pad_right(name, width), pad_left(cells[0], 9), pad_left(cells[1], 9), pad_left(cells[2], 11),
               pad_left(cells[3], 11), "\n");
  };
  std::string text = line("group", {"answers", "agree", "false pos", "false neg"});
  for (const auto& [name, tally] : groups) {
    text += line(name.empty() ? "(none)" : printable(name, 40),
                 {grouped(tally.known), percent(tally.agreement()), grouped(tally.false_positive),
                  grouped(tally.false_negative)});
  }
  return text;
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

std::string joined(const std::vector<std::string>& alternatives) {
  std::string text;
  for (const std::string& one : alternatives) text += str(text.empty() ? "" : " | ", printable(one, kListed));
  return text.empty() ? "(none)" : text;
}

}  // namespace

void Tally::add(const VerifyRow& row, const Verdict& verdict) {
  if (row.expected < 0) return;
  ++known;
  agree += is_paid(verdict) == (row.expected == 1);
  false_positive += is_paid(verdict) && row.expected == 0;
  false_negative += !is_paid(verdict) && row.expected == 1;
}

std::string table_line(std::string_view name, size_t width, const std::vector<std::string>& cells, size_t cell_width) {
  std::string line = str("  ", pad_right(name, width));
  for (const std::string& cell : cells) line += pad_left(cell, cell_width);
  return line + "\n";
}

std::string verify_summary(std::span<const VerifyRow> rows, const Grading& grading) {
  int64_t kinds[4] = {};
  Tally all;
  std::map<std::string, Tally> groups;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Verdict& verdict = grading.verdicts[i];
    ++kinds[static_cast<int>(verdict.kind)];
    all.add(rows[i], verdict);
    if (rows[i].expected >= 0) groups[rows[i].group].add(rows[i], verdict);
  }
  std::string text;
  for (int kind = 0; kind < 4; ++kind) {
    text += share_line(name_of(static_cast<VerdictKind>(kind)), kinds[kind], rows.size());
  }
  if (all.known > 0) {
    text += str("where \"expected\" says what is right (", grouped(all.known), " rows)\n");
    text += share_line("agree", all.agree, all.known);
    text += share_line("false positives", all.false_positive, all.known);
    text += share_line("false negatives", all.false_negative, all.known);
    if (groups.size() > 1) text += group_table(groups);
  }
  return text + speed_lines(grading);
}

std::string verify_json(const std::string& path, std::span<const VerifyRow> rows, const Grading& grading) {
  OrderedJson object = {{"file", path}, {"rows", rows.size()}, {"verdicts", OrderedJson::object()}};
  for (int kind = 0; kind < 4; ++kind) object["verdicts"][name_of(static_cast<VerdictKind>(kind))] = 0;
  std::map<std::string, Tally> groups;
  Tally all;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Verdict& verdict = grading.verdicts[i];
    OrderedJson& count = object["verdicts"][name_of(verdict.kind)];
    count = count.get<int64_t>() + 1;
    all.add(rows[i], verdict);
    if (rows[i].expected >= 0) groups[rows[i].group].add(rows[i], verdict);
  }
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
                "\n  gold       ", joined(row.gold), "\n  extracted  ",
                verdicts[i].answer.empty() ? "(nothing)" : printable(verdicts[i].answer, kListed), "\n");
    if (row.prediction != verdicts[i].answer) {
      bool cut = row.prediction.size() > kListed;  // an answer stands at the end
      std::string_view tail = std::string_view(row.prediction).substr(cut ? row.prediction.size() - kListed : 0);
      text += str("  prediction ", cut ? "..." : "", printable(tail, kListed), "\n");
    }
    if (explained.empty()) continue;
    for (const std::string& line : to_lines(explain(explained[i], Extract::strict))) text += str("    ", line, "\n");
  }
  return str(grouped(all), all == 1 ? " disagreement" : " disagreements",
             shown < all ? str(", the first ", grouped(shown), " of them") : "", "\n", text);
}

}  // namespace ucas
