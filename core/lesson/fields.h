#pragma once
// Lines "key: value", as lessons and the glossary are written in.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

/// A file by its lines, and where one is in it.
struct FieldLines {
  FieldLines(const std::string& text, std::string file);
  bool at_end() const { return at == lines.size(); }
  const std::string& line() const { return lines[at]; }
  std::string here() const;  ///< "file, line 3"

  std::string where;
  std::vector<std::string> lines;
  std::size_t at = 0;
};

/// What is done with the value of each key; values are trimmed.
using FieldKeys = std::map<std::string, std::function<void(const std::string&)>>;

/// Reads up to the line `close`, which is passed over; lines that are indented go on with the value before. Empty lines
/// are passed over, unless `close` is one: then the end of the file will do, too. Throws Error on a key that is not
/// known, naming the nearest, and where `close` is missing.
void read_fields(FieldLines& in, const std::string& close, const FieldKeys& keys);

/// Without the white space around it.
std::string trimmed(std::string_view text);
/// "a, b" → a and b; empty ones are left out.
std::vector<std::string> listed_in(const std::string& text, char between);

}  // namespace headscope
