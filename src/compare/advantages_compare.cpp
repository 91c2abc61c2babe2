#include "compare/advantages_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/str.h"
#include "objective/advantage/group_advantage.h"
#include "results/table.h"

namespace ucas {

namespace {

Cell advantage_cell(double value) { return Cell::decimal(value, 4, true); }

// Of a response, its mean advantages, or of one of its tokens.
struct Changed {
  size_t row = 0, token = 0;
  double stored = 0, recomputed = 0;
  double size() const { return std::fabs(recomputed - stored); }
};

// The `show` largest; ties in order of the file.
std::vector<Changed> largest(std::vector<Changed> changes, size_t show) {
  std::erase_if(changes, [](const Changed& c) { return c.size() <= 1e-6; });
  std::ranges::stable_sort(changes, std::greater{}, &Changed::size);
  changes.resize(std::min(changes.size(), show));
  return changes;
}

std::vector<Cell> cells_of(const StepData& data, const Changed& c, std::vector<Cell> about) {
  const Response& o = data.batch.responses[c.row];
  about.insert(about.begin(), {printable(data.problem[static_cast<size_t>(o.group)], 40), str(o.sample)});
  for (double value : {c.stored, c.recomputed, c.recomputed - c.stored}) about.push_back(advantage_cell(value));
  return about;
}

std::string responses_text(const StepData& data, const std::vector<float>& recomputed, size_t show) {
  std::vector<Changed> changes;
  for (size_t i = 0; i < data.batch.responses.size(); ++i) {
    const Response& o = data.batch.responses[i];
    changes.push_back({i, 0, mean(Batch::tokens(data.advantage, o)), mean(Batch::tokens(recomputed, o))});
  }
  Table table{{"problem", "sample", "verdict", "reward", "tokens", "stored A", "new A", "change"}, {}, "lllr"};
  for (const Changed& c : largest(std::move(changes), show)) {
    const Response& o = data.batch.responses[c.row];
    table.add(cells_of(data, c, {name_of(o.verdict.kind), fixed(o.reward, 3), str(o.length)}));
  }
  return table.rows.empty() ? "" : "\n  responses whose mean advantage changes most\n" + table.text("  ");
}

std::string tokens_text(const StepData& data, std::span<const float> recomputed, size_t show) {
  std::vector<Changed> changes;
  for (size_t i = 0; i < data.batch.responses.size(); ++i) {
    const Response& o = data.batch.responses[i];
    for (auto t = static_cast<size_t>(o.first); t < static_cast<size_t>(o.first + o.length); ++t) {
      changes.push_back({i, t, data.advantage[t], recomputed[t]});
    }
  }
  Table table{{"problem", "sample", "text", "position", "id", "stored A", "new A", "change"}, {}, "lllr"};
  for (const Changed& c : largest(std::move(changes), show)) {
    const std::string piece = data.piece.empty() ? "" : str("\"", printable(data.piece[c.token], 24), "\"");
    const int64_t position = static_cast<int64_t>(c.token) - data.batch.responses[c.row].first;
    table.add(cells_of(data, c, {piece, str(position), str(data.batch.token[c.token])}));
  }
  return table.rows.empty() ? "" : "\n  tokens that change most (position from 0)\n" + table.text("  ");
}

std::string unquoted(const FieldValue& field) {
  bool text = field.value.size() >= 2 && field.value.front() == '"';
  return text ? field.value.substr(1, field.value.size() - 2) : field.value;
}

// "  alpha 0.25, beta 0.01, ..." in lines of at most 110 columns.
std::string settings_text(const std::vector<FieldValue>& settings) {
  std::string text, line;
  for (const FieldValue& field : settings) {
    std::string item = str(field.key.substr(7), " ", unquoted(field));
    if (line.size() + item.size() > 106) {
      text += line + ",\n";
      line.clear();
    }
    line += (line.empty() ? "  " : ", ") + item;
  }
  return line.empty() ? text : text + line + "\n";
}

std::string of_tokens(int64_t count, const Change& change) {
  return str(grouped(count), " (", percent(static_cast<double>(count) / std::max<double>(1, change.tokens)), ")");
}

}  // namespace

Change change_of(const StepData& data, std::span<const float> recomputed) {
  Change c;
  c.tokens = static_cast<int64_t>(recomputed.size());
  c.stored_net = mean(data.advantage);
  c.new_net = mean(recomputed);
  double aa = 0, bb = 0, ab = 0, tokens = std::max<double>(1, static_cast<double>(c.tokens));
  for (size_t t = 0; t < recomputed.size(); ++t) {
    double a = data.advantage[t], b = recomputed[t];
    c.changed += std::fabs(a - b) > 1e-6;
    c.turned += a * b < 0;
    c.silenced += a != 0 && b == 0;
    c.woken += a == 0 && b != 0;
    c.stored_size += std::fabs(a) / tokens;
    c.new_size += std::fabs(b) / tokens;
    aa += (a - c.stored_net) * (a - c.stored_net);
    bb += (b - c.new_net) * (b - c.new_net);
    ab += (a - c.stored_net) * (b - c.new_net);
  }
  c.correlation = aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : std::numeric_limits<double>::quiet_NaN();
  for (const Response& o : data.batch.responses) {
    if (o.length == 0) continue;
    auto first = static_cast<size_t>(o.first), length = static_cast<size_t>(o.length);
    ++c.responses;
    c.responses_turned += mean(Batch::tokens(data.advantage, o)) * mean(recomputed.subspan(first, length)) < 0;
  }
  return c;
}

std::string comparison_text(const StepData& data, const Recomputed& method, int64_t show) {
  Change c = change_of(data, method.advantage);
  std::string text = str(method.title, " (", method.name, method.preset.empty() ? "" : str(", preset ", method.preset),
                         ")\n", settings_text(method.settings));
  const Table means{{"", "stored", "new"},
                    {{"mean |A|", Cell::decimal(c.stored_size, 4), Cell::decimal(c.new_size, 4)},
                     {"mean A", advantage_cell(c.stored_net), advantage_cell(c.new_net)}}};
  text += means.text("  ");
  text += str("  correlation over tokens       ",
              std::isnan(c.correlation) ? "none: one side is constant" : fixed(c.correlation, 4), "\n");
  text += str("  tokens changed                ", of_tokens(c.changed, c), "\n");
  text += str("  tokens with a sign flip        ", of_tokens(c.turned, c), ", became zero: ", grouped(c.silenced),
              ", became non-zero: ", grouped(c.woken), "\n");
  text += str("  responses with a sign flip     ", grouped(c.responses_turned), " of ", grouped(c.responses), "\n");
  if (c.changed == 0) return text + "  nothing changes: every advantage is as stored (within 1e-6)\n";
  return text + responses_text(data, method.advantage, static_cast<size_t>(show)) +
         tokens_text(data, method.advantage, static_cast<size_t>(show));
}

}  // namespace ucas
