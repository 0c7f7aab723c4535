#include "core/edits/adapter_edit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"
#include "core/model/family.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const RowMajor>;

/// Throws Error at `where` unless blocks are all that the adapter changed, and their products are used as they are.
void check_model(const Model& model, const std::string& where) {
  const ModelConfig& c = model.config();
  bool any = false, of_clipped = false;
  for (int layer = 0; layer < c.dims.layers; ++layer)
    for (int i = 0; i < weight_matrix_count; ++i) {
      const auto matrix = static_cast<WeightMatrix>(i);
      if (!model.adapted(layer, matrix)) continue;
      any = true;
      of_clipped = of_clipped || (c.clip_qkv > 0 && matrix <= WeightMatrix::v);
    }
  if (!model.adapted_elsewhere().empty())
    throw Error(where, "an adapter of the blocks' matrices alone",
                fmt::format("one that also changed {}", fmt::join(model.adapted_elsewhere(), ", ")),
                "open the base model in its place");
  if (!any) throw Error(where, "a model that was opened with an adapter", c.name);
  if (of_clipped)
    throw Error(where, "matrices whose products are used as they are",
                fmt::format("{}, whose queries, keys and values are cut to ± {}", c.name, c.clip_qkv));
}

class AdapterStep final : public EditStep {
 public:
  AdapterStep(EditPlace place, double strength)
      : EditStep(std::move(place)),
        model_(pass().model(this->place().where())),
        share_(static_cast<float>(strength - 1)) {
    check_model(model_, this->place().where());
  }
  bool acts(Site site) const override {
    return share_ != 0 && matrix_of(site, [&](WeightMatrix matrix) {
             // Where heads add apart, the block's sum is made of what they add.
             return matrix == WeightMatrix::o && pass().scene().heads_apart
                        ? SiteKind::result
                        : output_site(model_.config(), matrix, site.layer);
           });
  }
  Turn turn(SiteKind) const override { return Turn::adjusted; }
  /// out + (strength − 1) · x · down · up
  void act(Site site, EditedTensor& edited) override {
    for_matrices(site.layer, [&](WeightMatrix matrix, const LowRankUpdate& added) {
      if (site.kind == SiteKind::result ? matrix != WeightMatrix::o
                                        : output_site(model_.config(), matrix, site.layer) != site.kind)
        return;
      const Tensor& x = inputs_.at(input_site(model_.config(), matrix, site.layer));
      if (site.kind == SiteKind::result)
        add_by_head(x, added, edited.write());
      else
        add(x, added, edited.write());
    });
  }
  bool sees(Site site) const override {
    return share_ != 0 &&
           matrix_of(site, [&](WeightMatrix matrix) { return input_site(model_.config(), matrix, site.layer); });
  }
  void see(Site site, const Tensor& value) override { inputs_[site.kind] = value; }

 private:
  template <class Body>
  void for_matrices(int layer, Body body) const {
    for (int i = 0; i < weight_matrix_count; ++i)
      if (const LowRankUpdate* const added = model_.adapted(layer, static_cast<WeightMatrix>(i)))
        body(static_cast<WeightMatrix>(i), *added);
  }
  template <class SiteOf>
  bool matrix_of(Site site, SiteOf site_of) const {
    bool found = false;
    if (site.layer >= 0)
      for_matrices(site.layer, [&](WeightMatrix m, const LowRankUpdate&) { found = found || site_of(m) == site.kind; });
    return found;
  }

  /// Rows that it reaches of x, all but the first axis as one, times share · down · up.
  RowMajor product(const Tensor& rows, Index width, const Tensor& down, const Tensor& up) const {
    const Index count = last_row() - first_row() + 1;
    const Tensor a = down.packed(), b = up.packed();
    const View x(rows.data() + first_row() * width, count, width);
    return share_ * ((x * View(a.data(), a.dim(0), a.dim(1))) * View(b.data(), b.dim(0), b.dim(1)));
  }
  void add(const Tensor& given, const LowRankUpdate& added, Tensor& out) const {
    if (last_row() < first_row()) return;
    const Tensor x = given.packed();
    const RowMajor sum = product(x, x.size() / x.dim(0), added.down, added.up);
    const Index inner = out.rank() == 3 ? out.dim(2) : 1;
    for (Index i = 0; i < sum.rows(); ++i)
      for (Index c = 0; c < sum.cols(); ++c)
        (out.rank() == 3 ? out.ref(first_row() + i, c / inner, c % inner) : out.ref(first_row() + i, c)) += sum(i, c);
  }
  /// z (position, head, d_head) into what each head adds, (position, head, d_model).
  void add_by_head(const Tensor& z, const LowRankUpdate& added, Tensor& out) const {
    if (last_row() < first_row()) return;
    const Index d = z.dim(2);
    for (Index head = 0; head < z.dim(1); ++head) {
      const RowMajor sum =
          product(z.select(1, head).packed(), d, added.down.slice(0, head * d, (head + 1) * d), added.up);
      for (Index i = 0; i < sum.rows(); ++i)
        for (Index c = 0; c < sum.cols(); ++c) out.ref(first_row() + i, head, c) += sum(i, c);
    }
  }

  const Model& model_;
  float share_;
  std::map<SiteKind, Tensor> inputs_;
};

class AdapterEdit final : public EditOf<ScaleAdapter> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return adapter_edit(); }
  std::string text() const override {
    return value().strength == 0 ? "adapter off" : fmt::format("adapter {}", value().strength);
  }
  void check(const std::string& where) const override {
    need(std::abs(value().strength) <= ScaleAdapter::largest, where,
         fmt::format("a strength from -{0} to {0}", ScaleAdapter::largest), fmt::format("{}", value().strength));
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<AdapterStep>(std::move(place), value().strength);
  }
  bool row_by_row(int) const override { return true; }
  std::string needs_of_one_text() const override { return "the matrices of a block's own attention or MLP"; }
  /// W_O + (strength − 1) · down · up
  Tensor written_with(const Model& model, int layer, const Tensor& o, const std::string& where) const override {
    check_model(model, where);
    const LowRankUpdate* const added = model.adapted(layer, WeightMatrix::o);
    if (!added) return o;
    Tensor out = o.copy();
    const Tensor a = added->down.packed(), b = added->up.packed();
    Eigen::Map<RowMajor>(out.mutable_data(), out.dim(0), out.dim(1)) +=
        static_cast<float>(value().strength - 1) *
        (View(a.data(), a.dim(0), a.dim(1)) * View(b.data(), b.dim(0), b.dim(1)));
    return out;
  }
};
}  // namespace

const EditKind& adapter_edit() {
  static const EditKind kind{
      {"adapter off | STRENGTH",
       "adapter",
       to_say("Weight matrices"),
       to_say("How much of the model's LoRA adapter there is: off is the base model, 1 the model as it was opened."),
       ScaleAdapter{},
       false,
       {{EditField::Kind::number,
         "STRENGTH",
         to_say("Strength"),
         to_say("1 is the adapter as it was trained"),
         0,
         2,
         false,
         {},
         "0.5"}}},
      [](EditWords& words) -> EditAction {
        if (words.take("off")) return ScaleAdapter{};
        return ScaleAdapter{words.number<double>()};
      }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(ScaleAdapter value) {
  return std::make_shared<AdapterEdit>(value);
}

}  // namespace headscope
