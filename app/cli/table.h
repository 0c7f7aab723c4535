#pragma once
// Text tables for a terminal: columns aligned by what the eye sees (East Asian characters take two cells, combining
// marks none), numbers to the right, words to the left.

#include <string>
#include <string_view>
#include <vector>

namespace headscope::cli {

/// Cells that a UTF-8 string takes in a terminal.
int display_width(std::string_view text);

class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::right;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Missing cells are empty.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  /// Title line and rows, each ended by a newline, without trailing spaces.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// "1,234,567"
std::string grouped(std::int64_t value);
/// "3.1 MB"
std::string byte_size(std::uint64_t bytes);

}  // namespace headscope::cli
