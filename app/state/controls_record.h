#pragma once
// The controls of a page as a session keeps them. A page names each of its controls once, in one function, and that
// function both writes them and puts them back:
//
//   void controls(ControlsRecord& record) { record.field("threshold", threshold_, 0, 1); record.field("words", words_);
//   }
//
// What a file lacks stays as it is, and so does a control for which it holds something else than that control takes.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <type_traits>

namespace headscope {

class ControlsRecord {
 public:
  ControlsRecord();                                  ///< that is written
  explicit ControlsRecord(const std::string& text);  ///< that is read; what is no JSON object holds nothing
  ~ControlsRecord();
  ControlsRecord(const ControlsRecord&) = delete;
  ControlsRecord& operator=(const ControlsRecord&) = delete;

  bool reading() const { return reading_; }
  void field(const char* name, bool& value);
  void field(const char* name, std::string& value);
  void field(const char* name, std::filesystem::path& value);
  void field(const char* name, double& value, double low, double high);
  /// Whole numbers inside [low, high].
  void field(const char* name, std::int64_t& value, std::int64_t low, std::int64_t high);
  void field(const char* name, std::uint64_t& value);
  void field(const char* name, int& value, int low, int high) {
    std::int64_t wide = value;
    field(name, wide, low, high);
    value = static_cast<int>(wide);
  }
  /// One of an enumeration, by its number; `last` is its last one.
  template <class Enum>
    requires std::is_enum_v<Enum>
  void field(const char* name, Enum& value, Enum last) {
    int number = static_cast<int>(value);
    field(name, number, 0, static_cast<int>(last));
    value = static_cast<Enum>(number);
  }
  /// The controls of a part, under its name: `part(ControlsRecord&)`.
  template <class Part>
  void inside(const char* name, Part&& part) {
    if (reading_) {
      if (const std::unique_ptr<ControlsRecord> inner = enter(name)) part(*inner);
    } else {
      ControlsRecord inner;
      part(inner);
      take(name, inner);
    }
  }

  bool empty() const;
  std::string text() const;  ///< a JSON object

 private:
  explicit ControlsRecord(const nlohmann::json& value);
  std::unique_ptr<ControlsRecord> enter(const char* name) const;  ///< null = there is none
  void take(const char* name, const ControlsRecord& inner);       ///< unless it is empty
  std::unique_ptr<nlohmann::json> value_;
  bool reading_;
};

}  // namespace headscope
