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
