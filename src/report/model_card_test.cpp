#include "report/model_card.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/str.h"
#include "base/text/json.h"

namespace ucas {
namespace {

const std::string kHostileName =
    "x\": [\n---\n# | <script>alert(1)</script> *b* `c` \\ \t\x1b[2J\xff \xe2\x80\xae \xc2\x85 {{y}}: &a";

RunRecord run_of(const std::string& text) {
  RunRecord run;
  run.method = text;
  run.env = {{"method", text}, {"version", "0.1.0"}};
  run.config = {{"model", "models/" + text}, {"label", text}};
  return run;
}

std::vector<std::string> front_matter_of(const std::string& card) {
  std::vector<std::string> lines = split(card, '\n');
  EXPECT_EQ(lines.front(), "---");
  const auto end = std::find(lines.begin() + 1, lines.end(), "---");
  EXPECT_NE(end, lines.end());
  return {lines.begin() + 1, end};
}

TEST(model_card, front_matter_says_what_hubs_ask_for) {
  ModelCard card{.name = "tiny", .base_model = "org/base", .datasets = {"org/data"}, .step = 12};
  const std::string expected = R"x(base_model: "org/base"
base_model_relation: "finetune"
library_name: "transformers"
pipeline_tag: "text-generation"
tags:
- "ucas"
- "reinforcement-learning"
- "rlvr"
- "dapo"
datasets:
- "org/data")x";
  RunRecord run = run_of("dapo");
  run.config = {{"model", "/srv/me/models/a, /srv/me/b/c.jsonl"}};
  const std::string text = model_card(card, run);
  EXPECT_EQ(join(front_matter_of(text), "\n"), expected);
  EXPECT_EQ(text.find("/srv/"), std::string::npos);
  EXPECT_NE(text.find("| model | models/a, b/c.jsonl |"), std::string::npos) << text;
  EXPECT_NE(text.find("# tiny\n\nStep 12 of "), std::string::npos) << text;
}

TEST(model_card, an_adapter_says_so) {
  const std::string text = model_card({.name = "a", .base_model = "org/base", .adapter = true}, run_of("grpo"));
  const std::string front = join(front_matter_of(text), "\n");
  EXPECT_NE(front.find("base_model_relation: \"adapter\"\nlibrary_name: \"peft\""), std::string::npos);
}

TEST(model_card, no_name_leaves_its_place) {
  ModelCard card{.name = kHostileName, .base_model = kHostileName, .datasets = {kHostileName}};
  const std::string text = model_card(card, run_of(kHostileName));
  // A key with or without a scalar, or a scalar of a list; strings are those of JSON.
  const std::regex line(R"re( *(- )?(([a-z_-]+:)( ("([^"\\]|\\.)*"|[0-9.]+|text-generation))?|"([^"\\]|\\.)*"))re");
  const std::vector<std::string> front = front_matter_of(text);
  for (const std::string& one : front) EXPECT_TRUE(std::regex_match(one, line)) << one;
  EXPECT_EQ(front.size(), 11u);

  const std::string body = text.substr(text.find("\n---\n") + 5);
  EXPECT_EQ(body.find("<script"), body.find("\\<script") + 1) << "escaped wherever it is first";
  EXPECT_TRUE(valid_utf8(text));
  for (const std::string& one : split(body, '\n')) {
    for (char c : one) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << one;
    if (one.starts_with("| ")) {
      const auto bars = std::count(one.begin(), one.end(), '|');
      size_t escaped = 0;
      for (size_t at = one.find("\\|"); at != std::string::npos; at = one.find("\\|", at + 1)) ++escaped;
      EXPECT_EQ(bars - static_cast<int64_t>(escaped), 3) << one;
    }
  }
}

TEST(model_card, a_yaml_text_is_a_json_text_that_shows_what_was_there) {
  EXPECT_EQ(yaml_text("plain: yes"), "\"plain: yes\"");
  EXPECT_EQ(yaml_text("a\nb"), "\"a\\nb\"");
  const Json read = parse_json(yaml_text(kHostileName), "here");
  EXPECT_TRUE(read.is_string());
}

}  // namespace
}  // namespace ucas
