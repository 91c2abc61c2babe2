#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "support/temporary_directory.h"
#include "text/unicode.h"

namespace ucas {
namespace {

using Ids = std::vector<int32_t>;

const std::string kGoldens = std::string(UCAS_SOURCE_DIR) + "/tests/goldens/tokenizer/";

std::string shared_data() {
  const char* set = std::getenv("UCAS_SHARED_DATA");
  return set != nullptr ? set : std::string(UCAS_SOURCE_DIR) + "/../shared/data";
}

// Not through base/file: hundreds of fsyncs would take longer than the tests.
void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

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
    Tokenizer::Stream stream(tokenizer);
    std::string streamed;
    for (int32_t id : ids) streamed += stream.push(id);
    EXPECT_EQ(streamed + stream.finish(), decoded) << printable(text);
    ++seen;
  }
  EXPECT_EQ(seen, rows);
}

TEST(tokenizer, encodes_and_decodes_as_hugging_face_with_the_pattern_of_qwen2) {
  expect_same(Tokenizer::load(kGoldens + "qwen2-like"), kGoldens + "qwen2-like/cases.jsonl", 331);
}

TEST(tokenizer, encodes_and_decodes_as_hugging_face_with_the_pattern_of_gpt2_and_a_prefix_space) {
  expect_same(Tokenizer::load(kGoldens + "gpt2-like"), kGoldens + "gpt2-like/cases.jsonl", 331);
}

TEST(tokenizer, added_tokens_strip_and_match_whole_words_as_in_hugging_face) {
  expect_same(Tokenizer::load(kGoldens + "added-tokens"), kGoldens + "added-tokens/cases.jsonl", 331);
}

