// ucas advantages: a saved step's advantages under other methods or settings, without generating or training.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "methods/apply.h"
#include "objective/advantage/group_advantage.h"
#include "objective/advantage/reward_terms.h"
#include "records/run/run_directory.h"
#include "records/run/step_data.h"
#include "results/table.h"

namespace ucas {

namespace {

struct AdvantagesConfig {
  std::vector<std::string> method;
  int64_t step = 0;
  int64_t show = 10;
  bool table = false;
  double rare = 0.25;
  void fields(Fields& f) {
    f.field(
        "method", method,
        "methods to recompute under with default options, NAME or NAME:PRESET; empty = the run's method and settings");
    f.field("step", step, Range{0, 1e9},
            "step of the run directory to read; 0 = the last saved step, with --table all saved steps");
    f.field("show", show, Range{0, 1e6}, "number of responses and tokens to list, largest change first");
    f.field("table", table,
            "print one table of all methods, or of the --method list, compared with DAPO over all saved steps");
    f.field("rare", rare, Range{0, 1},
            "maximum fraction of right responses in a group for a right response to be rare, under --table");
  }
};

// A method's options under the names they have in a run's config: method.alpha.
struct MethodSection {
  Method* method;
  void fields(Fields& f) { f.section("method", *method); }
};

std::set<std::string> keys_of(Method& method) {
  std::set<std::string> keys;
  for (const FieldValue& field : fields_of(MethodSection{&method})) keys.insert(field.key);
  return keys;
}

// The run's own method with its settings, as the file states them.
std::unique_ptr<Method> own_method(const StepData& data, const std::string& path) {
  const MethodRow& row = find_method(data.method);
  if (!data.preset.empty() && !row.has_preset(data.preset)) {
    throw Error(ErrorKind::config, str(printable(path, 400), ": method ", data.method, " has no preset ",
                                       printable(data.preset), "; this file is of another version of ucas"));
  }
  std::unique_ptr<Method> method = row.make(data.preset);
  std::string toml;
  for (const auto& [key, value] : data.settings) toml += str(key, " = ", value, "\n");
  ucas::apply(*method, parse_toml(toml, str(printable(path, 400), ":1: settings")));
  method->validate();
  return method;
}

// What the file would have to hold and does not.
void refuse_missing(const std::string& name, const Needs& needs, const StepData& data, const std::string& path) {
  const std::string lacks = missing(needs.all_signals(), data.batch);
  if (lacks.empty()) return;
  throw Error(ErrorKind::unsupported, str("method ", name, " needs ", lacks, ", which ", printable(path, 400),
                                          " does not hold: the run trained with ", data.method,
                                          name == data.method ? "" : ", which does without",
                                          "; take a step of a run that had it, or another method"));
}

std::vector<float> recompute(const std::string& name, const Method& method, const StepData& data,
                             const std::string& path) {
  Needs needs = method.needs();
  refuse_missing(name, needs, data, path);
  bool classify = needs.answer_classes && !data.answer_classes;
  return compute_advantages(method, classify ? with_answer_classes(data) : data.batch).advantage;
}

struct Recomputed {
  std::string name, title, preset;
  std::vector<FieldValue> settings;  // method.alpha ...
  std::vector<float> advantage;      // [N]
};

// The methods asked for, each with those of the settings that it knows.
std::vector<Recomputed> recomputed(const AdvantagesConfig& config, std::vector<Setting> settings, const StepData& data,
                                   const std::string& path) {
  std::string preset;
  std::erase_if(settings, [&](const Setting& s) {
    if (s.key != "method.preset") return false;
    preset = std::get<std::string>(s.value);
    return true;
  });
  bool own = config.method.empty();
  std::vector<Recomputed> all;
  std::set<std::string> used, presets;
  for (const std::string& word : own ? std::vector<std::string>{data.method} : config.method) {
    size_t colon = std::min(word.find(':'), word.size());
    std::string name = word.substr(0, colon);
    std::string wanted = colon < word.size() ? word.substr(colon + 1) : preset;
    const MethodRow& row = find_method(name);
    presets.insert(row.presets.begin(), row.presets.end());
    bool has_preset = row.has_preset(wanted);
    if (colon < word.size() && !has_preset) {
      throw Error(ErrorKind::config, str("--method ", printable(word), ": ", name,
                                         " has no such preset, expected one of ", join(row.presets, ", ")));
    }
    std::unique_ptr<Method> method =
        own && preset.empty() ? own_method(data, path) : row.make(has_preset ? wanted : "");
    std::set<std::string> keys = keys_of(*method);
    std::vector<Setting> own_settings;
    for (const Setting& s : settings) {
      if (keys.contains(s.key)) own_settings.push_back(s);
    }
    used.insert(keys.begin(), keys.end());
    MethodSection section{method.get()};
    // The last method's turn names what no method knew.
    bool last = all.size() + 1 == std::max<size_t>(1, config.method.size());
    bool all_known = std::ranges::all_of(settings, [&](const Setting& s) { return used.contains(s.key); });
    ucas::apply(section, last && !all_known ? settings : own_settings);
    method->validate();
    all.push_back({name, method->title(),
                   own && preset.empty() ? data.preset
                   : has_preset          ? wanted
                                         : row.presets.front(),
                   fields_of(section), recompute(name, *method, data, path)});
  }
  if (!preset.empty() && !presets.contains(preset)) {
    throw Error(ErrorKind::config, str("--method.preset ", printable(preset), ": expected one of ",
                                       join(std::vector<std::string>(presets.begin(), presets.end()), ", ")));
  }
  return all;
}

// Whether a function of the user's made a step's advantages, by the config of its run.
bool by_python(const std::string& path) {
  const auto run = std::filesystem::absolute(path).parent_path().parent_path();
  const std::string config = (run / "config.toml").string();
  if (!exists(config)) return false;
  return std::ranges::any_of(read_toml(config), [](const Setting& s) {
    return s.key == "method.python" && s.value != decltype(s.value)(std::string());
  });
}

// Whether the run's own settings give the stored advantages again, in words; `differs` if they should and do not.
std::string reproduction(const StepData& data, const std::string& path, std::span<const float> again, bool& differs) {
  int64_t tokens = data.batch.token_count(), equal = 0;
  double largest = 0;
  for (size_t t = 0; t < again.size(); ++t) {
    bool same = std::memcmp(&again[t], &data.advantage[t], sizeof(float)) == 0;
    equal += same;
    if (!same) largest = std::max(largest, std::fabs(static_cast<double>(again[t]) - data.advantage[t]));
  }
  if (equal == tokens) return str("all ", grouped(tokens), " stored advantages come out again, bit for bit");
  const bool python = by_python(path);
  differs = data.whole() && !python;
  return str(grouped(equal), " of ", grouped(tokens), " stored advantages come out again, largest difference ",
             fixed(largest, 6),
             python         ? "; the run's method.python made them"
             : data.whole() ? "; another build or machine wrote them?"
                            : "; only part of the step is stored, and the method looks at the whole of it");
}

// What becomes of advantages a (stored, or DAPO's) under another method: b of the same tokens.
struct Change {
  int64_t tokens = 0, changed = 0, turned = 0;  // |a - b| > 1e-6; a b < 0
  int64_t silenced = 0, woken = 0;              // b = 0 only; a = 0 only
  double a = 0, b = 0, aa = 0, bb = 0, ab = 0, size_a = 0, size_b = 0;
  void add(double x, double y) {
    tokens += 1;
    changed += std::fabs(x - y) > 1e-6;
    turned += x * y < 0;
    silenced += x != 0 && y == 0;
    woken += x == 0 && y != 0;
    a += x;
    b += y;
    aa += x * x;
    bb += y * y;
    ab += x * y;
    size_a += std::fabs(x);
    size_b += std::fabs(y);
  }
  double per_token(double sum) const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }
  // NaN if either is constant.
  double correlation() const {
    const double va = aa - a * per_token(a), vb = bb - b * per_token(b);
    // Rounding leaves a constant's variance near 0, not at it.
    const bool known = va > 1e-9 * aa && vb > 1e-9 * bb;
    return known ? (ab - a * per_token(b)) / std::sqrt(va * vb) : std::numeric_limits<double>::quiet_NaN();
  }
};

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

std::string comparison_text(const StepData& data, const Recomputed& method, int64_t show) {
  Change c;
  for (size_t t = 0; t < method.advantage.size(); ++t) c.add(data.advantage[t], method.advantage[t]);
  int64_t responses = 0, responses_turned = 0;  // by their mean advantage
  for (const Response& o : data.batch.responses) {
    responses += o.length > 0;
    responses_turned += mean(Batch::tokens(data.advantage, o)) * mean(Batch::tokens(method.advantage, o)) < 0;
  }
  std::string text = str(method.title, " (", method.name, method.preset.empty() ? "" : str(", preset ", method.preset),
                         ")\n", settings_text(method.settings));
  const Table means{{"", "stored", "new"},
                    {{"mean |A|", Cell::decimal(c.per_token(c.size_a), 4), Cell::decimal(c.per_token(c.size_b), 4)},
                     {"mean A", advantage_cell(c.per_token(c.a)), advantage_cell(c.per_token(c.b))}}};
  text += means.text("  ");
  text += str("  correlation over tokens       ",
              std::isnan(c.correlation()) ? "none: one side is constant" : fixed(c.correlation(), 4), "\n");
  text += str("  tokens changed                ", of_tokens(c.changed, c), "\n");
  text += str("  tokens with a sign flip        ", of_tokens(c.turned, c), ", became zero: ", grouped(c.silenced),
              ", became non-zero: ", grouped(c.woken), "\n");
  text += str("  responses with a sign flip     ", grouped(responses_turned), " of ", grouped(responses), "\n");
  if (c.changed == 0) return text + "  nothing changes: every advantage is as stored (within 1e-6)\n";
  return text + responses_text(data, method.advantage, static_cast<size_t>(show)) +
         tokens_text(data, method.advantage, static_cast<size_t>(show));
}

std::string text_of(const std::string& path, const StepData& data, const std::string& again,
                    std::span<const Recomputed> methods, int64_t show) {
  const Batch& batch = data.batch;
  std::string text =
      str(printable(path, 400), "\n  step ", data.step, " of a run with ", data.method,
          data.preset.empty() ? "" : str(", preset ", data.preset), ": ", batch.groups.size(), " of ",
          data.groups_of_step, " prompts, ", grouped(static_cast<int64_t>(batch.responses.size())), " responses, ",
          grouped(batch.token_count()), " tokens\n  the run's own settings: ", again, "\n");
  if (!data.whole()) {
    text += "  methods that look at the whole step see the stored prompts only\n";
  }
  for (const Recomputed& method : methods) text += "\n" + comparison_text(data, method, show);
  return text;
}

// `path` itself, or files of the run directory `path`: of the step asked for, else (0) all that are there.
std::vector<std::string> saved_step_files(const std::string& path, int64_t step) {
  if (!is_directory(path)) {
    if (step > 0)
      throw Error(ErrorKind::usage, str("--step ", step, ": ", printable(path, 400), " is a file, not a run"));
    return {path};
  }
  const auto file_of = [&](int64_t n) { return path_join(path_join(path, "signals"), step_name(n) + ".jsonl"); };
  std::vector<std::string> files;
  for (const int64_t saved : steps_with_signals(path)) files.push_back(file_of(saved));
  if (files.empty()) {
    throw Error(ErrorKind::path,
                str(printable(path, 400),
                    ": no signals/step-N.jsonl in it; `ucas train` writes them where train.stored_signals is "
                    "above 0"));
  }
  return step > 0 ? std::vector{file_of(step)} : files;
}

// ---------------------------------------------------------------------------------------- all methods against DAPO

struct AgainstDapo {
  std::string name, variant;             // "ucas", "placebo permuted_confidence"
  Change change;                         // over all tokens of the steps
  int64_t rare = 0, rare_lowered = 0;    // rare right responses, and those whose mean b is below their mean a
  int64_t other = 0, other_lowered = 0;  // the other right responses of groups with a difference
};

struct MethodsTable {
  int64_t steps = 0, groups = 0, responses = 0;
  double rare = 0;                    // a right response is rare where at most this share of its group is right
  std::vector<AgainstDapo> rows;      // DAPO first
  std::vector<std::string> left_out;  // "ppo: the values of a critic (..)"
};

Table methods_rows(const MethodsTable& table) {
  Table out{{"method", "", "correlation", "mean |A|", "net push", "sign flip", "zeroed", "rare right lowered",
             "other right lowered"},
            {},
            "llr"};
  for (const AgainstDapo& row : table.rows) {
    const Change& c = row.change;
    out.add({row.name, row.variant, Cell::decimal(c.correlation(), 3),
             Cell::decimal(c.size_a == 0 ? 0 : c.size_b / c.size_a, 3).with(&Cell::after, " x"),
             Cell::decimal(c.per_token(c.b), 4, true), share_text(c.turned, c.tokens), share_text(c.silenced, c.tokens),
             share_text(row.rare_lowered, row.rare), share_text(row.other_lowered, row.other)});
  }
  return out;
}

std::string methods_extent(const MethodsTable& table) {
  return str(table.steps, table.steps == 1 ? " saved step, " : " saved steps, ", grouped(table.groups), " prompts, ",
             grouped(table.responses), " responses, ", grouped(table.rows.front().change.tokens), " tokens");
}

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

void add_step(const Batch& batch, double rare, const std::vector<float>& a, const std::vector<float>& b,
              AgainstDapo& row) {
  for (const Response& o : batch.responses) {
    if (!o.trained) continue;
    for (int64_t t = o.first; t < o.first + o.length; ++t) row.change.add(a[t], b[t]);
  }
  add_responses(batch, rare, a, b, row);
}

std::string why_left_out(const Method& method, const StepData& data) {
  const Needs needs = method.needs();
  std::vector<TokenSignal> read = needs.all_signals();
  for (const TokenSignal& signal : needs.current)
    if (!signal.derivatives) read.push_back(signal);
  std::string lacks = missing(read, data.batch);
  if (lacks.empty() && needs.reward_parts && data.batch.reward_terms.size() < 2) lacks = "several parts of the reward";
  return lacks;
}

// In one pass over the steps: a step is read once.
void compare_all(std::span<const std::string> files, std::vector<Entry>& entries, MethodsTable& table) {
  const auto dapo = reference().make();
  std::vector<AgainstDapo> rows(entries.size() + 1);
  std::vector<std::string> lacks(entries.size());
  for (const std::string& file : files) {
    const StepData data = read_step_data(file);
    const Batch batch = data.answer_classes ? data.batch : with_answer_classes(data);
    const std::vector<float> a = asked_by(*dapo, batch);
    add_step(batch, table.rare, a, a, rows[0]);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (lacks[i].empty()) lacks[i] = why_left_out(*entries[i].method, data);
      if (lacks[i].empty()) add_step(batch, table.rare, a, asked_by(*entries[i].method, batch), rows[i + 1]);
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
    table.rows.push_back(rows[i]);
  }
}

// Every method of the registry under its first preset, the other presets of UCAS and its placebos, or `only` these
// names (NAME, NAME:PRESET or NAME:PLACEBO), on all of these steps. Error(config) naming an unknown method.
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

}  // namespace

