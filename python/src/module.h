// The parts of the extension module ucas._ucas, and what they share. Plain functions on lists and arrays: everything
// that a user sees, with its checks, stands in the Python files beside it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ucas::python {

namespace nb = nanobind;

void bind_verify(nb::module_& m);
void bind_tokenizer(nb::module_& m);
void bind_stats(nb::module_& m);
void bind_methods(nb::module_& m);
void bind_head(nb::module_& m);

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
std::span<const T> span_of(const In<T>& array) {
  return {array.data(), array.shape(0)};
}

// An array of numpy's that owns `values`.
template <class T>
nb::object array_of(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// str or bytes as bytes; halves of surrogate pairs, which UTF-8 has no place for, as what Python makes of them.
std::string bytes_of(nb::handle text);
std::vector<std::string> bytes_of_all(nb::handle texts);
// Bytes that are not UTF-8 become U+FFFD.
nb::object text_of(const std::string& bytes);

}  // namespace ucas::python
