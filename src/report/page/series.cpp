#include "report/page/series.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace ucas {

namespace {

struct Column {
  const std::vector<double>* x = nullptr;
  std::vector<double> y;  // empty: the run lacks it
};

Series collect(const std::vector<RunGroup>& groups, int64_t points,
               const std::function<Column(const RunRecord&)>& column) {
  Series series;
  std::set<double> steps;
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) {
      Column c = column(*run);
      for (size_t i = 0; i < c.y.size(); ++i) {
        if (!std::isnan(c.y[i]) && !std::isnan((*c.x)[i])) steps.insert((*c.x)[i]);
      }
    }
  }
  std::vector<double> all(steps.begin(), steps.end());
  auto count = static_cast<int64_t>(all.size());
  series.stride = std::max<int64_t>(1, (count + points - 1) / std::max<int64_t>(1, points));
  for (int64_t i = 0; i < count; ++i) {
    if (i % series.stride == 0 || i == count - 1) series.x.push_back(all[static_cast<size_t>(i)]);
  }
  std::map<double, size_t> place;
  for (size_t i = 0; i < series.x.size(); ++i) place[series.x[i]] = i;

  for (size_t g = 0; g < groups.size(); ++g) {
    GroupSeries own;
    own.group = g;
    for (const RunRecord* run : groups[g].runs) {
      Column c = column(*run);
      if (c.y.empty()) continue;
      std::vector<double> values(series.x.size(), kUnknown);
      bool any = false;
      for (size_t i = 0; i < c.y.size(); ++i) {
        auto found = place.find((*c.x)[i]);
        if (found == place.end()) continue;
        values[found->second] = c.y[i];
        any |= !std::isnan(c.y[i]);
      }
      if (any) own.runs.push_back(std::move(values));
    }
    if (own.runs.empty()) continue;
    for (size_t i = 0; i < series.x.size(); ++i) {
      std::vector<double> known;
      for (const auto& run : own.runs) {
        if (!std::isnan(run[i])) known.push_back(run[i]);
      }
      own.mean.push_back(mean_of(known));
      own.deviation.push_back(deviation_of(known));
    }
    series.groups.push_back(std::move(own));
  }
  return series;
}

}  // namespace

Series series_of(const std::vector<RunGroup>& groups, const std::string& key, int64_t points) {
  return collect(groups, points,
                 [&](const RunRecord& run) { return Column{&run.steps.step, run.steps.mean_over(key)}; });
}

Series sft_series(const std::vector<RunGroup>& groups, int64_t points) {
  return collect(groups, points, [&](const RunRecord& run) { return Column{&run.sft.step, run.sft.loss}; });
}

}  // namespace ucas
