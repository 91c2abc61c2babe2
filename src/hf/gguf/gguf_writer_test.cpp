#include "hf/gguf/gguf_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/files/file.h"
#include "hf/gguf/gguf.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

TEST(gguf_writer, writes_what_the_reader_reads) {
  const testing::TemporaryDirectory folder;
  const std::string path = path_join(folder.path(), "a.gguf");
  const std::vector<GgufEntry> entries = {{"general.architecture", std::string("llama")},
                                          {"a.number", uint32_t{7}},
                                          {"a.share", 0.5f},
                                          {"a.truth", true},
                                          {"a.words", std::vector<std::string>{"x", "yz"}},
                                          {"a.numbers", std::vector<int32_t>{-1, 2}}};
  const auto ramp = [](int64_t n) {
    return [n](float* out) {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(i) - 5;
    };
  };
  write_gguf(path, entries, {{"v", {3}, ramp(3)}, {"m", {2, 5}, ramp(10)}, {"w", {1, 4}, ramp(4)}}, GgufStorage::bf16);
  const GgufFile file(path);
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.integer("a.number", 0, 9), 7);
  EXPECT_EQ(file.number("a.share"), 0.5);
  EXPECT_EQ(file.truth("a.truth"), true);
  EXPECT_EQ(file.texts("a.words"), (std::vector<std::string>{"x", "yz"}));
  EXPECT_EQ(file.integers("a.numbers", -9, 9), (std::vector<int64_t>{-1, 2}));
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_STREQ(file.tensor("v")->type->name, "F32");
  EXPECT_STREQ(file.tensor("m")->type->name, "BF16");
  EXPECT_EQ(file.tensor("m")->shape, (std::vector<int64_t>{2, 5}));
  std::vector<float> values(10);
  file.read(*file.tensor("m"), 0, 10, values.data());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], static_cast<float>(i) - 5);
}

TEST(gguf_writer, q8_0_rounds_to_the_nearest_of_255_steps) {
  std::vector<float> values(32, 0);
  values[0] = 127;
  values[1] = -0.5f;
  values[2] = 0.49f;
  const std::string bytes = gguf_bytes(values.data(), 32, GgufStorage::q8_0, "t");
  ASSERT_EQ(bytes.size(), 34u);
  uint16_t scale = 0;
  std::memcpy(&scale, bytes.data(), 2);
  EXPECT_EQ(scale, 0x3c00);  // 1
  EXPECT_EQ(bytes[2], 127);
  EXPECT_EQ(bytes[3], -1);  // halves away from zero
  EXPECT_EQ(bytes[4], 0);
  const std::vector<float> zeros(32, 0);
  EXPECT_EQ(gguf_bytes(zeros.data(), 32, GgufStorage::q8_0, "t"), std::string(34, '\0'));
}

TEST(gguf_writer, types_fall_back_where_a_row_is_no_whole_number_of_blocks) {
  EXPECT_EQ(storage_of({4, 64}, GgufStorage::q8_0), GgufStorage::q8_0);
  EXPECT_EQ(storage_of({4, 65}, GgufStorage::q8_0), GgufStorage::f16);
  EXPECT_EQ(storage_of({64}, GgufStorage::q8_0), GgufStorage::f32);
}

TEST(gguf_writer, values_that_a_type_cannot_hold_are_refused) {
  for (const float value : {70000.0f, INFINITY, NAN}) {
    EXPECT_THROW(gguf_bytes(&value, 1, GgufStorage::f16, "t"), Error) << value;
  }
  const float large = 70000;
  EXPECT_EQ(gguf_bytes(&large, 1, GgufStorage::bf16, "t").size(), 2u);
}

}  // namespace
}  // namespace ucas
