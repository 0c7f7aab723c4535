#pragma once
// What the pages that run a Sweep share: when it starts, the section RUN, the last result that came. A page names
// what it asks, how many passes that takes, and shows the result. Thread rule: the UI thread.

#include <imgui.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "app/widgets/controls.h"
#include "app/workspaces/analyse/parts.h"
#include "core/base/words.h"

namespace headscope {

/// Runs S(LoadedModel, Request). Starts by itself when the request changed and the sweep does not take long.
template <class S, class Request>
class SweepPage : public Page {
 public:
  void each_frame(JobRunner&, const Results&, bool) override { controller_.frame(); }

 protected:
  struct Words {
    const char* counted;               ///< by the section RUN: "heads"
    const char *nothing_yet, *advice;  ///< while there is no result
    const char* running = to_say("Running the text");
  };
  SweepPage(JobRunner& jobs, const char* name, Words words) : controller_(jobs, name), words_(words) {}

  /// What the page asks now; nullopt = nothing that could be asked.
  virtual std::optional<Request> wanted(const PageContext& c) const = 0;
  /// Whole passes over the text on screen that it takes, about. REQUIRES a text.
  virtual double passes(const PageContext& c) const = 0;
  /// Something was typed that cannot be asked.
  virtual bool mistyped() const { return false; }
  /// There is enough to begin with that nobody has to press Start.
  virtual bool by_itself() const { return true; }

  const std::shared_ptr<const typename S::Result>& result() const { return result_; }
  /// The result is of the model that is open: its tokens have names.
  bool of_open_model(const PageContext& c) const { return result_ && of_ == c.results().model_reading; }

  /// Once per frame, first: starts what starts by itself. False when there is no result: then it says so.
  bool keep_up(const PageContext& c) {
    const auto now = asked(c);
    if (now && by_itself() && !mistyped() && now != started_ &&
        (expected(c) <= starts_by_itself_seconds || (c.app.ui.press_start && c.trace())))
      start(c);
    if (sweep_shown(c, controller_, stale(now))) start(c);
    if (result_) return true;
    if (now)
      empty_state(c.ui, said(controller_.running() ? words_.running : words_.nothing_yet), said(words_.advice));
    else
      nothing_open(c);
    return false;
  }
  /// Section RUN.
  void run(const PageContext& c) {
    const auto now = asked(c);
    if (sweep_controls(c, controller_, words_.counted, stale(now), expected(c))) start(c);
  }
  /// The two answers that are compared, then RUN. Whether there is a result of the model that is open.
  bool ask(const PageContext& c, AnswerFields& fields) {
    const bool known = of_open_model(c);
    ImGui::Dummy({0, c.ui.px(6)});
    answer_fields(c, fields, known ? &result()->answers : nullptr);
    ImGui::Dummy({0, c.ui.px(6)});
    run(c);
    ImGui::Dummy({0, c.ui.px(6)});
    return known;
  }

 private:
  struct Asked {
    Request request;
    std::uint64_t model;  // which reading
    bool operator==(const Asked&) const = default;
  };

  std::optional<Asked> asked(const PageContext& c) const {
    if (!c.results().model.model) return std::nullopt;
    auto request = wanted(c);
    return request ? std::optional(Asked{std::move(*request), c.results().model_reading}) : std::nullopt;
  }
  /// What is shown, or comes, answers something else.
  bool stale(const std::optional<Asked>& now) const { return now && started_ && now != started_; }
  double expected(const PageContext& c) const {
    return c.trace() ? expected_seconds(c, passes(c)) : std::numeric_limits<double>::quiet_NaN();
  }
  void start(const PageContext& c) {
    const auto now = asked(c);
    if (!now || mistyped()) return;
    if (started_ && started_->model != now->model) result_.reset();
    started_ = now;
    controller_.start(std::make_shared<S>(c.results().model, now->request),
                      [this, model = now->model](std::shared_ptr<const typename S::Result> known) {
                        result_ = std::move(known);
                        of_ = model;
                      });
  }

  SweepController controller_;
  Words words_;
  std::optional<Asked> started_;
  std::uint64_t of_ = 0;  // reading of the model that the result is of
  std::shared_ptr<const typename S::Result> result_;
};

}  // namespace headscope
