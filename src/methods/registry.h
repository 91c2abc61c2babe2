// The methods, one row each. A row without a file methods/NAME.cpp that defines NAME_row() fails to link; a file
// without a row fails a guard.
#pragma once

#include "methods/method.h"

#define UCAS_METHODS(X)    \
  X(grpo)                  \
  X(drgrpo)                \
  X(dapo)                  \
  X(ucas)                  \
  X(ktae)                  \
  X(seed_grpo)             \
  X(prime)                 \
  X(ppo)                   \
  X(simplerl)              \
  X(entropy_adv)           \
  X(clip_cov)              \
  X(kl_cov)                \
  X(forking_tokens)        \
  X(rloo)                  \
  X(reinforce_pp)          \
  X(reinforce_pp_baseline) \
  X(gspo)                  \
  X(cispo)                 \
  X(sapo)                  \
  X(gmpo)                  \
  X(intuitor)              \
  X(passk)                 \
  X(nsr)                   \
  X(gpg)                   \
  X(opo)                   \
  X(maxrl)                 \
  X(luspo)                 \
  X(gdpo)                  \
  X(dppo)                  \
  X(distill)               \
  X(stare)                 \
  X(ds_grpo)               \
  X(ace)                   \
  X(a3po)                  \
  X(qae)                   \
  X(steer)                 \
  X(lp_reg)                \
  X(simko)

namespace ucas {

#define UCAS_DECLARE(name) MethodRow name##_row();
UCAS_METHODS(UCAS_DECLARE)
#undef UCAS_DECLARE

}  // namespace ucas
