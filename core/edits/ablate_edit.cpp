#include "core/edits/ablate_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"

namespace headscope {

namespace {
using By = Ablate::By;
constexpr NamedValue<By> ways[] = {{"zero", By::zero}, {"mean", By::mean}, {"resample", By::resample}};

/// mean[i] (d) of rows 0 … i of one head for every row i; with `whole` of all rows.
std::vector<std::vector<double>> running_means(const Tensor& value, Index head, bool whole) {
  const Index n = value.dim(0), d = value.dim(2);
  std::vector<double> sum(static_cast<std::size_t>(d), 0.0);
  std::vector<std::vector<double>> means;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < d; ++j) nth(sum, j) += static_cast<double>(value.at(i, head, j));
    std::vector<double>& mean = means.emplace_back(sum);
    for (double& each : mean) each /= static_cast<double>(i + 1);
  }
  if (whole) std::fill(means.begin(), means.end(), std::vector<double>(means.back()));
  return means;
}

/// A row of the reference: which tensor, and which of its rows.
using ReferenceRow = std::pair<const Tensor*, Index>;

class AblateStep final : public EditStep {
 public:
  AblateStep(EditPlace place, Ablate ablate) : EditStep(std::move(place)), ablate_(std::move(ablate)) {
    for (const std::string& text : ablate_.from) references_.push_back(&pass().scene().source(text));
    // Of a picture nothing comes before CLS, and no patch before another: its mean is that of all positions.
    const Model* model = pass().scene().model;
    whole_ = ablate_.over_text || (model && model->config().vision);
  }
  bool acts(Site site) const override { return site.kind == SiteKind::z; }
  void act(Site site, EditedTensor& edited) override {
    Tensor& value = edited.write();  // (position, head, d)
    const Index n = value.dim(0), d = value.dim(2);
    const Tensor original = value.copy();
    std::vector<ReferenceRow> rows;
    for (const Trace* trace : references_) {
      const Tensor& each = trace->sites.at(site);
      for (Index i = 0; i < each.dim(0); ++i) rows.emplace_back(&each, i);
    }
    std::vector<ReferenceRow> taken;  // by resampling, for each position
    Random random(ablate_.seed);
    if (ablate_.by == By::resample && rows.empty()) {
      for (Index i = 0; i < n; ++i) taken.emplace_back(&original, i);
      for (std::size_t i = taken.size(); i > 1; --i) std::swap(taken[i - 1], taken[random.below(i)]);
    } else if (ablate_.by == By::resample) {
      for (Index i = 0; i < n; ++i) taken.push_back(rows[random.below(rows.size())]);
    }
    const auto [begin, end] = heads_of(value, site.layer);
    for (Index head = begin; head < end; ++head) {
      std::vector<std::vector<double>> means;
      if (ablate_.by == By::mean && rows.empty()) means = running_means(original, head, whole_);
      if (ablate_.by == By::mean && !rows.empty()) {
        std::vector<double> mean(static_cast<std::size_t>(d), 0.0);
        for (const auto& [tensor, row] : rows)
          for (Index j = 0; j < d; ++j)
            nth(mean, j) += static_cast<double>(tensor->at(row, head, j)) / static_cast<double>(rows.size());
        means.assign(static_cast<std::size_t>(n), mean);
      }
      for (Index i = first_row(); i <= last_row(); ++i)
        for (Index j = 0; j < d; ++j) {
          const auto at = static_cast<std::size_t>(i);
          value.ref(i, head, j) = !taken.empty()   ? taken[at].first->at(taken[at].second, head, j)
                                  : !means.empty() ? static_cast<float>(nth(means[at], j))
                                                   : 0.0f;
        }
    }
  }

 private:
  Ablate ablate_;
  bool whole_ = false;
  std::vector<const Trace*> references_;
};

class AblateEdit final : public EditOf<Ablate> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return ablate_edit(); }
  std::string text() const override {
    std::string text = fmt::format("ablate {}", name_in(ways, value().by));
    if (value().by == By::resample) text += fmt::format(" {}", value().seed);
    if (value().over_text) text += " over text";
    if (!value().from.empty()) text += " from";
    for (const std::string& each : value().from) text += " " + quote(each);
    return text;
  }
  void check(const std::string& where) const override {
    const Ablate& a = value();
    need(!a.over_text || (a.by == By::mean && a.from.empty()), where, "\"over text\" of the mean alone", "both");
    need(a.from.empty() || a.by != By::zero, where, "a mean or a resampling from texts", "zero");
    need(std::ranges::none_of(a.from, &std::string::empty), where, "reference texts", "an empty one");
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<AblateStep>(std::move(place), value());
  }
  std::vector<TakenFrom> takes() const override {
    std::vector<TakenFrom> all;
    for (const std::string& text : value().from) all.push_back({text, SiteKind::z});
    return all;
  }
  std::string note(const HeadTarget&, const ModelInfo& model, int) const override {
    if (model.objective != Objective::next_token) return "";
    return value().tells_future() ? text() + ": takes from later positions of the text too" : "";
  }
  bool row_by_row(int) const override { return value().by == By::zero; }
};
}  // namespace

const EditKind& ablate_edit() {
  static const EditKind kind{
      {"ablate zero | mean | mean over text | mean from \"TEXT\" … | resample SEED [from \"TEXT\" …]",
       "ablate",
       to_say("Activations"),
       to_say("What the head reads is replaced: the mean is of this position and those before it (of a picture, of "
              "all), of the whole text, or of reference texts."),
       Ablate{},
       true,
       {{EditField::Kind::line,
         "TEXT …",
         to_say("Reference texts"),
         to_say("each in quotes, one behind the other"),
         0,
         0,
         false,
         {},
         "\"Another text.\""}}},
      [](EditWords& words) -> EditAction {
        Ablate ablate{words.one_of(ways), 1};
        if (ablate.by == By::resample) ablate.seed = words.number<std::uint64_t>();
        ablate.over_text = ablate.by == By::mean && words.take("over text");
        if (ablate.by != By::zero && !ablate.over_text && words.take("from")) do
            ablate.from.push_back(words.quoted());
          while (!words.empty());
        return ablate;
      }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(Ablate value) {
  return std::make_shared<AblateEdit>(std::move(value));
}

}  // namespace headscope
