#include "config/explain/explain.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr size_t kWidth = 100;

std::string heading(const Explained& e) {
  const TrainConfig& c = e.config;
  std::string head = c.method->title();
  if (c.method->row().presets.size() > 1) head += str(", preset ", c.method_preset);
  if (!e.name.empty()) head += str(": ", printable(e.name));
  return str(head, "\n", wrap_text(c.method->row().paper, kWidth, 0, 0), "\n");
}

// 1e-06 as people write it: 1e-6.
std::string short_exponents(std::string text) {
  for (size_t at = text.find("e-0"); at != std::string::npos; at = text.find("e-0", at + 1)) {
    const bool number = at > 0 && at + 3 < text.size() && text[at - 1] >= '0' && text[at - 1] <= '9' &&
                        text[at + 3] >= '0' && text[at + 3] <= '9';
    if (number) text.erase(at + 2, 1);
  }
  return text;
}

// "  label      text", the text wrapped to the right of the label, which is `width` columns wide.
std::string row(const std::string& label, size_t width, const std::string& text) {
  std::string head = str("  ", pad_right(label, width), "  ");
  return str(head, wrap_text(text, kWidth, 4 + width, head.size()), "\n");
}

std::string show(const ExplainedLine& line, size_t width) {
  const std::string formula = short_exponents(line.formula), words = short_exponents(line.words);
  if (formula.empty()) return row(line.where, width, words);
  std::string text = row(line.where, width, formula);
  if (!words.empty()) text += row("", width, words);
  return text;
}

size_t label_width(const std::vector<ExplainedSection>& sections) {
  size_t width = 0;
  for (const ExplainedSection& section : sections) {
    for (const ExplainedLine& line : section.lines) width = std::max(width, line.where.size());
  }
  return std::min<size_t>(width, 22);
}

// key, value here, value there, in columns.
std::string table(const std::vector<Departure>& rows) {
  size_t key = 0, left = std::string_view("here").size();
  for (const Departure& d : rows) {
    key = std::max(key, d.key.size());
    left = std::max(left, d.here.size());
  }
  std::string text = str("    ", pad_right("", key), "  ", pad_right("here", left), "  there\n");
  for (const Departure& d : rows) {
    text +=
        str("    ", pad_right(d.key, key), "  ", pad_right(printable(d.here), left), "  ", printable(d.there), "\n");
  }
  return text;
}

std::string show(const Departures& comparison) {
  std::string head = str("  From ", comparison.with, comparison.note.empty() ? "" : str(" (", comparison.note, ")"));
  std::vector<Departure> what, sizes;
  for (const Departure& d : comparison.rows) (d.size ? sizes : what).push_back(d);
  if (comparison.rows.empty()) return str(head, ": no difference\n");
  std::string text = head + "\n";
  if (!what.empty()) text += table(what);
  if (!sizes.empty()) {
    if (!what.empty()) text += "    sizes:\n";
    text += table(sizes);
  }
  return text;
}

std::string unquoted(const std::string& value) {
  return value.size() >= 2 && value.front() == '"' && value.back() == '"' ? value.substr(1, value.size() - 2) : value;
}

std::string remarks_text(const ConfigFile& file) {
  std::vector<ConfigValue> said = file.values;
  std::erase_if(said, [](const ConfigValue& v) { return v.source.empty(); });
  if (file.about.empty() && said.empty()) return "";
  std::string text = "\nThe config's own words\n";
  if (!file.about.empty()) text += str("  ", wrap_text(printable(file.about, 4000), kWidth, 2, 2), "\n");
  size_t key = 0, value = 0;
  for (ConfigValue& v : said) {
    v.value = unquoted(v.value);
    key = std::max(key, v.key.size());
    value = std::max(value, v.value.size());
  }
  for (const ConfigValue& v : said) {
    std::string head = str("    ", pad_right(printable(v.key), key), "  ", pad_right(printable(v.value), value), "  ");
    text += str(head, wrap_text(printable(v.source, 500), kWidth, head.size(), head.size()), "\n");
  }
  return text;
}

}  // namespace

