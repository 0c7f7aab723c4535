#include "core/attention/mechanism.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>

#include "core/attention/mask_entries.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/error.h"
#include "core/base/nearest_names.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {

double parse_value(const MechanismParameter& p, std::string_view text, const std::string& where) {
  const std::string place = fmt::format("{}: {}", where, p.name);
  if (p.kind == MechanismParameter::Kind::choice) {
    const auto found = std::ranges::find(p.choices, text);
    if (found == p.choices.end())
      throw Error(place, fmt::format("one of {}", fmt::join(p.choices, ", ")), fmt::format("\"{}\"", text));
    return static_cast<double>(found - p.choices.begin());
  }
  if (p.kind == MechanismParameter::Kind::toggle) {
    if (text == "on" || text == "1") return 1;
    if (text == "off" || text == "0") return 0;
    throw Error(place, "on or off", fmt::format("\"{}\"", text));
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = p.kind == MechanismParameter::Kind::whole;
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !(value >= p.low) ||
      !(value <= p.high) || (whole && value != std::floor(value)))
    throw Error(place, fmt::format("{} from {} to {}", whole ? "a whole number" : "a number", p.low, p.high),
                fmt::format("\"{}\"", text));
  return value;
}

}  // namespace

MechanismParameter number_parameter(std::string_view name, std::string_view title, std::string_view words, double low,
                                    double high, double usual, bool logarithmic) {
  return {name, title, words, MechanismParameter::Kind::number, low, high, usual, logarithmic, {}};
}

MechanismParameter whole_parameter(std::string_view name, std::string_view title, std::string_view words, double low,
                                   double high, double usual, bool logarithmic) {
  return {name, title, words, MechanismParameter::Kind::whole, low, high, usual, logarithmic, {}};
}

MechanismParameter choice_parameter(std::string_view name, std::string_view title, std::string_view words,
                                    std::vector<std::string_view> choices, int usual) {
  const double last = static_cast<double>(choices.size()) - 1;
  return {name,
          title,
          words,
          MechanismParameter::Kind::choice,
          0,
          last,
          static_cast<double>(usual),
          false,
          std::move(choices)};
}

MechanismParameter toggle_parameter(std::string_view name, std::string_view title, std::string_view words, bool usual) {
  return {name, title, words, MechanismParameter::Kind::toggle, 0, 1, usual ? 1.0 : 0.0, false, {}};
}

MechanismParameter seed_parameter(std::string_view words) {
  return whole_parameter("seed", to_say("Seed"), words.empty() ? to_say("of the random numbers") : words, 0, 1'000'000,
                         1);
}

MechanismParameter only_where(MechanismParameter parameter,
                              bool (*counts)(const MechanismValues&, const MechanismShape&)) {
  parameter.counts = counts;
  return parameter;
}

double MechanismValues::number(std::string_view name) const {
  const auto found = values_.find(name);
  assert(found != values_.end());
  return found->second;
}

const MechanismParameter* Mechanism::parameter(std::string_view wanted) const {
  const auto found = std::ranges::find(parameters, wanted, &MechanismParameter::name);
  return found == parameters.end() ? nullptr : &*found;
}

std::vector<const MechanismParameter*> Mechanism::shown_parameters(const MechanismValues& values,
                                                                   const MechanismShape& shape) const {
  std::vector<const MechanismParameter*> shown;
  for (const MechanismParameter& each : parameters)
    if (!each.counts || each.counts(values, shape)) shown.push_back(&each);
  return shown;
}

MechanismValues Mechanism::usual() const {
  MechanismValues values;
  for (const MechanismParameter& each : parameters) values.set(each.name, each.usual);
  return values;
}

std::span<const Mechanism> mechanisms() {
  static const std::vector<Mechanism> all = mechanism::all();
  return all;
}

const Mechanism* find_mechanism(std::string_view id) {
  const auto found = std::ranges::find(mechanisms(), id, &Mechanism::id);
  return found == mechanisms().end() ? nullptr : &*found;
}

