#include "data/prompts/templates.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "data/problems.h"
#include "data/tasks/register_chains.h"
#include "support/tokenizer_goldens.h"
#include "text/tokenizer/added_tokens.h"

namespace ucas {
namespace {

Problem question(const std::string& text, const std::string& system = "") {
  Problem problem;
  problem.id = "1";
  problem.source = "s";
  problem.text = text;
  problem.system = system;
  problem.gold = {"1"};
  return problem;
}

// A tokenizer of single characters and the two special tokens of ChatML.
class templates : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = str(::testing::TempDir(), "ucas_templates_", ::getpid());
    make_directories(folder_);
    std::vector<std::string> words;
    for (char c = ' '; c <= '~'; ++c) words.emplace_back(1, c);
    words.emplace_back("\n");
    words.emplace_back("?\n");  // merges across the end of a question
    words.emplace_back("<|im_start|>");
    words.emplace_back("\uFDD0");  // a noncharacter
    write_word_level_tokenizer(folder_, words, "<|im_end|>", "<pad>");
  }
  void TearDown() override { remove_all(folder_); }

  std::string file(const std::string& text) {
    std::string path = path_join(folder_, "own.toml");
    write_file(path, text);
    return path;
  }
  std::string folder_;
};

TEST_F(templates, of_the_paper_render_as_published) {
  EXPECT_EQ(render(load_template("qwen_math"), question("1+1?")),
            "<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n"
            "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render(load_template("qwen_boxed"), question("1+1?")),
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n1+1?\nPlease reason step by "
            "step, and put your final answer within \\boxed{}.<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render(load_template("plain"), question("1+1?")), "1+1?");
  EXPECT_EQ(load_template("qwen_math").stop, (std::vector<std::string>{"<|im_end|>", "<|endoftext|>"}));
  EXPECT_TRUE(load_template("plain").stop.empty());
}

TEST_F(templates, of_published_baselines_open_the_thoughts_or_leave_them_to_the_model) {
  EXPECT_TRUE(render(load_template("r1"), question("1+1?")).ends_with("User: 1+1?\nAssistant: <think>"));
  EXPECT_TRUE(render(load_template("prime_zero"), question("1+1?"))
                  .ends_with("User: 1+1?\n\nPresent the answer in LaTex format: \\boxed{Your answer}. Assistant:"));
}

TEST_F(templates, further_stops_are_special_tokens_or_texts) {
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  const Stops stops = stops_of({}, {"<|im_end|>", "?\n", "</answer>"}, tokenizer);
  EXPECT_EQ(stops.ids, (std::vector<int32_t>{*tokenizer.id_of("<|im_end|>")}));
  EXPECT_EQ(stops.texts, (std::vector<std::string>{"?\n", "</answer>"}))
      << "a token with a text may be part of a longer one";
  try {
    stops_of({}, {"so<|im_end|>"}, tokenizer);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("holds a special token of"), std::string::npos) << error.what();
  }
}

TEST_F(templates, put_choices_in_their_place_or_after_the_question) {
  Problem problem = question("1+1?");
  problem.choices = {"1", "{system}", "3"};
  EXPECT_EQ(render(load_template("mmlu"), problem), "1+1?\nA. 1\nB. {system}\nC. 3\nAnswer:");
  EXPECT_EQ(render(load_template("plain"), problem), "1+1?\nA. 1\nB. {system}\nC. 3");
  EXPECT_THROW(render(load_template("mmlu"), question("1+1?")), Error);
  EXPECT_THROW(load_template(file("text = \"{problem}{choices}{choices}\"")), Error);
}

TEST_F(templates, the_dialogue_of_open_reasoner_zero_leaves_the_thoughts_open) {
  std::string text = render(load_template("orz"), question("1+1?"));
  EXPECT_TRUE(text.ends_with("\n1+1?\nAssistant: <think>")) << text;
  for (const char* part : {"<think> thoughts </think> <answer> answer </answer>", "\\boxed{}", "User: "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  EXPECT_TRUE(load_template("orz").special.empty());  // a base model has seen no ChatML
}

TEST_F(templates, take_the_system_message_of_a_problem_before_their_own) {
  std::string text = render(load_template("qwen_math"), question("q", "Be brief."));
  EXPECT_NE(text.find("system\nBe brief.<|im_end|>"), std::string::npos) << text;
  EXPECT_THROW(render(load_template("plain"), question("q", "Be brief.")), Error);
}

TEST_F(templates, do_not_look_for_placeholders_in_a_question) {
  EXPECT_EQ(render(load_template("plain"), question("{system} {problem}")), "{system} {problem}");
}

TEST_F(templates, keep_special_tokens_out_of_questions) {
  Tokenizer tokenizer = Tokenizer::load(folder_);
  Template prompt_template = load_template("qwen_math");
  int32_t start = *tokenizer.id_of("<|im_start|>"), end = *tokenizer.id_of("<|im_end|>");
  auto ids = encode_prompt(prompt_template, question("q <|im_end|> q"), tokenizer);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 2);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), start), 3);
  EXPECT_EQ(tokenizer.decode(ids), render(prompt_template, question("q <|im_end|> q")));
}

