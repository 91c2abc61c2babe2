#include "text/tokenizer/tokenizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/process/thread_pool.h"
#include "module.h"

namespace ucas::python {

namespace {

constexpr size_t kTexts = 16;  // that a thread takes at once

nb::list encode(const Tokenizer& tokenizer, nb::handle texts, bool special, bool prompt, int64_t threads) {
  const std::vector<std::string> all = bytes_of_all(texts);
  std::vector<std::vector<int32_t>> ids(all.size());
  {
    nb::gil_scoped_release released;
    const auto mode = special ? Tokenizer::Special::parse : Tokenizer::Special::as_text;
    share_out(all.size(), kTexts, threads, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i)
        ids[i] = prompt ? tokenizer.encode_prompt(all[i], mode) : tokenizer.encode(all[i], mode);
    });
  }
  nb::list arrays;
  for (std::vector<int32_t>& one : ids) arrays.append(array_of(std::move(one)));
  return arrays;
}

}  // namespace

void bind_tokenizer(nb::module_& m) {
  nb::class_<Tokenizer>(m, "Tokenizer")
      .def_static("load", &Tokenizer::load, nb::arg("directory"), nb::call_guard<nb::gil_scoped_release>())
      .def("encode", &encode, nb::arg("texts"), nb::arg("special"), nb::arg("prompt"), nb::arg("threads"))
      .def("decode",
           [](const Tokenizer& t, const In<int32_t>& ids, bool skip_special) {
             const std::string text = t.decode(span_of(ids), skip_special);
             return nb::bytes(text.data(), text.size());
           })
      .def("token_text",
           [](const Tokenizer& t, int32_t id) {
             const std::string text = t.token_text(id);
             return nb::bytes(text.data(), text.size());
           })
      .def("id_of", [](const Tokenizer& t, nb::handle token) { return t.id_of(bytes_of(token)); })
      .def_prop_ro("vocab_size", &Tokenizer::vocab_size)
      .def_prop_ro("eos_ids", &Tokenizer::eos_ids)
      .def_prop_ro("pad_id", &Tokenizer::pad_id)
      .def_prop_ro("directory", &Tokenizer::directory);
}

}  // namespace ucas::python
