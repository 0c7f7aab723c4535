#pragma once
// What the pages of the group "Read" share: an answer made on the worker from the run on screen, recorded again
// with the sites that the tool reads; a position; a token; cells of a matrix. Thread rule: the UI thread.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/render/reading_pictures.h"
#include "app/state/answer.h"
#include "app/workspaces/analyse/page.h"
#include "app/workspaces/scene_slot.h"
#include "viz/scene/line_chart.h"

namespace headscope {

/// The run that an answer was made from.
struct ReadingSource {
  std::shared_ptr<const TracedRun> run;  ///< on screen
  LoadedModel model;
  std::shared_ptr<const Trace> trace;  ///< the same run with the recorded sites
};
/// nullopt while there is no run of the model that is open.
std::optional<ReadingSource> reading_source(const PageContext& c);
/// The same of what maps alone tell: also of a capture, with no model behind it.
std::optional<ReadingSource> maps_source(const PageContext& c);
/// What the heads of the run wrote with: its W_O after the edits.
ModelWeights weights_of(const ReadingSource& source);
/// On the worker: the run with these sites; `last` is kept from one call to the next, so that it is recorded once.
struct ReadingCapture {
  std::shared_ptr<const TracedRun> of;
  std::set<SiteKind> sites;
  std::shared_ptr<const Trace> trace;
};
std::shared_ptr<const Trace> record(const ReadingSource& source, const std::set<SiteKind>& sites, const Ctx& ctx,
                                    ReadingCapture& last);

/// What holds an answer, and with it the run that it was recorded from and a model.
class KeepsAnswer {
 public:
  virtual ~KeepsAnswer() = default;
  /// Once per frame while its page is not on screen: an answer of a run that is no longer on screen goes, and what was
  /// recorded for it. Who comes back asks again.
  virtual bool let_go_of_old(JobRunner& jobs, const Results& now) = 0;  ///< true when something went
  /// Why what was asked last has no answer; "" = it is not known that it has none.
  virtual std::string error() const = 0;
  virtual bool under_way() const = 0;
  virtual const std::string& tag() const = 0;
};

/// An page whose answers are ReadingJobs.
class ReadingPage : public Page {
 public:
  void each_frame(JobRunner& jobs, const Results& results, bool shown) override {
    if (shown) return;
    bool went = false;
    for (KeepsAnswer* job : jobs_) went |= job->let_go_of_old(jobs, results);
    if (went)
      for (SceneSlot* slot : slots_) slot->let_go(jobs);
  }

 protected:
  /// What to say while there is no answer; of one that failed the reason, in the page and no longer as the message.
  /// `of_maps`: a capture has what it reads.
  void no_reading_yet(const PageContext& c, bool of_maps = false) const;

 private:
  template <class Result>
  friend class ReadingJob;
  friend class ReadingSlot;
  // Members of the page.
  std::vector<KeepsAnswer*> jobs_;
  std::vector<SceneSlot*> slots_;
};

/// A place for a picture of answers, which it keeps: it lets go with them.
class ReadingSlot : public SceneSlot {
 public:
  ReadingSlot(ReadingPage& owner, std::string tag) : SceneSlot(std::move(tag)) { owner.slots_.push_back(this); }
  ReadingSlot(const ReadingSlot&) = delete;
  ReadingSlot& operator=(const ReadingSlot&) = delete;
};

/// One tool's answer: asked for when what it depends on changes; the last one stays until the next comes. One that was
/// stopped is taken up by JobRunner::run_again().
template <class Result>
class ReadingJob final : KeepsAnswer {
 public:
  struct Reading {
    ReadingSource source;
    std::string options;
    Result result;
  };
  using Read = std::function<Result(const ReadingSource&, const Ctx&)>;

  ReadingJob(ReadingPage& owner, std::string tag, std::string words = to_say("reading the run"))
      : answer_({std::move(tag), std::move(words)}) {
    owner.jobs_.push_back(this);
  }

  /// Asks for `read` when the run on screen or `options` differ from the last call. Nothing is recorded anew when there
  /// are no sites: then the trace has the logits of the last position only (with_all_logits()).
  void want(const PageContext& c, const std::set<SiteKind>& sites, const std::string& options, Read read) {
    if (auto source = reading_source(c)) {
      const auto run = source->run;
      ask(c, std::move(*source), run, sites, options, std::move(read));
    }
  }
  /// The same of what the maps on screen tell (maps_source()).
  void want_of_maps(const PageContext& c, const std::string& options, Read read) {
    if (auto source = maps_source(c)) {
      const auto run = source->run;
      ask(c, std::move(*source), run, {}, options, std::move(read));
    }
  }
  /// The same of what the weights alone decide: another run of the model changes nothing.
  void want_of_weights(const PageContext& c, const std::string& options, Read read) {
    if (auto source = reading_source(c)) ask(c, std::move(*source), nullptr, {}, options, std::move(read));
  }
  const std::shared_ptr<const Reading>& answer() const { return answer_.last(); }
  /// Null while answer() is of something else than what was asked last.
  std::shared_ptr<const Reading> current() const { return answer_.current(); }
  bool failed() const { return answer_.state() == Answer<Key, Reading>::State::failed; }
  bool under_way() const override { return answer_.under_way(); }
  std::string error() const override { return answer_.error(); }
  const std::string& tag() const override { return answer_.tag(); }