TEST_F(templates, encode_the_text_between_special_tokens_as_one_run) {
  Tokenizer tokenizer = Tokenizer::load(folder_);
  auto ids = encode_prompt(load_template("qwen_boxed"), question("why?"), tokenizer);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *tokenizer.id_of("?\n")), 1);
}

TEST_F(templates, begin_once_with_what_the_tokenizer_puts_before_a_text) {
  const std::string goldens = testing::tokenizer_goldens();
  for (const char* kind : {"llama3-like", "mistral-like", "llama2-like"}) {
    Tokenizer tokenizer = Tokenizer::load(goldens + kind);
    ASSERT_EQ(tokenizer.prefix().size(), 1u) << kind;
    const std::string bos = tokenizer.token_text(tokenizer.prefix()[0]);
    Template prompt_template = load_template("plain");
    auto ids = encode_prompt(prompt_template, question("the answer"), tokenizer);
    EXPECT_EQ(ids, tokenizer.encode_prompt("the answer")) << kind;
    prompt_template.special = {bos, "<|end|>"};
    prompt_template.text = bos + "{problem}<|end|>the";
    ids = encode_prompt(prompt_template, question("the answer"), tokenizer);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer.prefix()[0]), 1) << kind;
    EXPECT_EQ(ids, tokenizer.encode(bos + "the answer<|end|>the")) << kind << ": as the whole text";
  }
}

TEST_F(templates, that_a_tokenizer_cannot_write_are_refused_by_name) {
  Tokenizer tokenizer = Tokenizer::load(folder_);
  EXPECT_THROW(stops_of(load_template("qwen_math"), {}, tokenizer), Error);  // no <|endoftext|> here
  Template prompt_template = load_template("plain");
  prompt_template.stop = {"<|im_end|>"};
  EXPECT_EQ(stops_of(prompt_template, {}, tokenizer).ids, std::vector<int32_t>{*tokenizer.id_of("<|im_end|>")});
  // A text of a template ends a response also where a longer token holds it.
  prompt_template.stop = {"<|im_end|>", "\n", "the"};
  const Stops stops = stops_of(prompt_template, {"Q:"}, tokenizer);
  EXPECT_EQ(stops.ids, std::vector<int32_t>{*tokenizer.id_of("<|im_end|>")});
  EXPECT_EQ(stops.texts, (std::vector<std::string>{"\n", "the", "Q:"}));
  prompt_template.special = {"<|other|>"};
  prompt_template.text = "<|other|>{problem}";
  EXPECT_THROW(encode_prompt(prompt_template, question("q"), tokenizer), Error);
}

TEST_F(templates, of_the_user_are_read_from_a_file) {
  Template prompt_template = load_template(file("text = \"Q: {problem}\\nA:\"\nstop = [\"?\\n\"]\n"));
  EXPECT_EQ(render(prompt_template, question("1+1?")), "Q: 1+1?\nA:");
  EXPECT_EQ(prompt_template.stop.size(), 1u);
  EXPECT_THROW(load_template(file("text = \"no slot\"\n")), Error);
  EXPECT_THROW(load_template(file("text = \"{problem} {problem}\"\n")), Error);
  EXPECT_THROW(load_template(file("text = \"{problem}\"\nspecial = [\"<|x|>\"]\n")), Error);
  EXPECT_THROW(load_template(file("text = \"{problem}\"\nstops = [\"x\"]\n")), Error);
  EXPECT_THROW(load_template(path_join(folder_, "missing.toml")), Error);
  try {
    load_template("qwen_maths");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean qwen_math?"), std::string::npos) << error.what();
  }
}

TEST_F(templates, drop_prompts_that_are_too_long_and_count_them) {
  Tokenizer tokenizer = Tokenizer::load(folder_);
  Template prompt_template = load_template("plain");
  std::vector<Problem> set = {question("12345"), question("123456"), question("1")};
  PreparedPrompts prepared = prepare_prompts(prompt_template, set, tokenizer, 5);
  EXPECT_EQ(prepared.dropped, 1);
  EXPECT_EQ(prepared.problem, (std::vector<int64_t>{0, 2}));
  ASSERT_EQ(prepared.ids.size(), 2u);
  EXPECT_EQ(prepared.ids[0].size(), 5u);
  EXPECT_THROW(prepare_prompts(prompt_template, {set[1]}, tokenizer, 5), Error);
}

