#include "base/text/fields.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

enum class Colour { red, green };
enum class Shade { light, dark, black };
constexpr std::array<const char*, 3> names(Shade) { return {"light", "dark", "black"}; }

struct Inner {
  double beta = 0.01;
  std::vector<int64_t> betas = {0, 1};
  void fields(Fields& f) {
    f.field("beta", beta, Range{0, 10}, "penalty");
    f.field("betas", betas, Range{0, 9}, "several");
  }
};

struct Outer {
  int64_t steps = 3;
  bool fast = false;
  std::string name = "x";
  std::vector<std::string> files;
  Colour colour = Colour::red;
  Inner method;
  void fields(Fields& f) {
    f.field("steps", steps, Range{1, 100}, "how many");
    f.field("fast", fast, "quick");
    f.field("name", name, "what");
    f.field("files", files, "which");
    f.choice("colour", colour, {"red", "green"}, "hue");
    f.section("method", method);
  }
};

struct Named {
  Shade any = Shade::dark, offered = Shade::light;
  int64_t kept = 2;
  void fields(Fields& f) {
    f.choice("any", any, "one of all");
    f.choice("offered", offered, "one of the first two", Effect::size, 2);
    f.field("kept", kept, Range{0, 9}, "how many stay", Effect::bookkeeping);
  }
};

Outer from_toml(const std::string& text) {
  Outer config;
  ucas::apply(config, parse_toml(text, "run.toml"));
  return config;
}

Outer from_words(const std::vector<std::string>& words) {
  Outer config;
  ucas::apply(config, parse_command_line(words, {"fast"}).settings);
  return config;
}

template <class Read>
std::string message(Read read) {
  try {
    read();
    return "nothing was refused";
  } catch (const Error& error) {
    return str(error.word(), ": ", error.what());
  }
}

std::string toml_error(const std::string& text) {
  return message([&] { from_toml(text); });
}
std::string words_error(const std::vector<std::string>& words) {
  return message([&] { from_words(words); });
}

}  // namespace