std::string options_advantages() { return options_help(AdvantagesConfig{}); }

int run_advantages(const Words& words) {
  CommandLine line = parse_command_line(words, {"table"});
  std::vector<Setting> general, of_method;
  for (const Setting& s : line.settings) (s.key.starts_with("method.") ? of_method : general).push_back(s);
  for (Setting& s : general) {
    if (s.key == "method" && s.from_text && std::get<std::string>(s.value).empty()) {
      throw Error(ErrorKind::usage, "--method: a name is missing after it");
    }
  }
  AdvantagesConfig config;
  ucas::apply(config, general);
  if (line.positionals.size() != 1) {
    throw Error(ErrorKind::usage, str("advantages: expected one STEP.jsonl or run directory, got ",
                                      line.positionals.size(), "; see ucas advantages --help"));
  }
  if (config.table) {
    if (!of_method.empty()) {
      throw Error(ErrorKind::usage,
                  str("--", of_method.front().key,
                      ": --table compares methods with their defaults; expected --method NAME:PRESET alone"));
    }
    const MethodsTable table =
        methods_table(saved_step_files(line.positionals[0], config.step), config.rare, config.method);
    out(methods_table_text(table, printable(line.positionals[0], 400)));
    return kDone;
  }
  const std::string path = saved_step_files(line.positionals[0], config.step).back();
  const StepData data = read_step_data(path);
  const std::unique_ptr<Method> own = own_method(data, path);
  bool differs = false;
  const std::string again = reproduction(data, path, recompute(data.method, *own, data, path), differs);
  out(text_of(path, data, again, recomputed(config, of_method, data, path), config.show));
  return differs ? kDiffers : kDone;
}

}  // namespace ucas
