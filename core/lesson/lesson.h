#pragma once
// A lesson as a file (docs/lessons.md): Markdown with a front matter, a step for every "## ". Between braces stand
// formulas of the run that the step shows, so no number of a lesson is ever written down: "{weight('0.2', 'sold',
// 'Anna'):.2f}". Blocks of code say what the step shows, what it asks, and what has to be true.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/jinja/formula.h"

namespace headscope {

using jinja::Formula;

/// Text with formulas in it.
class LessonText {
 public:
  LessonText() = default;
  /// Throws Error at `where`.
  LessonText(const std::string& source, const std::string& where);
  bool empty() const { return parts_.empty(); }
  /// Throws Error as the formulas do.
  std::string told(const jinja::Members& names) const;

 private:
  struct Part {
    std::string before;              ///< as it stands
    std::optional<Formula> formula;  ///< none in the last part
    std::string format;              ///< of fmt, without braces: ".2f"
  };
  std::vector<Part> parts_;
};

/// Where a step begins: the student may wander off, and comes back to it with one key. Nothing that is not named is the
/// lesson's own.
struct LessonScene {
  std::string model = {}, text = {}, source = {};  ///< name of a bundled model; what it reads
  std::string image = {};                 ///< of a model of pictures, in place of a text: a file among the assets
  std::string stack = {};                 ///< of an encoder-decoder, whose heads: "enc", "dec", "cross"
  std::string workspace = {}, page = {};  ///< title and id; "" = Explore, the workspace's own
  std::string head = {}, row = {},
              cell = {};                ///< "0.2", "sold", "sold Anna": tokens or positions; cell: row, space, key
  std::string view = {};                ///< of the head: "map", "row", "arcs" …
  std::vector<std::string> edits = {};  ///< "0.2: ablate zero"
  std::string mechanism = {}, on = {};  ///< "softmax temperature=2"; a worked example, or a head: "one-query", "0.2"
  std::string session = {};             ///< JSON: any part of a session file, over all this; "" = none
};

struct LessonQuestion {
  enum class Kind {
    token,   ///< which token of the text
    head,    ///< which head of the model
    number,  ///< typed
    choice,  ///< one of several texts
    until    ///< change the state until `answer` is true of the run on the screen
  };
  Kind kind = Kind::choice;
  LessonText ask;
  std::optional<Formula> answer;    ///< a position or a token, "L.H", a number, a choice; or a condition
  double within = 0;                ///< of a number: how far off is still right
  std::vector<LessonText> choices;  ///< of a choice
  LessonText because;               ///< told with the answer
};

/// What stands in a lesson's file and is the same in every language of it (core/lesson/translation.h).
struct LessonLine {
  std::string key, text;  ///< "head", "0.2"; of an answer with the numbers of choices in place of their words
  int line = 0;           ///< of the file, where it ends
};

struct LessonStep {
  std::string title;
  int line = 0;
  std::vector<LessonText> prose;  ///< paragraphs; none in a scene that is shown without words
  std::vector<LessonText> notes;  ///< for who presents it: paragraphs that begin with "> "
  LessonScene scene;              ///< the lesson's own where the step says nothing
  std::optional<LessonQuestion> question;
  std::vector<Formula> expect;    ///< what has to be true, or the lesson is wrong of this model
  std::vector<LessonLine> fixed;  ///< of its blocks
};

struct Lesson {
  std::string id;        ///< the file's name without ".md", and without its language
  std::string language;  ///< "de"; "" = the lesson's own
  std::string title, about;
  std::optional<int> minutes;      ///< none: nobody said how long
  int level = 1;                   ///< 1: nothing is presupposed … 3
  std::vector<std::string> needs;  ///< ids of lessons that come before
  std::vector<std::string> words;  ///< that people type for it
  LessonScene scene;
  std::vector<LessonStep> steps;
  std::vector<LessonLine> fixed;  ///< of the front matter

  /// What follows a step; nullptr after the last one.
  const LessonStep* after(int step) const {
    const auto next = static_cast<std::size_t>(step) + 1;
    return next < steps.size() ? &steps[next] : nullptr;
  }
};

/// Bytes of a file.
inline constexpr std::size_t longest_lesson = std::size_t{256} << 10;

/// Throws Error at `where`, naming the line, on a block or a key that is not known, and on what is no formula.
Lesson parse_lesson(const std::string& markdown, const std::string& id, const std::string& where);
/// Throws Error as reading does, too.
Lesson read_lesson(const std::filesystem::path& file);

}  // namespace headscope
