#include "hf/gguf/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "hf/safetensors.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

// The parts of a file, as bytes. What is wrong with whole files is in tests/support/gguf_file.py.
template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string text_of(std::string_view text) { return raw(static_cast<uint64_t>(text.size())) + std::string(text); }
std::string entry_of(std::string_view key, uint32_t kind, const std::string& value) {
  return text_of(key) + raw(kind) + value;
}
std::string info_of(std::string_view name, std::vector<uint64_t> sizes, uint32_t type, uint64_t offset) {
  std::string bytes = text_of(name) + raw(static_cast<uint32_t>(sizes.size()));
  for (uint64_t size : sizes) bytes += raw(size);
  return bytes + raw(type) + raw(offset);
}
std::string gguf_of(const std::vector<std::string>& entries, const std::vector<std::string>& infos,
                    const std::string& data, size_t alignment = 32) {
  std::string bytes = "GGUF" + raw(uint32_t{3}) + raw(uint64_t{infos.size()}) + raw(uint64_t{entries.size()});
  for (const auto* list : {&entries, &infos})
    for (const std::string& part : *list) bytes += part;
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
  return bytes + data;
}

class Gguf : public ::testing::Test {
 protected:
  GgufFile load(const std::string& bytes) const {
    const std::string path = folder_.path() + "/x.gguf";
    std::ofstream(path, std::ios::binary) << bytes;
    return GgufFile(path);
  }
  static void expect_refused(const std::function<void()>& act, const std::string& kind, const std::string& words) {
    try {
      act();
      ADD_FAILURE() << "accepted; expected " << kind << ": " << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  testing::TemporaryDirectory folder_;
};

TEST_F(Gguf, every_kind_of_value_is_read_as_it_was_written) {
  const GgufFile file =
      load(gguf_of({entry_of("u8", 0, raw(uint8_t{255})), entry_of("i8", 1, raw(int8_t{-128})),
                    entry_of("u16", 2, raw(uint16_t{65535})), entry_of("i16", 3, raw(int16_t{-2})),
                    entry_of("u32", 4, raw(uint32_t{1u << 31})), entry_of("i32", 5, raw(int32_t{-3})),
                    entry_of("f32", 6, raw(1e-5f)), entry_of("yes", 7, raw(uint8_t{1})),
                    entry_of("text", 8, text_of("caf\u00e9")), entry_of("u64", 10, raw(uint64_t{1} << 63)),
                    entry_of("i64", 11, raw(int64_t{-4})), entry_of("f64", 12, raw(0.1)),
                    entry_of("texts", 9, raw(uint32_t{8}) + raw(uint64_t{2}) + text_of("a") + text_of("")),
                    entry_of("kinds", 9, raw(uint32_t{5}) + raw(uint64_t{2}) + raw(int32_t{3}) + raw(int32_t{1})),
                    entry_of("after", 0, raw(uint8_t{7}))},
                   {}, ""));
  const auto whole = [&](const char* key) { return file.integer(key, INT64_MIN, INT64_MAX); };
  EXPECT_EQ(whole("u8"), 255);
  EXPECT_EQ(whole("i8"), -128);
  EXPECT_EQ(whole("u16"), 65535);
  EXPECT_EQ(whole("i16"), -2);
  EXPECT_EQ(whole("u32"), int64_t{1} << 31);
  EXPECT_EQ(whole("i32"), -3);
  EXPECT_EQ(whole("i64"), -4);
  EXPECT_EQ(whole("after"), 7);
  EXPECT_EQ(file.number("f32"), 1e-5) << "the number that was meant, not the nearest f32";
  EXPECT_EQ(file.number("f64"), 0.1);
  EXPECT_EQ(file.truth("yes"), true);
  EXPECT_EQ(file.text("text"), "caf\u00e9");
  EXPECT_EQ(file.texts("texts"), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(file.integers("kinds", 1, 6), (std::vector<int64_t>{3, 1}));
  EXPECT_FALSE(whole("absent") || file.text("absent") || file.truth("absent") || file.number("absent"));
  expect_refused([&] { whole("u64"); }, "gguf", "u64 = 9223372036854775808: expected a whole number");
  expect_refused([&] { file.integer("u8", 0, 9); }, "gguf", "u8 = 255: expected a whole number of 0 .. 9");
  expect_refused([&] { file.text("u8"); }, "gguf", "u8 = 255: expected a text");
  expect_refused([&] { file.truth("u8"); }, "gguf", "u8 = 255: expected a boolean");
  expect_refused([&] { file.integers("kinds", 1, 2); }, "gguf", "kinds[0] = 3: expected 1 .. 2");
  expect_refused([&] { file.texts("kinds"); }, "gguf", "kinds = an array of 2 int32: expected an array of texts");
}

TEST_F(Gguf, tensors_are_read_in_pieces_of_blocks_at_their_offsets) {
  std::string data;
  for (int i = 0; i < 4; ++i) {  // Q8_0: two rows of two blocks, of scale 1, 2, 3, 4
    data += raw(f16_of_f32(static_cast<float>(i + 1)));
    for (int k = 0; k < 32; ++k) data += static_cast<char>(k - 16);
  }
  data.resize(192, '\0');  // 136 bytes, aligned to 64
  data += raw(2.5f) + raw(-1.0f);
  const GgufFile file = load(gguf_of({entry_of("general.alignment", 4, raw(uint32_t{64}))},
                                     {info_of("f", {2}, 0, 192), info_of("q", {64, 2}, 8, 0)}, data, 64));
  const GgufTensor* q = file.tensor("q");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->shape, (std::vector<int64_t>{2, 64})) << "rows first";
  EXPECT_EQ(file.tensors().front().name, "q") << "in the order of their data";
  std::vector<float> values(128), piece(32);
  file.read(*q, 0, 128, values.data());
  EXPECT_EQ(values[0], -16.0f);
  EXPECT_EQ(values[33], -30.0f);
  EXPECT_EQ(values[127], 60.0f);
  file.read(*q, 64, 32, piece.data());
  EXPECT_EQ(piece[1], -45.0f);
  file.read(*file.tensor("f"), 0, 2, piece.data());
  EXPECT_EQ(piece[0], 2.5f);
  EXPECT_EQ(file.tensor("g"), nullptr);
}

TEST_F(Gguf, a_file_that_ends_anywhere_is_truncated) {
  const std::string whole =
      gguf_of({entry_of("a", 8, text_of("b")), entry_of("c", 9, raw(uint32_t{8}) + raw(uint64_t{1}) + text_of("d"))},
              {info_of("t", {32}, 0, 0)}, std::string(128, '\1'));
  load(whole);
  for (size_t size = 4; size < whole.size(); ++size) {
    expect_refused([&] { load(whole.substr(0, size)); }, "truncated", "x.gguf: ");
  }
}

// Bit by bit what gguf-py makes of random blocks with scales of every size (tools/make_gguf_goldens.py).
TEST_F(Gguf, every_type_is_widened_to_the_bits_of_the_reference) {
  std::map<std::string, StoredTensor> goldens;
  for (StoredTensor& t :
       read_safetensors_header(std::string(UCAS_SOURCE_DIR) + "/tests/goldens/gguf/blocks.safetensors")) {
    goldens.emplace(t.name, std::move(t));
  }
  size_t types = 0, values = 0;
  for (uint32_t id = 0; id < 64; ++id) {
    const GgufType* type = find_gguf_type(id);
    if (type == nullptr || std::string_view(type->name) == "F32") continue;
    ASSERT_TRUE(goldens.contains(str(type->name, ".blocks"))) << type->name;
    const StoredTensor &blocks = goldens.at(str(type->name, ".blocks")),
                       &expected = goldens.at(str(type->name, ".values"));
    std::vector<uint8_t> bytes(static_cast<size_t>(blocks.bytes));
    read_as_stored(blocks, bytes.data());
    const int64_t count = blocks.bytes / type->block_bytes;
    ASSERT_EQ(count * type->block_values, expected.elements()) << type->name;
    std::vector<uint32_t> bits(static_cast<size_t>(expected.elements()));
    read_as_stored(expected, bits.data());
    std::vector<float> widened(bits.size());
    type->widen(bytes.data(), count, widened.data());
    EXPECT_EQ(std::memcmp(widened.data(), bits.data(), bits.size() * 4), 0) << type->name;
    ++types;
    values += bits.size();
  }
  EXPECT_EQ(types, 10u);
  EXPECT_GT(values, 10'000u);
}

TEST_F(Gguf, a_type_that_is_not_read_is_refused_by_its_name) {
  const auto of_type = [&](uint32_t type) {
    load(gguf_of({}, {info_of("t", {256}, type, 0)}, std::string(2048, '\0')));
  };
  expect_refused([&] { of_type(23); }, "unsupported", "tensor t: type IQ4_XS; ucas reads F32, F16, BF16, Q4_0");
  expect_refused([&] { of_type(4); }, "dtype", "tensor t: type 4; ucas reads F32");
}

}  // namespace
}  // namespace ucas
