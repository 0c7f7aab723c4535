// Reads a lesson's file, line by line.

#include "core/lesson/lesson.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/named_values.h"
#include "core/lesson/fields.h"
#include "core/lesson/translation.h"

namespace headscope {

namespace {

constexpr std::size_t longest_prose = 10'000;
constexpr NamedValue<LessonQuestion::Kind> question_names[] = {{"token", LessonQuestion::Kind::token},
                                                               {"head", LessonQuestion::Kind::head},
                                                               {"number", LessonQuestion::Kind::number},
                                                               {"choice", LessonQuestion::Kind::choice},
                                                               {"until", LessonQuestion::Kind::until}};

/// What stands between bars; those inside of a formula are its own.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> out{""};
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (depth > 0 && (c == '"' || c == '\'') && (quote == 0 || quote == c)) quote = quote ? 0 : c;
    if (!quote && c == '{') ++depth;
    if (!quote && c == '}') --depth;
    if (c == '|' && depth <= 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  for (std::string& each : out) each = trimmed(each);
  std::erase(out, "");
  return out;
}

/// A choice as formulas say it: “{answer()} as before” is answer() ~ " as before". "" where none of it is words.
std::string as_formula(const std::string& choice, char quote) {
  std::string out;
  bool words = false;
  for (std::size_t at = 0; at < choice.size();) {
    const std::size_t open = choice.find('{', at), close = choice.find('}', std::min(open, choice.size()));
    if (at == open && close == std::string::npos) return "";
    const std::string part = at == open ? choice.substr(at + 1, close - at - 1)
                                        : quote + choice.substr(at, std::min(open, choice.size()) - at) + quote;
    words = words || at != open;
    out += (out.empty() ? "" : " ~ ") + part;
    at = at == open ? close + 1 : std::min(open, choice.size());
  }
  return words ? out : "";
}

/// The answer of a choice with numbers in place of the choices' words, which are others in every language.
std::string without_words(std::string answer, const std::vector<std::string>& choices) {
  for (std::size_t i = 0; i < choices.size(); ++i)
    for (const char quote : {'"', '\''}) {
      const std::string words = as_formula(choices[i], quote), number = fmt::format("choice {}", i + 1);
      for (std::size_t at = 0; !words.empty() && (at = answer.find(words, at)) != std::string::npos;
           at += number.size())
        answer.replace(at, words.size(), number);
    }
  return answer;
}

class Reader {
 public:
  Reader(const std::string& markdown, const std::string& where) : in_(markdown, where) {}

  Lesson read(const std::string& id) {
    Lesson lesson;
    lesson.id = id;
    front_matter(lesson);
    while (!in_.at_end() && trimmed(line()).empty()) ++in_.at;
    while (!in_.at_end()) step(lesson);
    if (lesson.steps.empty()) throw Error(here(), "a step, which begins with \"## \"", "none");
    return lesson;
  }

 private:
  const std::string& line() const { return in_.line(); }
  std::string here() const { return in_.here(); }

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

  /// What these keys say is kept in `fixed`, too.
  FieldKeys keeping(FieldKeys keys, std::vector<LessonLine>& fixed) {
    for (auto& [key, take] : keys)
      take = [this, &fixed, key = key, take = std::move(take)](const std::string& value) {
        fixed.push_back({key, value, static_cast<int>(in_.at) + 1});
        take(value);
      };
    return keys;
  }

  FieldKeys scene(LessonScene& s) {
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
    if (in_.lines.empty() || trimmed(line()) != "---")
      throw Error(here(), "a lesson, which begins with \"---\"", "other text");
    ++in_.at;
    FieldKeys keys = scene(lesson.scene);
    keys["minutes"] = number(lesson.minutes, 1, 60);
    keys["level"] = number(lesson.level, 1, 3);
    keys["needs"] = [&](const std::string& value) { lesson.needs = listed_in(value, ','); };
    keys = keeping(std::move(keys), lesson.fixed);
    keys["title"] = text(lesson.title);
    keys["about"] = text(lesson.about);
    keys["words"] = [&](const std::string& value) { lesson.words = listed_in(value, ','); };
    read_fields(in_, "---", keys);
    if (lesson.title.empty()) throw Error(here(), "a title in the front matter", "none");
  }

  void step(Lesson& lesson) {
    if (!line().starts_with("## ")) throw Error(here(), "a step, which begins with \"## \"", excerpt(line(), 60));
    LessonStep step;
    step.line = static_cast<int>(in_.at) + 1;
    step.title = trimmed(line().substr(3));
    step.scene = lesson.scene;
    prose_ = 0;
    bool shows = false;
    for (++in_.at; !in_.at_end() && !line().starts_with("## ");) {
      if (trimmed(line()).empty())
        ++in_.at;
      else if (line().starts_with("```"))
        shows = block(step) || shows;
      else if (line().starts_with(">"))
        note(step);
      else
        paragraph(step);
    }
    if (step.prose.empty() && !shows)
      throw Error(here(), "a sentence or more in \"" + excerpt(step.title, 40) + "\", or what it shows", "neither");
    lesson.steps.push_back(std::move(step));
  }

