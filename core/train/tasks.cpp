#include "core/train/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/run/masked_tokens.h"
#include "core/train/backcopy_task.h"
#include "core/train/batches.h"
#include "core/train/shapes_task.h"
#include "core/train/translate_task.h"

namespace headscope {

namespace {

constexpr char first_printable = ' ', last_printable = '~';
constexpr int printable = last_printable - first_printable + 1;

const Grammar& grammar_of(const TaskSettings& settings) {
  return Grammar::named(settings.grammar, "task: grammar");
}

/// One story after another, end-of-text between them, cut at the end of the row.
class Stories : public Task {
 public:
  explicit Stories(const TaskSettings& settings, bool masks = false)
      : Task(settings, learn_vocabulary(settings, masks)) {}

  Batch batch(std::int64_t step, int sequences, int length) const override {
    Random numbers = random(Stream::train, step);
    std::vector<std::vector<std::int32_t>> rows;
    for (int i = 0; i < sequences; ++i) rows.push_back(row(numbers, length));
    return batches_of(rows, sequences, vocabulary().end_of_text_id(), false).front();
  }

  std::string probe_text(int length) const override {
    Random numbers = random(Stream::probe);
    std::string text;
    for (int i = 0; i < 64; ++i) {
      text = language_.sample(numbers).text;
      if (static_cast<int>(ids_of(*tokenizer(), text).size()) < length) return text;
    }
    // No story is that short: the beginning of one.
    const std::vector<Token> tokens = tokenizer()->encode(text);
    return text.substr(0, static_cast<std::size_t>(nth(tokens, std::max(length - 2, 0)).end));
  }

  std::vector<Story> stories(int count) const {
    Random numbers = random(Stream::held_out);
    std::vector<Story> drawn;
    for (int i = 0; i < count; ++i) drawn.push_back(language_.sample(numbers));
    return drawn;
  }

 protected:
  HeldOut draw_held_out(int rows, int sequences, int length) const override {
    std::vector<std::string> texts;
    double log_probability = 0;
    for (Story& story : stories(rows)) {
      if (ids_of(*tokenizer(), story.text).size() >= static_cast<std::size_t>(length)) continue;  // its end is one more
      log_probability += language_.log_probability(story.text);  // all derivations, not only the one that was drawn
      texts.push_back(std::move(story.text));
    }
    HeldOut out = held_out_texts(texts, sequences, true, log_probability);
    out.left_out = rows - static_cast<int>(texts.size());
    return out;
  }

  /// `length` tokens behind the end-of-text that every row begins with.
  std::vector<std::int32_t> row(Random& numbers, int length) const {
    std::vector<std::int32_t> row;
    while (static_cast<int>(row.size()) < length) {
      if (!row.empty()) row.push_back(vocabulary().end_of_text_id());
      const auto ids = ids_of(*tokenizer(), language_.sample(numbers).text);
      row.insert(row.end(), ids.begin(), ids.end());
    }
    row.resize(static_cast<std::size_t>(length));
    return row;
  }

 private:
  static TrainedBpe learn_vocabulary(const TaskSettings& settings, bool masks) {
    const Language language(grammar_of(settings));
    Random numbers = Random(Random(settings.seed).next() + static_cast<std::uint64_t>(Stream::vocabulary));
    std::vector<std::string> texts;
    for (int i = 0; i < settings.vocabulary_stories; ++i) texts.push_back(language.sample(numbers).text);
    return train_bpe(texts, {.vocab_size = settings.vocabulary, .masks = masks});
  }

  Language language_{grammar_of(settings())};
};

/// Stories of which tokens are to be told: masked, replaced or left, drawn anew for every row.
class MaskedStories final : public Stories {
 public:
  explicit MaskedStories(const TaskSettings& settings) : Stories(settings, true) {}

  Batch batch(std::int64_t step, int sequences, int length) const override {
    Random numbers = random(Stream::train, step);
    return drawn(numbers, sequences, length);
  }

