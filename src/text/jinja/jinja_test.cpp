#include "text/jinja/jinja.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/patience.h"

namespace ucas {
namespace {

std::string golden_folder() { return UCAS_SOURCE_DIR "/tests/goldens/chat/"; }

OrderedJson chat_goldens() { return OrderedJson::parse(read_file(golden_folder() + "goldens.json", int64_t{1} << 24)); }

std::string plain(const std::string& source, const OrderedJson& data = OrderedJson::object(),
                  const JinjaLimits& limits = {}) {
  return JinjaTemplate::parse(source, "t").render(data, OrderedJson::object(), limits).text;
}

std::string why(const std::string& source, const OrderedJson& data = OrderedJson::object()) {
  try {
    return str("rendered: ", plain(source, data));
  } catch (const Error& error) {
    return str(error.word(), " ", error.what());
  }
}

// What jinja2 renders, this renders; what it refuses, this refuses.
void expect_as_golden(const std::string& source, const OrderedJson& row, const OrderedJson& own) {
  std::string got;
  bool refused = false;
  try {
    got = JinjaTemplate::parse(source, "golden").render(row.at("context"), own).text;
  } catch (const Error& error) {
    refused = true;
    got = error.what();
  }
  EXPECT_EQ(refused, row.contains("error")) << source << "\n" << got;
  if (refused || row.contains("error")) return;
  EXPECT_EQ(got, row.at("text").get<std::string>()) << source;
}

TEST(jinja, renders_two_hundred_conversations_as_jinja2) {
  const OrderedJson goldens = chat_goldens();
  ASSERT_EQ(goldens.at("conversations").size(), 200u);
  for (const OrderedJson& row : goldens.at("conversations")) {
    const std::string path = str(golden_folder(), row.at("template").get<std::string>(), ".jinja");
    expect_as_golden(read_file(path, 1 << 20), row, goldens.at("own"));
  }
}

TEST(jinja, values_expressions_as_jinja2) {
  const OrderedJson goldens = chat_goldens();
  ASSERT_GT(goldens.at("expressions").size(), 70u);
  for (const OrderedJson& row : goldens.at("expressions")) {
    expect_as_golden(row.at("source").get<std::string>(), row, goldens.at("own"));
  }
}

// Of the rendered text, what came with data is in <>.
std::string marked(const std::string& source, const OrderedJson& data) {
  const MarkedText text = JinjaTemplate::parse(source, "t").render(data, {{"bos_token", "B"}});
  std::string out;
  char before = MarkedText::kTemplate;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char now = i < text.size() ? text.origin[i] : MarkedText::kTemplate;
    if (now != before) out += now == MarkedText::kData ? "<" : ">";
    before = now;
    if (i < text.size()) out += text.text[i];
  }
  return out;
}

TEST(jinja, knows_of_each_character_whether_it_is_data) {
  const OrderedJson x = {{"x", " a|b "}, {"list", {"c", "d"}}, {"map", {{"k", "v\"w"}}}};
  EXPECT_EQ(marked("{{ bos_token }}[{{ x }}]", x), "B[< a|b >]");
  EXPECT_EQ(marked("{{ '[' + x | trim + ']' ~ x.strip().upper() ~ 1 }}", x), "[<a|b>]<A|B>1");
  EXPECT_EQ(marked("{{ x.split('|')[0] }}-{{ x[1:3] }}{{ x[-2] }}", x), "< a>-<a|b>");
  EXPECT_EQ(marked("{{ x.replace('|', '+') }}", x), "< a>+<b >");
  EXPECT_EQ(marked("{{ list | join(', ') }};{{ list | tojson }};{{ map }}", x),
            "<c>, <d>;[\"<c>\", \"<d>\"];{'<k>': '<v\"w>'}");
  EXPECT_EQ(marked("{% macro m(a) %}({{ a }}){% endmacro %}{{ m(x | trim) }}", x), "(<a|b>)");
  EXPECT_EQ(marked("{% set y %}={{ list[0] }}={% endset %}{{ y | indent(1, true) }}", x), " =<c>=");
  EXPECT_EQ(marked("{% for k, v in map.items() %}{{ k }}:{{ v | title }}{% endfor %}", x), "<k>:<V\"w>");
}

TEST(jinja, refuses_what_is_outside_by_name_and_line) {
  EXPECT_EQ(why("a\n{% include 'x' %}"),
            "config t:2: the tag {% include %} is outside the part of Jinja that is read here (docs/formats.md lists "
            "it)");
  EXPECT_NE(why("\n\n{{ x | pprint }}").find("t:3: the filter pprint is outside"), std::string::npos);
  EXPECT_NE(why("{{ x is filter }}").find("the test filter is outside"), std::string::npos);
  EXPECT_NE(why("{{ 'a'.encode() }}").find("the method encode() of a text is outside"), std::string::npos);
  EXPECT_NE(why("{{ [].append(1) }}").find("the method append() of a list is outside"), std::string::npos);
  EXPECT_NE(why("{{ cycler(1) }}").find("the function cycler() is outside"), std::string::npos);
  EXPECT_NE(why("{% for x in y recursive %}{% endfor %}").find("a recursive loop is outside"), std::string::npos);
  EXPECT_NE(why("{{ 'a' | tojson(sort_keys=true) }}").find("sort_keys"), std::string::npos);
  EXPECT_NE(why("{{ '%s' % 1 }}").find("cannot calculate with a text"), std::string::npos);
}

TEST(jinja, refuses_broken_templates_where_they_break) {
  EXPECT_NE(why("a\n{% if x %}").find("t:2: the tag of line 2 is never closed: expected elif or else or endif"),
            std::string::npos)
      << why("a\n{% if x %}");
  EXPECT_NE(why("{{ x ").find("{{ is never closed"), std::string::npos);
  EXPECT_NE(why("{# x").find("a comment {# that is never closed"), std::string::npos);
  EXPECT_NE(why("{{ 'x }}").find("a quoted text that is never closed"), std::string::npos);
  EXPECT_NE(why("{{ (1 }}").find("closes nothing"), std::string::npos) << why("{{ (1 }}");
  EXPECT_NE(why("{% endif %}").find("the tag {% endif %} is outside"), std::string::npos);
  EXPECT_NE(why("{% break %}").find("break outside a loop"), std::string::npos);
  EXPECT_NE(why("{{ 99999999999999999999 }}").find("too large"), std::string::npos);
  EXPECT_NE(why("{{ 9223372036854775807 + 1 }}").find("beyond 64 bits"), std::string::npos);
  EXPECT_NE(why("{{ 1 // 0 }}").find("division by 0"), std::string::npos);
  EXPECT_NE(why("\n{{ raise_exception('alternate, please') }}").find("t:2: the template refuses: alternate, please"),
            std::string::npos);
  EXPECT_NE(why("{{ messages[0].content.x.y }}", {{"messages", {{{"content", "q"}}}}})
                .find("x of a text is undefined, so it has no y"),
            std::string::npos);
  EXPECT_EQ(why("\xff"), "utf8 t: the chat template is not UTF-8");
}

// Each would take hours or all memory, or break the stack.
TEST(jinja, ends_hostile_templates_in_bounded_time) {
  std::string deep = "x", sum = "1", calls = "x";
  for (int i = 0; i < 100'000; ++i) {
    deep = "(" + deep;
    sum += "+1";
    calls += "()";
  }
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "{% if 1 %}";
  const std::string long_loop = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}";
  const std::string hostile[] = {
      long_loop,
      "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "{% for i in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' * 1000 }}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[]) %}{% for i in range(9999) %}{% set ns.s = [ns.s] %}{% endfor %}",
      "{% set ns = namespace() %}{% set ns.s = ns %}{{ ns | tojson }}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
      "{{ 'a' * 999999999999 }}",
      "{{ range(999999999999) }}",
      "{{ 'x' | indent(999999999999) | indent(999999999) }}{{ 10 ** 99999999 }}",
      "{% set a = 'a' * 9999999 %}{{ (a ~ 'b') in (a ~ a) }}",
      "{% set a = 'a' * 999999 %}{{ a.replace('a', a) }}",
      "{% set a = 'a' * 999999 %}{{ a.strip(a) }}",
      "{{ " + deep + " }}",
      "{{ " + sum + " }}",
      "{{ " + calls + " }}",
      nested,
      "{% set x = 'a' * 9999999 %}{% for c in x %}{% endfor %}",
      "{% set a = '\u00e9' * 500000 %}{% for i in range(99) %}{% set _ = a | length %}{% endfor %}",
      "{% set a = '\u00e9' * 500000 %}{% for i in range(99) %}{% set _ = a | count %}{% endfor %}",
      "{% set a = '0' * 9999999 %}{% for i in range(99) %}{% set _ = a | int %}{% endfor %}",
      "{% set a = '0' * 9999999 %}{% for i in range(99) %}{% set _ = a | float %}{% endfor %}",
      "{% set a = 'a' * 9999999 %}{% set b = a ~ 'b' %}{% for i in range(99) %}{% set _ = a < b %}{% endfor %}",
      "{% set a = 'a' * 999999 ~ 'c' %}{% set ns = namespace(s=['a' * 999999 ~ 'b']) %}"
      "{% for i in range(12) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ a.startswith(ns.s) }}",
      "{% set a = 'a' * 9999999 %}{% set m = {a: 1} %}{% for i in range(99) %}{% set _ = namespace(m) %}{% endfor %}",
      "{% set a = 'a' * 9999999 %}{% set m = {a: 1} %}{% for i in range(99) %}{% set _ = m[a] %}{% endfor %}",
      "{% set a = 'a' * 9999999 %}{% set m = {'b': 1} %}{% for i in range(99) %}{% set _ = m[a] %}{% endfor %}",
  };
  for (const std::string& source : hostile) {
    const double began = testing::cpu_seconds();
    EXPECT_TRUE(why(source).starts_with("config ")) << source.substr(0, 80) << "\n" << why(source).substr(0, 200);
    EXPECT_LT(testing::cpu_seconds() - began, 20.0) << source.substr(0, 80);
  }
  EXPECT_NE(why(std::string(2 << 20, ' ')).find("limit t: a chat template of 2.00 MiB"), std::string::npos);
  JinjaLimits few;
  few.steps = 20;
  EXPECT_THROW(plain("{% for i in range(9) %}{{ i }}{% endfor %}", {}, few), Error);
}

}  // namespace
}  // namespace ucas