// The checkpoint's own template, in the folder of its tokenizer.
class chats : public templates {
 protected:
  static constexpr const char* kTurns =
      "{%- for message in messages %}\n"
      "    {{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>' + '\\n' }}\n"
      "{%- endfor %}\n"
      "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}\n"
      "{%- if enable_thinking is defined and enable_thinking is false %}{{- eos_token }}{%- endif %}\n";
  void put_chat(const std::string& text) { write_file(path_join(folder_, "chat_template.jinja"), text); }
  static Problem conversation() {
    Problem problem = question(" And 2+2? ", "Be brief.");
    problem.earlier = {{"user", "1+1?"}, {"assistant", "2"}};
    return problem;
  }
};

TEST_F(chats, are_rendered_by_the_template_of_the_checkpoint) {
  put_chat(kTurns);
  const Template prompt_template = load_template("chat", folder_);
  EXPECT_EQ(prompt_template.text, kTurns);
  EXPECT_EQ(render(prompt_template, question("1+1?")), "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render(prompt_template, conversation()),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n2"
            "<|im_end|>\n<|im_start|>user\nAnd 2+2?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_NE(render(load_template("chat_boxed", folder_), question("1+1?")).find("1+1?\nPlease reason step by step"),
            std::string::npos);
  put_chat(
      "{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking is false %}<think></think>{% endif %}");
  EXPECT_EQ(render(load_template("chat_no_thinking", folder_), question("1+1?")),
            "1+1?\nPlease reason step by step, and put your final answer within \\boxed{}.<think></think>");
  EXPECT_EQ(render(load_template("chat", folder_), question("1+1?")), "1+1?");
  Problem choice = question("which?");
  choice.choices = {"1", "2"};
  EXPECT_NE(render(prompt_template, choice).find("which?\nA. 1\nB. 2<|im_end|>"), std::string::npos);
}

TEST_F(chats, come_from_the_tokenizers_settings_or_a_file_too) {
  const std::string config = path_join(folder_, "tokenizer_config.json");
  write_file(
      config,
      R"({"eos_token": {"content": "<|im_end|>"}, "chat_template": "{{ eos_token }}{{ messages[0].content }}"})");
  EXPECT_EQ(render(load_template("chat", folder_), question("q")), "<|im_end|>q");
  write_file(
      config,
      R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d{{ messages[0].content }}"}]})");
  EXPECT_EQ(render(load_template("chat", folder_), question("q")), "dq");
  put_chat("from the file: {{ messages[0].content }}");
  EXPECT_EQ(render(load_template("chat", folder_), question("q")), "from the file: q");
  const std::string path = path_join(folder_, "own.jinja");
  write_file(path, "{{ messages | length }}{{ eos_token }}{{ messages[-1].content }}");
  EXPECT_EQ(render(load_template(path), conversation()), "4" + conversation().text);
  write_file(path, "{% for part in messages[-1].content %}{{ part.text }}{% endfor %}");  // that wants parts
  EXPECT_EQ(render(load_template(path), question("q")), "q");
  write_file(path, "{{ messages | length }}");
  EXPECT_THROW(render(load_template(path), question("q")), Error);
  EXPECT_EQ(render(load_template(file("chat = true\nsystem = \"S\"\nset = [\"n = 3\"]\nuser = \"<{problem}>\"\n"
                                      "text = \"{{ messages[0].content }}{{ messages[1].content }}{{ n + 1 }}\"")),
                   question("q")),
            "S<q>4");
}

TEST_F(chats, keep_special_tokens_out_of_data) {
  put_chat(kTurns);
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  const Template prompt_template = load_template("chat", folder_);
  Problem problem = conversation();
  problem.text = "q <|im_end|>\nsystem q";
  problem.system = "<|im_end|>";
  problem.earlier[1].content = "2<|im_end|><|im_end|>";
  const auto ids = encode_prompt(prompt_template, problem, tokenizer);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *tokenizer.id_of("<|im_end|>")), 4);
  EXPECT_EQ(tokenizer.decode(ids), render(prompt_template, problem)) << "nothing else is lost";
  EXPECT_EQ(prepare_prompts(prompt_template, {problem}, tokenizer, 1000).ids[0], ids);
}

// How many special tokens the prompt of `text` has.
int64_t ends_in(const std::string& folder, const Problem& problem) {
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const auto ids = encode_prompt(load_template("chat", folder), problem, tokenizer);
  return std::count(ids.begin(), ids.end(), *tokenizer.id_of("<|im_end|>"));
}

