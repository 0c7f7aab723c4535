#include "app/cli/sweep_report.h"

#include <fmt/format.h>

#include "app/cli/input.h"
#include "app/cli/trace_report.h"
#include "app/render/linear_layers_pictures.h"
#include "core/base/nth.h"
#include "core/run/edit_pairs.h"
#include "core/trace/model_heads.h"
#include "viz/scene/framed.h"
#include "viz/scene/text.h"

namespace headscope::cli {

namespace {
std::string label(const LoadedModel& loaded, std::int32_t id) {
  return loaded.tokenizer ? loaded.tokenizer->token(id).label : std::to_string(id);
}

/// "logit Anna − Tom"
std::string difference_of(const LoadedModel& loaded, const AnswerPair& answers) {
  return fmt::format("logit {} − {}", label(loaded, answers.right), label(loaded, answers.wrong));
}

Cell answers_json(const LoadedModel& loaded, const AnswerPair& answers) {
  return {{"right", {{"id", answers.right}, {"label", label(loaded, answers.right)}}},
          {"wrong", {{"id", answers.wrong}, {"label", label(loaded, answers.wrong)}}}};
}

/// "resid_pre": as --site takes it.
std::string short_name(SiteKind site) {
  const std::string_view pattern = info(site).pattern;
  return std::string(pattern.substr(pattern.find("hook_") + 5));
}
}  // namespace

Report ablation_report(const LoadedModel& loaded, const HeadAblation& result, bool whole) {
  const std::string ablation = text_of(EditAction(result.request.ablate));
  Report out;
  describe(out, *result.before_trace);
  out.data("ablation", ablation);
  out.data("answers", answers_json(loaded, result.answers));
  out.data("complete", whole);
  out.data("before", {{"loss", result.before.loss}, {"logit_difference", result.before.logit_difference}});
  out.line(fmt::format("{}, each head in turn; loss {} nats, {} = {}", ablation, number(result.before.loss, 4),
                       difference_of(loaded, result.answers), number(result.before.logit_difference)));
  auto& heads = out.table("heads", by_head({{"loss_change", "loss change", "{:+.4f}"},
                                            {"kl", "KL", "{:.4f}"},
                                            {"logit_difference_change", "logit difference change", "{:+.3f}"}}));
  heads.largest_first = "loss_change";
  for (const auto& h : result.heads)
    heads.add({to_string(h.id), h.id.layer, h.id.head, h.loss_change, h.after.kl, h.logit_difference_change});
  return out;
}

Report patching_report(const LoadedModel& loaded, const Patching& result, bool whole) {
  const bool heads = is_by_head(result.request.site);
  const std::string site = short_name(result.request.site), column = heads ? "head" : "position";
  const auto cell = [&](int row, int at) { return static_cast<std::size_t>(row * result.columns + at); };
  const auto recovered = [&](int row, int at) {
    return cell(row, at) < result.difference.size() ? Cell(result.recovered(cell(row, at))) : Cell();
  };
  const std::shared_ptr<const Trace> clean = result.patched(result.clean), corrupted = result.patched(result.corrupted);
  Report out;
  out.line(headline(*result.corrupted));
  out.line(
      fmt::format("{} from the clean prompt into the corrupted one; {}: clean {:.3f}, corrupted {:.3f}\n"
                  "share of the difference that comes back: (patched − corrupted) / (clean − corrupted)\n\n"
                  "clean prompt into the corrupted one, {}",
                  site, difference_of(loaded, result.answers), result.clean_difference, result.corrupted_difference,
                  stretches_of_pairs(result.partner)));
  out.data("model", model_json(result.corrupted->model));
  out.data("clean", tokens_json(clean->tokens));
  out.data("corrupted", tokens_json(corrupted->tokens));
  out.data("partner", result.partner);
  out.data("site", site);
  out.data("answers", answers_json(loaded, result.answers));
  out.data("clean_logit_difference", result.clean_difference);
  out.data("corrupted_logit_difference", result.corrupted_difference);
  out.data("complete", whole);
  out.data("columns", column);

  auto& cells = out.table("", {"layer", column, "logit_difference", "recovered"}, Form::csv);
  Cell matrix = Cell::array();
  for (int r = 0; r < result.rows; ++r) {
    Cell& row = matrix.emplace_back(Cell::array());
    for (int c = 0; c < result.columns; ++c) {
      row.push_back(recovered(r, c));
      if (!row.back().is_null()) cells.add({r, c, result.difference[cell(r, c)], row.back()});
    }
  }
  out.data("recovered", matrix);

  // Positions down, layers across: texts are longer than models are deep.
  std::vector<Column> titles{column};
  if (!heads) titles.insert(titles.end(), {"token", "from clean"});
  for (int r = 0; r < result.rows; ++r) titles.push_back(for_people(fmt::format("layer {}", r), "{:.3f}"));
  auto& table = out.table("", titles, Form::text);
  for (int c = 0; c < result.columns; ++c) {
    std::vector<Cell> line{c};
    if (!heads) {
      const int from = nth(result.partner, c);
      line.emplace_back(nth(corrupted->tokens, c).label);
      line.emplace_back(from < 0 ? "–" : fmt::format("{} {}", from, token_label(*clean, from)));
    }
    for (int r = 0; r < result.rows; ++r) line.push_back(recovered(r, c));
    table.add(std::move(line));
  }
  return out;
}

Report temperature_report(const TemperatureSweep& result, bool whole) {
  Report out;
  describe(out, *result.before_trace);
  out.line(fmt::format("entropy of the head → loss of the model, both in nats; loss as it is {}",
                       number(result.loss_before, 4)));
  out.data("loss", result.loss_before);
  out.data("complete", whole);
  out.data("temperatures", result.request.taus);
  auto& points = out.table("", {"head", "temperature", "entropy", "loss", "kl"}, Form::csv);
  std::vector<Column> titles{for_people("head")};
  for (const double tau : result.request.taus) titles.push_back(for_people(fmt::format("τ {:.3g}", tau)));
  auto& table = out.table("", titles, Form::text);
  Cell curves = Cell::object();
  const auto add = [&](const std::string& head, const std::vector<TemperatureSweep::Point>& curve) {
    std::vector<Cell> line{head};
    for (std::size_t i = 0; i < curve.size(); ++i) {
      const TemperatureSweep::Point& p = curve[i];
      points.add({head, result.request.taus[i], p.entropy, p.loss, p.kl});
      line.emplace_back(number(p.entropy, 2) + " → " + number(p.loss));
      curves[head]["entropy"].push_back(p.entropy);
      curves[head]["loss"].push_back(p.loss);
      curves[head]["kl"].push_back(p.kl);
    }
    line.resize(titles.size());
    table.add(std::move(line));
  };
  add("all", result.all);
  add("mean", result.mean());
  const std::vector<HeadId> heads = every_head(result.before_trace->model.dims);
  for (std::size_t i = 0; i < result.heads.size(); ++i)
    if (!result.heads[i].empty()) add(to_string(heads[i]), result.heads[i]);
  out.data("curves", std::move(curves));
  return out;
}

Report circuit_report(const LoadedModel& loaded, const HeadCircuit& result, double threshold, bool whole) {
  constexpr const char* faithfulness =
      "(logit difference − none) / (whole − none), normalised (Hanna et al. 2024; Marks et al. 2024)";
  const bool removing = result.request.method == HeadCircuitRequest::Method::remove;
  const std::string ablation = text_of(EditAction(result.ablate));
  Report out;
  describe(out, *result.before_trace);
  out.line(fmt::format("greedy {}, heads that are out: {}; {}: whole model {:.3f}, no head {:.3f}",
                       removing ? "removal" : "addition", ablation, difference_of(loaded, result.answers), result.whole,
                       result.none));
  out.data("ablation", ablation);
  out.data("method", removing ? "remove" : "add");
  out.data("answers", answers_json(loaded, result.answers));
  out.data("whole", result.whole);
  out.data("none", result.none);
  out.data("complete", whole);
  auto& steps = out.table("order", {for_people(removing ? "removed" : "added"),
                                    {"kept", "heads kept"},
                                    only_in(Form::scripts, "layer"),
                                    only_in(Form::scripts, "head"),
                                    {"logit_difference", "logit difference", "{:.3f}"},
                                    {"faithfulness", "faithfulness", "{:.3f}"}});
  for (int i = 0; i < static_cast<int>(result.order.size()); ++i) {
    const auto& step = nth(result.order, i);
    steps.add({to_string(step.id), removing ? result.heads - i - 1 : i + 1, step.id.layer, step.id.head,
               step.logit_difference, result.faithfulness(step.logit_difference)});
  }
  out.line(fmt::format("faithfulness: {}", faithfulness));
  out.data("faithfulness", faithfulness);
  out.data("threshold", threshold);
  const std::vector<std::string> caveats = result.caveats(threshold);
  for (const std::string& caveat : caveats) out.line("\n" + caveat);
  out.data("caveats", caveats);
  const int fewest = result.fewest(threshold);
  if (fewest < 0) {
    out.data("circuit", nullptr);
    out.line(fmt::format("\nno known set keeps {:.0f} %", 100 * threshold));
    return out;
  }
  Cell set = Cell::array();
  std::string names;
  for (const HeadId head : result.kept(fewest)) {
    set.push_back({head.layer, head.head});
    names += " " + to_string(head);
  }
  out.data("circuit", std::move(set));
  out.line(fmt::format("\n{} {} keep {:.0f} % of it:{} (greedy: not proven to be the fewest)", fewest,
                       fewest == 1 ? "head" : "heads", 100 * threshold, names));
  return out;
}

Report linear_layers_report(const LoadedModel& loaded, const LinearLayers& result, double allowed, bool whole) {
  using Method = LinearLayersAsked::Method;
  const char* const untrained =
      "No weight was trained on for it: a model that learns with its linear layers may lose less.";
  const bool restoring = result.asked.method == Method::restore;
  const auto part = part_of(result.before_trace, result.asked.stack);
  const auto name = [&](std::int32_t id) { return label(loaded, id); };
  Report out;
  describe(out, *part);
  out.line(fmt::format("mechanism {}; {} as it is {}, every layer linear {}, nats", result.asked.mechanism,
                       result.by_kl ? "KL of the answer" : "loss", number(result.cost(result.before), 4),
                       number(result.cost(result.none), 4)));
  out.data("mechanism", result.asked.mechanism);
  out.data("method", restoring ? "restore" : "replace");
  out.data("measure", result.by_kl ? "kl" : "loss");
  out.data("complete", whole);
  out.data("before", {{"loss", result.before.loss}, {"kl", result.before.kl}});
  out.data("none", {{"loss", result.none.loss}, {"kl", result.none.kl}});

  // For scripts every set that was measured; people get a table for layers and one for numbers of layers.
  auto& sets = out.table("", {"kind", "kept", "layer", "loss", "kl"}, Form::csv);
  const auto add_set = [&](const std::string& kind, int kept, const Cell& layer, const Outcome& of) {
    sets.add({kind, kept, layer, of.loss, of.kl});
  };
  auto& layers = out.table("layers", {{"layer", "layer"},
                                      {"loss", "loss, linear", "{:.4f}"},
                                      {"kl", "KL, linear", "{:.4f}"},
                                      {"rise", "rise", "{:+.4f}"},
                                      {"loss_without", "loss, no attention", "{:.4f}"},
                                      {"kl_without", "KL, no attention", "{:.4f}"}});
  layers.largest_first = "rise";
  for (std::size_t layer = 0; layer < result.alone.size(); ++layer) {
    const LinearOutcome& alone = result.alone[layer];
    const LinearOutcome without = layer < result.without.size() ? result.without[layer] : LinearOutcome{};
    layers.add({layer, alone.loss, alone.kl, result.rise(alone), without.loss, without.kl});
    add_set("one linear", result.layers - 1, layer, alone);
    if (layer < result.without.size()) add_set("no attention", result.layers - 1, layer, without);
  }
  auto& steps = out.table("order", {for_people(restoring ? "gets softmax back" : "becomes linear"),
                                    only_in(Form::scripts, "layer"),
                                    {"kept", "layers with softmax"},
                                    {"cost", result.by_kl ? "KL, greedy" : "loss, greedy", "{:.4f}"},
                                    {"evenly", "evenly spaced", "{:.4f}"}});
  add_set("greedy", restoring ? 0 : result.layers, nullptr, restoring ? result.none : result.before);
  for (int i = 0; i < static_cast<int>(result.order.size()); ++i) {
    const LinearLayers::Step& step = nth(result.order, i);
    const int kept = restoring ? i + 1 : result.layers - i - 1;
    steps.add({fmt::format("layer {}", step.layer), step.layer, kept, result.cost(step.outcome), result.evenly(kept)});
    add_set("greedy", kept, step.layer, step.outcome);
  }
  for (std::size_t i = 0; i < result.even.size(); ++i)
    add_set("evenly spaced", static_cast<int>(i) + 1, nullptr, result.even[i]);
  Cell drawn = Cell::array();
  for (std::size_t draw = 0; draw < result.drawn.size(); ++draw) {
    Cell costs = Cell::array();
    for (std::size_t i = 0; i < result.drawn[draw].size(); ++i) {
      costs.push_back(result.cost(result.drawn[draw][i]));
      add_set(fmt::format("random {}", draw + 1), static_cast<int>(i) + 1, nth(result.drawn_orders[draw], i),
              result.drawn[draw][i]);
    }
    drawn.push_back({{"order", result.drawn_orders[draw]}, {"cost", std::move(costs)}});
  }
  out.data("random", std::move(drawn));
  const int fewest = result.fewest(allowed);
  out.data("allowed", allowed);
  const bool nothing = result.nothing_to_tell();
  out.data("kept", fewest < 0 || nothing ? Cell() : Cell(result.kept_layers(fewest)));
  const std::string finding = result.finding(allowed, name);
  out.data("finding", finding);
  if (fewest >= 0 && result.before.answer >= 0) {
    const LinearOutcome& with = *result.greedy_outcome(fewest);
    const auto said = [&](std::int32_t id) { return Cell{{"id", id}, {"label", name(id)}}; };
    out.data("answer", {{"before", said(result.before.answer)}, {"with_these", said(with.answer)}, {"kl", with.kl}});
  }
  if (nothing && !finding.empty())
    out.line(finding);
  else if (!finding.empty())
    out.line(fmt::format("Allowed: {:g} nats. {} {}", allowed, finding, untrained));
  out.picture = [result, allowed, run = describe_run(*part)](const Style& style) {
    return framed(linear_layers_scene(result, allowed, 1120, style),
                  {"Which layers may become linear", {}, run + " · " + result.asked.mechanism, {}}, style);
  };
  return out;
}

}  // namespace headscope::cli
