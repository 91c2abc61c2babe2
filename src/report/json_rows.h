// Reading rows of a run directory: a wrong type names file, line and key; what is absent or null is unknown.
// Shared by the readers of report/. Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "stats/spread.h"

namespace ucas {

[[noreturn]] void refuse(const std::string& where, const std::string& key, const Json& got, const char* expected);
const Json* member(const Json& object, const char* key);  // nullptr: absent or null
double number_at(const Json& object, const char* key, const std::string& where);
int64_t whole_at(const Json& object, const char* key, const std::string& where, int64_t otherwise);
std::string text_at(const Json& object, const char* key, const std::string& where);
std::vector<std::string> texts_at(const Json& object, const char* key, const std::string& where);  // or one text
Figure interval_of(const Json& object, const std::string& where);                                  // {value, low, high}
const Json& object_of(const Json& value, const std::string& where);  // throws if it is none

// Calls each(row, "FILE:LINE") for every line. A last line without its newline that is not JSON was being written when
// the run stopped: it is left out and remarked.
void each_line(const std::string& path, std::vector<std::string>& remarks,
               const std::function<void(const Json&, const std::string&)>& each);

}  // namespace ucas
