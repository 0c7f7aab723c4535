#include "core/train/language.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/train/derivation.h"

namespace headscope {

namespace {

/// Depth first through every choice that stays on the target.
void search(const Grammar& grammar, int start, const std::string_view* target, std::size_t limit,
            const std::function<void(const Story&)>& found) {
  std::vector<Derivation> open{Derivation(grammar, start, target)};
  std::size_t count = 0;
  while (!open.empty()) {
    Derivation derivation = std::move(open.back());
    open.pop_back();
    if (!derivation.advance()) {
      if (derivation.complete()) {
        if (++count > limit) throw Error("grammar", fmt::format("at most {} derivations", limit), "more");
        found(derivation.take());
      }
      continue;
    }
    const std::vector<double> options = derivation.options();
    for (std::size_t i = options.size(); i-- > 0;) {
      if (options[i] <= 0) continue;
      Derivation& next = open.emplace_back(derivation);
      next.choose(i, options[i]);
    }
    if (open.size() > limit) throw Error("grammar", fmt::format("at most {} open ends", limit), "more");
  }
}

}  // namespace

Language::Language(const Grammar& grammar, std::string_view start) : grammar_(grammar), start_(grammar.rule(start)) {
  if (!nth(grammar.rules(), start_).parameters.empty())
    throw Error(std::string(start), "a first rule without parameters", "parameters");
}

Story Language::sample(Random& random) const {
  Derivation derivation(grammar_, start_, nullptr);
  while (derivation.advance()) {
    const std::vector<double> options = derivation.options();
    double left = random.uniform();
    std::size_t chosen = options.size();
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (options[i] <= 0) continue;
      chosen = i;  // the last open one, should rounding leave a remainder
      left -= options[i];
      if (left < 0) break;
    }
    if (chosen == options.size()) throw Error("grammar", "an alternative that may be taken", "none in this place");
    derivation.choose(chosen, options[chosen]);
  }
  return derivation.take();
}

void Language::derivations(std::string_view text, const std::function<void(const Story&)>& found,
                           std::size_t limit) const {
  search(grammar_, start_, &text, limit, found);
}

void Language::all_derivations(const std::function<void(const Story&)>& found, std::size_t limit) const {
  search(grammar_, start_, nullptr, limit, found);
}

double Language::log_probability(std::string_view text) const {
  double sum = -std::numeric_limits<double>::infinity();
  derivations(text, [&](const Story& story) {
    const double high = std::max(sum, story.log_probability), low = std::min(sum, story.log_probability);
    sum = std::isinf(low) ? high : high + std::log1p(std::exp(low - high));
  });
  return sum;
}

}  // namespace headscope
