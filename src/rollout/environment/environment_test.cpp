#include "rollout/environment/environment.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "data/prompts/templates.h"
#include "support/temporary_directory.h"
#include "text/tokenizer/added_tokens.h"

namespace ucas {
namespace {

std::string said_to(const std::string& turn) {
  const auto calculator = row_of_calculator({}).make();
  calculator->reset({});
  const auto message = calculator->step(turn);
  return message ? message->text : "done";
}

TEST(calculator, evaluates_exactly_and_says_what_is_wrong) {
  EXPECT_EQ(said_to("So <calc>12*34</calc>"), "<result>408</result>");
  EXPECT_EQ(said_to("<calc>(1 + 2) * 3 - 10</calc>"), "<result>-1</result>");
  EXPECT_EQ(said_to("<calc>7/2</calc>"), "<result>7/2</result>");
  EXPECT_EQ(said_to("<calc>1/3 + 1/6 + 1/2</calc>"), "<result>1</result>");
  EXPECT_EQ(said_to("<calc>3</calc> no: <calc>4+4</calc>"), "<result>8</result>") << "the last call counts";
  EXPECT_EQ(said_to("<calc>1/(2-2)</calc>"), "<result>error: divides by zero</result>");
  EXPECT_EQ(said_to("<calc>2^10</calc>"), "<result>error: not an arithmetic expression</result>");
  EXPECT_EQ(said_to("<calc></calc>"), "<result>error: not an arithmetic expression</result>");
  EXPECT_EQ(said_to("<calc>" + std::string(600, '1') + "</calc>"), "<result>error: too long</result>");
  EXPECT_EQ(said_to("12*34</calc>"), "<result>error: no <calc></result>");
  EXPECT_EQ(said_to("The answer is 7."), "done");
}

TEST(calculator, says_only_what_its_row_promises) {
  const std::string promised = row_of_calculator({}).says;
  for (const char* turn : {"<calc>1/3-7</calc>", "</calc>", "<calc>(</calc>", "<calc>9999999999</calc>",
                           "<calc>01</calc>", "<calc>1/0</calc>"}) {
    for (char c : said_to(turn)) EXPECT_NE(promised.find(c), std::string::npos) << turn << ": " << c;
  }
}

// The same tool for all tests, as its sandbox tries attacks at its start; nothing where this machine has none.
struct PythonTool {
  EnvironmentSetup setup;
  std::optional<EnvironmentRow> row;

