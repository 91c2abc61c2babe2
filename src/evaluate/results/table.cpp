#include "evaluate/results/table.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "base/text/table.h"

namespace ucas {

namespace {

using Row = std::vector<std::string>;

// "-" where nothing was measured.
std::string number_text(double value, int digits) { return std::isnan(value) ? "-" : fixed(value, digits); }

std::string figure_text(const Figure& e) {
  std::string text = fixed(100 * e.value, 1);
  if (std::isfinite(e.low) && std::isfinite(e.high)) {
    text += str(" [", fixed(100 * e.low, 1), ", ", fixed(100 * e.high, 1), "]");
  }
  return text;
}

// A row per metric that any model has; "-" where a model has it not.
template <class Get>
void add_row(std::vector<Row>& rows, const std::string& name, const std::vector<const EvalNumbers*>& models, Get get) {
  Row row = {name};
  for (const EvalNumbers* figures : models) {
    std::string text = get(*figures);
    row.push_back(text.empty() ? "-" : text);
  }
  rows.push_back(std::move(row));
}

void add_estimates(std::vector<Row>& rows, const char* name, const std::vector<const EvalNumbers*>& models,
                   std::vector<FigureAt> EvalNumbers::* list) {
  std::vector<int64_t> ks;
  for (const EvalNumbers* figures : models) {
    for (const FigureAt& e : figures->*list) ks.push_back(e.k);
  }
  std::sort(ks.begin(), ks.end());
  ks.erase(std::unique(ks.begin(), ks.end()), ks.end());
  for (int64_t k : ks) {
    add_row(rows, str(name, k, " %"), models, [&](const EvalNumbers& figures) {
      for (const FigureAt& e : figures.*list) {
        if (e.k == k) return figure_text(e.share);
      }
      return std::string();
    });
  }
}

std::string layout(const std::vector<Row>& rows) {
  Table table;
  table.rows = rows;
  table.align = "l";
  return table.text();
}

std::string table_of(const std::string& title, const Row& labels, const std::vector<const EvalNumbers*>& models) {
  std::vector<Row> rows;
  rows.push_back({str(title, " (", models.front()->problems, ")")});
  rows.back().insert(rows.back().end(), labels.begin(), labels.end());
  if (std::any_of(models.begin(), models.end(), [](const EvalNumbers* f) { return f->greedy.known(); })) {
    add_row(rows, "greedy pass@1 %", models,
            [](const EvalNumbers& f) { return f.greedy.known() ? figure_text(f.greedy) : std::string(); });
  }
  add_estimates(rows, "mean@", models, &EvalNumbers::mean_at);
  add_estimates(rows, "maj@", models, &EvalNumbers::majority_at);
  add_estimates(rows, "pass@", models, &EvalNumbers::pass_at);
  add_row(rows, "entropy", models, [](const EvalNumbers& f) { return number_text(f.entropy, 3); });
  add_row(rows, "tokens", models, [](const EvalNumbers& f) { return number_text(f.length, 1); });
  add_row(rows, "cut at limit %", models, [](const EvalNumbers& f) { return number_text(100 * f.truncated, 1); });
  add_row(rows, "unparseable %", models, [](const EvalNumbers& f) { return fixed(100 * f.unparseable, 1); });
  return layout(rows);
}

std::string heading(const std::string& name, int64_t problems) { return str(name, " (", grouped(problems), ")"); }

std::string at_k(const std::vector<FigureAt>& list, int64_t k) {
  const auto found = std::ranges::find(list, k, &FigureAt::k);
  return found == list.end() ? "-" : figure_text(found->share);
}

// `of(numbers)` is one score as text, "-" where it is not there. "" if no model has it.
template <class Of>
std::string score_block(const std::string& title, std::span<const EvalRecord> results, const Row& labels, Of of) {
  std::vector<Row> rows = {{title}};
  rows[0].insert(rows[0].end(), labels.begin(), labels.end());
  bool any = false;
  const auto add = [&](const std::string& name, auto text) {
    Row row = {name};
    for (const EvalRecord& result : results) {
      row.push_back(text(result));
      any |= row.back() != "-";
    }
    rows.push_back(std::move(row));
  };
  const EvalRecord& first = results.front();
  // Subjects are for a benchmark on its own (MMLU's usual score); among several sets they would be one more average.
  for (const auto& [name, numbers] : first.by_source) {
    const std::string& source = name;
    add(heading(source, numbers.problems), [&](const EvalRecord& result) {
      const EvalNumbers* theirs = result.of(source);
      return theirs == nullptr ? std::string("-") : of(*theirs);
    });
    const auto subjects = first.by_subject.find(source);
    if (subjects == first.by_subject.end() || first.by_source.size() > 1) continue;
    add(str("  mean of its ", subjects->second.subjects.size(), " subjects"), [&](const EvalRecord& result) {
      const auto found = result.by_subject.find(source);
      return found == result.by_subject.end() ? std::string("-") : of(found->second.macro);
    });
  }
  if (first.macro) {
    add("mean of the sets (macro)",
        [&](const EvalRecord& result) { return result.macro ? of(*result.macro) : std::string("-"); });
    add(heading("all problems (micro)", first.problems), [&](const EvalRecord& result) { return of(result); });
  }
  return any ? layout(rows) + "\n" : "";
}

std::string responses_block(const EvalRecord& result) {
  std::vector<Row> rows = {{result.label, "tokens", "cut at limit %", "unparseable %", "entropy"}};
  const auto add = [&](const std::string& name, const EvalNumbers& f) {
    rows.push_back(
        {name, fixed(f.length, 1), fixed(100 * f.truncated, 1), fixed(100 * f.unparseable, 1), fixed(f.entropy, 3)});
  };
  for (const auto& [source, numbers] : result.by_source) add(heading(source, numbers.problems), numbers);
  if (result.by_source.size() > 1) add(heading("all problems", result.problems), result);
  return layout(rows) + "\n";
}

}  // namespace

std::string summary_table(std::span<const EvalRecord> results) {
  if (results.empty()) return "";
  Row labels;
  std::vector<const EvalNumbers*> overall;
  for (const EvalRecord& result : results) {
    labels.push_back(result.label);
    overall.push_back(&result);
  }
  std::string text = table_of("problems", labels, overall);
  const auto& sources = results.front().by_source;
  for (const auto& [source, ignored] : sources) {
    if (sources.size() < 2) break;
    std::vector<const EvalNumbers*> models;
    for (const EvalRecord& result : results) models.push_back(result.of(source));
    text += "\n" + table_of(source, labels, models);
  }
  return text;
}

std::string suite_table(std::span<const EvalRecord> results) {
  if (results.empty()) return "";
  Row labels;
  for (const EvalRecord& result : results) labels.push_back(result.label);
  std::string text = score_block("greedy pass@1 %", results, labels, [](const auto& figures) {
    return figures.greedy.known() ? figure_text(figures.greedy) : std::string("-");
  });
  const EvalNumbers& sampled = results.front();
  for (const auto& [k, ignored] : sampled.mean_at) {
    text += score_block(str("mean@", k, " %"), results, labels, [k](const auto& f) { return at_k(f.mean_at, k); });
  }
  for (const auto& [k, ignored] : sampled.majority_at) {
    text += score_block(str("maj@", k, " %"), results, labels, [k](const auto& f) { return at_k(f.majority_at, k); });
  }
  for (const auto& [k, ignored] : sampled.pass_at) {
    if (k == 1) continue;  // the same as mean@n
    text += score_block(str("pass@", k, " %"), results, labels, [k](const auto& f) { return at_k(f.pass_at, k); });
  }
  for (const EvalRecord& result : results) text += responses_block(result);
  text.pop_back();
  return text;
}

}  // namespace ucas
