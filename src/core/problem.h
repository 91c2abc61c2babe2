// What a model is asked, and what counts as right. Made by data/problems, read by train and evaluate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ucas {

// Of a conversation: "user" or "assistant".
struct Turn {
  std::string role, content;
};

struct Problem {
  std::string id;                    // from the file, or "FILE-STEM/LINE"
  std::string source;                // data_source of the verl schema, else the file's stem; metrics are kept by source
  std::string subject;               // a finer division of the source, where the data has one
  std::string text;                  // the question, before any template
  std::string system;                // system message of a verl prompt[], if any
  std::vector<std::string> gold;     // alternatives, any one counts; empty only where no right answer is asked for
  std::vector<std::string> choices;  // of a multiple-choice question, A first; gold is then the letter
  std::vector<Turn> earlier;         // of a conversation whose last turn is `text`
};

}  // namespace ucas
