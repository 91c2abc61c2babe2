// Functions of complex balls (Arb), real where the reals allow it. Every result is finite, or acb_indeterminate where
// it is undefined or too large to work with: Arb cannot be interrupted. Only exact.cpp and balls.cpp see Arb's types.
#pragma once

#include "verify/math/exact/circuit.h"
#include "verify/math/exact/flint.h"

namespace ucas::math::balls {

bool larger_than(const acb_t z, slong bits);  // |z| > 2^bits, as far as the ball tells
void set_constant(acb_t z, const CircuitNode& node, slong prec);
// r = op(x, y); y is null for functions of one argument, `right` the node of the last argument.
void apply(acb_t r, CircuitOp op, acb_t x, acb_t y, const CircuitNode& right, slong prec);

}  // namespace ucas::math::balls
