#include "text/split/splitter.h"

// Without its names for POSIX's types; 6.9.7 says regex_t in its declarations all the same.
#define ONIG_ESCAPE_REGEX_T_COLLISION
#define ONIG_ESCAPE_UCHAR_COLLISION
#define regex_t OnigRegexType
#include <oniguruma.h>
#undef regex_t

#include <cctype>
#include <map>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

constexpr size_t kMaxExpression = size_t{1} << 16;  // bytes
// Steps back. One match has the library's own limit, that of the reference; a search tries one at each place.
constexpr unsigned long kRetriesInMatch = 10'000'000, kRetriesInSearch = 200'000'000;
constexpr unsigned kStackEntries = 1u << 25;
constexpr size_t kMostProperties = 20;  // Oniguruma has room for as many

const OnigUChar* bytes_of(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

std::string onig_message(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  int length = info != nullptr ? onig_error_code_to_str(text, code, info) : onig_error_code_to_str(text, code);
  return printable(std::string(reinterpret_cast<const char*>(text), static_cast<size_t>(length)));
}

// Guards what Oniguruma keeps for the whole program: its start, and the properties that were given to it.
std::mutex& library() {
  static std::mutex mutex;
  return mutex;
}

void start_library() {
  static const bool started = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    UCAS_CHECK(onig_initialize(encodings, 1) == ONIG_NORMAL, "Oniguruma failed to initialise");
    return true;
  }();
  static_cast<void>(started);
}

// Ranges as Oniguruma wants them, count first; empty when there is no such category.
std::vector<OnigCodePoint> ranges_of(std::string_view category) {
  const std::vector<CodeRange> rows = category_ranges(category);
  if (rows.empty()) return {};
  std::vector<OnigCodePoint> ranges = {static_cast<OnigCodePoint>(rows.size())};
  for (const CodeRange& row : rows) ranges.insert(ranges.end(), {row.first, row.last});
  return ranges;
}

// "Lu" of "Lu", "l u", "Uppercase_Letter"; "" for what is no category of assigned characters (scripts, Alpha, Cn ...).
std::string category_of(std::string_view property) {
  static const std::map<std::string, std::string> long_names = {{"letter", "l"},           {"mark", "m"},
                                                                {"number", "n"},           {"punctuation", "p"},
                                                                {"symbol", "s"},           {"uppercaseletter", "lu"},
                                                                {"lowercaseletter", "ll"}, {"titlecaseletter", "lt"},
                                                                {"modifierletter", "lm"},  {"otherletter", "lo"},
                                                                {"nonspacingmark", "mn"},  {"spacingmark", "mc"},
                                                                {"decimalnumber", "nd"},   {"othernumber", "no"},
                                                                {"letternumber", "nl"}};
  std::string name;
  for (char c : property) {
    if (c != ' ' && c != '-' && c != '_') name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (const auto known = long_names.find(name); known != long_names.end()) name = known->second;
  if (name.empty() || name.size() > 2 || name[0] == 'c') return "";
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

// The name by which the library knows our table of a property, "" where the property is the library's own.
std::string property_of(std::string_view property) {
  static std::map<std::string, std::vector<OnigCodePoint>> defined;
  const std::string category = category_of(property), name = "Ucas" + category;
  if (category.empty()) return "";
  if (defined.contains(category)) return name;
  std::vector<OnigCodePoint> ranges = ranges_of(category);
  if (ranges.empty() || defined.size() == kMostProperties) return "";
  const auto kept = defined.emplace(category, std::move(ranges)).first;
  UCAS_CHECK(onig_unicode_define_user_property(name.c_str(), kept->second.data()) == ONIG_NORMAL,
             "expected a property of the JSON schema");
  return name;
}

// \p{L}, \P{L}, \p{^L}, \d and \D become names of our tables; all else stays as it is.
std::string with_own_properties(const std::string& expression) {
  std::string out;
  for (size_t at = 0; at < expression.size();) {
    if (expression[at] != '\\' || at + 1 == expression.size()) {
      out += expression[at++];
      continue;
    }
    const char kind = expression[at + 1];
    const size_t open = at + 2;
    const size_t close =
        (kind == 'p' || kind == 'P') && expression[open] == '{' ? expression.find('}', open) : std::string::npos;
    std::string name, inside = close == std::string::npos ? "" : expression.substr(open + 1, close - open - 1);
    const bool negated = inside.starts_with('^');
    if (close != std::string::npos) name = property_of(inside.substr(negated ? 1 : 0));
    if (kind == 'd' || kind == 'D') name = property_of("nd");
    const bool digits = kind == 'd' || kind == 'D';
    if (name.empty()) {
      out += {'\\', kind};
      at = open;
      continue;
    }
    out += str(kind == 'd' || kind == 'p' ? "\\p{" : "\\P{", negated ? "^" : "", name, "}");
    at = digits ? open : close + 1;
  }
  return out;
}

}  // namespace

Regex::Regex(const std::string& expression, const std::string& where) : expression_(expression) {
  auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::tokenizer, str(where, ": the expression \"", printable(expression, 200), "\": ", why));
  };
  if (expression.empty() || expression.size() > kMaxExpression) {
    refuse(str(expression.size(), " bytes long, expected 1 to ", kMaxExpression));
  }
  if (!valid_utf8(expression)) refuse("it is not UTF-8");
  const std::lock_guard lock(library());
  start_library();
  const std::string own = with_own_properties(expression);
  OnigRegex made = nullptr;
  OnigErrorInfo info{};
  const int code = onig_new(&made, bytes_of(own), bytes_of(own) + own.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                            ONIG_SYNTAX_ONIGURUMA, &info);
  if (code != ONIG_NORMAL)
    refuse(str("the library of regular expressions (Oniguruma) says: ", onig_message(code, &info)));
  compiled_ = std::shared_ptr<void>(made, [](void* regex) { onig_free(static_cast<OnigRegex>(regex)); });
}

