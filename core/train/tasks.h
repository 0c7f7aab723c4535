#pragma once
// What a model learns from: an endless supply of batches, a held-out part with its floor (the loss below which no model
// can stay on average), and a text to watch. Everything follows from the settings, so a recipe names its data
// completely. A new task is one class and one line in make_task() (tasks.cpp).

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/text/bpe_trainer.h"
#include "core/text/tokenizer.h"
#include "core/train/language.h"
#include "core/train/learner.h"

namespace headscope {

struct TaskSettings {
  std::string kind = "stories";  ///< "stories", "masked", "repeated", "backcopy", "translate" or "shapes"
  std::uint64_t seed = 1;        ///< of all data; held-out data has a stream of its own
  // stories: the language of a grammar; masked: the same, of which an encoder tells masked tokens
  std::string grammar = "stories";  ///< Grammar::named
  int vocabulary = 1536;            ///< tokens at most, 257 at least
  int vocabulary_stories = 4000;    ///< what the tokenizer is trained on
  // translate: sentences of core/train/translation.h, with a vocabulary of so many tokens and texts, likewise
  int sentences = 1;  ///< of a text at most; each number of them is as frequent
  // repeated: random printable characters, each row said again and again with its own period
  int shortest_period = 8, longest_period = 32;
  // backcopy: letters of core/train/backcopy_task.h, each of which says what may follow; behind a mark copied
  int letters = 20;         ///< of its alphabet, 5 … 26
  double mark_share = 0.2;  ///< chance of a mark behind a letter
  // shapes: pictures of core/io/shapes.h
  int side = 48, patch = 6;  ///< of a picture and its patches, pixels
  int distractors = 3;       ///< shapes of other colours beside the one that counts

  /// Throws Error at `where` when a number makes no sense.
  void check(const std::string& where) const;
  /// Whether its texts are stories, whose links are known.
  bool tells_stories() const { return kind == "stories" || kind == "masked"; }
  /// Whether its tokens are bytes: then nothing is learnt of words.
  bool reads_bytes() const { return kind == "repeated" || kind == "backcopy"; }
  /// Whether every text is made of a source that the model reads beside it.
  bool translates() const { return kind == "translate"; }
  /// Whether a model sees pictures and tells what they show.
  bool draws() const { return kind == "shapes"; }
  bool operator==(const TaskSettings&) const = default;
};

/// Data the model never learns from.
struct HeldOut {
  std::vector<Batch> batches;
  std::int64_t targets = 0;  ///< counted ones, in all batches
  /// Nats per counted target: Σ −log p of the texts ÷ targets, exact for these texts. NaN where nobody knows it: of
  /// masked tokens, of which the language would have to say how likely each is between the others.
  double floor = 0;
  int left_out = 0;  ///< rows that are longer than what they were drawn for; neither targets nor floor count them
};

/// Immutable; any thread.
class Task {
 public:
  virtual ~Task() = default;
  const TaskSettings& settings() const { return settings_; }
  const TrainedBpe& vocabulary() const { return vocabulary_; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }

  /// The batch of a step: every row begins with the end-of-text token (masked: and ends with it; translate: with one
  /// sentence a row, whose end counts as a token). The same step gives the same batch.
  virtual Batch batch(std::int64_t step, int sequences, int length) const = 0;
  /// `rows` rows, in batches of at most `sequences`. Stories: one per row, its end counted as a token; throws Error
  /// when one is longer than `length`.
  HeldOut held_out(int rows, int sequences, int length) const;
  /// The same without rows that are longer: a model that was trained on texts that all fit may meet others among more
  /// of them. Throws Error when none fits.
  HeldOut held_out_that_fit(int rows, int sequences, int length) const;
  /// A text of at most `length` tokens on which heads can be watched, the same at any time.
  virtual std::string probe_text(int length) const = 0;
  /// What it is a translation of; "" where it is of nothing.
  virtual std::string probe_source() const { return ""; }

 protected:
  Task(TaskSettings settings, TrainedBpe vocabulary);
  /// Of a task without texts: what is told has names.
  Task(TaskSettings settings, std::shared_ptr<const Tokenizer> names)
      : settings_(std::move(settings)), tokenizer_(std::move(names)) {}
  /// Without the rows that are longer than `length`, which are counted.
  virtual HeldOut draw_held_out(int rows, int sequences, int length) const = 0;
  /// Random numbers of one stream: training step, held-out data, probe.
  enum class Stream : std::uint64_t { train = 1, held_out = 2, probe = 3, vocabulary = 4 };
  Random random(Stream stream, std::int64_t step = 0) const;
  /// These, one a row; with `ends` the end-of-text token behind each counts too. `log_probability`: of all together, in
  /// nats, which no model can be above.
  HeldOut held_out_texts(const std::vector<std::string>& texts, int sequences, bool ends, double log_probability) const;

 private:
  TaskSettings settings_;
  TrainedBpe vocabulary_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

/// Throws Error as check() does.
std::shared_ptr<const Task> make_task(const TaskSettings& settings);

/// The stories held out, as text with their links: what heads are measured on. Throws Error when the task is another.
std::vector<Story> held_out_stories(const Task& task, int count);

/// A row of the task "repeated", said with a period known beforehand: the standard test of induction. `length`
/// characters.
std::string repeated_text(Random& random, int period, int length);
/// log p of such a row when its period is known to be one of [shortest, longest], all alike: what was drawn freely
/// costs ln 95 a character, whatever period explains the repetitions. −∞ when none does.
double repeated_log_probability(std::string_view text, int shortest, int longest);

}  // namespace headscope
