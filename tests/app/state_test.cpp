#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "app/assets.h"
#include "app/state/app_state.h"
#include "app/state/history.h"
#include "app/state/session.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/mask_edit.h"
#include "core/edits/temperature_edit.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "core/run/run_request.h"
#include "core/text/tokenizer.h"
#include "tests/support/paths.h"

namespace headscope::state_test {

namespace {
Document with_text(const char* text) {
  Document document;
  document.text = text;
  return document;
}

std::string refusal(const std::string& json) {
  try {
    session_from_json(json, "s.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string session_with(const std::string& part) {
  return R"({"type": "headscope session", "version": 1, )" + part + "}";
}
}  // namespace

TEST_CASE("undo and redo walk through documents; a new change forgets what could be redone") {
  History history;
  Document now = with_text("a");
  CHECK_FALSE(history.undo(now));
  history.record(with_text(""), "", 0);
  history.record(now, "", 1);
  now = with_text("b");
  CHECK(history.undo(now));
  CHECK(now.text == "a");
  CHECK(history.undo(now));
  CHECK(now.text == "");
  CHECK_FALSE(history.undo(now));
  CHECK(history.redo(now));
  CHECK(now.text == "a");
  history.record(now, "", 2);
  now = with_text("c");
  CHECK_FALSE(history.can_redo());
  CHECK(history.undo(now));
  CHECK(now.text == "a");
}

TEST_CASE("what a held mouse button does is one step, however slowly") {
  History history;
  history.record(with_text("a"), "", 0);
  history.hold(true);
  for (int i = 0; i < 5; ++i) history.record(with_text("b"), "temperature", 10.0 * i);
  history.hold(false);
  history.close_step();
  history.record(with_text("c"), "temperature", 50.1);
  Document now;
  int steps = 0;
  while (history.undo(now)) ++steps;
  CHECK(steps == 3);  // what came first, the drag, what came next
}

TEST_CASE("typing within a second is one step, until another kind of change, a pause, or the step is closed") {
  History history;
  const auto steps = [&] {
    Document now;
    int count = 0;
    while (history.undo(now)) ++count;
    history.clear();
    return count;
  };
  for (int i = 0; i < 10; ++i) history.record(with_text("x"), "text", 0.9 * i);
  CHECK(steps() == 1);
  for (const double now : {0.0, 0.5, 1.6}) history.record(with_text("x"), "text", now);
  CHECK(steps() == 2);
  history.record(with_text("x"), "text", 0);
  history.record(with_text("x"), "temperature", 0.1);
  history.record(with_text("x"), "text", 0.2);
  CHECK(steps() == 3);
  history.record(with_text("x"), "text", 0);
  history.close_step();
  history.record(with_text("x"), "text", 0.1);
  CHECK(steps() == 2);
  history.record(with_text("x"), "", 0);
  history.record(with_text("x"), "", 0.1);
  CHECK(steps() == 2);
}

TEST_CASE("the history keeps the newest steps") {
  History history(3);
  for (int i = 0; i < 10; ++i) history.record(with_text(std::to_string(i).c_str()), "", i);
  Document now;
  CHECK(history.undo(now));
  CHECK(now.text == "9");
  CHECK(history.undo(now));
  CHECK(history.undo(now));
  CHECK(now.text == "7");
  CHECK_FALSE(history.undo(now));
}

TEST_CASE("a slider sets the temperature of a head, a layer or all, and the last word counts") {
  std::vector<Intervention> edits;
  set_temperature(edits, {1, 0}, 0.5);
  CHECK(temperature_of(edits, {1, 0}) == 0.5);
  CHECK(temperature_of(edits, {1, 1}) == 1);
  set_temperature(edits, {1, 0}, 0.25);
  CHECK(edits.size() == 1);
  set_temperature(edits, {1, std::nullopt}, 2);  // covers the head
  CHECK(edits.size() == 1);
  CHECK(temperature_of(edits, {1, 0}) == 2);
  set_temperature(edits, {1, 0}, 1);  // overrules the layer
  CHECK(edits.size() == 2);
  CHECK(temperature_of(edits, {1, 0}) == 1);
  CHECK(temperature_of(edits, {1, 3}) == 2);
  set_temperature(edits, {}, 1);
  CHECK(edits.empty());
  set_temperature(edits, {0, 0}, 1);
  CHECK(edits.empty());
  set_temperature(edits, {}, 1e99);
  CHECK(temperature_of(edits, {5, 5}) == SetTemperature::highest);
}

TEST_CASE("masks are set beside temperatures, and what is switched off stays") {
  std::vector<Intervention> edits;
  set_temperature(edits, {}, 2);
  set_mask(edits, {1, 0}, "window  3");
  CHECK(mask_of(edits, {1, 0}) == "window 3");
  CHECK(mask_of(edits, {0, 0}) == "");
  CHECK(temperature_of(edits, {1, 0}) == 2);
  edits[1].enabled = false;
  CHECK(mask_of(edits, {1, 0}) == "");
  set_mask(edits, {}, "full");
  CHECK(edits.size() == 3);
  set_mask(edits, {}, "");
  CHECK(edits.size() == 2);
  CHECK_FALSE(edits[1].enabled);
  CHECK_THROWS_AS(set_mask(edits, {}, "windwo"), Error);
  set_mask(edits, {}, "full");
  set_mask(edits, {1, std::nullopt}, "causal");
  CHECK(mask_of(edits, {1, 0}) == "causal");
  CHECK(mask_of(edits, {0, 0}) == "full");
}

TEST_CASE("an encoder's own mask is full: that needs no edit, and causal is one") {
  std::vector<Intervention> edits;
  set_mask(edits, {1, 0}, "full", "full");
  CHECK(edits.empty());
  set_mask(edits, {1, 0}, "causal", "full");
  CHECK(mask_of(edits, {1, 0}) == "causal");
  set_mask(edits, {}, "window 3", "full");
  set_mask(edits, {1, 0}, "", "full");
  CHECK(mask_of(edits, {1, 0}) == "full");
  CHECK(mask_of(edits, {0, 0}) == "window 3");
}

TEST_CASE("masked tokens are kept in a session, what is shown in their place too") {
  Session session;
  session.document.text = "the cat sat";
  session.document.masked = {{1, {}}, {2, 9}};
  CHECK(session_from_json(to_json(session), "s.json") == session);
  CHECK_THROWS_WITH_AS(session_from_json(session_with(R"("document": {"masked": [{"shown": 3}]})"), "s.json"),
                       doctest::Contains("position"), Error);
}

TEST_CASE("scopes name the heads they mean") {
  CHECK(target_of(EditScope::head, {3, 1}, Stack::only) == HeadTarget{3, 1});
  CHECK(target_of(EditScope::layer, {3, 1}, Stack::only) == HeadTarget{3, std::nullopt});
  CHECK(target_of(EditScope::all, {3, 1}, Stack::only) == HeadTarget{});
  CHECK(text_of(target_of(EditScope::head, {3, 1}, Stack::cross)) == "cross.3.1");
  CHECK(text_of(target_of(EditScope::all, {3, 1}, Stack::encoder)) == "enc.*");
}

TEST_CASE("a temperature of one stack leaves that of another alone") {
  std::vector<Intervention> edits;
  set_temperature(edits, target_of(EditScope::head, {0, 1}, Stack::encoder), 2);
  set_temperature(edits, target_of(EditScope::head, {0, 1}, Stack::cross), 3);
  REQUIRE(edits.size() == 2);
  CHECK(temperature_of(edits_of(edits, Stack::encoder), {0, 1}) == 2);
  CHECK(temperature_of(edits_of(edits, Stack::cross), {0, 1}) == 3);
  CHECK(temperature_of(edits_of(edits, Stack::decoder), {0, 1}) == 1);
  // Of all heads of the encoder: what it covers goes, and no other stack's.
  set_temperature(edits, target_of(EditScope::all, {0, 1}, Stack::encoder), 4);
  REQUIRE(edits.size() == 2);
  CHECK(temperature_of(edits_of(edits, Stack::encoder), {1, 0}) == 4);
  CHECK(temperature_of(edits_of(edits, Stack::cross), {0, 1}) == 3);
}

TEST_CASE("a session survives JSON in full") {
  Session session;
  Document& document = session.document;
  document.model = "models/gpt2 small";
  document.source = "the cat";
  document.stack = Stack::cross;
  document.text = "Grüße, \"Welt\"\n\t日本";
  document.ids = {1, 2, 3};
  document.add_bos = false;
  document.selected = {11, 7};
  document.query = 4;
  document.key = 2;
  document.edits = {{{1, 0}, SetTemperature{0.3}}, {{}, SetMask{"sink 4 window 16"}, false}};
  View& view = session.view;
  view.head_view = HeadView::qk;
  view.scale = Scale::log;
  view.first_token = FirstToken::renormalize;
  view.text_unit = TextUnit::words;
  view.arcs_threshold = 0.125;
  view.follow_row = true;
  view.atlas = {"entropy", "sink", true, "induction", "entropy", -1, 2.5};
  view.edit_scope = EditScope::all;
  view.theme = "projector";
  view.left_width = 300.5;
  view.row_open = false;
  TranscriptRecord transcript;
  transcript.prompt.model = document.model;
  transcript.prompt.text = "Grüße";
  transcript.prompt.edits = document.edits;
  const Generator::Choice drawn{{.temperature = 0.7, .top_k = 3, .top_p = 0.9}, ~std::uint64_t{0}, {}},
      given{{.temperature = 0}, 5, 17};
  transcript.branches = {{0, -1, 0, {{4, drawn}, {9, drawn}}}, {3, 0, 1, {{4, drawn}, {17, given}}}};
  transcript.chosen = 1;
  transcript.next = drawn;
  session.transcript = transcript;
  session.window = {"Analyse",
                    {{"Analyse", "rollout"}, {"Mechanisms", "linear"}},
                    {{"Analyse", R"({"rollout":{"share":0.25}})"}, {"Train", R"({"recipe":"{}"})"}}};
  CHECK(session_from_json(to_json(session), "s.json") == session);
  session.window.controls["Train"] = R"({"recipe":"{\"name\": \"x\"}"})";
  CHECK(session_from_json(to_json(session), "s.json") == session);
  CHECK(session_from_json(session_with(R"("view": {})"), "s.json") == Session{});
  session.document.text = "\xff";
  CHECK_THROWS_AS(to_json(session), Error);
}

TEST_CASE("sessions that come with the program open, with the bundled model they name") {
  for (const char* name : {"examples/what-if.json", "examples/words.json", "examples/masked.json"}) {
    const auto file = find_asset(name);
    REQUIRE_MESSAGE(file, name);
    const Session session = session_from_json(read_file(*file, 1 << 20), name);
    const auto model = find_model(session.document.model, *file);
    CHECK_MESSAGE(std::filesystem::exists(model / "model.safetensors"), model);
  }
  CHECK(find_model("/nowhere/tiny-gpt2", "/nowhere/session.json") == find_bundled_model("tiny-gpt2"));
  CHECK(find_model("/nowhere/unknown", "/nowhere/session.json") == "/nowhere/unknown");
}

TEST_CASE("a sound beside its session is found, whatever second it begins at") {
  const std::filesystem::path folder = testing::reference("speech"), session = folder / "session.json";
  CHECK(find_sound("sound.wav", session) == folder / "sound.wav");
  CHECK(find_sound("sound.wav#t=0.2", session) == folder / "sound.wav#t=0.2");
  CHECK(find_sound("/elsewhere/sound.wav#t=0.2", session) == folder / "sound.wav#t=0.2");
  CHECK(find_sound("none.wav#t=3", session) == "none.wav#t=3");
  CHECK(find_sound("builtin:tones#t=1", session) == "builtin:tones#t=1");
  CHECK_THROWS_AS((void)find_sound("sound.wav#t=soon", session), Error);
}

TEST_CASE("the session of edits hides Anna from what is hers: she sells what is Ben's") {
  const auto file = find_asset("examples/what-if.json");
  REQUIRE(file);
  const Document document = session_from_json(read_file(*file, 1 << 20), "what-if").document;
  Backend backend(1);
  const LoadedModel loaded = load_model(*find_bundled_model("tiny-gpt2"), backend);
  const auto trace = [&](std::vector<Intervention> edits) {
    RunRequest request;
    request.model = *find_bundled_model("tiny-gpt2");
    request.text = document.text;
    request.edits = std::move(edits);
    return run(loaded, request, Ctx{backend});
  };
  const auto before = trace({}), after = trace(document.edits);
  const Index anna = 10, her = 12, ben = 14, sold = 20;
  REQUIRE(before->tokens.size() == static_cast<std::size_t>(sold + 1));
  CHECK(before->tokens[anna].label == "␣Anna");
  CHECK(before->tokens[ben].label == "␣Ben");
  CHECK(document.query == sold);
  REQUIRE(document.edits.size() == 3);
  CHECK_FALSE(document.edits[2].enabled);
  CHECK(document.selected == HeadId{0, 2});
  CHECK(before->map({0, 2}).weight(her, anna) > 0.99f);
  CHECK(before->map({0, 2}).weight(sold, anna) > 0.95f);
  CHECK(after->map({0, 2}).weight(her, anna) == 0.0f);
  CHECK(after->map({0, 2}).weight(sold, anna) == 0.0f);
  CHECK(after->map({0, 2}).weight(sold, ben) == doctest::Approx(0.6));
  const auto best = [&](const Trace& of) { return loaded.tokenizer->decode(std::span(&top_next(of, 1)[0].id, 1)); };
  CHECK(best(*before) == " pies");
  CHECK(best(*after) == " milk");
}

TEST_CASE("a session file that makes no sense is refused with the key that is wrong") {
  CHECK(refusal("").find("s.json: expected valid JSON") == 0);
  CHECK(refusal("[]").find("s.json: expected a JSON object") == 0);
  CHECK(refusal("{}").find("found no type") != std::string::npos);
  CHECK(refusal(R"({"type": "headscope settings", "version": 1})").find("found \"headscope settings\"") !=
        std::string::npos);
  CHECK(refusal(R"({"type": "headscope session"})").find("version 3 or older, found version 0") != std::string::npos);
  CHECK(refusal(R"({"type": "headscope session"})").find("newer Headscope") == std::string::npos);
  CHECK(refusal(R"({"type": "headscope session", "version": 4})").find("a newer Headscope wrote it") !=
        std::string::npos);
  CHECK(refusal(R"({"type": "headscope session", "version": 0})").find("found version 0") != std::string::npos);
  CHECK(refusal(R"({"type": "headscope session"})").find("version") != std::string::npos);
  CHECK(refusal(session_with(R"("colour": 1)")).find("found \"colour\"") != std::string::npos);
  CHECK(refusal(session_with(R"("document": {"text": 3})")).find("s.json: document.text: expected") == 0);
  CHECK(refusal(session_with(R"("document": {"ids": [1, -1]})"))
            .find("document.ids[1]: expected a whole number from 0") != std::string::npos);
  CHECK(refusal(session_with(R"("document": {"ids": [1.5]})")).find("found 1.5") != std::string::npos);
  CHECK(refusal(session_with(R"("document": {"query": -1})")).find("a whole number from 0") != std::string::npos);
  CHECK(refusal(session_with(R"("document": {"selected": {"layer": 1e9}})")).find("document.selected.layer") !=
        std::string::npos);
  CHECK(refusal(session_with(R"("document": {"edits": [{"target": "*", "action": "mask x"}]})"))
            .find("document.edits[0]: expected a mask") != std::string::npos);
  CHECK(refusal(session_with(R"("view": {"scale": "square"})")).find("linear, log or per-row, found \"square\"") !=
        std::string::npos);
  CHECK(refusal(session_with(R"("view": {"theme": "print"})")).find("view.theme: expected") != std::string::npos);
  CHECK(refusal(session_with(R"("view": {"panels": {"left_width": -3}})")).find("a number from 0 to 10000") !=
        std::string::npos);
  const auto tape = [](const char* inside) {
    return session_with((R"("generation": {"prompt": {"model": "m", "text": "x"}, "choices": [{"seed": "1"}], )" +
                         std::string(inside) + "}")
                            .c_str());
  };
  CHECK(refusal(tape(R"("branches": [])")).find("generation.branches: expected an array of at least 1 branches") !=
        std::string::npos);
  CHECK(refusal(tape(R"("branches": [{"tokens": [1], "choices": [1]}])"))
            .find("choices[0]: expected a whole number from 0 to 0") != std::string::npos);
  CHECK(refusal(tape(R"("branches": [{"tokens": [1, 2], "choices": [0]}])")).find("one for each of 2") !=
        std::string::npos);
  CHECK(refusal(tape(R"("branches": [{"tokens": [1], "choices": [0], "given": [3]}])")).find("given") !=
        std::string::npos);
  CHECK(refusal(session_with(R"("view": {"arcs_threshold": 2})")).find("a number from 0 to 1") != std::string::npos);
}

TEST_CASE("names of views, modes and scopes parse back") {
  for (const HeadView view :
       {HeadView::map, HeadView::arcs, HeadView::row, HeadView::steps, HeadView::qk, HeadView::heads})
    CHECK(parse_head_view(name(view)) == view);
  for (const FirstToken mode : {FirstToken::show, FirstToken::hide, FirstToken::renormalize})
    CHECK(parse_first_token(name(mode)) == mode);
  for (const EditScope scope : {EditScope::head, EditScope::layer, EditScope::all})
    CHECK(parse_edit_scope(name(scope)) == scope);
  CHECK_FALSE(parse_head_view("maps"));
}

TEST_CASE("next tokens before and after: probabilities over the whole vocabulary, KL by hand") {
  const auto trace_of = [](std::vector<float> logits) {
    Trace trace;
    trace.tokens.resize(1);
    trace.logits = Tensor::from({1, 3}, logits);
    return trace;
  };
  // Probabilities 1/2, 1/4, 1/4 and 1/4, 1/4, 1/2.
  const Trace before = trace_of({std::log(2.0f), 0, 0}), after = trace_of({1, 1, 1 + std::log(2.0f)});
  const NextTokenChange change = next_token_change(before, after, 1);
  CHECK(change.kl == doctest::Approx(0.5 * std::log(2) + 0.25 * std::log(0.5)).epsilon(1e-6));
  REQUIRE(change.tokens.size() == 2);
  CHECK(change.tokens[0].id == 0);
  CHECK(change.tokens[0].before == doctest::Approx(0.5));
  CHECK(change.tokens[0].after == doctest::Approx(0.25));
  CHECK(change.tokens[1].id == 2);
  CHECK(change.tokens[1].after == doctest::Approx(0.5));
  CHECK(next_token_change(before, before, 3).kl == doctest::Approx(0.0).epsilon(1e-12));
  CHECK(std::isnan(next_token_change(before, Trace{}, 3).kl));
  CHECK(next_token_change(before, after, 3, 5).tokens.empty());
  Trace other;
  other.tokens.resize(1);
  other.logits = Tensor::from({1, 2}, std::vector<float>{0, 0});
  CHECK_THROWS_AS(next_token_change(before, other, 3), Error);
}

}  // namespace headscope::state_test
