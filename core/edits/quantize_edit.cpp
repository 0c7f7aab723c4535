#include "core/edits/quantize_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/edits/product_anew.h"
#include "core/model/model.h"

namespace headscope {

namespace {

constexpr double most_apart = 1000;

/// Rows [first, last] of `input` (position, …) as a matrix.
Tensor rows_of(const Tensor& input, Index first, Index last) {
  const Tensor all = input.packed();
  const Index width = all.size() / all.dim(0);
  Tensor out = Tensor::uninitialized({last - first + 1, width});
  std::copy_n(all.data() + first * width, out.size(), &out.ref(0, 0));
  return out;
}

class QuantizeStep final : public EditStep {
 public:
  QuantizeStep(EditPlace place, const Quantization& how) : EditStep(std::move(place)), how_(how) {
    pass().model(this->place().where());
  }
  bool acts(Site site) const override { return matrix_at(site).has_value(); }
  Turn turn(SiteKind) const override { return Turn::anew; }
  void act(Site site, EditedTensor& edited) override {
    const ModelConfig& config = pass().scene().model->config();
    const WeightMatrix matrix = *matrix_at(site);
    const Index first = first_row(), last = last_row();
    if (last < first) return;
    const Projection own = pass().scene().model->projection(site.layer, matrix);
    const Tensor& input = seen_.at(input_site(config, matrix, site.layer));
    const QuantizedFactors by = quantized_factors(rows_of(input, first, last), own.weight, how_);
    // Rows that it does not reach are not looked at.
    Tensor x = input.copy();
    std::copy_n(by.x.data(), by.x.size(), x.mutable_values().data() + first * by.x.dim(1));
    const Projection rounded{by.w, own.bias};
    Tensor& out = edited.write();
    if (site.kind == SiteKind::result) return multiply_heads_anew(rounded, x, first, last, out);
    // What turns of a key is no product of the latent.
    const Index kept = matrix == WeightMatrix::k && config.latent() ? config.rotary.width : 0;
    multiply_anew(rounded, x, first, last, kept, out);
    // Where queries and keys have norms, they are cut behind those, and this is before.
    const bool query_or_key = matrix == WeightMatrix::q || matrix == WeightMatrix::k;
    const bool clipped = matrix == WeightMatrix::v || (query_or_key && config.qk_norm == QkNorm::none);
    if (const auto most = static_cast<float>(config.clip_qkv); clipped && most > 0)
      for (float& value : out.mutable_values()) value = std::clamp(value, -most, most);
  }
  bool sees(Site site) const override {
    if (site.layer < 0 || !target().reaches_layer(site.layer)) return false;
    const ModelConfig& config = pass().scene().model->config();
    for (int each = 0; each < weight_matrix_count; ++each)
      if (site.kind == input_site(config, static_cast<WeightMatrix>(each), site.layer)) return true;
    return false;
  }
  void see(Site site, const Tensor& value) override { seen_.insert_or_assign(site.kind, value); }

 private:
  std::optional<WeightMatrix> matrix_at(Site site) const {
    if (site.layer < 0 || !target().reaches_layer(site.layer)) return std::nullopt;
    const Model& model = *pass().scene().model;
    for (int each = 0; each < weight_matrix_count; ++each) {
      const auto matrix = static_cast<WeightMatrix>(each);
      // Where heads add apart, the block's sum is made of what they add.
      const bool apart = matrix == WeightMatrix::o && pass().scene().heads_apart;
      if (site.kind == (apart ? SiteKind::result : output_site(model.config(), matrix, site.layer)) &&
          model.projection(site.layer, matrix).weight.defined())
        return matrix;
    }
    return std::nullopt;
  }

  Quantization how_;
  std::map<SiteKind, Tensor> seen_;  // inputs of the layer that is being computed
};

class QuantizeEdit final : public EditOf<Quantize> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return quantize_edit(); }
  std::string text() const override {
    const Quantization& how = value().how;
    return fmt::format("quantize {} {} {} {}", how.bits, how.activations ? "both" : "weights",
                       how.vectors ? "vector" : "tensor", how.apart);
  }
  void check(const std::string& where) const override {
    need(value().how.bits >= 2 && value().how.bits <= 8, where, "2 to 8 bits", std::to_string(value().how.bits));
    need(value().how.apart >= 0 && value().how.apart <= most_apart, where,
         fmt::format("a magnitude from 0 (nothing is kept apart) to {}", most_apart),
         fmt::format("{}", value().how.apart));
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<QuantizeStep>(std::move(place), value().how);
  }
  // A step of a whole tensor, and what is kept apart, are those of all rows of a pass.
  bool row_by_row(int) const override {
    return value().how.apart == 0 && (value().how.vectors || !value().how.activations);
  }
  std::string needs_of_one_text() const override { return "the matrices of a block's own attention or MLP"; }
  std::string note(const HeadTarget&, const ModelInfo&, int) const override {
    return said(
        "Rounded are the blocks' matrices of queries, keys, values and outputs and of MLPs, and what they multiply; "
        "embeddings, norms, experts, the last layer, gates of heads, and projections into a latent or a state are not: "
        "of a layer with a state the output matrix alone. What is read off the weights alone (OV and QK circuits) is "
        "of the unrounded ones.");
  }
};
}  // namespace

const EditKind& quantize_edit() {
  static const EditKind kind{
      {"quantize BITS weights|both tensor|vector APART",
       "quantize",
       to_say("Weight matrices"),
       to_say("Weights, or weights and what they multiply, rounded to BITS bits; dimensions that reach APART stay as "
              "they are (LLM.int8())."),
       Quantize{},
       false,
       {{EditField::Kind::whole, "BITS", to_say("Bits"), to_say("8 is int8; 4 leaves 15 values"), 2, 8},
        {EditField::Kind::number, "APART", to_say("Kept apart from"),
         to_say("input dimensions that reach it; 0 = none"), 0, 20}}},
      [](EditWords& words) -> EditAction {
        Quantize read;
        read.how.bits = words.number<int>();
        static constexpr NamedValue<bool> operands[] = {{"weights", false}, {"both", true}};
        static constexpr NamedValue<bool> steps[] = {{"tensor", false}, {"vector", true}};
        read.how.activations = words.one_of(operands);
        read.how.vectors = words.one_of(steps);
        read.how.apart = words.number<double>();
        return read;
      }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(Quantize value) {
  return std::make_shared<QuantizeEdit>(value);
}

}  // namespace headscope
