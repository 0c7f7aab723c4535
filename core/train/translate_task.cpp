#include "core/train/translate_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/train/batches.h"

namespace headscope {

namespace {
/// The next text of at most so many sentences, all of which are held out, or none.
Translation draw_text(Random& numbers, bool held_out, int most) {
  const auto sentence = [&] {
    for (;;)
      if (Translation drawn = draw_translation(numbers); drawn.held_out() == held_out) return drawn;
  };
  int more = most > 1 ? static_cast<int>(numbers.below(static_cast<std::uint64_t>(most))) : 0;
  Translation text = sentence();
  for (; more > 0; --more) text = joined(text, sentence());
  return text;
}

}  // namespace

TrainedBpe TranslateTask::learn_words(const TaskSettings& settings) {
  Random numbers(Random(settings.seed).next() + static_cast<std::uint64_t>(Stream::vocabulary));
  std::vector<std::string> texts;
  for (int i = 0; i < settings.vocabulary_stories; ++i) {
    const Translation drawn = draw_text(numbers, false, settings.sentences);
    texts.push_back(drawn.source_text());
    texts.push_back(drawn.target_text());
  }
  return train_bpe(texts, {.vocab_size = settings.vocabulary, .ends = true});
}

TranslateTask::TranslateTask(const TaskSettings& settings) : Task(settings, learn_words(settings)) {}

std::vector<std::int32_t> TranslateTask::source_ids(const Translation& sentence) const {
  std::vector<std::int32_t> ids = ids_of(*tokenizer(), sentence.source_text());
  ids.push_back(vocabulary().end_of_text_id());
  return ids;
}

std::vector<std::int32_t> TranslateTask::target_ids(const Translation& sentence) const {
  return ids_of(*tokenizer(), sentence.target_text());
}

std::vector<Batch> TranslateTask::batches(const std::vector<Translation>& sentences, int sequences, int length) const {
  std::vector<std::vector<std::int32_t>> sources, targets;
  for (const Translation& each : sentences) {
    sources.push_back(source_ids(each));
    targets.push_back(target_ids(each));
    const std::size_t longer = std::max(sources.back().size(), targets.back().size() + 1);
    if (longer > static_cast<std::size_t>(length))
      throw Error("sentences", fmt::format("at most {} tokens, the context", length), fmt::format("one of {}", longer),
                  "a longer context or a larger vocabulary");
  }
  std::vector<Batch> out = batches_of(targets, sequences, vocabulary().end_of_text_id(), true);
  auto next = sources.begin();
  for (Batch& batch : out)
    for (int i = 0; i < batch.sequences; ++i, ++next) {
      batch.source.insert(batch.source.end(), next->begin(), next->end());
      batch.source_lengths.push_back(static_cast<Index>(next->size()));
    }
  return out;
}

Batch TranslateTask::batch(std::int64_t step, int sequences, int length) const {
  Random numbers = random(Stream::train, step);
  std::vector<Translation> drawn;
  for (int i = 0; i < sequences; ++i) drawn.push_back(draw_text(numbers, false, settings().sentences));
  return batches(drawn, sequences, length).front();
}

bool TranslateTask::fits(const Translation& sentence, int length) const {
  return std::max(source_ids(sentence).size(), target_ids(sentence).size() + 1) <= static_cast<std::size_t>(length);
}

HeldOut TranslateTask::draw_held_out(int rows, int sequences, int length) const {
  HeldOut out;
  std::vector<Translation> drawn = held_out_translations(rows);
  out.left_out = static_cast<int>(std::erase_if(drawn, [&](const Translation& each) { return !fits(each, length); }));
  out.batches = batches(drawn, sequences, length);
  out.targets = counted(out.batches);
  out.floor = 0;  // a source determines its target
  return out;
}

std::vector<Translation> TranslateTask::held_out_translations(int count) const {
  Random numbers = random(Stream::held_out);
  std::vector<Translation> drawn;
  for (int i = 0; i < count; ++i) drawn.push_back(draw_text(numbers, true, settings().sentences));
  return drawn;
}

std::vector<Translation> TranslateTask::held_out_of_length(int words, int count) const {
  const int most = settings().sentences * (longest_sentence + 1) - 1;
  if (words < shortest_sentence || words > most)
    throw Error(
        "words of a text",
        fmt::format("{} to {}, as texts of up to {} sentences have", shortest_sentence, most, settings().sentences),
        fmt::format("{}", words));
  Random numbers = random(Stream::held_out, words);
  std::vector<Translation> drawn;
  while (static_cast<int>(drawn.size()) < count)
    if (Translation text = draw_text(numbers, true, settings().sentences); std::ssize(text.source) == words)
      drawn.push_back(std::move(text));
  return drawn;
}

Batch TranslateTask::batch_of(const std::vector<Translation>& texts, int length) const {
  return batches(texts, static_cast<int>(texts.size()), length).front();
}

/// Long enough to show what is particular: an adverb, a place, an adjective.
Translation TranslateTask::probe() const {
  Random numbers = random(Stream::probe);
  for (;;)
    if (Translation drawn = draw_text(numbers, true, settings().sentences); drawn.source.size() >= 10) return drawn;
}

std::string TranslateTask::probe_text(int) const {
  return probe().target_text();
}

std::string TranslateTask::probe_source() const {
  return probe().source_text();
}

}  // namespace headscope
