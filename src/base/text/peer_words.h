// What options and their values are called in TRL and verl, for the hint of an unknown one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ucas {

// The key among `keys` that the option of another program means, by the last part of its name
// ("actor_rollout_ref.rollout.n" is read by the tables of keys, "num_generations" here); "" where there is none.
std::string peer_option(std::string_view key, const std::vector<std::string>& keys);
// "bf16" for "bfloat16"; "" where it is no such word, or not among `words`.
std::string peer_value(std::string_view value, const std::vector<std::string>& words);

}  // namespace ucas
