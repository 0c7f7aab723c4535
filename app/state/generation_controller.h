#pragma once
// The Generate workspace without its window: the open prompt continued one token at a time or running, every step kept,
// forks kept as branches one can return to, and the studies that go with it. Passes take turns with everything else on
// the worker. Thread rule: the UI thread.

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/state/answer.h"
#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/run_controller.h"
#include "app/state/session_files.h"
#include "app/state/transcript_record.h"
#include "core/base/words.h"
#include "core/generate/beam_search.h"
#include "core/generate/generation.h"
#include "core/generate/generation_cost.h"
#include "core/generate/streaming.h"
#include "core/generate/teacher_forcing.h"

namespace headscope {

/// A step with what is said about its choice.
struct ToldStep {
  std::shared_ptr<const GenerationStep> step;
  double probability = 0, share = 0;     ///< of the token: softmax(logits), and what was drawn from
  double entropy = 0, entropy_kept = 0;  ///< nats, of the same two
  std::size_t rank = 0, kept = 0;        ///< of the token, from 0; tokens that were not cut
};
ToldStep tell(std::shared_ptr<const GenerationStep> step);
/// Logits and rows were let go.
inline bool is_dropped(const GenerationStep& step) {
  return !step.logits.defined();
}

struct GenerationBranch {
  int id = 0, parent = -1;      ///< −1: from the prompt
  std::size_t from = 0;         ///< steps shared with the parent
  std::vector<ToldStep> steps;  ///< the shared ones first
  Worded ended;                 ///< why there is no next step; "" = there is one
  Transcript transcript(const std::vector<std::int32_t>& prompt) const;
};

class GenerationController {
 public:
  struct Settings {
    SamplingSettings sampling{.temperature = 0.8};
    bool greedy = false;  ///< whatever the temperature says
    std::uint64_t seed = 1;
    bool past_end = false;  ///< go on after the token that ends texts
    double pace = 8;        ///< tokens per second while running; 0 = as fast as it goes
    SamplingSettings used() const;
  };
  enum class Study { transcript, beams, cost, streaming, forcing };
  static constexpr const char* tag = "generation";  ///< of its jobs

  /// Keeps logits and rows of steps inside `byte_budget`: the oldest go, and are made again when they are looked at.
  GenerationController(JobRunner& jobs, DocumentEditor& editor, const RunController& run, SessionFiles& files,
                       std::size_t byte_budget = std::size_t{256} << 20);
  ~GenerationController();
  GenerationController(const GenerationController&) = delete;
  GenerationController& operator=(const GenerationController&) = delete;

  /// Once per frame, after RunController::frame(): takes the open prompt while nothing is written yet, goes on while
  /// running. `shown`: the workspace is on screen; only then is anything computed that nobody asked for.
  void frame(bool shown);

  Settings& settings() { return settings_; }

  // ---- the text
  /// Where the text begins: its tokens; null before the first run.
  const std::shared_ptr<const TracedRun>& prompt() const { return prompt_; }
  const LoadedModel& model() const { return opened_.model; }
  /// The document shows another prompt, model or edits than this text began with.
  bool prompt_changed() const;
  /// False: the open model is none to continue texts with.
  bool model_continues() const;
  /// Begins anew with what the document shows; all branches go.
  void take_prompt();
  /// Prompt and the steps of the chosen branch as a text of tokens, without maps.
  const std::shared_ptr<const Trace>& text() const { return text_; }
  std::string label(std::int32_t id) const;

  // ---- writing
  bool ready() const { return prompt_ && branch().ended.empty(); }
  bool running() const { return running_; }
  void step();  ///< one token at the end of the chosen branch
  void run();
  void pause() { running_ = false; }
  /// Once there is a prompt: so many tokens at full speed.
  void write_at_once(int tokens) { at_once_ = tokens; }
  /// The step that would come at the end of the branch, its logits read: what one can choose from. Null while it is
  /// read.
  const std::optional<ToldStep>& next() const { return next_; }

