#pragma once
// A lesson's file as the texts of its steps, so that a program can put one in, move it or take it out and leave all
// else that somebody wrote as it is. Knows where steps begin and nothing of what they say; lesson.h reads that.

#include <string>
#include <vector>

namespace headscope {

struct LessonPages {
  std::string head;                ///< the front matter and what follows it, up to the first step
  std::vector<std::string> steps;  ///< each from its "## " to where the next one begins
  bool operator==(const LessonPages&) const = default;
};

/// joined(lesson_pages(text)) == text, but for a line break at the end of every step.
LessonPages lesson_pages(const std::string& markdown);
std::string joined(const LessonPages& pages);

/// What stands behind "## ".
std::string step_title(const std::string& step);
/// The step under another title, in one line; an empty one leaves the step as it is.
std::string with_title(const std::string& step, const std::string& title);
/// A value of the front matter, "" where it says nothing of that key.
std::string head_value(const LessonPages& pages, const std::string& key);
/// The front matter with another title.
void set_lesson_title(LessonPages& pages, const std::string& title);
/// A lesson without steps yet. `title` in one line.
LessonPages new_lesson(const std::string& title, const std::string& about);

}  // namespace headscope
