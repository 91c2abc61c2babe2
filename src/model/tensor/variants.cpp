#include "model/tensor/variants.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

struct Variant {
  std::string_view name;
  std::vector<std::string_view> values;  // the first: as without it
  void (*set)(Variants& variants, size_t value);
};

const std::vector<Variant>& all_variants() {
  static const std::vector<Variant> all = {
      {"head", {"again", "kept", "whole"}, [](Variants& v, size_t i) { v.head = static_cast<HeadLogits>(i); }},
      {"wgrad", {"split", "joined"}, [](Variants& v, size_t i) { v.joined_gradients = i == 1; }},
      {"reductions", {"f32", "bf16"}, [](Variants& v, size_t i) { v.bf16_reductions = i == 1; }},
      {"launch", {"early", "plain"}, [](Variants& v, size_t i) { v.early_launch = i == 0; }},
  };
  return all;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += str(text.empty() ? "" : ", ", word);
  return text;
}

void set_one(Variants& variants, std::string_view word) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  std::vector<std::string_view> names;
  for (const Variant& v : all_variants()) {
    names.push_back(v.name);
    if (v.name != name) continue;
    for (size_t i = 0; i < v.values.size(); ++i) {
      if (v.values[i] == value) return v.set(variants, i);
    }
    throw Error(ErrorKind::config,
                str("UCAS_TRY: ", v.name, " = \"", printable(value, 40), "\": expected one of ", joined(v.values)));
  }
  throw Error(ErrorKind::config, str("UCAS_TRY: \"", printable(word, 40), "\": expected NAME=VALUE,.. with the names ",
                                     joined(names), "; leave it unset for what usually runs"));
}

std::optional<Variants> of_test;

}  // namespace

Variants parse_variants(std::string_view text) {
  Variants variants;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    set_one(variants, text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return variants;
}

const Variants& variants() {
  static const Variants of_process = [] {
    const char* text = std::getenv("UCAS_TRY");
    return parse_variants(text == nullptr ? "" : text);
  }();
  return of_test ? *of_test : of_process;
}

VariantsForTest::VariantsForTest(const Variants& variants) { of_test = variants; }
VariantsForTest::~VariantsForTest() { of_test.reset(); }

}  // namespace ucas
