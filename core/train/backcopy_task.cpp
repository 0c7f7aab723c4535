#include "core/train/backcopy_task.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/train/batches.h"

namespace headscope {

namespace {
constexpr std::array<double, 4> chances = {0.6, 0.2, 0.12, 0.08};  // of a letter's followers
constexpr int fan = static_cast<int>(chances.size());

int letter_of(char c) {
  return c - 'a';
}
}  // namespace

Backcopy::Backcopy(const TaskSettings& settings) : letters_(settings.letters), marks_(settings.mark_share) {
  Random random(Random(settings.seed).next() ^ 0x6261636b636f7079ull);
  const auto shuffled = [&](std::vector<int> of) {
    for (std::size_t i = of.size(); i > 1; --i) std::swap(of[i - 1], of[random.below(i)]);
    return of;
  };
  std::vector<int> all(static_cast<std::size_t>(letters_));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int> ring = shuffled(all);
  followers_.resize(all.size() * chances.size());
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const int next = ring[(i + 1) % ring.size()];
    std::vector<int> others = all;
    // Not itself either: a letter said twice in a row is then the mark's doing alone.
    std::erase_if(others, [&](int each) { return each == next || each == ring[i]; });
    others = shuffled(others);
    const auto row = followers_.begin() + ring[i] * fan;
    row[0] = next;
    std::copy_n(others.begin(), fan - 1, row + 1);
  }
}

std::string Backcopy::sample(Random& random, int length) const {
  std::string text;
  for (int i = 0; i < length; ++i) {
    if (i == 0) {
      text += static_cast<char>('a' + static_cast<char>(random.below(static_cast<std::uint64_t>(letters_))));
    } else if (text.back() == mark) {
      text += nth(text, i - 2);
    } else if (random.uniform() < marks_) {
      text += mark;
    } else {
      double left = random.uniform();
      int which = 0;
      while (which + 1 < fan && left >= nth(chances, which)) left -= nth(chances, which++);
      text += static_cast<char>('a' + nth(followers_, letter_of(text.back()) * fan + which));
    }
  }
  return text;
}

double Backcopy::follows(char before, char next) const {
  for (int which = 0; which < fan; ++which)
    if (nth(followers_, letter_of(before) * fan + which) == letter_of(next)) return nth(chances, which);
  return 0;
}

double Backcopy::log_probability(std::string_view text) const {
  double nats = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != mark && (letter_of(c) < 0 || letter_of(c) >= letters_)) return -infinity;
    double p = 0;
    if (i == 0)
      p = c == mark ? 0 : 1.0 / letters_;
    else if (text[i - 1] == mark)
      p = c == text[i - 2] ? 1 : 0;  // the first character is no mark, so there are two before
    else
      p = c == mark ? marks_ : (1 - marks_) * follows(text[i - 1], c);
    if (p <= 0) return -infinity;
    nats += std::log(p);
  }
  return nats;
}

double Backcopy::entropy() const {
  // Of what stands behind a letter: a mark or a follower. Which letter it is does not matter: all have the same
  // chances. Of m marks to every 1 character behind a letter, as many characters are said again and cost nothing.
  double nats = -marks_ * std::log(marks_);
  for (const double p : chances) nats -= (1 - marks_) * p * std::log((1 - marks_) * p);
  return nats / (1 + marks_);
}

BackcopyTask::BackcopyTask(const TaskSettings& settings)
    : Task(settings, train_bpe({}, {.vocab_size = 257})), language_(settings) {}

Batch BackcopyTask::batch(std::int64_t step, int sequences, int length) const {
  Random numbers = random(Stream::train, step);
  std::vector<std::vector<std::int32_t>> rows;
  for (int i = 0; i < sequences; ++i) rows.push_back(ids_of(*tokenizer(), language_.sample(numbers, length)));
  return batches_of(rows, sequences, vocabulary().end_of_text_id(), false).front();
}

HeldOut BackcopyTask::draw_held_out(int rows, int sequences, int length) const {
  Random numbers = random(Stream::held_out);
  std::vector<std::string> texts;
  double log_probability = 0;
  for (int i = 0; i < rows; ++i) {
    texts.push_back(language_.sample(numbers, length));
    log_probability += language_.log_probability(texts.back());
  }
  return held_out_texts(texts, sequences, false, log_probability);
}

std::string BackcopyTask::probe_text(int length) const {
  Random numbers = random(Stream::probe);
  return language_.sample(numbers, std::max(length - 1, 1));
}

}  // namespace headscope
