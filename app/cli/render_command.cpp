// headscope-cli render: a picture of one head, of several, or of all, from a model and a text or from a trace file.

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/again.h"
#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/render/caption.h"
#include "app/render/picture.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/trace/words.h"

namespace headscope::cli {

namespace {
struct RenderOptions {
  Input input;
  std::string out, again, scale = "linear", theme = "dark";
  std::vector<std::string> heads;
  std::optional<int> row, key, width, columns;
  std::optional<double> dpi, inches, low, high;
  double threshold = 0.05;
  bool arcs = false, bars = false, patches = false, smooth = false, steps = false, split = false, renormalize = false,
       skip_first = false, no_values = false, words = false, caption = false;
};

/// A position from `first` to before `end`; negative ones count from the end. Throws Error outside.
std::optional<Index> position(std::optional<int> given, const char* option, Index first, Index end) {
  if (!given) return std::nullopt;
  const Index at = *given < 0 ? end + *given : *given;
  if (at < first || at >= end)
    throw Error(option, fmt::format("a position from {} to {} (or -{} to -1)", first, end - 1, end - first),
                std::to_string(*given));
  return at;
}

PictureRequest picture_request(const Trace& trace, const std::vector<HeadId>& chosen, const RenderOptions& options) {
  PictureRequest request;
  request.heads = chosen;
  request.kind = options.arcs      ? PictureRequest::Kind::arcs
                 : options.bars    ? PictureRequest::Kind::bars
                 : options.patches ? PictureRequest::Kind::patches
                 : options.steps   ? PictureRequest::Kind::steps
                 : options.split   ? PictureRequest::Kind::split
                                   : PictureRequest::Kind::map;
  request.scaling = {parse_scale(options.scale == "row" ? "per-row" : options.scale).value(), options.low,
                     options.high};
  if (chosen.size() == 1 || (chosen.empty() && (options.row || options.patches))) {
    if (trace.maps.empty()) throw Error("render", "a trace with attention maps", "none");
    const AttentionMap& map =
        chosen.empty() ? trace.maps.front() : trace.map({chosen.front().layer, chosen.front().head});
    const Index first = map.place().offset;
    request.query = position(options.row, "--row", first, first + map.n_query());
    request.key = position(options.key, "--key", 0, map.n_key());
    // The CLS token is what a picture is read from.
    if (options.patches && !request.query && trace.picture && trace.picture->leading > 0 && !trace.between_texts() &&
        first == 0)
      request.query = 0;
  }
  request.smooth = options.smooth;
  request.threshold = options.threshold;
  request.skip_first = options.skip_first;
  request.renormalize = options.renormalize;
  request.values = !options.no_values;
  request.columns = options.columns.value_or(0);
  return request;
}

void check(const RenderOptions& options, const std::vector<HeadId>& heads) {
  const bool one = heads.size() == 1;
  if (options.arcs + options.bars + options.patches + options.steps + options.split > 1)
    throw UsageError("--arcs, --bars, --patches, --steps and --split are different pictures; choose one");
  if ((options.arcs || options.bars || options.steps || options.split) && !one)
    throw UsageError("--arcs, --bars, --steps and --split need one --head");
  if (options.patches && heads.size() > 1)
    throw UsageError("--patches needs one --head, or none: then all of them over the picture");
  if ((options.row || options.key) && heads.size() > 1)
    throw UsageError("--row and --key need one --head, or none: then the row of that token in every head");
  if (options.row && heads.empty() && options.scale == "row")
    throw UsageError("--row without --head draws the rows of all heads on one scale, linear or log");
  if (options.smooth && !options.patches) throw UsageError("--smooth is for --patches");
  if (options.words && options.patches) throw UsageError("--patches are no words; leave --words away");
  if (options.words && (options.steps || options.split))
    throw UsageError("--steps and --split show scores, which tokens have and words have not; leave --words away");
  if (options.split && !options.key) throw UsageError("--split needs --row and --key: the score to take apart");
  if ((options.steps || options.split) && options.input.from_trace())
    throw UsageError("--steps and --split need the scores, which only a run of the model has; give --model and a text");
  if (options.bars && !options.row) throw UsageError("--bars needs --row: the query whose weights are drawn");
  if (options.key && !options.row) throw UsageError("--key needs --row: together they name a cell");
  if (options.arcs && options.scale != "linear")
    throw UsageError("--arcs draws weights as they are; --scale is for maps");
  if (options.width && (options.dpi || options.inches)) throw UsageError("--width excludes --dpi and --inches");
  if (options.inches && !options.dpi) throw UsageError("--inches needs --dpi");
}

/// What the window would show of it.
HeadView view_of(PictureRequest::Kind kind) {
  switch (kind) {
    case PictureRequest::Kind::map:
      return HeadView::map;
    case PictureRequest::Kind::arcs:
      return HeadView::arcs;
    case PictureRequest::Kind::bars:
      return HeadView::row;
    case PictureRequest::Kind::patches:
      return HeadView::picture;
    case PictureRequest::Kind::steps:
      return HeadView::steps;
    case PictureRequest::Kind::split:
      return HeadView::qk;
  }
  return HeadView::map;
}

PictureRecipe recipe_of(const Console& console, const RenderOptions& options, const PictureRequest& request) {
  PictureRecipe recipe = recipe_of(console, options.out, &options.input);
  if (!recipe.session) return recipe;
  auto& [document, view, transcript, window, note] = *recipe.session;
  if (!request.heads.empty()) document.selected = request.heads.front();
  view.head_view = request.heads.empty() && request.query ? HeadView::heads : view_of(request.kind);
  view.scale = request.scaling.scale;
  view.theme = options.theme == "print" ? "light" : options.theme;
  view.first_token = request.renormalize  ? FirstToken::renormalize
                     : request.skip_first ? FirstToken::hide
                                          : FirstToken::show;
  view.text_unit = options.words ? TextUnit::words : TextUnit::tokens;
  view.arcs_threshold = request.threshold;
  view.smooth_picture = request.smooth;
  if (!options.words) document.query = request.query, document.key = request.key;  // those count words
  return recipe;
}

void render(Console& console, const RenderOptions& options) {
  if (!options.again.empty() && console.pictures_only)
    throw UsageError("--again: a picture drawn from another's recipe");
  if (!options.again.empty()) return draw_again(console, options.again, options.out);
  if (options.out.empty() && !options.caption)
    throw UsageError("-o is required: the picture to write, .png, .svg or .pdf");
  const auto kind = kind_of_file(options.out);
  if (!kind && !options.out.empty())
    throw UsageError(fmt::format("-o: expected a file ending in .png, .svg, .pdf or .csv, found \"{}\"", options.out));
  std::vector<HeadId> heads;
  for (const std::string& each : options.heads) heads.push_back(parse_head(each));
  check(options, heads);
  if (!options.out.empty()) expect_writable(options.out);
  CaptureSpec capture{.all_logits = false};
  if (options.steps || options.split) capture.maps = MapStorage::factored;
  Opened opened = open_input(console, options.input, capture, options.patches);
  if (options.words)
    opened.trace =
        std::make_shared<const Trace>(in_words(*opened.trace, word_groups(opened.trace->tokens), [&](HeadId head) {
          return heads.empty() || std::ranges::find(heads, head) != heads.end();
        }));
  if (kind == FileKind::csv && heads.size() != 1 && !(heads.empty() && options.row))
    throw UsageError("a .csv holds one map: give one --head, or --row alone for one token in all heads");
  PictureRequest request = picture_request(*opened.trace, heads, options);
  if (opened.loaded.model) request.rotary = opened.loaded.model->config().turns_halves();
  request.spoken = opened.spoken;
  const std::string model_note = model_note_of(options.input, opened);
  if (!options.out.empty())
    console.print_line(export_picture(*opened.trace, request, options.theme, options.out,
                                      {options.width, options.inches, options.dpi},
                                      note_of(console, recipe_of(console, options, request), model_note)));
  if (options.caption)
    console.print_line(caption_of(*opened.trace, request,
                                  options.input.from_trace() ? std::nullopt : std::optional(options.input.edits()),
                                  options.input.from_trace() ? "" : model_note));
}
}  // namespace

void add_render(Command& app, Console& console) {
  auto options = std::make_shared<RenderOptions>();
  Command command = app.add_subcommand("render", "Picture of one head, of several, or of all, as PNG, SVG or PDF");
  options->input.add_to(command, {.trace = true});
  command.add_option("-o,--out", options->out, "The file to write; .csv gives the numbers of one head")
      .type_name("FILE.png|.svg|.pdf|.csv");
  command
      .add_option("--again", options->again,
                  "A picture that Headscope drew, here or in the window: draws it once more from what its file "
                  "remembers, and says whether it is the same; without -o only that")
      .type_name("FILE");
  command.add_option("--head", options->heads, "Heads to draw, as LAYER.HEAD; none draws the grid of all")
      .delimiter(',')
      .type_name("L.H,…");
  command.add_flag("--words", options->words,
                   "Words instead of tokens: the sum over a word's tokens as keys, the mean as queries; --row and "
                   "--key count words");
  command.add_flag("--arcs", options->arcs, "Threads from queries to keys instead of a map");
  command.add_flag("--bars", options->bars, "The weights of one query (--row) as bars");
  command.add_flag("--patches", options->patches,
                   "Of a vision transformer: the weights of one query (--row; without it the CLS token's) over the "
                   "picture");
  command.add_flag("--smooth", options->smooth, "With --patches: weights run from one patch to the next");
  command.add_flag("--steps", options->steps, "Scores, mask and softmax side by side");
  command.add_flag("--split", options->split, "The score of one cell (--row, --key) by dimension or rotary pair");
  command
      .add_option(
          "--row", options->row,
          "A query to point out, counted from 0 (negative: from the end); without --head: its row in every head")
      .type_name("Q");
  command.add_option("--key", options->key, "With --row: the cell to point out").type_name("K");
  command.add_option("--threshold", options->threshold, "Threads below this weight are not drawn")
      .check(range(0.0, 1.0))
      .show_default();
  command.add_flag("--skip-first", options->skip_first,
                   "Leave out weights on the first token, where sinks drown the rest");
  command.add_flag("--renormalize", options->renormalize,
                   "Leave out weights on the first token and divide each row by the rest");
  command.add_option("--columns", options->columns, "Maps beside one another when several heads are drawn")
      .check(range(1, 64));
  command
      .add_option("--scale", options->scale,
                  "How weights become colours: linear, log or row (each row by its own largest)")
      .check(one_of({"linear", "log", "row"}))
      .type_name("SCALE")
      .show_default();
  command.add_option("--low", options->low, "Weight at the lower end of the colours");
  command.add_option("--high", options->high, "Weight at the upper end of the colours");
  command.add_option("--theme", options->theme, "dark, light, projector or print")
      .check(one_of({"dark", "light", "projector", "print"}))
      .type_name("THEME")
      .show_default();
  command.add_flag("--caption", options->caption,
                   "Prints the words that belong under the picture: model, text, head, scale, first token, edits");
  command.add_flag("--no-values", options->no_values, "No numbers inside cells");
  command.add_option("--width", options->width, "Width of the picture in pixels")
      .check(range(1, 30000))
      .type_name("PX");
  command.add_option("--dpi", options->dpi, "Pixels per inch").check(range(1.0, 10000.0)).type_name("DPI");
  command.add_option("--inches", options->inches, "With --dpi: width on paper")
      .check(range(0.1, 1000.0))
      .type_name("W");
  command.does([options, &console] { render(console, *options); });
}

}  // namespace headscope::cli