Explained read_explained(const std::string& given, const std::vector<Setting>& overrides) {
  const bool is_run = exists(given + "/config.toml");
  ConfigFile file = given.empty() ? ConfigFile{} : read_config(is_run ? given + "/config.toml" : given);
  file.settings.insert(file.settings.end(), overrides.begin(), overrides.end());
  Explained explained{given, make_train_config(file.settings), is_run ? ConfigFile{} : std::move(file)};
  explained.config.validate_settings();
  return explained;
}

std::string explain_text(const Explained& e) {
  std::vector<ExplainedSection> sections = explain_sections(e.config);
  const size_t width = label_width(sections);
  std::string text = heading(e);
  for (const ExplainedSection& section : sections) {
    text += str("\n", section.title, "\n");
    for (const ExplainedLine& line : section.lines) text += show(line, width);
  }
  text += remarks_text(e.file);
  text += "\nDepartures\n";
  for (const Departures& comparison : explain_comparisons(e.config, e.name)) text += show(comparison);
  return text;
}

namespace {

// The page says what the method and its preset are, and departures are of the rest.
bool is_left_out(const FieldValue& f) {
  return !is_departure(f.effect) || f.key == "method.name" || f.key == "method.preset";
}

std::string plain(const std::string& value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') return value.substr(1, value.size() - 2);
  return value.ends_with(".0") ? value.substr(0, value.size() - 2) : value;
}

TrainConfig bare(const std::string& method, const std::string& preset) {
  return make_train_config({{"method.name", method, "explain", false}, {"method.preset", preset, "explain", false}});
}

template <class Keep>
std::vector<Departure> only(std::vector<Departure> rows, Keep keep) {
  std::erase_if(rows, [&](const Departure& row) { return !keep(row); });
  return rows;
}

// The embedded configs with a paper's or a release's values of this method: the 7b ones, or whatever size there is.
std::vector<std::string> published(const std::string& method) {
  std::vector<std::string> all, of_7b;
  for (const std::string& name : config_names()) {
    if (name.find("-paper-") == std::string::npos && name.find("-released-") == std::string::npos) continue;
    if (make_train_config(read_config_file(name)).method_name != method) continue;
    if (name.ends_with("-7b")) of_7b.push_back(name);
    all.push_back(name);
  }
  return of_7b.empty() ? all : of_7b;
}

bool is_method_part(const Departure& row) {
  return row.key.starts_with("method.") || row.key.starts_with("objective.");
}

}  // namespace

std::vector<Departure> departures(const TrainConfig& here, const TrainConfig& there) {
  std::map<std::string, FieldValue> other;
  for (FieldValue& f : fields_of(there)) other[f.key] = std::move(f);
  std::vector<Departure> rows;
  for (const FieldValue& f : fields_of(here)) {
    auto at = other.find(f.key);
    std::string value = at == other.end() ? "-" : at->second.value;
    if (at != other.end()) other.erase(at);
    if (value == f.value || is_left_out(f)) continue;
    rows.push_back({f.key, plain(f.value), plain(value), f.effect == Effect::size});
  }
  for (const auto& [key, f] : other) {  // options of the other method
    if (!is_left_out(f)) rows.push_back({key, "-", plain(f.value), f.effect == Effect::size});
  }
  return rows;
}

std::vector<Departures> explain_comparisons(const TrainConfig& config, const std::string& name) {
  std::vector<Departures> comparisons;
  for (const std::string& preset : config.method->row().presets) {
    comparisons.push_back({str("preset ", preset, " of ", config.method_name),
                           preset == config.method_preset ? "in use" : "",
                           only(departures(config, bare(config.method_name, preset)), is_method_part)});
  }
  comparisons.push_back({"the program's defaults", "reward, data, rollout, update, optimizer",
                         only(departures(config, bare(config.method_name, config.method_preset)),
                              [](const Departure& row) { return !is_method_part(row); })});
  for (const std::string& other : published(config.method_name)) {
    if (other == name) continue;
    comparisons.push_back({other, "", departures(config, make_train_config(read_config_file(other)))});
  }
  return comparisons;
}

}  // namespace ucas
