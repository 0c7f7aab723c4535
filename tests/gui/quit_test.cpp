// Nothing lost: the question before quitting, signals, what the next start offers.

#include <algorithm>
#include <array>
#include <fstream>
#include <stop_token>

#include "app/workspaces/analyse/page.h"
#include "core/base/file.h"
#include "core/edits/ablate_edit.h"
#include "core/edits/temperature_edit.h"
#include "tests/gui/whole_program.h"
#include "tests/support/paths.h"

namespace headscope::quit_test {

using testing::entries;
using testing::Explore;
using testing::kept_in;
using testing::Program;
using testing::scratch_dir;
namespace fs = std::filesystem;

namespace {

const std::vector<Intervention> two_edits{{{0, 1}, SetTemperature{2}}, {{1, 0}, Ablate{}}};

}  // namespace

TEST_CASE("with nothing to lose, quitting is not asked about, and leaves nothing behind") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-quit-plain");
  {
    Program p(kept_in(folder));
    p.app.explorer().editor.select({1, 1});
    p.quit();
    CHECK(p.app.window().closing());
    p.app.run();
  }
  CHECK(fs::exists(folder / "settings.json"));
  CHECK(entries(folder / "recovery") == 0);
}

TEST_CASE(
    "Ctrl Q asks when edits or a training would be lost; Escape and Stay stay, the cross of the window asks too") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-quit-asks");
  {
    Program p(kept_in(folder));
    p.app.explorer().editor.set_edits(two_edits);
    p.train_to(5);
    p.quit();
    CHECK_FALSE(p.app.window().closing());
    CHECK(p.driver.shown("Quit without it"));
    p.driver.key(ImGuiKey_Escape);
    CHECK_FALSE(p.driver.shown("Quit without it"));
    CHECK_FALSE(p.app.window().closing());
    p.app.window().close();  // what the cross does
    p.driver.frames(3);
    CHECK_FALSE(p.app.window().closing());
    p.driver.click("Stay");
    CHECK_FALSE(p.driver.shown("Quit without it"));
    p.quit();
    p.driver.click("Quit without it");
    p.driver.frames(2);
    CHECK(p.app.window().closing());
    p.app.run();
  }
  CHECK(entries(folder / "recovery") == 0);
}

TEST_CASE("kept at quitting, session and training are offered by the next start and go on where they were") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-quit-keeps");
  std::vector<TrainingPoint> curve;
  {
    Program p(kept_in(folder));
    p.app.explorer().editor.set_edits(two_edits);
    p.app.requests().workspace = workspace_index("Train");
    p.train_to(7);
    curve = p.workspaces.training.curve();
    p.quit();
    p.driver.key(ImGuiKey_Enter);
    p.driver.frames(2);
    REQUIRE(p.app.window().closing());
    p.app.run();
  }
  REQUIRE(entries(folder / "recovery") == 1);
  {
    Program p(kept_in(folder));
    CHECK(p.state().document.edits.empty());  // offered, not forced
    REQUIRE(p.driver.shown("Take it up"));
    p.driver.click("Ask again next time");
    CHECK_FALSE(p.driver.shown("Take it up"));
    p.quit();
    p.app.run();
  }
  Program p(kept_in(folder));
  p.driver.click("Take it up");
  REQUIRE(p.driver.until(
      [&] {
        return p.state().document.edits == two_edits &&
               p.workspaces.training.phase() == TrainingController::Phase::paused;
      },
      5000));
  CHECK(p.app.requests().workspace == workspace_index("Train"));
  const TrainingController& controller = p.workspaces.training;
  CHECK(controller.progress().step == 7);
  REQUIRE(controller.curve().size() == curve.size());
  for (std::size_t i = 0; i < curve.size(); ++i) CHECK(controller.curve()[i] == curve[i]);
  CHECK_FALSE(p.driver.shown("Take it up"));
  p.workspaces.training.pause_at(9);
  p.workspaces.training.resume();
  REQUIRE(p.driver.until([&] { return controller.progress().step == 9; }, 5000));
  Backend backend(1);
  Trainer whole(controller.running(), backend);
  whole.run(9);
  for (std::size_t i = 0; i < 9; ++i) CHECK(controller.curve()[i] == whole.curve()[i]);  // bit for bit
  p.quit();
  p.driver.click("Quit without it");
  p.driver.frames(2);
}