 private:
  struct Key {
    std::shared_ptr<const TracedRun> run;  // null: any of the model
    std::shared_ptr<const Model> model;
    std::string options;
    bool operator==(const Key&) const = default;
  };

  void ask(const PageContext& c, ReadingSource from, std::shared_ptr<const TracedRun> run,
           const std::set<SiteKind>& sites, const std::string& options, Read read) {
    // The answer of another model goes.
    if (answer() && answer()->source.model.model != from.model.model) answer_.let_go(c.jobs);
    Key key{std::move(run), from.model.model, options};
    answer_.want(c.jobs, std::move(key),
                 [from = std::move(from), sites, options, read = std::move(read), capture = capture_](const Ctx& ctx) {
                   ReadingSource source = from;
                   source.trace = record(source, sites, ctx, *capture);
                   return Reading{source, options, read(source, ctx)};
                 });
  }

  bool let_go_of_old(JobRunner& jobs, const Results& now) override {
    const auto& asked = answer_.asked();
    if (!asked || (asked->run ? now.run == asked->run : now.model.model == asked->model)) return false;
    capture_ = std::make_shared<ReadingCapture>();  // the worker may still be in the old one
    return answer_.let_go(jobs);
  }

  Answer<Key, Reading> answer_;
  std::shared_ptr<ReadingCapture> capture_ = std::make_shared<ReadingCapture>();  // used by jobs only
};

/// The pinned query, or the last position.
Index pinned_row(const PageContext& c, const Trace& trace);
/// The selected head, inside this model.
HeadId chosen_head(const PageContext& c, const Trace& trace);
/// Section POSITION: which row is asked about; pins it.
void position_control(const PageContext& c, const char* remark);
TokenName token_names(const LoadedModel& model);

/// One token to type. `id` is empty while the field is, or names no single token (then `error` says so).
struct TokenField {
  std::string text, error;
  std::optional<std::int32_t> id;
  /// Of a session, until its model is there: what `text` was the label of.
  std::optional<std::int32_t> recorded = {};
  bool unread = false;
};
/// What a session keeps of it, under `name`.
void token_record(ControlsRecord& record, const char* name, TokenField& field);
/// Once per frame, before the token is used: reads what a session held, and empties what the model that is open has no
/// row for.
void keep_inside(const PageContext& c, TokenField& field);
/// True when it changed.
bool token_field(const PageContext& c, const char* name, const std::string& hint, TokenField& field);

/// The logit that a tool takes apart: of one token, less that of another.
struct LogitFields {
  TokenField token, against;
  void keep_inside(const PageContext& c);  ///< as of one field
  void record(ControlsRecord& record);
};
/// Sections LOGIT OF (the field `name`, with the token `taken` while it is empty), LESS THAT OF and POSITION.
void logit_controls(const PageContext& c, const char* name, const std::string& taken, LogitFields& fields,
                    const char* remark);

/// A scene as wide as it is, scrolled sideways where there is no room for it. Its marks are named "id/mark".
/// `over` paints on it, inside what is in sight. `reveal`: a column of the mark "matrix" to scroll to now.
SceneTouch wide_scene(const PageContext& c, SceneSlot& slot, const char* id,
                      const std::function<void(const Scene&, const SceneTouch&)>& over = {},
                      std::optional<Index> reveal = {});
/// The cell of the mark "matrix" under the pointer.
std::optional<Cell> matrix_cell(const SceneTouch& touch);
/// Frames a cell of the mark "matrix".
void frame_cell(const PageContext& c, const Scene& scene, const SceneTouch& touch, Cell cell, Color color);
void frame_column(const PageContext& c, const Scene& scene, const SceneTouch& touch, Index column, Color color);
/// Names the cells of the mark "matrix" for tests.
void name_cells(const PageContext& c, const Scene& scene, const SceneTouch& touch,
                const std::function<std::string(Index row, Index column)>& name);
/// A chart in the next width × height; made anew when `source` or `options` change. Its marks are named "id/mark".
SceneTouch chart_slot(const PageContext& c, SceneSlot& slot, const char* id, std::shared_ptr<const void> source,
                      const std::string& options, double width, double height,
                      std::function<LineChart(const Style&)> make);
/// Slider "Layer" over the blocks of the model that is open; `layer` is kept inside it.
void layer_control(const PageContext& c, int& layer);

/// Logical height that is left in this column.
inline double room_below(const PageContext& c) {
  return static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale);
}
/// "+1.234", "−0.012", "–".
std::string signed_words(double value);

}  // namespace headscope
