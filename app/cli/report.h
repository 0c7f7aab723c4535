#pragma once
// What a command found out, said once: lines and facts for people, tables, values that only scripts want, perhaps a
// picture. Three printers make a text, CSV and JSON of it; a command knows nothing of them.

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope::cli {

/// How a report is printed, and which of these forms show a part or a column.
enum class Form : unsigned { text = 1, csv = 2, json = 4, scripts = csv | json, all = text | scripts };
constexpr Form operator|(Form a, Form b) {
  return static_cast<Form>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// A word, a number, or more where only JSON shows it. A number that does not exist, NaN, is "–" in a text, an empty
/// field of CSV, null in JSON; null is empty in a text too.
using Cell = nlohmann::ordered_json;

struct Column {
  enum class Align { automatic, left, right };  ///< automatic: words to the left, numbers to the right
  Column(std::string word) : id(word), title(std::move(word)) {}
  Column(const char* word) : Column(std::string(word)) {}
  Column(std::string word, std::string heading, std::string shown = "{:.4g}", std::string of = {})
      : id(std::move(word)), title(std::move(heading)), format(std::move(shown)), unit(std::move(of)) {}

  std::string id, title;          ///< its key in JSON and title in CSV; what people read above it
  std::string format = "{:.4g}";  ///< of fractions in a text; scripts get every digit
  std::string unit = {};          ///< behind the title in a text
  Form forms = Form::all;
  Align align = Align::automatic;
};
/// A column of a text, to the right even where it holds words, such as "1.0" or "0.3 → 0.4".
Column for_people(std::string title, std::string format = "{:.4g}", Column::Align align = Column::Align::right);
Column only_in(Form forms, Column column);

class Report {
 public:
  struct Table {
    std::vector<Column> columns;
    std::vector<std::vector<Cell>> rows = {};
    std::string largest_first = {};  ///< id of a column: people see the rows with the largest there first

    /// A cell for each column.
    void add(std::vector<Cell> row) { rows.push_back(std::move(row)); }
  };
  struct Fact {
    std::string id, words;  ///< "sum_of_parts", "sum of parts"
    Cell value;
    std::string unit = {};
  };

  // Parts, in the order in which each form prints those it has.

  /// A line of the text; empty, a blank one.
  void line(std::string words = {});
  /// "words: value unit"; in JSON one of "facts".
  void fact(Fact fact);
  void facts(std::vector<Fact> facts);
  /// For JSON alone. Without an id the value is the whole document.
  void data(std::string id, Cell value);
  /// In a text between blank lines, if it has rows. JSON: an array of objects under the id, without one the whole
  /// document. CSV is the first table that it has. The reference lives as long as the report.
  Table& table(std::string id, std::vector<Column> columns, Form forms = Form::all);
  void append(Report other);
  std::function<Scene(const Style&)> picture;  ///< may be empty: there is none
  std::string picture_note = {};               ///< what its file says of the model; "" = nothing

  Cell json() const;
  /// Ends with a newline.
  std::string printed(Form form) const;

 private:
  struct Part {
    Form forms;
    std::string id;  ///< in JSON
    std::string line;
    Cell value;
    Table table;
    bool fact = false;
  };
  std::string text() const;
  std::string csv() const;

  std::deque<Part> parts_;  ///< stay where they are
};

/// Indented; bytes that are not UTF-8 (of a folder's name) become U+FFFD.
std::string json_text(const Cell& value);

}  // namespace headscope::cli
