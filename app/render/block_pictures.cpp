#include "app/render/block_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/base/words.h"
#include "viz/scene/cell_text.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
void set_stage_ticks(LineChart& chart, const ResidualStream& stream) {
  for (std::size_t s = 0; s < stream.stages.size(); ++s) {
    chart.x_ticks.push_back(static_cast<double>(s));
    chart.x_labels.push_back(said(stream.stages[s].name));
  }
}

ChartSeries stage_means(std::string title, Color color, const ResidualStream& stream) {
  ChartSeries line{std::move(title), color, {}, {}};
  for (Index s = 0; s < stream.norm.dim(0); ++s) {
    line.x.push_back(static_cast<double>(s));
    line.y.push_back(ResidualStream::mean(stream.norm, s));
  }
  return line;
}

std::string length(double value) {
  return "‖·‖ " + short_number(value, 4);
}
}  // namespace

LineChart stream_chart(const ResidualStream& stream, std::optional<Index> position, const Style& style) {
  LineChart chart;
  chart.y_title = said("‖x‖ of the residual stream, embedding → last block");
  chart.y_low = 0;
  chart.grid = chart.points = true;
  set_stage_ticks(chart, stream);
  chart.series.push_back(stage_means(said("mean"), style.theme.accent, stream));
  if (position) {
    ChartSeries own{say("position {}", *position), style.theme.muted, {}, {}};
    for (Index s = 0; s < stream.norm.dim(0); ++s) {
      own.x.push_back(static_cast<double>(s));
      own.y.push_back(static_cast<double>(stream.norm.at(s, *position)));
    }
    chart.series.push_back(std::move(own));
  }
  return chart;
}

Matrix stream_matrix(const ResidualStream& stream, std::shared_ptr<const Trace> trace) {
  Matrix out;
  out.values = stream.norm;
  for (const LogitLens::Stage& stage : stream.stages) out.rows.push_back(said(stage.name));
  out.tokens = std::move(trace);
  out.row_title = said("stage ↓");
  out.column_title = said("position →");
  out.unit = said("‖x‖ of the residual stream");
  std::vector<std::string> sites;
  for (const LogitLens::Stage& stage : stream.stages) {
    const std::string_view site = info(stage.site.kind).pattern;
    std::string last(site.substr(site.rfind('.') + 1));
    if (std::ranges::find(sites, last) == sites.end()) sites.push_back(std::move(last));
  }
  out.provenance = say("Euclidean norm at every position of {}", fmt::join(sites, ", "));
  out.low = 0;
  return out;
}

LineChart added_chart(const ResidualStream& stream, bool cosine, const Style& style) {
  LineChart chart;
  chart.y_title =
      cosine ? said("cosine of what is added with the stream, mean") : said("‖what is added‖, mean over positions");
  chart.grid = chart.points = true;
  if (!cosine) chart.y_low = 0;
  ChartSeries lines[] = {{said("attention"), style.theme.query, {}, {}},
                         {"MLP", style.theme.value, {}, {}},
                         {said("the layer's own input"), style.theme.key, {}, {}},
                         {said("scale of all"), style.theme.muted, {}, {}},
                         {said("convolution"), style.theme.key, {}, {}}};  // as ResidualStream::Part::Kind
  for (std::size_t p = 0; p < stream.parts.size(); ++p) {
    const ResidualStream::Part& part = stream.parts[p];
    ChartSeries& line = nth(lines, part.kind);
    line.x.push_back(part.layer);
    line.y.push_back(ResidualStream::mean(cosine ? stream.cosine : stream.added, static_cast<Index>(p)));
    if (part.kind == ResidualStream::Part::Kind::attention) chart.x_ticks.push_back(part.layer);
  }
  chart.x_title = said("layer");
  for (ChartSeries& line : lines)
    if (!line.x.empty()) chart.series.push_back(std::move(line));
  return chart;
}

LineChart placement_chart(const NormPlacement& found, const Style& style) {
  LineChart chart;
  chart.y_title = said("mean ‖x‖ by depth");
  chart.y_low = 0;
  chart.grid = chart.points = true;
  set_stage_ticks(chart, found.pre.stream);
  chart.series = {stage_means(said("norm before"), style.theme.accent, found.pre.stream),
                  stage_means(said("norm behind"), style.theme.key, found.post.stream)};
  return chart;
}

