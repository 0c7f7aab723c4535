// headscope-cli positions: how a model can know where a token stands: numbers on standard output, a picture with -o.

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/table.h"
#include "app/render/picture.h"
#include "app/render/positions_picture.h"
#include "app/render/rotary_picture.h"
#include "core/attention/positions/alibi.h"
#include "core/attention/positions/binary_code.h"
#include "core/attention/positions/dual_chunk.h"
#include "core/attention/positions/learned.h"
#include "core/attention/positions/position_methods.h"
#include "core/attention/positions/sinusoidal.h"
#include "core/attention/positions/t5_bias.h"
#include "core/base/error.h"
#include "core/edits/position_edit.h"
#include "core/model/weights.h"
#include "viz/color/norm.h"
#include "viz/export/pango_text.h"
#include "viz/scene/compose.h"

namespace headscope::cli {

namespace {

struct Options {
  Input input;
  std::string method = "list", out, picture = "dials", scaling = "none", theme = "dark", head = "0.0";
  int row = -1, chunk = 6, context = 10, shift = 0, heads = 8, buckets = 32, max_distance = 128, dimensions = 32,
      count = 16, window = 4;
  std::optional<int> key;
  std::optional<double> base;
  double factor = 4;
  std::uint64_t seed = 1;
  bool both = false;
};

/// One head's queries and keys before rotation, of a run of the model.
struct Vectors {
  Opened opened;
  HeadId head;
  Tensor q, k;  // (token, d_head)
  double scale = 1;
};

Vectors vectors_of(Shell& shell, const Options& options) {
  Vectors v;
  v.head = parse_head(options.head);
  CaptureSpec capture{.all_logits = false};
  capture.maps = MapStorage::none;
  capture.sites = {SiteKind::q, SiteKind::k};
  v.opened = open_input(shell, options.input, capture);
  const ModelConfig& config = v.opened.loaded.model->config();
  if (v.head.layer >= config.dims.layers || v.head.head >= config.dims.heads)
    throw Error("--head", fmt::format("a layer below {} and a head below {}", config.dims.layers, config.dims.heads),
                options.head);
  const Index kv = config.dims.kv_of(v.head.head);
  v.q = v.opened.trace->sites.at({SiteKind::q, v.head.layer}).select(1, v.head.head).copy();
  v.k = v.opened.trace->sites.at({SiteKind::k, v.head.layer}).select(1, kv).copy();
  v.scale = static_cast<double>(score_scale(config, v.head.layer));
  return v;
}

Index inside(int given, const char* option, Index size) {
  const Index at = given < 0 ? size + given : given;
  if (at < 0 || at >= size)
    throw Error(option, fmt::format("a position from 0 to {} (or -{} to -1)", size - 1, size), std::to_string(given));
  return at;
}

void write(Shell& shell, const Options& options, const Scene& scene, const std::string& title,
           const std::string& source) {
  if (options.out.empty()) return;
  const PangoText measure;
  const Look look{theme(options.theme), measure};
  shell.print_line(write_picture(framed(scene, {title, {}, "", {}}, source, look), options.out, {}));
}

void print_list(Shell& shell) {
  Table table({{"method", Table::Align::left}, {"acts on", Table::Align::left}, {"formula", Table::Align::left}});
  for (const PositionMethod& each : position_methods())
    table.add({std::string(each.id), std::string(each.acts_on), std::string(each.formula)});
  shell.print(table.text());
  shell.print_line();
  Table scalings(
      {{"scaling of rope", Table::Align::left}, {"formula", Table::Align::left}, {"source", Table::Align::left}});
  for (const RotaryScalingInfo& each : rotary_scalings())
    scalings.add({std::string(each.id), std::string(each.formula), std::string(each.source)});
  shell.print(scalings.text());
}

RotaryView rotary_view(const Vectors& v, const Options& options) {
  const ModelConfig& config = v.opened.loaded.model->config();
  if (v.q.dim(1) % 2 != 0) throw Error(config.name, "heads of an even width", std::to_string(v.q.dim(1)));
  RotaryView view;
  view.own = config.position == PositionKind::rotary ? config.rotary : RotaryConfig{};
  SetPositions edit;
  edit.method = SetPositions::Method::rope;
  edit.base = options.base;
  if (options.scaling != "none") {
    for (const RotaryScalingInfo& each : rotary_scalings())
      if (each.id == options.scaling) edit.scaling = each.scaling;
    edit.factor = options.factor;
  }
  check(edit, "positions rope");
  view.config = rotary_of(edit, config);
  view.query = inside(options.row, "--row", v.q.dim(0));
  view.key = inside(options.key.value_or(0), "--key", v.k.dim(0));
  view.shift = options.shift;
  view.scale = v.scale;
  view.context = config.context;
  view.parts = rotary_parts(row_of(v.q, view.query), row_of(v.k, view.key));
  view.source = fmt::format("blocks.{}.attn.hook_q[{}, {}, :] · hook_k[{}, …], f32", v.head.layer, view.query,
                            v.head.head, view.key);
  return view;
}

void rope(Shell& shell, const Options& options) {
  const Vectors v = vectors_of(shell, options);
  const RotaryView view = rotary_view(v, options);
  const auto m = static_cast<double>(view.query + view.shift), n = static_cast<double>(view.key + view.shift);
  const std::vector<double> theta = rotary_frequencies(view.config, 2 * view.pairs()), parts = view.split(m, n);
  Table table(
      {{"pair"}, {"theta"}, {"wavelength"}, {"turns_in_context"}, {"query_norm"}, {"key_norm"}, {"angle"}, {"part"}});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RotaryPart& part = view.parts[i];
    const double angle = std::remainder(part.phase + (m - n) * theta[i], 2 * std::numbers::pi) * 180 / std::numbers::pi;
    table.add({std::to_string(i), fmt::format("{:.6g}", theta[i]),
               fmt::format("{:.1f}", 2 * std::numbers::pi / theta[i]),
               fmt::format("{:.3f}", view.context * theta[i] / (2 * std::numbers::pi)),
               fmt::format("{:.3f}", part.query_norm), fmt::format("{:.3f}", part.key_norm),
               fmt::format("{:.1f}", angle), fmt::format("{:+.4f}", parts[i])});
  }
  shell.print(table.text());
  shell.print_line(fmt::format("\nscore at ({}, {}): {:.6f}; at ({}, {}): {:.6f}", view.query, view.key,
                               view.score(static_cast<double>(view.query), static_cast<double>(view.key)),
                               view.query + 100, view.key + 100,
                               view.score(static_cast<double>(view.query + 100), static_cast<double>(view.key + 100))));
  if (options.out.empty()) return;
  const PangoText measure;
  const Look look{theme(options.theme), measure};
  const Scene scene = options.picture == "dials" ? rotary_dials_picture(view, 900, 420, look)
                      : options.picture == "curve"
                          ? score_against_distance(view, std::max<Index>(v.q.dim(0), 128), 900, 320, look)
                      : options.picture == "why" ? why_this_score(view, 900, 220, look)
                      : options.picture == "wavelengths"
                          ? rotary_wavelengths(view, 900, 360, look)
                          : [&] {
                              MatrixMap map = head_scores(v.q, v.k, view.config, RotaryLayout::half_split, v.scale);
                              map.width = map.height = 640;
                              return matrix_map_scene(map, look);
                            }();
  write(shell, options, scene, fmt::format("Layer {} · Head {}: {}", v.head.layer, v.head.head, options.picture),
        view.source);
}

void added(Shell& shell, const Options& options) {
  const PangoText measure;
  const Look look{theme(options.theme), measure};
  if (options.method == "learned") {
    const LoadedModel loaded = load_model(options.input.model_folder(), shell.backend());
    const Tensor table = loaded.model->weights().position_embedding;
    if (!table.defined())
      throw Error(loaded.model->config().name, "a table of learned positions", "rotary positions", "tiny-gpt2 has one");
    const Tensor norms = row_norms(table), likeness = cosine_similarity(table);
    Table rows({{"position"}, {"length"}, {"cosine to the next"}});
    for (Index p = 0; p < table.dim(0); ++p)
      rows.add({std::to_string(p), fmt::format("{:.4f}", norms.at(p)),
                p + 1 < table.dim(0) ? fmt::format("{:.4f}", likeness.at(p, p + 1)) : ""});
    shell.print(rows.text());
    return write(shell, options, learned_picture(table, false, "", {1000, 560}, look),
                 "Learned positions of " + loaded.model->config().name,
                 fmt::format("position embedding, {} × {}", table.dim(0), table.dim(1)));
  }
  const bool binary = options.method == "binary";
  const int columns = binary ? 4 : options.dimensions;
  const Tensor table = binary ? binary_table(options.count, columns) : sinusoidal_positions(0, options.count, columns);
  for (Index p = 0; p < table.dim(0); ++p) {
    std::string line = std::to_string(p);
    for (Index c = 0; c < table.dim(1); ++c)
      line += binary ? fmt::format(" {:.0f}", table.at(p, c)) : fmt::format(" {:.4f}", table.at(p, c));
    shell.print_line(line);
  }
  write(shell, options,
        binary ? binary_picture(options.count, columns, {900, 560}, look)
               : sinusoidal_picture(columns, std::max(options.count, 64), 5, {1000, 760}, look),
        binary ? "Binary positions" : "Sinusoidal positions",
        std::string(find_position_method(options.method)->source));
}

void biases(Shell& shell, const Options& options) {
  const PangoText measure;
  const Look look{theme(options.theme), measure};
  if (options.method == "alibi") {
    Table table({{"head"}, {"slope"}});
    const auto slopes = alibi_slopes(options.heads);
    for (int h = 0; h < options.heads; ++h)
      table.add({std::to_string(h), fmt::format("{:.10g}", slopes[static_cast<std::size_t>(h)])});
    shell.print(table.text());
    return write(shell, options, alibi_picture(options.heads, 0, 64, {1000, 560}, look), "ALiBi",
                 std::string(find_position_method("alibi")->source));
  }
  Table table({{"bucket"}, {"from"}, {"to"}});
  int first = 0;
  for (int d = 0; d <= options.max_distance; ++d) {
    const int bucket = t5_bucket(-d, options.both, options.buckets, options.max_distance),
              next = t5_bucket(-d - 1, options.both, options.buckets, options.max_distance);
    if (next == bucket && d < options.max_distance) continue;
    table.add({std::to_string(bucket), std::to_string(first), d < options.max_distance ? std::to_string(d) : "…"});
    first = d + 1;
  }
  shell.print(table.text());
  write(shell, options, t5_picture(options.buckets, options.max_distance, options.both, {}, 64, {1000, 560}, look),
        "T5 relative bias", std::string(find_position_method("t5")->source));
}

void chunks(Shell& shell, const Options& options) {
  if (options.chunk >= options.context) throw UsageError("--chunk: fewer tokens than --context");
  for (Index i = 0; i < options.count; ++i) {
    std::string line;
    for (Index j = 0; j <= i; ++j)
      line += fmt::format("{:4}", dual_chunk_distance(i, j, options.chunk, options.context));
    shell.print_line(line);
  }
  const PangoText measure;
  const Look look{theme(options.theme), measure};
  write(shell, options, chunk_picture(options.chunk, options.context, options.count, {1000, 560}, look),
        "Dual chunk attention", std::string(find_position_method("chunks")->source));
}

void relative(Shell& shell, const Options& options) {
  const Vectors v = vectors_of(shell, options);
  const PangoText measure;
  const Look look{theme(options.theme), measure};
  const bool shaw = options.method == "shaw";
  if (options.out.empty()) throw UsageError("-o is required: the picture of " + options.method);
  write(shell, options,
        shaw ? shaw_picture(v.q, v.k, v.scale, options.window, options.seed, {1200, 460}, look)
             : transformer_xl_picture(v.q, v.k, v.scale, options.seed, {1200, 800}, look),
        fmt::format("Layer {} · Head {}", v.head.layer, v.head.head),
        fmt::format("learned parts drawn with seed {}", options.seed));
}

void positions(Shell& shell, const Options& options) {
  if (!options.out.empty() && kind_of_file(options.out).value_or(FileKind::csv) == FileKind::csv)
    throw UsageError(fmt::format("-o: expected a file ending in .png or .svg, found \"{}\"", options.out));
  if (options.method == "list") return print_list(shell);
  if (options.method == "rope") return rope(shell, options);
  if (options.method == "shaw" || options.method == "transformer-xl") return relative(shell, options);
  if (options.method == "alibi" || options.method == "t5") return biases(shell, options);
  if (options.method == "chunks") return chunks(shell, options);
  if (options.method == "none")
    throw UsageError("none has no picture: try run --edit \"*: position none\", with and without --mask full");
  added(shell, options);
}

}  // namespace

