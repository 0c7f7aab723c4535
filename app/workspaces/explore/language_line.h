#pragma once
// Below the prompt, where the model's language is known (a bundled model of stories) and the text leaves it: at which
// word, and the nearest text of that language, one click away. Thread rule: the UI thread.

#include <string>

#include "app/state/answer.h"
#include "app/workspaces/page_context.h"
#include "core/base/words.h"
#include "core/train/language_fit.h"

namespace headscope {

class LanguageLine {
 public:
  void draw(const PageContext& c);

 private:
  struct Asked {
    std::filesystem::path model;
    std::string text;
    bool operator==(const Asked&) const = default;
  };
  Answer<Asked, LanguageFit> answer_{{"language", to_say("reading the text as the model's language"), true},
                                     Answer<Asked, LanguageFit>::OnFailure::keep,
                                     Holds::numbers};
};

/// "“bicycle” is no word of the language that this model learnt."
std::string departure_text(const LanguageFit& fit, const std::string& text);

}  // namespace headscope