std::optional<Regex::Match> Regex::find(std::string_view text, size_t from) const {
  struct Search {  // kept by each thread: searches are many and short
    OnigRegion* region = onig_region_new();
    OnigMatchParam* limits = onig_new_match_param();
    Search() {
      onig_initialize_match_param(limits);
      onig_set_match_stack_limit_size_of_match_param(limits, kStackEntries);
      onig_set_retry_limit_in_match_of_match_param(limits, kRetriesInMatch);
      onig_set_retry_limit_in_search_of_match_param(limits, kRetriesInSearch);
    }
    ~Search() {
      onig_region_free(region, 1);
      onig_free_match_param(limits);
    }
  };
  static thread_local Search search;
  const OnigUChar *begin = bytes_of(text), *end = begin + text.size();
  const int found = onig_search_with_param(static_cast<OnigRegex>(compiled_.get()), begin, end, begin + from, end,
                                           search.region, ONIG_OPTION_NONE, search.limits);
  if (found == ONIG_MISMATCH) return std::nullopt;
  if (found < 0) {
    throw Error(ErrorKind::limit,
                str("the expression \"", printable(expression_, 200), "\" of the tokenizer on a text of ", text.size(),
                    " bytes, at byte ", from, " (\"", printable(text.substr(from, 40)),
                    "\"): ", onig_message(found, nullptr), "; leave such a text out or shorten it"));
  }
  return Match{static_cast<size_t>(search.region->beg[0]), static_cast<size_t>(search.region->end[0])};
}

std::vector<Regex::Match> Regex::find_all(std::string_view text) const {
  std::vector<Match> matches;
  for (size_t at = 0; at <= text.size();) {
    const std::optional<Match> found = find(text, at);
    if (!found) break;
    const bool empty_after_match = found->begin == found->end && !matches.empty() && found->end == matches.back().end;
    if (!empty_after_match) {
      matches.push_back(*found);
      at = found->end;
    } else {
      at = found->end < text.size() ? found->end + char_at(text, found->end).length : text.size() + 1;
    }
  }
  return matches;
}

}  // namespace ucas