FlowDiagram placement_diagram(const NormPlacement& found, const ModelConfig& config, int layer, Index position) {
  const bool mlp = config.dims.has_mlp(layer);
  const std::string norm = config.norm == NormKind::layer_norm ? "LayerNorm"
                           : config.norm == NormKind::rms_norm ? "RMSNorm"
                                                               : said("no norm");
  const auto step = [&](const NormPlacement::Run& run, FlowStep::Kind kind, std::string text, SiteKind site,
                        const char* formula) {
    const Tensor row = run.trace->sites.at({site, layer}).select(0, position).packed();
    const double norm_here = norm_of(row.values());
    return FlowStep{kind, std::move(text), length(norm_here),
                    say("{}[{}] = {}, Euclidean norm", name(Site{site, layer}), position, formula), norm_here};
  };
  const auto bare = [](FlowStep::Kind kind, std::string text, std::string why) {
    return FlowStep{kind, std::move(text), "", std::move(why)};
  };
  using Kind = FlowStep::Kind;
  FlowColumn pre{said("Norm before each part (as the model is)"), said("x + part(norm(x))"), {}, {}};
  const NormPlacement::Run& a = found.pre;
  pre.steps = {step(a, Kind::value, "x", SiteKind::resid_pre, said("the stream entering the block")),
               step(a, Kind::norm, norm, SiteKind::ln1_normalized, "norm(x)"),
               step(a, Kind::part, said("Attention"), SiteKind::attn_out, said("attention(norm(x))")),
               step(a, Kind::sum, "", mlp ? SiteKind::resid_mid : SiteKind::resid_post, said("x + attention"))};
  pre.past = {{0, 3}};
  if (mlp) {
    pre.steps.push_back(step(a, Kind::norm, norm, SiteKind::ln2_normalized, "norm(x)"));
    pre.steps.push_back(step(a, Kind::part, "MLP", SiteKind::mlp_out, "MLP(norm(x))"));
    pre.steps.push_back(step(a, Kind::sum, "", SiteKind::resid_post, "x + MLP"));
    pre.past.emplace_back(3, 6);
  }
  FlowColumn post{
      said("Norm behind each sum (moved)"), said("norm(x + part(x)), same weights, not trained so"), {}, {}};
  const NormPlacement::Run& b = found.post;
  post.steps = {
      step(b, Kind::value, "x", SiteKind::resid_pre, said("the stream entering the block")),
      step(b, Kind::part, said("Attention"), SiteKind::attn_out, said("attention(x)")),
      bare(Kind::sum, "", said("x + attention(x)")),
      step(b, Kind::norm, norm, mlp ? SiteKind::resid_mid : SiteKind::resid_post, said("norm(x + attention)"))};
  post.past = {{0, 2}};
  if (mlp) {
    post.steps.push_back(step(b, Kind::part, "MLP", SiteKind::mlp_out, "MLP(x)"));
    post.steps.push_back(bare(Kind::sum, "", "x + MLP(x)"));
    post.steps.push_back(step(b, Kind::norm, norm, SiteKind::resid_post, said("norm(x + MLP)")));
    post.past.emplace_back(3, 5);
  }
  return {{std::move(pre), std::move(post)}};
}

LineChart stack_chart(const RandomStacks& found, StackNumber what, const Style& style) {
  static constexpr const char* titles[] = {to_say("mean ‖x‖ leaving block i"),
                                           to_say("‖∂loss/∂x‖ of the stream leaving block i"),
                                           to_say("‖∂loss/∂W‖ of the MLP's output matrix in block i")};
  LineChart chart;
  chart.y_title = said(nth(titles, what));
  chart.grid = chart.points = true;
  chart.y_low = 0;
  chart.x_title = said("block");
  const auto series = [&](const char* title, Color color, const StackDepth& depth) {
    ChartSeries line{title,
                     color,
                     {},
                     what == StackNumber::residual            ? depth.residual
                     : what == StackNumber::residual_gradient ? depth.residual_gradient
                                                              : depth.weight_gradient};
    for (std::size_t i = 0; i < line.y.size(); ++i) line.x.push_back(static_cast<double>(i));
    chart.series.push_back(std::move(line));
  };
  series(said("norm before"), style.theme.accent, found.pre);
  series(said("norm behind"), style.theme.key, found.post);
  return chart;
}

NormTable norm_table(Backend& backend, const Tensor& rows, double epsilon) {
  NormTable out{rows, {}, epsilon};
  for (const NormMethod method : norm_methods) out.after.push_back(normalise(backend, rows, method, epsilon));
  return out;
}

