#pragma once
// What a trial lets learn: a model of any make, of which it asks nothing but to learn, and to say where it stands.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/trace/trace.h"
#include "core/train/training_course.h"

namespace headscope {

/// One thread at a time.
class TrialModel {
 public:
  virtual ~TrialModel() = default;
  /// Up to `steps` more. Throws as Trainer::run; then it can go on.
  virtual void learn(std::int64_t steps, std::stop_token stop) = 0;
  virtual const TrainingProgress& progress() const = 0;
  virtual const std::vector<TrainingPoint>& curve() const = 0;
  virtual std::int64_t parameters() const = 0;
  /// Numbers that it keeps of a text of the context's length: keys, values, states.
  virtual std::int64_t state() const = 0;
  /// How much it gets right of held-out texts of a size, 0 … 1. Throws Cancelled.
  virtual double score(int size, std::stop_token stop) = 0;
  /// Where it looks in a held-out source, always the same, as it writes the true target: a trace of one map, a row for
  /// the token that is being written, a column for each of the source's. Null of models that align nothing. Throws
  /// Cancelled.
  virtual std::shared_ptr<const Trace> alignment(std::stop_token) { return nullptr; }
  /// The words that it makes of that source by itself, up to the end that it sets; empty of models that write nothing.
  /// Throws Cancelled.
  virtual std::vector<std::string> written(std::stop_token) { return {}; }
};

/// Makes the model of a recipe. `backend` must outlive it. Throws Error as Trainer does.
using MakeTrialModel = std::function<std::unique_ptr<TrialModel>(const Recipe& recipe, Backend& backend)>;

/// A transformer, with a linear recurrence in place of softmax in the layers named (core/train/recurrent_layers.h). Of
/// the task "repeated"; its score is the share of the characters said for the second time that come first, `size` of
/// them.
MakeTrialModel transformer(std::set<int> recurrent = {});

/// A recurrent encoder-decoder (core/train/seq2seq.h) as wide as the recipe's model, of whose shape nothing else
/// counts. Of the task "translate"; its score is the share of the target's tokens, the end among them, that it writes
/// at their place when it reads on what it wrote itself; of texts whose source has `size` words.
enum class SourceReading { one_vector, one_vector_backwards, attention };
MakeTrialModel recurrent_pair(SourceReading how);

}  // namespace headscope
