// Is an evaluation what its card says? Every stored response is graded again, every figure counted again by the same
// code (score.h), every hash taken again, and all of it compared with the stored files field by field. Notices any
// change that is not consistent through responses, verdicts, figures, hashes and card at once; a forgery that is can
// only be found by generating again (`ucas evaluate` with the card's settings gives the same bytes).
// For `ucas verify-run`. LibTorch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ucas {

struct CheckAgainst {
  std::string data;   // directory of the problem files, or a file; "" = not at hand
  std::string model;  // directory of the checkpoint; "" = not at hand
};

struct CardFinding {
  std::string place;  // file, or file:line
  std::string field;  // "greedy.verdict", "by_source.aime24.greedy.pass@1.low"
  std::string stored, recomputed;
};

struct CardCheck {
  std::string card, version, made;  // the card's name; of ucas; when
  int64_t problems = 0, responses = 0, figures = 0, hashes = 0, decoded = 0;
  std::vector<CardFinding> findings;
  std::vector<std::string> remarks;  // what could not be checked, and why
};

// RUN/eval/NAME.*. Errors: path where a file is missing, those of read_card, read_outputs and read_json_lines.
CardCheck check_card(const std::string& run, const std::string& name, const CheckAgainst& against);

// Names of the evaluations of a run that have a card.
std::vector<std::string> carded_evaluations(const std::string& run);

}  // namespace ucas
