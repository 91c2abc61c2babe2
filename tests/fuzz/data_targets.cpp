// Problems in every form, tests of programs, answers, templates, settings.
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "evaluate/responses_file.h"
#include "fuzz/target.h"
#include "verify/audit/verify_rows.h"
#include "verify/code/tests.h"
#include "verify/registry.h"

namespace ucas::fuzz {

namespace {

void read_rows(const std::string& path) {
  try {
    const std::vector<Problem> problems = read_problems({path}, {.bad_rows = BadRows::skip, .labels = false});
    for (const Problem& problem : problems) require(valid_utf8(problem.text), "a question that is not UTF-8");
    content_hash(problems);
  } catch (const Error&) {
    read_problems({path});  // as it is read without any leave
  }
}

void jsonl(std::string_view input) { read_rows(put("x.jsonl", input)); }
void json(std::string_view input) { read_rows(put("x.json", str("[", input, "]"))); }
void csv(std::string_view input) { read_rows(put("x.csv", input)); }
void tsv(std::string_view input) { read_rows(put("x.tsv", input)); }
void gzip(std::string_view input) { read_rows(put("x.jsonl.gz", input)); }
void verify_rows(std::string_view input) { read_verify_rows(put("v.jsonl", input), BadRows::skip, true); }

void responses(std::string_view input) {
  const std::string path = put("r.jsonl", input);
  problems_of(read_responses(path), path);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) out += kDigits[bits >> (count - 6) & 63];
  }
  if (count > 0) out += kDigits[bits << (6 - count) & 63];
  return out;
}

std::string deflated(std::string_view bytes) {
  uLongf size = ::compressBound(bytes.size());
  std::string out(size, '\0');
  ::compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  out.resize(size);
  return out;
}

std::string pickled(std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  return str("\x80\x04X", std::string_view(reinterpret_cast<const char*>(&size), 4), text, ".");
}

// The first byte says how much of the packing stands: the input is the packed text, what zlib packed, the pickle in it,
// or the JSON in that.
void packed_tests(std::string_view input) {
  if (input.empty()) return;
  const int layers = input[0] & 3;
  std::string packed(input.substr(1));
  if (layers > 2) packed = pickled(packed);
  if (layers > 1) packed = deflated(packed);
  if (layers > 0) packed = base64(packed);
  const Json row = {{"private_test_cases", packed}, {"metadata", "{\"func_name\": \"f\"}"}};
  if (!valid_utf8(packed)) return;
  gold_of_tests({row, "x.jsonl:1", 1});
}

void published_tests(std::string_view input) {
  const Json row = parse_json(input, "x.jsonl:1");
  if (!row.is_object()) return;
  const std::string gold = gold_of_tests({row, "x.jsonl:1", 1});
  if (!gold.empty() && gold.find("\"asserts\"") == std::string::npos) code::read_tests(gold, "x.jsonl:1", "python3");
}

void literal(std::string_view input) {
  const size_t split = input.find('\x1f');
  const auto a = code::parse_value(input.substr(0, split));
  const auto b = split == std::string_view::npos ? a : code::parse_value(input.substr(split + 1));
  if (a && b) require(code::equal(*a, *b) == code::equal(*b, *a), "an equality of one direction");
  code::literal_of_json(input);
  for (const Extract extract : {Extract::strict, Extract::lenient, Extract::answer_tag})
    code::find_source(input, extract);
}

// One byte of options, the gold up to the first 0x1f, the response after it: no two verdicts for one answer.
void verify(std::string_view input) {
  if (input.empty()) return;
  static const std::unique_ptr<Grader> grader = make_grader(GraderKind::math);
  const auto options = static_cast<uint8_t>(input[0]);
  const std::string text(input.substr(1));
  const size_t split = text.find('\x1f');
  const std::vector<std::string> gold = {text.substr(0, split)};
  const std::string response = split == std::string::npos ? gold[0] : text.substr(split + 1);
  Answer answer{response, &gold};
  answer.extract = static_cast<Extract>(options % 3);
  answer.math.gold_is_response = (options & 4) != 0;
  answer.math.letter = (options & 8) != 0;
  answer.math.precision = (options & 16) != 0 ? options >> 5 : -1;
  std::vector<Verdict> first = grader->grade({&answer, 1});
  const std::vector<Verdict> second = grader->grade({&answer, 1});
  require(first.size() == 1 && second.size() == 1, "not one verdict per answer");
  require(first[0].kind == second[0].kind && first[0].reason == second[0].reason, "two verdicts for one answer");
  require(!first[0].reason.empty(), "a verdict without a reason");
  Answer self{gold[0], &gold};
  self.extract = Extract::bare;
  const std::vector<Verdict> same = grader->grade({&self, 1});
  require(same[0].kind != VerdictKind::unequal, "a text is unequal to itself");
  first.push_back(same[0]);
  grader->classify(first);
}

// The text graders, the input as for verify.
void text_graders(std::string_view input) {
  const size_t split = input.find('\x1f');
  const std::vector<std::string> gold = {std::string(input.substr(0, split))};
  const std::string response(split == std::string_view::npos ? input : input.substr(split + 1));
  for (const GraderKind kind : {GraderKind::letter, GraderKind::numeric, GraderKind::countdown}) {
    Answer answer{response, &gold};
    make_grader(kind)->grade({&answer, 1});
    answer.extract = Extract::lenient;
    make_grader(kind)->grade({&answer, 1});
  }
}

void template_toml(std::string_view input) {
  const Template prompt_template = load_template(put("t.toml", input), support("checkpoint"));
  render(prompt_template, sum_problem());
}

// A config, a suite, a study ..: as `ucas check` takes it.
void settings(std::string_view input) {
  const std::string path = put("s.toml", input);
  const bool parsed = [&] {
    try {
      read_toml(path);
      return true;
    } catch (const Error&) {
      return false;
    }
  }();
  run_check({path});
  if (parsed) run_explain({path});
}

}  // namespace

std::vector<Target> data_targets() {
  return {{"jsonl", jsonl},
          {"json", json},
          {"csv", csv},
          {"tsv", tsv},
          {"gzip", gzip},
          {"verify_rows", verify_rows},
          {"responses", responses},
          {"packed_tests", packed_tests},
          {"published_tests", published_tests},
          {"literal", literal},
          {"verify", verify},
          {"text_graders", text_graders},
          {"template", template_toml},
          {"settings", settings}};
}

}  // namespace ucas::fuzz
