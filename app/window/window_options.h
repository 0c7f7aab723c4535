#pragma once
// What `headscope` understands on its command line.

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "core/base/error.h"
#include "core/cuda/device_choice.h"

namespace headscope {

/// A mistake in the command, not in a file: exit code 2.
struct OptionError : Error {
  using Error::Error;
};

struct AppOptions {
  std::optional<std::filesystem::path> model;  ///< folder to open first, or the name of a bundled model
  std::string example = "everyday-gpt2";       ///< the bundled model that is opened when none is named
  bool first_steps = false;                    ///< somebody sits in front of it, who may be here for the first time
  std::optional<std::filesystem::path> watch;  ///< folder of captures to watch
  std::optional<std::string> text;
  std::vector<std::int32_t> ids;               ///< in place of `text`
  std::optional<std::string> source;           ///< what an encoder-decoder reads; `text` is its target then
  std::optional<std::filesystem::path> image;  ///< a picture, of a model that reads one
  std::optional<std::filesystem::path> sound;  ///< a sound, of a model that hears
  std::optional<std::filesystem::path> session;
  std::optional<std::filesystem::path> screenshot;  ///< draw without a window, write a PNG, end
  std::optional<std::filesystem::path> again;       ///< a picture of a page, to be drawn once more into `out`, and end
  std::filesystem::path out;
  bool plain_pictures = false;                ///< that one does not tell how it was made
  std::optional<std::pair<int, int>> unseen;  ///< no window: laid out in so many pixels (WindowOptions::unseen)
  bool beside_lesson = false;                 ///< as if a lesson stood beside it
  std::optional<DeviceChoice> device;         ///< nullopt = as remembered
  std::optional<int> threads;                 ///< likewise
  int width = 0, height = 0;                  ///< 0 = as remembered, or 1600 × 1000
  double scale = 0;                           ///< 0 = what the display asks for
  std::string theme;                          ///< "" = as remembered, or dark
  std::string lesson;                         ///< taken at once, by its id; "" = none
  std::string language;                       ///< of the window and of lessons; "" = as remembered, or the system's
  bool present = false;                       ///< begins as F11 does
  std::string workspace;                      ///< "explore", "generate", …; "" = the first
  std::string view;                           ///< of a page of mechanisms: "compare", "steps", …; "" = compare
  std::string page;                           ///< of that workspace, by its id; "" = as remembered
  std::string rule;                   ///< of the detector page, remembered like one written there; "" = as remembered
  std::filesystem::path corpus;       ///< of the Corpus workspace: results to show, or texts to read
  int generate_tokens = 0;            ///< written at once in the Generate workspace
  std::string with_model, with_text;  ///< what the Compare workspace begins with
  std::string recipe;                 ///< of the Train workspace: a file, or the name of a bundled one
  int train_steps = 0;                ///< trains that recipe at once and pauses after so many steps
  std::filesystem::path settings;     ///< file that is read and written; empty = none
  std::filesystem::path recovery;     ///< folder for work that is in no file yet; empty = none
  std::filesystem::path
      certificates;          ///< folder of what is known of models (core/analysis/certificate.h); empty = none
  bool check_models = true;  ///< small ones by themselves
  std::stop_token stop;      ///< asked: the end, without questions and with everything kept
  bool offscreen = false, name_items = false;  ///< for tests: see WindowOptions
  Devices devices;                             ///< for tests: others than there are
  std::function<double()> clock;               ///< for tests: seconds, in place of the machine's
  std::optional<double> measured_seconds;      ///< for tests: UiRequests::measured_seconds
};

/// "1600x1000"; throws OptionError. Sides 320 … 16384.
std::pair<int, int> parse_size(const std::string& text);

}  // namespace headscope
