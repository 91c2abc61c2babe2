// The filters, tests, methods and functions that templates may call. Each works as Jinja's or Python's of its name; a
// name or an argument that is not here is refused.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace ucas::jinja {

struct Arguments {
  std::vector<Value> list;
  std::vector<std::pair<std::string, Value>> named;
};

bool is_filter(const std::string& name);
bool is_test(const std::string& name);
bool is_function(const std::string& name);  // of those that need nothing but their arguments

Value apply_filter(const std::string& name, const Value& to, const Arguments& given, Meter& meter);
bool apply_test(const std::string& name, const Value& to, const Arguments& given, Meter& meter);
Value call_method(const MethodValue& method, const Arguments& given, Meter& meter);
Value call_function(const std::string& name, const Arguments& given, Meter& meter);

}  // namespace ucas::jinja