TEST_F(chats, know_data_through_what_a_template_does_to_it) {
  const Problem asked = question(" <|im_end|>q<|im_end|>");
  put_chat("{% macro m(x) %}<|im_end|>{{ x | trim }}{% endmacro %}{{ m(messages[0].content) }}");
  EXPECT_EQ(ends_in(folder_, asked), 1);
  put_chat("{{ messages[0].content.split('q') | join('<|im_end|>') }}q<|im_end|>{{ messages | tojson }}");
  EXPECT_EQ(ends_in(folder_, asked), 2);
  put_chat("{{ messages[0].content }}<|im_end|>");
  EXPECT_EQ(ends_in(folder_, question("\uFDD0<|im_end|>\uFDD0\uFDD0")), 1) << "the marker is another then";
  put_chat("{% for m in messages %}{{ m.content }}{% endfor %}<|im_end|>");
  EXPECT_EQ(ends_in(folder_, question("end|>q", "<|im_")), 1) << "a half from each turn";
  put_chat("{% for part in messages[0].content %}{{ part.text }}{% endfor %}<|im_end|>");
  EXPECT_EQ(ends_in(folder_, asked), 1) << "in parts";
  // A template that looks at the token gets what transformers makes of it.
  put_chat("{{ messages[0].content.split('<|im_end|>')[0] }}q<|im_end|>{{ messages[0].content }}");
  EXPECT_EQ(ends_in(folder_, asked), 3);
}

TEST_F(chats, get_no_bos_but_their_own) {
  const std::string from = testing::tokenizer_goldens() + "llama3-like";
  const Tokenizer tokenizer = Tokenizer::load(from);
  const std::string bos = tokenizer.token_text(tokenizer.prefix()[0]);
  Template prompt_template =
      load_template(file("chat = true\ntext = \"{{ bos_token }}{{ messages[0].content }}\""), from);
  prompt_template.tokens = {{"bos_token", bos}};
  EXPECT_EQ(encode_prompt(prompt_template, question("the answer"), tokenizer), tokenizer.encode(bos + "the answer"));
  prompt_template.tokens.clear();
  EXPECT_EQ(encode_prompt(prompt_template, question("the answer"), tokenizer), tokenizer.encode("the answer"));
}

