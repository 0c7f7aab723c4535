#pragma once
// What the formulas of a lesson may ask: of one model on one text, and of the catalogue of mechanisms. Every name is a
// line of a table, with what it means. Nothing is stored: a term runs the model when it is asked for first.

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/mechanism_report.h"
#include "core/metrics/metric.h"
#include "core/run/run_request.h"
#include "core/text/jinja/value.h"
#include "core/trace/head_id.h"

namespace headscope {

/// A mechanism on its input, by the step's lines "mechanism" and "on".
struct LessonMechanism {
  std::string choice, on;
  auto operator<=>(const LessonMechanism&) const = default;
};

/// One run as formulas see it. One thread at a time. Cheap until it is asked.
class LessonRun {
 public:
  /// `stack`: whose heads are asked, of an encoder-decoder. `backend` outlives this. request.capture is not looked at.
  LessonRun(LoadedModel model, RunRequest request, Stack stack, Backend& backend, std::stop_token stop = {});

  const LoadedModel& model() const { return model_; }
  const RunRequest& request() const { return request_; }
  Ctx ctx() const { return {backend_, nullptr, stop_}; }
  /// Maps factored, of the stack that is asked. Throws as run() does; Error where the model has no such stack.
  const Trace& trace();
  /// With all logits.
  const Trace& whole();
  /// (position, …) of that layer. Throws Error where the model has no such site.
  const Tensor& site(Site site);
  /// With these sites, all logits, and its maps factored; of the stack that is asked.
  const Trace& recorded(const std::set<SiteKind>& sites);
  const HeadTable& table();
  const AttentionMap& map(HeadId head) { return trace().map(head); }
  /// The same text with other edits.
  std::shared_ptr<LessonRun> with(std::vector<Intervention> edits);
  /// The text with more behind it, under the same edits.
  std::shared_ptr<LessonRun> continued(const std::string& text);

  /// A place in the text: a position, from the end below 0, or the token that stands there: "Anna", which has to stand
  /// there once, or "Anna#2", the second one. `of`: trace().queries(), or the keys where they are of another text.
  /// Throws Error at `where`.
  Index position(const jinja::Value& named, const std::vector<Token>& of, const std::string& where);
  HeadId head(const jinja::Value& named, const std::string& where);
  /// The token of the vocabulary that is written so, with a space before it or without. Throws Error at `where`.
  std::int32_t token(const std::string& text, const std::string& where);
  /// What a token reads like, without the space before it.
  std::string reads(const Token& token) const;
  /// Rise of −ln p(answer) in nats when this head's output is replaced by its mean; the answer is that of the run as it
  /// is.
  double cost(HeadId head);
  /// Computed once. Throws Error at `where` on a mechanism, an example or a head that is none.
  std::shared_ptr<const MechanismReport> mechanism(const LessonMechanism& chosen, const std::string& where);

 private:
  std::shared_ptr<LessonRun> other(const std::string& key, const std::function<void(RunRequest&)>& change);
  LoadedModel model_;
  RunRequest request_;
  Stack stack_;
  Backend& backend_;
  std::stop_token stop_;
  std::shared_ptr<const Trace> whole_;
  std::map<Site, Tensor> sites_;
  std::map<std::set<SiteKind>, std::shared_ptr<const Trace>> recorded_;
  std::optional<HeadTable> table_;
  std::map<std::string, std::shared_ptr<LessonRun>> others_;  // by their edits, or by what was written on
  std::vector<double> costs_;                                 // layer-major; empty = not asked for
  std::map<LessonMechanism, std::shared_ptr<const MechanismReport>> mechanisms_;
};

/// cell(step, row, column), terms(step, row, column), output(row, column), fact(name), output_error() of it.
jinja::Members mechanism_terms(LessonRun& run, const LessonMechanism& chosen, const std::string& where);

struct LessonTerm {
  std::string_view form;     ///< "weight(head, row, key)"
  std::string_view meaning;  ///< "what head looks with from row to key"
  jinja::Value (*value)(LessonRun& run, const jinja::Arguments& given);
  std::string_view name() const { return form.substr(0, form.find('(')); }
};
/// Those that ask what Analyse's pages show of a run: lens, attribution, rollout, masks.
std::span<const LessonTerm> analysis_terms();
/// Those that ask who took which token, of models with experts.
std::span<const LessonTerm> expert_terms();
/// All of them, for help and for the page that documents them.
std::span<const LessonTerm> lesson_terms();

/// The names that formulas of a step may use. `mechanism`: of the step; its terms come under their own names then.
jinja::Members lesson_names(const std::shared_ptr<LessonRun>& run, const LessonMechanism& mechanism = {});

}  // namespace headscope
