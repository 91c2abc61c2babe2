#include "verify/math/proof.h"

#include <ca.h>
#include <stdlib.h>

/* CircuitOp, in its order; circuit.h has the other copy, exact.cpp checks that they agree. */
enum {
  OP_CONSTANT,
  OP_VARIABLE,
  OP_PI,
  OP_E,
  OP_I,
  OP_ADD,
  OP_SUB,
  OP_MUL,
  OP_DIV,
  OP_POWER,
  OP_EXP,
  OP_LN,
  OP_SIN,
  OP_COS,
  OP_TAN,
  OP_ARCSIN,
  OP_ARCCOS,
  OP_ARCTAN
};

static int apply(ca_t r, const struct ucas_proof_step* s, ca_struct* value, ca_ctx_t ctx) {
  const ca_struct* x = s->a >= 0 ? value + s->a : NULL;
  const ca_struct* y = s->b >= 0 ? value + s->b : NULL;
  switch (s->op) {
    case OP_CONSTANT: {
      ca_set_si(r, s->numerator, ctx);
      if (s->denominator != 1) ca_div_si(r, r, s->denominator, ctx);
      return 1;
    }
    case OP_PI:
      ca_pi(r, ctx);
      return 1;
    case OP_E:
      ca_one(r, ctx), ca_exp(r, r, ctx);
      return 1;
    case OP_I:
      ca_i(r, ctx);
      return 1;
    case OP_ADD:
      ca_add(r, x, y, ctx);
      return 1;
    case OP_SUB:
      ca_sub(r, x, y, ctx);
      return 1;
    case OP_MUL:
      ca_mul(r, x, y, ctx);
      return 1;
    case OP_DIV:
      ca_div(r, x, y, ctx);
      return 1;
    case OP_POWER:
      ca_pow(r, x, y, ctx);
      return 1;
    case OP_EXP:
      ca_exp(r, x, ctx);
      return 1;
    case OP_LN:
      ca_log(r, x, ctx);
      return 1;
    case OP_SIN:
      ca_sin(r, x, ctx);
      return 1;
    case OP_COS:
      ca_cos(r, x, ctx);
      return 1;
    case OP_TAN:
      ca_tan(r, x, ctx);
      return 1;
    case OP_ARCSIN:
      ca_asin(r, x, ctx);
      return 1;
    case OP_ARCCOS:
      ca_acos(r, x, ctx);
      return 1;
    case OP_ARCTAN:
      ca_atan(r, x, ctx);
      return 1;
    default:
      return 0;
  }
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
