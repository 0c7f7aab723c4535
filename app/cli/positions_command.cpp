// headscope-cli positions: how a model can know where a token stands: numbers on standard output, a picture with -o.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/render/disentangled_picture.h"
#include "app/render/past_context_picture.h"
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
#include "core/trace/mixer_words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/framed.h"

namespace headscope::cli {

namespace {

struct PositionsOptions {
  Input input;
  PictureOutput output;
  std::string method = "list", picture = "dials", scaling = "none", head = "0.0";
  int row = -1, chunk = 6, context = 10, shift = 0, heads = 8, buckets = 32, max_distance = 128, dimensions = 32,
      count = 16, window = 4;
  std::optional<int> key;
  std::optional<double> base;
  double factor = 4;
  std::string ramp = "whole";
  std::uint64_t seed = 1;
  bool both = false;
};

/// One head's queries and keys before rotation, of a run of the model.
struct Vectors {
  Opened opened;
  HeadId head;
  Tensor q, k;  // (token, d_head)
  double scale = 1;
  std::shared_ptr<const DisentangledScores> disentangled;  // of a model that has them
};

Vectors vectors_of(Console& console, const PositionsOptions& options) {
  Vectors v;
  v.head = parse_head(options.head);
  CaptureSpec capture{.all_logits = false};
  capture.maps = options.method == "deberta" ? MapStorage::factored : MapStorage::none;
  capture.sites = {SiteKind::q, SiteKind::k};
  v.opened = open_input(console, options.input, capture);
  const ModelConfig& config = v.opened.loaded.model->config();
  if (v.head.layer >= config.dims.layers || v.head.head >= config.dims.heads)
    throw Error("--head", fmt::format("a layer below {} and a head below {}", config.dims.layers, config.dims.heads),
                options.head);
  if (!config.dims.attends(v.head.layer))
    throw Error("--head", "a layer that attends",
                fmt::format("layer {} of {}, {}", v.head.layer, config.name, mixer_words(config.dims, v.head.layer)));
  if (config.qk_norm != QkNorm::none)
    throw Error(config.name, "queries and keys that are turned as the projections give them", "a norm between",
                "the window's page of rotary positions shows them behind it");
  if (config.position == PositionKind::rotary && config.vision)
    throw Error(config.name, "tokens of a text, which stand one behind the other",
                "patches, turned by their row and their column");
  if (config.position == PositionKind::rotary && !config.turns(v.head.layer))
    throw Error("--head", "a layer that rotates",
                fmt::format("layer {}, which {} leaves without positions", v.head.layer, config.name));
  const Index kv = config.dims.kv_of(v.head.head, v.head.layer);
  const auto of = [&](SiteKind kind, Index head) {
    return turning_part(v.opened.trace->sites.at({kind, v.head.layer}).select(1, head).copy(),
                        config.rotary_of(v.head.layer));
  };
  v.q = of(SiteKind::q, v.head.head);
  v.k = of(SiteKind::k, kv);
  v.scale = static_cast<double>(score_scale(config, v.head.layer));
  if (config.distances && options.method == "deberta" && v.opened.trace->map(v.head).is_factored())
    v.disentangled = std::make_shared<const DisentangledScores>(disentangled_scores(
        v.opened.trace->map(v.head), v.scale, "the model's own queries, keys and vectors of distances"));
  return v;
}

Index inside(int given, const char* option, Index size) {
  const Index at = given < 0 ? size + given : given;
  if (at < 0 || at >= size)
    throw Error(option, fmt::format("a position from 0 to {} (or -{} to -1)", size - 1, size), std::to_string(given));
  return at;
}

using Draw = std::function<Scene(const Style&)>;
Draw titled(std::string title, std::string source, Draw draw) {
  return [title = std::move(title), source = std::move(source), draw = std::move(draw)](const Style& style) {
    return framed(draw(style), {title, {}, "", {}}, style, source);
  };
}

std::string source_of(const char* method) {
  return std::string(find_position_method(method)->source);
}

Report list() {
  Report out;
  auto& methods = out.table("", {"method", "acts on", "formula"});
  for (const PositionMethod& each : position_methods()) methods.add({each.id, each.acts_on, each.formula});
  auto& scalings = out.table("", {"scaling of rope", "formula", "source"});
  for (const RotaryScalingInfo& each : rotary_scalings()) scalings.add({each.id, each.formula, each.source});
  return out;
}

RotaryConfig::Ramp ramp_of(const PositionsOptions& options) {
  return std::ranges::find(yarn_ramps(), options.ramp, &RampInfo::id)->ramp;
}

RotaryView rotary_view(const Vectors& v, const PositionsOptions& options) {
  const ModelConfig& config = v.opened.loaded.model->config();
  if (v.q.dim(1) % 2 != 0) throw Error(config.name, "heads of an even width", std::to_string(v.q.dim(1)));
  RotaryView view;
  view.own = config.position == PositionKind::rotary ? config.rotary_of(v.head.layer) : RotaryConfig{};
  SetPositions edit;
  edit.method = SetPositions::Method::rope;
  edit.base = options.base;
  if (options.scaling != "none") {
    for (const RotaryScalingInfo& each : rotary_scalings())
      if (each.id == options.scaling) edit.scaling = each.scaling;
    edit.factor = options.factor;
    edit.ramp = ramp_of(options);
  }
  check(edit, "positions rope");
  view.own = in_text(view.own, v.k.dim(0));
  view.config = in_text(rotary_of(edit, config, v.head.layer), v.k.dim(0));
  view.query = inside(options.row, "--row", v.q.dim(0));
  view.key = inside(options.key.value_or(0), "--key", v.k.dim(0));
  view.shift = options.shift;
  view.scale = v.scale;
  view.causal = config.causal;
  view.context = config.context;
  view.parts = rotary_parts(row_of(v.q, view.query), row_of(v.k, view.key));
  view.source =
      fmt::format("blocks.{}.attn.hook_q[{}, {}, :{}] · hook_k[{}, …], f32{}", v.head.layer, view.query, v.head.head,
                  v.q.dim(1) < config.dims.widths_of(v.head.layer).d_head ? std::to_string(v.q.dim(1)) : "", view.key,
                  v.q.dim(1) < config.dims.widths_of(v.head.layer).d_head ? ", the dimensions that turn" : "");
  return view;
}

Report rope(Console& console, const PositionsOptions& options) {
  const Vectors v = vectors_of(console, options);
  const RotaryView view = rotary_view(v, options);
  const auto m = static_cast<double>(view.query + view.shift), n = static_cast<double>(view.key + view.shift);
  const std::vector<double> theta = rotary_frequencies(view.config, 2 * view.pairs()), parts = view.split(m, n);
  Report out;
  auto& rows = out.table("", {"pair",
                              {"theta", "theta", "{:.6g}"},
                              {"wavelength", "wavelength", "{:.1f}"},
                              {"turns_in_context", "turns_in_context", "{:.3f}"},
                              {"query_norm", "query_norm", "{:.3f}"},
                              {"key_norm", "key_norm", "{:.3f}"},
                              {"angle", "angle", "{:.1f}"},
                              {"part", "part", "{:+.4f}"}});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RotaryPart& part = view.parts[i];
    rows.add({i, theta[i], 2 * std::numbers::pi / theta[i], view.context * theta[i] / (2 * std::numbers::pi),
              part.query_norm, part.key_norm,
              std::remainder(part.phase + (m - n) * theta[i], 2 * std::numbers::pi) * 180 / std::numbers::pi,
              parts[i]});
  }
  out.line(fmt::format("score at ({}, {}): {:.6f}; at ({}, {}): {:.6f}", view.query, view.key,
                       view.score(static_cast<double>(view.query), static_cast<double>(view.key)), view.query + 100,
                       view.key + 100,
                       view.score(static_cast<double>(view.query + 100), static_cast<double>(view.key + 100))));
  out.picture_note = model_note_of(options.input, v.opened);
  out.picture = titled(fmt::format("{}: {}", head_title(v.head), options.picture), view.source,
                       [v, view, picture = options.picture](const Style& style) {
                         if (picture == "dials") return rotary_dials_picture(view, 900, 420, style);
                         if (picture == "curve")
                           return score_against_distance(view, std::max<Index>(v.q.dim(0), 128), 900, 320, style);
                         if (picture == "why") return why_this_score(view, 900, 220, style);
                         if (picture == "wavelengths") return rotary_wavelengths(view, 900, 360, style);
                         MatrixMap map =
                             head_scores(v.q, v.k, view.config, RotaryLayout::half_split, v.scale, view.causal);
                         map.width = map.height = 640;
                         return matrix_map_scene(map, style);
                       });
  return out;
}

Report learned(Console& console, const PositionsOptions& options) {
  const LoadedModel loaded = load_model(options.input.model_folder(), console.backend());
  const Tensor table = loaded.model->weights().position_embedding;
  if (!table.defined())
    throw Error(loaded.model->config().name, "a table of learned positions", "rotary positions", "tiny-gpt2 has one");
  const Tensor norms = row_norms(table), likeness = cosine_similarity(table);
  Report out;
  out.picture_note = model_note_of(options.input, loaded.model->config().name);
  auto& rows = out.table("", {"position", {"length", "length", "{:.4f}"}, {"", "cosine to the next", "{:.4f}"}});
  for (Index p = 0; p < table.dim(0); ++p)
    rows.add({p, norms.at(p), p + 1 < table.dim(0) ? Cell(likeness.at(p, p + 1)) : Cell()});
  out.picture =
      titled("Learned positions of " + loaded.model->config().name,
             fmt::format("position embedding, {} × {}", table.dim(0), table.dim(1)), [table](const Style& style) {
               return learned_picture(table, false, "", {1000, 560}, style);
             });
  return out;
}

/// Binary or sinusoidal.
Report added(const PositionsOptions& options) {
  const bool binary = options.method == "binary";
  const int count = options.count, columns = binary ? 4 : options.dimensions;
  const Tensor table = binary ? binary_table(count, columns) : sinusoidal_positions(0, count, columns);
  Report out;
  for (Index p = 0; p < table.dim(0); ++p) {
    std::string line = std::to_string(p);
    for (Index c = 0; c < table.dim(1); ++c) line += fmt::format(" {:.{}f}", table.at(p, c), binary ? 0 : 4);
    out.line(line);
  }
  out.picture = titled(binary ? "Binary positions" : "Sinusoidal positions", source_of(options.method.c_str()),
                       [=](const Style& style) {
                         return binary ? binary_picture(count, columns, {900, 560}, style)
                                       : sinusoidal_picture(columns, std::max(count, 64), 5, {1000, 760}, style);
                       });
  return out;
}

Report alibi(const PositionsOptions& options) {
  Report out;
  auto& rows = out.table("", {"head", {"slope", "slope", "{:.10g}"}});
  const auto slopes = alibi_slopes(options.heads);
  for (std::size_t h = 0; h < slopes.size(); ++h) rows.add({h, slopes[h]});
  out.picture = titled("ALiBi", source_of("alibi"), [heads = options.heads](const Style& style) {
    return alibi_picture(heads, 0, 64, {1000, 560}, style);
  });
  return out;
}

Report t5(const PositionsOptions& options) {
  Report out;
  auto& rows = out.table("", {"bucket", "from", for_people("to")});
  int first = 0;
  for (int d = 0; d <= options.max_distance; ++d) {
    const int bucket = t5_bucket(-d, options.both, options.buckets, options.max_distance),
              next = t5_bucket(-d - 1, options.both, options.buckets, options.max_distance);
    if (next == bucket && d < options.max_distance) continue;
    rows.add({bucket, first, d < options.max_distance ? std::to_string(d) : "…"});
    first = d + 1;
  }
  out.picture =
      titled("T5 relative bias", source_of("t5"),
             [buckets = options.buckets, most = options.max_distance, both = options.both](const Style& style) {
               return t5_picture(buckets, most, both, {}, 64, {1000, 560}, style);
             });
  return out;
}

Report chunks(const PositionsOptions& options) {
  const int chunk = options.chunk, context = options.context, count = options.count;
  if (chunk >= context) throw UsageError("--chunk: fewer tokens than --context");
  Report out;
  for (Index i = 0; i < count; ++i) {
    std::string line;
    for (Index j = 0; j <= i; ++j) line += fmt::format("{:4}", dual_chunk_distance(i, j, chunk, context));
    out.line(line);
  }
  out.picture = titled("Dual chunk attention", source_of("chunks"), [=](const Style& style) {
    return chunk_picture(chunk, context, count, {1000, 560}, style);
  });
  return out;
}

/// Shaw's or Transformer-XL's: a picture alone.
Report relative(Console& console, const PositionsOptions& options) {
  const Vectors v = vectors_of(console, options);
  if (!options.output.wanted()) throw UsageError("-o is required: the picture of " + options.method);
  Report out;
  out.picture_note = model_note_of(options.input, v.opened);
  out.picture =
      titled(head_title(v.head), fmt::format("learned parts drawn with seed {}", options.seed),
             [v, shaw = options.method == "shaw", window = options.window, seed = options.seed](const Style& style) {
               return shaw ? shaw_picture(v.q, v.k, v.scale, window, seed, {1200, 460}, style)
                           : transformer_xl_picture(v.q, v.k, v.scale, seed, {1200, 800}, style);
             });
  return out;
}

/// DeBERTa's three products: the model's own, or with tables that are drawn. The printed row is --row's.
Report disentangled(Console& console, const PositionsOptions& options) {
  const Vectors v = vectors_of(console, options);
  const auto scores = std::make_shared<const DisentangledScores>(
      v.disentangled ? *v.disentangled
                     : drawn_disentangled(v.q, v.k, v.scale, std::max(2, options.window), options.seed));
  const Index row = inside(options.row, "--row", scores->contents.dim(0));
  Report out;
  auto& cells = out.table("", {"key",
                               {"content_to_content", "content→content", "{:.4f}"},
                               {"content_to_position", "content→position", "{:.4f}"},
                               {"position_to_content", "position→content", "{:.4f}"},
                               {"score", "score", "{:.4f}"},
                               "distance_row"});
  for (Index key = 0; key < scores->contents.dim(1); ++key) {
    const double a = scores->contents.at(row, key), b = scores->to_position.at(row, key),
                 c = scores->from_position.at(row, key);
    cells.add({key, a, b, c, a + b + c, static_cast<Index>(scores->row.at(row, key))});
  }
  out.line(fmt::format("row {} of head {}; {}", row, to_string(v.head), scores->source));
  out.picture_note = model_note_of(options.input, v.opened);
  out.picture = titled(head_title(v.head), scores->source, [scores](const Style& style) {
    return disentangled_picture(*scores, {1200, 800}, style);
  });
  return out;
}

/// Loss by position of texts past the trained length.
Report past(Console& console, const PositionsOptions& options) {
  const std::filesystem::path folder = options.input.model_folder();
  const LoadedModel loaded = load_model(folder, console.backend());
  RunRequest request;
  std::vector<std::int32_t> own;
  if (options.input.has_text()) {
    request = options.input.request();
    own = ids_of_any_length(loaded, request, console.stop());
  }
  request.edits = options.input.edits();
  const PastContextSettings settings{
      .base = options.base.value_or(0), .factor = options.factor, .ramp = ramp_of(options)};
  const auto run = std::make_shared<LongRun>(
      past_context(loaded, folder, request, own, settings, Ctx{console.backend(), nullptr, console.stop()}));
  if (!run->refusal.empty())
    throw Error(loaded.model->config().name, "a text past the trained length",
                own.empty() ? "none" : fmt::format("{} tokens", own.size()), run->refusal);
  Report out;
  out.line(run->source);
  std::vector<Column> columns{"method"};
  for (std::size_t part = 0; part < run->lines.front().by_part.size(); ++part) {
    const std::string title = fmt::format("{}–{}", part * static_cast<std::size_t>(run->context),
                                          (part + 1) * static_cast<std::size_t>(run->context));
    columns.push_back({title, title, "{:.3f}"});
  }
  auto& rows = out.table("", columns);
  for (const LongRun::Line& line : run->lines) {
    std::vector<Cell> row{line.title};
    for (const double loss : line.by_part) row.push_back(std::isnan(loss) ? Cell() : Cell(loss));
    rows.add(std::move(row));
  }
  out.line(past_context_words(*run));
  out.picture = titled("Past the trained length", run->source, [run](const Style& style) {
    return past_context_picture(*run, {900, 760}, style);
  });
  return out;
}

Report naive(Console& console, const PositionsOptions& options) {
  const LoadedModel loaded = load_model(options.input.model_folder(), console.backend());
  const auto codes = std::make_shared<NaiveCodes>(naive_codes(*loaded.model));
  Report out;
  std::vector<Column> columns{"position"};
  for (const std::string_view title : NaiveCodes::titles)
    columns.push_back({std::string(title), std::string(title), "{:.4f}"});
  auto& rows = out.table("", columns);
  for (std::size_t i = 0; i < codes->positions.size(); ++i)
    rows.add({codes->positions[i], codes->likeness[0][i], codes->likeness[1][i], codes->likeness[2][i]});
  out.line(naive_words(*codes));
  out.picture = titled("Counting, and 0 … 1", source_of("naive"), [codes](const Style& style) {
    return naive_picture(*codes, {900, 680}, style);
  });
  return out;
}

Report positions_report(Console& console, const PositionsOptions& options) {
  if (options.method == "list") return list();
  if (options.method == "rope") return rope(console, options);
  if (options.method == "shaw" || options.method == "transformer-xl") return relative(console, options);
  if (options.method == "deberta") return disentangled(console, options);
  if (options.method == "alibi") return alibi(options);
  if (options.method == "t5") return t5(options);
  if (options.method == "chunks") return chunks(options);
  if (options.method == "learned") return learned(console, options);
  if (options.method == "past") return past(console, options);
  if (options.method == "naive") return naive(console, options);
  if (options.method == "none")
    throw UsageError("none has no picture: try run --edit \"*: position none\", with and without --mask full");
  return added(options);
}

}  // namespace

