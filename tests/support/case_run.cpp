#include "support/case_run.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"

namespace ucas::testing {

namespace {

double number_of(const Json& value, const std::string& name) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_number())
    throw Error(ErrorKind::schema, str(name, ": expected a number, got ", printable(value.dump(), 40)));
  return value.get<double>();
}

void flatten(const Json& value, const std::string& name, std::vector<double>& out) {
  if (value.is_array()) {
    for (const Json& item : value) flatten(item, name, out);
  } else {
    out.push_back(number_of(value, name));
  }
}

}  // namespace

std::vector<double> flat(const Json& value, const std::string& name) {
  std::vector<double> out;
  flatten(value, name, out);
  return out;
}

void CaseReport::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}

void CaseReport::close(const std::string& what, double got, double expected) {
  ++compared_;
  double difference = std::fabs(got - expected);
  worst_ = std::max(worst_, std::isnan(difference) ? HUGE_VAL : difference);
  if (!(difference <= tolerance_.absolute + tolerance_.relative * std::fabs(expected))) {
    fail(str(what, ": got ", got, ", expected ", expected));
  }
}

void CaseReport::close(const std::string& what, const std::vector<double>& got, const Json& expected) {
  std::vector<double> want = flat(expected, what);
  if (want.size() != got.size()) return fail(str(what, ": got ", got.size(), " numbers, expected ", want.size()));
  for (size_t i = 0; i < got.size(); ++i) close(str(what, "[", i, "]"), got[i], want[i]);
}

void CaseReport::close(const std::string& what, const std::vector<float>& got, const Json& expected) {
  close(what, std::vector<double>(got.begin(), got.end()), expected);
}

CaseRun::CaseRun(const Json& test_case, CaseReport& report)
    : case_(test_case), method_(test_case.at("method")), variant_(test_case.at("variant")), report_(report) {}

bool CaseRun::has(const std::string& key) const { return case_.at("inputs").contains(key); }

const Json& CaseRun::in(const std::string& key) {
  if (!has(key)) throw Error(ErrorKind::schema, str("inputs.", key, " is missing"));
  read_.insert(key);
  return case_.at("inputs").at(key);
}

double CaseRun::number(const std::string& key) { return number_of(in(key), str("inputs.", key)); }
double CaseRun::number(const std::string& key, double fallback) { return has(key) ? number(key) : fallback; }

std::vector<std::string> CaseRun::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : case_.at("inputs").items()) {
    if (!read_.contains(key)) keys.push_back(key);
  }
  return keys;
}

void CaseRun::forget_options() {
  std::erase_if(read_, [&](const std::string& key) { return has(key) && !case_.at("inputs").at(key).is_array(); });
}

void CaseRun::compute_advantages() {
  if (shaped_) return;
  shaped_ = true;
  if (has("mask")) {
    for (const Json& row : in("mask")) {
      std::vector<double> mask = flat(row, "inputs.mask");
      slots_.emplace_back();
      for (size_t t = 0; t < mask.size(); ++t) {
        if (mask[t] != 0) slots_.back().push_back(t);
      }
    }
    return;
  }
  for (const char* key : {"rewards", "acc", "seq_logp", "logp"}) {
    if (!has(key)) continue;
    for (const Json& row : in(key)) {
      std::vector<size_t> slots(row.is_array() ? row.size() : 1);
      for (size_t t = 0; t < slots.size(); ++t) slots[t] = t;
      slots_.push_back(slots);
    }
    return;
  }
  throw Error(ErrorKind::schema, "neither inputs.mask nor inputs.rewards is there");
}

size_t CaseRun::rows() {
  compute_advantages();
  return slots_.size();
}

const std::vector<size_t>& CaseRun::slots(size_t row) {
  compute_advantages();
  return slots_.at(row);
}

std::vector<float> CaseRun::tokens(const std::string& key, size_t row) {
  compute_advantages();
  std::vector<float> values;
  std::vector<double> all = flat(in(key).at(row), str("inputs.", key));
  for (size_t slot : slots_.at(row)) {
    if (slot >= all.size())
      throw Error(ErrorKind::schema, str("inputs.", key, " row ", row, " is shorter than the mask"));
    values.push_back(static_cast<float>(all[slot]));
  }
  return values;
}

double CaseRun::outside(const std::string& key, size_t row) {
  double sum = 0;
  for (double x : flat(in(key).at(row), str("inputs.", key))) sum += x;
  for (float x : tokens(key, row)) sum -= x;
  return sum;
}

std::vector<double> CaseRun::valid(const Json& padded, const std::string& name) {
  compute_advantages();
  std::vector<double> values;
  if (padded.size() != slots_.size()) {
    throw Error(ErrorKind::schema, str(name, " has ", padded.size(), " rows, the case ", slots_.size()));
  }
  for (size_t row = 0; row < slots_.size(); ++row) {
    std::vector<double> all = flat(padded[row], name);
    for (size_t slot : slots_[row]) {
      if (slot >= all.size()) throw Error(ErrorKind::schema, str(name, " row ", row, " is shorter than the mask"));
      values.push_back(all[slot]);
    }
  }
  return values;
}

std::vector<double> CaseRun::packed(const std::string& key) { return valid(in(key), str("inputs.", key)); }

bool CaseRun::wants(const std::string& key) const { return case_.at("expected").contains(key); }

const Json& CaseRun::expected(const std::string& key) {
  compared_.insert(key);
  return case_.at("expected").at(key);
}

void CaseRun::number_is(const std::string& key, double got) {
  if (wants(key)) report_.close(key, got, number_of(expected(key), str("expected.", key)));
}

void CaseRun::numbers_are(const std::string& key, const std::vector<double>& got) {
  if (wants(key)) report_.close(key, got, expected(key));
}

void CaseRun::tokens_are(const std::string& key, std::span<const double> got) {
  if (!wants(key)) return;
  report_.close(key, std::vector<double>(got.begin(), got.end()), Json(valid(expected(key), str("expected.", key))));
}

void CaseRun::tokens_are(const std::string& key, std::span<const float> got) {
  tokens_are(key, std::vector<double>(got.begin(), got.end()));
}

void CaseRun::responses_are(const std::string& key, std::span<const double> got) {
  if (wants(key)) report_.close(key, std::vector<double>(got.begin(), got.end()), expected(key));
}

void CaseRun::each_token_is(const std::string& key, const std::vector<double>& by_response) {
  if (!wants(key)) return;
  bool per_token = !expected(key).empty() && expected(key).front().is_array();
  if (!per_token) return responses_are(key, by_response);
  std::vector<double> got;
  for (size_t row = 0; row < rows(); ++row) got.insert(got.end(), slots_[row].size(), by_response.at(row));
  tokens_are(key, got);
}

std::vector<std::string> CaseRun::uncompared() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : case_.at("expected").items()) {
    if (!compared_.contains(key)) keys.push_back(key);
  }
  return keys;
}

}  // namespace ucas::testing