 private:
  HeldOut draw_held_out(int rows, int sequences, int length) const override {
    Random numbers = random(Stream::held_out);
    HeldOut out;
    for (int at = 0; at < rows; at += sequences)
      out.batches.push_back(drawn(numbers, std::min(sequences, rows - at), length));
    out.targets = counted(out.batches);
    out.floor = nan;
    return out;
  }

  Batch drawn(Random& numbers, int sequences, int length) const {
    Batch batch{sequences, length, {}, {}};
    const std::int32_t end = vocabulary().end_of_text_id();
    for (int i = 0; i < sequences; ++i) {
      std::vector<Token> tokens(static_cast<std::size_t>(length));
      const std::vector<std::int32_t> text = row(numbers, length - 2);
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        tokens[t].id = t == 0 || t + 1 == tokens.size() ? end : text[t - 1];
        tokens[t].begin = tokens[t].id == end ? -1 : 0;  // what stands around texts is not asked for
      }
      std::vector<std::int32_t> targets(tokens.size(), -1);
      for (const MaskedPosition& each : draw_masked(tokens, {}, end, numbers.next())) {
        nth(targets, each.position) =
            std::exchange(nth(tokens, each.position).id, each.shown.value_or(vocabulary().mask_id()));
      }
      for (const Token& token : tokens) batch.tokens.push_back(token.id);
      batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
    }
    return batch;
  }
};

/// Random printable characters with a period that only the text itself tells: to go on, a model must look back.
class Repeated final : public Task {
 public:
  explicit Repeated(const TaskSettings& settings) : Task(settings, train_bpe({}, {.vocab_size = 257})) {}

  Batch batch(std::int64_t step, int sequences, int length) const override {
    Random numbers = random(Stream::train, step);
    std::vector<std::vector<std::int32_t>> rows;
    for (int i = 0; i < sequences; ++i) rows.push_back(ids_of(*tokenizer(), row(numbers, length)));
    return batches_of(rows, sequences, vocabulary().end_of_text_id(), false).front();
  }

  std::string probe_text(int length) const override {
    Random numbers = random(Stream::probe);
    const int period = std::max((length - 1) / 2, 1);
    return repeated_text(numbers, period, 2 * period);
  }

 private:
  HeldOut draw_held_out(int rows, int sequences, int length) const override {
    Random numbers = random(Stream::held_out);
    std::vector<std::string> texts;
    double log_probability = 0;
    for (int i = 0; i < rows; ++i) {
      texts.push_back(row(numbers, length));
      log_probability += repeated_log_probability(texts.back(), settings().shortest_period, settings().longest_period);
    }
    return held_out_texts(texts, sequences, false, log_probability);
  }

  std::string row(Random& numbers, int length) const {
    const int periods = settings().longest_period - settings().shortest_period + 1;
    const int period =
        settings().shortest_period + static_cast<int>(numbers.below(static_cast<std::uint64_t>(periods)));
    return repeated_text(numbers, period, length);
  }
};

void check_range(int value, int low, int high, const std::string& where) {
  if (value < low || value > high)
    throw Error(where, fmt::format("a number in {}…{}", low, high), fmt::format("{}", value));
}

}  // namespace

void TaskSettings::check(const std::string& where) const {
  if (!tells_stories() && !translates() && !draws() && !reads_bytes())
    throw Error(where + ": kind", "\"stories\", \"masked\", \"repeated\", \"backcopy\", \"translate\" or \"shapes\"",
                fmt::format("\"{}\"", kind));
  if (tells_stories()) Grammar::named(grammar, where + ": grammar");
  check_range(vocabulary, kind == "masked" ? 258 : 257, 65536, where + ": vocabulary");
  check_range(vocabulary_stories, 1, 1'000'000, where + ": vocabulary_stories");
  check_range(sentences, 1, 64, where + ": sentences");
  check_range(side, 24, 512, where + ": side");
  check_range(patch, 2, side, where + ": patch");
  if (side % patch != 0)
    throw Error(where + ": patch", fmt::format("a divisor of the side {}", side), fmt::format("{}", patch));
  check_range(distractors, 0, 16, where + ": distractors");
  check_range(letters, 5, 26, where + ": letters");
  if (!(mark_share > 0 && mark_share < 1))
    throw Error(where + ": mark_share", "a number above 0 and below 1", fmt::format("{}", mark_share));
  check_range(shortest_period, 1, 1 << 20, where + ": shortest_period");
  check_range(longest_period, shortest_period, 1 << 20, where + ": longest_period");
}

