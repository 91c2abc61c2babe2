#include <immintrin.h>

#include "kernels/kernels.h"

#define UCAS_KERNELS avx2
#define UCAS_KERNEL_NAME "avx2"
#define UCAS_WIDTH 8
#include "kernels/kernels_body.inc"
