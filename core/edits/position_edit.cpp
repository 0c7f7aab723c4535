#include "core/edits/position_edit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/attention/positions/alibi.h"
#include "core/attention/positions/t5_bias.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/edits/position_rows.h"
#include "core/model/weights.h"

namespace headscope {

namespace {

using Method = SetPositions::Method;
using Scaling = RotaryConfig::Scaling;

// ---- words

std::string words_of(const SetPositions& edit) {
  const std::string on_top = edit.on_top ? " on top" : "";
  switch (edit.method) {
    case Method::none:
      return "position none";
    case Method::sinusoidal:
      return "position sinusoidal";
    case Method::alibi:
      return "position alibi" + on_top;
    case Method::t5:
      return fmt::format("position t5 {} bias {}{}", edit.max_distance, fmt::join(edit.bias, ","), on_top);
    case Method::chunks:
      return fmt::format("position chunks {}", edit.chunk);
    case Method::shift:
      return fmt::format("position shift {}", edit.shift);
    case Method::rope: {
      std::string text = "position rope";
      if (edit.base) text += fmt::format(" base {}", *edit.base);
      if (edit.scaling) {
        text += fmt::format(" scaling {}", info(*edit.scaling).id);
        if (*edit.scaling != RotaryConfig::Scaling::none) text += fmt::format(" {}", edit.factor);
        if (edit.ramp && *edit.scaling == RotaryConfig::Scaling::yarn)
          text += fmt::format(" ramp {}", info(*edit.ramp).id);
      }
      return text;
    }
  }
  return "";
}

void read_rope(EditWords& words, SetPositions& edit) {
  while (!words.empty()) {
    if (words.take("base")) {
      edit.base = words.number<double>();
    } else if (words.take("scaling")) {
      const std::string_view name = words.next();
      const auto known = std::ranges::find(rotary_scalings(), name, &RotaryScalingInfo::id);
      if (known == rotary_scalings().end()) words.fail(name);
      edit.scaling = known->scaling;
      if (known->scaling != RotaryConfig::Scaling::none) edit.factor = words.number<double>();
      if (known->scaling == RotaryConfig::Scaling::yarn && words.take("ramp")) {
        const std::string_view ramp = words.next();
        const auto found = std::ranges::find(yarn_ramps(), ramp, &RampInfo::id);
        if (found == yarn_ramps().end()) words.fail(ramp);
        edit.ramp = found->ramp;
      }
    } else {
      words.fail(words.next());
    }
  }
}

std::vector<float> read_biases(EditWords& words) {
  std::vector<float> all;
  std::string_view rest = words.next();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (end > 0) all.push_back(words.number_in<float>(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return all;
}

EditAction read_positions(EditWords& words) {
  SetPositions edit;
  if (words.take("none")) {
    edit.method = Method::none;
  } else if (words.take("sinusoidal")) {
    edit.method = Method::sinusoidal;
  } else if (words.take("rope")) {
    edit.method = Method::rope;
    read_rope(words, edit);
  } else if (words.take("alibi")) {
    edit.method = Method::alibi;
  } else if (words.take("chunks")) {
    edit.method = Method::chunks;
    edit.chunk = words.number<int>();
  } else if (words.take("shift")) {
    edit.method = Method::shift;
    edit.shift = words.number<int>();
  } else if (words.take("t5")) {
    edit.method = Method::t5;
    edit.max_distance = words.number<int>();
    if (!words.take("bias")) words.fail(words.next());
    edit.bias = read_biases(words);
  } else {
    words.fail(words.next());
  }
  edit.on_top = (edit.method == Method::alibi || edit.method == Method::t5) && words.take("on top");
  return edit;
}

void check_numbers(const SetPositions& edit, const std::string& where) {
  const auto need = [&](bool holds, const std::string& expected, auto found) {
    headscope::need(holds, where, expected, fmt::format("{}", found));
  };
  if (edit.base)
    need(*edit.base >= SetPositions::lowest_base && *edit.base <= SetPositions::highest_base,
         fmt::format("a base from {} to {:g}", SetPositions::lowest_base, SetPositions::highest_base), *edit.base);
  if (edit.scaling.value_or(RotaryConfig::Scaling::none) != RotaryConfig::Scaling::none)
    need(edit.factor >= 1 && edit.factor <= SetPositions::highest_factor,
         fmt::format("a factor from 1 to {:g}", SetPositions::highest_factor), edit.factor);
  if (edit.method == Method::shift)
    need(edit.shift >= 0 && edit.shift <= SetPositions::most_shift,
         fmt::format("a shift from 0 to {}", SetPositions::most_shift), edit.shift);
  if (edit.method == Method::chunks)
    need(edit.chunk >= 1 && edit.chunk <= SetPositions::most_distance,
         fmt::format("chunks of 1 to {} tokens", SetPositions::most_distance), edit.chunk);
  if (edit.method == Method::t5) {
    need(edit.bias.size() >= 2 && edit.bias.size() <= SetPositions::most_buckets,
         fmt::format("2 to {} buckets", SetPositions::most_buckets), edit.bias.size());
    need(edit.max_distance > static_cast<int>(edit.bias.size() / 2) && edit.max_distance <= SetPositions::most_distance,
         fmt::format("a largest distance from {} to {}", edit.bias.size() / 2 + 1, SetPositions::most_distance),
         edit.max_distance);
    for (const float each : edit.bias) need(std::isfinite(each), "finite biases", each);
  }
}

// ---- in a pass

/// Throws Error at `where` when this model cannot follow: a head of its own where heads share keys, one layer where the
/// embeddings change, a shift past the end of a learned table.
void check_model(const SetPositions& edit, const HeadTarget& target, const Model& model, int tokens,
                 const std::string& where) {
  const ModelConfig& config = model.config();
  if (edit.on_top) return;
  if (config.vision && config.position == PositionKind::rotary)
    throw Error(where, "a model of texts, or one whose positions are learned", config.name,
                "its patches are turned by their row and their column, which no position of a text is");
  const bool embeds = config.position == PositionKind::learned || edit.method == Method::sinusoidal;
  if (embeds && (target.layer || target.head))
    throw Error(where, "all heads, \"*\": positions are added to the embeddings, before the first layer",
                text_of(target),
                edit.method == Method::alibi || edit.method == Method::t5 ? "or write \"on top\"" : "");
  for (int layer = 0; layer < config.dims.layers; ++layer) {
    if (target.layer && *target.layer != layer) continue;
    const LayerWidths own = config.dims.widths_of(layer);
    if (target.head && own.kv_heads < config.dims.heads)
      throw Error(where,
                  fmt::format("a layer: {} heads of {} share {} key heads, which turn with them", config.dims.heads,
                              config.name, own.kv_heads),
                  text_of(target), "write " + text_of(HeadTarget{target.layer, {}, target.positions, target.stack}));
    if (edit.method == Method::rope && own.d_head % 2 != 0)
      throw Error(where, "heads of an even width, since rotary positions turn pairs", std::to_string(own.d_head));
  }
  if (edit.method == Method::sinusoidal && config.dims.d_model % 2 != 0)
    throw Error(where, "an even width of the model", std::to_string(config.dims.d_model));
  if (edit.method == Method::chunks && config.position != PositionKind::rotary)
    throw Error(where, "a rotary model: chunks re-map distances, of which learned positions know nothing", config.name);
  if (edit.method == Method::chunks && config.normed_turned())
    throw Error(where, "a model whose scores tell distances: chunks re-map these", config.name,
                "its queries and keys are normalised behind their rotation");
  if (edit.method == Method::chunks && edit.chunk >= config.context)
    throw Error(where, fmt::format("chunks shorter than the context of {} tokens", config.context),
                std::to_string(edit.chunk));
  if (edit.method == Method::shift && config.ends_at_context() && tokens + edit.shift > config.context)
    throw Error(where,
                fmt::format("a shift of at most {}: {} has learnt {} positions, the text has {} tokens",
                            config.context - tokens, config.name, config.context, tokens),
                std::to_string(edit.shift));
}

class PositionStep final : public EditStep {
 public:
  PositionStep(EditPlace place, SetPositions set) : EditStep(std::move(place)), set_(std::move(set)) {
    const std::string where = this->place().where();
    check_model(set_, target(), pass().model(where), pass().scene().rows(), where);
  }
  std::optional<HeldKind> held() const override {
    if (set_.replaces()) return HeldKind::positions;
    if (set_.method == Method::shift) return HeldKind::shift;
    return set_.method == Method::alibi ? HeldKind::alibi_on_top : HeldKind::t5_on_top;
  }
  RulePtr rule(int head, RulePtr so_far, const AttentionRule*) const override {
    if (set_.method == Method::alibi)
      return alibi_rule(std::move(so_far), nth(alibi_slopes(pass().scene().dims.heads), head));
    if (set_.method == Method::t5) return t5_rule(std::move(so_far), set_.bias, set_.max_distance);
    return so_far;
  }
  bool changes_scores() const override { return set_.method == Method::alibi || set_.method == Method::t5; }

  bool acts(Site site) const override {
    return positions_act_at({set_.replaces() ? &set_ : nullptr, set_.shift}, config(), site.kind);
  }
  // Queries and keys of a model without rotation are turned when every other edit has made them; elsewhere positions
  // are what other edits find.
  Turn turn(SiteKind site) const override {
    return site == unturned_site(config(), false) || site == unturned_site(config(), true) ? Turn::placed_last
                                                                                           : Turn::placed;
  }
  /// All that hold in a row act there at once: the first of them that comes by does it.
  void act(Site site, EditedTensor& edited) override {
    if (first_at(site) != this) return;
    const Tensor given = edited.read().copy();
    Tensor& value = edited.write();
    if (value.rank() != 3)  // embeddings: of the whole model
      return place_rows(pass().held_in_embeddings(), site, 0, {}, given, value);
    const Index heads = site.kind == SiteKind::attn_scores ? value.dim(0) : value.dim(1);
    for (Index each = 0; each < heads; ++each) {
      const auto head = static_cast<int>(each * (pass().scene().dims.heads / heads));
      place_rows(pass().held({site.layer, head}), site, head, {each, each + 1}, given, value);
    }
  }
  // What stands before the rotation.
  bool sees(Site site) const override {
    return (set_.replaces() || set_.method == Method::shift) && (unturned(site, false) || unturned(site, true));
  }
  void see(Site site, const Tensor& value) override { (unturned(site, false) ? before_.q : before_.k) = value; }

 private:
  const ModelConfig& config() const { return pass().scene().model->config(); }
  bool unturned(Site site, bool keys) const { return site.kind == unturned_site(config(), keys); }

  const EditStep* first_at(Site site) const {
    for (const auto& step : pass().steps())
      if (step->action().as<SetPositions>() && step->target().reaches_layer(site.layer) && step->acts(site))
        return step.get();
    return nullptr;
  }

  /// `value` in the rows of these parts, at heads [heads.first, heads.second).
  void place_rows(const std::vector<HeldRows>& parts, Site site, int head, std::pair<Index, Index> heads,
                  const Tensor& given, Tensor& value) const {
    const int offset = pass().scene().first_row;
    int begin = 0;
    for (const HeldRows& part : parts) {
      const auto positions_of = [&](HeldKind kind) {
        const EditStep* step = part.of(kind);
        return step ? step->action().as<SetPositions>() : nullptr;
      };
      const SetPositions* shift = positions_of(HeldKind::shift);
      const PositionsHeld positions{positions_of(HeldKind::positions), shift ? shift->shift : 0};
      const int from = std::max(begin, offset), last = part.end - 1;
      begin = part.end;
      if (from > last || !positions_act_at(positions, config(), site.kind)) continue;
      if (site.kind == SiteKind::attn_scores)
        rescore_in_chunks(before_, config(), site.layer, positions.own->chunk, head, pass().looks(head).rule, from,
                          last, value);
      else
        set_positions(positions, *pass().scene().model, site, before_, given, heads,
                      {from - offset, last - offset, offset}, value);
    }
  }

  SetPositions set_;
  BeforeRotation before_;
};

class PositionEdit final : public EditOf<SetPositions> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return position_edit(); }
  std::string text() const override { return words_of(value()); }
  void check(const std::string& where) const override { check_numbers(value(), where); }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<PositionStep>(std::move(place), value());
  }
  std::string needs_of_softmax() const override {
    return "queries and keys, or scores, that positions can turn or bias";
  }
  std::string needs_of_one_text() const override { return "one text, along which positions count"; }
  /// By a rule that knows no longest text.
  bool extends_context() const override { return value().replaces(); }
};
}  // namespace

