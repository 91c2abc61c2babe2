#include "base/files/file.h"

#include <gtest/gtest.h>

namespace ucas {
namespace {

TEST(hub_path, a_snapshot_says_whose_it_is) {
  const auto model = hub_origin("cache/huggingface/hub/models--Qwen--Qwen2.5-0.5B/snapshots/0a1b");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->name, "Qwen/Qwen2.5-0.5B");
  EXPECT_EQ(model->revision, "0a1b");
  EXPECT_FALSE(model->data_set);
  const auto set = hub_origin("hub/datasets--openai--gsm8k/snapshots/77/main/train.parquet");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->name, "openai/gsm8k");
  EXPECT_TRUE(set->data_set);
}

TEST(hub_path, other_paths_say_nothing) {
  for (const char* path : {"", "/", "models--a--b", "models--a--b/snapshots", "models--a/snapshots/1",
                           "x/snapshots/1/y", "models--a--b/blobs/1/x", "models--..--b/snapshots/1/x"}) {
    EXPECT_FALSE(hub_origin(path)) << path;
  }
}

TEST(hub_path, names_are_those_that_the_hub_allows) {
  for (const char* name : {"Qwen/Qwen2.5-0.5B", "a/b", "org_1/x.y-z"}) EXPECT_TRUE(is_hub_repository(name)) << name;
  for (const char* name : {"", "a", "/a", "a/", "a/b/c", "../b", "a/..", "a/.b", "a b/c", "a/b--c", "a/b:c"}) {
    EXPECT_FALSE(is_hub_repository(name)) << name;
  }
}

}  // namespace
}  // namespace ucas
