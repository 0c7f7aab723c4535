#include "core/edits/edit_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "core/base/error.h"
#include "core/base/json.h"

namespace headscope {

void EditWords::fail(std::string_view found) const {
  throw Error(where_, std::string(form_), fmt::format("\"{}\"", found.empty() ? "nothing more" : found));
}

void EditWords::skip() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
}

bool EditWords::empty() {
  skip();
  return rest_.empty();
}

std::string_view EditWords::next() {
  skip();
  const std::string_view word = rest_.substr(0, rest_.find(' '));
  rest_.remove_prefix(word.size());
  return word;
}

bool EditWords::take(std::string_view words) {
  skip();
  const bool there = rest_.starts_with(words) && (rest_.size() == words.size() || rest_[words.size()] == ' ');
  if (there) rest_.remove_prefix(words.size());
  return there;
}

template <class Number>
Number EditWords::number_in(std::string_view word) const {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) fail(word);
  return value;
}
template int EditWords::number_in(std::string_view) const;
template std::uint64_t EditWords::number_in(std::string_view) const;
template float EditWords::number_in(std::string_view) const;
template double EditWords::number_in(std::string_view) const;

std::string EditWords::quoted() {
  skip();
  std::size_t end = 1;
  while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
  if (rest_.empty() || rest_[0] != '"' || end >= rest_.size()) fail(rest_);
  const auto value = nlohmann::json::parse(rest_.substr(0, end + 1), nullptr, false);
  if (!value.is_string()) fail(rest_);
  rest_.remove_prefix(end + 1);
  return value.get<std::string>();
}

std::string_view EditWords::all() {
  skip();
  return std::exchange(rest_, {});
}

void EditWords::end() {
  if (!empty()) fail(rest_);
}

std::string quote(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void need(bool holds, const std::string& where, std::string_view expected, std::string_view found) {
  if (!holds) throw Error(where, std::string(expected), std::string(found));
}

}  // namespace headscope
