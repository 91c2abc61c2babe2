#include "cli/commands/advantages_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "methods/apply.h"
#include "objective/advantage/group_advantage.h"
#include "objective/advantage/reward_terms.h"
#include "records/run/step_data.h"
#include "report/methods_figure.h"

namespace ucas {

namespace {

struct Entry {
  std::string name, variant;
  std::unique_ptr<Method> method;
};

Entry entry(const std::string& name, const std::string& preset, const std::string& placebo = "") {
  Entry made{name, placebo.empty() ? preset : "placebo " + placebo, make_method(name, preset)};
  if (!placebo.empty()) ucas::apply(*made.method, {{"placebo", placebo, "table", false}});
  return made;
}

const MethodRow& reference() { return find_method("dapo"); }

// What its option `placebo` can be but off; none where it has no such option.
std::vector<std::string> placebos_of(Method& method) {
  Fielder list = [](Fields& f, void* m) { static_cast<Method*>(m)->fields(f); };
  for (const FieldValue& field : list_fields(list, &method)) {
    if (field.key == "placebo")
      return {"permuted_confidence", "permuted_within_sign", "permuted_certainty", "matched_dapo"};
  }
  return {};
}

// A method with placebos is one whose presets are of interest, too.
std::vector<Entry> all_entries() {
  std::vector<Entry> entries;
  for (const MethodRow& row : method_rows()) {
    if (&row == &reference()) continue;
    entries.push_back(entry(row.name, row.presets.front()));
    const std::vector<std::string> placebos = placebos_of(*entries.back().method);
    if (placebos.empty()) continue;
    for (size_t i = 1; i < row.presets.size(); ++i) entries.push_back(entry(row.name, row.presets[i]));
    for (const std::string& placebo : placebos) entries.push_back(entry(row.name, row.presets.front(), placebo));
  }
  return entries;
}

std::vector<Entry> chosen_entries(std::span<const std::string> only) {
  std::vector<Entry> entries;
  for (const std::string& word : only) {
    const size_t colon = std::min(word.find(':'), word.size());
    const MethodRow& row = find_method(word.substr(0, colon));
    const std::string variant = colon < word.size() ? word.substr(colon + 1) : row.presets.front();
    if (&row == &reference() && variant == row.presets.front()) continue;
    const std::vector<std::string> placebos = placebos_of(*row.make(row.presets.front()));
    const bool placebo = std::ranges::find(placebos, variant) != placebos.end();
    entries.push_back(placebo ? entry(row.name, row.presets.front(), variant) : entry(row.name, variant));
  }
  return entries;
}

// What DAPO and a method ask of the tokens so far.
struct Sums {
  double n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0, size_a = 0, size_b = 0;
  void add(double x, double y) {
    n += 1;
    a += x;
    b += y;
    aa += x * x;
    bb += y * y;
    ab += x * y;
    size_a += std::fabs(x);
    size_b += std::fabs(y);
  }
  double correlation() const {
    const double va = aa - a * a / n, vb = bb - b * b / n;
    // Rounding leaves a constant's variance near 0, not at it.
    const bool known = n > 0 && va > 1e-9 * aa && vb > 1e-9 * bb;
    return known ? (ab - a * b / n) / std::sqrt(va * vb) : std::numeric_limits<double>::quiet_NaN();
  }
};

std::vector<float> asked_by(const Method& method, const Batch& batch) {
  std::vector<float> advantage(batch.token.size());
  Recording recording;
  method.advantages(batch, advantage, recording);
  return first_update(method, batch, advantage);
}

void add_responses(const Batch& batch, double rare, const std::vector<float>& a, const std::vector<float>& b,
                   AgainstDapo& row) {
  for (const Group& group : batch.groups) {
    const auto o = batch.of(group);
    const auto right = static_cast<double>(std::ranges::count_if(o, is_right));
    const auto all = static_cast<double>(o.size());
    if (right == 0 || right == all) continue;
    for (const Response& o_i : o) {
      if (!is_right(o_i) || !o_i.trained || o_i.length == 0) continue;
      const bool lowered = mean(Batch::tokens(b, o_i)) < mean(Batch::tokens(a, o_i)) - 1e-6;
      const bool few = right <= rare * all;
      (few ? row.rare : row.other) += 1;
      (few ? row.rare_lowered : row.other_lowered) += lowered;
    }
  }
}

void add_step(const Batch& batch, double rare, const std::vector<float>& a, const std::vector<float>& b, Sums& sums,
              AgainstDapo& row) {
  for (const Response& o : batch.responses) {
    if (!o.trained) continue;
    for (int64_t t = o.first; t < o.first + o.length; ++t) {
      sums.add(a[t], b[t]);
      row.turned += a[t] * b[t] < 0;
      row.silenced += a[t] != 0 && b[t] == 0;
      row.woken += a[t] == 0 && b[t] != 0;
    }
  }
  add_responses(batch, rare, a, b, row);
}

std::string why_left_out(const Method& method, const StepData& data) {
  const Needs needs = method.needs();
  std::vector<TokenSignal> read = needs.all_signals();
  std::ranges::copy_if(needs.current, std::back_inserter(read), [](const TokenSignal& s) { return !s.derivatives; });
  std::string lacks = missing(read, data.batch);
  if (lacks.empty() && needs.reward_parts && data.batch.reward_terms.size() < 2) lacks = "several parts of the reward";
  return lacks;
}

// In one pass over the steps: a step is read once.
void compare_all(std::span<const std::string> files, std::vector<Entry>& entries, MethodsTable& table) {
  const auto dapo = reference().make();
  std::vector<Sums> sums(entries.size() + 1);
  std::vector<AgainstDapo> rows(entries.size() + 1);
  std::vector<std::string> lacks(entries.size());
  for (const std::string& file : files) {
    const StepData data = read_step_data(file);
    const Batch batch = data.answer_classes ? data.batch : with_answer_classes(data);
    const std::vector<float> a = asked_by(*dapo, batch);
    add_step(batch, table.rare, a, a, sums[0], rows[0]);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (lacks[i].empty()) lacks[i] = why_left_out(*entries[i].method, data);
      if (lacks[i].empty())
        add_step(batch, table.rare, a, asked_by(*entries[i].method, batch), sums[i + 1], rows[i + 1]);
    }
    table.steps += 1;
    table.groups += std::ssize(batch.groups);
    table.responses += std::ssize(batch.responses);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].name = i == 0 ? dapo->row().name : entries[i - 1].name;
    rows[i].variant = i == 0 ? dapo->row().presets.front() : entries[i - 1].variant;
    if (i > 0 && !lacks[i - 1].empty()) {
      table.left_out.push_back(str(rows[i].name, ": ", lacks[i - 1]));
      continue;
    }
    rows[i].correlation = sums[i].correlation();
    rows[i].size = sums[i].size_a == 0 ? 0 : sums[i].size_b / sums[i].size_a;
    rows[i].tokens = static_cast<int64_t>(sums[i].n);
    rows[i].net = sums[i].n == 0 ? 0 : sums[i].b / sums[i].n;
    table.rows.push_back(rows[i]);
  }
}

}  // namespace

MethodsTable methods_table(std::span<const std::string> files, double rare, std::span<const std::string> only) {
  MethodsTable table;
  table.rare = rare;
  std::vector<Entry> entries = only.empty() ? all_entries() : chosen_entries(only);
  compare_all(files, entries, table);
  return table;
}

std::string methods_table_text(const MethodsTable& table, const std::string& source) {
  const AgainstDapo& dapo = table.rows.front();
  std::string text =
      str(source, ": ", methods_extent(table), "\n  what each method asks of a token at the first update, ",
          "compared with DAPO; rare: right where at most ", percent(table.rare, 0), " of the prompt's responses are, ",
          grouped(dapo.rare), " of ", grouped(dapo.rare + dapo.other), " right responses\n\n");
  text += methods_rows(table).text("  ");
  if (!table.left_out.empty()) text += str("\n  left out, as the steps do not hold what they need\n");
  for (const std::string& line : table.left_out) text += str("    ", line, "\n");
  return text;
}

}  // namespace ucas
