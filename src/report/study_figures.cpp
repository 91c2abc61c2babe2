#include "report/study_figures.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "report/escape.h"
#include "report/summary.h"
#include "results/table.h"

namespace ucas {

std::string asked_data(const FigureInput& in) {
  for (const RunGroup& group : in.groups) {
    for (const RunRecord* run : group.runs) {
      for (const EvalRecord& e : run->evaluations) {
        if (in.request.data.empty() || e.name == in.request.data || e.data == in.request.data) return e.data;
      }
    }
  }
  return "";
}

std::vector<std::string> sources_of(const FigureInput& in, const std::string& data) {
  std::vector<std::string> all, chosen;
  for (const EvalRecord* e : evaluations_of(in.groups, data)) {
    for (const auto& [source, numbers] : e->by_source)
      if (std::ranges::find(all, source) == all.end()) all.push_back(source);
  }
  std::ranges::sort(all);
  const std::vector<std::string>& asked = in.request.sources;
  for (const std::string& source : asked.empty() ? all : asked) {
    if (std::ranges::find(all, source) != all.end()) chosen.push_back(source);
  }
  if (asked.empty() && chosen.size() < 2) return {""};
  if (chosen.empty()) {
    throw Error(ErrorKind::empty, str("no evaluation has ", join(asked, ", "), "; there is ", join(all, ", ")));
  }
  return chosen;
}

Cell spread_cell(const std::vector<double>& values, bool share) {
  std::vector<double> known;
  for (double value : values) {
    if (!std::isnan(value)) known.push_back(value);
  }
  return Cell::mean({mean_of(known), kUnknown, kUnknown}, deviation_of(known), share);
}

std::string data_words(const FigureInput& in, const std::string& data) {
  int64_t problems = 0;
  std::string suite;
  for (const EvalRecord* e : evaluations_of(in.groups, data)) {
    problems = std::max(problems, e->problems);
    if (suite.empty()) suite = e->suite;
  }
  std::string name = suite.empty() ? short_path(data, 1) : suite;
  return str(name.empty() ? "" : str(name, ", "), grouped(problems), " problems");
}

std::string file_word(const std::string& text) {
  std::string out;
  for (char c : text) {
    bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      out += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "x" : out.substr(0, 60);
}

bool dashed(const RunGroup& group, const std::vector<RunGroup>& groups) {
  size_t before = 0;
  for (const RunGroup& other : groups) {
    if (&other == &group) break;
    before += other.color == group.color;
  }
  return before % 2 == 1;
}

std::string metric_words(const std::string& metric) {
  if (metric == "greedy") return "greedy accuracy";
  if (metric == "length") return "tokens per response";
  if (metric == "entropy") return "entropy, nats";
  if (metric == "truncated" || metric == "unparseable") return str("share of ", metric, " responses");
  return metric;
}

std::vector<StudyFigure> figures_of(const FigureInput& in) {
  constexpr decltype(&bar_figures) kDraw[] = {dynamics_figures, passk_figures, confidence_figures, bar_figures,
                                              case_figures};
  return kDraw[static_cast<size_t>(in.request.kind)](in);
}

std::vector<StudyFigure> study_figures(const FigureRequest& request) {
  std::vector<RunRecord> runs;
  for (const std::string& path : request.runs) runs.push_back(read_run(path));
  const std::vector<RunGroup> groups = group_runs(runs);
  try {
    return figures_of({groups, request});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::empty) throw;
    warn(str("a figure is left out: ", error.what()));
    return {};
  }
}

std::vector<std::string> write_figures(const std::vector<StudyFigure>& figures, const std::string& directory) {
  std::vector<std::string> paths;
  make_directories(directory);
  auto write = [&](const std::string& name, const std::string& text) {
    if (text.empty()) return;
    paths.push_back(path_join(directory, name));
    write_file(paths.back(), text);
  };
  for (const StudyFigure& figure : figures) {
    write(figure.name + ".svg", figure.svg);
    write(figure.name + ".csv", figure.csv);
    write(figure.name + ".md", figure.markdown);
  }
  return paths;
}

}  // namespace ucas
