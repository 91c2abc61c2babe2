#include "model/stored.h"

#include <ATen/core/Tensor.h>
#include <algorithm>
#include <bit>

#include <iterator>
#include <memory>
#include <utility>

#include "base/error.h"

namespace ucas {

StoredType stored_type_of(const at::Tensor& tensor) {
  constexpr std::pair<at::ScalarType, StoredType> kTypes[] = {{at::kFloat, StoredType::f32},
                                                              {at::kHalf, StoredType::f16},
                                                              {at::kBFloat16, StoredType::bf16},
                                                              {at::kChar, StoredType::i8},
                                                              {at::kByte, StoredType::u8}};
  const auto* found = std::ranges::find(kTypes, tensor.scalar_type(), &std::pair<at::ScalarType, StoredType>::first);
  UCAS_CHECK(found != std::end(kTypes), "a tensor of a type that weight files hold");
  return found->second;
}

std::vector<TensorToStore> tensors_to_store(const std::vector<NamedTensor>& tensors, const MasterValues& values) {
  auto staging = std::make_shared<at::Tensor>();  // keeps one copy alive while it is written
  std::vector<TensorToStore> stored;
  for (const NamedTensor& t : tensors) {
    const auto data = [staging, tensor = t.tensor, values]() -> const void* {
      staging->reset();  // before the next is made
      *staging = (has_values(tensor) ? tensor.detach() : values(tensor)).cpu().contiguous();
      return staging->const_data_ptr();
    };
    stored.push_back({t.name, t.tensor.sizes().vec(), data, stored_type_of(t.tensor)});
  }
  return stored;
}

namespace {

// Bits of the largest f32 that stays finite, its sign left out.
uint32_t largest_magnitude(const std::string& torch_dtype) {
  if (torch_dtype == "float16") return 0x477fefffu;   // just below 65520, which rounds to infinity
  if (torch_dtype == "bfloat16") return 0x7f7f7fffu;  // the next one rounds to infinity
  return 0x7f7fffffu;
}

}  // namespace

int64_t first_not_finite(std::span<const float> values, const std::string& torch_dtype) {
  const uint32_t largest = largest_magnitude(torch_dtype);
  auto bad = [largest](float value) { return (std::bit_cast<uint32_t>(value) & 0x7fffffffu) > largest; };
  constexpr size_t kBlock = 4096;  // looked at as a whole first, which vectorises
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::span<const float> block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    bool any = false;
    for (float value : block) any |= bad(value);
    if (!any) continue;
    return static_cast<int64_t>(begin) + (std::find_if(block.begin(), block.end(), bad) - block.begin());
  }
  return -1;
}

}  // namespace ucas