const EditKind& position_edit() {
  using Kind = EditField::Kind;
  static const EditKind kind{
      {"position none | rope [base B] [scaling none | linear|ntk FACTOR | yarn FACTOR [ramp whole|pairs|turns] | "
       "llama3 FACTOR] "
       "| "
       "sinusoidal | alibi [on top] | "
       "t5 MAX bias B0,B1,… [on top] | chunks S | shift N",
       "position",
       to_say("Positions"),
       to_say("Another way of knowing where a token stands."),
       SetPositions{.method = Method::rope, .base = 500},
       true,
       {{Kind::number, "B", to_say("Base"), to_say("of the slowest rotation"), 10, 1e6, true, {}, "10000"},
        {Kind::number, "FACTOR", to_say("Factor"), to_say("how much longer texts may be"), 1, 64, true, {}, "2"},
        {Kind::whole,
         "MAX",
         to_say("Largest distance"),
         to_say("beyond it all share a bucket"),
         8,
         1024,
         true,
         {},
         "128"},
        {Kind::word,
         "B0,B1,…",
         to_say("Biases"),
         to_say("a number per bucket of distances"),
         0,
         0,
         false,
         {},
         "0,-0.5,-1,-2"},
        {Kind::whole, "S", to_say("Tokens in a chunk"), "", 1, 4096, true, {}, "32"},
        {Kind::whole, "N", to_say("Positions"), to_say("all tokens stand so many later"), 0, 1024, false, {}, "16"}}},
      read_positions};
  return kind;
}

