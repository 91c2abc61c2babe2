// Shares in which problems of several data sources are sampled: data.weights, "SOURCE=WEIGHT" each.
#pragma once

#include <string>
#include <vector>

namespace ucas {

struct SourceWeight {
  std::string source;  // Problem::source
  double weight = 1;   // above 0
};

// Error(ErrorKind::config) naming the entry that is not of that form, or a source that stands twice.
std::vector<SourceWeight> parse_source_weights(const std::vector<std::string>& entries);

}  // namespace ucas
