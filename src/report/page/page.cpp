#include "report/page/page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/str.h"
#include "report/alarms.h"
#include "report/escape.h"
#include "report/page/curves.h"
#include "report/page/explorer.h"
#include "report/page/template.h"
#include "report/study_figures.h"

namespace ucas {

namespace {

constexpr int64_t kChartBudget = 3 << 20;
constexpr size_t kMostNamed = 6;  // groups in a title
constexpr const char* kTokensLead =
    "Each token coloured by one recorded quantity. Point at a token or tap it, or move with the arrow keys, to read "
    "all of them; the address of the page then leads to that token.";

// Distinct nonempty values of one env.json key over all runs.
std::string env_values(const std::vector<RunRecord>& runs, const std::string& key, int path_parts = 0) {
  std::vector<std::string> values;
  for (const RunRecord& run : runs) {
    std::string value = run.environment(key);
    if (path_parts > 0) value = short_path(value, path_parts);
    if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  if (values.size() > 3) return str(values[0], " and ", values.size() - 1, " others");
  return join(values, ", ");
}

std::string list_with_and(const std::vector<std::string>& items) {
  if (items.size() < 2) return items.empty() ? "" : items[0];
  return str(join({items.begin(), items.end() - 1}, ", "), " and ", items.back());
}

std::string own_title(const std::vector<RunGroup>& groups) {
  std::vector<std::string> trained, other;
  for (const RunGroup& group : groups) (group.trained ? trained : other).push_back(group.title);
  if (std::max(trained.size(), other.size()) > kMostNamed) {
    return trained.empty() ? str("Evaluation of ", other.size(), " models")
                           : str(trained.size(), " trained groups, side by side");
  }
  if (trained.empty()) return "Evaluation of " + list_with_and(other);
  return list_with_and(trained) + (trained.size() > 1 ? ", side by side" : "");
}

// "2026-01-31T12:00:00Z" -> "2026-01-31 12:00 UTC"; anything else as it is.
std::string readable_time(const std::string& text) {
  bool iso = text.size() == 20 && text[10] == 'T' && text[13] == ':' && text.back() == 'Z';
  return iso ? str(text.substr(0, 10), " ", text.substr(11, 5), " UTC") : text;
}

// Two FNV-1a hashes of everything on the page: text inside the page cannot know the nonce beforehand.
std::string fingerprint(const std::string& text) {
  std::string out;
  for (uint64_t hash : {uint64_t{0xcbf29ce484222325}, uint64_t{0x84222325cbf29ce4}}) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[hash >> shift & 15];
  }
  return out;
}

}  // namespace

struct Page::Parts {
  std::vector<RunGroup> groups;
  std::vector<ResultTable> summaries;
  AlarmReport alarms;
  Explorer explorer;
  std::string title;
  OrderedJson sections = OrderedJson::array();

  // Where there is nothing to show there is no section.
  void add(const char* id, const char* name, bool open, const std::string& content, const std::string& lead = "") {
    if (content.empty()) return;
    sections.push_back(
        {{"id", id}, {"name", name}, {"open", open}, {"lead", lead}, {"content", content}, {"serious", ""}});
  }
};

namespace {

class Facts {
 public:
  explicit Facts(const std::vector<RunRecord>& runs) : runs_(runs) {}

  OrderedJson list(const std::vector<RunGroup>& groups) {
    std::set<int64_t> seeds;
    double steps = 0;
    for (const RunGroup& group : groups) {
      for (const RunRecord* run : group.runs) {
        if (run->seed >= 0) seeds.insert(run->seed);
        if (!run->steps.empty()) steps = std::max(steps, run->steps.step.back());
      }
    }
    std::vector<std::string> seed_texts, started;
    for (int64_t seed : seeds) seed_texts.push_back(str(seed));
    for (const RunRecord& run : runs_) {
      if (!run.environment("started").empty()) started.push_back(run.environment("started"));
    }
    add(seeds.size() == 1 ? "Seed" : "Seeds", join(seed_texts, ", "));
    add("Training", steps > 0 ? str(grouped(static_cast<int64_t>(steps)), " steps") : "");
    add("Model", of("model", 2));
    add("Parameters", parameters());
    add("Data", of("data", 1));
    add("Device", machine());
    if (!of("isa").empty()) add("Instruction set", of("isa"), of("isa_reason"));
    const std::string version = of("version"), torch = of("torch");
    if (!version.empty()) add("Version", str("ucas ", version, torch.empty() ? "" : ", LibTorch ", torch));
    add("Resumed with changes", of("remarks"));
    if (!started.empty()) add("Started", readable_time(*std::ranges::min_element(started)));
    return facts_;
  }

 private:
  std::string of(const char* key, int path_parts = 0) const { return env_values(runs_, key, path_parts); }
  void add(const char* name, const std::string& value, const std::string& small = "") {
    if (!value.empty()) facts_.push_back({{"name", name}, {"value", value}, {"small", small}});
  }
  std::string parameters() const {
    const std::string text = of("parameters");
    const bool whole = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 16;
    return whole ? grouped(std::stoll(text)) : text;
  }
  std::string machine() const {
    const std::string device = of("device"), threads = of("threads");
    if (threads.empty()) return device;
    return str(device, device.empty() ? "" : ", ", threads, threads == "1" ? " thread" : " threads");
  }

