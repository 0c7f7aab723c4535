#include "core/text/jinja/text_functions.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "core/base/excerpt.h"
#include "core/base/utf8.h"

namespace headscope::jinja {

namespace {

const std::string& text_of(const Arguments& a, std::size_t place, std::string_view name) {
  const Value& value = a.at(place, name);
  if (!value.text()) throw Error(a.where, fmt::format("a string for {}", name), value.kind());
  return *value.text();
}

template <class Change>
std::string each_character(const std::string& text, Change change) {
  std::string out;
  for (const std::string_view each : characters(text)) out += to_utf8(change(code_point_at(each, 0).value));
  return out;
}

/// Where a letter is large again: nowhere, behind what is no letter (Python's title()), or where Jinja's filter begins
/// a word.
enum class Words { one, letters, spaced };

std::string capitals(const std::string& text, Words words) {
  bool first = true;
  return each_character(text, [&](std::int32_t c) {
    const std::int32_t out = first ? utf8proc_totitle(c) : utf8proc_tolower(c);
    const bool letter = utf8proc_toupper(c) != utf8proc_tolower(c);
    const bool opens = is_white_space(c) ||
                       (c < 128 && std::string_view("-({[<").find(static_cast<char>(c)) != std::string_view::npos);
    first = words == Words::letters ? !letter : words == Words::spaced && opens;
    return out;
  });
}

bool has_at(const std::string& text, const std::string& part, bool end) {
  return end ? text.ends_with(part) : text.starts_with(part);
}

/// startswith, endswith: of one string, or of any of several.
Value ends(const Arguments& a, bool end) {
  const Value& part = a.at(1, "prefix");
  if (const List* several = part.list())
    return std::ranges::any_of(
        *several, [&](const Value& each) { return each.text() && has_at(text_of(a, 0, "value"), *each.text(), end); });
  return has_at(text_of(a, 0, "value"), text_of(a, 1, "prefix"), end);
}

Value stripped(const Arguments& a, bool left, bool right) {
  const Value* of = a.find(1, "chars");
  return strip(text_of(a, 0, "value"), of && of->text() ? of->text() : nullptr, left, right);
}

Value trimmed(const Arguments& a) {
  const Value* of = a.find(1, "chars");
  return strip(a.at(0, "value").printed(), of && of->text() ? of->text() : nullptr, true, true);
}

Value split_text(const Arguments& a, bool from_right) {
  const std::string& text = text_of(a, 0, "value");
  const Value* by = a.find(1, "sep");
  std::int64_t most = a.integer(2, "maxsplit", -1);
  std::vector<std::string> parts;
  a.budget.spend(text.size() * 2, a.where);
  if (by && by->text()) {
    const std::string& separator = *by->text();
    if (separator.empty()) throw Error(a.where, "a separator of at least a character", "an empty one");
    std::string rest = text;
    while (most != 0) {
      const std::size_t at = from_right ? rest.rfind(separator) : rest.find(separator);
      if (at == std::string::npos) break;
      a.budget.spend(rest.size(), a.where);
      const std::string after = rest.substr(at + separator.size()), before = rest.substr(0, at);
      parts.push_back(from_right ? after : before);
      rest = from_right ? before : after;
      --most;
    }
    parts.push_back(rest);
    if (from_right) std::ranges::reverse(parts);
  } else {
    if (from_right && most >= 0) throw Error(a.where, "a separator for rsplit", "none");
    std::string rest = strip(text, nullptr, true, most < 0);
    while (!rest.empty()) {
      std::size_t at = 0;
      while (at < rest.size() && !is_white_space(code_point_at(rest, at).value))
        at += static_cast<std::size_t>(utf8_length(rest[at]));
      if (most == 0) at = rest.size();
      a.budget.spend(rest.size() - at + 1, a.where);
      parts.push_back(rest.substr(0, at));
      rest = strip(rest.substr(at), nullptr, true, false);
      --most;
    }
  }
  List out;
  for (std::string& part : parts) out.emplace_back(std::move(part));
  return out;
}

Value replaced(const Arguments& a) {
  const std::string text = a.at(0, "value").printed(), from = text_of(a, 1, "old"), to = text_of(a, 2, "new");
  std::int64_t left = a.integer(3, "count", -1);
  std::string out;
  const auto add = [&](std::string_view piece) {
    a.budget.spend(piece.size() + 1, a.where);
    out += piece;
  };
  if (from.empty()) {  // between all characters, as Python does
    for (const std::string_view each : characters(text)) {
      if (left-- != 0)
        add(to);
      else
        left = 0;
      add(each);
    }
    if (left != 0) add(to);
    return out;
  }
  std::size_t at = 0;
  for (std::size_t found; left != 0 && (found = text.find(from, at)) != std::string::npos; --left) {
    add(std::string_view(text).substr(at, found - at));
    add(to);
    at = found + from.size();
  }
  add(std::string_view(text).substr(at));
  return out;
}

Value join(const Arguments& a, const Value& list, const std::string& between) {
  std::string out;
  bool first = true;
  for (const Value& each : elements(list, a.where)) {
    const std::string piece = each.printed();
    a.budget.spend(piece.size() + between.size() + 1, a.where);
    if (!first) out += between;
    out += piece;
    first = false;
  }
  return out;
}

Value joined(const Arguments& a) {
  const std::string between = a.find(1, "d") ? a.at(1, "d").printed() : "";
  const Value* path = a.find(2, "attribute");
  if (!path || !path->text()) return join(a, a.at(0, "value"), between);
  List picked;
  for (const Value& each : elements(a.at(0, "value"), a.where)) picked.push_back(attribute(each, *path->text(), false));
  return join(a, picked, between);
}

/// Every line but the first moved to the right.
Value indented(const Arguments& a) {
  const Value* width = a.find(1, "width");
  const std::string margin =
      width && width->text()
          ? *width->text()
          : std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(a.integer(1, "width", 4), 0, 1000)), ' ');
  const bool first = a.flag(2, "first", false), blank = a.flag(3, "blank", false);
  const std::string text = a.at(0, "value").printed();
  std::string out;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    a.budget.spend(end - from + margin.size() + 1, a.where);
    if (from > 0) out += '\n';
    if ((from > 0 || first) && (end > from || blank)) out += margin;
    out += text.substr(from, end - from);
    from = end + 1;
  }
  return out;
}

