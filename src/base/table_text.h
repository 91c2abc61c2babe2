// Text of files and users as a cell of a table: control bytes shown, cut to a few hundred bytes, and nothing in it that
// the format would act on. Threads: any.
#pragma once

#include <string>

namespace ucas {

std::string markdown_text(const std::string& text);
std::string tex_text(const std::string& text);
std::string csv_text(const std::string& text);  // with its quotes

}  // namespace ucas
