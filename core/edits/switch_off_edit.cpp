#include "core/edits/switch_off_edit.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
using Part = SwitchOff::Part;

/// A part by its name, where what it gives stands, and (a norm) where what it is given does.
struct PartInfo {
  Part part;
  SiteKind output, input;
};
constexpr NamedValue<Part> parts[] = {
    {"attention", Part::attention}, {"mlp", Part::mlp}, {"ln1", Part::ln1}, {"ln2", Part::ln2}};
constexpr PartInfo part_sites[] = {{Part::attention, SiteKind::attn_out, SiteKind::attn_out},
                                   {Part::mlp, SiteKind::mlp_out, SiteKind::mlp_out},
                                   {Part::ln1, SiteKind::ln1_normalized, SiteKind::resid_pre},
                                   {Part::ln2, SiteKind::ln2_normalized, SiteKind::resid_mid}};

class SwitchOffStep final : public EditStep {
 public:
  SwitchOffStep(EditPlace place, Part part) : EditStep(std::move(place)), at_(nth(part_sites, part)) {
    const Model* model = pass().scene().model;
    if (!model) return;
    const ModelConfig& c = model->config();
    if (c.dims.d_mlp == 0 && (part == Part::mlp || part == Part::ln2))
      throw Error(this->place().where(), "blocks with an MLP", c.name + ", which has none");
    if (const auto layer = target().layer; layer && !has_site(c.dims, {at_.output, *layer}))
      throw Error(this->place().where(), norm() ? "a layer with that norm" : "a layer with an MLP",
                  fmt::format("layer {} of {}, which has none", *layer, c.name));
    if (!norm()) return;
    if (part == Part::ln1 && c.dims.paired)
      throw Error(this->place().where(), "a norm of what enters its own layer",
                  c.name + ", whose layers read in pairs what enters the first");
    if (c.norm == NormKind::none)
      throw Error(this->place().where(), "a norm that the model has", c.name + ", which has none");
    if (at_.output == (part == Part::ln1 ? attention_input(c, -1) : mlp_input(c, -1))) {
      if (part == Part::ln2 && c.dims.parallel) at_.input = SiteKind::resid_pre;
      return;
    }
    throw Error(this->place().where(), "a norm that the model has",
                !c.norms_before() ? c.name + ", whose norms stand behind attention and MLP"
                                  : c.name + ", whose attention and MLP read one norm: it is ln1");
  }
  bool acts(Site site) const override { return site.kind == at_.output; }
  void act(Site, EditedTensor& edited) override {
    Tensor& value = edited.write();  // (position, d_model)
    for (Index row = first_row(); row <= last_row(); ++row)
      for (Index j = 0; j < value.dim(1); ++j) value.ref(row, j) = norm() ? input_.at(row, j) : 0.0f;
  }
  // A norm that is switched off passes on what stands before it.
  bool sees(Site site) const override { return norm() && site.kind == at_.input; }
  void see(Site, const Tensor& value) override { input_ = value; }

 private:
  bool norm() const { return at_.input != at_.output; }

  PartInfo at_;
  Tensor input_;
};

class SwitchOffEdit final : public EditOf<SwitchOff> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return switch_off_edit(); }
  std::string text() const override { return fmt::format("switch off {}", name_in(parts, value().part)); }
  void check(const std::string&) const override {}
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<SwitchOffStep>(std::move(place), value().part);
  }
  bool row_by_row(int) const override { return true; }
  std::string needs_of_one_text() const override {
    return value().part == Part::attention ? "" : "attention to be switched off there";
  }
};
}  // namespace

const EditKind& switch_off_edit() {
  static const EditKind kind{
      {"switch off attention | mlp | ln1 | ln2", "switch off", to_say("The block"),
       to_say("A part of the block adds nothing; a norm passes on what it is given."), SwitchOff{}, false},
      [](EditWords& words) -> EditAction { return SwitchOff{words.one_of(parts)}; }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(SwitchOff value) {
  return std::make_shared<SwitchOffEdit>(value);
}

}  // namespace headscope