std::string value_text(const MechanismParameter& p, double value) {
  switch (p.kind) {
    case MechanismParameter::Kind::choice:
      return std::string(nth(p.choices, static_cast<Index>(value)));
    case MechanismParameter::Kind::toggle:
      return value != 0 ? "on" : "off";
    case MechanismParameter::Kind::whole:
      return fmt::format("{}", static_cast<std::int64_t>(value));
    case MechanismParameter::Kind::number:
      break;
  }
  return fmt::format("{}", value);
}

std::string text_of(const MechanismChoice& choice) {
  std::string text(choice.mechanism->id);
  for (const MechanismParameter& p : choice.mechanism->parameters)
    text += fmt::format(" {}={}", p.name, value_text(p, choice.values.number(p.name)));
  return text;
}

MechanismChoice parse_mechanism(std::string_view spec, const std::string& where) {
  const auto words = mask_entries::words_of(spec);
  const std::string_view id = words.empty() ? "" : words.front();
  MechanismChoice choice{find_mechanism(id), {}};
  if (!choice.mechanism) {
    std::vector<std::string> ids;
    for (const Mechanism& each : mechanisms()) ids.emplace_back(each.id);
    throw Error(where, "a mechanism's id", fmt::format("\"{}\"", id), nearest_names_hint(id, ids));
  }
  choice.values = choice.mechanism->usual();
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    const MechanismParameter* p = choice.mechanism->parameter(words[i].substr(0, equals));
    if (!p || equals == std::string_view::npos) {
      std::vector<std::string_view> names;
      for (const MechanismParameter& each : choice.mechanism->parameters) names.push_back(each.name);
      throw Error(fmt::format("{} {}", where, id), names.empty() ? "no parameter" : "NAME=VALUE",
                  fmt::format("\"{}\"", words[i]),
                  names.empty() ? "" : fmt::format("names: {}", fmt::join(names, ", ")));
    }
    choice.values.set(p->name, parse_value(*p, words[i].substr(equals + 1), where + " " + std::string(id)));
  }
  return choice;
}

bool is_causal(const AttentionRule& rule, Index n, Index m) {
  if (!rule.plain()) return false;
  for (Index i = 0; i < n; ++i) {
    const KeyRange keys = rule.keys(i, m);
    if (keys.begin != 0 || keys.end != std::min(i + 1, m)) return false;
  }
  return true;
}

bool is_full(const AttentionRule& rule, Index n, Index m) {
  if (!rule.plain()) return false;
  for (Index i = 0; i < n; ++i) {
    const KeyRange keys = rule.keys(i, m);
    if (keys.begin != 0 || keys.end != m) return false;
  }
  return true;
}

Tensor output_of(const Mechanism& mechanism, const MechanismInput& in, const MechanismValues& values) {
  return mechanism.output ? mechanism.output(in, values) : mechanism.run(in, values, Detail::output).output;
}

std::shared_ptr<const HeadsOfLayer> heads_of_layer(const Tensor& q, const Tensor& k, const Tensor& v, Index layer,
                                                   Index layers) {
  auto out = std::make_shared<HeadsOfLayer>();
  out->layer = layer, out->layers = layers;
  const Index heads = q.dim(1), group = heads / k.dim(1);
  for (Index head = 0; head < heads; ++head) {
    const bool same = head % group != 0;
    out->q.push_back(q.select(1, head).packed());
    out->k.push_back(same ? out->k.back() : k.select(1, head / group).packed());
    out->v.push_back(same ? out->v.back() : v.select(1, head / group).packed());
  }
  return out;
}

MechanismInput input_of_head(std::shared_ptr<const HeadsOfLayer> layer, Index head) {
  const auto at = static_cast<std::size_t>(head);
  MechanismInput in;
  in.q = layer->q[at], in.k = layer->k[at], in.v = layer->v[at];
  in.head = head;
  in.layer = std::move(layer);
  return in;
}

}  // namespace headscope
