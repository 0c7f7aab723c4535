#include "core/train/derivation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headscope {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool is_vowel(char c) {
  return std::string_view("aeiouAEIOU").find(c) != std::string_view::npos;
}
std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

Derivation::Derivation(const Grammar& grammar, int start, const std::string_view* target)
    : grammar_(&grammar), target_(target), choice_(&grammar.rules()[index(start)]) {
  for (std::size_t i = 0; i < choice_names_.size(); ++i) choice_names_[i] = static_cast<std::int8_t>(i);
  last_.fill(-1);
}

bool Derivation::advance() {
  using Kind = Grammar::ItemKind;
  if (choice_) return true;  // the start
  while (!lost_ && !stack_.empty()) {
    Frame& frame = stack_.back();
    if (frame.at == frame.body->items.size()) {
      const Frame done = frame;
      stack_.pop_back();
      if (done.draws >= 0) finish_draw(done);
      continue;
    }
    const Grammar::Item& item = frame.body->items[frame.at++];
    const int slot = item.slot < 0 ? -1 : frame.names[index(item.slot)];
    switch (item.kind) {
      case Kind::literal:
        write(item.text);
        break;
      case Kind::article:
        article_ = true;
        break;
      case Kind::capital:
        capital_ = true;
        break;
      case Kind::feature:
        drawn_feature_ = item.feature;
        break;
      case Kind::noun:
        marks_.noun = true;
        break;
      case Kind::subject:
        marks_.subject = item.clause;
        break;
      case Kind::verb:
        marks_.verb = item.clause;
        break;
      case Kind::repeat:
      case Kind::pronoun: {
        const bool named = item.kind == Kind::repeat;
        const std::size_t from = story_.text.size();
        const std::string text = named ? memory_[index(slot)].text : item.text;
        write(text);
        const std::size_t end = story_.text.size();
        if (!lost_) mention(slot, named ? TextSpan{end - text.size(), end} : first_word(from), named);
        break;
      }
      case Kind::call:
      case Kind::draw: {
        choice_ = &grammar_->rules()[index(item.rule)];
        choice_names_ = frame.names;
        for (std::size_t i = 0; i < item.arguments.size(); ++i)
          choice_names_[index(choice_->parameters[i])] = frame.names[index(item.arguments[i])];
        choice_draws_ = -1;
        if (item.kind == Kind::draw) {
          choice_draws_ = slot;
          drawing_ = true;
          drawn_.clear();
          drawn_from_.reset();
          drawn_feature_ = 0;
        }
        return true;
      }
    }
  }
  return false;
}

std::vector<double> Derivation::options() const {
  std::vector<double> weights;
  double total = 0;
  for (const Grammar::Alternative& each : choice_->alternatives) {
    const bool open = std::ranges::all_of(each.conditions, [&](const auto& c) { return holds(c, choice_names_); }) &&
                      !(drawing_ && drawn_.empty() && taken(each.plain));
    weights.push_back(open ? each.weight : 0);
    total += weights.back();
  }
  if (total > 0)
    for (double& weight : weights) weight /= total;
  return weights;
}

void Derivation::choose(std::size_t alternative, double probability) {
  story_.log_probability += std::log(probability);
  Frame frame{.body = &choice_->alternatives[alternative], .names = choice_names_, .draws = choice_draws_};
  // Marks before a draw are for the whole of what is drawn, not for its first syllable.
  if (choice_draws_ >= 0) std::swap(frame.marks, marks_);
  choice_ = nullptr;
  stack_.push_back(frame);
}

bool Derivation::complete() const {
  return !lost_ && !choice_ && stack_.empty() && (!target_ || story_.text.size() == target_->size());
}

Story Derivation::take() {
  std::ranges::stable_sort(story_.links, {}, [](const TruthLink& link) { return link.from.begin; });
  return std::move(story_);
}

bool Derivation::holds(const Grammar::Condition& condition, const Names& names) const {
  const int slot = names[index(condition.slot)];
  const char feature = memory_[index(slot)].feature;
  if (condition.feature != 0) return feature == condition.feature;
  if (!condition.words.empty())
    return std::ranges::find(condition.words, memory_[index(slot)].text) != condition.words.end();
  return feature != 0 && last_[index(feature - 'a')] == slot;
}

bool Derivation::taken(const std::string& plain) const {
  return !plain.empty() && std::ranges::any_of(memory_, [&](const Slot& slot) { return slot.text == plain; });
}

