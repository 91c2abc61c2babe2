#include "report/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "report/alarms.h"
#include "report/escape.h"
#include "report/page/curves.h"
#include "report/page/template.h"
#include "report/study_figures.h"

namespace ucas {

namespace {

constexpr int64_t kChartBudget = 3 << 20, kTokenBudget = 4 << 20;  // bytes
constexpr size_t kMostNamed = 6;                                   // groups in a title
constexpr const char* kTokensLead =
    "Each token coloured by one recorded quantity. Point at a token or tap it, or move with the arrow keys, to read "
    "all of them.";

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

std::string own_title(const std::vector<RunGroup>& groups) {
  std::vector<std::string> trained, other;
  for (const RunGroup& group : groups) (group.trained ? trained : other).push_back(group.title);
  const std::vector<std::string>& named = trained.empty() ? other : trained;
  const std::string names = named.size() > kMostNamed ? many(std::ssize(named), "model") : join(named, ", ");
  return trained.empty() ? "Evaluation of " + names : names;
}

struct PageParts {
  std::vector<RunGroup> groups;
  std::vector<ResultTable> summaries;
  AlarmReport alarms;
  std::string title;
  OrderedJson sections = OrderedJson::array();

  // Where there is nothing to show there is no section.
  void add(const char* id, const char* name, bool open, const std::string& content, const std::string& lead = "") {
    if (content.empty()) return;
    sections.push_back(
        {{"id", id}, {"name", name}, {"open", open}, {"lead", lead}, {"content", content}, {"serious", ""}});
  }
};

OrderedJson facts_of(const std::vector<RunRecord>& runs, const std::vector<RunGroup>& groups) {
  OrderedJson facts = OrderedJson::array();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts.push_back({{"name", name}, {"value", value}});
  };
  std::set<int64_t> seeds;
  double steps = 0;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      if (run->seed >= 0) seeds.insert(run->seed);
      if (!run->steps.empty()) steps = std::max(steps, run->steps.step.back());
    }
  }
  std::vector<std::string> seed_texts;
  for (int64_t seed : seeds) seed_texts.push_back(str(seed));
  add(seeds.size() == 1 ? "Seed" : "Seeds", join(seed_texts, ", "));
  add("Training", steps > 0 ? str(grouped(static_cast<int64_t>(steps)), " steps") : "");
  struct Fact {
    const char *name, *key;
    int path_parts;
  };
  for (const auto& [name, key, parts] : {Fact{"Model", "model", 2},
                                         {"Parameters", "parameters", 0},
                                         {"Data", "data", 1},
                                         {"Device", "device", 0},
                                         {"Threads", "threads", 0},
                                         {"Instruction set", "isa", 0},
                                         {"Version of ucas", "version", 0},
                                         {"LibTorch", "torch", 0},
                                         {"Resumed with changes", "remarks", 0},
                                         {"Started", "started", 0}}) {
    add(name, env_values(runs, key, parts));
  }
  return facts;
}

void add_alarms(PageParts& page) {
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

void add_curves(PageParts& page, const CurvesPage& curves) {
  const bool several = std::ranges::any_of(page.groups, [](const RunGroup& group) { return group.runs.size() > 1; });
  std::string lead = several ? "Lines are means over seeds, bands one standard deviation to either side. " : "";
  if (curves.stride > 1) lead += str("Long runs: one step in ", curves.stride, " is plotted.");
  page.add("curves", "Curves", true, curves.html, lead);
}

void add_sources(PageParts& page, bool no_tokens) {
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
  page.add("sources", "Sources", false, render("sources.html", {{"table", render(table)}, {"no_tokens", no_tokens}}));
}

OrderedJson head_of(const std::vector<RunRecord>& runs, const PageParts& page) {
  return {{"title", page.title},
          {"about", env_values(runs, "about")},
          {"facts", facts_of(runs, page.groups)},
          {"sections", page.sections}};
}

}  // namespace

std::string report_html(const std::vector<std::string>& paths, const std::string& title) {
  const std::vector<RunRecord> runs = read_runs(paths);
  PageParts page;
  page.groups = group_runs(runs);
  page.summaries = results_of(page.groups);
  page.alarms = find_alarms(page.groups, page.summaries);
  page.title = title.empty() ? own_title(page.groups) : title;
  const ExplorerPage tokens = explorer_page(page.groups, kTokenBudget);
  page.add("results", "Results", true, results_html(page.groups, page.summaries));
  add_alarms(page);
  page.add("tokens", "Tokens", true, tokens.html, kTokensLead);
  add_curves(page, curves_page(page.groups, kChartBudget));
  page.add("responses", "Responses", true, responses_html(page.groups));
  page.add("settings", "Settings", false, settings_html(page.groups));
  add_sources(page, tokens.html.empty());
  const std::string main = render("main.html", head_of(runs, page));
  const std::string token_data = script_json(tokens.json);
  for (OrderedJson& section : page.sections) section.erase("content");  // it is in main
  return render("page.html",
                {{"nonce", hash_of_text(main + token_data)},  // no text inside the page knows it beforehand
                 {"title", page.title},
                 {"style", str(asset("report.css"), asset("figures.css"), asset("explorer.css"))},
                 {"sections", page.sections},
                 {"main", main},
                 {"token_data", token_data},
                 {"script", str(asset("report.js"), asset("explorer.js"))}});
}

size_t write_report(const std::vector<std::string>& runs, const std::string& out_file, const std::string& title) {
  if (runs.empty()) throw Error(ErrorKind::usage, "no run directory given, expected at least one");
  const std::string html = report_html(runs, title);
  write_output(out_file, html);
  return html.size();
}

}  // namespace ucas