TEST_CASE("what cannot be kept at quitting keeps the window open, which says why; both are kept once there is room") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-quit-no-room");
  std::string said_then;
  bool stayed = false;
  {
    std::stop_source enough;
    AppOptions options = kept_in(folder);
    options.stop = enough.get_token();
    Program p(options);
    p.app.explorer().editor.set_edits(two_edits);
    p.train_to(3);
    const fs::path own = fs::directory_iterator(folder / "recovery")->path();
    p.each_turn = [&] {
      const auto& message = p.app.explorer().jobs.message();
      if (!said_then.empty() || !message || !message->text.starts_with("Not kept for the next start")) return;
      said_then = message->text;
      stayed = !p.app.window().closing();
      fs::remove(own);
      fs::create_directory(own);  // room again
      enough.request_stop();
    };
    p.quit();
    fs::remove_all(own);
    std::ofstream(own) << "in the way";
    p.driver.key(ImGuiKey_Enter);
    p.driver.frames(2);
    REQUIRE(p.app.window().closing());
    p.app.run();
  }
  CHECK(stayed);
  CHECK(said_then.find("session.json") != std::string::npos);
  REQUIRE(entries(folder / "recovery") == 1);
  const fs::path left = fs::directory_iterator(folder / "recovery")->path();
  CHECK(session_from_json(read_file(left / "session.json"), "session").document.edits == two_edits);
  CHECK(load_checkpoint(left / "training.safetensors").step == 3);
}

TEST_CASE("a signal ends the program in order: settings, session and training are on the disk") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-quit-signal");
  {
    std::stop_source signal;
    AppOptions options = kept_in(folder);
    options.stop = signal.get_token();
    Program p(options);
    p.app.explorer().editor.set_edits(two_edits);
    p.app.explorer().editor.view().theme = "light";
    p.train_to(4);
    p.workspaces.training.pause_at(0);
    p.workspaces.training.resume();
    p.driver.until([&] { return p.workspaces.training.progress().step > 8; }, 2000);
    signal.request_stop();
    p.app.run();
  }
  CHECK(load_settings(folder / "settings.json").settings.theme == "light");
  REQUIRE(entries(folder / "recovery") == 1);
  const fs::path left = fs::directory_iterator(folder / "recovery")->path();
  CHECK(session_from_json(read_file(left / "session.json"), "session").document.edits == two_edits);
  CHECK(load_checkpoint(left / "training.safetensors").step > 8);
  CHECK(read_file(left / "words.txt").find("2 edits · the training of small, at step ") == 0);
}

TEST_CASE("while it runs, unsaved work is on the disk within seconds, and gone when it was saved") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-quit-intervals");
  Program p(kept_in(folder));
  const fs::path own = fs::directory_iterator(folder / "recovery")->path();
  p.app.explorer().editor.set_edits(two_edits);
  p.train_to(6);
  const auto passes = [&](double seconds, const std::function<bool()>& done) {
    p.time += seconds;
    return p.driver.until(done, 3000);
  };
  CHECK(passes(UnsavedWork::session_seconds, [&] { return fs::exists(own / "session.json"); }));
  CHECK(session_from_json(read_file(own / "session.json"), "session").document.edits == two_edits);
  CHECK(passes(UnsavedWork::training_seconds, [&] { return fs::exists(own / "training.safetensors"); }));
  CHECK(load_checkpoint(own / "training.safetensors").step == 6);
  REQUIRE(p.driver.until([&] { return p.app.settled(); }));

  p.app.explorer().editor.undo();
  p.workspaces.training.stop();
  CHECK(passes(UnsavedWork::session_seconds,
               [&] { return !fs::exists(own / "session.json") && !fs::exists(own / "training.safetensors"); }));
}