Value escaped(const Arguments& a) {
  std::string out;
  for (const char c : a.at(0, "value").printed())
    out += c == '&'    ? "&amp;"
           : c == '<'  ? "&lt;"
           : c == '>'  ? "&gt;"
           : c == '"'  ? "&#34;"
           : c == '\'' ? "&#39;"
                       : std::string(1, c);
  a.budget.spend(out.size(), a.where);
  return out;
}

/// "{} of {1} {name}", as Python's str.format without widths.
Value formatted(const Arguments& a) {
  const std::string& text = text_of(a, 0, "value");
  std::string out;
  std::size_t next = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool twice = i + 1 < text.size() && text[i + 1] == text[i];
    if (text[i] != '{' && text[i] != '}') {
      out += text[i];
    } else if (twice) {
      out += text[i++];
    } else {
      const std::size_t end = text.find('}', i);
      if (text[i] == '}' || end == std::string::npos) throw Error(a.where, "{ and } in pairs", excerpt(text, 60));
      const std::string field = text.substr(i + 1, end - i - 1);
      const bool place =
          !field.empty() && field.size() < 4 && field.find_first_not_of("0123456789") == std::string::npos;
      const Value* value = a.find(field.empty() ? next++ : place ? 1 + std::stoul(field) : a.given.size(), field);
      if (!value) throw Error(a.where, "an argument for {" + excerpt(field, 40) + "}", "none");
      const std::string piece = value->printed();
      a.budget.spend(piece.size(), a.where);
      out += piece;
      i = end;
    }
  }
  a.budget.spend(out.size(), a.where);
  return out;
}

