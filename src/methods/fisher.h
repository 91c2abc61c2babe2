// Fisher's exact test of a 2 x 2 table, float64.
//
//              right rows   wrong rows
//   with            a            b
//   without         c            d
//
// Given the margins, a is hypergeometric: p_a = C(a+c, a) C(b+d, b) / C(a+b+c+d, a+b).
#pragma once

#include <cstdint>

namespace ucas {

struct ContingencyTable {
  int64_t a = 0, b = 0, c = 0, d = 0;
};

// p_a: the probability of exactly this table.
double table_probability(const ContingencyTable& table);

// Two-sided p: the sum of p_k over all tables of the same margins that are no more probable than this one. Equally
// probable tables differ in their last bits once computed, so p_k <= p_a (1 + 1e-7) counts as "no more probable".
double fisher_two_sided(const ContingencyTable& table);

}  // namespace ucas