TEST_CASE("a session keeps workspace, page and their controls") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-session-window");
  {
    Program p(Explore::options(1280, 720));
    p.workspaces.generation.settings().sampling.top_k = 7;
    p.workspaces.generation.settings().seed = 99;
    p.workspaces.generation.shows_dropped() = false;
    p.workspaces.positions_controller.view.factor = 2.5;
    p.workspaces.mechanisms.controller().choose("performer");
    p.workspaces.mechanisms.controller().view = MechanismView::recurrent;
    p.workspaces.comparison.set_with(CompareController::With::text);
    p.workspaces.comparison.text() = "another text";
    p.workspaces.corpus_controller.draft().count = 12;
    p.workspaces.training.draft().batch = 6;
    p.app.requests().workspace = workspace_index("Analyse");
    p.app.settings().pages["Analyse"] = "rollout";
    p.driver.frames(3);
    const Item share = p.driver.item("Share");
    p.driver.drag(share.center(), {share.min.x + 2, share.center().y});
    p.driver.click("÷ even heads");
    p.app.explorer().files.save(folder / "session.json");
  }
  const std::string text = read_file(folder / "session.json");
  CHECK(text.find("\"share\": 0.0") != std::string::npos);
  AppOptions again = Explore::options(1280, 720);
  again.session = folder / "session.json";
  Program p(again);
  CHECK(p.app.requests().workspace == workspace_index("Analyse"));
  CHECK(p.app.settings().pages["Analyse"] == "rollout");
  CHECK(p.workspaces.generation.settings().sampling.top_k == 7);
  CHECK(p.workspaces.generation.settings().seed == 99);
  CHECK_FALSE(p.workspaces.generation.shows_dropped());
  CHECK(p.workspaces.positions_controller.view.factor == 2.5);
  CHECK(p.workspaces.mechanisms.controller().mechanism().id == "performer");
  CHECK(p.workspaces.mechanisms.controller().view == MechanismView::recurrent);
  CHECK(p.workspaces.comparison.with() == CompareController::With::text);
  CHECK(p.workspaces.comparison.text() == "another text");
  CHECK(p.workspaces.corpus_controller.draft().count == 12);
  CHECK(p.workspaces.training.draft().batch == 6);
  p.app.explorer().files.save(folder / "again.json");
  CHECK(read_file(folder / "again.json") == text);  // the page's own controls too
}

TEST_CASE("a session keeps the price of the balance of experts, of the draft as the slider left it") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("gui-session-balance");
  {
    Program p(Explore::options(1280, 720));
    p.app.requests().workspace = workspace_index("Train");
    p.driver.frames(3);
    p.driver.click("Mixtral");
    const Item price = p.driver.item("Price of balance");
    p.driver.drag(price.center(), {price.max.x - 2, price.center().y});
    CHECK(p.workspaces.training.draft().optimizer.expert_balance == 0.5);
    p.app.explorer().files.save(folder / "session.json");
  }
  AppOptions again = Explore::options(1280, 720);
  again.session = folder / "session.json";
  Program p(again);
  CHECK(p.workspaces.training.draft().model.family == "mixtral");
  CHECK(p.workspaces.training.draft().optimizer.expert_balance == 0.5);
}

