#include "core/io/strict_json.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"

namespace headscope {

using nlohmann::json;

namespace {

/// Builds the value event by event, in time that grows with the text alone. (The library's parser with a callback looks
/// through all of a container's elements whenever one of them ends.)
class Builder final : public nlohmann::json_sax<json> {
 public:
  Builder(const std::string& where, int max_depth) : where_(where), max_depth_(static_cast<std::size_t>(max_depth)) {}

  json take() { return std::move(root_); }
  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool value) override { return put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return put(value) != nullptr; }
  bool string(string_t& value) override { return put(std::move(value)) != nullptr; }
  bool binary(binary_t& value) override { return put(std::move(value)) != nullptr; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const auto [member, is_new] = open_.back()->get_ref<json::object_t&>().emplace(name, nullptr);
    if (!is_new) throw Error(where_, "every name once", json_excerpt(json(name)) + " twice");
    member_ = &member->second;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: …": the library's own number helps nobody.
    const std::string message = error.what();
    const auto close = message.find("] ");
    throw Error(where_, "valid JSON", excerpt(message.substr(close == std::string::npos ? 0 : close + 2)));
  }

 private:
  /// Where it is now.
  json* put(json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_array()) return &open_.back()->get_ref<json::array_t&>().emplace_back(std::move(value));
    return &(*member_ = std::move(value));
  }
  bool open(json container) {
    if (open_.size() >= max_depth_) throw Error(where_, fmt::format("JSON nested at most {} deep", max_depth_), "more");
    open_.push_back(put(std::move(container)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& where_;
  std::size_t max_depth_;
  json root_;
  std::vector<json*> open_;  // containers that have not ended; an element's place is sound while its container waits
  json* member_ = nullptr;   // of the innermost object: what its last key names
};

}  // namespace

json parse_strict_json(std::string_view text, const std::string& where, int max_depth) {
  Builder builder(where, max_depth);
  json::sax_parse(text, &builder);
  return builder.take();
}

std::string json_excerpt(const json& value) {
  // A value may be large; dumping numbers and short strings is cheap, containers are named by kind and size.
  if (value.is_structured()) return fmt::format("{} of {}", value.is_array() ? "an array" : "an object", value.size());
  std::string text =
      value.dump(-1, ' ', true, json::error_handler_t::replace);  // ASCII: cutting cannot split a character
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace headscope
