// Reads a lesson's file, line by line.

#include "core/lesson/lesson.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <sstream>
#include <string_view>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/named_values.h"
#include "core/base/nearest_names.h"

namespace headscope {

namespace {

constexpr std::size_t longest_lesson = std::size_t{1} << 20;
constexpr NamedValue<LessonQuestion::Kind> question_names[] = {{"token", LessonQuestion::Kind::token},
                                                               {"head", LessonQuestion::Kind::head},
                                                               {"number", LessonQuestion::Kind::number},
                                                               {"choice", LessonQuestion::Kind::choice},
                                                               {"until", LessonQuestion::Kind::until}};

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

std::vector<std::string> list_of(const std::string& text, char between) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string each; std::getline(in, each, between);)
    if (std::string word = trimmed(each); !word.empty()) out.push_back(std::move(word));
  return out;
}

class Reader {
 public:
  Reader(const std::string& markdown, const std::string& where) : where_(where) {
    std::istringstream in(markdown);
    for (std::string line; std::getline(in, line);) {
      if (line.ends_with('\r')) line.pop_back();
      lines_.push_back(line);
    }
  }

  Lesson read(const std::string& id) {
    Lesson lesson;
    lesson.id = id;
    front_matter(lesson);
    while (at_ < lines_.size() && trimmed(line()).empty()) ++at_;
    while (at_ < lines_.size()) step(lesson);
    if (lesson.steps.empty()) throw Error(here(), "a step, which begins with \"## \"", "none");
    return lesson;
  }

 private:
  using Keys = std::map<std::string, std::function<void(const std::string&)>>;

  const std::string& line() const { return lines_[at_]; }
  std::string here() const { return fmt::format("{}, line {}", where_, at_ + 1); }

  /// "key: value", one to a line, up to the line `close`; further lines of a value are indented.
  void fields(const std::string& close, const Keys& keys) {
    for (; at_ < lines_.size() && trimmed(line()) != close; ++at_) {
      if (trimmed(line()).empty()) continue;
      const std::string place = here();
      const auto colon = line().find(':');
      const std::string key = trimmed(line().substr(0, colon));
      const auto known = keys.find(key);
      if (colon == std::string::npos || known == keys.end()) {
        std::vector<std::string> names;
        for (const auto& [name, ignored] : keys) names.push_back(name);
        throw Error(place, "\"key: value\" with a key that is known", excerpt(line(), 60),
                    nearest_names_hint(key, names));
      }
      std::string value = trimmed(line().substr(colon + 1));
      while (at_ + 1 < lines_.size() && lines_[at_ + 1].starts_with(' ') && !trimmed(lines_[at_ + 1]).empty())
        value += (value.empty() ? "" : " ") + trimmed(lines_[++at_]);
      known->second(value);
    }
    if (at_ == lines_.size()) throw Error(here(), "a line \"" + close + "\"", "the end of the file");
    ++at_;
  }

