#include "app/cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/base/standard_streams.h"

namespace headscope::cli {

namespace {
/// Throws what became of standard output; `error` is errno of the write that failed.
[[noreturn]] void refuse(int error) {
  if (error == EPIPE) throw ReaderGone();
  throw Error("standard output", "room for all of the result", std::strerror(error));
}
}  // namespace

Console::Console() = default;
Console::~Console() = default;

void Console::print(std::string_view text) {
  if (quiet) return;
  printed_ = true;
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size()) refuse(errno);
}

void Console::print_line(std::string_view text) {
  print(text);
  print("\n");
}

void Console::flush() {
  if (std::fflush(stdout) != 0) refuse(errno);
}

void Console::say(std::string_view text) {
  headscope::write_error(std::string(text) + '\n');
}

std::stop_token Console::stop() {
  if (!interrupts_) interrupts_ = std::make_unique<Interrupts>();
  return interrupts_->token();
}

DeviceChoice Console::device_choice() const {
  DeviceChoice choice = parse_device(device).value_or(DeviceChoice{});
  choice.precision = value_in(precision_names, precision).value_or(Precision::f32);
  return choice;
}

std::string Console::computed_on() const {
  return backend_ ? backend_->name() : "";
}

Backend& Console::backend() {
  stop();  // before the pool starts its threads, which then leave the signals to the thread that waits for them
  if (backend_) return *backend_;
  Worded why_cpu;
  backend_ = devices.make(device_choice(), threads, why_cpu);
  if (!why_cpu.text().empty()) say("headscope-cli: " + why_cpu.text());
  return *backend_;
}

void Console::carry_out(const std::function<void()>& work) {
  try {
    return work();
  } catch (const CardError& error) {
    if (device == "cpu" || printed_) throw;
    say("headscope-cli: " + processor_goes_on(error).text());
  }
  device = "cpu";
  backend_.reset();
  work();
}

void Console::with_progress(std::string_view what, const std::function<void(const Ctx&)>& work) {
  std::atomic<float> progress{0};
  const Ctx ctx{backend(), nullptr, stop(), &progress};
  if (!isatty(STDERR_FILENO)) return work(ctx);

  // Short work shows nothing: a line that flashes up tells nobody anything.
  constexpr auto before_first = std::chrono::milliseconds(400), between = std::chrono::milliseconds(100);
  std::mutex lock;
  std::condition_variable_any ended;
  std::jthread shows([&](std::stop_token stop) {
    std::unique_lock hold(lock);
    bool shown = false;
    while (!ended.wait_for(hold, stop, shown ? between : before_first, [] { return false; }) &&
           !stop.stop_requested()) {
      const int percent = static_cast<int>(progress.load() * 100);
      headscope::write_error(fmt::format("\r{} {:3d} % ", what, percent < 0 ? 0 : percent > 100 ? 100 : percent));
      shown = true;
    }
    if (shown) headscope::write_error("\r\033[K");
  });
  work(ctx);
}

}  // namespace headscope::cli
