#include "data/problems.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <regex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/str.h"

namespace ucas {

namespace {

constexpr size_t kRepeatsShown = 5;
constexpr size_t kLongestForPattern = 200;  // bytes; std::regex recurses by the length of a text

int64_t characters(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

void add_value(ColumnSummary& column, const Json& value) {
  ++column.rows;
  ++column.types[value.type_name()];
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    column.lengths.add(characters(text));
    column.empty += trim(text).empty();
  } else if (value.is_array()) {
    column.lengths.add(std::ssize(value));
    column.empty += value.empty();
  }
  if (column.example.empty()) column.example = value.is_string() ? value.get<std::string>() : json_text(value);
}

bool matches(const std::string& text, const std::regex& pattern) {
  return text.size() <= kLongestForPattern && std::regex_match(text, pattern);
}

std::string kind_of_text(const std::string& gold) {
  static const std::regex kWhole("[-+]?(\\d+|\\d{1,3}(,\\d{3})+)");
  static const std::regex kDecimal("[-+]?(\\d+|\\d{1,3}(,\\d{3})+)?\\.\\d+|[-+]?\\d+(\\.\\d+)?[eE][-+]?\\d+");
  static const std::regex kFraction(
      "[-+]?\\d+\\s*/\\s*\\d+|[-+]?\\\\[dt]?frac\\s*(\\{[-+]?\\d+\\}|\\d)(\\{\\d+\\}|\\d)");
  std::string text(trim(gold));
  if (text.size() > 1 && text.front() == '$' && text.back() == '$') text = trim(text.substr(1, text.size() - 2));
  if (text.empty()) return "none";
  if (matches(text, kWhole)) return "whole number";
  if (matches(text, kDecimal)) return "decimal";
  if (matches(text, kFraction)) return "fraction";
  if (is_prose(text)) return "prose";
  if (text.find('\\') != std::string::npos || text.find_first_of("^_=") != std::string::npos) return "LaTeX or formula";
  if (text.find(',') != std::string::npos && text.find_first_of("0123456789") != std::string::npos) {
    return "several values";
  }
  return std::ranges::any_of(text, [](unsigned char c) { return std::isalpha(c) != 0 || c >= 0x80; }) ? "words"
                                                                                                      : "other";
}

}  // namespace

int64_t Lengths::at(double share) const {
  if (all_.empty()) return 0;
  if (!std::exchange(sorted_, true)) std::ranges::sort(all_);
  return all_[static_cast<size_t>(share * static_cast<double>(all_.size() - 1))];
}

FileSummary summarize_file(const std::string& path) {
  FileSummary summary{.path = path, .columns = {}};
  std::unordered_map<std::string, size_t> places;
  read_json_lines(path, BadRows::stop, [&](const JsonRow& row) {
    ++summary.rows;
    for (const auto& [key, value] : row.value.items()) {
      const auto [place, fresh] = places.emplace(key, summary.columns.size());
      if (fresh) summary.columns.push_back({.name = key, .types = {}, .lengths = {}, .example = {}});
      if (!value.is_null()) add_value(summary.columns[place->second], value);
    }
  });
  return summary;
}

std::string gold_kind(const Problem& problem) {
  if (problem.gold.empty()) return "none";
  if (!problem.choices.empty()) return "choice";
  if (holds_tests(problem.gold.front())) return "program tests";
  return kind_of_text(problem.gold.front());
}

ProblemsSummary summarize_problems(const std::vector<Problem>& problems) {
  ProblemsSummary summary;
  std::unordered_map<std::string, const Problem*> questions;
  std::unordered_set<std::string> ids;
  for (const Problem& problem : problems) {
    ++summary.problems;
    ++summary.kinds[gold_kind(problem)];
    ++summary.sources[problem.source];
    ++summary.alternatives[str(problem.gold.size())];
    summary.conversations += !problem.earlier.empty();
    summary.with_system += !problem.system.empty();
    summary.questions.add(characters(problem.text));
    summary.repeated_ids += !ids.insert(str(problem.source, "\n", problem.id)).second;
    std::string question;
    for (const Turn& turn : problem.earlier) question += str(turn.role, ": ", turn.content, "\n");
    question += trim(problem.text);
    const auto [first, fresh] = questions.emplace(std::move(question), &problem);
    if (fresh) continue;
    ++summary.repeated_questions;
    summary.contradictions += first->second->gold != problem.gold;
    if (summary.examples.size() < kRepeatsShown) {
      summary.examples.push_back(str(printable(first->second->id, 60), " and ", printable(problem.id, 60),
                                     first->second->gold != problem.gold ? " (with different answers): " : ": ",
                                     printable(trim(problem.text), 100)));
    }
  }
  return summary;
}

}  // namespace ucas