TEST(tokenizer, the_real_vocabularies_give_the_published_ids) {
  std::string data = shared_data();
  if (!exists(data + "/tokenizer-qwen2/tokenizer.json")) GTEST_SKIP() << "no shared data at " << data;
  Tokenizer qwen2 = Tokenizer::load(data + "/tokenizer-qwen2");
  EXPECT_EQ(qwen2.vocab_size(), 151665);
  expect_same(qwen2, data + "/tokenizer-qwen2/cases.jsonl", 1000);
  Tokenizer gpt2 = Tokenizer::load(data + "/tokenizer-more/gpt-2");
  for (const auto& [tokenizer, stem] : {std::pair(&qwen2, "/tokenizer-qwen2/ggml-vocab-qwen2"),
                                        std::pair(&gpt2, "/tokenizer-more/gpt-2/ggml-vocab-gpt-2")}) {
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
  put(directory.path() + "/tokenizer.json", read_file(kGoldens + "qwen2-like/tokenizer.json"));
  EXPECT_TRUE(Tokenizer::load(directory.path()).eos_ids().empty());
  put(directory.path() + "/special_tokens_map.json", R"({"pad_token": "<|start|>", "eos_token": "<tool>"})");
  put(directory.path() + "/tokenizer_config.json",
      R"({"eos_token": {"content": "<|end|>"}, "added_tokens_decoder": {"424": {"content": "<new>"}}})");
  Tokenizer tokenizer = Tokenizer::load(directory.path());
  EXPECT_EQ(tokenizer.eos_ids(), Ids{*tokenizer.id_of("<|end|>")});
  EXPECT_EQ(tokenizer.pad_id(), tokenizer.id_of("<|start|>"));
  EXPECT_EQ(tokenizer.encode("<new>"), Ids{424});
  put(directory.path() + "/tokenizer_config.json", R"({"eos_token": "<|gone|>"})");
  EXPECT_THROW(Tokenizer::load(directory.path()), Error);
  put(directory.path() + "/tokenizer_config.json", R"({"added_tokens_decoder": {"3": {"content": "<|end|>"}}})");
  EXPECT_THROW(Tokenizer::load(directory.path()), Error);
}

TEST(tokenizer, files_are_passed_through_byte_for_byte) {
  testing::TemporaryDirectory from, to;
  for (const char* name : {"tokenizer.json", "merges.txt", "chat_template.jinja"}) put(from.path() + "/" + name, name);
  put(from.path() + "/weights.bin", "no");
  copy_tokenizer_files(from.path(), to.path());
  EXPECT_EQ(list_directory(to.path()),
            (std::vector<std::string>{"chat_template.jinja", "merges.txt", "tokenizer.json"}));
  EXPECT_EQ(read_file(to.path() + "/merges.txt"), "merges.txt");
}

struct Refusal {
  const char* what;
  const char* kind;
  const char* says;
  std::function<void(Json&)> change;
};

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> table = {
      {"normaliser", "unsupported", "normalizers[0]: the normalizer Lowercase",
       [](Json& j) { j["normalizer"]["normalizers"][0] = {{"type", "Lowercase"}}; }},
      {"normaliser setting", "unsupported", "unknown setting \"strength\"",
       [](Json& j) { j["normalizer"] = {{"type", "NFC"}, {"strength", 2}}; }},
      {"pre-tokenizer", "unsupported", "the pre-tokenizer Metaspace",
       [](Json& j) { j["pre_tokenizer"] = {{"type", "Metaspace"}}; }},
      {"no pre-tokenizer", "tokenizer", "\"pre_tokenizer\": null, expected an object",
       [](Json& j) { j["pre_tokenizer"] = nullptr; }},
      {"part of a sequence", "unsupported", "pretokenizers[0]: the pre-tokenizer Digits",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0] = {{"type", "Digits"}, {"individual_digits", true}}; }},
      {"order of a sequence", "unsupported", "must be one Split, then ByteLevel",
       [](Json& j) { std::swap(j["pre_tokenizer"]["pretokenizers"][0], j["pre_tokenizer"]["pretokenizers"][1]); }},
      {"backtracking expression", "unsupported", "\"(a+)+b\" is not known",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a+)+b"; }},
      {"empty expression", "unsupported", "is not known",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = ""; }},
      {"behaviour", "unsupported", "Isolated",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }},
      {"inverted", "unsupported", "invert", [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["invert"] = true; }},
      {"literal pattern", "unsupported", "only a Regex",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", " "}}; }},
      {"post-processor", "unsupported", "the post-processor BertProcessing",
       [](Json& j) { j["post_processor"] = {{"type", "BertProcessing"}}; }},
      {"template that adds", "unsupported", "adds special tokens",
       [](Json& j) {
         j["post_processor"] = {
             {"type", "TemplateProcessing"},
             {"single",
              Json::parse(
                  R"([{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}])")}};
       }},
      {"decoder", "unsupported", "the decoder WordPiece", [](Json& j) { j["decoder"] = {{"type", "WordPiece"}}; }},
      {"model", "unsupported", "the model Unigram", [](Json& j) { j["model"]["type"] = "Unigram"; }},
      {"model setting", "unsupported", "unknown setting \"beam\"", [](Json& j) { j["model"]["beam"] = 3; }},
      {"dropout", "unsupported", "dropout", [](Json& j) { j["model"]["dropout"] = 0.1; }},
      {"byte fallback", "unsupported", "byte_fallback", [](Json& j) { j["model"]["byte_fallback"] = true; }},
      {"suffix", "unsupported", "end_of_word_suffix", [](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }},
      {"truncation", "unsupported", "truncation: unknown setting \"surprise\"",
       [](Json& j) { j["truncation"] = {{"max_length", 8}, {"surprise", 1}}; }},
      {"unknown section", "unsupported", "unknown setting \"surprise\"", [](Json& j) { j["surprise"] = 1; }},
      {"two tokens, one id", "tokenizer", "id 3 is both", [](Json& j) { j["model"]["vocab"]["\""] = 3; }},
      {"negative id", "tokenizer", "is -1", [](Json& j) { j["model"]["vocab"]["!"] = -1; }},
      {"huge id", "tokenizer", "is 4294967296", [](Json& j) { j["model"]["vocab"]["!"] = 4294967296; }},
      {"fractional id", "tokenizer", "not an integer", [](Json& j) { j["model"]["vocab"]["!"] = 0.5; }},
      {"gap", "tokenizer", "some ids name no token", [](Json& j) { j["added_tokens"][0]["id"] = 100000; }},
      {"small gap", "tokenizer", "id 0 names no token",
       [](Json& j) {
         j["model"]["vocab"]["!"] = 424;
         j["model"]["vocab"]["<|end|>"] = j["added_tokens"][0]["id"];
       }},
      {"missing byte", "tokenizer", "no token for the byte 33",
       [](Json& j) {
         j["model"]["vocab"].erase("!");
         j["model"]["vocab"]["!!!!!!"] = 0;
       }},
      {"no byte alphabet", "tokenizer", "byte-level alphabet", [](Json& j) { j["model"]["vocab"]["a b"] = 424; }},
      {"empty vocabulary", "tokenizer", "empty", [](Json& j) { j["model"]["vocab"] = Json::object(); }},
      {"merge of unknown parts", "tokenizer", "merges[0]", [](Json& j) { j["model"]["merges"][0] = "q zzz"; }},
      {"doubled merge", "tokenizer", "was merged before",
       [](Json& j) { j["model"]["merges"].push_back(j["model"]["merges"][0]); }},
      {"merge of three", "tokenizer", "is not two tokens", [](Json& j) { j["model"]["merges"][0] = "a b c"; }},
      {"merge of a number", "tokenizer", "is not two tokens", [](Json& j) { j["model"]["merges"][0] = 5; }},
      {"empty added token", "tokenizer", "an empty added token", [](Json& j) { j["added_tokens"][0]["content"] = ""; }},
      {"long added token", "tokenizer", "longer than 512",
       [](Json& j) { j["added_tokens"][0]["content"] = std::string(513, 'a'); }},
      {"added token with another id", "tokenizer", "model.vocab says",
       [](Json& j) {
         j["added_tokens"][0]["content"] = "the";
         j["model"]["vocab"]["the"] = 424;
       }},
      {"added token twice", "tokenizer", "has two ids",
       [](Json& j) { j["added_tokens"][1]["content"] = j["added_tokens"][0]["content"]; }},
      {"added token flag", "tokenizer", "\"special\": string \"yes\", expected true or false",
       [](Json& j) { j["added_tokens"][0]["special"] = "yes"; }},
      {"added tokens as object", "tokenizer", "expected a list", [](Json& j) { j["added_tokens"] = {{"a", 1}}; }},
      {"a list", "tokenizer", "expected an object", [](Json& j) { j = Json::array(); }},
  };
  return table;
}