Scene norm_table_scene(const NormTable& table, double width, const Style& style) {
  const Theme& theme = style.theme;
  const Index rows = table.rows.dim(0), columns = table.rows.dim(1);
  const double gap = 28, line = std::round(15 * theme.text_scale);
  const double per_line = width >= 780 ? 3 : width >= 520 ? 2 : 1;
  const double card = std::floor((width - (per_line - 1) * gap) / per_line);
  const double left = 16 * theme.text_scale;
  const double w = std::floor(std::clamp((card - left) / static_cast<double>(columns), 3.0, 96.0));
  const double h = std::round(40 * theme.text_scale);
  Scene scene;
  scene.background = theme.background;
  scene.width = width;
  scene.title = said("Norms of the same rows");
  Font title_font = theme.body();
  title_font.weight = 600;
  double y = 0, lower = 0;
  int place = 0;
  const auto add = [&](const std::string& id, const std::string& name, const std::string& words, const Tensor& values,
                       const std::string& tip, Meaning meaning) {
    if (place == static_cast<int>(per_line)) place = 0, y = lower + 28;
    const double x = (card + gap) * place++;
    scene.add({Text{{x, y + line - 3}, name, title_font, theme.text, Anchor::start, 0}, "title." + id, tip});
    scene.add({Text{{x, y + 2 * line - 2},
                    elided(words, theme.caption(), card, style.measure),
                    theme.caption(),
                    theme.muted,
                    Anchor::start,
                    0},
               "", tip});
    Heatmap map;
    map.rect = {x + left, y + 2 * line + 8, w * static_cast<double>(columns), h * static_cast<double>(rows)};
    map.values = values;
    const CellRange range = range_of(values, {});
    map.norm = norm_of(range, {}, {});
    map.colormap = is_signed(map.norm) ? theme.diverging : theme.sequential;
    map.masked_color = theme.masked;
    map.missing_color = theme.missing;
    map.gap = w >= 8 ? 1 : 0;
    scene.add({map, "matrix." + id, "", std::move(meaning)});
    for (Index i = 0; i < rows; ++i) {
      scene.add({Text{{x + left - 6, map.cell(i, 0).center().y + half_capital(theme.small_token())},
                      std::string(1, static_cast<char>('a' + i)),
                      theme.small_token(),
                      theme.faint,
                      Anchor::end,
                      0},
                 "", ""});
      for (Index j = 0; j < columns; ++j) {
        const std::string text = short_number(static_cast<double>(values.at(i, j)), 3);
        if (style.measure.width(text, theme.small_token()) <= w - 4)
          add_cell_text(scene, map, {i, j}, text, theme.small_token(), style);
      }
    }
    lower = std::max(lower, add_color_bar(scene, {"", map.norm, map.colormap, range.high, false, false}, x + left,
                                          map.rect.bottom() + 2, card - left, style));
  };
  add("input", said("The rows"), say("{} sequences of {} features, each line one", rows, columns), table.rows, "", {});
  for (std::size_t i = 0; i < table.after.size(); ++i) {
    const NormMethod method = norm_methods[i];
    const OrderKept order = order_kept(table.rows, table.after[i]);
    const std::string words(said_view(formula(method)));
    add(std::string(title(method)), std::string(said_view(title(method))), words, table.after[i],
        say("{}; {} of {} pairs within a row changed their order", words, order.turned, order.pairs), Part{i});
  }
  scene.height = std::ceil(lower + 4);
  return scene;
}

NumberStrips model_norm_strips(const ModelNorm& norm, Index position) {
  NumberStrips out;
  out.unit = said("numbers of the row");
  const auto strip = [&](std::string name, std::string formula, const Tensor& values, std::string tooltip) {
    const LineStatistics s = statistics(values.values());
    NumberStrip& added = out.strips.emplace_back();
    added.name = std::move(name);
    added.formula = std::move(formula);
    added.values = values;
    added.number = say("mean {} · var {}", short_number(s.mean, 3), short_number(s.variance, 3));
    added.tooltip = std::move(tooltip);
  };
  const Tensor before = norm.before.select(0, position).copy(), after = norm.after.select(0, position).copy();
  strip(said("before the norm"), name(norm.before_site), before,
        fmt::format("{}[{}], F32", name(norm.before_site), position));
  const bool centered = norm.method == NormMethod::layer_norm;
  const LineStatistics s = statistics(before.values());
  strip(
      said("normalised"), std::string(said_view(formula(norm.method))), norm.bare.select(0, position).copy(),
      fmt::format("ε {:g}; {}", norm.epsilon,
                  centered ? say("mean {:.4f}, variance {:.4f}", s.mean, s.variance) : say("√ mean x² {:.4f}", s.rms)));
  strip(said("gain"), said("learned, per feature"), norm.weights.gain.packed(),
        said("the norm's weight, the same at every position"));
  if (norm.weights.bias.defined())
    strip(said("bias"), said("learned, per feature"), norm.weights.bias.packed(),
          said("the norm's bias, the same at every position"));
  strip(said("after the norm"), name(norm.after_site), after,
        say("{}[{}], F32: normalised · gain{}", name(norm.after_site), position,
            norm.weights.bias.defined() ? said(" + bias") : ""));
  return out;
}

