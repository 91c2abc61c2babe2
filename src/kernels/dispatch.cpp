#include "kernels/dispatch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/str.h"

namespace ucas::kernels {

namespace {

struct Row {
  const Table* table;
  bool (*supported)();
  const char* needs;
};

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && has_avx2();
}
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
#endif

const Row kRows[] = {{&avx512::kTable, has_avx512, "AVX-512 F, BW, DQ and VL"},
                     {&avx2::kTable, has_avx2, "AVX2 and FMA"},
                     {&scalar::kTable, [] { return true; }, "nothing"}};

}  // namespace

Choice choose(const char* forced) {
  if (forced != nullptr && *forced != '\0') {
    for (const Row& row : kRows) {
      if (std::strcmp(row.table->name, forced) != 0) continue;
      if (!row.supported())
        throw Error(ErrorKind::config, str("UCAS_ISA=", forced, ": this CPU lacks some of ", row.needs));
      return {row.table, "forced by UCAS_ISA"};
    }
    throw Error(ErrorKind::config, str("UCAS_ISA=", printable(forced), ": expected scalar, avx2 or avx512"));
  }
  std::string missing;
  for (const Row& row : kRows) {
    if (row.supported()) {
      std::string why = str("the CPU has ", row.needs);
      if (row.table == &scalar::kTable) why = "no faster set is supported";
      return {row.table, missing.empty() ? why : str(why, "; it lacks ", missing)};
    }
    missing += (missing.empty() ? "" : ", ") + std::string(row.needs);
  }
  return {&scalar::kTable, ""};
}

namespace {

const Choice& choice() {
  static const Choice chosen = choose(std::getenv("UCAS_ISA"));
  return chosen;
}

}  // namespace

const Table& table() { return *choice().table; }

namespace {

#if defined(__x86_64__)
bool has_amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1) != 0;
}
bool has_bf16_pairs() { return __builtin_cpu_supports("avx512bf16"); }
// Intel's cores take four times as long for a vector of pairs as for a multiply-add (measured: 1 and 4 to 5 a
// nanosecond), which is twice its work, so that only tiles (AMX) are worth it; AMD's take as long as for one.
bool multiplies_pairs_fast() { return has_amx_bf16() || !__builtin_cpu_is("intel"); }
#else
bool has_amx_bf16() { return false; }
bool has_bf16_pairs() { return false; }
bool multiplies_pairs_fast() { return false; }
#endif

}  // namespace

Bf16Gemm choose_bf16(const char* forced, const Table& table) {
  const std::string asked = forced == nullptr ? "" : forced;
  if (!asked.empty() && asked != "pairs" && asked != "widened") {
    throw Error(ErrorKind::config, str("UCAS_BF16=", printable(asked), ": expected pairs or widened"));
  }
  std::string missing;
  if (!has_bf16_pairs()) missing = "the CPU lacks AVX512-bf16";
  if (table.gemm_small_m_bf16 == nullptr) missing = "the AVX-512 kernels do not run";
  if (asked == "pairs" && !missing.empty()) throw Error(ErrorKind::config, str("UCAS_BF16=pairs: ", missing));
  if (asked == "widened") missing = "UCAS_BF16 says so";
  if (missing.empty() && asked.empty() && !multiplies_pairs_fast()) {
    missing = "this CPU's AVX512-bf16 is slower than its f32";
  }
  if (!missing.empty()) return {false, str("bf16 GEMMs run in f32: ", missing)};
  return {true, "bf16 GEMMs by AVX512-bf16 or better (oneDNN chooses)", has_amx_bf16() ? 0 : kSmallM};
}

const Bf16Gemm& bf16_gemm() {
  static const Bf16Gemm found = choose_bf16(std::getenv("UCAS_BF16"), table());
  return found;
}

const Table* table_of(const char* name) {
  for (const Row& row : kRows)
    if (std::strcmp(row.table->name, name) == 0 && row.supported()) return row.table;
  return nullptr;
}

const char* isa() { return table().name; }
const char* isa_reason() { return choice().reason.c_str(); }

void row_stats(const float* logits, int64_t n, float inverse_temperature, RowStats& stats) {
  table().row_stats(logits, n, inverse_temperature, stats);
}

RowStats stats_of_row(const float* logits, int64_t vocab, float inverse_temperature) {
  RowStats stats;
  for (int64_t at = 0; at < vocab; at += kTile)
    row_stats(logits + at, vocab - at < kTile ? vocab - at : kTile, inverse_temperature, stats);
  return stats;
}

void row_gradient(const float* logits, int64_t n, int64_t target, const RowGradient& row, float* out) {
  table().row_gradient(logits, n, target, row, out);
}

}  // namespace ucas::kernels
