#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "base/process/thread_pool.h"
#include "base/str.h"
#include "data/problems.h"
#include "module.h"
#include "verify/audit/verify_rows.h"
#include "verify/registry.h"

namespace ucas::python {

namespace {

constexpr size_t kTogether = 32;  // answers that a thread takes at once
constexpr auto kExtracts = names(Extract{});
constexpr std::initializer_list<const char*> kGraders = {
#define UCAS_NAME(kind, name) name,
    UCAS_GRADERS(UCAS_NAME)
#undef UCAS_NAME
};

template <class List>
size_t place_of(const List& list, const std::string& word, const char* what) {
  std::vector<std::string> words(list.begin(), list.end());
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == word) return i;
  throw Error(ErrorKind::config, str(what, " \"", printable(word, 40), "\": expected one of ", join(words, ", "),
                                     did_you_mean(word, words)));
}

// "auto": the last box, or the whole text where there is none.
std::optional<Extract> extract_of(const std::string& word) {
  if (word == "auto") return std::nullopt;
  return static_cast<Extract>(place_of(kExtracts, word, "extract"));
}

Extract extract_for(std::optional<Extract> asked, std::string_view response) {
  auto has = [&](std::string_view box) { return response.find(box) != std::string_view::npos; };
  return asked.value_or(has("\\boxed") || has("\\fbox") ? Extract::strict : Extract::bare);
}

// Texts with their gold, taken out of Python while the interpreter is held. Neighbours of the same gold share it, so
// that graders read it once.
struct Texts {
  std::vector<std::string> response;
  std::vector<std::vector<std::string>> gold;
  std::vector<Answer> answers;

  Texts(nb::handle golds, nb::handle responses, const std::string& extract) : response(bytes_of_all(responses)) {
    std::vector<size_t> of;
    nb::object before;
    for (nb::handle one : golds) {
      if (gold.empty() || !(before.is(one) || before.equal(one))) {
        gold.push_back(bytes_of_all(one));
        for (std::string& text : gold.back()) text = marked_answer(text);
        before = nb::borrow(one);
      }
      of.push_back(gold.size() - 1);
    }
    if (of.size() != response.size()) {
      throw Error(ErrorKind::shape, str("gold and responses: expected as many of one as of the other, got ", of.size(),
                                        " and ", response.size()));
    }
    const std::optional<Extract> asked = extract_of(extract);
    for (size_t i = 0; i < response.size(); ++i) {
      Answer answer{response[i], &gold[of[i]]};
      answer.extract = extract_for(asked, response[i]);
      answers.push_back(answer);
    }
  }
};

std::vector<Verdict> grade(const std::string& grader, const Texts& texts, int64_t threads) {
  const auto by = make_grader(static_cast<GraderKind>(place_of(kGraders, grader, "grader")));
  std::vector<Verdict> verdicts(texts.answers.size());
  share_out(texts.answers.size(), kTogether, threads, [&](size_t first, size_t last) {
    std::vector<Verdict> some = by->grade(std::span(texts.answers).subspan(first, last - first));
    std::move(some.begin(), some.end(), verdicts.begin() + static_cast<std::ptrdiff_t>(first));
  });
  return verdicts;
}

struct Verdicts {
  std::vector<Verdict> all;
};

Verdicts grade_batch(const std::string& grader, const std::string& extract, nb::handle golds, nb::handle responses,
                     int64_t threads) {
  const Texts texts(golds, responses, extract);
  nb::gil_scoped_release released;
  return {grade(grader, texts, threads)};
}

// The class of each answer among those of the same group: equal answers share a number, -1 for none.
nb::object classes(const std::string& grader, const Verdicts& verdicts, const In<int64_t>& group) {
  std::vector<int32_t> numbers(verdicts.all.size(), -1);
  const std::span<const int64_t> of = span_of(group);
  {
    nb::gil_scoped_release released;
    const auto by = make_grader(static_cast<GraderKind>(place_of(kGraders, grader, "grader")));
    std::vector<std::vector<size_t>> members;
    for (size_t i = 0; i < of.size(); ++i) {
      if (static_cast<size_t>(of[i]) >= members.size()) members.resize(of[i] + 1);
      members[of[i]].push_back(i);
    }
    for (const std::vector<size_t>& places : members) {
      std::vector<Verdict> together;
      for (size_t place : places) together.push_back(verdicts.all[place]);
      by->classify(together);
      for (size_t i = 0; i < places.size(); ++i) numbers[places[i]] = together[i].answer_class;
    }
  }
  return array_of(std::move(numbers));
}

nb::object explain_one(nb::handle gold, nb::handle response, const std::string& extract) {
  std::string text = bytes_of(response);
  std::vector<std::string> golds = bytes_of_all(gold);
  for (std::string& one : golds) one = marked_answer(one);
  std::vector<std::string> lines;
  {
    nb::gil_scoped_release released;
    Answer answer{text, &golds};
    answer.extract = extract_for(extract_of(extract), text);
    lines = to_lines(ucas::explain(answer, Extract::strict));
  }
  return text_of(join(lines, "\n"));
}

}  // namespace

