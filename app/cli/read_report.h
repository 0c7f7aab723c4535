#pragma once
// What a tool of `headscope-cli read` is, and what it says: facts, a table of rows and perhaps a picture.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/command_options.h"
#include "app/cli/console.h"
#include "app/cli/report.h"
#include "core/run/run_request.h"
#include "viz/scene/matrix_scene.h"
#include "viz/scene/token_axis.h"

namespace headscope::cli {

/// What a tool reads.
struct ReadRun {
  Console& console;
  const LoadedModel& loaded;
  const RunRequest& request;
  std::shared_ptr<const Trace> trace;
  bool for_scripts = false;  ///< printed as CSV or JSON: every row there is
  bool draws = false;        ///< the picture is what was asked for
};

/// One tool: its id, what it is, the options that are its own, what it records and what it finds. A new one is a
/// class in the file where it belongs and its name in the list at that file's end.
class ReadTool {
 public:
  ReadTool(std::string word, std::string what) : id(std::move(word)), meaning(std::move(what)) {}
  virtual ~ReadTool() = default;
  ReadTool(const ReadTool&) = delete;
  ReadTool& operator=(const ReadTool&) = delete;

  /// The options store into the tool.
  virtual void add_options(Command& command);
  /// What to record; the model decides which sites exist. Without it: the maps.
  virtual CaptureSpec capture(const Model& model) const;
  /// Whether it can read the attention of a target to a source; most are about a stack.
  virtual bool reads_cross() const { return false; }
  /// Facts, and the table "rows".
  virtual Report read(const ReadRun& run) const = 0;

  const std::string id, meaning;  ///< "lens", and a line for the help
};
using ReadTools = std::vector<std::shared_ptr<ReadTool>>;
template <class... Tool>
ReadTools tools_of() {
  return {std::make_shared<Tool>()...};
}

ReadTools writing_tools();    ///< what streams and heads write
ReadTools layers_tools();     ///< through all layers, and of all matrices
ReadTools sink_tools();       ///< weights that carry little
ReadTools picture_tools();    ///< what only models of pictures have
ReadTools block_tools();      ///< blocks and whole models
ReadTools state_tools();      ///< what only state spaces have
ReadTools alignment_tools();  ///< a target and its source

/// --position, counted from 0, negative from the end.
struct PositionOption {
  std::optional<int> given;
  void add_to(Command& command);
  /// Without it where the answer is read: the last, of an encoder the first masked one. Throws Error on one outside the
  /// text.
  Index in(const Trace& trace) const;
};
/// --head.
struct HeadOption {
  std::string given;
  void add_to(Command& command);
  /// Throws UsageError when none or no such thing was given, Error on one that the trace has not.
  HeadId in(const Trace& trace) const;
};
/// --token, whose logit is asked for.
struct TokenOption {
  std::string given;
  void add_to(Command& command);
  /// Without it the most probable after `position`.
  std::int32_t in(const LoadedModel& loaded, const Trace& trace, Index position) const;
};
/// --against, a token whose logit is taken away.
struct AgainstOption {
  std::string given;
  void add_to(Command& command);
  std::optional<std::int32_t> in(const LoadedModel& loaded) const;
};
/// --top, how many to list.
struct TopOption {
  int count = 10;
  void add_to(Command& command);
};

/// The label of a token id, or the id itself.
std::function<std::string(std::int32_t)> namer(const LoadedModel& loaded);
/// What the heads of this run wrote with.
ModelWeights weights_of(const ReadRun& run);
/// The usual maps and these sites besides.
CaptureSpec with_sites(std::set<SiteKind> sites);
/// The matrix under its unit and the run; `cell`: pixels that a token's cells take at least.
std::function<Scene(const Style&)> picture_of(Matrix matrix, const Trace& trace, double cell = 0);

}  // namespace headscope::cli
