// The comparison of kernels, tried on the CPU: a table that is right passes, and of one with a broken kernel that
// kernel.
#include <gtest/gtest.h>

#include "support/engine/gpu_kernels.h"
#include "support/engine/gpu_views.h"
#include "support/gpu_emulation.h"

namespace ucas::testing {
namespace {

Kernels right() { return kernels_of(at::kCPU); }

std::vector<std::string> failed(const std::vector<KernelFinding>& findings) {
  std::vector<std::string> names;
  for (const KernelFinding& f : findings) {
    if (!f.ok()) names.push_back(f.what);
  }
  return names;
}
std::vector<std::string> failed_kernels(const gpu::Table& table) {
  return failed(check_kernels(right(), {table, at::kCPU}, KernelShapes::few));
}

TEST(gpu_kernels, the_hosts_walk_is_what_it_is) {
  for (const KernelFinding& f : check_kernels(right(), right(), KernelShapes::all)) {
    EXPECT_EQ(f.difference, 0) << f.what;
  }
}

using Break = void (*)(gpu::Table& table);
struct Broken {
  const char* kernel;
  Break nothing, almost;
};

template <auto kMember, class Arguments>
void does_nothing(gpu::Table& table) {
  table.*kMember = [](gpu::Stream, const Arguments&) {};
}
template <auto kMember, class Arguments>
void forgets_the_last_row(gpu::Table& table) {
  table.*kMember = [](gpu::Stream stream, const Arguments& a) {
    Arguments fewer = a;
    if constexpr (requires { fewer.rows; }) {
      --fewer.rows;
    } else if constexpr (requires { fewer.parts; }) {
      --fewer.parts;
    } else {
      --fewer.n;
    }
    (gpu::host().*kMember)(stream, fewer);
  };
}
template <auto kMember, class Arguments>
Broken broken(const char* kernel) {
  return {kernel, does_nothing<kMember, Arguments>, forgets_the_last_row<kMember, Arguments>};
}

TEST(gpu_kernels, a_broken_kernel_is_found_and_no_other) {
  using gpu::Table;
  const Broken all[] = {
      broken<&Table::embed, gpu::Embed>("embed"),
      broken<&Table::add_norm, gpu::AddNorm>("add_norm"),
      broken<&Table::norm_backward, gpu::NormBackward>("norm_backward"),
      broken<&Table::apply_rope_and_store_kv, gpu::RopeAndStoreKv>("apply_rope_and_store_kv"),
      broken<&Table::apply_rope_and_store_kv_backward, gpu::RopeAndStoreKvBackward>("apply_rope_and_store_kv_backward"),
      broken<&Table::swiglu, gpu::Swiglu>("swiglu"),
      broken<&Table::swiglu_backward, gpu::SwigluBackward>("swiglu_backward"),
      broken<&Table::add_parts, gpu::AddParts>("add_parts"),
      broken<&Table::head_stats_of_tiles, gpu::HeadStatsOfTiles>("head_stats_of_tiles"),
      broken<&Table::head_stats_of_rows, gpu::HeadStatsOfRows>("head_stats_of_rows"),
      broken<&Table::head_gradient, gpu::HeadGradient>("head_gradient"),
      broken<&Table::attend_decode, gpu::AttendDecode>("attend_decode"),
      broken<&Table::adamw, gpu::AdamW>("adamw"),
      broken<&Table::sum_of_squares, gpu::SumOfSquares>("sum_of_squares"),
  };
  Table none = gpu::host();
  std::vector<std::string> names;
  for (const Broken& b : all) {
    Table table = gpu::host();
    b.almost(table);
    EXPECT_EQ(failed_kernels(table), std::vector<std::string>{b.kernel});
    b.nothing(none);
    names.emplace_back(b.kernel);
  }
  EXPECT_EQ(failed_kernels(none), names);
}

TEST(gpu_kernels, so_are_smaller_faults) {
  const auto expect_found = [](const char* kernel, Break break_it) {
    gpu::Table table = gpu::host();
    break_it(table);
    EXPECT_EQ(failed_kernels(table), std::vector<std::string>{kernel});
  };
  expect_found("attend_decode", [](gpu::Table& table) {
    table.attend_decode = [](gpu::Stream stream, const gpu::AttendDecode& a) {
      gpu::AttendDecode other = a;
      if (a.window > 0) ++other.window;
      gpu::host().attend_decode(stream, other);
    };
  });
  expect_found("sample", [](gpu::Table& table) {
    table.sample = [](gpu::Stream stream, const gpu::SampleToken& a) {
      gpu::SampleToken other = a;
      gpu::SamplerRun next = *a.run;
      ++next.step;
      other.run = &next;
      gpu::host().sample(stream, other);
    };
  });
  expect_found("add_norm", [](gpu::Table& table) {  // writes beyond its rows
    table.add_norm = [](gpu::Stream stream, const gpu::AddNorm& a) {
      gpu::host().add_norm(stream, a);
      a.out_float[a.rows * a.width] = 0;
    };
  });
  expect_found("swiglu", [](gpu::Table& table) {  // a number that is none
    table.swiglu = [](gpu::Stream stream, const gpu::Swiglu& a) {
      gpu::host().swiglu(stream, a);
      a.out[a.rows * a.width - 1] = {0x7fc0};
    };
  });
  expect_found("sum_of_squares", [](gpu::Table& table) {  // sums in f32
    table.sum_of_squares = [](gpu::Stream stream, const gpu::SumOfSquares& a) {
      gpu::host().sum_of_squares(stream, a);
      a.part[0] = static_cast<float>(a.part[0]);
    };
  });
}

TEST(gpu_kernels, the_heads_of_a_model_are_tried_too) {
  ModelConfig own;
  own.num_attention_heads = 6;
  own.num_key_value_heads = 1;
  own.head_dim = 128;
  gpu::Table table = gpu::host();
  table.attend_decode = [](gpu::Stream stream, const gpu::AttendDecode& a) {
    if (a.d != 128) gpu::host().attend_decode(stream, a);
  };
  EXPECT_TRUE(failed(check_kernels(right(), {table, at::kCPU}, KernelShapes::few)).empty());
  EXPECT_EQ(failed(check_kernels(right(), {table, at::kCPU}, KernelShapes::few, &own)),
            std::vector<std::string>{"attend_decode"});
}

TEST(gpu_kernels, a_device_that_is_there_is_sound) {
  if (!has_cuda()) return;
  for (const KernelFinding& f : check_kernels(right(), kernels_of(at::Device(at::kCUDA, 0)), KernelShapes::all)) {
    EXPECT_TRUE(f.ok()) << f.what << " " << f.difference << " " << f.bound;
  }
}

}  // namespace
}  // namespace ucas::testing
