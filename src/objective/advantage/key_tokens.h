// KTAE's key tokens: how strongly each token id goes with right answers among the responses to one prompt, every step
// of it. Counted over whole responses (right: R_i > 0):
//
//              right responses   wrong responses
//   with id           a                 b
//   without           c                 d
//
//   F     exp(-2 p), p from Fisher's exact test of the table; 0 where p = 1: certainty of the association
//   IG    information gain (bits) of "contains the id" about "is right": its information
//   TF    saturated, length-normalised frequency of the id (BM25's) in all right / all wrong tokens
//   D     arcsine difference of the shares of responses plus h3 times that of the frequencies: in which direction
//   K     sigmoid of (h1 F + h2 IG) D, centred
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/text/fields.h"
#include "core/batch.h"

namespace ucas {

struct ContingencyTable {
  int64_t a = 0, b = 0, c = 0, d = 0;
};

// The probability of exactly this table: given the margins, a is hypergeometric,
// p_a = C(a+c, a) C(b+d, b) / C(a+b+c+d, a+b).
double table_probability(const ContingencyTable& table);

// Fisher's exact test, two-sided p: the sum of p_k over all tables of the same margins that are no more probable than
// this one. Equally probable tables differ in their last bits once computed, so p_k <= p_a (1 + 1e-7) counts as "no
// more probable".
double fisher_two_sided(const ContingencyTable& table);

enum class FisherTest { two_sided, single_table };
enum class KeyTokenForm { released, paper };

struct KeyTokenConfig {
  double h1 = 1, h2 = 1, h3 = 1;  // weights of F, of IG, of the frequencies in D
  double top = 1;                 // released: K is in (-top, top)
  double k1 = 2, b = 0.5;         // saturation and length normalisation of TF
  FisherTest fisher = FisherTest::two_sided;
  KeyTokenForm form = KeyTokenForm::released;
  bool exempt_ends = true;           // K = 0 for the tokens that end a response
  std::vector<int64_t> zero_tokens;  // their ids; empty: those of the batch
  void fields(Fields& f);
};

struct KeyToken {
  ContingencyTable table;
  double p = 0, F = 0;                // Fisher's test and what is made of it
  double IG = 0;                      // information gain, bits
  double TF_right = 0, TF_wrong = 0;  // frequencies
  double arcsine = 0;                 // difference of the shares: D without the frequencies
  double D = 0, K = 0;
};
// By token id; empty where all responses of the group are right, or all wrong.
std::unordered_map<int32_t, KeyToken> key_tokens(const KeyTokenConfig& config, const Batch& batch, const Group& group);

}  // namespace ucas
