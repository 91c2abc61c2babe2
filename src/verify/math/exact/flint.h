/* FLINT's numbers: in FLINT 3 under flint/, before it as Arb and Calcium. Calcium's headers are not C++. */
#pragma once

/* clang-format off */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gmp.h>
#include <mpfr.h>
#include <flint/flint.h>
#include <flint/ulong_extras.h>
#if __FLINT_RELEASE >= 30000
#include <flint/acb.h>
#ifndef __cplusplus
#include <flint/ca.h>
#endif
#else
#include <acb.h>
#ifndef __cplusplus
#include <ca.h>
#endif
#endif
/* clang-format on */

/* Proofs about constants with pi, e, logarithms and trigonometric functions, by Calcium. In C, because Calcium's
   headers are not C++. The caller bounds the work: few steps, small numbers (Exact::Work::proof). */
#ifdef __cplusplus
extern "C" {
#endif

/* A step: `op` as in ucas::math::CircuitOp, operands by index of earlier steps, -1 for none; for a constant (op 0) the
   value numerator / denominator. */
struct ucas_proof_step {
  int op, a, b;
  long numerator, denominator;
};

/* Are steps a and b the same number? 1: proved equal; 0: proved different; -1: neither. */
int ucas_prove_equal(const struct ucas_proof_step* steps, int count, int a, int b);

#ifdef __cplusplus
}
#endif
