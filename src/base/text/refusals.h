// What is wrong with one input, collected, so that a user is told all of it at once and not one thing a try.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ucas {

class Refusals {
 public:
  explicit Refusals(ErrorKind kind) : kind_(kind) {}

  void operator()(std::string what) { what_.push_back(std::move(what)); }
  // What `check` throws of this kind is one more; anything else goes on its way.
  template <class Check>
  void attempt(Check check) {
    try {
      check();
    } catch (const Error& error) {
      if (error.kind() != kind_) throw;
      what_.push_back(error.what());
    }
  }
  bool none() const { return what_.empty(); }
  // Error with a line for each, if there are any.
  void finish() const {
    if (what_.empty()) return;
    std::string text = what_[0];
    for (size_t i = 1; i < what_.size(); ++i) text += "\n" + what_[i];
    throw Error(kind_, text);
  }

 private:
  ErrorKind kind_;
  std::vector<std::string> what_;
};

}  // namespace ucas
