// Every number of a training step, declared once in core/metrics.inc: its name in steps.jsonl, its unit, what it means,
// and the words of its curve. Writers set a number by its row (train/metrics), readers look it up by it: curves,
// causes and docs/metrics.md (tools/make_metrics.py). A method declares its own numbers in its row
// (methods/method.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ucas {

enum class Unit : uint8_t { number, share, nats, tokens, seconds, gib, bytes, tokens_per_second };
const char* name_of(Unit unit);  // "share", "tokens/s"; "" of a plain number

struct Metric {
  const char* key;           // "actor/entropy"; a * is a source, a part of the score or a count
  const char* stars = "";    // what each * is: "SOURCE K"
  Unit unit = Unit::number;  // a share is shown in percent
  const char* help = "";     // docs/metrics.md, in Markdown; "": said in the row before
  const char* title = "";    // of its curve; "": made of the key
  const char* caption = "";  // the line below that title, plain text
};

// Three numbers of one quantity.
struct MetricSpread {
  Metric mean, max, min;
};

namespace metric {
#define SECTION(id)
#define METRIC(id, ...) inline constexpr Metric id{__VA_ARGS__};
#define SPREAD(id, name, unit_, ...)                                                          \
  inline constexpr MetricSpread id{.mean = {.key = name "/mean", .unit = unit_, __VA_ARGS__}, \
                                   .max = {.key = name "/max", .unit = unit_},                \
                                   .min = {.key = name "/min", .unit = unit_}};
#include "core/metrics.inc"
#undef SECTION
#undef METRIC
#undef SPREAD
}  // namespace metric

struct MetricSection {
  const char* name;  // "groups": the table of docs/metrics.md
  std::vector<const Metric*> rows;
};
std::span<const MetricSection> metric_sections();

// The declared row that a name of steps.jsonl is of; null where none is.
const Metric* find_metric(std::string_view name);
// Whether a name is of this row.
bool is_of(std::string_view name, const Metric& metric);
// The name with each * replaced by the word at its place.
std::string name_with(const Metric& metric, const std::vector<std::string>& words);
// As documents write it: "val-core/SOURCE/acc/mean@1".
std::string documented_name(const Metric& metric);

}  // namespace ucas
