// A driver of NVIDIA for machines without one: libcuda.so.1 of tests, put first by LD_LIBRARY_PATH. It has as many cards of
// as many bytes as the environment says, and runs nothing.
#include <stddef.h>
#include <stdlib.h>

static long long said(const char* name, long long usual) {
  const char* text = getenv(name);
  return text == NULL ? usual : atoll(text);
}

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }

int cuDriverGetVersion(int* version) {
  *version = (int)said("FAKE_CUDA_VERSION", 13000);
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = (int)said("FAKE_CUDA_DEVICES", 1);
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  int count = 0;
  cuDeviceGetCount(&count);
  *device = ordinal;
  return ordinal >= 0 && ordinal < count ? 0 : 101;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)said("FAKE_CUDA_MEMORY", 25757220864LL);
  return 0;
}
