#pragma once
// The words of the run on screen where they were said, made on the worker; kept until another run comes. Thread rule:
// the UI thread.

#include <memory>
#include <string>

#include "app/render/spoken_words.h"
#include "app/state/answer.h"
#include "app/workspaces/page_context.h"

namespace headscope {

class SpokenAnswer {
 public:
  explicit SpokenAnswer(std::string tag) : answer_({std::move(tag), to_say("timing the words")}, Holds::words) {}
  /// Of `whole`, a run of the open model; null while they are not known, and where there are none.
  std::shared_ptr<const SpokenWords> of(const PageContext& c, const std::shared_ptr<const Trace>& whole) {
    const auto rules = c.results().model.target;
    if (!rules || !whole || !whole->cross) return nullptr;
    answer_.want(c.jobs, whole, [whole, rules](const Ctx&) { return Spoken{spoken_words(*whole, rules.get())}; });
    const auto known = answer_.current();
    return known ? known->words : nullptr;
  }

 private:
  struct Spoken {
    std::shared_ptr<const SpokenWords> words;
  };
  Answer<std::shared_ptr<const Trace>, Spoken> answer_;
};

}  // namespace headscope
