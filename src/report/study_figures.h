// The figures of a paper from finished runs, each as SVG (for documents and the report) and CSV (the numbers in it).
// Every one is made from run directories alone (docs/formats.md). Fed by `ucas study`, `ucas compare`, `ucas report`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ucas {

struct StudyFigure {
  std::string name;   // file stem: "passk", "dynamics-entropy"
  std::string title;  // a line above it
  std::string note;   // a line or two below: what was drawn over what, how the intervals were made
  std::string svg;    // whole document, self-contained, readable on light and dark ground; "" for a text
  std::string csv;
  std::string markdown;  // instead of svg, where the figure is a text or a table ("case")
  std::string table;     // Markdown below the figure: what its curves come to
};

// What is to be drawn.
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

}  // namespace ucas
