#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "app/actions/action.h"
#include "app/actions/palette.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/support/paths.h"
#include "tests/support/variable.h"

namespace headscope::monkey_test {

using testing::reference;
using testing::scratch_dir;

namespace {
/// Does anything that the window lets a user do, in any order.
class Monkey {
 public:
  explicit Monkey(std::uint64_t seed) : random_(seed), folder_(scratch_dir("monkey")) {
    settings_.remember_model(reference("llama-gqa"));
    settings_.remember_model(reference("gpt2-random"));
    settings_.remember_model(reference("families/bert"));
    settings_.remember_model("/nowhere/at all");
  }

  void act() {
    switch (random_.below(13)) {
      case 0:
        return explorer_.editor.set_text(text());
      case 1:
        return explorer_.editor.set_ids({number(0, 300), number(0, 60), 1, 2});
      case 2:
        return explorer_.editor.select({number(-2, 5), number(-2, 9)});
      case 3:
        return explorer_.editor.pin(number(-2, 60), number(-2, 60));
      case 4:
        explorer_.editor.view().edit_scope = static_cast<EditScope>(number(0, 2));
        return explorer_.editor.set_temperature(random_.uniform() * 4 - 0.5);
      case 5:
        try {
          return explorer_.editor.set_mask(
              pick<const char*>({"", "window 3", "full", "padding 9", "nonsense", "random 0.2 seed 4"}));
        } catch (const Error&) {
          return;
        }
      case 6:
        return explorer_.run.open_model(pick(settings_.recent_models));
      case 7:
        return session();
      case 8:
        explorer_.editor.view().head_view = static_cast<HeadView>(number(0, 5));
        explorer_.editor.view().first_token = static_cast<FirstToken>(number(0, 2));
        return export_view(explorer_.jobs, explorer_.state(), explorer_.results(),
                           {folder_ / pick<const char*>({"x.svg", "x.csv", "x.nothing"}), 96, true, number(0, 1) == 1});
      case 9: {
        const auto items = palette_items(app_);
        const auto hits = search_palette(items, pick<const char*>({"l1h", "mask", "tok", "open", "e", ""}), 5);
        if (!hits.empty()) items[hits[random_.below(hits.size())].item].run(app_);
        return;
      }
      case 10:
        return explorer_.editor.toggle_masked(number(-2, 60));
      default: {
        const Action& action = actions()[random_.below(actions().size())];
        if (action.is_enabled(app_)) action.run(app_);
        action.is_checked(app_);
      }
    }
  }

  /// What every panel counts on, after any frame.
  void style() {
    explorer_.frame(now_ += random_.uniform() * 0.4);
    const AppState& state = explorer_.state();
    const Results& results = explorer_.results();
    CHECK(state.document.key.has_value() <= state.document.query.has_value());
    if (results.model.model && state.document.model == results.model_folder) {
      const ModelDims& dims = results.model.model->config().dims;
      CHECK(state.document.selected.layer < dims.layers);
      CHECK(state.document.selected.head < dims.heads);
      CHECK(std::min(state.document.selected.layer, state.document.selected.head) >= 0);
    }
    if (results.facts) CHECK(results.facts->verdicts.size() == results.facts->trace->maps.size());
    if (results.detail && !results.detail->trace->model.dims.state_space()) CHECK(results.detail->map().is_factored());
    if (results.effect) CHECK(results.effect->moved.size() == results.effect->before->maps.size());
    results.map(state.document.selected);
    app_.ui = {};
  }

  void settle() {
    for (int quiet = 0; quiet < 3;) {
      quiet = explorer_.frame(now_ += 0.01) || explorer_.jobs.busy() ? 0 : quiet + 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  Explorer& explorer() { return explorer_; }

 private:
  int number(int low, int high) {
    return low + static_cast<int>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[random_.below(from.size())];
  }
  std::string text() {
    std::string result;
    for (int i = number(0, 60); i > 0; --i) result += pick<std::string>({"a", " be", "ü", "日", "\n", "\xff", "Q"});
    return number(0, 3) == 0 ? result : "to be or not to be";
  }
  void session() {
    try {
      if (number(0, 1) == 0)
        explorer_.files.save(folder_ / "s.json");
      else
        explorer_.files.open(folder_ / "s.json");
    } catch (const Error&) {  // no such file yet, or a text that JSON cannot hold
    }
  }

  Random random_;
  std::filesystem::path folder_;
  Settings settings_;
  UiRequests ui_;
  Explorer explorer_{{1, {}}};
  AppContext app_{explorer_, settings_, ui_};
  double now_ = 0;
};
}  // namespace

TEST_CASE("whatever is done in whatever order, nothing throws and the state stays whole") {
  const testing::Variable data("XDG_DATA_HOME", testing::scratch_dir("monkey-data").string());
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    CAPTURE(seed);
    Monkey monkey(seed);
    for (int step = 0; step < 700; ++step) {
      monkey.act();
      monkey.style();
      if (step % 50 == 49) monkey.settle();
    }
    // After all that the explorer still works.
    monkey.explorer().editor.set_edits({});
    monkey.explorer().run.open_model(reference("gpt2-random"));
    monkey.explorer().editor.set_text("to be or not to be");
    monkey.settle();
    REQUIRE(monkey.explorer().results().run);
    CHECK(monkey.explorer().results().run->trace->text == "to be or not to be");
    CHECK(monkey.explorer().results().run->trace->model.name == "gpt2-random");
    CHECK_FALSE(monkey.explorer().results().effect);
  }
}

}  // namespace headscope::monkey_test
