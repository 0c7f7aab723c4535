#include "core/analysis/linear_layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "core/attention/mechanism.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/special_values.h"
#include "core/base/words.h"
#include "core/edits/mechanism_edit.h"
#include "core/edits/switch_off_edit.h"
#include "core/metrics/next_token.h"

namespace headscope {

namespace {
/// Costs that came out as no number are worse than any that did.
bool costs_less(double a, double b) {
  return !std::isnan(a) && (std::isnan(b) || a < b);
}

std::vector<int> with_layer(std::vector<int> layers, int layer) {
  layers.insert(std::ranges::lower_bound(layers, layer), layer);
  return layers;
}

std::vector<int> without_layer(std::vector<int> layers, int layer) {
  std::erase(layers, layer);
  return layers;
}

std::vector<int> all_layers(int layers) {
  std::vector<int> out(as_size(layers));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

/// "layer 3", "layers 0, 2 and 5"; stretches of three and more as "0–4".
std::string layer_words(const std::vector<int>& layers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    if (end - i >= 3) {
      parts.push_back(fmt::format("{}–{}", layers[i], layers[end - 1]));
    } else {
      for (std::size_t at = i; at < end; ++at) parts.push_back(std::to_string(layers[at]));
    }
    i = end;
  }
  const std::string last = parts.back();
  parts.pop_back();
  const std::string words = fmt::format("{}{}{}", fmt::join(parts, ", "), parts.empty() ? "" : said(" and "), last);
  return layers.size() == 1 ? say("layer {}", words) : say("layers {}", words);
}

LinearOutcome measured(const EditProbe& probe, const Trace& trace) {
  const std::vector<NextToken> said = top_next(trace, 1);
  return {probe.outcome(trace), said.empty() ? -1 : said.front().id};
}

void check_linear(const LinearLayersAsked& asked, const Model& model) {
  check(EditAction(SwapMechanism{asked.mechanism}), "mechanism");
  const bool causal = asked.stack != Stack::encoder && asked.stack != Stack::cross && model.config().causal;
  const std::vector<std::string> possible = linear_mechanisms(causal);
  const std::string id(parse_mechanism(asked.mechanism).mechanism->id);
  if (std::ranges::count(possible, id) == 0)
    throw Error("mechanism", fmt::format("one that is linear: {}", fmt::join(possible, ", ")), id);
}
}  // namespace

std::vector<int> evenly_spaced_layers(int layers, int kept) {
  std::vector<int> out;
  for (int i = 0; i < kept; ++i) out.push_back((i + 1) * layers / kept - 1);
  return out;
}

std::vector<Intervention> linear_layer_edits(const std::string& mechanism, int layers, const std::vector<int>& kept,
                                             Stack stack) {
  std::vector<Intervention> edits;
  for (int layer = 0; layer < layers; ++layer)
    if (!std::ranges::binary_search(kept, layer)) edits.push_back({{layer, {}, {}, stack}, SwapMechanism{mechanism}});
  return edits;
}

std::vector<Intervention> without_mechanisms(std::vector<Intervention> edits) {
  std::erase_if(edits, [](const Intervention& edit) {
    return edit.enabled && !edit.target.positions && edit.action.as<SwapMechanism>();
  });
  return edits;
}

std::vector<std::string> linear_mechanisms(bool causal) {
  // So long that blocks of fixed size no longer count.
  constexpr Index n = 1 << 20, d = 64;
  std::vector<std::string> out;
  for (const Mechanism& each : mechanisms()) {
    if (each.study || !each.cost || each.crosses || (each.needs_causal && !causal)) continue;
    const MechanismCost once = each.cost({n, d, d}, each.usual()), twice = each.cost({2 * n, d, d}, each.usual());
    if (once.cache_bytes == 0 && once.state_bytes == twice.state_bytes &&
        twice.multiply_adds < 2.001 * once.multiply_adds)
      out.emplace_back(each.id);
  }
  return out;
}

double LinearLayers::greedy(int kept) const {
  const LinearOutcome* const known = greedy_outcome(kept);
  return known ? cost(*known) : nan;
}

const LinearOutcome* LinearLayers::greedy_outcome(int kept) const {
  if (kept == layers) return &before;
  if (kept == 0) return &none;
  const bool restoring = asked.method == LinearLayersAsked::Method::restore;
  const auto step = as_size(restoring ? kept - 1 : layers - kept - 1);
  return step < order.size() ? &order[step].outcome : nullptr;
}

double LinearLayers::evenly(int kept) const {
  if (kept == layers) return cost(before);
  if (kept == 0) return cost(none);
  return as_size(kept - 1) < even.size() ? cost(nth(even, kept - 1)) : nan;
}

std::vector<int> LinearLayers::kept_layers(int kept) const {
  if (kept == layers) return all_layers(layers);
  if (kept == 0) return {};
  const bool restoring = asked.method == LinearLayersAsked::Method::restore;
  std::vector<int> out = restoring ? std::vector<int>{} : all_layers(layers);
  for (int i = 0; i < (restoring ? kept : layers - kept); ++i)
    out = restoring ? with_layer(std::move(out), nth(order, i).layer)
                    : without_layer(std::move(out), nth(order, i).layer);
  return out;
}

int LinearLayers::fewest(double allowed) const {
  for (int kept = 0; kept <= layers; ++kept)
    if (greedy(kept) <= cost(before) + allowed) return kept;
  return -1;
}

int LinearLayers::fewest_evenly(double allowed) const {
  for (int kept = 0; kept <= layers; ++kept)
    if (evenly(kept) <= cost(before) + allowed) return kept;
  return -1;
}

bool LinearLayers::nothing_to_tell() const {
  constexpr double same = 1e-6;
  const Trace* const text = before_trace ? before_trace->part(asked.stack) : nullptr;
  if (text && text->tokens.size() == 1) return true;
  // Where there is a loss, it has to be the same too.
  return std::abs(none.kl) < same && (std::isnan(before.loss) || std::abs(none.loss - before.loss) < same);
}

std::string LinearLayers::answer_words(const LinearOutcome& with, const Namer& name) const {
  std::string out;
  if (before.answer >= 0 && with.answer >= 0) {
    const bool changes = with.answer != before.answer;
    out = changes ? said(", but the answer changes") : said(", and the answer stays");
    if (name)
      out += changes ? fmt::format(": {} → {}", name(before.answer), name(with.answer)) : " " + name(with.answer);
    if (!by_kl) out += say(", KL {:.3f} nats", with.kl);
  }
  if (by_kl && std::isfinite(before.loss))
    out += say("; loss of the text {:.3f} → {:.3f} nats", before.loss, with.loss);
  return out;
}

std::string LinearLayers::finding(double allowed, const Namer& name) const {
  const int kept = fewest(allowed), spaced = static_cast<int>(even.size()) + 1 < layers ? -1 : fewest_evenly(allowed);
  if (static_cast<int>(order.size()) < layers || kept < 0) return "";
  if (nothing_to_tell()) {
    const Trace* const text = before_trace ? before_trace->part(asked.stack) : nullptr;
    return text && text->tokens.size() == 1
               ? said("Nothing to tell: the text has one token, and no layer has keys to choose between.")
               : said(
                     "Nothing to tell: with every layer linear the model does the same, as where no token sees more "
                     "than one key.");
  }
  const char* const what = by_kl ? said("KL of the answer") : said("loss");
  const std::string from_to =
      say("{} {:.3f} → {:.3f} nats{}", what, cost(before), greedy(kept), answer_words(*greedy_outcome(kept), name));
  std::string out;
  if (kept == 0) {
    out = say("Every layer may become linear: {}.", from_to);
  } else if (kept == layers) {
    // Of the sets that lack one layer the search knows but its own: all of them were measured.
    const auto least =
        std::ranges::min_element(alone, costs_less, [&](const LinearOutcome& each) { return cost(each); });
    const std::string which = layer_words({static_cast<int>(least - alone.begin())});
    out = rise(*least) <= allowed
              ? say("1 of {} layers may become linear, {}, which the greedy search missed: {} {:.3f} → {:.3f} "
                    "nats{}.",
                    layers, which, what, cost(before), cost(*least), answer_words(*least, name))
              : say("No layer may become linear: the least that one costs is {:.3f} nats ({}).", rise(*least), which);
  } else {
    const std::vector<int> stay = kept_layers(kept);
    out = say("{} of {} layers may become linear, if {} keep{} softmax: {}.", layers - kept, layers, layer_words(stay),
              kept == 1 ? "s" : "", from_to);
  }
  if (spaced > kept)
    out += say(" Evenly spaced, {} {} to keep it.", spaced == layers ? said("all") : std::to_string(spaced),
               spaced == 1 ? said("has") : said("have"));
  else if (spaced >= 0 && spaced < kept)
    out += say(" Evenly spaced, {} {} enough: the greedy search missed that.", spaced,
               spaced == 1 ? said("is") : said("are"));
  return out;
}

LinearLayersSearch::LinearLayersSearch(LoadedModel loaded, LinearLayersAsked asked) : loaded_(std::move(loaded)) {
  check_linear(asked, *loaded_.model);
  known_.asked = std::move(asked);
  known_.asked.run.edits = without_mechanisms(std::move(known_.asked.run.edits));
}

void LinearLayersSearch::prepare(const Ctx& ctx) {
  if (const ModelConfig& c = loaded_.model->config(); c.dims.hybrid()) {
    std::vector<int> linear, attending;
    for (int layer = 0; layer < c.dims.layers; ++layer) (c.dims.attends(layer) ? attending : linear).push_back(layer);
    throw Error("linear layers", "a model all of whose layers attend",
                fmt::format("{} of {}, which {} linear already", layer_words(linear), c.name,
                            linear.size() == 1 ? "is" : "are"),
                fmt::format("an edit asks one layer: \"{}.*: mechanism linear\"", attending.front()));
  }
  EditProbe probe(loaded_, known_.asked.run, true, ctx);
  known_.before_trace = probe.before();
  known_.before = measured(probe, *probe.before());
  known_.by_kl = known_.asked.by == LinearLayersAsked::By::answer || std::isnan(known_.before.loss);
  if (std::isnan(known_.cost(known_.before)))
    throw Error("text", "something that the model is asked for: a second token, or a masked one", "nothing");
  const int layers = known_.layers = probe.dims(known_.asked.stack).layers;
  measured_[all_layers(layers)] = known_.before;
  for (int draw = 0; draw < known_.asked.draws; ++draw) {
    Random random(known_.asked.seed + static_cast<std::uint64_t>(draw));
    std::vector<int> order = all_layers(layers);
    for (int i = layers - 1; i > 0; --i)
      std::swap(nth(order, i), nth(order, random.below(static_cast<std::uint64_t>(i) + 1)));
    known_.drawn_orders.push_back(std::move(order));
  }
  known_.drawn.resize(as_size(known_.asked.draws));
  left_ = all_layers(layers);
  if (!restoring()) kept_ = left_;
  total_ = 2 * layers + 1 + (layers - 1) * (1 + known_.asked.draws) + layers * (layers + 1) / 2;
  probe_ = std::move(probe);
}

const LinearOutcome& LinearLayersSearch::outcome_of(std::vector<int> kept, const Ctx& ctx) {
  if (const auto found = measured_.find(kept); found != measured_.end()) return found->second;
  const LinearOutcome outcome = measured(
      *probe_, *probe_->run(linear_layer_edits(known_.asked.mechanism, known_.layers, kept, known_.asked.stack), ctx));
  return measured_[std::move(kept)] = outcome;
}

void LinearLayersSearch::step(const Ctx& ctx) {
  if (!probe_) return prepare(ctx);
  const int layers = known_.layers;
  const auto count = [](const auto& known) { return static_cast<int>(known.size()); };
  if (const int layer = count(known_.alone); layer < layers) {
    known_.alone.push_back(outcome_of(without_layer(all_layers(layers), layer), ctx));
  } else if (const int off = count(known_.without); off < layers) {
    known_.without.push_back(measured(
        *probe_, *probe_->run({{{off, {}, {}, known_.asked.stack}, SwitchOff{SwitchOff::Part::attention}}}, ctx)));
  } else if (done_ == 2 * layers) {
    known_.none = outcome_of({}, ctx);
  } else if (const int kept = count(known_.even) + 1; kept < layers) {
    known_.even.push_back(outcome_of(evenly_spaced_layers(layers, kept), ctx));
  } else if (count(known_.order) < layers) {
    try_next(ctx);
  } else {
    for (std::size_t draw = 0; draw < known_.drawn.size(); ++draw) {
      std::vector<LinearOutcome>& line = known_.drawn[draw];
      if (count(line) == layers - 1) continue;
      const std::vector<int>& order = known_.drawn_orders[draw];
      std::vector<int> first(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(line.size()) + 1);
      std::ranges::sort(first);
      line.push_back(outcome_of(std::move(first), ctx));
      break;
    }
  }
  ++done_;
}

void LinearLayersSearch::try_next(const Ctx& ctx) {
  const int layer = nth(left_, next_);
  std::vector<int> kept = restoring() ? with_layer(kept_, layer) : without_layer(kept_, layer);
  // Every trial of a round differs from its start by one layer: the blocks below that are computed once.
  if (!measured_.contains(kept) && base_ != kept_) {
    probe_->move_to(linear_layer_edits(known_.asked.mechanism, known_.layers, kept_, known_.asked.stack), ctx);
    base_ = kept_;
  }
  const LinearOutcome& outcome = outcome_of(std::move(kept), ctx);
  known_.trials.push_back({static_cast<int>(known_.order.size()), layer, outcome});
  if (!best_ || costs_less(known_.cost(outcome), known_.cost(best_->outcome))) best_ = {layer, outcome};
  if (++next_ < left_.size()) return;
  kept_ = restoring() ? with_layer(std::move(kept_), best_->layer) : without_layer(std::move(kept_), best_->layer);
  std::erase(left_, best_->layer);
  known_.order.push_back(*best_);
  best_.reset();
  next_ = 0;
}

std::shared_ptr<const LinearLayers> LinearLayersSearch::result() const {
  return probe_ ? std::make_shared<const LinearLayers>(known_) : nullptr;
}

}  // namespace headscope
