#pragma once
// The Corpus workspace without its window: what shall be read, the run over it, what came out, and the passages that
// show one head. The run takes turns with everything else on the worker; stopped, it can go on. Thread rule:
// the UI thread.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/run_controller.h"
#include "app/state/sweep_controller.h"
#include "core/base/words.h"
#include "core/corpus/corpus.h"

namespace headscope {

/// What is asked for on the left of the workspace.
struct CorpusDraft {
  bool drawn = true;  ///< from the tasks of the bundled models; else the files at `path`
  int count = 300, seed = 1;
  std::string path;  ///< a file of texts, of pairs or a picture, or a folder
  bool lines = false;
  int window = 0;  ///< most tokens of a passage; 0 = the model's context
  bool operator==(const CorpusDraft&) const = default;
};

enum class ExampleKind { highest, lowest, typical };

/// A passage as it is shown: the words around the position that stands out, or the picture.
struct ShownExample {
  CorpusExample example;
  Worded place = {};                                ///< "story 17", "notes.txt, byte 8,192"
  std::string before = {}, focus = {}, after = {};  ///< focus "" = no position stands out
  std::string beside = {};                          ///< of a pair: its other text
  std::shared_ptr<const PatchPicture> picture = {};
  std::string error = {};  ///< why it cannot be shown; "" = it can
};

class CorpusController {
 public:
  enum class Phase { idle, running, stopped, finished, failed };

  /// All outlive the controller.
  CorpusController(JobRunner& jobs, DocumentEditor& editor, const RunController& run);

  CorpusDraft& draft() { return draft_; }
  /// What the open model reads; without one, texts.
  CorpusKind kind() const;

  /// What the command line names: a file of results (.json) is loaded, texts are read once a model is open.
  void begin_with(const std::filesystem::path& path);
  /// Begins the draft anew with the model that is open. What makes no sense becomes the message.
  void start();
  void stop();
  /// Goes on where it was stopped, here or in the file that was loaded: with the model of that run.
  void resume();
  /// Beside the UI thread; the message says what became of it. load() of a shard's file shows that shard, of a folder
  /// what the shards in it are together.
  void save(const std::filesystem::path& file);
  void load(const std::filesystem::path& file);
  /// Once per frame, after RunController::frame().
  void frame();

  Phase phase() const;
  bool can_resume() const;
  /// All of the draft, as it stands, was read here with the model that is open.
  bool answers_draft() const;
  double progress() const;           ///< 0 … 1
  double tokens_per_second() const;  ///< of the worker's time; 0 = nothing was run
  double seconds_left() const { return controller_.seconds_left(); }
  std::string error() const { return controller_.error(); }
  /// What is known; nullptr before the first passage.
  const std::shared_ptr<const CorpusResults>& results() const { return results_; }
  /// Whether the model that is open is the one that the results are of.
  bool of_open_model() const;

  /// The examples of one head and metric, read beside the UI thread: nullptr until they are there. Call in every frame.
  const std::vector<ShownExample>* examples(HeadId head, std::size_t metric, ExampleKind kind,
                                            Stack stack = Stack::only);
  /// Shows the passage: text, pair or picture, head and position.
  void open(const ShownExample& example, HeadId head, Stack stack = Stack::only);

 private:
  class Reading;
  void run(std::shared_ptr<Reading> reading);
  void take(std::shared_ptr<const CorpusResults> results);

  JobRunner& jobs_;
  DocumentEditor& editor_;
  const RunController& run_;
  CorpusDraft draft_;
  std::optional<CorpusDraft> began_;  // what reading_ is of
  bool start_when_open_ = false;
  SweepController controller_;
  std::shared_ptr<Reading> reading_;  // touched by the worker only, except its model and start
  std::shared_ptr<const CorpusResults> results_;
  std::uint64_t tokens_before_ = 0;
  double seconds_ = 0;
  std::optional<std::vector<ShownExample>> examples_;  // empty while they are read
  std::shared_ptr<const CorpusResults> examples_of_;
  HeadId examples_head_;
  Stack examples_stack_ = Stack::only;
  std::size_t examples_metric_ = 0;
  ExampleKind examples_kind_ = ExampleKind::highest;
};

}  // namespace headscope
