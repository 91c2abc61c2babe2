#include "data/problems.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "data/rows/jsonl.h"

namespace ucas {

namespace {

constexpr int64_t kUnpackedLimit = int64_t{256} << 20;  // bytes of a problem's packed tests

[[noreturn]] void refuse_tests(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::data_line, str(where, ": ", what));
}

std::string from_base64(std::string_view text, const std::string& where) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) refuse_tests(where, "packed tests: not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 255);
    }
  }
  return out;
}

// The opcodes of a pickle of one text, in their order: PROTO, perhaps FRAME, a text, perhaps a memo of it, STOP.
std::string text_of_pickle(std::string_view bytes, const std::string& where) {
  const auto refuse = [&] [[noreturn]] () {
    refuse_tests(where, "packed tests: a pickle of something else than one text; nothing else is read");
  };
  const auto take = [&](size_t n) {
    if (bytes.size() < n) refuse();
    const std::string_view taken = bytes.substr(0, n);
    bytes.remove_prefix(n);
    return taken;
  };
  const auto number = [&](size_t n) {
    uint64_t value = 0;
    const std::string_view raw = take(n);
    for (size_t i = n; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return value;
  };
  if (take(1)[0] != '\x80' || number(1) > 5) refuse();
  char op = take(1)[0];
  if (op == '\x95') {
    if (number(8) != bytes.size()) refuse();
    op = take(1)[0];
  }
  const size_t width = op == '\x8c' ? 1 : op == 'X' ? 4 : op == '\x8d' ? 8 : 0;
  if (width == 0) refuse();
  const uint64_t size = number(width);
  if (size > bytes.size()) refuse();
  std::string text(take(static_cast<size_t>(size)));
  op = take(1)[0];
  if (op == '\x94' || op == 'q' || op == 'r') {
    take(op == 'q' ? 1 : op == 'r' ? 4 : 0);
    op = take(1)[0];
  }
  if (op != '.' || !bytes.empty() || !valid_utf8(text)) refuse();
  return text;
}

const Json* present(const JsonRow& row, const char* key) {
  const auto at = row.value.find(key);
  return at == row.value.end() || at->is_null() ? nullptr : &*at;
}

std::string text_or_none(const JsonRow& row, const char* key) { return present(row, key) ? text_field(row, key) : ""; }

// A value, or the JSON text of one.
Json json_of(const JsonRow& row, const char* key, const Json& value) {
  if (!value.is_string()) return value;
  const auto text = value.get<std::string>();
  const std::string where = str(row.where, ": \"", key, "\"");
  try {
    const std::string_view trimmed = trim(text);
    const bool json = trimmed.starts_with('[') || trimmed.starts_with('{');
    return parse_json(json ? text : unpack_text(trimmed, where), where);
  } catch (const Error& error) {
    throw Error(ErrorKind::data_line, error.what());
  }
}

// A piece of input or output, which need not be text: arguments are written as JSON, a line each.
std::string as_text(const Json& value) { return value.is_string() ? value.get<std::string>() : json_text(value); }

std::string dump(const OrderedJson& gold) { return json_text(gold); }

// {"inputs": [..], "outputs": [..], "fn_name": ".."}
std::string gold_of_lists(const JsonRow& row, const Json& lists) {
  const auto inputs = lists.find("inputs"), outputs = lists.find("outputs");
  if (inputs == lists.end() || outputs == lists.end() || !inputs->is_array() || !outputs->is_array() ||
      inputs->size() != outputs->size()) {
    refuse_tests(row.where, "\"input_output\": expected lists \"inputs\" and \"outputs\" of one length");
  }
  OrderedJson gold, tests = OrderedJson::array();
  const auto name = lists.find("fn_name");
  const bool function = name != lists.end() && name->is_string();
  for (size_t i = 0; i < inputs->size(); ++i) {
    const Json &input = (*inputs)[i], &output = (*outputs)[i];
    std::string in, out = as_text(output);
    if (input.is_array()) {
      for (const Json& item : input) in += (function ? json_text(item) : as_text(item)) + "\n";
    } else {
      in = as_text(input);
    }
    if (output.is_array() && !function) {
      out = "";
      for (const Json& item : output) out += as_text(item) + "\n";
    } else if (function) {
      out = json_text(output);
    }
    tests.push_back({{"input", in}, {"output", out}});
  }
  if (function) {
    gold["entry_point"] = name->get<std::string>();
    gold["wrapped"] = true;  // APPS and TACO write a result in a list of one, or bare
  }
  gold[function ? "values" : "stdin"] = tests;
  return dump(gold);
}

std::string gold_of_pairs(const JsonRow& row, const Json& rows, const std::string& entry) {
  OrderedJson gold, tests = OrderedJson::array();
  if (!rows.is_array()) refuse_tests(row.where, "\"input_output\": expected a list of {input, output}");
  for (const Json& one : rows) {
    if (!one.is_object() || !one.contains("input") || !one.contains("output")) {
      refuse_tests(row.where, "\"input_output\": expected a list of {input, output}");
    }
    tests.push_back({{"input", as_text(one["input"])}, {"output", as_text(one["output"])}});
  }
  if (!entry.empty()) gold["entry_point"] = entry;
  gold[entry.empty() ? "stdin" : "calls"] = tests;
  return dump(gold);
}

std::string gold_of_livecodebench(const JsonRow& row) {
  OrderedJson gold, tests = OrderedJson::array();
  bool function = false, input = false;
  for (const char* key : {"public_test_cases", "private_test_cases"}) {
    const Json* value = present(row, key);
    if (value == nullptr || (value->is_string() && trim(value->get<std::string>()).empty())) continue;
    const Json cases = json_of(row, key, *value);
    if (!cases.is_array()) refuse_tests(row.where, str("\"", key, "\": expected a list of {input, output, testtype}"));
    for (const Json& one : cases) {
      if (!one.is_object() || !one.contains("input") || !one.contains("output")) {
        refuse_tests(row.where, str("\"", key, "\": expected a list of {input, output, testtype}"));
      }
      const auto type = one.find("testtype");
      if (type != one.end() && *type != "functional" && *type != "stdin") {
        refuse_tests(row.where, str("\"", key, "\": testtype ", printable(json_text(*type), 40),
                                    ": expected \"stdin\" or \"functional\""));
      }
      (type != one.end() && *type == "functional" ? function : input) = true;
      tests.push_back({{"input", as_text(one["input"])}, {"output", as_text(one["output"])}});
    }
  }
  if (function && input) refuse_tests(row.where, "tests of both types, functional and stdin; expected one");
  if (function) {
    const Json* metadata = present(row, "metadata");
    const Json object = metadata == nullptr ? Json::object() : json_of(row, "metadata", *metadata);
    const auto name = object.is_object() ? object.find("func_name") : object.end();
    if (name == object.end() || !name->is_string()) refuse_tests(row.where, "\"metadata\": \"func_name\" is missing");
    gold["entry_point"] = name->get<std::string>();
  }
  gold[function ? "values" : "stdin"] = tests;
  return dump(gold);
}

std::string gold_of_asserts(const JsonRow& row, const std::string& text) {
  OrderedJson gold;
  if (const std::string entry = text_or_none(row, "entry_point"); !entry.empty()) gold["entry_point"] = entry;
  // LeetCodeDataset: the code before every solution. Elsewhere "prompt" is the question.
  std::string prelude = present(row, "starter_code") ? text_or_none(row, "prompt") : "";
  if (prelude.empty()) prelude = text_or_none(row, "test_setup_code");
  if (!prelude.empty()) gold["prelude"] = prelude;
  // HumanEval: functions besides the one that is requested, which make the tests' inputs.
  const Json* prompt = present(row, "prompt");
  if (prompt != nullptr && prompt->is_string() && gold.contains("entry_point") && prelude.empty()) {
    const auto& helpers = prompt->get_ref<const std::string&>();
    if (helpers.find("def ") != helpers.rfind("def ")) gold["helpers"] = helpers;
  }
  gold["asserts"] = text;
  return dump(gold);
}

}  // namespace