std::size_t Derivation::append(char c) {
  const std::size_t at = story_.text.size();
  if (target_ && (at >= target_->size() || (*target_)[at] != c)) lost_ = true;
  story_.text += c;
  return at;
}

TextSpan Derivation::first_word(std::size_t from) const {
  const std::string& text = story_.text;
  while (from < text.size() && !is_letter(text[from])) ++from;
  std::size_t end = from;
  while (end < text.size() && is_letter(text[end])) ++end;
  return {from, end};
}

std::vector<TextSpan> Derivation::words_of(TextSpan span) const {
  std::vector<TextSpan> words;
  for (TextSpan word = first_word(span.begin); word.begin < span.end; word = first_word(word.end))
    words.push_back(word);
  return words;
}

void Derivation::write(std::string_view text) {
  for (std::size_t i = 0; i < text.size() && !lost_; ++i) {
    char c = text[i];
    if (is_letter(c)) {
      if (article_) {
        article_ = false;
        // The article stands before what is drawn or marked and is no part of it.
        const bool drawing = std::exchange(drawing_, false), capital = std::exchange(capital_, false);
        const Marks marks = std::exchange(marks_, {});
        write(is_vowel(c) ? "an " : "a ");
        drawing_ = drawing, capital_ = capital, marks_ = marks;
        if (lost_) return;
      }
      if (drawing_ && !drawn_from_) drawn_from_ = story_.text.size();
      if (capital_) c = upper(c);
      capital_ = false;
      if (drawing_) drawn_ += c;
      append(sentence_start_ ? upper(c) : c);
      sentence_start_ = false;
      const bool word_ends = i + 1 == text.size() || !is_letter(text[i + 1]);
      if (word_ends) {
        std::size_t begin = story_.text.size();
        while (begin > 0 && is_letter(story_.text[begin - 1])) --begin;
        const TextSpan word{begin, story_.text.size()};
        std::string spelled = story_.text.substr(word.begin);
        std::ranges::transform(spelled, spelled.begin(), lower);
        if (grammar_->determiner(spelled)) determiner_ = word;
        if (marks_.noun || marks_.subject || marks_.verb) mark(word);
      }
      continue;
    }
    if (drawing_) drawn_ += c;
    if (c == '"') {
      const char before = story_.text.empty() ? ' ' : story_.text.back();
      if (!in_quotes_ || before == '!' || before == '?') sentence_start_ = !in_quotes_;
      in_quotes_ = !in_quotes_;
    } else if (c == '.' || c == '!' || c == '?') {
      sentence_start_ = true;
      determiner_.reset();
    }
    append(c);
  }
}

void Derivation::mark(TextSpan span) {
  if (marks_.subject) subjects_[index(marks_.subject)] = span;
  if (marks_.verb)
    if (const auto& subject = subjects_[index(marks_.verb)]) link(LinkKind::subject, span, *subject);
  // A word that is both ("half") does not determine itself.
  if (marks_.noun && determiner_ && *determiner_ != span) {
    link(LinkKind::determiner, span, *determiner_);
    determiner_.reset();
  }
  marks_ = {};
}

void Derivation::mention(int slot, TextSpan span, bool named) {
  Slot& memory = memory_[index(slot)];
  if (named) {
    const std::vector<TextSpan> words = words_of(span);
    for (const TextSpan& earlier : memory.names) {
      if (words.size() == 1) link(LinkKind::occurrence, span, earlier);
      const std::vector<TextSpan> before = words_of(earlier);
      for (std::size_t i = 1; i < words.size(); ++i) link(LinkKind::continuation, words[i - 1], before[i]);
    }
    memory.names.push_back(span);
  } else {
    for (const TextSpan& earlier : memory.mentions) link(LinkKind::antecedent, span, earlier);
  }
  memory.mentions.push_back(span);
  if (memory.feature != 0) last_[index(memory.feature - 'a')] = slot;
}

void Derivation::finish_draw(const Frame& frame) {
  drawing_ = false;
  if (!drawn_from_) return;  // nothing was written
  Slot& slot = memory_[index(frame.draws)];
  slot = {};
  slot.text = drawn_;
  slot.feature = drawn_feature_;
  const TextSpan span{*drawn_from_, story_.text.size()};
  marks_ = frame.marks;
  if (marks_.noun || marks_.subject || marks_.verb) mark(span);
  mention(frame.draws, span, true);
}

}  // namespace headscope