  // ---- looking back
  const std::vector<GenerationBranch>& branches() const { return branches_; }
  const GenerationBranch& branch() const { return branches_[chosen_]; }
  std::size_t chosen() const { return chosen_; }
  void choose(std::size_t branch);
  void remove(std::size_t branch);  ///< not the only one; what grew from it stays
  /// Steps before the cursor: 0 … branch().steps.size(); there, the next token is looked at, if there is to be one.
  std::size_t cursor() const {
    const std::size_t steps = branch().steps.size();
    return std::min(cursor_, branch().ended.empty() || steps == 0 ? steps : steps - 1);
  }
  void show(std::size_t cursor) { cursor_ = cursor; }
  /// The step at the cursor: a written one, or the next; null while that is read, or made again.
  const ToldStep* at_cursor() const;
  /// Steps whose logits and rows were let go, and the budget in bytes.
  std::size_t dropped() const;
  std::size_t byte_budget() const { return byte_budget_; }
  /// A new branch with the steps before `at`, and then this token, or (none) what the present settings and seed draw.
  void fork(std::size_t at, std::optional<std::int32_t> token);
  // ---- sessions
  /// How every token was chosen; nullopt while nothing is written. A text that was to be made again is this one until
  /// it is, also when that was stopped or failed, until another is written.
  std::optional<TranscriptRecord> record() const;
  /// Makes the same steps again, once the model is open. A step that comes out otherwise (another build, another
  /// processor) keeps the recorded token, and the message says so.
  void replay(TranscriptRecord record) {
    replay_ = std::move(record);
    replay_state_ = ReplayState::waiting;
  }
  bool replaying() const { return replay_state_ == ReplayState::waiting || replay_state_ == ReplayState::running; }
  /// It was stopped, or failed; replay_again() tries once more.
  bool replay_refused() const { return replay_state_ == ReplayState::refused; }
  void replay_again() {
    if (replay_refused()) replay_state_ = ReplayState::waiting;
  }

  /// Puts prompt and continuation up to the cursor's end of the branch into the document.
  void open_in_explore();

  // ---- beams, searched for from the prompt while they are wanted (Study::beams)
  /// What is searched; the token that ends texts is added to it.
  BeamSettings& beam_settings() { return beam_settings_; }
  bool& shows_dropped() { return shows_dropped_; }  ///< the tree's candidates that were not kept
  /// The last search that was finished, perhaps of other settings, and its settings.
  const std::shared_ptr<const BeamTree>& beams() const { return beams_.last(); }
  const BeamSettings* searched() const { return beams_.last_key() ? &beams_.last_key()->settings : nullptr; }
  bool searching() const { return beams_.under_way(); }
  /// The text up to this node becomes the chosen branch: a new one, unless one has these tokens.
  void follow(std::size_t node);
  /// The node whose text is the chosen branch, as long as it is.
  std::optional<std::size_t> followed() const;
  /// Back to the branch that was chosen before the first text was followed.
  void leave_beam();

  // ---- studies, computed when they are asked for in frame after frame
  const std::shared_ptr<const std::vector<GenerationCost>>& costs() const { return costs_.last(); }
  struct StreamingView {
    LoadedModel model;  ///< that read
    std::vector<std::int32_t> ids;
    std::size_t given = 0;  ///< tokens of `ids` that were there; the model wrote the others
    StreamingSettings settings;
    bool learnt = false;                      ///< `ids` are of the language it learnt, whatever this branch says
    Worded source;                            ///< where the text comes from
    std::vector<std::vector<double>> losses;  ///< by CachePolicy
    std::vector<FirstTokenShare> rests;       ///< of its heads, the largest first
    std::vector<FirstTokenShare> rests_anew;  ///< the same in the window behind the first, read from position 0
  };
  /// The bundled model that learnt to rest on the first token: what streaming is shown on while the open model is one
  /// that came with the program, unless somebody chooses otherwise.
  static constexpr const char* streaming_example = "sink-2l";
  bool streams_example() const;
  enum class Streamed { usual, example, open };
  Streamed& streamed() { return streamed_; }
  /// Of the model that streams.
  StreamingSettings& streaming_settings() { return streams_example() ? example_settings_ : streaming_settings_; }
  /// The last that was measured of the model that streams; null while nothing was.
  std::shared_ptr<const StreamingView> streaming() const;
  int& forcing_given() { return forcing_given_; }
  const std::shared_ptr<const ForcedAndFree>& forcing() const { return forcing_.last(); }
  void want(Study study) { wanted_ = study; }
  bool studying() const { return costs_.under_way() || streaming_.under_way() || forcing_.under_way(); }