TEST(tokenizer, what_is_not_known_or_not_sound_is_refused_by_name) {
  Json good = read_json(kGoldens + "qwen2-like/tokenizer.json", 1 << 20);
  testing::TemporaryDirectory directory;
  for (const Refusal& refusal : refusals()) {
    Json bad = good;
    refusal.change(bad);
    put(directory.path() + "/tokenizer.json", bad.dump());
    try {
      Tokenizer::load(directory.path());
      ADD_FAILURE() << refusal.what << ": loaded";
    } catch (const Error& error) {
      std::string message = error.what();
      EXPECT_EQ(error.kind(), refusal.kind) << refusal.what << ": " << message;
      EXPECT_NE(message.find(refusal.says), std::string::npos) << refusal.what << ": " << message;
      EXPECT_EQ(message.find(directory.path() + "/tokenizer.json: "), 0u) << message;
    }
  }
}

TEST(tokenizer, a_token_that_stands_twice_is_refused) {
  std::string good = read_file(kGoldens + "qwen2-like/tokenizer.json");
  testing::TemporaryDirectory directory;
  for (const char* more : {"\"!\":424,", "\"!\":0,"}) {
    std::string bad = good;
    bad.insert(bad.find("\"vocab\":{") + 9, more);
    put(directory.path() + "/tokenizer.json", bad);
    try {
      Tokenizer::load(directory.path());
      ADD_FAILURE() << more << ": loaded";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "dup_key") << error.what();
      EXPECT_NE(std::string(error.what()).find("\"!\" stands twice"), std::string::npos) << error.what();
    }
  }
}

TEST(tokenizer, truncation_and_padding_of_an_earlier_caller_change_nothing) {
  Json json = read_json(kGoldens + "qwen2-like/tokenizer.json", 1 << 20);
  json["truncation"] = {{"direction", "Right"}, {"max_length", 2}, {"strategy", "LongestFirst"}, {"stride", 0}};
  json["padding"] = {{"strategy", {{"Fixed", 50}}}, {"direction", "Left"}, {"pad_id", 0}, {"pad_token", "!"}};
  testing::TemporaryDirectory directory;
  put(directory.path() + "/tokenizer.json", json.dump());
  expect_same(Tokenizer::load(directory.path()), kGoldens + "qwen2-like/cases.jsonl", 331);
}

TEST(tokenizer, merges_are_read_in_both_spellings) {
  Json json = read_json(kGoldens + "qwen2-like/tokenizer.json", 1 << 20);
  for (Json& merge : json["model"]["merges"]) {
    ASSERT_TRUE(merge.is_array());
    merge = str(merge[0].get<std::string>(), " ", merge[1].get<std::string>());
  }
  testing::TemporaryDirectory directory;
  put(directory.path() + "/tokenizer.json", json.dump());
  expect_same(Tokenizer::load(directory.path()), kGoldens + "qwen2-like/cases.jsonl", 331);
}

TEST(tokenizer, a_damaged_file_is_an_error_and_nothing_else) {
  std::string good = read_file(kGoldens + "added-tokens/tokenizer.json");
  testing::TemporaryDirectory directory;
  int refused = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed, 5);
    std::string bad = good;
    for (int64_t n = 1 + rng.below(4); n > 0; --n) {
      size_t at = rng.below(bad.size());
      if (rng.below(3) == 0) {
        bad.erase(at, rng.below(40));
      } else {
        bad[at] = "{}[],:\"0\\tn-\xFF "[rng.below(14)];
      }
    }
    put(directory.path() + "/tokenizer.json", bad);
    try {
      Tokenizer tokenizer = Tokenizer::load(directory.path());
      tokenizer.decode(tokenizer.encode("some text \xFF mask [L] 123"));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
}

TEST(tokenizer, time_grows_with_the_length_of_the_text_not_with_its_square) {
  Tokenizer tokenizer = Tokenizer::load(kGoldens + "qwen2-like");
  for (const char* unit : {"a", " ", "\n", "!", "\xCC\x81", "1", "\xFF", "<|end", "ab"}) {
    std::string text;
    while (text.size() < 2'000'000) text += unit;
    auto began = std::chrono::steady_clock::now();
    Ids ids = tokenizer.encode(text);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    EXPECT_LT(took.count(), 10.0) << printable(unit);  // 0.1 s when the machine is free; n^2 would be hours
    EXPECT_EQ(tokenizer.decode(ids), nfc(text));
  }
}

}  // namespace
}  // namespace ucas
