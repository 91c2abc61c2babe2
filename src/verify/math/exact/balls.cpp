#include "verify/math/exact/balls.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ucas::math::balls {

bool larger_than(const acb_t z, slong bits) {
  mag_t size;
  mag_init(size);
  acb_get_mag(size, z);
  bool larger = mag_cmp_2exp_si(size, bits) > 0;
  mag_clear(size);
  return larger;
}

void set_constant(acb_t z, const CircuitNode& node, slong prec) {
  acb_zero(z);
  arb_struct* x = acb_realref(z);
  if (node.denominator != 0) {
    arb_set_si(x, node.numerator);
    if (node.denominator != 1) arb_div_si(x, x, node.denominator, prec);
    return;
  }
  // Only the leading digits matter at this precision; the exponent takes up the rest.
  size_t kept = std::min(node.digits.size(), static_cast<size_t>(prec) / 3 + 8);
  int64_t exponent = node.exponent + static_cast<int64_t>(node.digits.size() - kept);
  std::string leading = node.digits.substr(0, kept);
  fmpz_t n, e;
  fmpz_init(n), fmpz_init(e);
  fmpz_set_str(n, leading.c_str(), 10);
  arb_set_fmpz(x, n);
  if (kept < node.digits.size()) arb_add_error_2exp_si(x, 0);
  arb_t ten;
  arb_init(ten);
  arb_set_ui(ten, 10);
  fmpz_set_si(e, exponent);
  arb_pow_fmpz(ten, ten, e, prec);
  arb_mul(x, x, ten, prec);
  arb_clear(ten);
  fmpz_clear(n), fmpz_clear(e);
}

namespace {

bool is_negative_real(const acb_t z) { return acb_is_real(z) && arb_is_negative(acb_realref(z)); }

// z^(p/q) with the real root where there is one: (-8)^(1/3) = -2, as school means it.
void rational_power(acb_t r, const acb_t z, int64_t p, int64_t q, slong prec) {
  if (q == 1) {
    acb_pow_si(r, z, p, prec);
  } else if (q == 2) {
    acb_sqrt(r, z, prec);
    acb_pow_si(r, r, p, prec);
  } else if (acb_is_zero(z) && p > 0) {
    acb_zero(r);
  } else if (acb_is_real(z) && q < 1000 && (arb_is_positive(acb_realref(z)) || (q % 2 == 1 && is_negative_real(z)))) {
    bool negative = !arb_is_positive(acb_realref(z));
    acb_set(r, z);
    if (negative) acb_neg(r, r);
    arb_root_ui(acb_realref(r), acb_realref(r), static_cast<ulong>(q), prec);
    if (negative) acb_neg(r, r);
    acb_pow_si(r, r, p, prec);
  } else {
    acb_t w;
    acb_init(w);
    acb_set_si(w, p);
    acb_div_si(w, w, q, prec);
    acb_pow(r, z, w, prec);
    acb_clear(w);
  }
}

void power_of(acb_t r, const acb_t z, const acb_t w, const CircuitNode& exponent, slong prec) {
  if (exponent.denominator != 0) {
    if (std::abs(exponent.numerator) > (int64_t{1} << 50)) return acb_indeterminate(r);
    return rational_power(r, z, exponent.numerator, exponent.denominator, prec);
  }
  if (larger_than(w, 50) || larger_than(z, 1 << 20)) return acb_indeterminate(r);
  acb_pow(r, z, w, prec);
}

void binomial_of(acb_t r, const acb_t n, const acb_t k, slong prec) {
  acb_t x, y;
  acb_init(x), acb_init(y);
  acb_add_ui(x, n, 1, prec);
  acb_gamma(x, x, prec);
  acb_add_ui(y, k, 1, prec);
  acb_rgamma(y, y, prec);
  acb_mul(x, x, y, prec);
  acb_sub(y, n, k, prec);
  acb_add_ui(y, y, 1, prec);
  acb_rgamma(y, y, prec);
  acb_mul(r, x, y, prec);
  acb_clear(x), acb_clear(y);
}

void factorial_of(acb_t r, const acb_t x, slong prec) {
  acb_add_ui(r, x, 1, prec);
  acb_gamma(r, r, prec);
}

void size_of(acb_t r, const acb_t x, slong prec) {
  arb_t size;
  arb_init(size);
  acb_abs(size, x, prec);
  acb_set_arb(r, size);
  arb_clear(size);
}

// Functions of one argument, which may be up to 2^limit; 0: any size.
struct BallFunction {
  CircuitOp op;
  slong limit;
  void (*apply)(acb_t, const acb_t, slong);
};
const BallFunction* function_of(CircuitOp op) {
  static constexpr BallFunction kFunctions[] = {
      {CircuitOp::exp, 40, acb_exp},    {CircuitOp::sin, 60, acb_sin},
      {CircuitOp::cos, 60, acb_cos},    {CircuitOp::tan, 60, acb_tan},
      {CircuitOp::arcsin, 0, acb_asin}, {CircuitOp::arccos, 0, acb_acos},
      {CircuitOp::arctan, 0, acb_atan}, {CircuitOp::factorial, 24, factorial_of},
      {CircuitOp::abs, 0, size_of}};
  auto is_it = [&](const BallFunction& f) { return f.op == op; };
  auto at = std::find_if(std::begin(kFunctions), std::end(kFunctions), is_it);
  return at == std::end(kFunctions) ? nullptr : at;
}

// Floor, ceiling, minimum, maximum of real balls.
void apply_real(acb_t r, CircuitOp op, acb_t x, acb_t y, slong prec) {
  if (op < CircuitOp::floor || op == CircuitOp::opaque) return acb_indeterminate(r);
  acb_zero(r);
  if (op == CircuitOp::floor) arb_floor(acb_realref(r), acb_realref(x), prec);
  if (op == CircuitOp::ceil) arb_ceil(acb_realref(r), acb_realref(x), prec);
  if (op == CircuitOp::minimum) arb_min(acb_realref(r), acb_realref(x), acb_realref(y), prec);
  if (op == CircuitOp::maximum) arb_max(acb_realref(r), acb_realref(x), acb_realref(y), prec);
}

}  // namespace

void apply(acb_t r, CircuitOp op, acb_t x, acb_t y, const CircuitNode& right, slong prec) {
  if (const BallFunction* function = function_of(op)) {
    bool too_large = function->limit > 0 && larger_than(x, function->limit);
    return too_large ? acb_indeterminate(r) : function->apply(r, x, prec);
  }
  switch (op) {
    case CircuitOp::add:
      return acb_add(r, x, y, prec);
    case CircuitOp::sub:
      return acb_sub(r, x, y, prec);
    case CircuitOp::mul:
      return acb_mul(r, x, y, prec);
    case CircuitOp::div:
      return acb_contains_zero(y) ? acb_indeterminate(r) : acb_div(r, x, y, prec);
    case CircuitOp::power:
      return power_of(r, x, y, right, prec);
    case CircuitOp::ln:
      return acb_contains_zero(x) ? acb_indeterminate(r) : acb_log(r, x, prec);
    case CircuitOp::binomial:
      if (larger_than(x, 24) || larger_than(y, 24)) return acb_indeterminate(r);
      return binomial_of(r, x, y, prec);
    default:
      return acb_is_real(x) && (y == nullptr || acb_is_real(y)) ? apply_real(r, op, x, y, prec) : acb_indeterminate(r);
  }
}

}  // namespace ucas::math::balls