TEST(fields, a_file_sets_what_it_names_and_leaves_the_rest) {
  Outer c = from_toml("steps = 7\ncolour = \"green\"\nfiles = [\"a\", \"b\"]\n[method]\nbeta = 1\nbetas = []\n");
  EXPECT_EQ(c.steps, 7);
  EXPECT_EQ(c.colour, Colour::green);
  EXPECT_EQ(c.files, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(c.method.beta, 1.0);
  EXPECT_TRUE(c.method.betas.empty());
  EXPECT_EQ(c.name, "x");
}

TEST(fields, the_command_line_overrides_the_file) {
  Outer c;
  auto settings = parse_toml("steps = 7\n[method]\nbeta = 0.5", "run.toml");
  auto line =
      parse_command_line({"pos", "--method.beta=0.25", "--fast", "--files", "a,b", "-", "--steps", "9"}, {"fast"});
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  ucas::apply(c, settings);
  EXPECT_EQ(c.method.beta, 0.25);
  EXPECT_EQ(c.steps, 9);
  EXPECT_TRUE(c.fast);
  EXPECT_EQ(c.files, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(line.positionals, (std::vector<std::string>{"pos", "-"}));
  EXPECT_TRUE(parse_command_line({"-h"}, {}).help);
}

TEST(fields, an_unknown_key_names_its_place_and_the_nearest_key) {
  EXPECT_EQ(toml_error("steps = 1\n\n[method]\nbeto = 1"),
            "config: run.toml:4: unknown key method.beto (did you mean method.beta?)");
  EXPECT_EQ(toml_error("beta = 1"), "config: run.toml:1: unknown key beta (did you mean method.beta?)");
  EXPECT_EQ(toml_error("qqqqqqqqq = 1"), "config: run.toml:1: unknown key qqqqqqqqq");
  EXPECT_EQ(words_error({"--stesp", "4"}), "config: --stesp: unknown key (did you mean --steps?)");
}

// The library would overflow the stack: 20,000 parts end it.
TEST(fields, a_key_without_end_is_refused_before_the_library_sees_it) {
  auto many = [](const std::string& part, const std::string& between, int count) {
    std::string text = part;
    for (int i = 1; i < count; ++i) text += between + part;
    return text;
  };
  const std::string parts = "config: run.toml:2: a key of more than 64 parts";
  for (const char* between : {".", " . ", "\t."}) {
    EXPECT_EQ(toml_error("steps = 1\n[" + many("a", between, 20000) + "]\nx = 1"), parts);
    EXPECT_EQ(toml_error("steps = 1\n" + many("a", between, 65) + " = 1"), parts);
  }
  EXPECT_EQ(toml_error("steps = 1\n" + many("\"a b\"", ".", 20000) + " = 1"), parts);
  EXPECT_EQ(toml_error("name = \"\"\"\n\"\"\"\n[[" + many("'a'", ".", 20000) + "]]"),
            "config: run.toml:3: a key of more than 64 parts");
  const std::string nested = "config: run.toml:1: lists or tables nested in more than 64 others";
  EXPECT_EQ(toml_error("a = " + std::string(20000, '[')), nested);
  EXPECT_EQ(toml_error("a = " + many("{b", " = ", 20000)), nested);
  EXPECT_EQ(toml_error("a = " + many("{ b.c.d", " = ", 20000)), nested);
  // What looks like depth inside a text, a comment or a list of numbers is none.
  const std::string dots(500, '.'), braces(500, '[');
  const std::string basic = "\"" + braces + "\\\"" + dots + "\"", literal = "'''" + dots + "\n" + braces + "'''";
  Outer c = from_toml("name = '" + dots + braces + "' # " + dots + braces + "\nfiles = [\"\"\"" + dots +
                      "\n\\\"\"\"\", " + basic + ", " + literal + "]");
  EXPECT_EQ(c.name, dots + braces);
  ASSERT_EQ(c.files.size(), 3u);
  EXPECT_EQ(c.files[0], dots + "\n\"");
  EXPECT_EQ(c.files[1], braces + "\"" + dots);
  EXPECT_EQ(parse_toml("x = [" + many("1.5", ", ", 500) + "]\n" + many("y", ".", 64) + " = 1", "f").size(), 2u);
}

TEST(fields, a_table_whose_name_begins_with_no_name_is_refused) {
  const std::string refused = "config: run.toml:2: not valid TOML: expected the name of a table after \"[\"";
  for (const char* header : {"[ = 254", "[.a]", "[[=", "[", "  [\t\x01]", "[\xc3\xa9]"}) {
    EXPECT_EQ(toml_error("steps = 1\n" + std::string(header) + "\n"), refused) << header;
  }
  EXPECT_EQ(from_toml("files = [\n  \"a\",\n  \"b\"]\n[ \"method\" ]\nbeta = 1\n").files.size(), 2u);
}

// Under sanitizers the library's own tables are what is tested.
TEST(fields, a_letter_above_ascii_is_part_of_texts_and_of_no_key) {
  for (const std::string letter : {"\xc3\xa9", "\xcd\xaa", "\xe3\x81\x82", "\xef\xbb\xbe"}) {
    EXPECT_TRUE(toml_error("n" + letter + "me = \"a\"").starts_with("config: run.toml:1: not valid TOML")) << letter;
    EXPECT_TRUE(toml_error("steps = " + letter).starts_with("config: run.toml:1: not valid TOML")) << letter;
    EXPECT_EQ(from_toml("name = \"\"\"a\\\n " + letter + "\"\"\" # " + letter).name, "a" + letter);
  }
}

TEST(fields, wrong_types_and_ranges_say_what_was_got_and_expected) {
  EXPECT_EQ(toml_error("steps = 0"), "config: run.toml:1: steps = 0: expected a value 1 .. 100");
  EXPECT_EQ(toml_error("steps = 1.5"), "config: run.toml:1: steps = 1.5: expected a whole number");
  EXPECT_EQ(toml_error("steps = \"7\""), "config: run.toml:1: steps = \"7\": expected a whole number");
  EXPECT_EQ(toml_error("fast = 1"), "config: run.toml:1: fast = 1: expected true or false");
  EXPECT_EQ(toml_error("name = [1]"), "config: run.toml:1: name = a list: expected text in quotes");
  EXPECT_EQ(toml_error("colour = \"gren\""),
            "config: run.toml:1: colour = \"gren\": expected one of red, green (did you mean green?)");
  EXPECT_EQ(toml_error("[method]\nbeta = nan"), "config: run.toml:2: method.beta = nan: expected a value 0 .. 10");
  EXPECT_EQ(toml_error("[method]\nbetas = [1, 99]"),
            "config: run.toml:2: method.betas = a list: expected a value 0 .. 9");
  EXPECT_EQ(words_error({"--steps", "7x"}), "config: --steps 7x: expected a whole number");
  EXPECT_EQ(words_error({"--method.beta", "inf"}), "config: --method.beta inf: expected a value 0 .. 10");
  EXPECT_EQ(words_error({"--steps"}), "usage: --steps: a value is missing after it");
  EXPECT_EQ(words_error({"-x"}), "usage: -x: unknown option (options are written --key value)");
}

TEST(fields, what_is_not_toml_is_refused_with_its_line) {
  for (const char* bad :
       {"steps = 1\nsteps = 2", "x", "a = [", "= 1", "a = \"\xff\"", "a = 1979-05-27", "a = [1, \"b\"]", "a = [1.5]"}) {
    EXPECT_TRUE(toml_error(bad).starts_with("config: run.toml:")) << bad << " -> " << toml_error(bad);
  }
  EXPECT_TRUE(toml_error("a = " + std::string(100000, '[')).starts_with("config: run.toml:1"));
}

TEST(fields, help_shows_every_option_with_range_and_default) {
  std::string help = options_help(Outer{});
  for (const char* part :
       {"--steps INT", "1 .. 100", "[3]", "--method.beta NUM", "[0.01]", "red | green", "--fast BOOL"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part << " in\n" << help;
  }
  auto rows = fields_of(Outer{});
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[5].key, "method.beta");
  EXPECT_EQ(rows[5].value, "0.01");
}

RC_GTEST_PROP(fields, the_dump_reads_back_as_the_same_values, (bool fast, double beta, std::vector<uint8_t> letters)) {
  Outer c;
  c.fast = fast;
  c.method.beta = std::fmod(std::fabs(beta), 10.0);
  c.name.clear();
  for (uint8_t letter : letters) c.name += static_cast<char>(letter & 0x7f);  // control bytes and quotes included
  c.files = {c.name, ""};
  c.method.betas = {static_cast<int64_t>(letters.size() % 10)};
  c.colour = fast ? Colour::green : Colour::red;
  Outer back = from_toml(to_toml(c));
  RC_ASSERT(back.fast == c.fast);
  RC_ASSERT(back.method.beta == c.method.beta);
  RC_ASSERT(back.name == c.name);
  RC_ASSERT(back.files == c.files);
  RC_ASSERT(back.method.betas == c.method.betas);
  RC_ASSERT(back.colour == c.colour);
}

TEST(fields, the_words_of_an_enum_stand_beside_it_and_may_be_offered_in_part) {
  Named config;
  ucas::apply(config, parse_toml("any = \"black\"\noffered = \"dark\"\n", "run.toml"));
  EXPECT_EQ(config.any, Shade::black);
  EXPECT_STREQ(word_of(config.offered), "dark");
  EXPECT_EQ(message([&] { ucas::apply(config, parse_toml("offered = \"black\"\n", "run.toml")); }),
            "config: run.toml:1: offered = \"black\": expected one of light, dark");
}

TEST(fields, what_an_option_can_change_is_told_with_its_value) {
  const std::vector<FieldValue> fields = fields_of(Named{});
  ASSERT_EQ(fields.size(), 3u);
  EXPECT_EQ(fields[0].effect, Effect::result);  // unless it is said
  EXPECT_EQ(fields[1].effect, Effect::size);
  EXPECT_EQ(fields[2].effect, Effect::bookkeeping);
}

}  // namespace ucas