  void paragraph(LessonStep& step) {
    const std::string place = here();
    std::string text;
    const auto goes_on = [&] {
      return !in_.at_end() && !trimmed(line()).empty() && !line().starts_with("```") && !line().starts_with("## ") &&
             !line().starts_with(">") && (text.empty() || !line().starts_with("- "));
    };
    for (; goes_on(); ++in_.at) text += (text.empty() ? "" : " ") + trimmed(line());
    count(text, place);
    step.prose.emplace_back(text, place);
  }

  /// As Markdown quotes: a paragraph of lines that begin with ">"; one with nothing behind it parts two paragraphs.
  void note(LessonStep& step) {
    const std::string place = here();
    std::string text;
    for (; !in_.at_end() && line().starts_with(">"); ++in_.at) {
      const std::string words = trimmed(line().substr(1));
      if (words.empty() && !text.empty()) break;
      text += (text.empty() || words.empty() ? "" : " ") + words;
    }
    count(text, place);
    if (!text.empty()) step.notes.emplace_back(text, place);
  }

  void count(const std::string& text, const std::string& place) {
    if ((prose_ += text.size()) > longest_prose)
      throw Error(place, fmt::format("at most {} bytes of prose in a step", longest_prose), "more");
  }

  /// True where it says what the step shows.
  bool block(LessonStep& step) {
    const std::string place = here(), kind = trimmed(line().substr(3));
    ++in_.at;
    if (kind == "show") {
      step.fixed.push_back({"block", "show", static_cast<int>(in_.at)});
      show(step);
      return true;
    }
    if (kind == "question") {
      question(step, place);
      return false;
    }
    if (kind == "expect") {
      for (; !in_.at_end() && trimmed(line()) != "```"; ++in_.at)
        if (!trimmed(line()).empty()) {
          step.expect.emplace_back(trimmed(line()), here());
          step.fixed.push_back({"expect", trimmed(line()), static_cast<int>(in_.at) + 1});
        }
      if (in_.at_end()) throw Error(here(), "a line \"```\"", "the end of the file");
      ++in_.at;
      return false;
    }
    throw Error(place, "a block of show, question or expect", "\"" + excerpt(kind, 40) + "\"");
  }

  /// A page, or a mechanism, that the lesson names is one of its own workspace alone.
  void show(LessonStep& step) {
    LessonScene& s = step.scene;
    const LessonScene before = s;
    read_fields(in_, "```", keeping(scene(s), step.fixed));
    if (s.workspace == before.workspace) return;
    if (s.page == before.page) s.page.clear();
    if (s.mechanism == before.mechanism && s.on == before.on) s.mechanism.clear(), s.on.clear();
  }

  void question(LessonStep& step, const std::string& place) {
    if (step.question) throw Error(place, "one question in a step", "another");
    LessonQuestion q;
    std::string kind;
    std::vector<std::string> choices;
    std::vector<LessonLine> fixed;
    const auto told = [this](LessonText& into) {
      return [this, &into](const std::string& value) { into = LessonText(value, here()); };
    };
    FieldKeys keys = keeping({{"kind", text(kind)},
                              {"answer", [&](const std::string& value) { q.answer.emplace(value, here()); }},
                              {"within", number(q.within, 0, 1e9)}},
                             fixed);
    keys["ask"] = told(q.ask);
    keys["because"] = told(q.because);
    keys["choices"] = [&](const std::string& value) {
      choices = parts_of(value);
      for (const std::string& each : choices) q.choices.emplace_back(each, here());
      fixed.push_back({"choices", fmt::format("{}", choices.size()), static_cast<int>(in_.at) + 1});
    };
    read_fields(in_, "```", keys);
    const auto known = value_in(question_names, kind);
    if (!known) throw Error(place, fmt::format("a kind: {}", listed(question_names)), "\"" + excerpt(kind, 40) + "\"");
    q.kind = *known;
    if (q.ask.empty() || !q.answer || q.because.empty())
      throw Error(place, "ask, answer and because", "a question without one of them");
    if ((q.kind == LessonQuestion::Kind::choice) != (q.choices.size() > 1))
      throw Error(place, "two choices or more, of a question of that kind alone", fmt::format("{}", q.choices.size()));
    step.question = std::move(q);
    for (LessonLine& each : fixed) {
      if (each.key == "answer") each.text = without_words(std::move(each.text), choices);
      step.fixed.push_back(std::move(each));
    }
  }

  FieldLines in_;
  std::size_t prose_ = 0;  // bytes of the step's, notes among them
};

}  // namespace

Lesson parse_lesson(const std::string& markdown, const std::string& id, const std::string& where) {
  if (markdown.size() > longest_lesson)
    throw Error(where, fmt::format("a lesson of at most {} bytes", longest_lesson), fmt::format("{}", markdown.size()));
  return Reader(markdown, where).read(id);
}

Lesson read_lesson(const std::filesystem::path& file) {
  Lesson lesson = parse_lesson(read_file(file, longest_lesson), original_of(file).stem().string(), file.string());
  lesson.language = language_of(file);
  return lesson;
}

}  // namespace headscope
