#pragma once
// The options that say what to run on what: a model and a text, or a trace recorded before.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/command_options.h"
#include "app/cli/console.h"
#include "core/run/run_request.h"
#include "core/trace/head_id.h"

namespace headscope {
struct SpokenWords;  // viz/scene/sound_map.h
}

namespace headscope::cli {

/// What --head says. Throws UsageError where that is no "LAYER.HEAD"; which there are is for the trace to say.
HeadId parse_head(const std::string& text);

struct Input {
  std::string model, adapter, text, file, image, sound, dash, trace, cut, system;
  std::vector<std::int32_t> ids;
  std::string source, part;  ///< of encoder-decoders: what the encoder reads; "enc", "dec" or "cross"
  std::vector<std::int32_t> source_ids;
  std::vector<std::string> temperatures, masks;  ///< [L.H=]τ and [L.H=]spec, in order
  std::vector<std::string> actions;              ///< "L.H: action", in order, after those
  bool bos = false, no_bos = false, special = false, chat = false;

  /// What request() made of these options last, and the text that stood in their file or on standard input; copies
  /// share it.
  struct Asked {
    std::optional<RunRequest> request;
    std::string read;
  };
  std::shared_ptr<Asked> asked = std::make_shared<Asked>();

  /// Which of its options a command takes.
  struct Takes {
    bool trace = false;       ///< --trace instead of a model and a text
    bool short_edits = true;  ///< --temperature and --mask, short forms of --edit
    bool part = true;         ///< --part, of what an encoder-decoder's run leaves
  };
  /// Adds --model, --source, --text, --file, -, --image, --ids, --bos, --no-bos, --special, --chat, --system, --cut,
  /// --edit, and what `takes` says.
  void add_to(Command& command, const Takes& takes);
  void add_to(Command& command) { add_to(command, Takes{}); }
  /// Adds --adapter alone, for commands that ask for their model in another way.
  void add_adapter_to(Command& command);
  void add_source_to(Command& command);
  bool has_text() const;
  bool has_source() const { return !source.empty() || !source_ids.empty() || !sound.empty(); }
  /// `only` where none was named.
  Stack stack() const { return value_in(stack_names, part).value_or(Stack::only); }
  bool from_trace() const { return !trace.empty(); }
  /// Throws UsageError when no model or no text was given, Error when a file cannot be read.
  RunRequest request() const;
  /// Throws UsageError on a spelling that is no edit.
  std::vector<Intervention> edits() const;
  /// Whether --mask names positions of tokens.
  bool masks_tokens() const;
  /// The folder of --model: a path, or the name of one of the bundled examples; with --adapter
  /// (core/io/model_location.h). Throws UsageError when absent.
  std::filesystem::path model_folder() const;
};

struct Opened {
  LoadedModel loaded;  ///< empty when a trace file was opened
  std::shared_ptr<const Trace> trace;
  std::shared_ptr<const SpokenWords> spoken =
      {};  ///< the words of a target over the sound, where pictures ask for them
};
/// Opens the model and runs the request, or opens the trace file, with progress on the terminal.
/// `times_words`: of a model of speech also when the words of its target were said.
Opened open_input(Console& console, const Input& input, const CaptureSpec& capture, bool times_words = false);
/// What pictures say of the model: model_note() of core/analysis/certificate.h with what is remembered of its files.
std::string model_note_of(const Input& input, const Opened& opened);
std::string model_note_of(const Input& input, const std::string& model_name);
Opened run_request(Console& console, LoadedModel loaded, const RunRequest& request);
/// The part of a trace that a command reads. Throws Error where there is no such part.
std::shared_ptr<const Trace> part_of(std::shared_ptr<const Trace> trace, Stack part);

}  // namespace headscope::cli
