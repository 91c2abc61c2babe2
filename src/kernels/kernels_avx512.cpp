#include <immintrin.h>

#include "kernels/kernels.h"

#define UCAS_KERNELS avx512
#define UCAS_KERNEL_NAME "avx512"
#define UCAS_WIDTH 16
#include "kernels/kernels_body.inc"
