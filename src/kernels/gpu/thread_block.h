// How a GPU kernel is written here: once, in plain C++ on plain pointers, as what a thread block does. nvcc compiles it
// for a device. g++ compiles the same lines for tests, where a thread block is a loop over its lanes
// (tests/support/gpu_emulation.h), or a thread for each (tests/gpu_races): index arithmetic, masks, ragged ends, merges
// and barriers are tried on every machine.
// clang-format off
//
//   struct Kernel {
//     static constexpr int kThreads = 256;          // a multiple of 32, at most 1,024
//     static constexpr int kResident = 2;           // optional: so many blocks should fit a multiprocessor's registers
//     int shared_bytes() const;                     // of shared memory, 0: none
//     template <class ThreadBlock> UCAS_ON_DEVICE void operator()(ThreadBlock& thread_block) const;
//   };
//
// A thread block offers
//   x, y, z              its index in the grid
//   each(f)              f(lane) for every lane, then a barrier
//   reduce(f, op)        op over f(lane) of all lanes, in a fixed order: a butterfly in each warp of 32 lanes, then
//                        the warps one after another. op must be commutative.
//   sum(f)               reduce by +
//   each_of_warp(f)      each(f) with a barrier of the warp alone
//   reduce_of_warp(f, op, to)  to[lane] = op over f(lane) of the lanes of its warp, by the same butterfly
//   fetch(to, from, n)   asynchronous copy of n bytes, 16 or 0, to shared memory, zeros up to 16
//   end_bundle()         what a lane has fetched since the last one is a bundle
//   await<n>()           waits for all bundles of a lane but its last n, for that lane alone
//   Local<T>             a T of every lane, kept from one each() to the next: local[lane]
//   shared<T>(offset)    shared memory from this byte on
// clang-format on
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/str.h"
#include "kernels/kernels.h"

#ifdef __CUDACC__
#define UCAS_ON_DEVICE __device__ __forceinline__
#define UCAS_BOTH_SIDES __host__ __device__ inline
#define UCAS_UNROLL _Pragma("unroll")
#define UCAS_ROLLED _Pragma("unroll 1")
#else
#define UCAS_ON_DEVICE inline
#define UCAS_BOTH_SIDES inline
#define UCAS_UNROLL
#define UCAS_ROLLED
#endif

