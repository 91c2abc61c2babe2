// What is rewarded for a right answer with one thing changed, over the gold answers of the data sets and a set of our
// own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/str.h"
#include "support/golds.h"
#include "support/math_mutants.h"
#include "support/verdicts.h"

namespace ucas::math {

namespace {

using math_mutants::mutant_kinds;
using math_mutants::MutantKind;

struct Tally {
  int64_t tried = 0, rewarded = 0;
  std::string examples;
};

// One change of each kind to each gold answer. UCAS_MUTANTS names a file for all that is rewarded.
std::vector<Tally> tally(const std::vector<std::string>& golds) {
  std::vector<Tally> tallies(mutant_kinds().size());
  const char* name = std::getenv("UCAS_MUTANTS");
  std::ofstream out;
  if (name != nullptr) out.open(name, std::ios::app);
  for (size_t i = 0; i < golds.size(); ++i) {
    if (!math_mutants::says_one_thing(golds[i])) continue;
    Rng rng(37, static_cast<uint64_t>(i));
    for (size_t k = 0; k < tallies.size(); ++k) {
      auto mutant = mutant_kinds()[k].change(golds[i], rng);
      if (!mutant || *mutant == golds[i]) continue;
      ++tallies[k].tried;
      if (!is_rewarded(golds[i], *mutant)) continue;
      ++tallies[k].rewarded;
      if (tallies[k].rewarded <= 5) tallies[k].examples += str("  ", golds[i], "  <-  ", *mutant, "\n");
      if (out) {
        out << nlohmann::json{{"kind", mutant_kinds()[k].name}, {"gold", golds[i]}, {"prediction", *mutant}}.dump()
            << "\n";
      }
    }
  }
  if (out.is_open()) {
    for (size_t k = 0; k < tallies.size(); ++k) {
      out << nlohmann::json{{"kind", mutant_kinds()[k].name},
                            {"tried", tallies[k].tried},
                            {"rewarded", tallies[k].rewarded}}
                 .dump()
          << "\n";
    }
  }
  return tallies;
}

// Rewarded at most `most` times: changes that say the same, and those of which the verifier's tables say that they are
// rewarded.
void expect_few(const std::vector<Tally>& tallies, size_t kind, int64_t most) {
  const Tally& tally = tallies[kind];
  EXPECT_LE(tally.rewarded, most) << mutant_kinds()[kind].name << ": " << tally.rewarded << " of " << tally.tried
                                  << " rewarded\n"
                                  << tally.examples;
}

TEST(verifier_mutants, a_gold_of_our_own_with_one_thing_changed_is_not_paid) {
  std::vector<std::string> golds = math_golds::own();
  for (const std::string& gold : golds) EXPECT_TRUE(is_rewarded(gold, gold)) << gold;
  std::vector<Tally> tallies = tally(golds);
  for (size_t kind = 0; kind < tallies.size(); ++kind) {
    EXPECT_GT(tallies[kind].tried, 0) << mutant_kinds()[kind].name;
    expect_few(tallies, kind, 1);  // 14 cm^0, floors
  }
}

TEST(verifier_mutants, a_gold_of_the_data_sets_with_one_thing_changed_is_not_paid) {
  std::vector<std::string> golds = math_golds::shared();
  if (golds.empty()) GTEST_SKIP() << "no shared data (set UCAS_SHARED_DATA)";
  ASSERT_GT(golds.size(), 5000u);
  std::vector<Tally> tallies = tally(golds);
  for (size_t kind = 0; kind < tallies.size(); ++kind) expect_few(tallies, kind, 8);
  int64_t rewarded = 0, tried = 0;
  for (const Tally& tally : tallies) rewarded += tally.rewarded, tried += tally.tried;
  EXPECT_GT(tried, 40'000);
  EXPECT_LE(rewarded, 30);
}

}  // namespace

}  // namespace ucas::math