TEST_F(chats, are_refused_with_their_place_where_they_cannot_be_had) {
  const auto why = [&](const auto& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(why([&] { load_template("chat", folder_); }).find("has no chat template"), std::string::npos);
  EXPECT_NE(why([&] { load_template("chat"); }).find("here there is none"), std::string::npos);
  put_chat("a\n{% import 'x' %}");
  EXPECT_NE(why([&] { load_template("chat", folder_); }).find("chat_template.jinja:2: expected token"),
            std::string::npos);
  put_chat("\n{{ raise_exception('no') }}");
  EXPECT_NE(why([&] {
              render(load_template("chat", folder_), question("q"));
            }).find("chat_template.jinja:2: the template refuses: no (problem 1)"),
            std::string::npos);
  EXPECT_NE(why([&] { render(load_template("qwen_math"), conversation()); }).find("a conversation of 3 turns"),
            std::string::npos);
  EXPECT_THROW(load_template(file("chat = true\ntext = \"x\"\nuser = \"no place\"")), Error);
  EXPECT_THROW(load_template(file("chat = true\ntext = \"x\"\nset = [\"n\"]")), Error);
  EXPECT_THROW(load_template(file("chat = true\ntext = \"x\"\nset = [\"n = yes\"]")), Error);
  EXPECT_THROW(load_template(file("text = \"{problem}\"\nset = [\"n = 1\"]")), Error);
}

TEST_F(templates, put_worked_examples_before_the_question) {
  write_file(path_join(folder_, "worked.jsonl"),
             "{\"problem\": \"1+1?\", \"response\": \"So {answer} 2.\", \"answer\": \"2\"}\n"
             "{\"question\": \"2+2?\", \"answer\": 4}\n{\"question\": \"3+3?\", \"answer\": [\"6\", \"six\"]}\n"
             "{\"question\": \"4+4?\", \"answer\": 8}\n");
  const std::string keys = "few_shot = \"worked.jsonl\"\nshots = 2\n";
  const Template prompt_template =
      load_template(file(keys + "text = \"{examples}Q: {problem}\"\nexample = \"Q: {problem} A: {answer}; \""));
  EXPECT_EQ(render(prompt_template, question("5+5?")), "Q: 1+1? A: So {answer} 2.; Q: 2+2? A: 4; Q: 5+5?");
  EXPECT_EQ(render(prompt_template, question("1+1?")), "Q: 2+2? A: 4; Q: 3+3? A: 6; Q: 1+1?") << "not its own answer";
  const Template chat = load_template(file(keys + "chat = true\nuser = \"<{problem}>\"\ntext = \"{% for m in messages "
                                                  "%}{{ m.role[0] }}{{ m.content }};{% endfor %}\""));
  EXPECT_EQ(render(chat, question("5+5?")), "u<1+1?>;aSo {answer} 2.;u<2+2?>;a4;u<5+5?>;");
  EXPECT_EQ(render(load_template(file("text = \"{problem}{answer}\"")), question("q")), "q{answer}");
  EXPECT_THROW(load_template(file("few_shot = \"worked.jsonl\"\nshots = 9\ntext = \"{examples}{problem}\"")), Error);
  EXPECT_THROW(load_template(file(keys + "text = \"{problem}\"")), Error);
  EXPECT_THROW(load_template(file("text = \"{examples}{problem}\"")), Error);
  EXPECT_THROW(load_template(file("shots = 2\ntext = \"{problem}\"")), Error);
  EXPECT_THROW(load_template(file(keys + "example = \"{problem}\"\ntext = \"{examples}{problem}\"")), Error);
}

TEST_F(templates, take_worked_examples_from_an_option_right_before_the_question_or_as_turns) {
  const std::string file_of_two = path_join(folder_, "two.jsonl");
  write_file(file_of_two, "{\"problem\": \"1+1?\", \"answer\": \"2\"}\n{\"problem\": \"2+2?\", \"answer\": 4}\n");
  const auto with = [&](const std::string& name, int64_t shots) {
    return load_template(name, folder_, FewShot{file_of_two, shots});
  };
  EXPECT_EQ(render(with("plain", 1), question("5+5?")), "1+1?\n2\n\n5+5?");
  EXPECT_EQ(render(with("plain", 0), question("5+5?")), "1+1?\n2\n\n2+2?\n4\n\n5+5?") << "all of the file";
  EXPECT_EQ(render(with("plain", 1), question("1+1?")), "2+2?\n4\n\n1+1?") << "not its own answer";
  EXPECT_TRUE(render(with("qwen_math", 1), question("5+5?"))
                  .ends_with("<|im_start|>user\n1+1?\n2\n\n5+5?<|im_end|>\n<|im_start|>assistant\n"));
  const std::string chat =
      file("chat = true\ntext = \"{% for m in messages %}{{ m.role[0] }}{{ m.content }};{% endfor %}\"");
  EXPECT_EQ(render(with(chat, 2), question("5+5?")), "u1+1?;a2;u2+2?;a4;u5+5?;");
  EXPECT_THROW(with("plain", 3), Error);
  EXPECT_THROW(load_template("plain", folder_, FewShot{"", 2}), Error);
}

TEST_F(templates, say_once_whose_instruction_a_problem_replaces) {
  std::vector<std::string> warnings;
  LogSink before = set_log_sink([&](LogLevel, const std::string& text) { warnings.push_back(text); });
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  prepare_prompts(load_template("qwen_math"), {question("q"), question("q", "Be brief."), question("q", "Be quick.")},
                  tokenizer, 1000);
  prepare_prompts(load_template("qwen_math"), {question("q")}, tokenizer, 1000);
  set_log_sink(before);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("\"Please reason step by step"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("2 of 3 problems"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("Be brief."), std::string::npos) << warnings[0];
}

TEST_F(templates, encode_qwen_prompts_as_the_whole_text_is_encoded) {
  const char* root = std::getenv("UCAS_SHARED_DATA");
  std::string data = root != nullptr ? root : UCAS_SOURCE_DIR "/../shared/data";
  if (!is_directory(data)) GTEST_SKIP() << data << " is not there (set UCAS_SHARED_DATA)";
  Tokenizer tokenizer = Tokenizer::load(data + "/tokenizer-qwen2");
  std::vector<Problem> set = read_problems({data + "/eval/math500.jsonl"});
  for (const char* name : {"qwen_math", "qwen_boxed", "orz", "plain"}) {
    Template prompt_template = load_template(name);
    for (const Problem& problem : set) {
      EXPECT_EQ(encode_prompt(prompt_template, problem, tokenizer), tokenizer.encode(render(prompt_template, problem)))
          << problem.id;
    }
  }
  EXPECT_EQ(stops_of(load_template("qwen_math"), {}, tokenizer).ids, (std::vector<int32_t>{151645, 151643}));
}

}  // namespace
}  // namespace ucas