 private:
  struct Written;
  struct Replayed;  // a transcript made again
  /// A model is run on the device that it was opened for.
  struct Opened {
    LoadedModel model;
    std::shared_ptr<Backend> backend;
  };
  Opened opened() const;  // for the device that computes now
  bool run_at_hand() const;
  void begin();
  void submit_replay();
  void forget_replay();
  void deliver(Replayed replayed);
  void submit_recall(std::size_t at);
  void hold(const std::shared_ptr<const GenerationStep>& step);
  void drop_oldest();
  void let_go_unused();
  void replace_step(const std::shared_ptr<const GenerationStep>& old, std::shared_ptr<const GenerationStep> now);
  void forget_transcript();
  void submit(const std::vector<std::int32_t>& given, bool append);
  void deliver(const Written& answer);
  void gave_up(std::uint64_t version, const std::vector<std::int32_t>& given);
  void follow_device();
  void append(const ToldStep& step);
  void changed_branch();
  Generator::Choice choice() const;
  void study();
  void put_off_studies(Study except);
  struct BeamsOf {
    std::shared_ptr<const TracedRun> prompt;
    BeamSettings settings;
    bool operator==(const BeamsOf&) const = default;
  };
  /// A node of a tree whose text is looked at.
  struct Followed {
    std::shared_ptr<const BeamTree> tree;
    std::size_t node = 0;
    int branch = 0, before = 0;  // ids
  };
  void search_beams();
  struct StreamingOf {
    std::shared_ptr<const Model> model;
    std::uint64_t version;  // of the text
    StreamingSettings settings;
    std::uint64_t seed;
    bool example;
    bool operator==(const StreamingOf&) const = default;
  };
  struct ForcingOf {
    std::shared_ptr<const TracedRun> prompt;
    std::size_t given;
    Generator::Choice choice;
    bool operator==(const ForcingOf&) const = default;
  };

  JobRunner& jobs_;
  DocumentEditor& editor_;
  const RunController& run_;
  SessionFiles& files_;
  Settings settings_;
  Opened opened_;
  std::shared_ptr<const TracedRun> prompt_;
  std::shared_ptr<const Trace> text_;
  std::shared_ptr<Generator> generator_;  // used by jobs only
  std::vector<GenerationBranch> branches_{GenerationBranch{}};
  std::size_t chosen_ = 0, cursor_ = std::numeric_limits<std::size_t>::max();
  int next_id_ = 1;
  std::optional<ToldStep> next_;
  Generator::Choice next_choice_;  // that next_ was drawn with
  std::uint64_t version_ = 0;      // of the chosen branch's end: answers to older questions are dropped
  bool running_ = false, in_flight_ = false, appending_ = false, reading_failed_ = false;
  bool device_failed_ = false;  // that opened_ is for: nothing is asked of it any more
  int at_once_ = 0;
  std::uint64_t stops_ = 0;  // of the runner, as last seen
  /// Steps asked for while another was under way, or whose card failed: tokens to append, none = one as the settings
  /// choose it.
  std::deque<std::vector<std::int32_t>> owed_;
  std::size_t byte_budget_;
  std::deque<std::shared_ptr<const GenerationStep>> held_;  // with tensors, oldest first
  std::size_t held_bytes_ = 0;
  std::shared_ptr<const GenerationStep> recalled_;  // that is being made again
  std::optional<TranscriptRecord> replay_;          // until it is made
  enum class ReplayState {
    none,
    waiting,
    running,
    refused
  } replay_state_ = ReplayState::none;  // waiting: for its model
  std::chrono::steady_clock::time_point last_step_{};
  BeamSettings beam_settings_{.tokens = 16};
  bool shows_dropped_ = true;
  std::optional<Followed> followed_;
  StreamingSettings streaming_settings_, example_settings_{.window = 32};
  Streamed streamed_ = Streamed::usual;
  const std::optional<std::filesystem::path> example_folder_;
  int forcing_given_ = 0;
  Study wanted_ = Study::transcript;
  Answer<BeamsOf, BeamTree> beams_{{"generation beams", to_say("searching")}, Holds::numbers};
  Answer<std::shared_ptr<const Model>, std::vector<GenerationCost>> costs_{
      {"generation study cost", to_say("measuring generation")}};
  Answer<StreamingOf, StreamingView> streaming_{{"generation study streaming", to_say("measuring generation")},
                                                Holds::numbers};
  Answer<ForcingOf, ForcedAndFree> forcing_{{"generation study forcing", to_say("measuring generation")},
                                            Holds::numbers};
};

}  // namespace headscope
