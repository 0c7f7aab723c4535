// A conversation as the prompt: from the template beside a model to the tokens of a pass, in the window's document and
// on the command line.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/state/document_editor.h"
#include "app/state/session.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/run/run_request.h"
#include "core/text/chat_template.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::chat_prompt_test {

namespace fs = std::filesystem;

namespace {

/// The bundled tiny-llama as if it had learnt to answer: its first token, then what is said, each turn in a line.
fs::path model_that_chats(const std::string& source) {
  const fs::path folder = testing::scratch_dir("chat-model");
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(testing::source_dir() / "models/tiny-llama" / name, folder / name,
                  fs::copy_options::overwrite_existing);
  write_file_atomically(folder / "chat_template.jinja", source);
  return folder;
}

constexpr const char* two_turns =
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

}  // namespace

TEST_CASE("a chat's text is read with its special tokens, and begins with one first token, not two") {
  Backend backend(1);
  const LoadedModel loaded = load_model(model_that_chats(two_turns), backend);
  REQUIRE(loaded.chat);
  CHECK(loaded.chat_trouble.empty());
  const std::array messages{ChatMessage{"user", "Anna sold pies."}};
  RunRequest request;
  request.text = loaded.chat->render(messages);
  CHECK(request.text == "<|endoftext|>user: Anna sold pies.\nassistant:");
  request.parse_special = true;
  request.add_bos = false;
  const auto trace = run(loaded, request, Ctx{backend});
  const std::int32_t bos = *loaded.tokenizer->bos();
  CHECK(trace->tokens[0].id == bos);
  CHECK(std::ranges::count(trace->ids(), bos) == 1);
  // The text says so itself: every other token is one of its stretches.
  CHECK(static_cast<std::size_t>(trace->tokens.back().end) == request.text.size());
  // As plain text the mark is read letter by letter, behind the token that the tokenizer puts there.
  request.parse_special = false;
  request.add_bos.reset();
  const auto plain = run(loaded, request, Ctx{backend});
  CHECK(plain->tokens.size() > trace->tokens.size());
}

TEST_CASE("a broken template does not keep its model from opening, and says where it is broken") {
  Backend backend(1);
  const LoadedModel loaded = load_model(model_that_chats("fine\n{% if %}"), backend);
  CHECK_FALSE(loaded.chat);
  CHECK(loaded.chat_trouble.find("chat_template.jinja, line 2: expected an expression, found %}") != std::string::npos);
  REQUIRE(loaded.model);
}

TEST_CASE("a chat put into the prompt is one step, survives a session, and is read as plain text again by another") {
  DocumentEditor editor;
  editor.set_text("before");
  editor.history().close_step();
  editor.set_chat("<s>user: Hi");
  CHECK(editor.document().text == "<s>user: Hi");
  CHECK(editor.document().parse_special);
  CHECK(editor.document().add_bos == false);
  Session session;
  session.document = editor.document();
  const Session again = session_from_json(to_json(session), "s.json");
  CHECK(again.document.parse_special);
  CHECK(again.document.add_bos == false);
  editor.set_parse_special(false);
  CHECK_FALSE(editor.document().parse_special);
  CHECK_FALSE(editor.document().add_bos.has_value());
  editor.undo();
  CHECK(editor.document().parse_special);
  editor.undo();
  CHECK(editor.document().text == "before");
  CHECK_FALSE(editor.document().parse_special);
}

TEST_CASE("--chat puts the template's marks around a text, for any command that reads one") {
  const std::string folder = model_that_chats(two_turns).string();
  const auto tokens = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "-m", folder, "--json"});
    const testing::Finished found = testing::run_cli(arguments);
    REQUIRE(found.code == 0);
    return nlohmann::json::parse(found.out).at("tokens");
  };
  CHECK(tokens({"-t", "Anna sold pies.", "--chat"}) ==
        tokens({"-t", "<|endoftext|>user: Anna sold pies.\nassistant:", "--special", "--no-bos"}));
  CHECK(tokens({"-t", "Hi", "--chat", "--system", "Be kind."}) ==
        tokens({"-t", "<|endoftext|>system: Be kind.\nuser: Hi\nassistant:", "--special", "--no-bos"}));
  const auto none = testing::run_cli({"run", "-m", "tiny-gpt2", "-t", "Hi", "--chat"});
  CHECK(none.code == 1);
  CHECK(none.first_error().find("expected a chat template") != std::string::npos);
  CHECK(testing::run_cli({"run", "-m", folder, "-t", "Hi", "--system", "x"}).code == 2);
  CHECK(testing::run_cli({"run", "-m", folder, "--ids", "1,2", "--chat"}).code == 2);
}

}  // namespace headscope::chat_prompt_test
