#include "config/plan/known_models.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ucas {
namespace {

// As the hub says of their safetensors, but for the head of those that tie it.
TEST(known_models, have_as_many_parameters_as_were_published) {
  const std::pair<const char*, int64_t> published[] = {
      {"qwen2.5-0.5b", 494'032'768},      {"qwen2.5-1.5b", 1'543'714'304},
      {"qwen2.5-3b", 3'085'938'688},      {"qwen2.5-7b", 7'615'616'512},
      {"qwen2.5-14b", 14'770'033'664},    {"qwen2.5-32b", 32'763'876'352},
      {"qwen2.5-72b", 72'706'203'648},    {"qwen2.5-math-1.5b", 1'543'714'304},
      {"qwen2.5-math-7b", 7'615'616'512}, {"deepseek-r1-distill-qwen-1.5b", 1'777'088'000},
      {"qwen3-0.6b", 596'049'920},        {"qwen3-1.7b", 1'720'574'976},
      {"qwen3-4b", 4'022'468'096},        {"qwen3-8b", 8'190'735'360},
      {"qwen3-14b", 14'768'307'200},      {"qwen3-32b", 32'762'123'264},
      {"llama-3.2-1b", 1'235'814'400},    {"llama-3.2-3b", 3'212'749'824},
      {"llama-3.1-8b", 8'030'261'248},    {"mistral-7b-v0.1", 7'241'732'096},
      {"mistral-7b-v0.3", 7'248'023'552}, {"smollm2-135m", 134'515'008},
      {"gemma-3-270m", 268'098'176},      {"gemma-3-1b", 999'885'952},
      {"smollm2-360m", 361'821'120},      {"smollm2-1.7b", 1'711'376'384}};
  for (const auto& [name, parameters] : published) {
    ASSERT_TRUE(known_model(name)) << name;
    EXPECT_EQ(known_model(name)->parameter_count(), parameters) << name;
  }
}

TEST(known_models, are_found_by_the_names_that_the_hub_has) {
  for (const char* name : {"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b", "Qwen2.5-7B"}) {
    ASSERT_TRUE(known_model(name)) << name;
    EXPECT_EQ(known_model(name)->hidden_size, 3584) << name;
  }
  EXPECT_TRUE(known_model("meta-llama/Meta-Llama-3.1-8B-Instruct"));
  EXPECT_TRUE(known_model("HuggingFaceTB/SmolLM2-135M-Instruct"));
  EXPECT_TRUE(known_model("google/gemma-3-1b-it"));
  EXPECT_FALSE(known_model("Qwen/Qwen2.5-8B"));
  EXPECT_FALSE(known_model(""));
}

TEST(known_models, what_is_unknown_is_said_with_the_nearest_name) {
  try {
    model_of_hub_name("qwen3-7b");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.word(), "path");
    EXPECT_NE(std::string(error.what()).find("did you mean qwen3-"), std::string::npos) << error.what();
  }
  EXPECT_THROW(model_of_hub_name("../etc/passwd"), Error);
}

}  // namespace
}  // namespace ucas
