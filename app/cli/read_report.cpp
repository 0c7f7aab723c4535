#include "app/cli/read_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/input.h"
#include "core/analysis/edit_probe.h"
#include "core/base/error.h"
#include "core/edits/singular_edit.h"
#include "core/metrics/next_token.h"
#include "viz/scene/framed.h"

namespace headscope::cli {

namespace {
constexpr double picture_width = 1120, picture_height = 720;
}

void ReadTool::add_options(Command&) {}

CaptureSpec ReadTool::capture(const Model&) const {
  return {};
}

void PositionOption::add_to(Command& command) {
  command.add_option("--position", given, "A position, counted from 0 (negative: from the end; default: the last)")
      .type_name("N");
}

Index PositionOption::in(const Trace& trace) const {
  const auto n = static_cast<Index>(trace.tokens.size());
  const Index at = !given ? answer_position(trace).value_or(n - 1) : *given < 0 ? n + *given : *given;
  if (at < 0 || at >= n)
    throw Error("--position", fmt::format("a position from 0 to {} (or -{} to -1)", n - 1, n), std::to_string(*given));
  return at;
}

void HeadOption::add_to(Command& command) {
  command.add_option("--head", given, "One head, as LAYER.HEAD").type_name("L.H");
}

HeadId HeadOption::in(const Trace& trace) const {
  if (given.empty()) throw UsageError("--head is required: LAYER.HEAD such as 1.0");
  const HeadId head = parse_head(given);
  (void)trace.map(head);  // or an Error that says which there are
  return head;
}

void TokenOption::add_to(Command& command) {
  command.add_option("--token", given, "Whose logit (default: the most probable next token); ␣ is a space")
      .type_name("TOKEN");
}

std::int32_t TokenOption::in(const LoadedModel& loaded, const Trace& trace, Index position) const {
  return given.empty() ? most_probable(trace, static_cast<int>(position)).id : answer_token(loaded, given, "--token");
}

void AgainstOption::add_to(Command& command) {
  command.add_option("--against", given, "Take the logit of this token away").type_name("TOKEN");
}

std::optional<std::int32_t> AgainstOption::in(const LoadedModel& loaded) const {
  if (given.empty()) return std::nullopt;
  return answer_token(loaded, given, "--against");
}

void TopOption::add_to(Command& command) {
  command.add_option("--top", count, "How many to list").check(range(1, 100000)).show_default();
}

std::function<std::string(std::int32_t)> namer(const LoadedModel& loaded) {
  return [tokenizer = loaded.tokenizer](std::int32_t id) {
    return tokenizer && id < tokenizer->vocab_size() ? tokenizer->token(id).label : std::to_string(id);
  };
}

ModelWeights weights_of(const ReadRun& run) {
  ModelWeights weights =
      weights_written_with(*run.loaded.model, run.request.edits, static_cast<int>(run.trace->queries().size()));
  if (run.trace->model.stack == Stack::cross) weights.blocks = weights.cross;
  return weights;
}

CaptureSpec with_sites(std::set<SiteKind> sites) {
  CaptureSpec spec;
  spec.sites = std::move(sites);
  return spec;
}

std::function<Scene(const Style&)> picture_of(Matrix matrix, const Trace& trace, double cell) {
  matrix.width = std::max(picture_width, cell * static_cast<double>(trace.tokens.size()));
  matrix.height = matrix.square ? matrix.width : picture_height;
  return [matrix = std::move(matrix), run = describe_run(trace)](const Style& style) {
    return framed(matrix_scene(matrix, style), {matrix.unit, {}, run, {}}, style);
  };
}

}  // namespace headscope::cli