std::vector<ActivationCurve> activation_curves(Backend& backend, const Backend::Xielu& xielu) {
  std::vector<ActivationCurve> out;
  for (const Activation kind :
       {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::xielu})
    out.push_back(activation_curve(backend, kind, -4, 4, 321, xielu));
  return out;
}

LineChart activation_chart(std::span<const ActivationCurve> curves, std::optional<Activation> own, double gate,
                           double at, const Style& style) {
  LineChart chart;
  chart.marks = {{at, "x"}};
  chart.y_title = "φ(x)";
  chart.x_title = "x";
  chart.grid = true;
  const Color colors[] = {style.theme.key, style.theme.value, style.theme.accent, style.theme.text, style.theme.query};
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Activation kind = curves[i].kind;
    ChartSeries line{std::string(title(kind)), colors[i], curves[i].x, curves[i].y};
    line.width = own == kind ? 3 : 1.5;
    if (own == kind) line.title += kind == Activation::xielu ? said(" (this model, layer 0)") : said(" (this model)");
    if (own != kind && kind == Activation::xielu) line.title += said(" (as training begins)");
    chart.series.push_back(line);
  }
  const ActivationCurve& silu = *std::ranges::find(curves, Activation::silu, &ActivationCurve::kind);
  ChartSeries gated{fmt::format("SiLU(x) · {:.2g}", gate), style.theme.muted, silu.x, silu.y};
  for (double& y : gated.y) y *= gate;
  gated.width = 1.5;
  chart.series.push_back(std::move(gated));
  return chart;
}

Histogram neuron_histogram(const Distribution& values, const std::string& what, Color color) {
  Histogram out;
  out.counts = values.histogram();
  out.low = values.range().low;
  out.high = values.range().high;
  for (int i = 1; i <= 9; ++i) out.deciles.push_back(values.quantile(i / 10.0));
  out.mean = values.mean();
  out.spread = values.spread();
  out.title = what;
  out.remark = say("{} numbers: every neuron at every position", values.count());
  out.noun = to_say("number"), out.nouns = to_say("numbers");
  out.color = color;
  return out;
}

NumberStrips path_strips(const TokenPath& path) {
  NumberStrips out;
  out.unit = said("numbers of the position");
  for (const PathStage& stage : path.stages) {
    NumberStrip& strip = out.strips.emplace_back();
    strip.name = stage.name;
    strip.remark = stage.shape;
    strip.formula = stage.formula;
    strip.values = stage.row;
    strip.number = length(stage.norm);
    strip.inset = stage.adds;
    strip.tooltip = say("{}[{}], F32: mean {}, from {} to {}", name(stage.site), path.position,
                        short_number(stage.mean, 4), short_number(stage.low, 4), short_number(stage.high, 4));
  }
  return out;
}

TokenBars loss_bars(const LossReport& report, std::shared_ptr<const Trace> trace, const TokenName& name) {
  TokenBars out;
  // A bar stands at the token that had to be guessed: the next one, or, masked, the one that stood there.
  const bool masked = trace->model.objective == Objective::masked_token;
  const Index ahead = masked ? 0 : 1;
  out.first = ahead;
  const std::size_t bars = trace->tokens.size() - static_cast<std::size_t>(ahead);
  out.values.assign(bars, nan);
  out.line.assign(bars, nan);
  out.tooltips.assign(bars, said("not asked for"));
  for (const TokenLoss& t : report.tokens) {
    nth(out.values, t.position) = t.loss;
    nth(out.line, t.position) = t.running_mean;
    nth(out.tooltips, t.position) =
        say("{} at {}: p {:.4g}, −ln p {:.4f} nats, rank {}; most probable was {} ({:.3f}); mean so far {:.4f}, "
            "perplexity {:.2f}; −ln softmax(logits[{}])[{}]",
            name(t.target), t.position + ahead, t.probability, t.loss, t.rank, name(t.best), t.best_probability,
            t.running_mean, std::exp(t.running_mean), t.position, t.target);
  }
  out.levels = {
      {report.uniform, said("uniform ln V"), say("ln V = {:.4f}: every token as likely", report.uniform)},
      {report.unigram, said("unigram"), say("{:.4f}: this text's own token counts, places unknown", report.unigram)}};
  out.line_title = said("running mean");
  out.unit = masked ? said("loss −ln p of each masked token, nats")
                    : said("loss −ln p of each token given those before it, nats");
  out.tokens = std::move(trace);
  return out;
}

}  // namespace headscope
