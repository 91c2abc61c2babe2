#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "support/patience.h"
#include "support/temporary_directory.h"
#include "support/tokenizer_goldens.h"
#include "text/unicode/unicode.h"

namespace ucas {
namespace {

using testing::Ids, testing::put_file;

const std::string kGoldens = testing::tokenizer_goldens();

std::string shared_data() {
  const char* set = std::getenv("UCAS_SHARED_DATA");
  return set != nullptr ? set : std::string(UCAS_SOURCE_DIR) + "/../shared/data";
}

// Rows that Hugging Face tokenizers made: text -> ids -> decoded text.
void expect_same(const Tokenizer& tokenizer, const std::string& path, size_t rows) {
  std::vector<std::string> lines = split(read_file(path), '\n');
  size_t seen = 0;
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    Json row = parse_json(line, path);
    std::string text = row["text"].get<std::string>();
    Ids ids = row["ids"].get<Ids>();
    std::string decoded = row.contains("decoded") ? row["decoded"].get<std::string>() : text;
    EXPECT_EQ(tokenizer.encode(text), ids) << printable(text);
    EXPECT_EQ(replace_invalid(tokenizer.decode(ids)), decoded) << printable(text);
    if (row.contains("without_special")) {
      EXPECT_EQ(replace_invalid(tokenizer.decode(ids, true)), row["without_special"].get<std::string>());
    }
    Tokenizer::Stream stream(tokenizer);
    std::string streamed;
    for (int32_t id : ids) streamed += stream.push(id);
    EXPECT_EQ(streamed + stream.finish(), decoded) << printable(text);
    ++seen;
  }
  EXPECT_EQ(seen, rows);
}

struct Kind {
  const char* name;
  size_t rows;
};

class tokenizer_kind : public ::testing::TestWithParam<Kind> {};

TEST_P(tokenizer_kind, encodes_and_decodes_as_hugging_face) {
  const std::string folder = kGoldens + GetParam().name;
  expect_same(Tokenizer::load(folder), folder + "/cases.jsonl", GetParam().rows);
}

INSTANTIATE_TEST_SUITE_P(goldens, tokenizer_kind,
                         ::testing::Values(Kind{"qwen2-like", 331}, Kind{"gpt2-like", 331}, Kind{"added-tokens", 331},
                                           Kind{"llama3-like", 183}, Kind{"deepseek-coder-like", 183},
                                           Kind{"deepseek3-like", 183}, Kind{"o200k-like", 183},
                                           Kind{"qwen2-deep", 323}, Kind{"cl100k-like", 183}, Kind{"tekken-like", 183},
                                           Kind{"split-kinds", 183}, Kind{"llama2-like", 183},
                                           Kind{"mistral-like", 183}, Kind{"gemma-like", 183},
                                           Kind{"metaspace-unknown", 183}, Kind{"metaspace-never", 183},
                                           Kind{"smollm2-like", 200}, Kind{"bytes-unknown", 200},
                                           Kind{"bytes-fallback", 200}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(tokenizer, the_real_vocabularies_give_the_published_ids) {
  std::string data = shared_data();
  if (!exists(data + "/tokenizer-qwen2/tokenizer.json")) GTEST_SKIP() << "no shared data at " << data;
  Tokenizer qwen2 = Tokenizer::load(data + "/tokenizer-qwen2");
  EXPECT_EQ(qwen2.vocab_size(), 151665);
  expect_same(qwen2, data + "/tokenizer-qwen2/cases.jsonl", 1000);
  Tokenizer gpt2 = Tokenizer::load(data + "/tokenizer-more/gpt-2");
  Tokenizer deepseek = Tokenizer::load(data + "/tokenizer-more/deepseek-coder");
  for (const auto& [tokenizer, stem] :
       {std::pair(&qwen2, "/tokenizer-qwen2/ggml-vocab-qwen2"),
        std::pair(&gpt2, "/tokenizer-more/gpt-2/ggml-vocab-gpt-2"),
        std::pair(&deepseek, "/tokenizer-more/deepseek-coder/ggml-vocab-deepseek-coder")}) {
    std::string texts = read_file(data + stem + ".inp");
    std::vector<std::string> lines = split(read_file(data + stem + ".out"), '\n');
    const std::string separator = "\n__ggml_vocab_test__\n";
    size_t identical = 0;
    for (size_t at = 0, row = 0; row < 47; ++row) {
      size_t end = std::min(texts.find(separator, at), texts.size());
      Ids expected;
      for (const std::string& word : split(lines.at(row), ' ')) {
        if (!word.empty()) expected.push_back(std::stoi(word));
      }
      identical += tokenizer->encode(texts.substr(at, end - at)) == expected;
      at = std::min(texts.size(), end + separator.size());
    }
    EXPECT_EQ(identical, 47u) << stem;
  }
}

TEST(tokenizer, special_tokens_can_be_plain_text) {
  Tokenizer tokenizer = Tokenizer::load(kGoldens + "qwen2-like");
  int32_t end = *tokenizer.id_of("<|end|>"), tool = *tokenizer.id_of("<tool>");
  EXPECT_EQ(tokenizer.encode("<|end|>"), Ids{end});
  Ids plain = tokenizer.encode("<|end|><tool>", Tokenizer::Special::as_text);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), end), 0);
  EXPECT_EQ(plain.back(), tool) << "a token that is not special is found all the same";
  EXPECT_EQ(tokenizer.decode(plain), "<|end|><tool>");
  EXPECT_EQ(tokenizer.decode(Ids{end, tool}, true), "<tool>");
}