/// Where the part stands, in characters; −1 where it does not.
Value found_at(const Arguments& a) {
  const std::size_t at = text_of(a, 0, "value").find(text_of(a, 1, "sub"));
  if (at == std::string::npos) return std::int64_t{-1};
  return static_cast<std::int64_t>(characters(text_of(a, 0, "value").substr(0, at)).size());
}

Value counted(const Arguments& a) {
  const std::string &text = text_of(a, 0, "value"), &part = text_of(a, 1, "sub");
  if (part.empty()) return static_cast<std::int64_t>(characters(text).size() + 1);
  std::int64_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

/// Lines without what ends them.
Value lines(const Arguments& a) {
  const std::string& text = text_of(a, 0, "value");
  List out;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string line = text.substr(from, end - from);
    if (line.ends_with('\r')) line.pop_back();
    out.emplace_back(std::move(line));
    from = end + 1;
  }
  return out;
}

constexpr Named text_filters[] = {
    {"capitalize", [](const Arguments& a) { return Value(capitals(a.at(0, "value").printed(), Words::one)); }},
    {"e", escaped},
    {"escape", escaped},
    {"indent", indented},
    {"join", joined},
    {"lower", [](const Arguments& a) { return Value(lower(a.at(0, "value").printed())); }},
    {"replace", replaced},
    {"safe", [](const Arguments& a) { return a.at(0, "value"); }},
    {"title", [](const Arguments& a) { return Value(capitals(a.at(0, "value").printed(), Words::spaced)); }},
    {"trim", trimmed},
    {"upper", [](const Arguments& a) { return Value(upper(a.at(0, "value").printed())); }},
};

constexpr Named text_methods[] = {
    {"capitalize", [](const Arguments& a) { return Value(capitals(text_of(a, 0, "value"), Words::one)); }},
    {"count", counted},
    {"endswith", [](const Arguments& a) { return ends(a, true); }},
    {"find", found_at},
    {"format", formatted},
    {"join", [](const Arguments& a) { return join(a, a.at(1, "iterable"), text_of(a, 0, "value")); }},
    {"lower", [](const Arguments& a) { return Value(lower(text_of(a, 0, "value"))); }},
    {"lstrip", [](const Arguments& a) { return stripped(a, true, false); }},
    {"replace", replaced},
    {"rsplit", [](const Arguments& a) { return split_text(a, true); }},
    {"rstrip", [](const Arguments& a) { return stripped(a, false, true); }},
    {"split", [](const Arguments& a) { return split_text(a, false); }},
    {"splitlines", lines},
    {"startswith", [](const Arguments& a) { return ends(a, false); }},
    {"strip", [](const Arguments& a) { return stripped(a, true, true); }},
    {"title", [](const Arguments& a) { return Value(capitals(text_of(a, 0, "value"), Words::letters)); }},
    {"upper", [](const Arguments& a) { return Value(upper(text_of(a, 0, "value"))); }},
};

}  // namespace

Function find_text_filter(std::string_view name) {
  return in_table(text_filters, name);
}

Function find_text_method(std::string_view name) {
  return in_table(text_methods, name);
}

std::string lower(const std::string& text) {
  return each_character(text, [](std::int32_t c) { return utf8proc_tolower(c); });
}

std::string upper(const std::string& text) {
  return each_character(text, [](std::int32_t c) { return utf8proc_toupper(c); });
}

std::string strip(const std::string& text, const std::string* of, bool left, bool right) {
  const auto goes = [&](std::string_view each) {
    return of ? of->find(each) != std::string::npos : is_white_space(code_point_at(each, 0).value);
  };
  const auto all = characters(text);
  std::size_t first = 0, last = all.size();
  while (left && first < last && goes(all[first])) ++first;
  while (right && last > first && goes(all[last - 1])) --last;
  if (first == last) return "";
  return std::string(all[first].data(),
                     static_cast<std::size_t>(all[last - 1].data() + all[last - 1].size() - all[first].data()));
}

}  // namespace headscope::jinja
