// What a tokenizer's files may not hold.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/text/json.h"
#include "support/temporary_directory.h"
#include "support/tokenizer_goldens.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {
namespace {

struct Refusal {
  const char* what;
  const char* kind;
  const char* says;
  std::function<void(Json&)> change;
};

// Puts "<s>" before a text; `ids` are those of "<s>", "[]": it has none.
Json template_with(const char* ids) {
  Json out = Json::parse(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                             {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {}})");
  if (std::string_view(ids) != "[]") out["special_tokens"]["<s>"] = {{"id", "<s>"}, {"ids", Json::parse(ids)}};
  return out;
}

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> table = {
      {"normaliser", "tokenizer", "normalizers[0]: the normalizer Lowercase",
       [](Json& j) { j["normalizer"]["normalizers"][0] = {{"type", "Lowercase"}}; }},
      {"normaliser setting", "tokenizer", "unknown setting \"strength\"",
       [](Json& j) { j["normalizer"] = {{"type", "NFC"}, {"strength", 2}}; }},
      {"pre-tokenizer", "tokenizer", "the pre-tokenizer WhitespaceSplit",
       [](Json& j) { j["pre_tokenizer"] = {{"type", "WhitespaceSplit"}}; }},
      {"no pre-tokenizer", "tokenizer", "the decoder ByteLevel is not supported with a pre-tokenizer without ByteLevel",
       [](Json& j) { j["pre_tokenizer"] = nullptr; }},
      {"part of a sequence", "tokenizer", "pretokenizers[0]: the pre-tokenizer UnicodeScripts",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0] = {{"type", "UnicodeScripts"}}; }},
      {"order of a sequence", "tokenizer", "the pre-tokenizer Split after ByteLevel",
       [](Json& j) { std::swap(j["pre_tokenizer"]["pretokenizers"][0], j["pre_tokenizer"]["pretokenizers"][1]); }},
      {"broken expression", "tokenizer", "Oniguruma) says: end pattern with unmatched parenthesis",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a+"; }},
      {"unknown property", "tokenizer", "invalid character property name {Letterlike}",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\p{Letterlike}"; }},
      {"empty expression", "tokenizer", "\"Regex\" is empty",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = ""; }},
      {"two patterns", "tokenizer", "either \"Regex\" or \"String\"",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["String"] = "a"; }},
      {"behaviour", "tokenizer", "the behavior \"Sideways\" is not known (known: Isolated",
       [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Sideways"; }},
      {"prepend scheme", "tokenizer", "the prepend_scheme \"last\" is not known",
       [](Json& j) { j["pre_tokenizer"] = {{"type", "Metaspace"}, {"prepend_scheme", "last"}}; }},
      {"replacement", "tokenizer", "\"replacement\" is \"__\", expected one character",
       [](Json& j) { j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "__"}}; }},
      {"post-processor", "tokenizer", "the post-processor BertProcessing",
       [](Json& j) { j["post_processor"] = {{"type", "BertProcessing"}}; }},
      {"template of unknown tokens", "tokenizer", "names \"<s>\", which special_tokens lacks",
       [](Json& j) { j["post_processor"] = template_with("[]"); }},
      {"template of ids that are no tokens", "tokenizer", "the id 999 names no token",
       [](Json& j) { j["post_processor"] = template_with("[999]"); }},
      {"template without the text", "tokenizer", "holds the text 0 times",
       [](Json& j) {
         j["post_processor"] = template_with("[1]");
         j["post_processor"]["single"].erase(1);
       }},
      {"decoder", "tokenizer", "the decoder WordPiece", [](Json& j) { j["decoder"] = {{"type", "WordPiece"}}; }},
      {"model", "tokenizer", "the model Unigram", [](Json& j) { j["model"]["type"] = "Unigram"; }},
      {"model setting", "tokenizer", "unknown setting \"beam\"", [](Json& j) { j["model"]["beam"] = 3; }},
      {"dropout", "tokenizer", "dropout", [](Json& j) { j["model"]["dropout"] = 0.1; }},
      {"suffix", "tokenizer", "end_of_word_suffix", [](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }},
      {"truncation", "tokenizer", "truncation: unknown setting \"surprise\"",
       [](Json& j) { j["truncation"] = {{"max_length", 8}, {"surprise", 1}}; }},
      {"unknown section", "tokenizer", "unknown setting \"surprise\"", [](Json& j) { j["surprise"] = 1; }},
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
      {"missing byte and unknown token", "tokenizer", "model.unk_token is \"<unk>\", which model.vocab lacks",
       [](Json& j) {
         j["model"]["unk_token"] = "<unk>";
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

const std::vector<Refusal>& refusals_of_characters() {
  static const std::vector<Refusal> table = {
      {"order of decoders", "tokenizer", "decoders[1]: the decoder Replace after ByteFallback",
       [](Json& j) { std::swap(j["decoder"]["decoders"][0], j["decoder"]["decoders"][1]); }},
      {"strip without fuse", "tokenizer", "Strip is supported only right after Fuse",
       [](Json& j) { j["decoder"]["decoders"].erase(2); }},
      {"strip at the end", "tokenizer", "strips the end", [](Json& j) { j["decoder"]["decoders"][3]["stop"] = 1; }},
      {"byte-level decoder", "tokenizer", "ByteLevel is not supported with a pre-tokenizer without ByteLevel",
       [](Json& j) { j["decoder"] = {{"type", "ByteLevel"}}; }},
      {"unknown token", "tokenizer", "model.unk_token is \"<none>\", which model.vocab lacks",
       [](Json& j) { j["model"]["unk_token"] = "<none>"; }},
      {"empty prepend", "tokenizer", "\"prepend\" is empty",
       [](Json& j) { j["normalizer"]["normalizers"][0]["prepend"] = ""; }},
      {"token that normalises to nothing", "tokenizer", "is empty after the normalizer",
       [](Json& j) { j["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "<pad>"}}}, {"content", ""}}; }},
  };
  return table;
}

void expect_refusals(const std::string& golden, const std::vector<Refusal>& table) {
  Json good = read_json(testing::tokenizer_goldens() + golden + "/tokenizer.json", 1 << 20);
  testing::TemporaryDirectory directory;
  for (const Refusal& refusal : table) {
    Json bad = good;
    refusal.change(bad);
    testing::put_file(directory.path() + "/tokenizer.json", bad.dump());
    try {
      Tokenizer::load(directory.path());
      ADD_FAILURE() << refusal.what << ": loaded";
    } catch (const Error& error) {
      std::string message = error.what();
      EXPECT_EQ(error.word(), refusal.kind) << refusal.what << ": " << message;
      EXPECT_NE(message.find(refusal.says), std::string::npos) << refusal.what << ": " << message;
      EXPECT_EQ(message.find(directory.path() + "/tokenizer.json: "), 0u) << message;
    }
  }
}

TEST(tokenizer, what_is_not_known_or_not_sound_is_refused_by_name) {
  expect_refusals("qwen2-like", refusals());
  expect_refusals("llama2-like", refusals_of_characters());
}

TEST(tokenizer, older_forms_are_refused_with_the_way_to_convert_them) {
  testing::TemporaryDirectory directory;
  testing::put_file(directory.path() + "/tokenizer.model", "sentencepiece");
  try {
    Tokenizer::load(directory.path());
    ADD_FAILURE() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "unsupported");
    EXPECT_NE(std::string(error.what()).find("tokenizer.model is there; only Hugging Face's fast form is read"),
              std::string::npos)
        << error.what();
  }
}

TEST(tokenizer, a_token_that_stands_twice_is_refused) {
  std::string good = read_file(testing::tokenizer_goldens() + "qwen2-like/tokenizer.json");
  testing::TemporaryDirectory directory;
  for (const char* more : {"\"!\":424,", "\"!\":0,"}) {
    std::string bad = good;
    bad.insert(bad.find("\"vocab\":{") + 9, more);
    testing::put_file(directory.path() + "/tokenizer.json", bad);
    try {
      Tokenizer::load(directory.path());
      ADD_FAILURE() << more << ": loaded";
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "dup_key") << error.what();
      EXPECT_NE(std::string(error.what()).find("duplicate key \"!\""), std::string::npos) << error.what();
    }
  }
}

TEST(tokenizer, a_damaged_file_is_an_error_and_nothing_else) {
  const std::string goods[] = {read_file(testing::tokenizer_goldens() + "added-tokens/tokenizer.json"),
                               read_file(testing::tokenizer_goldens() + "llama2-like/tokenizer.json"),
                               read_file(testing::tokenizer_goldens() + "split-kinds/tokenizer.json")};
  testing::TemporaryDirectory directory;
  int refused = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Rng rng(seed, 5);
    std::string bad = goods[seed % 3];
    for (int64_t n = 1 + rng.below(4); n > 0; --n) {
      size_t at = rng.below(bad.size());
      if (rng.below(3) == 0) {
        bad.erase(at, rng.below(40));
      } else {
        bad[at] = "{}[],:\"0\\tn-\xFF "[rng.below(14)];
      }
    }
    testing::put_file(directory.path() + "/tokenizer.json", bad);
    try {
      Tokenizer tokenizer = Tokenizer::load(directory.path());
      tokenizer.decode(tokenizer.encode("some text \xFF mask [L] 123"));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace ucas
