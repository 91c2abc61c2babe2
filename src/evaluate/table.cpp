#include "evaluate/table.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "base/table.h"

namespace ucas {

namespace {

using Row = std::vector<std::string>;

std::string text_of(const Estimate& e) {
  std::string text = fixed(100 * e.value, 1);
  if (std::isfinite(e.low) && std::isfinite(e.high)) {
    text += str(" [", fixed(100 * e.low, 1), ", ", fixed(100 * e.high, 1), "]");
  }
  return text;
}

// A row per metric that any model has; "-" where a model has it not.
template <class Get>
void add_row(std::vector<Row>& rows, const std::string& name, const std::vector<const EvalFigures*>& models, Get get) {
  Row row = {name};
  for (const EvalFigures* figures : models) {
    std::string text = get(*figures);
    row.push_back(text.empty() ? "-" : text);
  }
  rows.push_back(std::move(row));
}

void add_estimates(std::vector<Row>& rows, const char* name, const std::vector<const EvalFigures*>& models,
                   std::vector<EstimateAt> EvalFigures::* list) {
  std::vector<int64_t> ks;
  for (const EvalFigures* figures : models) {
    for (const EstimateAt& e : figures->*list) ks.push_back(e.k);
  }
  std::sort(ks.begin(), ks.end());
  ks.erase(std::unique(ks.begin(), ks.end()), ks.end());
  for (int64_t k : ks) {
    add_row(rows, str(name, k, " %"), models, [&](const EvalFigures& figures) {
      for (const EstimateAt& e : figures.*list) {
        if (e.k == k) return text_of(e.estimate);
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

std::string table_of(const std::string& title, const Row& labels, const std::vector<const EvalFigures*>& models) {
  std::vector<Row> rows;
  rows.push_back({str(title, " (", models.front()->problems, ")")});
  rows.back().insert(rows.back().end(), labels.begin(), labels.end());
  if (std::any_of(models.begin(), models.end(), [](const EvalFigures* f) { return f->greedy.has_value(); })) {
    add_row(rows, "greedy pass@1 %", models,
            [](const EvalFigures& f) { return f.greedy ? text_of(*f.greedy) : std::string(); });
  }
  add_estimates(rows, "mean@", models, &EvalFigures::mean);
  add_estimates(rows, "maj@", models, &EvalFigures::majority);
  add_estimates(rows, "pass@", models, &EvalFigures::pass);
  add_row(rows, "entropy", models, [](const EvalFigures& f) { return fixed(f.entropy, 3); });
  add_row(rows, "tokens", models, [](const EvalFigures& f) { return fixed(f.length, 1); });
  add_row(rows, "cut at limit %", models, [](const EvalFigures& f) { return fixed(100 * f.truncated_share, 1); });
  add_row(rows, "unparseable %", models, [](const EvalFigures& f) { return fixed(100 * f.unparseable_share, 1); });
  return layout(rows);
}

std::string heading(const std::string& name, int64_t problems) { return str(name, " (", grouped(problems), ")"); }

const EvalFigures* figures_of(const EvalResult& result, const std::string& source) {
  const auto found = result.by_source.find(source);
  return found == result.by_source.end() ? nullptr : &found->second;
}

std::string at_k(const std::vector<EstimateAt>& list, int64_t k) {
  const auto found = std::ranges::find(list, k, &EstimateAt::k);
  return found == list.end() ? "-" : text_of(found->estimate);
}

// `of(figures)` is one score of EvalFigures or MacroFigures as text, "-" where it is not there. "" if no model has it.
template <class Of>
std::string score_block(const std::string& title, std::span<const EvalResult> results, const Row& labels, Of of) {
  std::vector<Row> rows = {{title}};
  rows[0].insert(rows[0].end(), labels.begin(), labels.end());
  bool any = false;
  const auto add = [&](const std::string& name, auto text) {
    Row row = {name};
    for (const EvalResult& result : results) {
      row.push_back(text(result));
      any |= row.back() != "-";
    }
    rows.push_back(std::move(row));
  };
  const EvalResult& first = results.front();
  // Subjects are for a benchmark on its own (MMLU's usual score); among several sets they would be one more average.
  for (const std::string& source : first.sources) {
    add(heading(source, first.by_source.at(source).problems), [&](const EvalResult& result) {
      const EvalFigures* figures = figures_of(result, source);
      return figures == nullptr ? std::string("-") : of(*figures);
    });
    const auto subjects = first.by_subject.find(source);
    if (subjects == first.by_subject.end() || first.sources.size() > 1) continue;
    add(str("  mean of its ", subjects->second.subjects.size(), " subjects"), [&](const EvalResult& result) {
      const auto found = result.by_subject.find(source);
      return found == result.by_subject.end() ? std::string("-") : of(found->second.macro);
    });
  }
  if (first.macro) {
    add("mean of the sets (macro)",
        [&](const EvalResult& result) { return result.macro ? of(*result.macro) : std::string("-"); });
    add(heading("all problems (micro)", first.overall.problems),
        [&](const EvalResult& result) { return of(result.overall); });
  }
  return any ? layout(rows) + "\n" : "";
}

std::string responses_block(const EvalResult& result) {
  std::vector<Row> rows = {{result.label, "tokens", "cut at limit %", "unparseable %", "entropy"}};
  const auto add = [&](const std::string& name, const EvalFigures& f) {
    rows.push_back({name, fixed(f.length, 1), fixed(100 * f.truncated_share, 1), fixed(100 * f.unparseable_share, 1),
                    fixed(f.entropy, 3)});
  };
  for (const std::string& source : result.sources) {
    add(heading(source, result.by_source.at(source).problems), result.by_source.at(source));
  }
  if (result.sources.size() > 1) add(heading("all problems", result.overall.problems), result.overall);
  return layout(rows) + "\n";
}

}  // namespace

std::string summary_table(std::span<const EvalResult> results) {
  if (results.empty()) return "";
  Row labels;
  std::vector<const EvalFigures*> overall;
  for (const EvalResult& result : results) {
    labels.push_back(result.label);
    overall.push_back(&result.overall);
  }
  std::string text = table_of("problems", labels, overall);
  const auto& sources = results.front().sources;
  for (const std::string& source : sources) {
    if (sources.size() < 2) break;
    std::vector<const EvalFigures*> models;
    for (const EvalResult& result : results) models.push_back(&result.by_source.at(source));
    text += "\n" + table_of(source, labels, models);
  }
  return text;
}

std::string suite_table(std::span<const EvalResult> results) {
  if (results.empty()) return "";
  Row labels;
  for (const EvalResult& result : results) labels.push_back(result.label);
  std::string text = score_block("greedy pass@1 %", results, labels, [](const auto& figures) {
    return figures.greedy ? text_of(*figures.greedy) : std::string("-");
  });
  const EvalFigures& sampled = results.front().overall;
  for (const auto& [k, ignored] : sampled.mean) {
    text += score_block(str("mean@", k, " %"), results, labels, [k](const auto& f) { return at_k(f.mean, k); });
  }
  for (const auto& [k, ignored] : sampled.majority) {
    text += score_block(str("maj@", k, " %"), results, labels, [k](const auto& f) { return at_k(f.majority, k); });
  }
  for (const auto& [k, ignored] : sampled.pass) {
    if (k == 1) continue;  // the same as mean@n
    text += score_block(str("pass@", k, " %"), results, labels, [k](const auto& f) { return at_k(f.pass, k); });
  }
  for (const EvalResult& result : results) text += responses_block(result);
  text.pop_back();
  return text;
}

}  // namespace ucas