  explicit PythonTool(ToolState state = ToolState::kept, int64_t seconds = 1, int64_t chars = 200,
                      const Tokenizer* tokenizer = nullptr) {
    setup.config = {.kind = EnvironmentKind::python, .tool_state = state, .tool_seconds = seconds, .tool_chars = chars};
    setup.code.memory_mib = 512;
    setup.tokenizer = tokenizer;
    try {
      row = row_of_python(setup);
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "sandbox") << error.what();
    }
  }
  std::unique_ptr<Environment> episode() const {
    auto out = row->make();
    out->reset({});
    return out;
  }
};

#define TOOL(name, ...)               \
  const PythonTool name{__VA_ARGS__}; \
  if (!name.row) GTEST_SKIP() << "no sandbox on this machine"

std::string block(const std::string& code) { return str("So\n```python\n", code, "\n```"); }

// What a block of Python is answered, without the block around it.
std::string output_of(Environment& episode, const std::string& code) {
  const auto message = episode.step(block(code));
  const std::string text = message ? message->text : "done", head = "\n```output\n", tail = "\n```\n";
  if (!text.starts_with(head) || !text.ends_with(tail)) return "no output: " + text;
  return text.substr(head.size(), text.size() - head.size() - tail.size());
}

TEST(python_tool, prints_as_a_session_does_and_says_the_last_line_of_a_traceback) {
  TOOL(tool);
  const auto episode = tool.episode();
  for (const auto& [code, said] : std::vector<std::pair<std::string, std::string>>{
           {"print(2**10)", "1024"},
           {"2**10", "1024"},
           {"x = 3", ""},
           {"", ""},
           {"for i in range(3):\n    print(i)\n'a'", "0\n1\n2\n'a'"},
           {"None", ""},
           {"print('a', end='')\n1/0", "a\nZeroDivisionError: division by zero"},
           {"raise ValueError", "ValueError"},
           {"exit()", ""},
           {"input()", "EOFError: EOF when reading a line"},
           {"import nothing", "ModuleNotFoundError: No module named 'nothing'"},
           {"object()", "<object object at 0x..>"},
           {"'\\ud800'", "'\\ud800'"},
           {"print('\\xe9\\u2192')", "\xc3\xa9\xe2\x86\x92"},
           {"import sys; sys.stderr.write('x'); print('y')", "y"}}) {
    EXPECT_EQ(output_of(*episode, code), said) << code;
  }
  EXPECT_EQ(output_of(*episode, "1 +").substr(0, 12), "SyntaxError:");
}

TEST(python_tool, a_turn_ends_where_a_block_of_python_or_a_call_is_closed) {
  TOOL(tool);
  const auto episode = tool.episode();
  for (const char* open : {"", "7", "```", "```python", "```python\n", "```python\nx = '```'", "```\n1\n```",
                           "```json\n{}\n```\n", "```output\n5\n```\n", "<tool_call>\n{"}) {
    const auto message = episode->step(open);
    ASSERT_TRUE(message) << open;
    EXPECT_EQ(message->text, "") << open;
  }
  EXPECT_EQ(episode->step("```python\n1\n```\n")->text, "```output\n1\n```\n") << "a token may bring the line's end";
  const std::string error =
      "\n<tool_response>\nerror: expected {\"name\": \"python\", \"arguments\": {\"code\": "
      "\"...\"}}\n</tool_response>\n";
  EXPECT_EQ(
      episode->step("<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"y = 6\\ny*7\"}}\n</tool_call>")
          ->text,
      "\n<tool_response>\n42\n</tool_response>\n");
  for (const char* call :
       {"</tool_call>", "<tool_call>1</tool_call>", "<tool_call>{\"arguments\": {}}</tool_call>",
        "<tool_call>{\"arguments\": {\"code\": 1}}</tool_call>", "<tool_call>{\"arguments\":</tool_call>"}) {
    EXPECT_EQ(episode->step(call)->text, error) << call;
  }
}

TEST(python_tool, keeps_names_of_turns_that_ended_or_none) {
  TOOL(tool);
  const auto episode = tool.episode();
  EXPECT_EQ(output_of(*episode, "x = 5\nraise KeyError(x)"), "KeyError: 5");
  EXPECT_EQ(output_of(*episode, "x += 1\nprint(x)"), "6");
  EXPECT_EQ(output_of(*episode, "x = 0\nimport os\nos._exit(0)"), "error: the interpreter ended");
  EXPECT_EQ(output_of(*episode, "x"), "6") << "and not what was printed before";
  const auto other = tool.episode();
  EXPECT_EQ(output_of(*other, "x"), "NameError: name 'x' is not defined");
  episode->reset({});
  EXPECT_EQ(output_of(*episode, "x"), "NameError: name 'x' is not defined");
  TOOL(fresh, ToolState::fresh);
  const auto forgets = fresh.episode();
  EXPECT_EQ(output_of(*forgets, "x = 5\nx"), "5");
  EXPECT_EQ(output_of(*forgets, "x"), "NameError: name 'x' is not defined");
}

TEST(python_tool, leaves_out_the_middle_of_a_long_output) {
  TOOL(tool, ToolState::kept, 1, 21);
  const auto episode = tool.episode();
  std::string letters;
  for (int i = 0; i < 21; ++i) letters += "\xc3\xa9";
  EXPECT_EQ(output_of(*episode, "print('\\xe9' * 21)"), letters) << "characters, not bytes";
  EXPECT_EQ(output_of(*episode, "print('a' * 500 + 'b' * 500)"), "aaaaaaaaaaa\n[979 characters left out]\nbbbbbbbbbb");
}

TEST(python_tool, gives_the_same_messages_every_time) {
  TOOL(tool);
  const std::string code =
      "import datetime, os, random, secrets, time, uuid\nprint({str(i) for i in range(9)}, random.random(), "
      "random.Random().random(), random.SystemRandom().random(), os.urandom(4), secrets.token_hex(4), uuid.uuid4(), "
      "time.time(), time.perf_counter_ns(), time.ctime(), datetime.datetime.now(), datetime.date.today())";
  TOOL(long_one, ToolState::kept, 1, 5000);
  const std::string first = output_of(*long_one.episode(), code);
  EXPECT_NE(first.find("1970-01-01"), std::string::npos) << first;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(output_of(*long_one.episode(), code), first);
  EXPECT_EQ(output_of(*tool.episode(),
                      "import time\nt = time.time()\ngetattr(time, 'sleep')(1e6)\nwhile time.time() < t + 1e6 + 1:\n   "
                      " pass\n'awake'"),
            "'awake'")
      << "time goes by where it is asked for";
}

TEST(python_tool, ends_what_exceeds_a_limit_and_goes_on) {
  TOOL(tool);
  const auto episode = tool.episode();
  output_of(*episode, "x = 7");
  for (const auto& [code, said] : std::vector<std::pair<std::string, std::string>>{
           {"while True:\n    pass", "error: out of time"},
           {"try:\n    while True:\n        pass\nexcept BaseException:\n    pass", "error: out of time"},
           {"bytearray(1 << 30)", "MemoryError"},
           {"import ctypes\nctypes.string_at(0)", "error: the interpreter ended"},
           {"import os\nos.write(4, b'x' * 100000)", "error: the interpreter ended"},
           {"def f(n):\n    return f(n)\nf(1)", "RecursionError: maximum recursion depth exceeded"}}) {
    EXPECT_EQ(output_of(*episode, code), said) << code;
    EXPECT_EQ(output_of(*episode, "x"), "7") << code;
  }
}

TEST(python_tool, reaches_neither_files_nor_processes_nor_the_answer) {
  const testing::TemporaryDirectory folder;
  write_file(folder.path() + "/secret", "918273");
  TOOL(tool, ToolState::kept, 1, 4000);
  const auto episode = tool.episode();
  episode->reset({.id = "1", .text = "What is it?", .gold = {"918273"}});
  for (const std::string& code :
       {str("open('", folder.path(), "/secret').read()"), str("open('", folder.path(), "/out', 'w')"),
        std::string("import os\nwhile True:\n    os.fork()"),
        std::string("import socket\nsocket.create_connection(('127.0.0.1', 80))"),
        std::string("import os\nos.kill(os.getppid(), 9)"),
        std::string("import subprocess\nsubprocess.run(['/bin/true'])")}) {
    EXPECT_NE(output_of(*episode, code).find("Error"), std::string::npos) << code;
  }
  EXPECT_FALSE(exists(folder.path() + "/out"));
  // Finds a number in memory only if somebody else than this text has put it there.
  EXPECT_EQ(
      output_of(
          *episode,
          "import gc, sys\ndef seen():\n    want = str(int('918272') + 1)\n    return [o for o in gc.get_objects() + "
          "[sys._getframe().f_back.f_back.f_locals] if type(o) in (list, tuple, dict) and want in repr(o)]\nseen()"),
      "[]");
}

// As Qwen3's template writes a tool's reply: a turn of the user, whose special tokens are the template's.
TEST(python_tool, answers_a_call_by_the_chat_template) {
  const testing::TemporaryDirectory folder;
  write_word_level_tokenizer(folder.path(), std::vector<std::string>{"a"}, "<|im_end|>", "<pad>");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  write_file(folder.path() + "/chat_template.jinja",
             "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor "
             "%}<|im_start|>assistant");
  TOOL(tool, ToolState::kept, 1, 200, &tokenizer);
  const auto message = tool.episode()->step(
      "<tool_call>{\"name\": \"python\", \"arguments\": {\"code\": \"'<|im_end|>'\"}}</tool_call>");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text,
            "<|im_end|>\n<|im_start|>user\n<tool_response>\n'<|im_end|>'\n</"
            "tool_response><|im_end|>\n<|im_start|>assistant");
  const size_t data = message->text.find("'<|im_end|>'");
  EXPECT_EQ(message->origin[0], MarkedText::kTemplate);
  EXPECT_EQ(message->origin[data + 1], MarkedText::kData);
}

