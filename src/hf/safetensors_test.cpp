#include "hf/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

class Safetensors : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "model.safetensors") const { return directory_ + "/" + name; }
  void write_raw(const std::string& bytes, const std::string& name = "model.safetensors") const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  static std::string file_of(const std::string& header, size_t data_bytes) {
    uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, '\1');
  }
  void expect_refused(const std::string& bytes, const std::string& kind, const std::string& why) const {
    write_raw(bytes);
    try {
      read_safetensors_header(path());
      ADD_FAILURE() << "accepted: " << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), kind) << why << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find("model.safetensors"), std::string::npos) << error.what();
    }
  }

  testing::TemporaryDirectory folder_;
  std::string directory_ = folder_.path();
};

TEST_F(Safetensors, a_hostile_header_is_refused_with_its_class) {
  auto header = [](const std::string& entry) { return R"({"a":)" + entry + "}"; };
  auto refused = [&](const std::string& entry, const std::string& kind, size_t data = 8) {
    expect_refused(file_of(header(entry), data), kind, entry);
  };
  expect_refused("", "truncated", "empty file");
  expect_refused("\1\0\0", "truncated", "three bytes");
  expect_refused(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}", "header_size", "length wraps");
  expect_refused(std::string("\0\0\0\0\0\0\0\x80", 8) + "{}", "header_size", "length 2^63");
  expect_refused(std::string("\x09\0\0\0\0\0\0\0", 8) + "{}", "header_size", "longer than the file");
  expect_refused(file_of("{", 0), "header_json", "cut JSON");
  expect_refused(file_of("[]", 0), "header_json", "not an object");
  expect_refused(file_of("{\"a\":\"\xff\"}", 0), "utf8", "bad UTF-8");
  expect_refused(file_of(std::string(100'000, '['), 0), "header_json", "deep nesting");
  expect_refused(file_of(R"({"a":1,"\u0061":2})", 0), "dup_key", "duplicate through an escape");
  expect_refused(file_of(R"({"__metadata__":{"format":1}})", 0), "header_json", "metadata of numbers");
  refused(R"([1])", "header_json");
  refused(R"({"dtype":"F32","shape":[2]})", "header_json");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})", "header_json");
  refused(R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})", "dtype");
  refused(R"({"dtype":7,"shape":[2],"data_offsets":[0,8]})", "dtype");
  refused(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})", "shape");
  refused(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "shape");
  refused(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})", "shape");
  refused(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", "shape");
  refused(R"({"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]})", "shape");
  refused(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]})", "shape");
  refused(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]})", "limit");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "offset");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})", "offset");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8.5]})", "offset");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,9]})", "offset");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,99999999999999999999999]})", "offset");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", "truncated", 7);
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", "size", 9);
  refused(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", "offset");
  std::string two = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],)";
  expect_refused(file_of(two + R"("data_offsets":[4,8]}})", 8), "offset", "overlap");
  expect_refused(file_of(two + R"("data_offsets":[12,16]}})", 16), "offset", "hole");
  write_raw(
      file_of(header(R"({"dtype":"F32","shape":[4503599627370496,4503599627370496,0],"data_offsets":[0,0]})"), 0));
  EXPECT_EQ(read_safetensors_header(path())[0].elements(), 0) << "zero times huge is empty";
}

TEST_F(Safetensors, metadata_may_be_null) {
  write_raw(file_of(R"({"__metadata__":null,"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4));
  EXPECT_EQ(read_safetensors_header(path()).size(), 1u);
}

TEST_F(Safetensors, only_plain_files_are_opened) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  try {
    read_safetensors_header(path());
    ADD_FAILURE() << "a FIFO was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "not_regular_file");
  }
}

