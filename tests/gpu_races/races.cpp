// Every GPU kernel with its lanes as threads, under ThreadSanitizer, against the CPU's emulation bit by bit.
//   gpu-races            all kernels: 0 reports, the same bits. Exit 66: a race, 1: other bits
//   gpu-races broken     each fault of Broken, in a process of its own: all must be found
//   gpu-races NAME       with that fault
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "gpu_races/race_block.h"
#include "kernels/gpu/attention.h"
#include "kernels/gpu/lm_head.h"
#include "kernels/gpu/rows.h"
#include "kernels/gpu/truncated_sample.h"
#include "kernels/gpu/update.h"
#include "support/gpu_emulation.h"

extern char** environ;

namespace ucas::gpu {

namespace {

constexpr const char* kFaults[] = {"nothing", "warp_barrier", "block_barrier", "copies"};  // Broken's
constexpr int kOtherBits = 1;

// Memory of one run of a kernel: the same numbers wherever it is made. Results are of it, too.
class Arena {
 public:
  template <class T>
  T* take(int64_t n) {
    used_ = (used_ + 63) / 64 * 64;
    T* place = reinterpret_cast<T*>(bytes() + used_);
    used_ += static_cast<size_t>(n) * sizeof(T) + 64;
    if (used_ > memory_.size() * sizeof(Floatx4)) std::abort();
    return place;
  }
  float* floats(int64_t n, float scale = 1, float mean = 0) {
    float* to = take<float>(n);
    for (int64_t i = 0; i < n; ++i) to[i] = unit() * scale + mean;
    return to;
  }
  Bf16* bf16(int64_t n, float scale = 1) {
    Bf16* to = take<Bf16>(n);
    for (int64_t i = 0; i < n; ++i) to[i] = narrow(unit() * scale);
    return to;
  }
  template <class T>
  T* copied(const std::vector<T>& values) {
    T* to = take<T>(static_cast<int64_t>(values.size()));
    std::copy(values.begin(), values.end(), to);
    return to;
  }
  int32_t* ints(const std::vector<int32_t>& values) { return copied(values); }
  bool same_as(const Arena& other) const {
    return used_ == other.used_ && std::memcmp(memory_.data(), other.memory_.data(), used_) == 0;
  }