// The user's functions, in a file; what a call is answered, without the tags around it.
class OwnTools : public ::testing::Test {
 protected:
  OwnTools() {
    write_file(file_, R"(import os
def add(a: int, b: int = 1) -> int:
    """Adds.

    Args:
        a: a number,
            any
    """
    print("no reply")
    return a + b
def fail(text: str):
    "Fails."
    raise KeyError(text + "\n" + "x" * 300)
def odd():
    "Odd texts."
    return "\ud800<|im_end|>\u00e9"
def bare(a):
    "No type."
def end():
    "Ends."
    os._exit(3)
class Game:
    turn_ends = ["</move>"]
    chat = False
    def reset(self, problem):
        self.problem, self.turns = problem, 0
    def step(self, text):
        self.turns += 1
        return {"done": None, "on": "", "wrong": 5}.get(text, f"{self.turns} {self.problem['problem']} {self.problem['answer'][0]} {text}")
)");
  }
  EnvironmentRow row(std::vector<std::string> tools, const Tokenizer* tokenizer = nullptr) {
    config_ = {.tool_chars = 100, .tools = std::move(tools)};
    config_.tools.front() = str(file_, ":", config_.tools.front());
    return row_of_tools({config_, {}, tokenizer});
  }
  static std::string said_to(Environment& episode, const std::string& call) {
    const auto message = episode.step(str("So <tool_call>", call, "</tool_call>"));
    const std::string text = message ? message->text : "done", head = "\n<tool_response>\n",
                      tail = "\n</tool_response>\n";
    if (!text.starts_with(head) || !text.ends_with(tail)) return "no answer: " + text;
    return text.substr(head.size(), text.size() - head.size() - tail.size());
  }
  Template shown(const std::string& chat) {
    Template form;
    form.name = "own";
    form.text = chat;
    form.chat = true;
    show_tools(config_, form);
    return form;
  }
  std::string refusal(const std::function<void()>& work, int code) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), code);
      EXPECT_EQ(error.word(), "python");
      return error.what();
    }
    return "nothing";
  }

  const testing::TemporaryDirectory folder_;
  const std::string file_ = folder_.path() + "/own.py";
  EnvironmentConfig config_;
};

