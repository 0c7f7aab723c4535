#include "core/lesson/lesson_pages.h"

#include <fmt/format.h>

#include <sstream>

#include "core/lesson/fields.h"

namespace headscope {

namespace {

constexpr const char* step_mark = "## ";

/// Titles stand in one line.
std::string in_one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return trimmed(text);
}

/// Where the value of a key of the front matter begins and ends; npos where it is not there.
struct Span {
  std::size_t begin = std::string::npos, end = 0;
};
Span value_of(const std::string& head, const std::string& key) {
  for (std::size_t at = 0; at < head.size();) {
    const std::size_t end = std::min(head.find('\n', at), head.size());
    if (head.compare(at, key.size() + 1, key + ":") == 0) {
      std::size_t stop = end;  // lines that are indented go on with the value
      while (stop + 1 < head.size() && head[stop + 1] == ' ') stop = std::min(head.find('\n', stop + 1), head.size());
      return {at + key.size() + 1, stop};
    }
    at = end + 1;
  }
  return {};
}

}  // namespace

LessonPages lesson_pages(const std::string& markdown) {
  LessonPages out;
  std::istringstream in(markdown);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(step_mark)) out.steps.emplace_back();
    (out.steps.empty() ? out.head : out.steps.back()) += line + "\n";
  }
  return out;
}

std::string joined(const LessonPages& pages) {
  std::string out = pages.head;
  for (const std::string& each : pages.steps) {
    out += each;
    if (!each.ends_with('\n')) out += '\n';
  }
  return out;
}

std::string step_title(const std::string& step) {
  return trimmed(step.substr(std::string(step_mark).size(), step.find('\n') - std::string(step_mark).size()));
}

std::string with_title(const std::string& step, const std::string& title) {
  const std::string words = in_one_line(title);
  const std::size_t end = std::min(step.find('\n'), step.size());
  return words.empty() ? step : step_mark + words + step.substr(end);
}

std::string head_value(const LessonPages& pages, const std::string& key) {
  const Span span = value_of(pages.head, key);
  return span.begin == std::string::npos ? "" : in_one_line(pages.head.substr(span.begin, span.end - span.begin));
}

void set_lesson_title(LessonPages& pages, const std::string& title) {
  const Span span = value_of(pages.head, "title");
  if (const std::string words = in_one_line(title); !words.empty() && span.begin != std::string::npos)
    pages.head.replace(span.begin, span.end - span.begin, " " + words);
}

LessonPages new_lesson(const std::string& title, const std::string& about) {
  return {fmt::format("---\ntitle: {}\nabout: {}\n---\n\n", in_one_line(title), in_one_line(about)), {}};
}

}  // namespace headscope