  template <class T>
  std::function<void(const std::string&)> number(T& into, double low, double high) {
    return [this, &into, low, high](const std::string& text) {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high))
        throw Error(here(), fmt::format("a number from {} to {}", low, high), excerpt(text, 40));
      into = static_cast<T>(value);
    };
  }
  static std::function<void(const std::string&)> text(std::string& into) {
    return [&into](const std::string& value) { into = value; };
  }

  Keys scene(LessonScene& s) {
    return {{"model", text(s.model)},
            {"text", text(s.text)},
            {"source", text(s.source)},
            {"image", text(s.image)},
            {"stack", text(s.stack)},
            {"workspace", text(s.workspace)},
            {"page", text(s.page)},
            {"head", text(s.head)},
            {"row", text(s.row)},
            {"cell", text(s.cell)},
            {"view", text(s.view)},
            {"edit", [&s](const std::string& value) { s.edits.push_back(value); }},
            {"mechanism", text(s.mechanism)},
            {"on", text(s.on)},
            {"session", text(s.session)}};
  }

  void front_matter(Lesson& lesson) {
    if (lines_.empty() || trimmed(line()) != "---")
      throw Error(here(), "a lesson, which begins with \"---\"", "other text");
    ++at_;
    Keys keys = scene(lesson.scene);
    keys["title"] = text(lesson.title);
    keys["about"] = text(lesson.about);
    keys["minutes"] = number(lesson.minutes, 1, 60);
    keys["level"] = number(lesson.level, 1, 3);
    keys["needs"] = [&](const std::string& value) { lesson.needs = list_of(value, ','); };
    keys["words"] = [&](const std::string& value) { lesson.words = list_of(value, ','); };
    fields("---", keys);
    if (lesson.title.empty()) throw Error(here(), "a title in the front matter", "none");
  }

  void step(Lesson& lesson) {
    if (!line().starts_with("## ")) throw Error(here(), "a step, which begins with \"## \"", excerpt(line(), 60));
    LessonStep step;
    step.line = static_cast<int>(at_) + 1;
    step.title = trimmed(line().substr(3));
    step.scene = lesson.scene;
    for (++at_; at_ < lines_.size() && !line().starts_with("## ");) {
      if (trimmed(line()).empty())
        ++at_;
      else if (line().starts_with("```"))
        block(step);
      else
        paragraph(step);
    }
    if (step.prose.empty()) throw Error(here(), "a sentence or more in \"" + excerpt(step.title, 40) + "\"", "none");
    lesson.steps.push_back(std::move(step));
  }

  void paragraph(LessonStep& step) {
    const std::string place = here();
    std::string text;
    const auto goes_on = [&] {
      return at_ < lines_.size() && !trimmed(line()).empty() && !line().starts_with("```") &&
             !line().starts_with("## ") && (text.empty() || !line().starts_with("- "));
    };
    for (; goes_on(); ++at_) text += (text.empty() ? "" : " ") + trimmed(line());
    step.prose.emplace_back(text, place);
  }

  void block(LessonStep& step) {
    const std::string place = here(), kind = trimmed(line().substr(3));
    ++at_;
    if (kind == "show") return show(step.scene);
    if (kind == "question") return question(step, place);
    if (kind == "expect") {
      for (; at_ < lines_.size() && trimmed(line()) != "```"; ++at_)
        if (!trimmed(line()).empty()) step.expect.emplace_back(trimmed(line()), here());
      if (at_ == lines_.size()) throw Error(here(), "a line \"```\"", "the end of the file");
      ++at_;
      return;
    }
    throw Error(place, "a block of show, question or expect", "\"" + excerpt(kind, 40) + "\"");
  }

  /// A page, or a mechanism, that the lesson names is one of its own workspace alone.
  void show(LessonScene& s) {
    const LessonScene before = s;
    fields("```", scene(s));
    if (s.workspace == before.workspace) return;
    if (s.page == before.page) s.page.clear();
    if (s.mechanism == before.mechanism && s.on == before.on) s.mechanism.clear(), s.on.clear();
  }

  void question(LessonStep& step, const std::string& place) {
    if (step.question) throw Error(place, "one question in a step", "another");
    LessonQuestion q;
    std::string kind;
    const auto told = [this](LessonText& into) {
      return [this, &into](const std::string& value) { into = LessonText(value, here()); };
    };
    fields("```", {{"kind", text(kind)},
                   {"ask", told(q.ask)},
                   {"answer", [&](const std::string& value) { q.answer.emplace(value, here()); }},
                   {"within", number(q.within, 0, 1e9)},
                   {"choices",
                    [&](const std::string& value) {
                      for (const std::string& each : list_of(value, '|')) q.choices.emplace_back(each, here());
                    }},
                   {"because", told(q.because)}});
    const auto known = value_in(question_names, kind);
    if (!known) throw Error(place, fmt::format("a kind: {}", listed(question_names)), "\"" + excerpt(kind, 40) + "\"");
    q.kind = *known;
    if (q.ask.empty() || !q.answer || q.because.empty())
      throw Error(place, "ask, answer and because", "a question without one of them");
    if ((q.kind == LessonQuestion::Kind::choice) != (q.choices.size() > 1))
      throw Error(place, "two choices or more, of a question of that kind alone", fmt::format("{}", q.choices.size()));
    step.question = std::move(q);
  }

  const std::string where_;
  std::vector<std::string> lines_;
  std::size_t at_ = 0;
};

}  // namespace

Lesson parse_lesson(const std::string& markdown, const std::string& id, const std::string& where) {
  if (markdown.size() > longest_lesson)
    throw Error(where, fmt::format("a lesson of at most {} bytes", longest_lesson), fmt::format("{}", markdown.size()));
  return Reader(markdown, where).read(id);
}

Lesson read_lesson(const std::filesystem::path& file) {
  return parse_lesson(read_file(file), file.stem().string(), file.string());
}

}  // namespace headscope