std::span<const RampInfo> yarn_ramps() {
  using Ramp = RotaryConfig::Ramp;
  static constexpr RampInfo ramps[] = {
      {Ramp::whole_pairs, "whole", to_say("whole pairs"),
       to_say("along the pair's number, from ⌊the pair that turns 32 times⌋ to ⌈the one "
              "that turns once⌉: transformers, unless config.json has truncate false")},
      {Ramp::pairs, "pairs", to_say("pairs"),
       to_say("along the pair's number, without rounding: transformers with truncate false")},
      {Ramp::turns, "turns", to_say("turns"),
       to_say("along how often the pair turns within the trained context: the paper's formula")},
  };
  return ramps;
}

const RampInfo& info(RotaryConfig::Ramp ramp) {
  return *std::ranges::find(yarn_ramps(), ramp, &RampInfo::ramp);
}

std::shared_ptr<const Edit> edit_of(SetPositions value) {
  return std::make_shared<PositionEdit>(std::move(value));
}

RotaryConfig rotary_of(const SetPositions& edit, const ModelConfig& model, int layer) {
  RotaryConfig own = model.position == PositionKind::rotary ? model.rotary_of(layer) : RotaryConfig{};
  if (edit.base) own.base = *edit.base;
  if (!edit.scaling) return own;
  RotaryConfig config = rescaled(own, *edit.scaling, edit.factor, model.context);
  if (config.scaling == RotaryConfig::Scaling::yarn)
    config.ramp = edit.ramp.value_or(own.scaling == config.scaling ? own.ramp : RotaryConfig::Ramp::whole_pairs);
  return config;
}

}  // namespace headscope
