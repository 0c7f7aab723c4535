// headscope-cli watch: a folder of captures while a script writes into it; each new file is told as it comes.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "app/cli/commands.h"
#include "app/cli/trace_report.h"
#include "app/render/head_report.h"
#include "app/render/picture.h"
#include "core/attention/described_rule.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/capture_watch.h"

namespace headscope::cli {

namespace {
struct WatchOptions {
  std::string folder, pictures, theme = "dark";
  double every = 0.5;
  int count = 0;
  bool once = false;
};

/// "previous token 0.1, 2.3; sink 1.0": heads by their strongest class.
std::string classes_of(const Trace& trace) {
  std::map<std::string, std::string> heads;
  for (const HeadReport& head : report_heads(trace, default_class_rules()))
    if (!head.verdicts.empty()) {
      std::string& list = heads[head.verdicts.front().rule->title];
      list += (list.empty() ? " " : ", ") + to_string(head.map->id());
    }
  std::string out;
  for (const auto& [title, list] : heads) out += (out.empty() ? "" : "; ") + title + list;
  return out;
}

void watch(Console& console, const WatchOptions& options) {
  namespace fs = std::filesystem;
  CaptureWatch watched(options.folder, parse_described_rule);
  if (!options.pictures.empty()) expect_writable_folder(options.pictures);
  const std::stop_token stop = console.stop();
  const auto begin = std::chrono::steady_clock::now();
  std::set<std::pair<fs::path, fs::file_time_type>> told;
  int seen = 0;
  const auto done = [&] { return options.count > 0 && seen >= options.count; };
  while (true) {
    const double now = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    watched.look(
        now,
        [&](const CaptureWatch::File& file, const std::shared_ptr<const Trace>& trace) {
          if (done()) return;
          ++seen;
          const std::string classes = classes_of(*trace);
          console.print_line(fmt::format("{}: {}{}", file.path.filename().string(), file.words,
                                         classes.empty() ? "" : "; " + classes));
          if (!options.pictures.empty()) {
            const fs::path picture = fs::path(options.pictures) / (file.path.stem().string() + ".png");
            export_picture(*trace, {}, options.theme, picture, {});
          }
          console.flush();
        },
        stop);
    for (const CaptureWatch::File& file : watched.files())
      if (file.state == CaptureWatch::State::broken && told.emplace(file.path, file.written).second)
        console.say(file.why);
    // Once: what is there, told at the second look, when broken files have rested.
    if (done() || (options.once && now > CaptureWatch::patience)) return;
    if (options.once && std::ranges::none_of(watched.files(), [](const CaptureWatch::File& file) {
          return file.state == CaptureWatch::State::writing;
        }))
      return;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    wake.wait_for(lock, stop, std::chrono::duration<double>(options.every), [] { return false; });
    if (stop.stop_requested()) throw Cancelled();
  }
}
}  // namespace

void add_watch(Command& app, Console& console) {
  auto options = std::make_shared<WatchOptions>();
  Command command = app.add_subcommand(
      "watch", "Tell what a script captures: a line for every new or changed .npz, .npy or .safetensors of a folder");
  command.add_option("folder", options->folder, "The folder that the script writes into")
      .required()
      .type_name("FOLDER");
  command.add_option("--pictures", options->pictures, "Write the grid of all heads of each as a PNG into this folder")
      .type_name("FOLDER");
  command.add_option("--every", options->every, "Seconds between two looks")
      .check(range(0.05, 3600.0))
      .type_name("S")
      .show_default();
  command.add_option("--count", options->count, "End after so many captures").check(range(1, 1 << 30)).type_name("N");
  command.add_flag("--once", options->once, "Tell what is there, and end");
  command.add_option("--theme", options->theme, "dark, light, projector or print")
      .check(one_of({"dark", "light", "projector", "print"}))
      .type_name("THEME")
      .show_default();
  command.does([options, &console] { watch(console, *options); });
}

}  // namespace headscope::cli
