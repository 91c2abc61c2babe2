// The check of a device, tried on the CPU: a table that is right passes, and of one with a broken kernel that kernel.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "model/backend/gpu/gpu_check.h"
#include "model/transformer.h"
#include "support/engine/gpu_views.h"

namespace ucas {
namespace {

const Kernels kRight = kernels_of(at::kCPU);

std::vector<std::string> failed(const std::vector<GpuFinding>& findings) {
  std::vector<std::string> names;
  for (const GpuFinding& f : findings) {
    if (!f.ok()) names.push_back(f.what);
  }
  return names;
}
std::vector<std::string> failed_kernels(const gpu::Table& table) {
  return failed(check_kernels(kRight, {table, at::kCPU}, GpuShapes::few));
}

TEST(gpu_check, the_hosts_walk_is_what_it_is) {
  for (const GpuFinding& f : check_kernels(kRight, kRight, GpuShapes::all)) {
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

TEST(gpu_check, a_broken_kernel_is_found_and_no_other) {
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
      broken<&Table::adamw_packed, gpu::AdamWPacked>("adamw_packed"),
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

TEST(gpu_check, so_are_smaller_faults) {
  const auto expect_found = [](const char* kernel, Break spoil) {
    gpu::Table table = gpu::host();
    spoil(table);
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

TEST(gpu_check, the_native_path_is_as_near_to_the_walk_as_a_device_must_be) {
  for (const auto& native : models_to_check(at::kCPU, GpuShapes::all)) {
    for (const GpuFinding& f : check_model(*emulated_view(*native), *native)) {
      EXPECT_TRUE(f.ok()) << f.what << " " << f.difference;
      std::printf("%-9s %.5f of %.5f\n", f.what.c_str(), f.difference, f.bound);
    }
  }
}

TEST(gpu_check, a_training_tries_the_heads_of_its_own_model) {
  ModelConfig own;
  own.num_attention_heads = 6;
  own.num_key_value_heads = 1;
  own.head_dim = 128;
  gpu::Table table = gpu::host();
  table.attend_decode = [](gpu::Stream stream, const gpu::AttendDecode& a) {
    if (a.d != 128) gpu::host().attend_decode(stream, a);
  };
  EXPECT_TRUE(failed(check_kernels(kRight, {table, at::kCPU}, GpuShapes::few)).empty());
  EXPECT_EQ(failed(check_kernels(kRight, {table, at::kCPU}, GpuShapes::few, &own)),
            std::vector<std::string>{"attend_decode"});
  const auto models = models_to_check(at::kCPU, GpuShapes::few, &own);
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[1]->config().num_attention_heads, 6);
}

TEST(gpu_check, other_weights_are_found) {
  const auto right = models_to_check(at::kCPU, GpuShapes::few), other = models_to_check(at::kCPU, GpuShapes::few);
  {
    const at::NoGradGuard no_grad;
    for (const NamedTensor& p : other[0]->parameters()) {
      if (p.name == "model.layers.1.self_attn.k_proj.bias") p.tensor.detach().add_(1.0);
    }
    other[0]->refresh();
  }
  EXPECT_EQ(failed(check_model(*emulated_view(*right[0]), *other[0])),
            (std::vector<std::string>{"forward", "backward", "decoding"}));
}

TEST(gpu_check, the_worse_of_two_rows_is_kept) {
  std::vector<GpuFinding> rows = {{"a", 0.1, 1}, {"b", 0.2, 1}};
  keep_worse(rows, {{"b", 0.1, 1}, {"a", 0.3, 1}, {"c", 0.4, 1}});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].difference, 0.3);
  EXPECT_EQ(rows[1].difference, 0.2);
  EXPECT_EQ(rows[2].what, "c");
}

TEST(gpu_check, a_device_that_is_there_is_sound) {
  if (!testing::has_cuda()) return;
  for (const GpuFinding& f : check_kernels(kRight, kernels_of(at::Device(at::kCUDA, 0)), GpuShapes::all)) {
    EXPECT_TRUE(f.ok()) << f.what << " " << f.difference << " " << f.bound;
  }
}

}  // namespace
}  // namespace ucas