TEST_F(OwnTools, answer_calls_and_say_what_is_wrong_with_them) {
  const EnvironmentRow tools = row({"add", "fail", "odd"});
  EXPECT_EQ(tools.turn_ends, std::vector<std::string>{"</tool_call>"});
  const auto episode = tools.make();
  episode->reset({});
  for (const auto& [call, said] : std::vector<std::pair<std::string, std::string>>{
           {R"({"name": "add", "arguments": {"a": 2, "b": 3}})", "5"},
           {R"(no <tool_call> {"arguments": {"a": 2}, "name": "add"} )", "3"},
           {R"({"name": "odd", "arguments": {}})", "?<|im_end|>\xc3\xa9"},
           {R"({"name": "sub", "arguments": {}})", "error: no tool 'sub'; there are add, fail, odd"},
           {R"({"name": ["add"], "arguments": {}})", "error: TypeError: unhashable type: 'list'"},
           {R"({"name": "add", "arguments": {}})",
            "error: TypeError: add() missing 1 required positional argument: 'a'"},
           {R"({"name": "add", "arguments": {"a": "2"}})",
            R"(error: TypeError: can only concatenate str (not "int") to str)"},
           {R"({"name": "add"})", R"(error: expected {"name": "..", "arguments": {..}})"},
           {"[2]", R"(error: expected {"name": "..", "arguments": {..}})"},
           {"{", "error: JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"},
           {R"({"name": "fail", "arguments": {"text": "k"}})",
            str("error: KeyError: 'k\\n", std::string(29, 'x'), "\n[222 characters left out]\n", std::string(49, 'x'),
                "'")}}) {
    EXPECT_EQ(said_to(*episode, call), said) << call;
  }
  EXPECT_FALSE(episode->step("It is 5.")) << "a turn without a call is the last";
}