 private:
  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(memory_.data()); }
  float unit() {
    seed_ = seed_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<float>(static_cast<int64_t>(seed_ >> 40)) / 8388608.0F - 1.0F;
  }
  std::vector<Floatx4> memory_ = std::vector<Floatx4>(size_t{1} << 20);
  size_t used_ = 0;
  uint64_t seed_ = 1;
};

Broken fault = Broken::nothing;
int cases = 0, others = 0;

// build(arena) makes the kernel and all that it reads and writes.
template <class Build>
void check(const std::string& name, Build build) {
  Arena want;
  const auto emulated = build(want);
  launch(nullptr, emulated.grid(), emulated, name.c_str());
  for (const Copies copies : {Copies::early, Copies::late}) {
    Arena got;
    run_as_threads(build(got), {fault, copies});
    const bool same = got.same_as(want);
    ++cases;
    others += same ? 0 : 1;
    std::printf("%-34s %-5s %s\n", name.c_str(), copies == Copies::late ? "late" : "early",
                same ? "same bits" : "OTHER BITS");
    std::fflush(stdout);
  }
}

Cache cache_of(Arena& arena, int64_t slots, int64_t blocks, int64_t K, int64_t d) {
  std::vector<int32_t> table;
  for (int64_t i = 0; i < slots * blocks; ++i) table.push_back(static_cast<int32_t>((i * 3 + 1) % (slots * blocks)));
  Cache cache{.block_stride = block_numbers(K, d) + 16, .blocks_of_slot = blocks};
  cache.layer = arena.bf16(slots * blocks * cache.block_stride);
  cache.table = arena.ints(table);
  return cache;
}

void check_rows() {
  check("embed", [](Arena& arena) {
    Embed a{.rows = 2, .width = 136};
    a.token = arena.ints({3, -1});
    a.table = arena.bf16(5 * 136);
    a.x = arena.floats(2 * 136);
    return EmbedRows{a};
  });
  check("add_norm", [](Arena& arena) {
    AddNorm a{.rows = 2, .width = 1400, .eps = 1e-6F};
    float* x = arena.floats(2 * 1400);
    a.x = x;
    a.y = arena.bf16(2 * 1400);
    a.w = arena.floats(1400);
    a.sum = x;
    a.out = arena.bf16(2 * 1400);
    a.out_float = arena.floats(2 * 1400);
    return AddNormRows{a};
  });
  for (const bool weights : {true, false}) {
    check(weights ? "norm_backward" : "norm_backward, no dw", [weights](Arena& arena) {
      const int64_t rows = weights ? 19 : 6, width = weights ? 1400 : 136;
      NormBackward a{.rows = rows, .width = width, .eps = 1e-6F};
      a.x = arena.floats(rows * width);
      a.w = arena.floats(width);
      a.d_out = weights ? arena.bf16(rows * width) : nullptr;
      a.d_out_float = weights ? nullptr : arena.floats(rows * width);
      a.dx = arena.floats(rows * width);
      a.dx_narrow = weights ? arena.bf16(rows * width) : nullptr;
      a.dw = weights ? arena.floats(norm_parts(rows) * width) : nullptr;
      return NormBackwardRows{a};
    });
  }
  for (const bool norms : {false, true}) {
    check(norms ? "rope_and_store, norms" : "rope_and_store, bias", [norms](Arena& arena) {
      constexpr int64_t N = 5 * 80;
      RopeAndStoreKv a{.rows = 3, .H = 3, .K = 1, .d = 80, .eps = 1e-6F};
      a.qkv = arena.bf16(3 * N);
      a.bias = norms ? nullptr : arena.floats(N);
      a.q_norm = norms ? arena.floats(80) : nullptr;
      a.k_norm = norms ? arena.floats(80) : nullptr;
      a.cosines = arena.floats(300 * 40);
      a.sines = arena.floats(300 * 40);
      a.position = arena.ints({0, 255, 256});
      a.unnormed = norms ? arena.bf16(3 * 4 * 80) : nullptr;
      a.slot = arena.ints({0, 1, 0});
      a.cache = cache_of(arena, 2, 2, 1, 80);
      return RopeAndStoreKvRows{a};
    });
    check(norms ? "rope_backward, norms" : "rope_backward", [norms](Arena& arena) {
      RopeAndStoreKvBackward a{.rows = 2, .H = 14, .K = 2, .d = 128, .eps = 1e-6F};
      a.d_q = arena.bf16(2 * 14 * 128);
      a.d_k = arena.bf16(2 * 2 * 128);
      a.d_v = arena.bf16(2 * 2 * 128);
      a.q_norm = norms ? arena.floats(128) : nullptr;
      a.k_norm = norms ? arena.floats(128) : nullptr;
      a.unnormed = norms ? arena.bf16(2 * 16 * 128) : nullptr;
      a.cosines = arena.floats(8 * 64);
      a.sines = arena.floats(8 * 64);
      a.position = arena.ints({7, 2});
      a.d_qkv = arena.bf16(2 * 18 * 128);
      a.dw = norms ? arena.floats(2 * 2 * 128) : nullptr;
      return RopeAndStoreKvBackwardRows{a};
    });
  }
  check("swiglu", [](Arena& arena) {
    Swiglu a{.rows = 3, .width = 200};
    a.gate_up = arena.bf16(3 * 400, 60);
    a.out = arena.bf16(3 * 200);
    return SwigluRows{a};
  });
  check("swiglu_backward in place", [](Arena& arena) {
    SwigluBackward a{.rows = 3, .width = 200};
    a.d_gate_up = arena.bf16(3 * 400, 60);
    a.gate_up = a.d_gate_up;
    a.d_out = arena.bf16(3 * 200);
    a.act = arena.bf16(3 * 200);
    return SwigluBackwardRows{a};
  });
  for (const bool f32 : {false, true}) {
    check(f32 ? "add_parts f32" : "add_parts bf16", [f32](Arena& arena) {
      AddParts a{.parts = 1100, .width = 40, .stride = 48};
      a.part = f32 ? arena.floats(1100 * 48) : nullptr;
      a.part_narrow = f32 ? nullptr : arena.bf16(1100 * 48);
      a.sum = arena.floats(40);
      a.before = a.sum;
      return AddPartsColumns{a};
    });
  }
}

TileStats* stats_of(Arena& arena, int64_t rows, int64_t vocab, int64_t stride, float inverse_temperature,
                    const float* logits) {
  HeadStatsOfTiles a{.rows = rows, .columns = vocab, .stride = stride, .tiles = head_tiles(vocab)};
  a.inverse_temperature = inverse_temperature;
  a.logits = logits;
  a.of_tile = arena.take<TileStats>(rows * a.tiles);
  host().head_stats_of_tiles(nullptr, a);
  return a.of_tile;
}

SampleToken token_of(Arena& arena, int64_t rows, int64_t vocab) {
  SampleToken a{
      .rows = rows, .vocab = vocab, .stride = vocab, .tiles = head_tiles(vocab), .inverse_temperature = 1.25F};
  a.run = arena.copied(std::vector<SamplerRun>{{23, 6}});
  const float* logits = arena.floats(rows * vocab, 3);
  a.logits = logits;
  a.of_tile = stats_of(arena, rows, vocab, vocab, 1.25F, logits);
  a.of_tile_greedy = stats_of(arena, rows, vocab, vocab, 1.0F, logits);
  std::vector<SamplerState> states;
  for (int64_t r = 0; r < rows; ++r) states.push_back({static_cast<uint32_t>(r), 1, 2, r == 1 ? 1U : 0U});
  a.state = arena.copied(states);
  a.sampled = arena.take<DeviceSampledToken>(rows);
  a.token = arena.take<int32_t>(rows);
  a.position = arena.take<int32_t>(rows);
  return a;
}

void check_head() {
  check("head_stats_of_tiles", [](Arena& arena) {
    HeadStatsOfTiles a{.rows = 5, .columns = 2300, .stride = 2304, .first_tile = 0, .tiles = 2};
    a.inverse_temperature = 1.25F;
    a.logits = arena.floats(5 * 2304, 3);
    a.target = arena.ints({0, 2299, 7, 2048, 5});
    a.of_tile = arena.take<TileStats>(10);
    a.chosen = arena.floats(5);
    return HeadTiles{a};
  });
  check("head_stats_of_rows", [](Arena& arena) {
    const float* logits = arena.floats(5 * 2304, 3);
    HeadStatsOfRows a{.rows = 5, .tiles = 2, .vocab = 2300, .inverse_temperature = 1.25F};
    a.of_tile = stats_of(arena, 5, 2300, 2304, 1.25F, logits);
    a.chosen = arena.floats(5);
    for (float** out : {&a.logprob, &a.entropy, &a.confidence, &a.margin, &a.lse}) *out = arena.floats(5);
    return HeadRows{a};
  });
  check("head_gradient in place", [](Arena& arena) {
    HeadGradient a{.rows = 2, .columns = 4300, .stride = 4304, .first_column = 0};
    a.inverse_temperature = 1.25F;
    a.inverse_vocab = 1e-4F;
    a.target = arena.ints({4299, 17});
    a.lse = arena.floats(2, 0.5F, 9);
    a.entropy = arena.floats(2, 0.5F, 4);
    a.g = arena.floats(2);
    a.e = arena.floats(2);
    a.u = arena.floats(2);
    a.logits = arena.floats(2 * 4304, 3);
    return HeadGradientRows{a};
  });
  check("sample", [](Arena& arena) { return SampleTokenRows{token_of(arena, 3, 5000)}; });
  struct Cut {
    const char* name;
    int64_t top_k;
    double top_p, min_p;
  };
  for (const Cut& cut : {Cut{"top_k", 20, 1, 0}, Cut{"top_p", 0, 0.9, 0}, Cut{"all", 50, 0.95, 0.02}}) {
    check(std::string("sample_truncated ") + cut.name, [&cut](Arena& arena) {
      SampleToken a = token_of(arena, 2, 2300);
      a.top_k = cut.top_k, a.top_p = cut.top_p, a.min_p = cut.min_p;
      return TruncatedSampleRows{a};
    });
  }
}

template <int kHeads>
void check_attention(int64_t H, int64_t K, int64_t d, int64_t window, const std::vector<int32_t>& positions) {
  check("attend_part<" + std::to_string(kHeads) + "> d=" + std::to_string(d), [&](Arena& arena) {
    const auto rows = static_cast<int64_t>(positions.size());
    AttendDecode a{.rows = rows, .H = H, .K = K, .d = d, .window = window, .most_blocks = 2, .scale = 0.3F};
    a.q_stride = (H + 2 * K) * d;
    a.q = arena.bf16(rows * a.q_stride);
    std::vector<int32_t> slots;
    for (int64_t r = 0; r < rows; ++r) slots.push_back(static_cast<int32_t>(r % 2));
    a.slot = arena.ints(slots);
    a.position = arena.ints(positions);
    a.cache = cache_of(arena, 2, 2, K, d);
    a.part = arena.floats(rows * 2 * H * d);
    a.part_norm = arena.floats(rows * 2 * H * 2);
    a.out = arena.bf16(rows * H * d);
    return AttendPart<kHeads>(a);
  });
}

void check_attention_and_update() {
  check_attention<1>(2, 2, 64, 0, {300});
  check_attention<3>(3, 1, 8, 100, {299, 5});
  check_attention<6>(6, 1, 128, 0, {511, 40});
  check_attention<7>(7, 1, 80, 0, {258});
  check_attention<8>(16, 1, 256, 70, {300});
  check("attend_merge", [](Arena& arena) {
    AttendDecode a{.rows = 2, .H = 3, .K = 1, .d = 136, .window = 0, .most_blocks = 3};
    a.position = arena.ints({600, 40});
    a.slot = arena.ints({0, 1});
    a.part = arena.floats(2 * 3 * 3 * 136);
    a.part_norm = arena.floats(2 * 3 * 3 * 2, 1, 2);
    a.out = arena.bf16(2 * 3 * 136);
    return AttendMerge{a};
  });
  check("adamw", [](Arena& arena) {
    AdamW a{.n = 1031};
    a.clip = 0.5F, a.keep = 0.999F, a.beta1 = 0.9F, a.beta2 = 0.99F;
    a.step_size = 1e-2F, a.root_correction = 0.3F, a.eps = 1e-8F;
    a.p = arena.floats(1031);
    a.g = arena.floats(1031);
    a.m = arena.floats(1031);
    a.v = arena.floats(1031, 1e-4F, 2e-4F);
    a.nonfinite = arena.ints({0});
    return AdamWElements{a};
  });
  check("sum_of_squares", [](Arena& arena) {
    SumOfSquares a{.n = 66001};
    a.x = arena.floats(66001);
    a.part = arena.take<double>(2);
    return SumOfSquaresChunks{a};
  });
}

int check_all() {
  check_rows();
  check_head();
  check_attention_and_update();
  std::printf("%d cases, %d with other bits\n", cases, others);
  return others == 0 ? 0 : kOtherBits;
}

// 0 where every fault is found by a report or by other bits.
int find_faults(const char* program) {
  int missed = 0;
  ::setenv("TSAN_OPTIONS", "halt_on_error=1", 1);
  for (const char* name : kFaults) {
    if (name == std::string("nothing")) continue;
    char* words[] = {const_cast<char*>(program), const_cast<char*>(name), nullptr};
    pid_t child = -1;
    int status = 0;
    if (::posix_spawn(&child, program, nullptr, nullptr, words, environ) != 0) return 2;
    ::waitpid(child, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const bool found = code == 66 || code == kOtherBits;
    std::printf("without %s: exit %d, %s\n", name, code, found ? "found" : "NOT FOUND");
    missed += found ? 0 : 1;
  }
  return missed == 0 ? 0 : 2;
}

}  // namespace

}  // namespace ucas::gpu

int main(int argc, char** argv) {
  using namespace ucas::gpu;
  const std::string word = argc > 1 ? argv[1] : kFaults[0];
  if (word == "broken") return find_faults("/proc/self/exe");
  for (size_t i = 0; i < std::size(kFaults); ++i) {
    if (word != kFaults[i]) continue;
    fault = static_cast<Broken>(i);
    return check_all();
  }
  std::fprintf(stderr, "usage: gpu-races [broken | warp_barrier | block_barrier | copies]\n");
  return 2;
}
