#include "base/text/renamed_keys.h"

#include "base/text/fields.h"

namespace ucas {

namespace {

struct OptionRow {
  std::string_view old_key, old_value, key, value;  // no values: all of them, unchanged
};

// clang-format off
constexpr OptionRow kRenamedOptions[] = {
    {"data.draw",              "",      "data.order",                    ""},         // 0.2.0
    {"data.rest_solved",       "",      "data.solved_cooldown",          ""},
    {"objective.correct_by",   "drawn", "objective.correct_by",          "sampled"},
    {"rollout.handover_bound", "",      "rollout.weight_sync_tolerance", ""},
    {"rollout.lag",            "",      "rollout.off_policy_steps",      ""},
    {"rollout.surplus",        "drop",  "rollout.carry_over",            "false"},
    {"rollout.surplus",        "carry", "rollout.carry_over",            "true"},
};

constexpr OptionRow kRemovedValues[] = {
    {"update.reduce", "ordered", "micro: the same bits for any number of ranks, and in parallel", ""},
};

constexpr std::pair<std::string_view, std::string_view> kMetrics[] = {
    {"rollout/hand_over_diff", "rollout/weight_sync_diff"},  // 0.2.0
    {"rollout/tried_again",    "rollout/retries"},
    {"train/prompts_rested",   "train/prompts_in_cooldown"},
};
// clang-format on

// What stands before the old key of the row, where it is meant.
std::optional<std::string_view> before_key(const OptionRow& row, std::string_view key, std::string_view value) {
  if (!key.ends_with(row.old_key) || (!row.old_value.empty() && value != row.old_value)) return std::nullopt;
  const std::string_view before = key.substr(0, key.size() - row.old_key.size());
  if (!before.empty() && before.back() != '.') return std::nullopt;
  return before;
}

}  // namespace

std::optional<RenamedOption> renamed_option(std::string_view key, std::string_view value) {
  for (const OptionRow& row : kRenamedOptions) {
    if (const auto before = before_key(row, key, value)) {
      return RenamedOption{std::string(*before) + std::string(row.key), std::string(row.value)};
    }
  }
  return std::nullopt;
}

std::string removed_value(std::string_view key, std::string_view value) {
  for (const OptionRow& row : kRemovedValues) {
    if (before_key(row, key, value)) return std::string(row.key);
  }
  return "";
}

void rename_option(Setting& setting) {
  const auto* text = std::get_if<std::string>(&setting.value);
  const std::optional<RenamedOption> now = renamed_option(setting.key, text == nullptr ? "" : *text);
  if (!now) return;
  setting.key = now->key;
  if (now->value == "true" || now->value == "false") {
    setting.value = now->value == "true";
  } else if (!now->value.empty()) {
    setting.value = now->value;
  }
}

std::string renamed_line(const std::string& line) {
  const size_t at = line.find(" = ");
  if (at == std::string::npos) return line;
  const std::string key = line.substr(0, at), value = line.substr(at + 3);
  const bool quoted = value.size() >= 2 && value.front() == '"';
  const std::optional<RenamedOption> now = renamed_option(key, quoted ? value.substr(1, value.size() - 2) : value);
  if (!now) return line;
  const bool truth = now->value == "true" || now->value == "false";
  return now->key + " = " + (now->value.empty() ? value : truth ? now->value : '"' + now->value + '"');
}

std::string renamed_metric(const std::string& name) {
  for (const auto& [before, now] : kMetrics) {
    if (name == before) return std::string(now);
  }
  return name;
}

}  // namespace ucas
