// A chat template as a tree. Threads: parse from any thread; a tree is read by any number at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace ucas::jinja {

// A chat template as words: its text between tags, cut as trim_blocks, lstrip_blocks and the signs "-" and "+" in tags
// say, and the words within tags.

struct Word {
  enum class Kind : uint8_t {
    text,
    open_output,
    close_output,
    open_tag,
    close_tag,
    name,
    quoted,
    whole,
    real,
    sign,
    end
  };
  Kind kind;
  std::string text;  // of a quoted one, its value
  int line;
};

// Ends with a word of kind `end`. Error(ErrorKind::config, "WHERE:LINE: ...").
std::vector<Word> words_of(std::string_view source, const std::string& where);

enum class Op : uint8_t {
  // expressions, with what `parts` holds
  constant,   // value
  name,       // name
  list,       // items
  tuple,      // items
  map,        // key, value, key, value ...
  attribute,  // of what; name
  item,       // of what, key
  slice,      // of what, begin, end, step; nullptr where left out
  call,       // what, positional arguments; `named` the others
  filter,     // name; what, positional arguments; `named`
  test,       // name; what, positional arguments
  negative,
  positive,
  logical_not,
  logical_and,
  logical_or,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  concat,      // any number of parts
  comparison,  // parts; words[i] is the operator before parts[i + 1]
  condition,   // test, value if so, value otherwise (may be nullptr)
  // statements
  data,       // value
  output,     // what
  set,        // target, value
  set_block,  // target, filters around a `constant` in place of the body (or nullptr); body
  loop,       // target, what, test (may be nullptr); body, otherwise
  branch,     // test; body, otherwise
  macro,      // name; `named` parameters with defaults (may be nullptr); body
  block,      // body
  leave_loop,
  next_round,
  space_target  // words = {namespace, attribute}: only as a target of set
};

struct Node {
  Op op;
  int line = 0;
  int depth = 1;  // of the tree below
  std::string name;
  Value value;
  std::vector<std::string> words;
  std::vector<std::unique_ptr<const Node>> parts;
  std::vector<std::pair<std::string, std::unique_ptr<const Node>>> named;
  std::vector<std::unique_ptr<const Node>> body, otherwise;
};
using NodePtr = std::unique_ptr<const Node>;

// The program as one `block`. Error(ErrorKind::config, "WHERE:LINE: ..."), Error(ErrorKind::limit) for a template that
// is too long.
NodePtr parse_program(std::string_view source, const std::string& where);

}  // namespace ucas::jinja
