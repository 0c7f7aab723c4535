#pragma once
// The options that say what to run on what: a model and a text, or a trace recorded before.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/shell.h"
#include "core/engine/run_request.h"

namespace headscope::cli {

struct Input {
  std::string model, text, file, dash, trace, cut;
  std::vector<std::int32_t> ids;
  std::vector<std::string> temperatures, masks;  ///< [L.H=]τ and [L.H=]spec, in order
  std::vector<std::string> actions;              ///< "L.H: action", in order, after those
  bool bos = false, no_bos = false, special = false;

  /// Adds --model, --text, --file, -, --ids, --bos, --no-bos, --special, --cut; and --trace where the command can read
  /// one.
  void add_text_options(CLI::App& app, bool with_trace);
  /// --edit, and its short forms --temperature and --mask where these words are free.
  void add_edit_options(CLI::App& app, bool short_forms, bool with_trace);
  void add_options(CLI::App& app, bool with_trace) {
    add_text_options(app, with_trace);
    add_edit_options(app, true, with_trace);
  }
  bool has_text() const;
  bool from_trace() const { return !trace.empty(); }
  /// Throws UsageError when no model or no text was given, Error when a file cannot be read.
  RunRequest request() const;
  /// Throws UsageError on a spelling that is no edit.
  std::vector<Intervention> edits() const;
  /// The folder of --model: a path, or the name of one of the bundled examples. Throws UsageError when absent.
  std::filesystem::path model_folder() const;
};

struct Opened {
  LoadedModel loaded;  ///< empty when a trace file was opened
  std::shared_ptr<const Trace> trace;
};
/// Opens the model and runs the request, or opens the trace file, with progress on the terminal.
Opened open_input(Shell& shell, const Input& input, const CaptureSpec& capture);
Opened run_request(Shell& shell, LoadedModel loaded, const RunRequest& request);

}  // namespace headscope::cli