void bind_verify(nb::module_& m) {
  nb::class_<Verdict>(m, "Verdict")
      .def_prop_ro("kind", [](const Verdict& v) { return name_of(v.kind); })
      .def_prop_ro("right", [](const Verdict& v) { return v.kind == VerdictKind::equal; })
      .def_prop_ro("answer", [](const Verdict& v) { return text_of(v.answer); })
      .def_prop_ro("reason", [](const Verdict& v) { return text_of(v.reason); })
      .def_prop_ro("score", [](const Verdict& v) { return v.score; })
      .def("__bool__", [](const Verdict& v) { return v.kind == VerdictKind::equal; })
      .def("__repr__", [](const Verdict& v) {
        return nb::str("Verdict('{}', answer={!r}, score={})").format(name_of(v.kind), text_of(v.answer), v.score);
      });
  nb::class_<Verdicts>(m, "Verdicts")
      .def("__len__", [](const Verdicts& v) { return v.all.size(); })
      .def("__getitem__",
           [](const Verdicts& v, int64_t i) {
             const auto size = static_cast<int64_t>(v.all.size());
             if (i < -size || i >= size) throw nb::index_error();
             return v.all[i < 0 ? i + size : i];
           })
      .def("__iter__", [](const Verdicts& v) { return nb::iter(nb::cast(v.all)); })
      .def_prop_ro("score",
                   [](const Verdicts& v) {
                     std::vector<float> scores;
                     for (const Verdict& one : v.all) scores.push_back(one.score);
                     return array_of(std::move(scores));
                   })
      .def_prop_ro("right",
                   [](const Verdicts& v) {
                     std::vector<uint8_t> right;
                     for (const Verdict& one : v.all) right.push_back(one.kind == VerdictKind::equal);
                     return array_of(std::move(right)).attr("view")("bool");
                   })
      .def_prop_ro("kind",
                   [](const Verdicts& v) {
                     nb::list kinds;
                     for (const Verdict& one : v.all) kinds.append(name_of(one.kind));
                     return kinds;
                   })
      .def_prop_ro("answer",
                   [](const Verdicts& v) {
                     nb::list answers;
                     for (const Verdict& one : v.all) answers.append(text_of(one.answer));
                     return answers;
                   })
      .def_prop_ro("reason", [](const Verdicts& v) {
        nb::list reasons;
        for (const Verdict& one : v.all) reasons.append(text_of(one.reason));
        return reasons;
      });
  m.attr("graders") = nb::cast(std::vector<std::string>(kGraders.begin(), kGraders.end()));
  m.attr("extracts") = nb::cast(std::vector<std::string>(kExtracts.begin(), kExtracts.end()));
  m.def("check_grader", [](const std::string& grader, const std::string& extract) {
    place_of(kGraders, grader, "grader");
    extract_of(extract);
  });
  m.def("grade", &grade_batch, nb::arg("grader"), nb::arg("extract"), nb::arg("gold"), nb::arg("responses"),
        nb::arg("threads"));
  m.def("classes", &classes, nb::arg("grader"), nb::arg("verdicts"), nb::arg("group"));
  m.def("explain_answer", &explain_one, nb::arg("gold"), nb::arg("response"), nb::arg("extract"));
}

}  // namespace ucas::python