namespace ucas::gpu {

using kernels::Bf16;

struct Grid {
  int64_t x = 1, y = 1, z = 1;
};
using Stream = void*;  // cudaStream_t

// Thread blocks of a launch, as every CUDA device takes them (CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability"). A launch takes them as 32 bits: more would run as fewer.
inline constexpr Grid kMostBlocks = {(int64_t{1} << 31) - 1, 65535, 65535};
inline void check_grid(const char* kernel, Grid grid) {
  if (grid.x <= kMostBlocks.x && grid.y <= kMostBlocks.y && grid.z <= kMostBlocks.z) return;
  throw Error(ErrorKind::device, str("kernel ", kernel, ": ", grid.x, " x ", grid.y, " x ", grid.z,
                                     " thread blocks, at most ", kMostBlocks.x, " x ", kMostBlocks.y, " x ",
                                     kMostBlocks.z, "; fewer rows at once need fewer (update.micro_batch_tokens)"));
}

// --- numbers ------------------------------------------------------------------------------------------------------

UCAS_ON_DEVICE float as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
UCAS_ON_DEVICE uint32_t as_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
UCAS_ON_DEVICE float widen(Bf16 x) { return as_float(static_cast<uint32_t>(x.bits) << 16); }
// To the nearest, ties to even; a NaN stays one.
UCAS_ON_DEVICE Bf16 narrow(float x) {
  const uint32_t bits = as_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// A rounded product, which nvcc may not contract to an FMA: decisions by its bits are the same everywhere.
UCAS_ON_DEVICE float product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

// Consecutive values that are read and written at once: 16 bytes, 8 bytes.
struct alignas(16) Bf16x8 {
  Bf16 v[8];
};
struct alignas(16) Floatx4 {
  float v[4];
};
struct alignas(8) Bf16x4 {
  Bf16 v[4];
};

// Left to itself nvcc takes a piece apart, down to loads and stores of 2 bytes; its own vectors are loaded whole, and
// a store is whole where it is one instruction.
template <class Piece, class Number>
UCAS_ON_DEVICE Piece load_whole(const Number* from) {
#ifdef __CUDACC__
  const auto words = *reinterpret_cast<const std::conditional_t<sizeof(Piece) == 16, uint4, uint2>*>(from);
  Piece x;
  std::memcpy(&x, &words, sizeof(x));
  return x;
#else
  return *reinterpret_cast<const Piece*>(from);
#endif
}
template <class Piece, class Number>
UCAS_ON_DEVICE void store_whole(Number* to, const Piece& x) {
#ifdef __CUDACC__
  uint32_t word[sizeof(x) / 4];
  std::memcpy(word, &x, sizeof(x));
  if constexpr (sizeof(x) == 16)
    asm volatile("st.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
                 : "memory");
  else
    asm volatile("st.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(word[0]), "r"(word[1]) : "memory");
#else
  *reinterpret_cast<Piece*>(to) = x;
#endif
}
UCAS_ON_DEVICE Bf16x8 load8(const Bf16* from) { return load_whole<Bf16x8>(from); }
UCAS_ON_DEVICE void store8(Bf16* to, const Bf16x8& x) { store_whole(to, x); }
UCAS_ON_DEVICE Floatx4 load4(const float* from) { return load_whole<Floatx4>(from); }
UCAS_ON_DEVICE void store4(float* to, const Floatx4& x) { store_whole(to, x); }
UCAS_ON_DEVICE Floatx4 load4(const Bf16* from) {
  const auto x = load_whole<Bf16x4>(from);
  return {{widen(x.v[0]), widen(x.v[1]), widen(x.v[2]), widen(x.v[3])}};
}
UCAS_ON_DEVICE void store4(Bf16* to, const Floatx4& x) {
  store_whole(to, Bf16x4{{narrow(x.v[0]), narrow(x.v[1]), narrow(x.v[2]), narrow(x.v[3])}});
}

// --- blocks --------------------------------------------------------------------------------------------------------

#ifdef __CUDACC__
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "these kernels copy by cp.async and compute in bf16: UCAS_CUDA_ARCHITECTURES begins at 80"
#endif

extern __shared__ __align__(16) unsigned char block_memory[];

class DeviceThreadBlock {
 public:
  template <class T>
  struct Local {
    T value;
    __device__ T& operator[](int) { return value; }
  };

  __device__ DeviceThreadBlock() : x(blockIdx.x), y(blockIdx.y), z(blockIdx.z) {}
  template <class F>
  __device__ void each(F f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  template <class F, class Op>
  __device__ auto reduce(F f, Op op) {
    using T = decltype(f(0));
    __shared__ T of_warp[32];
    const T value = over_warp(f(static_cast<int>(threadIdx.x)), op);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    T total = of_warp[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) total = op(total, of_warp[warp]);
    __syncthreads();
    return total;
  }
  template <class F>
  __device__ auto sum(F f) {
    return reduce(f, [](const auto& a, const auto& b) { return a + b; });
  }
  template <class F>
  __device__ void each_of_warp(F f) {
    f(static_cast<int>(threadIdx.x));
    __syncwarp();
  }
  template <class F, class Op, class T>
  __device__ void reduce_of_warp(F f, Op op, Local<T>& to) {
    to.value = over_warp(f(static_cast<int>(threadIdx.x)), op);
  }
  template <class T>
  __device__ T* shared(int offset = 0) const {
    return reinterpret_cast<T*>(block_memory + offset);
  }

  __device__ void fetch(Bf16* to, const Bf16* from, int bytes) const {
    const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
  }
  __device__ void end_bundle() const { asm volatile("cp.async.commit_group;" ::: "memory"); }
  template <int kLater>
  __device__ void await() const {
    asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
  }

  const int64_t x, y, z;

 private:
  template <class T, class Op>
  static __device__ T over_warp(T value, Op op) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) value = op(value, from_lane(value, offset));
    return value;
  }
  template <class T>
  static __device__ T from_lane(const T& value, int offset) {
    static_assert(sizeof(T) % 4 == 0);
    uint32_t words[sizeof(T) / 4];
    std::memcpy(words, &value, sizeof(T));
#pragma unroll
    for (uint32_t& word : words) word = __shfl_xor_sync(0xffffffff, word, offset);
    T other;
    std::memcpy(&other, words, sizeof(T));
    return other;
  }
};

// Threads that a multiprocessor holds: 2,048, on cards of sm_86, 89 and 12x 1,536.
#if defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
constexpr int kMultiprocessorThreads = 1536;
#else
constexpr int kMultiprocessorThreads = 2048;
#endif

template <class Kernel>
constexpr int resident() {
  if constexpr (requires { Kernel::kResident; }) {
    constexpr int kMost = kMultiprocessorThreads / Kernel::kThreads;
    return Kernel::kResident < kMost ? Kernel::kResident : kMost;
  } else {
    return 1;
  }
}

// From sm_90 on a kernel may be put on the device while the one before it still runs, where it waits for that one to
// be over: before its first look at memory, so that nothing else changes.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, resident<Kernel>()) run_kernel(const Kernel kernel) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  DeviceThreadBlock thread_block;
  kernel(thread_block);
}

void check_launch(const char* kernel, int status);  // throws what the runtime says of it, a cudaError_t
bool launches_early();                              // launch_early() of kernels.h

inline constexpr int kMostDevices = 64;

// What the runtime is configured with once for each kernel and device: true if the kernel waits for its predecessor, by
// itself.
template <class Kernel>
bool prepare_on(int device) {
  constexpr const char* name = Kernel::kName;
  int most = 0;
  cudaFuncAttributes of = {};
  check_launch(name, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  check_launch(name, cudaFuncGetAttributes(&of, run_kernel<Kernel>));
  const int room = most - static_cast<int>(of.sharedSizeBytes);  // more than a block gets unasked
  check_launch(name, cudaFuncSetAttribute(run_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
  return of.ptxVersion >= 90 && of.binaryVersion >= 90;
}
template <class Kernel>
bool waits_by_itself() {
  enum : signed char { unknown, no, yes };
  static std::atomic<signed char> known[kMostDevices] = {};  // by device; a race gives the same
  int device = 0;
  check_launch(Kernel::kName, cudaGetDevice(&device));
  if (device >= kMostDevices) return prepare_on<Kernel>(device);
  signed char is = known[device].load(std::memory_order_acquire);
  if (is == unknown) {
    is = prepare_on<Kernel>(device) ? yes : no;
    known[device].store(is, std::memory_order_release);
  }
  return is == yes;
}

template <class Kernel>
void launch(Stream stream, Grid grid, const Kernel& kernel, const char* name) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  check_grid(name, grid);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid.x, grid.y, grid.z);
  config.blockDim = dim3(Kernel::kThreads);
  config.dynamicSmemBytes = kernel.shared_bytes();
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &early;
  config.numAttrs = waits_by_itself<Kernel>() && launches_early() ? 1 : 0;
  check_launch(name, cudaLaunchKernelEx(&config, run_kernel<Kernel>, kernel));
}

#endif

}  // namespace ucas::gpu
