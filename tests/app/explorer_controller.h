#pragma once
// An explorer without a window, for tests: what a person does, frame by frame, until everything has come.

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>

#include "app/state/explorer.h"
#include "tests/support/paths.h"

namespace headscope::testing {

/// An explorer with a clock of its own, which waits for the worker without asking all the time.
struct Controller {
  // The explorer comes last, so that its worker, which calls woken(), ends before what that needs.
  std::mutex lock;
  std::condition_variable changed;
  int wakes = 0;
  double now = 0;
  Explorer explorer{{1, [this] { woken(); }}};

  void woken() {
    const std::lock_guard hold(lock);
    ++wakes;
    changed.notify_all();
  }

  /// Frames until nothing runs, waits, or is ready.
  void settle() {
    for (int quiet = 0; quiet < 2;) {
      std::unique_lock hold(lock);
      const int before = wakes;
      hold.unlock();
      const bool news = explorer.frame(now += 0.01);
      hold.lock();
      if (explorer.jobs.busy()) changed.wait_for(hold, std::chrono::milliseconds(200), [&] { return wakes != before; });
      quiet = news || explorer.jobs.busy() ? 0 : quiet + 1;
    }
  }
  const Results& results() const { return explorer.results(); }
  const Document& document() const { return explorer.state().document; }
  std::string message() const { return explorer.jobs.message() ? explorer.jobs.message()->text : ""; }
};

/// The model made by hand, and a text that repeats itself.
inline std::filesystem::path example() {
  return source_dir() / "assets/examples/induction";
}

inline constexpr const char* story = "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Qu";

}  // namespace headscope::testing
