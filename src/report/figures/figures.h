// The figures of report/study_figures.h one by one, from runs that are read and grouped already: the report and the
// files of a study share them. Error(ErrorKind::empty) where the runs lack what it is made of.
#pragma once

#include <string>
#include <vector>

#include "compare/groups.h"
#include "report/study_figures.h"
#include "results/table.h"

namespace ucas {

struct FigureInput {
  const std::vector<RunGroup>& groups;
  const FigureRequest& request;
};

std::vector<StudyFigure> dynamics_figures(const FigureInput& in);
std::vector<StudyFigure> passk_figures(const FigureInput& in);
std::vector<StudyFigure> confidence_figures(const FigureInput& in);
std::vector<StudyFigure> bar_figures(const FigureInput& in);
std::vector<StudyFigure> case_figures(const FigureInput& in);

std::vector<StudyFigure> figures_of(const FigureInput& in);  // by request.kind

// What the figures share.
constexpr size_t kMostSources =
    4;  // are drawn one by one where nothing else is asked for; more together, if they can be
// Sets of problems that are drawn one by one: those asked for that the evaluation has, else all it has if there are
// several; {""} = all problems together.
std::vector<std::string> sources_of(const FigureInput& in, const std::string& data);
Cell spread_cell(const std::vector<double>& values, bool share);  // mean and deviation of what is known
std::string asked_data(const FigureInput& in);  // EvalRecord::data that the request means; "" if there is none
std::string data_words(const FigureInput& in, const std::string& data);  // "test.jsonl, 512 problems"
std::string file_word(const std::string& text);  // for a file name: letters, digits and dashes; never empty
// Groups with the same colour (more than seven of them) differ by dashes.
bool dashed(const RunGroup& group, const std::vector<RunGroup>& groups);
std::string metric_words(const std::string& metric);  // "greedy accuracy", "mean@16" ...

}  // namespace ucas