void add_positions(Command& app, Console& console) {
  auto options = std::make_shared<PositionsOptions>();
  Command command =
      app.add_subcommand("positions", "Ways of knowing where a token stands: rope, alibi, t5, sinusoidal …");
  std::vector<std::string> methods{"list"};
  for (const PositionMethod& each : position_methods()) methods.emplace_back(each.id);
  command.add_option("method", options->method, "Which; list describes them")
      .check(one_of(methods))
      .type_name("METHOD");
  options->input.add_to(command, {.part = false});
  options->output.add_to(command, "A picture of it");
  command.add_option("--picture", options->picture, "rope: dials, curve, why, map or wavelengths")
      .check(one_of({"dials", "curve", "why", "map", "wavelengths"}))
      .show_default();
  command.add_option("--head", options->head, "Whose queries and keys").type_name("L.H").show_default();
  command.add_option("--row", options->row, "rope, deberta: the query's position (negative: from the end)")
      .type_name("M")
      .show_default();
  command.add_option("--key", options->key, "rope: the key's position").type_name("N");
  command.add_option("--shift", options->shift, "rope: added to both").check(range(0, 1 << 24));
  command.add_option("--base", options->base, "rope: base of the frequencies (default: the model's)");
  std::vector<std::string> scalings;
  for (const RotaryScalingInfo& each : rotary_scalings()) scalings.emplace_back(each.id);
  command.add_option("--scaling", options->scaling, "rope: none, linear, ntk, yarn or llama3").check(one_of(scalings));
  command.add_option("--factor", options->factor, "rope: how far the scaling stretches").show_default();
  std::vector<std::string> ramps;
  for (const RampInfo& each : yarn_ramps()) ramps.emplace_back(each.id);
  command
      .add_option("--ramp", options->ramp,
                  "yarn: its ramp along whole pairs (as transformers does), pairs, or turns (the paper)")
      .check(one_of(ramps))
      .show_default();
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
  command.add_option("--window", options->window, "shaw, deberta: distances beyond it share an embedding")
      .check(range(1, 4096))
      .show_default();
  command.add_option("--seed", options->seed, "shaw, transformer-xl, deberta: of the parts that training would learn");
  command.does([options, &console] {
    if (options->dimensions % 2 != 0) throw UsageError("--dimensions: an even number, sine and cosine of each pair");
    if (options->max_distance <= options->buckets / 2) throw UsageError("--max-distance: more than half of --buckets");
    options->output.check();
    const Report report = positions_report(console, *options);
    console.print(report.printed(Form::text));
    if (report.picture) options->output.write(console, report.picture, &options->input, report.picture_note);
  });
}

}  // namespace headscope::cli
