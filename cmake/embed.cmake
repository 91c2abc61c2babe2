# Run as a script: writes OUT, a .cpp that holds the text of each file in FILES (relative to ROOT) as bytes.
set(body "")
foreach(file IN LISTS FILES)
  file(READ "${ROOT}/${file}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(MAKE_C_IDENTIFIER "${file}" id)
  string(APPEND body "const unsigned char ${id}[] = {${bytes}0};\n")
  string(REGEX REPLACE "^src/" "" name "${file}")
  string(APPEND rows "    {\"${name}\", {reinterpret_cast<const char*>(${id}), sizeof ${id} - 1}},\n")
endforeach()
file(WRITE "${OUT}" "// Generated from the files it names.
#include \"base/files/file.h\"
#include <algorithm>
namespace ucas {
namespace {
${body}
struct Row { std::string_view name, text; };
const Row rows[] = {
${rows}};
}  // namespace
std::optional<std::string_view> embedded(std::string_view name) {
  for (const Row& row : rows) if (row.name == name) return row.text;
  return std::nullopt;
}
std::vector<std::string> embedded_names(std::string_view prefix) {
  std::vector<std::string> names;
  for (const Row& row : rows) if (row.name.starts_with(prefix)) names.emplace_back(row.name);
  std::sort(names.begin(), names.end());
  return names;
}
std::vector<std::string> embedded_stems(std::string_view folder) {
  std::vector<std::string> stems;
  for (const std::string& name : embedded_names(folder)) {
    if (name.ends_with(\".toml\")) stems.push_back(name.substr(folder.size(), name.size() - folder.size() - 5));
  }
  return stems;
}
}  // namespace ucas
")
