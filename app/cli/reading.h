#pragma once
// What a reading tool says on the command line: facts, a table and perhaps a picture, written once and printed as text,
// CSV or JSON.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/cli/input.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope::cli {

using ReadingCell = std::variant<std::string, double, std::int64_t>;  ///< a NaN is "–", empty, or null

struct Reading {
  struct Fact {
    std::string id, text;  ///< "sum_of_parts", "sum of parts"
    ReadingCell value;
  };
  std::vector<Fact> facts;
  std::vector<std::string> columns;
  std::vector<std::vector<ReadingCell>> rows;
  std::function<Scene(const Look&)> picture;  ///< may be empty: the tool has none
};

struct ReadOptions {
  Input input;
  std::string head, token, against, weighting = "output", kind = "v", circuit = "ov", out, theme = "dark";
  std::string norm = "ln1", shape;
  std::vector<std::string> rows;
  std::optional<int> position, key, width;
  int top = 10, distance = 0, layer = 0, layers = 12, stack_width = 64;
  double threshold = 100, magnitude = 0, tolerance = 1e-6, share = 1, residual = 0.5, epsilon = 1e-5;
  std::uint64_t seed = 1;
  bool full = false, relative = false, zero = false, paper = false, csv = false, json = false;
  bool placement = false, stack = false, parameters = false, prefixes = false;
};

/// One tool: its name, what it is, and the reading of an opened model and text.
struct ReadTool {
  const char* name;
  const char* meaning;
  /// What to record; the model decides which sites exist.
  CaptureSpec (*capture)(const Model& model);
  Reading (*read)(Shell& shell, const ReadOptions& options, const LoadedModel& loaded, const RunRequest& request,
                  std::shared_ptr<const Trace> trace);
};
/// Every tool (read_tools.cpp).
const std::vector<ReadTool>& read_tools();
/// Of them, those about blocks and whole models (block_tools.cpp).
std::vector<ReadTool> block_tools();

/// The label of a token id, or the id itself.
std::function<std::string(std::int32_t)> namer(const LoadedModel& loaded);
/// Of --position; without it the last. Throws Error on one outside the text.
Index position_in(const Trace& trace, std::optional<int> given);
/// Of --token; without it the most probable after `position`.
std::int32_t token_or_likely(const LoadedModel& loaded, const Trace& trace, const std::string& given, Index position);

}  // namespace headscope::cli
