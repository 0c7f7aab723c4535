#pragma once
// What an encoder-decoder learns from: texts of one sentence or several of two small languages
// (core/train/translation.h) and their words' alignment. One vocabulary serves both.

#include "core/train/tasks.h"
#include "core/train/translation.h"

namespace headscope {

class TranslateTask final : public Task {
 public:
  explicit TranslateTask(const TaskSettings& settings);
  Batch batch(std::int64_t step, int sequences, int length) const override;
  std::string probe_text(int length) const override;
  std::string probe_source() const override;

  /// Whether source and target, with the end that each has, are within a context of `length`.
  bool fits(const Translation& sentence, int length) const;
  /// Texts held out: of their sentences no model learns any.
  std::vector<Translation> held_out_translations(int count) const;
  /// Texts held out whose sources have so many words. Throws Error where none has.
  std::vector<Translation> held_out_of_length(int words, int count) const;
  /// These as a batch for a context of `length`. Throws Error when one is longer.
  Batch batch_of(const std::vector<Translation>& texts, int length) const;
  /// One of them on which alignment can be watched.
  Translation probe() const;
  /// What the encoder reads of it: its tokens and the end-of-text.
  std::vector<std::int32_t> source_ids(const Translation& sentence) const;
  /// What the decoder writes, without the ends.
  std::vector<std::int32_t> target_ids(const Translation& sentence) const;

 private:
  HeldOut draw_held_out(int rows, int sequences, int length) const override;
  static TrainedBpe learn_words(const TaskSettings& settings);
  std::vector<Batch> batches(const std::vector<Translation>& sentences, int sequences, int length) const;
};

}  // namespace headscope
