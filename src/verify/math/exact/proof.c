#include "verify/math/exact/flint.h"

/* CircuitOp, in its order; circuit.h has the other copy, exact.cpp checks that they agree. */
enum { OP_CONSTANT, OP_VARIABLE, OP_PI, OP_E, OP_I, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_POWER, OP_EXP };

typedef void unary(ca_t, const ca_t, ca_ctx_t);
typedef void binary(ca_t, const ca_t, const ca_t, ca_ctx_t);

/* 0: no operation of Calcium. */
static int apply(ca_t r, const struct ucas_proof_step* s, ca_struct* value, ca_ctx_t ctx) {
  static binary* const binaries[] = {ca_add, ca_sub, ca_mul, ca_div, ca_pow};                           /* OP_ADD .. */
  static unary* const unaries[] = {ca_exp, ca_log, ca_sin, ca_cos, ca_tan, ca_asin, ca_acos, ca_atan}; /* OP_EXP .. */
  const int last = OP_EXP + (int)(sizeof(unaries) / sizeof(*unaries)) - 1;
  if (s->op == OP_VARIABLE || s->op > last) return 0;
  if (s->op == OP_CONSTANT) {
    ca_set_si(r, s->numerator, ctx);
    if (s->denominator != 1) ca_div_si(r, r, s->denominator, ctx);
  } else if (s->op == OP_PI) {
    ca_pi(r, ctx);
  } else if (s->op == OP_E) {
    ca_one(r, ctx), ca_exp(r, r, ctx);
  } else if (s->op == OP_I) {
    ca_i(r, ctx);
  } else if (s->op < OP_EXP) {
    binaries[s->op - OP_ADD](r, value + s->a, value + s->b, ctx);
  } else {
    unaries[s->op - OP_EXP](r, value + s->a, ctx);
  }
  return 1;
}

int ucas_prove_equal(const struct ucas_proof_step* steps, int count, int a, int b) {
  ca_ctx_t ctx;
  ca_struct* value = malloc(sizeof(ca_struct) * (size_t)count);
  int known = 1, answer = -1, n;
  if (value == NULL) return -1;
  ca_ctx_init(ctx);
  /* small limits: what they leave undecided is decided by balls */
  ctx->options[CA_OPT_PREC_LIMIT] = 512;
  ctx->options[CA_OPT_QQBAR_DEG_LIMIT] = 12;
  ctx->options[CA_OPT_LLL_PREC] = 128;
  ctx->options[CA_OPT_POW_LIMIT] = 10;
  ctx->options[CA_OPT_USE_GROEBNER] = 0;
  ctx->options[CA_OPT_VIETA_LIMIT] = 3;
  for (n = 0; n < count; ++n) ca_init(value + n, ctx);
  for (n = 0; n < count && known; ++n) known = apply(value + n, steps + n, value, ctx);
  if (known) {
    truth_t truth = ca_check_equal(value + a, value + b, ctx);
    answer = truth == T_TRUE ? 1 : truth == T_FALSE ? 0 : -1;
  }
  for (n = 0; n < count; ++n) ca_clear(value + n, ctx);
  ca_ctx_clear(ctx);
  free(value);
  return answer;
}
