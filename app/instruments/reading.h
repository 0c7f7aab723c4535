#pragma once
// What the instruments of the group "Read" share: an answer made on the worker from the run on screen, recorded again
// with the sites that the tool reads; a position; a token; cells of a matrix. Thread rule: the UI thread.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "app/instruments/instrument.h"
#include "app/panels/scene_slot.h"
#include "app/render/reading_pictures.h"
#include "viz/scene/line_chart.h"

namespace headscope {

/// The run that an answer was made from.
struct ReadingSource {
  std::shared_ptr<const TracedRun> run;  ///< on screen
  LoadedModel model;
  std::shared_ptr<const Trace> trace;  ///< the same run with the recorded sites
};
/// nullopt while there is no run of the model that is open.
std::optional<ReadingSource> reading_source(const InstrumentContext& c);
/// On the worker: the run with these sites; `last` is kept from one call to the next, so that it is recorded once.
struct ReadingCapture {
  std::shared_ptr<const TracedRun> of;
  std::set<SiteKind> sites;
  std::shared_ptr<const Trace> trace;
};
std::shared_ptr<const Trace> record(const ReadingSource& source, const std::set<SiteKind>& sites, const Ctx& ctx,
                                    ReadingCapture& last);

/// One tool's answer: asked for when what it depends on changes; the last one stays until the next comes.
template <class Result>
class ReadingJob {
 public:
  struct Answer {
    ReadingSource source;
    std::string options;
    Result result;
  };
  using Read = std::function<Result(const ReadingSource&, const Ctx&)>;

  explicit ReadingJob(std::string tag) : tag_(std::move(tag)) {}

  /// Asks for `read` when the run on screen or `options` differ from the last call. Nothing is recorded anew when there
  /// are no sites.
  void want(const InstrumentContext& c, const std::set<SiteKind>& sites, const std::string& options, Read read) {
    auto source = reading_source(c);
    if (!source) return;
    if (shared_->answer && shared_->answer->source.model.model != source->model.model) shared_->answer.reset();
    if (source->run == run_ && options == options_) return;
    run_ = source->run;
    options_ = options;
    c.explorer().compute(tag_,
                         [source = std::move(*source), sites, options, read = std::move(read), shared = shared_,
                          backend = c.explorer().backend()](Worker::Job& job) mutable -> Worker::Deliver {
                           const Ctx ctx{.backend = *backend, .stop = job.stop, .progress = &job.progress};
                           source.trace = record(source, sites, ctx, shared->capture);
                           auto answer = std::make_shared<const Answer>(Answer{source, options, read(source, ctx)});
                           return [answer, shared] { shared->answer = answer; };
                         });
  }
  const std::shared_ptr<const Answer>& answer() const { return shared_->answer; }

 private:
  struct Shared {
    std::shared_ptr<const Answer> answer;  // UI thread
    ReadingCapture capture;                // worker
  };
  std::string tag_, options_;
  std::shared_ptr<const TracedRun> run_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

/// The pinned query, or the last position.
Index pinned_row(const InstrumentContext& c, const Trace& trace);
/// The selected head, inside this model.
HeadRef chosen_head(const InstrumentContext& c, const Trace& trace);
/// Section POSITION: which row is asked about; pins it.
void position_control(const InstrumentContext& c, const char* remark);
TokenName token_names(const LoadedModel& model);

/// One token to type. `id` is empty while the field is, or names no single token (then `error` says so).
struct TokenField {
  std::string text, error;
  std::optional<std::int32_t> id;
};
/// True when it changed.
bool token_field(const InstrumentContext& c, const char* name, const std::string& hint, TokenField& field);

/// The logit that a tool takes apart: of one token, less that of another.
struct LogitFields {
  TokenField token, against;
  /// Empties what the model that is open has no row for.
  void keep_inside(const InstrumentContext& c);
};
/// Sections LOGIT OF (the field `name`, with the token `taken` while it is empty), LESS THAT OF and POSITION.
void logit_controls(const InstrumentContext& c, const char* name, const std::string& taken, LogitFields& fields,
                    const char* remark);

/// A scene as wide as it is, scrolled sideways where there is no room for it. Its marks are named "id/mark".
/// `over` paints on it, inside what is in sight. `reveal`: a column of the mark "matrix" to scroll to now.
SceneTouch wide_scene(const InstrumentContext& c, SceneSlot& slot, const char* id,
                      const std::function<void(const Scene&, const SceneTouch&)>& over = {},
                      std::optional<Index> reveal = {});
/// The cell of the mark "matrix" under the pointer.
std::optional<Cell> matrix_cell(const SceneTouch& touch);
/// Frames a cell of the mark "matrix".
void frame_cell(const InstrumentContext& c, const Scene& scene, const SceneTouch& touch, Cell cell, Color color);
void frame_column(const InstrumentContext& c, const Scene& scene, const SceneTouch& touch, Index column, Color color);
/// Names the cells of the mark "matrix" for tests.
void name_cells(const InstrumentContext& c, const Scene& scene, const SceneTouch& touch,
                const std::function<std::string(Index row, Index column)>& name);
/// A chart in the next width × height; made anew when `source` or `options` change. Its marks are named "id/mark".
SceneTouch chart_slot(const InstrumentContext& c, SceneSlot& slot, const char* id, std::shared_ptr<const void> source,
                      const std::string& options, double width, double height,
                      std::function<LineChart(const Look&)> make);
/// Slider "Layer" over the blocks of the model that is open; `layer` is kept inside it.
void layer_control(const InstrumentContext& c, int& layer);

/// Logical height that is left in this column.
inline double room_below(const InstrumentContext& c) {
  return static_cast<double>(ImGui::GetContentRegionAvail().y / c.ui.scale);
}
/// What to say while there is no answer.
void no_reading_yet(const InstrumentContext& c);
/// "+1.234", "−0.012", "–".
std::string signed_words(double value);

}  // namespace headscope