TEST_F(Safetensors, an_index_names_plain_files_that_hold_what_it_promises) {
  std::string a = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  write_raw(file_of(a, 8), "one.safetensors");
  auto kind_of = [&](const std::string& map) {
    write_raw(R"({"weight_map":)" + map + "}", "model.safetensors.index.json");
    try {
      list_weights(directory_);
    } catch (const Error& error) {
      return error.word();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(kind_of(R"({"a":"one.safetensors"})"), "accepted");
  EXPECT_EQ(kind_of(R"({"a":"../one.safetensors"})"), "path");
  EXPECT_EQ(kind_of(R"({"a":"/etc/passwd"})"), "path");
  EXPECT_EQ(kind_of(R"({"a":"two.safetensors"})"), "path");
  EXPECT_EQ(kind_of(R"({"a":7})"), "header_json");
  EXPECT_EQ(kind_of(R"({"b":"one.safetensors"})"), "unexpected_tensor");
  EXPECT_EQ(kind_of(R"({"a":"one.safetensors","b":"one.safetensors"})"), "missing_tensor");
  EXPECT_EQ(kind_of(R"([])"), "header_json");
}

TEST_F(Safetensors, values_survive_each_stored_type) {
  std::vector<float> values{0.0f, -0.0f, 1.0f, -2.5f, 0.333251953125f, 65504.0f, 6.103515625e-05f, 5.9604645e-08f};
  for (const char* dtype : {"float32", "float16", "bfloat16"}) {
    std::vector<TensorToStore> tensors{{"x", {2, 4}, [&] { return values.data(); }},
                                       {"empty", {0}, [&] { return values.data(); }},
                                       {"y", {8}, [&] { return values.data(); }}};
    write_weights(directory_, tensors, dtype, 1 << 20);
    std::vector<StoredTensor> stored = list_weights(directory_);
    ASSERT_EQ(stored.size(), 3u);
    EXPECT_EQ(stored[1].name, "x");
    EXPECT_EQ(stored[1].shape, (std::vector<int64_t>{2, 4}));
    std::vector<float> back(8);
    read_as_f32(stored[1], back.data());
    for (size_t i = 0; i < values.size(); ++i) {
      float tolerance = std::strcmp(dtype, "bfloat16") == 0 ? std::abs(values[i]) / 256 : 0.0f;
      EXPECT_NEAR(back[i], values[i], tolerance) << dtype;
      EXPECT_EQ(std::signbit(back[i]), std::signbit(values[i]));
    }
  }
}

TEST_F(Safetensors, tensors_of_one_file_keep_their_own_types_and_bits) {
  const std::vector<float> wide{1.5f, -2.0f};
  const std::vector<uint16_t> half{0x3f80, 0x7fc0, 0xc000};  // bf16, a NaN among them
  const std::vector<int8_t> codes{-127, 0, 5};
  const std::vector<uint8_t> squares{0, 254};
  const std::vector<TensorToStore> tensors{{"wide", {2}, [&] { return wide.data(); }},
                                           {"half", {3, 1}, [&] { return half.data(); }, StoredType::bf16},
                                           {"codes", {3}, [&] { return codes.data(); }, StoredType::i8},
                                           {"squares", {2}, [&] { return squares.data(); }, StoredType::u8}};
  write_safetensors(path(), tensors);
  const std::vector<StoredTensor> stored = read_safetensors_header(path());
  ASSERT_EQ(stored.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(stored[i].name, tensors[i].name);
    EXPECT_EQ(stored[i].type, tensors[i].type);
    EXPECT_EQ(stored[i].dtype, dtype_of(tensors[i].type));
    EXPECT_EQ(stored[i].shape, tensors[i].shape);
    std::vector<char> back(static_cast<size_t>(stored[i].bytes));
    read_as_stored(stored[i], back.data());
    EXPECT_EQ(std::memcmp(back.data(), tensors[i].data(), back.size()), 0) << stored[i].name;
  }
  float unused[3];
  EXPECT_THROW(read_as_f32(stored[2], unused), Error);
  EXPECT_THROW(read_as_f32(stored[3], unused), Error);
}

// Weights that are bf16 in memory: the bits themselves into a bf16 file, the same numbers into any other.
TEST_F(Safetensors, weights_in_bf16_are_written_as_they_are_or_converted) {
  std::vector<uint16_t> half;
  std::vector<float> wide;
  for (uint32_t bits = 0; bits < 0x7f80; bits += 5) {
    half.push_back(static_cast<uint16_t>(bits));
    wide.push_back(std::bit_cast<float>(bits << 16));
  }
  const auto count = static_cast<int64_t>(half.size());
  for (const char* dtype : {"bfloat16", "float32", "float16"}) {
    write_weights(directory_, {{"x", {count}, [&] { return half.data(); }, StoredType::bf16}}, dtype, 1 << 20);
    const std::string from_half = read_file(path());
    write_weights(directory_, {{"x", {count}, [&] { return wide.data(); }}}, dtype, 1 << 20);
    EXPECT_TRUE(from_half == read_file(path())) << dtype;
  }
}

TEST_F(Safetensors, large_checkpoints_are_cut_into_shards_with_an_index) {
  std::vector<float> values(100, 2.0f);
  std::vector<TensorToStore> tensors;
  for (int i = 0; i < 7; ++i) tensors.push_back({str("t", i), {100}, [&] { return values.data(); }});
  write_weights(directory_, tensors, "float32", 900);
  EXPECT_TRUE(exists(path("model-00001-of-00004.safetensors")));
  EXPECT_FALSE(exists(path()));
  EXPECT_EQ(list_weights(directory_).size(), 7u);
}

TEST(half_floats, every_f16_reads_and_writes_back_the_same) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = f32_of_f16(static_cast<uint16_t>(bits));
    uint16_t back = f16_of_f32(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f32_of_f16(back)));
    } else {
      ASSERT_EQ(back, bits) << value;
    }
  }
}

TEST(half_floats, rounding_is_to_nearest_even) {
  EXPECT_EQ(f16_of_f32(1.0f + 0x1p-11f), 0x3c00);      // tie, down to even
  EXPECT_EQ(f16_of_f32(1.0f + 3 * 0x1p-11f), 0x3c02);  // tie, up to even
  EXPECT_EQ(f16_of_f32(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);
  EXPECT_EQ(f16_of_f32(65519.0f), 0x7bff);
  EXPECT_EQ(f16_of_f32(65520.0f), 0x7c00);  // infinity
  EXPECT_EQ(f16_of_f32(0x1p-25f), 0);
  EXPECT_EQ(f16_of_f32(0x1.8p-25f), 1);
  EXPECT_EQ(bf16_of_f32(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(bf16_of_f32(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_TRUE(std::isnan(f32_of_f16(f16_of_f32(NAN))));
}

}  // namespace
}  // namespace ucas