std::string unpack_text(std::string_view packed, const std::string& where) {
  const std::string bytes = from_base64(packed, where);
  return text_of_pickle(
      inflate_all(bytes, Packing::zlib, kUnpackedLimit, str(where, ": packed tests"), ErrorKind::data_line), where);
}

std::string gold_of_truth(const JsonRow& row, const std::string& truth) {
  if (!trim(truth).starts_with('{') || truth.find("\"inputs\"") == std::string::npos) return "";
  Json lists;
  try {
    lists = parse_json(truth, row.where);
  } catch (const Error&) {
    return "";
  }
  return lists.contains("inputs") && lists.contains("outputs") ? gold_of_lists(row, lists) : "";
}

bool holds_tests(const std::string& gold) {
  if (trim(gold).starts_with("assert ")) return true;
  constexpr const char* kForms[] = {"\"asserts\":", "\"calls\":", "\"values\":", "\"stdin\":"};
  return gold.starts_with("{\"") &&
         std::ranges::any_of(kForms, [&](const char* form) { return gold.find(form) != std::string::npos; });
}

std::string gold_of_tests(const JsonRow& row) {
  if (present(row, "test")) return gold_of_asserts(row, text_field(row, "test"));
  if (const Json* list = present(row, "test_list")) {
    std::string text;
    if (const Json* imports = present(row, "test_imports"); imports != nullptr && !imports->empty()) {
      for (const std::string& line : answer_field(row, *imports, "test_imports", false)) text += line + "\n";
    }
    for (const std::string& line : answer_field(row, *list, "test_list", false)) text += line + "\n";
    return gold_of_asserts(row, text);
  }
  if (const Json* value = present(row, "input_output")) {
    const Json tests = json_of(row, "input_output", *value);
    if (tests.is_object()) return gold_of_lists(row, tests);
    return gold_of_pairs(row, tests, text_or_none(row, "entry_point"));
  }
  if (present(row, "public_test_cases") || present(row, "private_test_cases")) return gold_of_livecodebench(row);
  for (const char* own : {"asserts", "calls", "values", "stdin"}) {
    if (!present(row, own)) continue;
    OrderedJson gold;
    for (const char* key : {"entry_point", "prelude", "wrapped", own}) {
      if (const Json* value = present(row, key)) gold[key] = *value;
    }
    return dump(gold);
  }
  return "";
}

}  // namespace ucas
