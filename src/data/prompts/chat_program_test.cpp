#include "data/prompts/chat_program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {
namespace {

const OrderedJson kNothing = OrderedJson::object();

std::string made_by(const std::string& source, const std::string& question, const OrderedJson& own = kNothing) {
  const Chat chat{{{"user", question}}, "7"};
  return ChatProgram::load(source, "t")->render({&chat, 1}, own, nullptr)[0].text;
}

std::string why_none(const std::string& source) {
  try {
    return str("rendered: ", made_by(source, "q").substr(0, 200));
  } catch (const Error& error) {
    return str(error.word(), " ", error.exit_code(), " ", error.what());
  }
}

TEST(chat_program, renders_conversations_as_the_goldens_of_jinja2) {
  const std::string folder = UCAS_SOURCE_DIR "/tests/goldens/chat/";
  const OrderedJson goldens = OrderedJson::parse(read_file(folder + "goldens.json", int64_t{1} << 24));
  int64_t rendered = 0;
  for (const OrderedJson& row : goldens.at("conversations")) {
    const std::string name = row.at("template").get<std::string>() + ".jinja";
    Chat chat{{}, "7"};
    for (const OrderedJson& message : row.at("messages"))
      chat.turns.push_back({message.at("role").get<std::string>(), message.at("content").get<std::string>()});
    const auto program = ChatProgram::load(read_file(folder + name, 1 << 20), name);
    try {
      const std::string text = program->render({&chat, 1}, row.at("own"), nullptr)[0].text;
      ASSERT_TRUE(row.contains("text")) << row.dump();
      EXPECT_EQ(text, row.at("text").get<std::string>()) << row.dump();
      ++rendered;
    } catch (const Error& error) {
      EXPECT_FALSE(row.contains("text")) << error.what() << row.dump();
    }
  }
  EXPECT_GT(rendered, 100);
}

TEST(chat_program, has_what_transformers_gives_a_template) {
  EXPECT_EQ(
      made_by("{{ messages | tojson }}{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"
              "{% generation %}{{ n + 1 }}{% endgeneration %}",
              "<\u00e9>", {{"n", 3}}),
      "[{\"role\": \"user\", \"content\": \"<\u00e9>\"}]014");
}

TEST(chat_program, refuses_by_file_and_line) {
  EXPECT_TRUE(why_none("a\n{% if x %}").starts_with("config 2 t:2: Unexpected end of template."))
      << why_none("a\n{% if x %}");
  EXPECT_EQ(why_none("\n\n{{ x | nothing }}"), "config 2 t:3: No filter named 'nothing'.");
  EXPECT_EQ(why_none("\n{{ raise_exception('roles\nalternate') }}"),
            "config 2 t:2: the template refuses: roles\\nalternate (problem 7)");
  EXPECT_EQ(why_none("{{ a.b.c }}"), "config 2 t:1: UndefinedError: 'a' is undefined (problem 7)");
  EXPECT_EQ(why_none("a"), "config 2 t: the question is not in the prompt that it makes (problem 7)");
  EXPECT_EQ(why_none("\xff"), "utf8 2 t: the chat template is not UTF-8");
  for (const char* inside :
       {"{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}", "{{ raise_exception.__globals__.os }}"})
    EXPECT_NE(why_none(inside).find("SecurityError"), std::string::npos) << why_none(inside);
}

// Each would take hours, all memory or the stack. The process goes on.
TEST(chat_program, ends_what_a_template_does_without_end) {
  const std::string deep(100'000, '(');
  for (const std::string& source :
       {std::string("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"),
        std::string("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}"),
        std::string("{{ 'a' * 999999999999 }}"), std::string("{{ range(999999999999) }}"),
        std::string("{{ messages[0].content * 20000000 }}"), "{{ " + deep + " }}"}) {
    EXPECT_TRUE(why_none(source).starts_with("config 2 t")) << source.substr(0, 80) << "\n" << why_none(source);
  }
}

TEST(chat_program, says_what_is_missing) {
  const char* before = std::getenv("UCAS_PYTHON");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("UCAS_PYTHON", "/nowhere/python3", 1);
  EXPECT_EQ(why_none("{# never seen before #}"),
            "python 2 chat template t: /nowhere/python3 cannot be started: No such file or directory; UCAS_PYTHON "
            "names the Python to take");
  before == nullptr ? ::unsetenv("UCAS_PYTHON") : ::setenv("UCAS_PYTHON", kept.c_str(), 1);
}

}  // namespace
}  // namespace ucas
