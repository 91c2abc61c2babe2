#include "kernels/kernels.h"

#define UCAS_KERNELS scalar
#define UCAS_KERNEL_NAME "scalar"
#define UCAS_WIDTH 4
#include "kernels/kernels_body.inc"