Task::Task(TaskSettings settings, TrainedBpe vocabulary)
    : settings_(std::move(settings)), vocabulary_(std::move(vocabulary)), tokenizer_(make_tokenizer(vocabulary_)) {}

HeldOut Task::held_out(int rows, int sequences, int length) const {
  HeldOut out = held_out_that_fit(rows, sequences, length);
  if (out.left_out > 0)
    throw Error("held-out texts", fmt::format("texts of at most {} tokens, the context", length),
                fmt::format("{} of {} that are longer", out.left_out, rows), "a longer context or a larger vocabulary");
  return out;
}

HeldOut Task::held_out_that_fit(int rows, int sequences, int length) const {
  HeldOut out = draw_held_out(rows, sequences, length);
  if (out.batches.empty())
    throw Error("held-out texts", fmt::format("texts of at most {} tokens, the context", length),
                rows == 1 ? "one that is longer" : fmt::format("{}, all of them longer", rows),
                "a longer context or a larger vocabulary");
  return out;
}

HeldOut Task::held_out_texts(const std::vector<std::string>& texts, int sequences, bool ends,
                             double log_probability) const {
  std::vector<std::vector<std::int32_t>> rows;
  for (const std::string& text : texts) rows.push_back(ids_of(*tokenizer(), text));
  HeldOut out;
  out.batches = batches_of(rows, sequences, vocabulary().end_of_text_id(), ends);
  out.targets = counted(out.batches);
  out.floor = -log_probability / static_cast<double>(out.targets);
  return out;
}

Random Task::random(Stream stream, std::int64_t step) const {
  // Two rounds, so that neighbouring steps and streams have nothing in common.
  const std::uint64_t base = Random(settings_.seed).next() + static_cast<std::uint64_t>(stream);
  return Random(Random(base).next() + static_cast<std::uint64_t>(step) * 0xD1342543DE82EF95ull);
}

std::shared_ptr<const Task> make_task(const TaskSettings& settings) {
  settings.check("task");
  if (settings.kind == "stories") return std::make_shared<Stories>(settings);
  if (settings.kind == "masked") return std::make_shared<MaskedStories>(settings);
  if (settings.draws()) return std::make_shared<ShapesTask>(settings);
  if (settings.translates()) return std::make_shared<TranslateTask>(settings);
  if (settings.kind == "backcopy") return std::make_shared<BackcopyTask>(settings);
  return std::make_shared<Repeated>(settings);
}

std::vector<Story> held_out_stories(const Task& task, int count) {
  const auto* stories = dynamic_cast<const Stories*>(&task);
  if (!stories)
    throw Error("task", "\"stories\" or \"masked\", whose texts have known links", "\"" + task.settings().kind + "\"");
  return stories->stories(count);
}

std::string repeated_text(Random& random, int period, int length) {
  std::string text;
  for (int i = 0; i < length; ++i)
    text += i < period ? static_cast<char>(first_printable + static_cast<char>(random.below(printable)))
                       : nth(text, i - period);
  return text;
}

double repeated_log_probability(std::string_view text, int shortest, int longest) {
  // Σ over periods of 1/periods · (1/95)^(characters drawn freely).
  double high = -std::numeric_limits<double>::infinity();
  std::vector<double> terms;
  for (int period = shortest; period <= longest; ++period) {
    const auto free = std::min(static_cast<std::size_t>(period), text.size());
    bool repeats = true;
    for (std::size_t i = free; i < text.size() && repeats; ++i) repeats = text[i] == text[i - free];
    if (!repeats) continue;
    terms.push_back(-static_cast<double>(free) * std::log(static_cast<double>(printable)));
    high = std::max(high, terms.back());
  }
  double sum = 0;
  for (const double term : terms) sum += std::exp(term - high);
  return terms.empty() ? high : high + std::log(sum) - std::log(static_cast<double>(longest - shortest + 1));
}

}  // namespace headscope
