#include "report/report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/embedded.h"
#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "report/alarms.h"
#include "report/benchmarks.h"
#include "report/escape.h"
#include "report/explorer.h"
#include "report/figure_section.h"
#include "report/panels.h"
#include "report/samples.h"
#include "report/summary.h"
#include "report/tables.h"

namespace ucas {

namespace {

constexpr int64_t kChartBudget = 3 << 20;
constexpr size_t kMostNamed = 6;      // groups in a title
constexpr size_t kMostFindings = 12;  // sentences before they are folded away
constexpr const char* kTokensLead =
    "Each token coloured by one recorded quantity. Point at a token or tap it, or move with the arrow keys, to read "
    "all of them.";

std::string_view asset(const char* name) {
  auto text = embedded(name);
  UCAS_CHECK(text.has_value(), "a report asset is not embedded");
  return *text;
}

// Distinct nonempty values of one env.json key over all runs.
std::string values_of(const std::vector<RunRecord>& runs, const std::string& key, int path_parts = 0) {
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

// Minus signs before numbers, as print has them.
std::string with_minus_signs(const std::string& html) {
  std::string out;
  for (size_t i = 0; i < html.size(); ++i) {
    bool minus = html[i] == '-' && i > 0 && (html[i - 1] == ' ' || html[i - 1] == '(') && i + 1 < html.size() &&
                 html[i + 1] >= '0' && html[i + 1] <= '9';
    out += minus ? "&#8722;" : std::string(1, html[i]);
  }
  return out;
}

class Page {
 public:
  Page(const std::vector<RunRecord>& runs, const std::string& title)
      : runs_(runs),
        groups_(group_runs(runs)),
        summaries_(results_of(groups_)),
        alarms_(find_alarms(groups_, summaries_)),
        explorer_(read_explorer(groups_)),
        title_(title.empty() ? own_title(groups_) : title) {}

  std::string html(const SampleLimits& limits) {
    sections_.clear();
    std::string main = header();  // one after the other: the navigation keeps their order
    main += results();
    main += alarms();
    main += curves();
    main += section("figures", "Figures", figures_html(groups_));
    main += samples(limits);
    ExplorerPage tokens = explorer_page(explorer_, limits.token_bytes);
    main += section("tokens", "Tokens", tokens.html, kTokensLead);
    main += time();
    main += settings();
    main += sources();
    std::string data = script_json(panels_json(groups_, panels_));
    std::string script = str(asset("report/assets/report.js"), asset("report/assets/explorer.js"));
    std::string token_data = script_json(tokens.json);
    std::string nonce = fingerprint(main + data + token_data);
    auto json = [&](const char* id, const std::string& text) {
      if (text.empty()) return std::string();
      return str("<script type=\"application/json\" id=\"", id, "\" nonce=\"", nonce, "\">", text, "</script>\n");
    };
    return str(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'nonce-",
        nonce,
        "'; base-uri 'none'; form-action 'none'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"generator\" content=\"ucas\">\n<title>",
        html_text(title_), "</title>\n<style>\n", asset("report/assets/report.css"), asset("report/assets/figures.css"),
        asset("report/assets/explorer.css"),
        "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">to the results</a>\n", navigation(),
        "<main id=\"main\">\n", main, "</main>\n", json("data", data), json("token-data", token_data),
        "<script nonce=\"", nonce, "\">\n", script, "</script>\n</body>\n</html>\n");
  }

 private:
  // Two FNV-1a hashes of everything on the page: text inside the page cannot know the nonce beforehand.
  static std::string fingerprint(const std::string& text) {
    std::string out;
    for (uint64_t hash : {uint64_t{0xcbf29ce484222325}, uint64_t{0x84222325cbf29ce4}}) {
      for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
      for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[hash >> shift & 15];
    }
    return out;
  }

  std::string section(const char* id, const char* name, const std::string& content, const std::string& lead = "") {
    if (content.empty()) return "";
    sections_.emplace_back(id, name);
    return str("<section id=\"", id, "\" aria-labelledby=\"", id, "-title\"><h2 id=\"", id, "-title\">", name, "</h2>",
               lead.empty() ? "" : str("<p class=\"lead\">", lead, "</p>"), content, "</section>\n");
  }

  std::string navigation() const {
    std::string links, keys;
    for (const auto& [id, name] : sections_) {
      links += str("<a href=\"#", id, "\">", name);
      size_t serious = static_cast<size_t>(
          std::count_if(alarms_.alarms.begin(), alarms_.alarms.end(), [](const Alarm& a) { return a.serious; }));
      if (std::string_view(id) == "alarms" && serious > 0) links += str("<span class=\"count\">", serious, "</span>");
      links += "</a>";
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      keys += str("<button type=\"button\" class=\"legend\" data-group=\"", g,
                  "\" aria-pressed=\"true\" title=\"show or hide in the charts\">", color_key(groups_[g]),
                  html_text(groups_[g].title), "</button>");
    }
    return str(
        "<nav aria-label=\"sections\"><div class=\"bar-in\"><span class=\"mark\">ucas</span><div class=\"links\">",
        links, "</div><div class=\"legends\">", keys,
        "</div><button type=\"button\" id=\"theme\" title=\"light, dark or as the "
        "system\">theme</button></div></nav>\n");
  }

  std::string header() {
    std::string facts;
    auto fact = [&](const char* name, const std::string& value) {
      if (!value.empty()) facts += str("<div><dt>", name, "</dt><dd>", value, "</dd></div>");
    };
    std::vector<std::string> methods;
    std::set<int64_t> seeds;
    double steps = 0;
    for (const RunGroup& group : groups_) {
      methods.push_back(str("<span class=\"nowrap\">", html_text(group.title), "</span>"));
      for (const RunRecord* run : group.runs) {
        if (run->seed >= 0) seeds.insert(run->seed);
        if (!run->steps.empty()) steps = std::max(steps, run->steps.step.back());
      }
    }
    std::vector<std::string> seed_texts;
    for (int64_t seed : seeds) seed_texts.push_back(str(seed));
    std::string model = values_of(runs_, "model", 2), parameters = values_of(runs_, "parameters");
    if (methods.size() > 2 * kMostNamed) methods = {str(methods.size(), " groups, see the table")};
    fact("Compared", join(methods, ", "));
    fact(seeds.size() == 1 ? "Seed" : "Seeds", html_text(join(seed_texts, ", ")));
    if (steps > 0) fact("Training", str(grouped(static_cast<int64_t>(steps)), " steps"));
    fact("Model", html_text(model));
    bool whole = !parameters.empty() && parameters.find_first_not_of("0123456789") == std::string::npos &&
                 parameters.size() < 16;
    fact("Parameters", html_text(whole ? grouped(std::stoll(parameters)) : parameters));
    fact("Data", html_text(values_of(runs_, "data", 1)));
    std::string about = values_of(runs_, "about");
    if (!about.empty()) about = str("<p class=\"about\">", html_text(about), "</p>");
    std::string isa = values_of(runs_, "isa"), reason = values_of(runs_, "isa_reason");
    std::string device = values_of(runs_, "device"), threads = values_of(runs_, "threads");
    std::string machine = html_text(device);
    if (!threads.empty())
      machine += str(machine.empty() ? "" : ", ", html_text(threads), threads == "1" ? " thread" : " threads");
    fact("Device", machine);
    if (!isa.empty()) {
      fact("Instruction set",
           str(html_text(isa), reason.empty() ? "" : str(" <small>", html_text(reason), "</small>")));
    }
    std::string version = values_of(runs_, "version"), torch = values_of(runs_, "torch");
    if (!version.empty())
      fact("Version", str("ucas ", html_text(version), torch.empty() ? "" : str(", LibTorch ", html_text(torch))));
    std::vector<std::string> started;
    for (const RunRecord& run : runs_) {
      if (!run.environment("started").empty()) started.push_back(run.environment("started"));
    }
    std::string remarks = values_of(runs_, "remarks");
    if (!remarks.empty()) fact("Resumed with changes", html_text(remarks));
    if (!started.empty()) fact("Started", html_text(readable_time(*std::min_element(started.begin(), started.end()))));
    return str("<header class=\"top\"><h1>", html_text(title_), "</h1>", about, "<dl class=\"facts\">", facts,
               "</dl></header>\n");
  }

  // The sentences; where they are many, first how many of them tell a difference.
  std::string findings(const ResultTable& summary) const {
    if (summary.differences.empty()) return "";
    std::string list;
    size_t significant = 0;
    for (const Difference& d : summary.differences) {
      const char* mark = !d.contrast.significant ? "level" : d.contrast.change.value > 0 ? "up" : "down";
      significant += d.contrast.significant;
      list += str("<li class=\"", mark, "\">", with_minus_signs(html_text(d.sentence)), "</li>");
    }
    list = str("<ul class=\"findings\">", list, "</ul>");
    size_t all = summary.differences.size();
    if (all <= kMostFindings) return list;
    return str("<p>", significant, " of ", all, " differences are significant.</p><details><summary>all ", all,
               " comparisons</summary>", list, "</details>");
  }

  std::string results() {
    std::string content;
    for (const ResultTable& summary : summaries_) {
      bool several = std::any_of(summary.rows.begin(), summary.rows.end(),
                                 [](const SummaryRow& row) { return row.group->runs.size() > 1; });
      std::string asked = str(html_text(short_path(summary.data, 1)), summary.data.empty() ? "" : ": ",
                              grouped(summary.problems), " problems");
      if (summary.samples > 0) {
        asked += str(", one greedy response and ", summary.samples, " samples each");
        if (!std::isnan(summary.temperature)) asked += str(" at temperature ", summary.temperature);
      }
      content +=
          str("<p class=\"lead\">", asked, ".</p><div class=\"picture\">", summary_picture_html(summary), "</div>");
      content += findings(summary);
      std::string ceiling = ceiling_sentence(summary);
      if (!ceiling.empty()) content += str("<p class=\"quiet\">", html_text(ceiling), "</p>");
      std::string rest = unclaimed_sentence(summary);
      if (!rest.empty()) content += str("<p class=\"quiet\">", html_text(rest), "</p>");
      content += summary_table_html(summary);
      content += benchmarks_html(groups_, summary.data);
      std::string note =
          several
              ? "Figures are mean &#177; standard deviation over seeds; small figures below them: 95 % "
                "t interval of that mean over seeds. "
                "Differences of methods: runs paired by seed, problems by source and id; the interval has the wider "
                "bounds "
                "of a t interval over runs and a bootstrap over runs and problems, p is the larger of both tests. "
              : "Small figures: 95 % interval over problems. Two runs are compared problem by problem: that covers the "
                "choice of problems, not the luck of training, for which it takes more seeds. ";
      if (!summary.interval.empty()) note += str("Intervals of one run: ", html_text(summary.interval), ". ");
      note += str(
          "A difference is called higher or lower only if its interval excludes zero and its corrected p is at most "
          "0.05 (",
          family_text(summary.comparisons, 0.95), ").");
      content += str("<p class=\"note\">", note, "</p>", cards_html(groups_, summary.data));
    }
    if (summaries_.empty())
      content =
          "<p>These runs hold no evaluation on test problems (<code>eval/*.json</code>); the curves below show "
          "training only.</p>";
    return section("results", "Results", content);
  }

  std::string alarms() {
    std::string content;
    for (const Alarm& alarm : alarms_.alarms) {
      content +=
          str("<li class=\"", alarm.serious ? "serious" : "mild", "\"><h3>", alarm.title, " <span class=\"quiet\">",
              html_text(alarm.group), alarm.run.empty() ? "" : ": ", html_text(alarm.run), "</span></h3><p>",
              html_text(alarm.what), ".</p><p class=\"quiet\">", html_text(alarm.cause), "</p></li>");
    }
    if (!content.empty()) content = str("<ul class=\"alarms\">", content, "</ul>");
    if (!alarms_.quiet.empty())
      content += str("<p class=\"note\">Checked and quiet: ", html_text(join(alarms_.quiet, ", ")), ".</p>");
    bool none = std::none_of(alarms_.alarms.begin(), alarms_.alarms.end(), [](const Alarm& a) { return a.serious; });
    std::string lead;
    if (none) lead = alarms_.alarms.empty() ? "None." : "None; what follows is worth knowing.";
    return section("alarms", "Alarms", content, lead);
  }

  std::string curves() {
    panels_ = make_panels(groups_, summaries_, kChartBudget);
    if (panels_.empty()) return "";
    std::string content;
    std::string current;
    int64_t stride = 1;
    for (size_t p = 0; p < panels_.size(); ++p) {
      const Panel& panel = panels_[p];
      stride = std::max(stride, panel.series.stride);
      if (panel.section != current) {
        content +=
            str(current.empty() ? "" : "</div>", "<h3 class=\"part\">", panel.section, "</h3><div class=\"panels\">");
        current = panel.section;
      }
      content += str(
          "<figure class=\"panel\" data-panel=\"", p, "\"><figcaption><h4>", html_text(panel.title), "</h4><code>",
          html_text(panel.key),
          "</code><button type=\"button\" class=\"as-table\" aria-pressed=\"false\">table</button><button "
          "type=\"button\" class=\"save\" title=\"save this chart as SVG\">save</button><p>",
          html_text(panel.help),
          "</p></figcaption><div class=\"read\"></div><div class=\"plot\" tabindex=\"0\" role=\"img\" aria-label=\"",
          html_text(gist(panel)), "\"></div></figure>");
    }
    content += "</div>";
    bool several =
        std::any_of(groups_.begin(), groups_.end(), [](const RunGroup& group) { return group.runs.size() > 1; });
    std::string lead = "Move over a chart, or use the arrow keys, to read all runs at one step.";
    if (several) lead += " Lines are means over seeds, bands one standard deviation to either side.";
    if (stride > 1) lead += str(" Long runs: one step in ", stride, " is drawn.");
    return section("curves", "Curves",
                   "<noscript><p>The charts need JavaScript; the tables do not.</p></noscript>" + content, lead);
  }

  // What a chart says, for those who do not see it.
  std::string gist(const Panel& panel) const {
    std::string text = panel.title;
    for (const GroupSeries& own : panel.series.groups) {
      std::vector<double> known;
      for (double value : own.mean) {
        if (!std::isnan(value)) known.push_back(value);
      }
      if (known.empty()) continue;
      text += str("; ", groups_[own.group].title, " from ", number_text(known.front(), panel.share), " to ",
                  number_text(known.back(), panel.share), panel.share ? " percent" : "");
    }
    return text;
  }

  std::string samples(const SampleLimits& limits) {
    std::string content;
    for (const std::string& data : evaluated_data(groups_)) content += samples_html(groups_, data, limits);
    std::string training = rollouts_html(groups_, limits);
    if (!training.empty())
      content +=
          str("<h3 class=\"part\">Sampled in training</h3><p class=\"note\">The first and the last stored step: "
              "reward and mean advantage of each response.</p>",
              training);
    return section("responses", "Responses", content);
  }

  std::string time() { return section("time", "Time", time_html(groups_)); }
  std::string settings() { return section("settings", "Settings", settings_html(groups_)); }

  std::string sources() {
    std::string rows;
    for (const RunGroup& group : groups_) {
      for (const RunRecord* run : group.runs) {
        std::string parts =
            run->steps.empty()
                ? "no training steps"
                : str(std::count_if(run->steps.step.begin(), run->steps.step.end(), [](double s) { return s > 0; }),
                      " steps");
        parts += str(", ", run->evaluations.size(), run->evaluations.size() == 1 ? " evaluation" : " evaluations");
        rows += str("<tr><th scope=\"row\">", html_text(run->name), "</th><td>", html_text(group.title), "</td><td>",
                    run->seed >= 0 ? str(run->seed) : "&#8211;", "</td><td>", parts, "</td><td>",
                    run->missing.empty() ? "nothing" : html_text(join(run->missing, "; ")),
                    run->remarks.empty() ? "" : "; ", html_text(join(run->remarks, "; ")), "</td></tr>");
      }
    }
    return section(
        "sources", "Sources",
        str("<div class=\"scroll\"><table class=\"plain left\"><thead><tr><th scope=\"col\">run</th><th "
            "scope=\"col\">shown as</th>"
            "<th scope=\"col\">seed</th><th scope=\"col\">holds</th><th scope=\"col\">missing</th></tr></thead><tbody>",
            rows,
            "</tbody></table></div><p class=\"note\">Everything here was read from these run directories and nothing "
            "else. "
            "Names in <code>this type</code> are those of the logs; docs/metrics.md defines each.",
            explorer_.empty()
                ? " None of these runs saved single tokens (<code>train.stored_signals</code>), so there is "
                  "no token explorer."
                : "",
            "</p>"));
  }

  const std::vector<RunRecord>& runs_;
  std::vector<RunGroup> groups_;
  std::vector<ResultTable> summaries_;
  AlarmReport alarms_;
  Explorer explorer_;
  std::string title_;
  std::vector<Panel> panels_;
  std::vector<std::pair<const char*, const char*>> sections_;
};

}  // namespace

std::string report_html(const std::vector<std::string>& paths, const std::string& title, size_t largest) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  SampleLimits limits;
  Page page(runs, title);
  while (true) {
    std::string html = page.html(limits);
    if (html.size() <= largest || limits.bytes < 200) return html;
    limits.token_bytes /= 2;
    limits.bytes /= 2;
    limits.problems = std::max<size_t>(2, limits.problems * 2 / 3);
    limits.responses = std::min<size_t>(limits.responses, 1);
  }
}

size_t write_report(const std::vector<std::string>& runs, const std::string& out_file, const std::string& title) {
  if (runs.empty()) throw Error("usage", "no run directory given, expected at least one");
  const std::string html = report_html(runs, title);
  write_output(out_file, html);
  return html.size();
}

}  // namespace ucas