  const std::vector<RunRecord>& runs_;
  OrderedJson facts_ = OrderedJson::array();
};

void add_alarms(Page::Parts& page) {
  OrderedJson rows = OrderedJson::array();
  int64_t serious = 0;
  for (const Alarm& alarm : page.alarms.alarms) {
    serious += alarm.serious;
    rows.push_back({{"kind", alarm.serious ? "serious" : "mild"},
                    {"title", alarm.title},
                    {"where", str(alarm.group, alarm.run.empty() ? "" : ": ", alarm.run)},
                    {"what", alarm.what},
                    {"cause", alarm.cause}});
  }
  const std::string lead = serious > 0 ? "" : rows.empty() ? "None." : "None; what follows is worth knowing.";
  page.add("alarms", "Alarms", true,
           render("alarms.html", {{"some", !rows.empty()}, {"alarms", rows}, {"quiet", join(page.alarms.quiet, ", ")}}),
           lead);
  if (serious > 0) page.sections.back()["serious"] = serious;
}

void add_curves(Page::Parts& page, const CurvesPage& curves) {
  const bool several = std::ranges::any_of(page.groups, [](const RunGroup& group) { return group.runs.size() > 1; });
  std::string lead = "Move over a chart, or use the arrow keys, to read all runs at one step.";
  if (several) lead += " Lines are means over seeds, bands one standard deviation to either side.";
  if (curves.stride > 1) lead += str(" Long runs: one step in ", curves.stride, " is drawn.");
  page.add("curves", "Curves", true, curves.html, lead);
}

void add_sources(Page::Parts& page) {
  Table table{.head = {"run", "shown as", "seed", "holds", "missing"}, .kind = "plain left"};
  for (const RunGroup& group : page.groups) {
    for (const RunRecord* run : group.runs) {
      std::string parts = "no training steps";
      if (!run->steps.empty()) {
        parts = str(std::ranges::count_if(run->steps.step, [](double s) { return s > 0; }), " steps");
      }
      parts += ", " + many(std::ssize(run->evaluations), "evaluation");
      std::string missing = run->missing.empty() ? "nothing" : join(run->missing, "; ");
      if (!run->remarks.empty()) missing += "; " + join(run->remarks, "; ");
      table.add({run->name, group.title, run->seed >= 0 ? Cell(str(run->seed)) : Cell::unknown(), parts, missing});
    }
  }
  page.add("sources", "Sources", false,
           render("sources.html", {{"table", render(table)}, {"no_tokens", page.explorer.empty()}}));
}

OrderedJson head_of(const std::vector<RunRecord>& runs, const Page::Parts& page) {
  OrderedJson methods = OrderedJson::array();
  const bool many = page.groups.size() > 2 * kMostNamed;
  for (size_t g = 0; g < page.groups.size() && !many; ++g) {
    methods.push_back({{"more", g > 0}, {"method", page.groups[g].title}});
  }
  return {{"title", page.title},
          {"about", env_values(runs, "about")},
          {"compared", true},
          {"methods", methods},
          {"compared_many", many ? str(page.groups.size(), " groups, see the table") : ""},
          {"facts", Facts(runs).list(page.groups)},
          {"sections", page.sections}};
}

}  // namespace

Page::Page(const std::vector<RunRecord>& runs, const std::string& title)
    : runs_(runs), parts_(std::make_unique<Parts>()) {
  parts_->groups = group_runs(runs);
  parts_->summaries = results_of(parts_->groups);
  parts_->alarms = find_alarms(parts_->groups, parts_->summaries);
  parts_->explorer = read_explorer(parts_->groups);
  parts_->title = title.empty() ? own_title(parts_->groups) : title;
}

Page::~Page() = default;

std::string Page::html(const SampleLimits& limits) {
  Parts& page = *parts_;
  page.sections = OrderedJson::array();
  const CurvesPage curves = curves_page(page.groups, make_panels(page.groups, page.summaries, kChartBudget));
  const ExplorerPage tokens = explorer_page(page.explorer, limits.token_bytes);
  page.add("results", "Results", true, results_html(page.groups, page.summaries));
  add_alarms(page);
  page.add("tokens", "Tokens", true, tokens.html, kTokensLead);
  add_curves(page, curves);
  page.add("figures", "Figures", true, figures_html(page.groups));
  page.add("responses", "Responses", true, responses_html(page.groups, limits));
  page.add("time", "Time", false, time_html(page.groups));
  page.add("settings", "Settings", false, settings_html(page.groups));
  add_sources(page);
  const std::string main = render("main.html", head_of(runs_, page));
  const std::string data = script_json(curves.json), token_data = script_json(tokens.json);
  OrderedJson groups = OrderedJson::array();
  for (const RunGroup& group : page.groups) {
    groups.push_back({{"index", groups.size()}, {"color", group.color}, {"group", group.title}});
  }
  for (OrderedJson& section : page.sections) section.erase("content");  // it stands in main
  return render("page.html", {{"nonce", fingerprint(main + data + token_data)},
                              {"title", page.title},
                              {"style", str(asset("report.css"), asset("figures.css"), asset("explorer.css"))},
                              {"sections", page.sections},
                              {"groups", groups},
                              {"main", main},
                              {"data", data},
                              {"token_data", token_data},
                              {"script", str(asset("report.js"), asset("explorer.js"))}});
}

}  // namespace ucas
