// HTML from the templates of report/assets (Mustache): {{x}} is text and is escaped (report/escape.h), {{{x}}} is HTML
// that was made safe before. A value is never read as a template. Threads: any; pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "records/run/step_data.h"
#include "report/summary.h"
#include "results/compare/groups.h"
#include "results/table.h"

namespace ucas {

std::string_view asset(const std::string& name);  // a file of report/assets

// "results.html" and its values. Empty texts, null and false make their section {{#x}} vanish; {{> y.html}} is the
// template y in the same place.
std::string render(const std::string& name, const OrderedJson& values);

// A table of results as HTML: the first cell of each row names it. An unknown number is a dash.
std::string render(const Table& table);

// Cells that the tables of the page share, and the settings as HTML ("" when there is nothing to show).

Cell name_cell(const RunGroup& group, const std::string& below = "");  // with its colour
// Mean and spread; where wanted, the interval below.
Cell value_cell(const SummaryCell& value, bool share, bool with_interval);

std::string settings_html(const std::vector<RunGroup>& groups);

// Sections of the page.

// Accuracies, differences between groups as a forest plot and in words, the table: the numbers of summary.h.
std::string results_html(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries);

// Responses to read: for a few problems the answers of every group side by side; from training, those of the first and
// the last stored step with their rewards and advantages. "" if no run has responses.
std::string responses_html(const std::vector<RunGroup>& groups);

// The token explorer: single tokens of saved steps (records/run/step_data.h) with every quantity recorded of them.
// Everything shown was recorded in the run directory; only logarithms are turned into probabilities. explorer.js draws
// it.

// What is known about the tokens of one saved step: each row a quantity with its symbol, its meaning, and its equation
// in the UCAS article. Feeds report/page/explorer.

struct TokenQuantity {
  std::string symbol, title, equation;
  enum class Kind { signal, trace, advantage, update } kind = Kind::signal;
  bool per_token = true;      // values are [N] if so, else [B]
  std::vector<float> values;  // NaN: not a finite number
  std::vector<float> mean;    // [B] over the response, of advantages; else empty
};

std::vector<TokenQuantity> token_quantities(const StepData& data);

struct ExplorerPage {
  std::string json;  // what explorer.js reads
  std::string html;  // what it fills, and what was left out; "" where no run has saved steps
};
// Of each run at most a few saved steps, spread over the training; of each step at most a few prompts, and at most
// about `budget` bytes of JSON in all. Throws Error if a step's file is broken.
ExplorerPage explorer_page(const std::vector<RunGroup>& groups, size_t budget);

// For a page: one for greedy, mean@n and the largest pass@k; none unless an evaluation of `data` has several sources.
std::vector<Table> benchmark_tables(const std::vector<RunGroup>& groups, const std::string& data);

// What these groups' evaluations say differently of that, for people: "max_tokens of math500: 1024 | 3000".
std::vector<std::string> asked_differences(const std::vector<RunGroup>& groups, const std::string& data);

}  // namespace ucas
