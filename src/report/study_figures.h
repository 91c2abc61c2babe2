// The figures of a paper from finished runs, each as SVG (for documents and the report) and CSV (the numbers in it).
// Every one is made from run directories alone (docs/formats.md). Fed by `ucas study`, `ucas compare`, `ucas report`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/compare/groups.h"
#include "results/table.h"

namespace ucas {

struct StudyFigure {
  std::string name;   // file stem: "passk", "dynamics-entropy"
  std::string title;  // a line above it
  std::string note;   // a line or two below: what was plotted over what, how the intervals were made
  std::string svg;    // whole document, self-contained, readable on light and dark ground; "" for a text
  std::string csv;
  std::string markdown;  // instead of svg, where the figure is a text or a table ("case")
  std::string table;     // Markdown below the figure: what its curves come to
};

// What is to be plotted.
enum class FigureKind {
  dynamics,    // validation accuracy, training reward, length and entropy against the step; mean and band over seeds
  passk,       // pass@k against k with intervals, one curve a group
  confidence,  // response confidence before and after training, z-scored, by right before / right after (1-1 .. 0-0)
  bars,        // a result per group with spread over seeds
  cases        // responses of the base and of every group to one problem, side by side
};

struct FigureRequest {
  FigureKind kind = FigureKind::dynamics;
  std::vector<std::string> runs;      // run directories; groups and seeds as in the report
  std::string data;                   // which evaluation (eval/NAME); "" = the only one, or the first
  std::string metric = "greedy";      // bars: "greedy", "mean@16", "pass@16", "length" ...
  std::vector<std::string> problems;  // cases: ids; empty = two that the groups answer differently
  std::vector<std::string> sources;   // passk, confidence: sets of problems, a figure each; empty = every one
};

// Nothing where the runs lack what the figure is made of, with a warning that says what.
std::vector<StudyFigure> study_figures(const FigureRequest& request);

// DIRECTORY/NAME.svg, .csv and .md of each. Returns the paths.
std::vector<std::string> write_figures(const std::vector<StudyFigure>& figures, const std::string& directory);

// The figures of report/study_figures.h one by one, from runs that are read and grouped already: the report and the
// files of a study share them. Error(ErrorKind::empty) where the runs lack what it is made of.

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
constexpr size_t kMostSources = 4;  // get a panel each where nothing else is asked for; more together, if they can be
// Sets of problems that get a panel each: those asked for that the evaluation has, else all it has if there are
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