TEST_CASE("what is chosen on any page of Analyse comes back with the session") {
  HEADSCOPE_NEEDS_DISPLAY();
  // By page, what is clicked, near its right end: of a choice that field, of a slider four fifths of its way.
  static constexpr std::pair<const char*, const char*> choices[] = {
      {"ablate", "another's"},
      {"ablate", "KL"},
      {"patch", "by head"},
      {"patch", "pattern"},
      {"patch", "from end"},
      {"circuit", "Faithfulness"},
      {"circuit", "put heads back"},
      {"circuit", "text mean"},
      {"temperature", "5"},
      {"singular", "Layer"},
      {"singular", "W_O"},
      {"singular", "Largest k"},
      {"singular", "Value i"},
      {"linear-layers", "Allowed"},
      {"linear-layers", "linear in"},
      {"linear-layers", "Random orders"},
      {"detector", "painted"},
      {"alignment", "all above"},
      {"alignment", "Weight"},
      {"masks", "and not"},
      {"sharing", "tokens"},
      {"sharing", "1 byte"},
      {"lens", "Entropy"},
      {"lens", "next in text"},
      {"weighted", "by value"},
      {"circuits", "QK: where it looks"},
      {"circuits", "Tokens"},
      {"rollout", "Share"},
      {"rollout", "÷ even heads"},
      {"gradients", "reach"},
      {"composition", "V"},
      {"sinks", "Carried"},
      {"massive", "Ratio"},
      {"massive", "as in the paper"},
      {"few-bits", "Bits"},
      {"few-bits", "weights"},
      {"few-bits", "a step per tensor"},
      {"few-bits", "Apart from"},
      {"few-bits", "outliers apart"},
      {"alternatives", "Share of the way"},
      {"alternatives", "Tolerance"},
      {"residual", "Norm before or behind"},
      {"residual", "Layer"},
      {"residual", "Random blocks"},
      {"residual", "Blocks"},
      {"residual", "log₂ width"},
      {"residual", "Seed"},
      {"norms", "log₁₀ ε"},
      {"norms", "The model's norms"},
      {"norms", "before MLP"},
      {"norms", "Layer"},
      {"ffn", "Layer"},
      {"ffn", "Activation functions"},
      {"ffn", "x"},
      {"ffn", "Linear branch u"},
      {"path", "One scale for all"},
      {"self-adaptation", "Steps"},
      {"expert-comparison", "Steps"},
      {"expert-comparison", "Price of KL"},
  };
  // What is typed.
  static constexpr std::array<const char*, 3> typed[] = {
      {"detector", "##rule", "k == q - 2"},       {"alignment", "##alignment", "0-1"},
      {"lens", "##followed token", " cat"},       {"attribution", "##attributed token", " cat"},
      {"attribution", "##token against", " Tom"}, {"gradients", "##differentiated token", " cat"},
      {"ffn", "##neurons token", " cat"},
  };
  // Offered by a model that has what the page shows (the test below).
  static constexpr std::string_view elsewhere[] = {"experts", "state", "patches"};
  // These have none: what can be put there belongs to one text, positions and tokens.
  static constexpr std::string_view without[] = {"loss", "scan"};
  const auto kept = [](Program& p) {
    ControlsRecord record;
    p.workspaces.analyse.controls(record);
    return record.text();
  };
  const auto open = [](Program& p, const std::string& page) {
    p.app.requests().workspace = workspace_index("Analyse");
    p.app.settings().pages["Analyse"] = page;
    int quiet = 0;
    REQUIRE(p.driver.until(
        [&] {
          quiet = p.app.settled() ? quiet + 1 : 0;
          return quiet > 8;
        },
        6000));
  };
  const fs::path file = scratch_dir("gui-session-pages") / "session.json";
  AppOptions options = Explore::options(1600, 1200);
  options.example = "tiny-llama";
  std::string chosen;
  {
    Program p(options);
    for (const PageEntry& page : page_registry()) {
      CAPTURE(page.info.id);
      const bool types = std::ranges::any_of(typed, [&](const auto& t) { return t[0] == page.info.id; });
      const bool bare = std::ranges::find(elsewhere, page.info.id) != std::end(elsewhere);
      CHECK((bare || types || std::ranges::any_of(choices, [&](const auto& c) { return c.first == page.info.id; })) !=
            (std::ranges::find(without, page.info.id) != std::end(without)));
      open(p, page.info.id);
      for (const auto& [of, control, words] : typed) {
        if (of != page.info.id) continue;
        CAPTURE(control);
        const std::string before = kept(p);
        p.driver.click(control);
        p.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
        p.driver.type(words);
        open(p, page.info.id);
        CHECK(kept(p) != before);
      }
      for (const auto& [of, control] : choices) {
        if (of != page.info.id) continue;
        CAPTURE(control);
        const std::string before = kept(p);
        const Item item = p.driver.item(control);
        p.driver.click_at({item.min.x + 0.8f * (item.max.x - item.min.x), item.center().y});
        open(p, page.info.id);
        CHECK(kept(p) != before);
      }
    }
    open(p, "patch");
    p.driver.click("##corrupted prompt");
    p.driver.type("x");
    open(p, "patch");
    chosen = kept(p);
    p.app.explorer().files.save(file);
  }
  CHECK(chosen.find("x\"") != std::string::npos);
  options.session = file;
  Program p(options);
  // Also once their pages have been on screen.
  for (const PageEntry& page : page_registry()) open(p, page.info.id);
  CHECK(kept(p) == chosen);
}

}  // namespace headscope::quit_test