TEST(tokenizer, bytes_that_are_not_utf8_are_encoded_as_they_are) {
  Tokenizer tokenizer = Tokenizer::load(kGoldens + "qwen2-like");
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed, 4);
    std::string text;
    for (int64_t n = rng.below(40); n > 0; --n) text += static_cast<char>(rng.below(256));
    text += "<|end|>\xFF";
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), nfc(text)) << printable(text);
  }
}

TEST(tokenizer, ids_without_a_token_decode_to_nothing_and_negative_ones_are_refused) {
  Tokenizer tokenizer = Tokenizer::load(kGoldens + "qwen2-like");
  EXPECT_EQ(tokenizer.decode(Ids{'!' - '!', 100000}), "!");
  EXPECT_EQ(tokenizer.token_text(100000), "");
  EXPECT_THROW(tokenizer.decode(Ids{-1}), Error);
}

TEST(tokenizer, a_stream_holds_back_half_a_character) {
  Tokenizer tokenizer = Tokenizer::load(kGoldens + "gpt2-like");
  auto byte = [&](int b) {
    std::string one(1, static_cast<char>(b));
    for (int32_t id = 0; id < 256; ++id) {
      if (tokenizer.token_text(id) == one) return id;
    }
    return -1;
  };
  Tokenizer::Stream stream(tokenizer);
  EXPECT_EQ(stream.push(byte('a')), "a");
  EXPECT_EQ(stream.push(byte(0xE2)), "");
  EXPECT_EQ(stream.push(byte(0x82)), "");
  EXPECT_EQ(stream.push(byte(0xAC)), "\xE2\x82\xAC");
  EXPECT_EQ(stream.push(byte(0xE2)), "");
  EXPECT_EQ(stream.push(byte('b')),
            "\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(stream.push(byte(0xF0)), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(tokenizer, end_and_padding_come_from_the_configuration) {
  testing::TemporaryDirectory directory;
  put_file(directory.path() + "/tokenizer.json", read_file(kGoldens + "qwen2-like/tokenizer.json"));
  EXPECT_TRUE(Tokenizer::load(directory.path()).eos_ids().empty());
  put_file(directory.path() + "/special_tokens_map.json", R"({"pad_token": "<|start|>", "eos_token": "<tool>"})");
  put_file(directory.path() + "/tokenizer_config.json",
           R"({"eos_token": {"content": "<|end|>"}, "added_tokens_decoder": {"424": {"content": "<new>"}}})");
  Tokenizer tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer.eos_ids(), Ids{*tokenizer.id_of("<|end|>")});
  EXPECT_EQ(tokenizer.pad_id(), tokenizer.id_of("<|start|>"));
  EXPECT_EQ(tokenizer.encode("<new>"), Ids{424});
  put_file(directory.path() + "/tokenizer_config.json", R"({"eos_token": "<|gone|>"})");
  EXPECT_THROW(Tokenizer::load(directory.path()), Error);
  put_file(directory.path() + "/tokenizer_config.json", R"({"added_tokens_decoder": {"3": {"content": "<|end|>"}}})");
  EXPECT_THROW(Tokenizer::load(directory.path()), Error);
}

