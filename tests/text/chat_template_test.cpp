#include "core/text/chat_template.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"

namespace headscope::chat_template_test {

namespace {

std::string rendered(const std::string& source, std::vector<ChatMessage> messages = {{"user", "Hi"}}) {
  return ChatTemplate(source, "t.jinja", {{"bos_token", "<s>"}}).render(messages, {.answer_follows = true, .now = 0});
}

std::string refused(const std::string& source) {
  try {
    return "made " + rendered(source);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("chat templates and their expressions print what Jinja 2 prints, and are refused where it refuses") {
  ::setenv("TZ", "UTC", 1);
  const auto all = nlohmann::json::parse(read_file(testing::reference("chat-templates/cases.json")));
  int texts = 0, errors = 0;
  for (const auto& each : all["cases"]) {
    CAPTURE(each["name"].get<std::string>());
    CAPTURE(each["template"].get<std::string>());
    ChatTemplate::Specials specials;
    for (const auto& [name, token] : each["specials"].items()) specials.emplace_back(name, token.get<std::string>());
    std::vector<ChatMessage> messages;
    for (const auto& message : each["messages"]) messages.push_back({message["role"], message["content"]});
    const ChatTemplate::Options options{each["generation"].get<bool>(), all["now"].get<std::time_t>()};
    const auto make = [&] {
      return ChatTemplate(each["template"].get<std::string>(), "t.jinja", specials).render(messages, options);
    };
    if (each.contains("text")) {
      ++texts;
      CHECK(make() == each["text"].get<std::string>());
    } else {
      ++errors;
      CHECK_THROWS_AS(make(), Error);
    }
  }
  CHECK(texts > 80);
  CHECK(errors > 20);
}

TEST_CASE("a template's error names its file and line, and says the template's own words") {
  CHECK(refused("{{ bos_token }}\n{% if true %}\n{{ 1 + 'a' }}{% endif %}") ==
        "t.jinja, line 3: expected values that + can join, found the number 1 and a string");
  CHECK(refused("{% for m in messages %}\n{{ raise_exception('only users') }}{% endfor %}") ==
        "t.jinja, line 2: expected a conversation that the template takes, found only users");
  CHECK(refused("\n\n{{ messages[0].content.shout() }}") ==
        "t.jinja, line 3: expected a function, found the undefined name 'shout'");
  CHECK(refused("{{ 'a' | from_json }}") == "t.jinja, line 1: expected a filter that is known, found 'from_json'");
  CHECK(rendered("{{ 'a' | from_json if false else 'unasked' }}") == "unasked");
}

TEST_CASE("templates that go on without end, or grow without bound, end with an error") {
  for (const char* source :
       {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "{{ 'a' * 999999999999 }}",
        "{% set ns = namespace(t='ab') %}{% for i in range(60) %}{% set ns.t = ns.t + ns.t %}{% endfor %}",
        "{% set ns = namespace(t=[]) %}{% for i in range(9999) %}{% set ns.t = [ns.t] %}{% endfor %}{{ ns.t }}",
        "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ range(999999999) | length }}", "{{ ('a' * 99999).replace('a', 'b' * 99999) | length }}",
        "{{ 2 ** 999999 }}", "{{ 9223372036854775807 + 1 }}", "{{ (['a' * 99999] * 2) | length }}",
        "{% set ns = namespace(f='x') %}{% for i in range(9999) %}{% set ns.f = [ns.f].count %}{% endfor %}"}) {
    CAPTURE(source);
    CHECK(refused(source).starts_with("t.jinja"));
  }
  CHECK(refused("{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}")
            .find("expressions in one another") != std::string::npos);
  std::string blocks;
  for (int i = 0; i < 10000; ++i) blocks += "{% if true %}";
  CHECK(refused(blocks).find("blocks in one another") != std::string::npos);
  std::string chain = "{{ 1";
  for (int i = 0; i < 20000; ++i) chain += " + 1";
  CHECK(refused(chain + " }}").find("at work inside one another") != std::string::npos);
  CHECK(refused("{{ '\xff' }}").find("UTF-8") != std::string::npos);
}

TEST_CASE("a model's template is found in its folder: the file of its own before tokenizer_config.json") {
  const auto folder = testing::scratch_dir("chat-template");
  const auto make = [&](const char* name, const std::string& text) { write_file_atomically(folder / name, text); };
  CHECK_FALSE(load_chat_template(folder));
  make("config.json", R"({"model_type": "llama"})");
  make("tokenizer_config.json", R"({"bos_token": {"content": "<b>"}, "eos_token": "<e>", "chat_template":
       [{"name": "tools", "template": "no"}, {"name": "default", "template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"}]})");
  const std::vector<ChatMessage> hello{{"user", "Hello"}};
  REQUIRE(load_chat_template(folder));
  CHECK(load_chat_template(folder)->render(hello) == "<b>Hello<e>");
  make("chat_template.jinja", "{{ eos_token }}{{ messages[0].role }}");
  CHECK(load_chat_template(folder)->render(hello) == "<e>user");
  CHECK(load_chat_template(folder)->where() == (folder / "chat_template.jinja").string());
  std::filesystem::remove(folder / "chat_template.jinja");
  make("tokenizer_config.json", R"({"chat_template": [{"name": "tools", "template": "no"}]})");
  CHECK_THROWS_WITH_AS(load_chat_template(folder),
                       doctest::Contains("expected a template called \"default\", found 1 of other names"), Error);
}

}  // namespace headscope::chat_template_test
