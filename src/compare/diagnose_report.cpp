#include "compare/diagnose_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "base/text/fields.h"
#include "base/text/json.h"
#include "results/table.h"

namespace ucas {

namespace {

constexpr size_t kDiagnosisWidth = 110;
constexpr size_t kLongestOpening = 32;
constexpr double kNearShare = 0.05;  // signals that shrink about as few rare right responses as the best one

std::string z_text(double z) { return signed_text(z, 2); }

Cell z_cell(double z) { return Cell::decimal(z, 2, true); }

std::string opening_text(const std::string& opening) {
  return opening.empty() ? "(no word)" : printable(opening, kLongestOpening);
}

using PerSignal = std::array<double, kSignals>;

// A column for each signal.
void add_signals(Table& table, const Diagnosis& found) {
  for (const SignalDiagnosis& s : found.signals) table.head.emplace_back(str("z ", word_of(s.signal)));
}

void add_row(Table& table, std::vector<Cell> row, const Diagnosis& found, const PerSignal& values) {
  for (const SignalDiagnosis& s : found.signals) row.push_back(z_cell(values[static_cast<size_t>(s.signal)]));
  table.add(std::move(row));
}

std::string signals_table(const DiagnosisReport& report) {
  const std::string interval = str(percent(report.options.level, 0), " interval");
  Table table{{"signal", "AUROC", "pooled", "z right", "z rare right", interval, "of them z > 0", "rank, share"}};
  for (const SignalDiagnosis& s : report.found.signals) {
    const Figure& z = s.z_rare;
    table.add({word_of(s.signal), Cell::decimal(s.auroc, 3), Cell::decimal(s.auroc_pooled, 3), z_cell(s.z_right),
               z_cell(z.value),
               s.selects     ? "chosen by it"
               : z.bounded() ? str(z_text(z.low), " to ", z_text(z.high))
                             : "-",
               share_text(s.share_over()), z_cell(s.rank_with_share)});
  }
  return "\n" + table.text("  ", kDiagnosisWidth);
}

std::string strategies_table(const DiagnosisReport& report) {
  const std::vector<StrategyDiagnosis>& all = report.found.strategies;
  Table table{{"begins with", "responses", "right"}};
  add_signals(table, report.found);
  const size_t shown = std::min(all.size(), static_cast<size_t>(report.strategies));
  for (size_t i = 0; i < shown; ++i) {
    add_row(table, {opening_text(all[i].opening), percent(all[i].share), percent(all[i].right)}, report.found,
            all[i].z_right);
  }
  std::string text = str("\n  strategies, ", decimal_text(report.found.right_strategies, 2),
                         " different right ones to a problem; z: mean over their right responses\n",
                         table.text("  ", kDiagnosisWidth));
  if (shown < all.size()) text += str("  and ", grouped(std::ssize(all) - static_cast<int64_t>(shown)), " more\n");
  return text;
}

std::string steps_table(const DiagnosisReport& report) {
  const std::vector<StepDiagnosis>& steps = report.found.steps;
  if (steps.empty() || steps.front().step < 0) return "";
  const bool stage_1 = std::ranges::any_of(
      steps, [](const StepDiagnosis& s) { return std::isfinite(s.stage_1.rare) || std::isfinite(s.stage_1.other); });
  Table table{{"step", "rare right", "other right"}, {}, "rr"};
  if (stage_1) {
    for (const char* head : {"stage 1: shrunk", "rare x", "other x"}) table.head.emplace_back(head);
  }
  for (const char* head : {"all: shrunk", "rare x", "other x"}) table.head.emplace_back(head);
  for (const StepDiagnosis& s : steps) {
    std::vector<Cell> row = {str(s.step), Cell::count(s.rare), Cell::count(s.other)};
    const auto add = [&](const StepDiagnosis::Of& of) {
      row.insert(row.end(), {share_text(of.shrunk), Cell::decimal(of.rare, 3), Cell::decimal(of.other, 3)});
    };
    if (stage_1) add(s.stage_1);
    add(s.all);
    table.add(std::move(row));
  }
  return str(
      "\n  what the method made of the advantage of right responses: share of the rare ones that it lowered, "
      "mean factors\n",
      table.text("  ", kDiagnosisWidth));
}

// When a signal changes sides.
std::string z_by_step(const DiagnosisReport& report) {
  if (report.found.steps.size() < 2) return "";
  Table table{{"step", "rare right"}, {}, "rr"};
  add_signals(table, report.found);
  for (const StepDiagnosis& step : report.found.steps) {
    add_row(table, {str(step.step), Cell::count(step.rare)}, report.found, step.z_rare);
  }
  return str("\n  by step; z: mean over the rare right responses\n", table.text("  ", kDiagnosisWidth));
}

std::string words_of(const DiagnosisReport& report, RareEffect effect) {
  std::vector<std::string> names;
  for (const SignalDiagnosis& s : report.found.signals) {
    if (is_setting(s.signal) && s.effect == effect && !s.selects) {
      names.push_back(
          str(word_of(s.signal), " (z ", z_text(s.z_rare.value), ", ", percent(s.share_over()), " of them above 0)"));
    }
  }
  return join(names, ", ");
}

std::string setting_sentence(const Diagnosis& found) {
  if (const SignalDiagnosis* best = found.best()) {
    std::vector<std::string> near;
    for (const SignalDiagnosis& s : found.signals) {
      const bool other = &s != best && is_setting(s.signal) && s.effect == RareEffect::protects;
      if (other && s.share_over() - best->share_over() <= kNearShare) near.emplace_back(word_of(s.signal));
    }
    return str("Fewest shrunk: --method.response_confidence ", word_of(best->signal),
               near.empty() ? "" : str(", and no more than 5 in 100 behind it: ", join(near, ", ")), ".");
  }
  return "No signal protects them; --method.alpha_pos 0 leaves the reward of right responses alone.";
}

// "rare: ..", what makes a right response rare.
std::string rare_words(const DiagnosisReport& report) {
  const std::string share = percent(report.options.rare);
  switch (report.options.rare_by) {
    case RareBy::opening:
      return str("strategy: the first ", report.opening == 1 ? std::string("word") : many(report.opening, "word"),
                 "; rare: at most ", share, " of the responses to its problem");
    case RareBy::accuracy:
      return str("rare: at most ", share, " of the responses to its problem are right");
    case RareBy::answer:
      return str("rare: at most ", share, " of the responses to its problem give its answer");
    case RareBy::logprob:
      return str("rare: among the ", share, " of the right responses to its problem with the lowest mean log-prob");
  }
  return "";
}

// What else to try where there are too few.
std::string other_kinds(const DiagnosisReport& report) {
  if (report.options.rare_by != RareBy::opening) return "another --rare_by or a larger --rare.";
  return str("another --opening or --rare. First words tell strategies only where responses differ by them (here ",
             decimal_text(report.found.right_strategies, 1),
             " kinds of right responses to a problem); --rare_by accuracy and logprob need no words.");
}

// A number for each signal, by its name.
OrderedJson by_signal(const Diagnosis& found, const PerSignal& values) {
  OrderedJson json = OrderedJson::object();
  for (const SignalDiagnosis& s : found.signals) json[word_of(s.signal)] = values[static_cast<size_t>(s.signal)];
  return json;
}

OrderedJson json_of(const StepDiagnosis::Of& of) {
  return {{"rare_shrunk", of.shrunk}, {"rare_factor", of.rare}, {"other_factor", of.other}};
}

}  // namespace

std::string diagnosis_reading(const DiagnosisReport& report) {
  const Diagnosis& found = report.found;
  if (!found.enough()) {
    return str("No conclusion: ", many(found.rare, "rare right response"), " of ", many(found.rare_problems, "problem"),
               ", expected at least ", Diagnosis::kFewestRare, " of ", Diagnosis::kFewestProblems,
               ". Evaluate with more samples of each problem (--samples 64 or more), more or harder problems, or ",
               other_kinds(report));
  }
  std::string text;
  const std::string protects = words_of(report, RareEffect::protects), shrinks = words_of(report, RareEffect::shrinks);
  const std::string unclear = words_of(report, RareEffect::unclear);
  if (!protects.empty())
    text +=
        str("Lower for rare right responses than for their group, so stage 1 would protect "
            "them: ",
            protects, ". ");
  if (!shrinks.empty()) text += str("Higher, so it would shrink their reward: ", shrinks, ". ");
  if (!unclear.empty()) text += str("Cannot be told from 0: ", unclear, ". ");
  return text + setting_sentence(found);
}

std::string diagnosis_text(const DiagnosisReport& report) {
  const Diagnosis& found = report.found;
  std::string text = str(report.source, "\n  ", many(found.groups, "group"), ", ", grouped(found.mixed),
                         " with right and wrong responses: ", many(found.responses, "response"), " to ",
                         many(found.problems, "problem"), ", ", many(found.rare, "rare right one"), " to ",
                         grouped(found.rare_problems), "\n  ", rare_words(report), "\n");
  for (const std::string& remark : report.remarks) text += str("  note: ", remark, "\n");
  if (!found.signals.empty()) text += signals_table(report);
  if (!found.strategies.empty() && report.options.rare_by == RareBy::opening) text += strategies_table(report);
  text += steps_table(report) + z_by_step(report);
  return str(text, "\n  ", wrap_text(diagnosis_reading(report), kDiagnosisWidth, 2, 2), "\n");
}

std::string diagnosis_json(const DiagnosisReport& report) {
  const Diagnosis& found = report.found;
  OrderedJson json = {{"format", "ucas-diagnosis-1"},
                      {"source", report.source},
                      {"remarks", report.remarks},
                      {"opening", report.opening},
                      {"rare_by", word_of(report.options.rare_by)},
                      {"rare_share", report.options.rare},
                      {"groups", found.groups},
                      {"mixed_groups", found.mixed},
                      {"problems", found.problems},
                      {"responses", found.responses},
                      {"rare_right", found.rare},
                      {"rare_right_problems", found.rare_problems},
                      {"right_strategies", found.right_strategies},
                      {"enough", found.enough()},
                      {"signals", OrderedJson::array()},
                      {"strategies", OrderedJson::array()},
                      {"steps", OrderedJson::array()}};
  for (const SignalDiagnosis& s : found.signals) {
    json["signals"].push_back({{"signal", word_of(s.signal)},
                               {"setting", is_setting(s.signal)},
                               {"groups", s.groups},
                               {"auroc", s.auroc},
                               {"auroc_pooled", s.auroc_pooled},
                               {"z_right", s.z_right},
                               {"z_rare_right", json_of(s.z_rare)},
                               {"rare_right", s.rare},
                               {"rare_right_over_0", s.rare_over},
                               {"rank_with_share", s.rank_with_share},
                               {"selects", s.selects},
                               {"effect", word_of(s.effect)}});
  }
  for (const StrategyDiagnosis& strategy : found.strategies) {
    json["strategies"].push_back({{"opening", strategy.opening},
                                  {"responses", strategy.responses},
                                  {"share", strategy.share},
                                  {"right", strategy.right},
                                  {"z_right", by_signal(found, strategy.z_right)}});
  }
  for (const StepDiagnosis& s : found.steps) {
    if (s.step < 0) continue;
    json["steps"].push_back({{"step", s.step},
                             {"rare_right", s.rare},
                             {"other_right", s.other},
                             {"stage_1", json_of(s.stage_1)},
                             {"all", json_of(s.all)},
                             {"z_rare_right", by_signal(found, s.z_rare)}});
  }
  const SignalDiagnosis* best = found.best();
  json["best"] = best == nullptr ? OrderedJson(nullptr) : OrderedJson(word_of(best->signal));
  json["reading"] = diagnosis_reading(report);
  return json_text(json) + "\n";
}

}  // namespace ucas
