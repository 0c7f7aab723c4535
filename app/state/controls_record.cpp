#include "app/state/controls_record.h"

#include "core/base/json.h"
#include "core/text/tokenizer.h"

namespace headscope {

using nlohmann::json;

namespace {
/// The member if it is there and `fits`, or nullptr.
template <class Fits>
const json* member(const json& object, const char* name, Fits fits) {
  const auto found = object.find(name);
  return found != object.end() && fits(*found) ? &*found : nullptr;
}
}  // namespace

ControlsRecord::ControlsRecord() : value_(std::make_unique<json>(json::object())), reading_(false) {}
ControlsRecord::ControlsRecord(const std::string& text) : ControlsRecord(json::parse(text, nullptr, false)) {}
ControlsRecord::ControlsRecord(const json& value)
    : value_(std::make_unique<json>(value.is_object() ? value : json::object())), reading_(true) {}
ControlsRecord::~ControlsRecord() = default;

bool ControlsRecord::empty() const {
  return value_->empty();
}
std::string ControlsRecord::text() const {
  return value_->dump();
}

void ControlsRecord::offer(const char* name, double now, double low, double high, bool whole, bool by_factors) {
  if (reading_) return;
  withdraw(name);
  numbers_.push_back({std::string("/") + name, now, low, high, whole, by_factors});
}

void ControlsRecord::withdraw(const char* name) {
  std::erase_if(numbers_, [place = std::string("/") + name](const Number& each) { return each.place == place; });
}

void ControlsRecord::field(const char* name, bool& value) {
  if (!reading_)
    (*value_)[name] = value;
  else if (const json* found = member(*value_, name, [](const json& j) { return j.is_boolean(); }))
    value = found->get<bool>();
}

void ControlsRecord::field(const char* name, std::string& value) {
  if (reading_) {
    if (const json* found = member(*value_, name, [](const json& j) { return j.is_string(); }))
      value = found->get<std::string>();
  } else if (!first_invalid_utf8(value)) {  // nothing else goes into JSON
    (*value_)[name] = value;
  }
}

void ControlsRecord::field(const char* name, std::filesystem::path& value) {
  std::string text = value.string();
  field(name, text);
  value = text;
}

void ControlsRecord::field(const char* name, double& value, double low, double high) {
  const auto fits = [&](const json& j) { return j.is_number() && j.get<double>() >= low && j.get<double>() <= high; };
  if (!reading_) {
    (*value_)[name] = value;
    numbers_.push_back({std::string("/") + name, value, low, high});
  } else if (const json* found = member(*value_, name, fits)) {
    value = found->get<double>();
  }
}

void ControlsRecord::field(const char* name, std::int64_t& value, std::int64_t low, std::int64_t high) {
  const auto fits = [&](const json& j) { return j.is_number_integer() && j >= low && j <= high; };
  if (!reading_) {
    (*value_)[name] = value;
    numbers_.push_back({std::string("/") + name, static_cast<double>(value), static_cast<double>(low),
                        static_cast<double>(high), true});
  } else if (const json* found = member(*value_, name, fits)) {
    value = found->get<std::int64_t>();
  }
}

void ControlsRecord::field(const char* name, std::uint64_t& value) {
  if (!reading_)
    (*value_)[name] = value;
  else if (const json* found = member(*value_, name, [](const json& j) { return j.is_number_unsigned(); }))
    value = found->get<std::uint64_t>();
}

std::unique_ptr<ControlsRecord> ControlsRecord::enter(const char* name) const {
  const json* found = member(*value_, name, [](const json& j) { return j.is_object(); });
  return found ? std::unique_ptr<ControlsRecord>(new ControlsRecord(*found)) : nullptr;
}

void ControlsRecord::take(const char* name, const ControlsRecord& inner) {
  if (!inner.value_->empty()) (*value_)[name] = *inner.value_;
  for (Number number : inner.numbers_) {
    number.place = std::string("/") + name + number.place;
    numbers_.push_back(std::move(number));
  }
}

}  // namespace headscope
