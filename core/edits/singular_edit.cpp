#include "core/edits/singular_edit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/edits/product_anew.h"
#include "core/model/cut_products.h"
#include "core/tensor/singular.h"

namespace headscope {

std::vector<double> ScaleSingular::vector(std::size_t count) const {
  std::vector<double> z(count, 1.0);
  for (const Range& range : scales) {
    const std::size_t end = range.last == 0 ? count : std::min(count, static_cast<std::size_t>(range.last));
    for (auto i = static_cast<std::size_t>(range.first - 1); i < end; ++i) z[i] = range.z;
  }
  return z;
}

ScaleSingular ScaleSingular::of(WeightMatrix matrix, const std::vector<double>& z) {
  ScaleSingular action{matrix, {}};
  for (std::size_t i = 0; i < z.size();) {
    std::size_t end = i + 1;
    while (end < z.size() && z[end] == z[i]) ++end;
    const int first = static_cast<int>(i) + 1, last = static_cast<int>(end);
    if (z[i] != 1) action.scales.push_back({first, end == z.size() && last > first ? 0 : last, z[i]});
    i = end;
  }
  if (action.scales.empty()) action.scales = {{1, 1, 1.0}};
  return action;
}

namespace {

// ---- words

constexpr WeightMatrix matrices[] = {WeightMatrix::q,      WeightMatrix::k,      WeightMatrix::v,
                                     WeightMatrix::o,      WeightMatrix::mlp_in, WeightMatrix::mlp_gate,
                                     WeightMatrix::mlp_out};

/// "3=0.5", "3..7=0.5", "3..=0" (to the smallest).
ScaleSingular::Range read_range(EditWords& words) {
  const std::string_view word = words.next();
  const char *at = word.data(), *const end = at + word.size();
  const auto read = [&](auto& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) words.fail(word);
    at = next;
  };
  const auto take = [&](std::string_view sign) {
    if (!std::string_view(at, end).starts_with(sign)) return false;
    at += sign.size();
    return true;
  };
  ScaleSingular::Range range;
  read(range.first);
  range.last = range.first;
  if (take("..")) {
    range.last = 0;
    if (at != end && *at != '=') {
      read(range.last);
      if (range.last < 1) words.fail(word);
    }
  }
  if (!take("=")) words.fail(word);
  read(range.z);
  if (at != end) words.fail(word);
  return range;
}

std::string range_text(const ScaleSingular::Range& range) {
  return fmt::format("{}{}={}", range.first,
                     range.last == range.first ? ""
                     : range.last == 0         ? ".."
                                               : fmt::format("..{}", range.last),
                     range.z);
}

EditAction read_singular(EditWords& words) {
  const std::string_view name = words.next();
  const auto found = std::ranges::find(matrices, name, [](WeightMatrix m) { return name_of(m); });
  if (found == std::end(matrices)) words.fail(name);
  ScaleSingular scale{*found, {}};
  do scale.scales.push_back(read_range(words));
  while (!words.empty());
  return scale;
}

// ---- matrices

/// What the edit makes of one layer's matrix, with its bias; nullopt when every z is 1. Throws Error at `where` when
/// the model has no such matrix, or not so many singular values.
std::optional<Projection> scaled_projection(const Model& model, int layer, const ScaleSingular& edit,
                                            const std::string& where) {
  check_uncut(model.config(), edit.matrix, where);
  const Projection own = model.projection(layer, edit.matrix);
  const auto found = model.singular(layer, edit.matrix);
  if (!found) {
    std::vector<std::string_view> there;
    for (int each = 0; each < weight_matrix_count; ++each)
      if (model.projection(layer, static_cast<WeightMatrix>(each)).weight.defined())
        there.push_back(name_of(static_cast<WeightMatrix>(each)));
    throw Error(where, fmt::format("a matrix that {} has: {}", model.config().name, fmt::join(there, ", ")),
                std::string(name_of(edit.matrix)));
  }
  const auto count = static_cast<int>(found->values.size());
  for (const ScaleSingular::Range& range : edit.scales)
    if (range.first > count || range.last > count)
      throw Error(where, fmt::format("singular values from 1 to {} of {}", count, symbol_of(edit.matrix)),
                  std::to_string(std::max(range.first, range.last)));
  const std::vector<double> z = edit.vector(found->values.size());
  if (std::ranges::all_of(z, [](double each) { return each == 1; })) return std::nullopt;
  return Projection{scaled_singular(own.weight, *found, z), own.bias};
}

class SingularStep final : public EditStep {
 public:
  SingularStep(EditPlace place, const ScaleSingular& scale) : EditStep(std::move(place)), matrix_(scale.matrix) {
    const std::string where = this->place().where();
    const Model& model = pass().model(where);
    for (int layer = 0; layer < pass().scene().dims.layers; ++layer) {
      if (!target().reaches_layer(layer)) continue;
      pass().go_on();
      if (!target().layer && !model.projection(layer, matrix_).weight.defined() && elsewhere(model)) continue;
      if (auto scaled = scaled_projection(model, layer, scale, where)) scaled_.emplace(layer, std::move(*scaled));
    }
  }
  bool acts(Site site) const override {
    if (!scaled_.contains(site.layer)) return false;
    // Where heads add apart, the block's sum is made of what they add.
    if (matrix_ == WeightMatrix::o && pass().scene().heads_apart) return site.kind == SiteKind::result;
    return site.kind == output_site(pass().scene().model->config(), matrix_, site.layer);
  }
  Turn turn(SiteKind) const override { return Turn::anew; }
  void act(Site site, EditedTensor& edited) override {
    const Projection& by = scaled_.at(site.layer);
    if (site.kind == SiteKind::result) return multiply_heads_anew(by, input_, first_row(), last_row(), edited.write());
    // What turns of a key is no product of the latent.
    const ModelConfig& config = pass().scene().model->config();
    const Index kept = matrix_ == WeightMatrix::k && config.latent() ? config.rotary.width : 0;
    multiply_anew(by, input_, first_row(), last_row(), kept, edited.write());
  }
  bool sees(Site site) const override {
    return scaled_.contains(site.layer) && site.kind == input_site(pass().scene().model->config(), matrix_, site.layer);
  }
  void see(Site, const Tensor& value) override { input_ = value; }

