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
#include <vector>

namespace headscope {

class ControlsRecord {
 public:
  ControlsRecord();                                  ///< that is written
  explicit ControlsRecord(const std::string& text);  ///< that is read; what is no JSON object holds nothing
  ~ControlsRecord();
  ControlsRecord(const ControlsRecord&) = delete;
  ControlsRecord& operator=(const ControlsRecord&) = delete;

  /// A number that a control takes: what a film can lead from one value to another.
  struct Number {
    std::string place;  ///< in text(), a JSON pointer
    double now = 0, low = 0, high = 0;
    bool whole = false, by_factors = false;  ///< a slider of it spaces by ratios
  };
  /// Of the controls written so far; seeds and choices are none.
  const std::vector<Number>& numbers() const { return numbers_; }
  /// Of a control that follows something else and so is not written, or by a number that says so, or that takes other
  /// numbers than its field says: what it shows now, and where a film can take it.
  void offer(const char* name, double now, double low, double high, bool whole, bool by_factors = false);
  /// It is none after all.
  void withdraw(const char* name);

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
  /// One of several, by its place among them: 0 … last.
  void choice(const char* name, int& value, int last) {
    field(name, value, 0, last);
    withdraw(name);
  }
  /// One of an enumeration, by its number; `last` is its last one.
  template <class Enum>
    requires std::is_enum_v<Enum>
  void field(const char* name, Enum& value, Enum last) {
    int number = static_cast<int>(value);
    choice(name, number, static_cast<int>(last));
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
  std::vector<Number> numbers_;
  bool reading_;
};

}  // namespace headscope
