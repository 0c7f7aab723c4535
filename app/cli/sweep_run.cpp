#include "app/cli/sweep_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>

#include "core/base/error.h"
#include "core/base/standard_streams.h"

namespace headscope::cli {

namespace {
std::string seconds_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  return whole >= 60 ? fmt::format("{} min {:02d} s", whole / 60, whole % 60) : fmt::format("{} s", whole);
}
}  // namespace

bool go_through(Console& console, Sweep& sweep, const char* what) {
  const Ctx ctx{console.backend(), nullptr, console.stop()};
  const bool terminal = isatty(STDERR_FILENO);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  auto shown = begin;
  bool written = false;
  const auto clear = [&] {
    if (written) write_error("\r\033[K");
  };
  try {
    while (!sweep.finished()) {
      sweep.step(ctx);
      const auto now = Clock::now();
      if (!terminal || now - shown < std::chrono::milliseconds(written ? 100 : 400)) continue;
      shown = now;
      const double seconds = std::chrono::duration<double>(now - begin).count();
      const std::string left =
          sweep.share() > 0 ? " · " + seconds_text(seconds * (1 - sweep.share()) / sweep.share()) + " left" : "";
      write_error(fmt::format("\r\033[K{} of {} {}{}", sweep.done(), sweep.total(), what, left));
      written = true;
    }
  } catch (const Cancelled&) {
    clear();
    console.say(fmt::format("stopped after {} of {} {}", sweep.done(), sweep.total(), what));
    return false;
  } catch (...) {
    clear();
    throw;
  }
  clear();
  return true;
}

}  // namespace headscope::cli
