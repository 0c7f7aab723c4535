#pragma once
// A lesson on paper: prose, each step's picture as vectors, questions with or without answers.

#include <functional>
#include <memory>

#include "core/lesson/tell.h"
#include "viz/export/handout.h"
#include "viz/scene/token_axis.h"

namespace headscope {

/// Besides prose, pictures and questions.
struct HandoutParts {
  bool answers = false;
  bool notes = false;  ///< of who presents it
};

/// `run_of` gives the run of a scene. Throws Error where a step cannot be told.
Handout lesson_handout(const Lesson& lesson,
                       const std::function<std::shared_ptr<LessonRun>(const LessonScene&)>& run_of,
                       const HandoutParts& with, const Style& style);

}  // namespace headscope
