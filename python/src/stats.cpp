#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "module.h"
#include "results/stats/intervals.h"
#include "results/stats/paired.h"
#include "results/stats/samples.h"
#include "results/stats/spread.h"

namespace ucas::python {

namespace {

nb::tuple tuple_of(Interval i) { return nb::make_tuple(i.low, i.high); }
nb::tuple tuple_of(const Figure& f) { return nb::make_tuple(f.value, f.low, f.high); }

std::vector<bool> truths(const In<uint8_t>& values) {
  return std::vector<bool>(values.data(), values.data() + values.shape(0));  // braces would make two truths of two pointers
}

nb::object pass_at_k_of(const In<int64_t>& n, const In<int64_t>& c, const In<int64_t>& k) {
  std::vector<double> chance(n.shape(0));
  for (size_t i = 0; i < chance.size(); ++i) chance[i] = pass_at_k({n.data()[i], c.data()[i]}, k.data()[i]);
  return array_of(std::move(chance));
}

// Sets of problems, one after the other in `a` and `b`.
nb::tuple paired(const In<double>& a, const In<double>& b, const In<int64_t>& sizes, uint64_t seed, double level,
                 int64_t draws) {
  std::vector<PairedSet> sets;
  size_t first = 0;
  for (int64_t size : span_of(sizes)) {
    sets.push_back({{a.data() + first, a.data() + first + size}, {b.data() + first, b.data() + first + size}});
    first += size;
  }
  PairedDifference d;
  {
    nb::gil_scoped_release released;
    d = paired_macro_difference(sets, seed, level, draws);
  }
  return nb::make_tuple(d.mean, d.interval.low, d.interval.high, d.p);
}

}  // namespace

void bind_stats(nb::module_& m) {
  nb::module_ s = m.def_submodule("stats");
  s.def("pass_at_k", &pass_at_k_of);
  s.def("majority", [](const In<int32_t>& answer_class) { return majority(span_of(answer_class)); });
  s.def("clopper_pearson",
        [](int64_t right, int64_t n, double level) { return tuple_of(clopper_pearson(right, n, level)); });
  s.def("bootstrap_mean", [](const In<double>& x, uint64_t seed, double level, int64_t draws) {
    const std::vector<double> values(x.data(), x.data() + x.shape(0));
    Figure mean;
    {
      nb::gil_scoped_release released;
      mean = share_mean(values, seed, level, draws);
    }
    return tuple_of(mean);
  });
  s.def("mean_estimate", [](const In<double>& x, double level) { return tuple_of(mean_estimate(span_of(x), level)); });
  s.def("mcnemar", &mcnemar);
  s.def("paired", &paired);
  s.def("paired_share_difference", [](int64_t gained, int64_t lost, int64_t pairs, double level) {
    return tuple_of(paired_share_difference(gained, lost, pairs, level));
  });
  s.def("student_p", [](const In<double>& x) { return student_p(span_of(x)); });
  s.def("welch", [](const In<double>& a, const In<double>& b, double level) {
    const TwoSamples t = welch(span_of(a), span_of(b), level);
    return nb::make_tuple(t.change.value, t.change.low, t.change.high, t.p);
  });
  s.def("holm", [](const In<double>& p) { return array_of(holm(span_of(p))); });
  s.def("auroc", [](const In<double>& score, const In<uint8_t>& right) { return auroc(span_of(score), truths(right)); });
}

}  // namespace ucas::python