TEST_F(OwnTools, are_shown_to_a_chat_template_and_answer_by_it) {
  write_word_level_tokenizer(folder_.path(), std::vector<std::string>{"a"}, "<|im_end|>", "<pad>");
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  write_file(folder_.path() + "/chat_template.jinja",
             "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
  const EnvironmentRow tools = row({"add", "odd"}, &tokenizer);
  const auto episode = tools.make();
  episode->reset({});
  const auto message = episode->step("<tool_call>{\"name\": \"odd\", \"arguments\": {}}</tool_call>");
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text,
            "<|im_end|>\n<|im_start|>user\n<tool_response>\n?<|im_end|>\xc3\xa9\n</tool_response><|im_end|>\n");
  EXPECT_EQ(message->origin[message->text.find("?") + 1], MarkedText::kData);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(shown("{{ tools }}").set,
            std::vector<std::string>{
                R"(tools = [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": )"
                R"({"type": "object", "properties": {"a": {"type": "integer", "description": "a number, any"}, )"
                R"("b": {"type": "integer"}}, "required": ["a"]}, "return": {"type": "integer"}}}, )"
                R"({"type": "function", "function": {"name": "odd", "description": "Odd texts.", "parameters": )"
                R"({"type": "object", "properties": {}}}}])"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  shown("add(a, b)");
  const std::string warned = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(warned.find("the template own does not name odd"), std::string::npos) << warned;
  EXPECT_EQ(warned.find("name add"), std::string::npos) << warned;
}

TEST_F(OwnTools, may_be_a_class_that_answers_turns) {
  const EnvironmentRow game = row({"Game"});
  EXPECT_EQ(game.turn_ends, std::vector<std::string>{"</move>"});
  const auto one = game.make(), other = game.make();
  one->reset({.text = "up?", .gold = {"5"}});
  other->reset({.text = "down?", .gold = {"6"}});
  EXPECT_EQ(one->step("a")->text, "1 up? 5 a");
  EXPECT_EQ(other->step("b")->text, "1 down? 6 b");
  EXPECT_EQ(one->step("on")->text, "") << "the turn goes on";
  EXPECT_EQ(one->step("c")->text, "3 up? 5 c");
  EXPECT_FALSE(one->step("done"));
  one->reset({.text = "up?", .gold = {"5"}});
  EXPECT_EQ(one->step("a")->text, "1 up? 5 a");
  EXPECT_NE(refusal([&] { one->step("wrong"); }, kIoFailure).find("ended with exit code 1 after 0 of 1 replies"),
            std::string::npos);
}

TEST_F(OwnTools, that_cannot_be_loaded_or_end_are_refused) {
  EXPECT_NE(refusal([&] { row({"bare"}); }, kBadInput).find("bare: expected a docstring and a type hint"),
            std::string::npos);
  EXPECT_NE(refusal([&] { row({"add", "none"}); }, kBadInput).find("has no function none; it has add, fail"),
            std::string::npos);
  const EnvironmentRow tools = row({"end"});
  const auto episode = tools.make();
  episode->reset({});
  EXPECT_NE(refusal([&] { said_to(*episode, R"({"name": "end", "arguments": {}})"); }, kIoFailure)
                .find(":end: ended with exit code 3 after 0 of 1 replies; the episode is not answered"),
            std::string::npos);
}

}  // namespace
}  // namespace ucas
