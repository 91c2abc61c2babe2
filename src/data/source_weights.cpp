#include "data/source_weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

std::vector<SourceWeight> parse_source_weights(const std::vector<std::string>& entries) {
  std::vector<SourceWeight> weights;
  for (const std::string& entry : entries) {
    const size_t sign = entry.rfind('=');
    SourceWeight one{.source = entry.substr(0, sign), .weight = 0};
    const std::string number = sign == std::string::npos ? "" : entry.substr(sign + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), one.weight);
    const bool read = error == std::errc() && end == number.data() + number.size() && std::isfinite(one.weight);
    if (one.source.empty() || !read || one.weight <= 0) {
      throw Error(ErrorKind::config, str("data.weights: \"", printable(entry, 60),
                                         "\": expected SOURCE=WEIGHT with a number above 0, for example \"gsm8k=2\""));
    }
    if (std::ranges::find(weights, one.source, &SourceWeight::source) != weights.end()) {
      throw Error(ErrorKind::config, str("data.weights: ", printable(one.source, 60), " stands twice"));
    }
    weights.push_back(std::move(one));
  }
  return weights;
}

}  // namespace ucas