TEST(tokenizer, files_are_passed_through_byte_for_byte) {
  testing::TemporaryDirectory from, to;
  for (const char* name : {"tokenizer.json", "merges.txt", "chat_template.jinja"})
    put_file(from.path() + "/" + name, name);
  put_file(from.path() + "/weights.bin", "no");
  copy_tokenizer_files(from.path(), to.path());
  EXPECT_EQ(list_directory(to.path()),
            (std::vector<std::string>{"chat_template.jinja", "merges.txt", "tokenizer.json"}));
  EXPECT_EQ(read_file(to.path() + "/merges.txt"), "merges.txt");
}

TEST(tokenizer, a_prompt_begins_once_with_what_the_post_processor_puts_there) {
  Tokenizer llama3 = Tokenizer::load(kGoldens + "llama3-like");
  const int32_t bos = *llama3.id_of("<|begin_of_text|>");
  const Ids text = llama3.encode("It's 2024!");
  Ids begun = text;
  begun.insert(begun.begin(), bos);
  EXPECT_EQ(llama3.prefix(), Ids{bos});
  EXPECT_EQ(llama3.encode_prompt("It's 2024!"), begun);
  EXPECT_EQ(llama3.encode_prompt("<|begin_of_text|>It's 2024!"), begun) << "a template that has it gets no second one";
  EXPECT_EQ(std::count(text.begin(), text.end(), bos), 0);
  EXPECT_EQ(llama3.encode_prompt(""), Ids{bos});
  Tokenizer qwen2 = Tokenizer::load(kGoldens + "qwen2-like");
  EXPECT_EQ(qwen2.encode_prompt("It's 2024!"), qwen2.encode("It's 2024!"));
}

TEST(tokenizer, what_a_template_puts_after_a_text_does_not_end_a_prompt) {
  Json json = read_json(kGoldens + "llama2-like/tokenizer.json", 1 << 20);
  json["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}});
  json["post_processor"]["special_tokens"]["</s>"] = {{"id", "</s>"}, {"ids", {2}}, {"tokens", {"</s>"}}};
  testing::TemporaryDirectory directory;
  put_file(directory.path() + "/tokenizer.json", json.dump());
  Tokenizer tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer.encode_prompt("a").front(), 1);
  EXPECT_NE(tokenizer.encode_prompt("a").back(), 2);
}

TEST(tokenizer, only_what_begins_a_sequence_gets_the_space_of_mistral) {
  Tokenizer tokenizer = Tokenizer::load(kGoldens + "mistral-like");
  const auto later = tokenizer.encode("the", Tokenizer::Special::parse, Tokenizer::Place::later);
  EXPECT_EQ(tokenizer.encode("the"), tokenizer.encode(" the", Tokenizer::Special::parse, Tokenizer::Place::later));
  EXPECT_NE(tokenizer.encode("the"), later);
  Ids whole = tokenizer.encode("[INST]the");
  EXPECT_EQ(Ids(whole.begin() + 1, whole.end()), later);
}

TEST(tokenizer, broken_bytes_of_characters_fall_back_to_their_own_tokens) {
  Tokenizer tokenizer = Tokenizer::load(kGoldens + "llama2-like");
  const Ids ids = tokenizer.encode("a\xFF\xE2");
  EXPECT_EQ(ids, (Ids{tokenizer.encode("a")[0], *tokenizer.id_of("<0xFF>"), *tokenizer.id_of("<0xE2>")}));
  EXPECT_EQ(tokenizer.decode(ids), "a\uFFFD\uFFFD");
  EXPECT_EQ(tokenizer.token_text(ids[1]), "\xFF");
  Tokenizer unknown = Tokenizer::load(kGoldens + "metaspace-unknown");
  EXPECT_EQ(unknown.encode("a\xFF"), unknown.encode("a\uFFFD"));
}

TEST(tokenizer, bytes_of_no_text_may_lack_a_token) {
  Json json = read_json(kGoldens + "qwen2-like/tokenizer.json", 1 << 20);
  const std::string spelling = "\u00F5";  // of the byte 0xF5, which is in no UTF-8 text
  json["model"]["vocab"]["two words"] = json["model"]["vocab"][spelling];
  json["model"]["vocab"].erase(spelling);
  json["added_tokens"].push_back({{"id", json["model"]["vocab"]["two words"]}, {"content", "two words"}});
  testing::TemporaryDirectory directory;
  put_file(directory.path() + "/tokenizer.json", json.dump());
  Tokenizer tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer.encode("a\xF5"), tokenizer.encode("a\uFFFD"));
}

