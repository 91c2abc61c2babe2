#include "module.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/process/build_info.h"
#include "base/files/file.h"
#include "base/error.h"
#include "config/explain/explain.h"
#include "kernels/lm_head.h"
#include "verify/registry.h"

namespace ucas::python {

namespace {

struct FailedCheck : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string explain_config(const std::string& name, const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<Setting> overrides;
  for (const auto& [key, value] : settings) overrides.push_back({key, value, "--" + key, true});
  return explain_text(read_explained(name, overrides));
}

}  // namespace

std::string bytes_of(nb::handle text) {
  Py_ssize_t size = 0;
  if (PyBytes_Check(text.ptr())) {
    char* data = nullptr;
    if (PyBytes_AsStringAndSize(text.ptr(), &data, &size) != 0) throw nb::python_error();
    return {data, static_cast<size_t>(size)};
  }
  if (!PyUnicode_Check(text.ptr())) throw nb::type_error("expected str or bytes");
  if (const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) return {data, static_cast<size_t>(size)};
  PyErr_Clear();
  PyObject* encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass");
  if (encoded == nullptr) throw nb::python_error();
  return bytes_of(nb::steal(encoded));
}

std::vector<std::string> bytes_of_all(nb::handle texts) {
  std::vector<std::string> all;
  for (nb::handle text : texts) all.push_back(bytes_of(text));
  return all;
}

nb::object text_of(const std::string& bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw nb::python_error();
  return nb::steal(text);
}

}  // namespace ucas::python

NB_MODULE(_ucas, m) {
  using namespace ucas::python;
  // Made here and not by nb::exception: `kind` is an attribute of the error.
  nb::object error = nb::steal(PyErr_NewExceptionWithDoc(
      "ucas.Error", "What a caller can cause and mend; `kind` is its class: config, unsupported, path, tokenizer ...",
      PyExc_ValueError, nullptr));
  nb::object bug = nb::steal(PyErr_NewExceptionWithDoc(
      "ucas.Bug", "A check of ucas itself failed: a bug, please report it with the call.", PyExc_RuntimeError, nullptr));
  m.attr("Error") = error;
  m.attr("Bug") = bug;
  ucas::on_failed_check([](const std::string& what) { throw FailedCheck(what); });
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* types) {
        auto* of = static_cast<std::pair<PyObject*, PyObject*>*>(types);
        try {
          std::rethrow_exception(thrown);
        } catch (const ucas::Error& e) {
          nb::object made = nb::handle(of->first)(text_of(e.what()));
          made.attr("kind") = e.word();
          PyErr_SetObject(of->first, made.ptr());
        } catch (const FailedCheck& e) {
          PyErr_SetString(of->second, e.what());
        }
      },
      new std::pair<PyObject*, PyObject*>(error.ptr(), bug.ptr()));  // of the module's life
  m.attr("version") = ucas::version();
  m.attr("grader_version") = ucas::kGraderVersion;
  m.def("isa", [] { return std::pair{std::string(ucas::kernels::isa()), std::string(ucas::kernels::isa_reason())}; });
  m.def("embedded", &ucas::embedded_stems, nb::arg("folder"));
  m.def("fail_a_check", [] { UCAS_CHECK(false, "asked for, to see what it does"); });
  m.def("explain", &explain_config, nb::arg("name"), nb::arg("settings"),
        nb::call_guard<nb::gil_scoped_release>());
  bind_verify(m);
  bind_tokenizer(m);
  bind_stats(m);
  bind_methods(m);
  bind_head(m);
}