 private:
  /// Whether some layer has the matrix, and others have none.
  bool elsewhere(const Model& model) const {
    for (int layer = 0; layer < pass().scene().dims.layers; ++layer)
      if (model.projection(layer, matrix_).weight.defined()) {
        const ModelConfig& c = model.config();
        return !c.dims.mixers.empty() || !c.kv_layers.empty();
      }
    return false;
  }

  WeightMatrix matrix_;
  std::map<int, Projection> scaled_;  // by layer
  Tensor input_;
};

class SingularEdit final : public EditOf<ScaleSingular> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return singular_edit(); }
  std::string text() const override {
    std::string text = fmt::format("singular {}", name_of(value().matrix));
    for (const ScaleSingular::Range& range : value().scales) text += " " + range_text(range);
    return text;
  }
  void check(const std::string& where) const override {
    need(!value().scales.empty(), where, "at least one scale such as 1..4=0.5", "none");
    for (const ScaleSingular::Range& range : value().scales) {
      need(range.first >= 1 && (range.last == 0 || range.last >= range.first), where,
           "singular values counted from 1, the largest", range_text(range));
      need(std::abs(range.z) <= ScaleSingular::largest, where,
           fmt::format("a scale from -{0} to {0}", ScaleSingular::largest), fmt::format("{}", range.z));
    }
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<SingularStep>(std::move(place), value());
  }
  bool row_by_row(int) const override { return true; }
  std::string needs_of_one_text() const override { return "the matrices of a block's own attention or MLP"; }
  Tensor written_with(const Model& model, int layer, const Tensor& o, const std::string& where) const override {
    if (value().matrix != WeightMatrix::o) return o;
    const auto scaled = scaled_projection(model, layer, value(), where);
    return scaled ? scaled->weight : model.projection(layer, WeightMatrix::o).weight;
  }
};
}  // namespace

const EditKind& singular_edit() {
  static const EditKind kind{
      {"singular q|k|v|o|mlp_in|mlp_gate|mlp_out FIRST..LAST=Z …",
       "singular",
       to_say("Weight matrices"),
       to_say(
           "Singular values of a weight matrix times Z; 1 is the largest, 9.. all from the ninth on (Transformer²)."),
       ScaleSingular{},
       false,
       {{EditField::Kind::line,
         "FIRST..LAST=Z …",
         to_say("Scales"),
         to_say("1=0 takes the largest value out, 1..4=0.5 halves four, 9..=0 the rest"),
         0,
         0,
         false,
         {},
         "1=0"}}},
      read_singular};
  return kind;
}

std::shared_ptr<const Edit> edit_of(ScaleSingular value) {
  return std::make_shared<SingularEdit>(std::move(value));
}

ModelWeights weights_written_with(const Model& model, const std::vector<Intervention>& given, int tokens,
                                  std::optional<int> position) {
  ModelWeights weights = model.weights();
  const ModelDims& dims = model.config().dims;
  const std::vector<Intervention> edits = model.encoder() ? edits_of(given, Stack::decoder) : given;
  // As in a pass: matrices made anew before what is taken from them.
  for (const bool anew : {true, false})
    for (const Intervention& edit : edits) {
      if (!edit.enabled || (edit.action.as<ScaleSingular>() != nullptr) != anew) continue;
      const PositionRange range = edit.target.positions.value_or(PositionRange{});
      const int first = from_end(range.first, tokens), last = from_end(range.last, tokens);
      if (position ? *position < first || *position > last : first > 0 || last < tokens - 1) continue;
      for (int layer = 0; layer < dims.layers; ++layer) {
        if (!edit.target.reaches_layer(layer)) continue;
        auto& heads = nth(weights.blocks, layer).heads;
        Tensor before = heads.front().o;
        for (std::size_t head = 1; head < heads.size(); ++head) before = Tensor::joined(before, heads[head].o, 0);
        const Tensor after = edit.action->written_with(model, layer, before, "edit " + describe(edit));
        const Index width = before.dim(0) / static_cast<Index>(heads.size());
        for (std::size_t head = 0; head < heads.size(); ++head) {
          const auto at = static_cast<Index>(head) * width;
          heads[head].o = after.slice(0, at, at + width);
        }
      }
    }
  return weights;
}

}  // namespace headscope