void add_positions(Command& app, Shell& shell) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("positions", "Ways of knowing where a token stands: rope, alibi, t5, sinusoidal …");
  std::vector<std::string> methods{"list"};
  for (const PositionMethod& each : position_methods()) methods.emplace_back(each.id);
  command.add_option("method", options->method, "Which; list describes them")
      .check(one_of(methods))
      .type_name("METHOD");
  options->input.add_to(command);
  command.add_option("-o,--out", options->out, "A picture of it").type_name("FILE.png|.svg");
  command.add_option("--picture", options->picture, "rope: dials, curve, why, map or wavelengths")
      .check(one_of({"dials", "curve", "why", "map", "wavelengths"}))
      .show_default();
  command.add_option("--head", options->head, "Whose queries and keys").type_name("L.H").show_default();
  command.add_option("--row", options->row, "rope: the query's position (negative: from the end)")
      .type_name("M")
      .show_default();
  command.add_option("--key", options->key, "rope: the key's position").type_name("N");
  command.add_option("--shift", options->shift, "rope: added to both").check(range(0, 1 << 24));
  command.add_option("--base", options->base, "rope: base of the frequencies (default: the model's)");
  std::vector<std::string> scalings;
  for (const RotaryScalingInfo& each : rotary_scalings()) scalings.emplace_back(each.id);
  command.add_option("--scaling", options->scaling, "rope: none, linear, ntk, yarn or llama3").check(one_of(scalings));
  command.add_option("--factor", options->factor, "rope: how far the scaling stretches").show_default();
  command.add_option("--heads", options->heads, "alibi: how many heads").check(range(1, 1024)).show_default();
  command.add_option("--buckets", options->buckets, "t5").check(range(4, 4096)).show_default();
  command.add_option("--max-distance", options->max_distance, "t5").check(range(3, 1 << 20)).show_default();
  command.add_flag("--both", options->both, "t5: later keys have buckets of their own");
  command.add_option("--chunk", options->chunk, "chunks: tokens in one").check(range(1, 1 << 20)).show_default();
  command.add_option("--context", options->context, "chunks: trained length").check(range(2, 1 << 20)).show_default();
  command.add_option("--dimensions", options->dimensions, "sinusoidal").check(range(2, 4096)).show_default();
  command.add_option("--count", options->count, "sinusoidal, binary, chunks: positions")
      .check(range(1, 65536))
      .show_default();
  command.add_option("--window", options->window, "shaw: distances beyond it share an embedding")
      .check(range(1, 4096))
      .show_default();
  command.add_option("--seed", options->seed, "shaw, transformer-xl: of the parts that training would learn");
  command.add_option("--theme", options->theme, "dark, light, projector or print")
      .check(one_of({"dark", "light", "projector", "print"}));
  command.does([options, &shell] {
    if (options->dimensions % 2 != 0) throw UsageError("--dimensions: an even number, sine and cosine of each pair");
    if (options->max_distance <= options->buckets / 2) throw UsageError("--max-distance: more than half of --buckets");
    positions(shell, *options);
  });
}

}  // namespace headscope::cli