TEST(tokenizer, bytes_that_texts_hold_may_lack_a_token_and_are_named_once) {
  testing::TemporaryDirectory directory;
  put_file(directory.path() + "/tokenizer.json", read_file(kGoldens + "smollm2-like/tokenizer.json"));
  std::vector<std::string> said;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) { said.push_back(message); });
  const Tokenizer tokenizer = Tokenizer::load(directory.path());
  Tokenizer::load(directory.path());
  set_log_sink(before);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("tokenizer.json: no token for "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("(0-8 11-12 14-31 33-35 "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("they are dropped from a text, as in Hugging Face tokenizers"), std::string::npos) << said[0];
  EXPECT_TRUE(tokenizer.lacks_bytes());
  EXPECT_EQ(tokenizer.unencodable_bytes("th\x04"
                                        "e \x1d"),
            2);
  EXPECT_EQ(tokenizer.unencodable_bytes("the"), 0);
  const Tokenizer whole = Tokenizer::load(kGoldens + "qwen2-like");
  EXPECT_FALSE(whole.lacks_bytes());
  EXPECT_EQ(whole.unencodable_bytes("th\x04"
                                    "e"),
            0);
}

TEST(tokenizer, characters_without_a_token_may_be_dropped) {
  Json json = read_json(kGoldens + "llama2-like/tokenizer.json", 1 << 20);
  json["model"]["unk_token"] = nullptr;
  json["model"]["byte_fallback"] = false;
  testing::TemporaryDirectory directory;
  put_file(directory.path() + "/tokenizer.json", json.dump());
  const Tokenizer tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer.encode("the\u4E16 the"), tokenizer.encode("the the"));
}

TEST(tokenizer, an_expression_that_goes_back_and_forth_too_long_is_an_error) {
  Json json = read_json(kGoldens + "qwen2-like/tokenizer.json", 1 << 20);
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a+)+b";
  testing::TemporaryDirectory directory;
  put_file(directory.path() + "/tokenizer.json", json.dump());
  Tokenizer tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("xaab")), "xaab");
  try {
    tokenizer.encode(std::string(60, 'a'));
    ADD_FAILURE() << "it came to an end";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "limit");
    EXPECT_NE(std::string(error.what()).find("\"(a+)+b\" of the tokenizer on a text of 60 bytes"), std::string::npos)
        << error.what();
  }
}

TEST(tokenizer, truncation_and_padding_of_an_earlier_caller_change_nothing) {
  Json json = read_json(kGoldens + "qwen2-like/tokenizer.json", 1 << 20);
  json["truncation"] = {{"direction", "Right"}, {"max_length", 2}, {"strategy", "LongestFirst"}, {"stride", 0}};
  json["padding"] = {{"strategy", {{"Fixed", 50}}}, {"direction", "Left"}, {"pad_id", 0}, {"pad_token", "!"}};
  testing::TemporaryDirectory directory;
  put_file(directory.path() + "/tokenizer.json", json.dump());
  expect_same(Tokenizer::load(directory.path()), kGoldens + "qwen2-like/cases.jsonl", 331);
}

TEST(tokenizer, merges_are_read_in_both_spellings) {
  Json json = read_json(kGoldens + "qwen2-like/tokenizer.json", 1 << 20);
  for (Json& merge : json["model"]["merges"]) {
    ASSERT_TRUE(merge.is_array());
    merge = str(merge[0].get<std::string>(), " ", merge[1].get<std::string>());
  }
  testing::TemporaryDirectory directory;
  put_file(directory.path() + "/tokenizer.json", json.dump());
  expect_same(Tokenizer::load(directory.path()), kGoldens + "qwen2-like/cases.jsonl", 331);
}

TEST(tokenizer, time_grows_with_the_length_of_the_text_not_with_its_square) {
  for (const char* kind : {"qwen2-like", "llama3-like", "llama2-like", "o200k-like"}) {
    Tokenizer tokenizer = Tokenizer::load(kGoldens + kind);
    for (const char* unit : {"a", " ", "\n", "!", "\xCC\x81", "1", "\xFF", "<|end", "ab"}) {
      std::string text;
      while (text.size() < 500'000) text += unit;
      const double began = testing::cpu_seconds();
      Ids ids = tokenizer.encode(text);
      EXPECT_LT(testing::cpu_seconds() - began, 10.0) << kind << " " << printable(unit);  // 0.03 s; n^2: many minutes
      if (std::string_view(kind) == "qwen2-like") {
        EXPECT_EQ(tokenizer.decode(ids), nfc(text));
      }
    }
  }
}

}  // namespace
}  // namespace ucas
