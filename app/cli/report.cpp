#include "app/cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/cli/table_text.h"

namespace headscope::cli {

namespace {
bool has(Form forms, Form form) {
  return (static_cast<unsigned>(forms) & static_cast<unsigned>(form)) != 0;
}

std::string words(const Cell& cell, const std::string& format) {
  if (cell.is_null()) return "";
  if (cell.is_string()) return cell.get<std::string>();
  if (!cell.is_number_float()) return cell.dump();
  const auto value = cell.get<double>();
  return std::isnan(value) ? "–" : fmt::format(fmt::runtime(format), value);
}

std::string csv_field(const Cell& cell) {
  if (cell.is_null()) return "";
  if (cell.is_number_float()) {
    const auto value = cell.get<double>();
    return std::isfinite(value) ? fmt::format("{}", value) : "";
  }
  std::string text = words(cell, "");
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
  return '"' + text + '"';
}

/// The rows in the order that people see.
std::vector<const std::vector<Cell>*> shown_rows(const Report::Table& table) {
  std::vector<const std::vector<Cell>*> rows;
  for (const auto& row : table.rows) rows.push_back(&row);
  const auto key = std::ranges::find(table.columns, table.largest_first, &Column::id);
  if (!table.largest_first.empty() && key != table.columns.end()) {
    const auto value = [at = static_cast<std::size_t>(key - table.columns.begin())](const std::vector<Cell>* row) {
      const double number = (*row)[at].is_number() ? (*row)[at].get<double>() : std::nan("");
      return std::isnan(number) ? -std::numeric_limits<double>::infinity() : number;
    };
    std::ranges::stable_sort(rows, std::ranges::greater{}, value);
  }
  return rows;
}

std::string table_text(const Report::Table& table) {
  const auto rows = shown_rows(table);
  std::vector<std::vector<std::string>> lines(rows.size() + 1);
  std::vector<bool> left;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    if (!has(column.forms, Form::text)) continue;
    left.push_back(column.align == Column::Align::automatic
                       ? std::ranges::any_of(rows, [&](const auto* row) { return (*row)[c].is_string(); })
                       : column.align == Column::Align::left);
    lines[0].push_back(column.title + (column.unit.empty() ? "" : " " + column.unit));
    for (std::size_t r = 0; r < rows.size(); ++r) lines[r + 1].push_back(words((*rows[r])[c], column.format));
  }
  return aligned(lines, left);
}

std::string table_csv(const Report::Table& table) {
  std::string out;
  const auto line = [&](const auto& field) {
    std::string text;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (has(table.columns[c].forms, Form::csv)) text += "," + csv_field(field(c));
    out += text.substr(std::min<std::size_t>(text.size(), 1)) + '\n';
  };
  line([&](std::size_t c) { return Cell(table.columns[c].id); });
  for (const auto& row : table.rows) line([&](std::size_t c) -> const Cell& { return row[c]; });
  return out;
}

Cell table_json(const Report::Table& table) {
  Cell out = Cell::array();
  for (const auto& row : table.rows) {
    Cell line = Cell::object();
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (has(table.columns[c].forms, Form::json)) line[table.columns[c].id] = row[c];
    out.push_back(std::move(line));
  }
  return out;
}
}  // namespace

Column for_people(std::string title, std::string format, Column::Align align) {
  Column column("", std::move(title), std::move(format));
  column.forms = Form::text;
  column.align = align;
  return column;
}

Column only_in(Form forms, Column column) {
  column.forms = forms;
  return column;
}

void Report::line(std::string words) {
  parts_.push_back({Form::text, {}, std::move(words), {}, {}});
}

void Report::fact(Fact fact) {
  std::string line = fmt::format("{}: {}", fact.words, words(fact.value, "{:.4g}"));
  if (!fact.unit.empty()) line += " " + fact.unit;
  parts_.push_back({Form::text | Form::json, std::move(fact.id), std::move(line), std::move(fact.value), {}, true});
}

void Report::facts(std::vector<Fact> facts) {
  for (Fact& each : facts) fact(std::move(each));
}

void Report::data(std::string id, Cell value) {
  parts_.push_back({Form::json, std::move(id), {}, std::move(value), {}});
}

Report::Table& Report::table(std::string id, std::vector<Column> columns, Form forms) {
  parts_.push_back({forms, std::move(id), {}, {}, {std::move(columns)}});
  return parts_.back().table;
}

void Report::append(Report other) {
  std::ranges::move(other.parts_, std::back_inserter(parts_));
  if (other.picture) picture = std::move(other.picture);
}

std::string Report::text() const {
  std::string out;
  bool after_table = false;
  for (const Part& part : parts_) {
    const bool is_table = !part.table.columns.empty();
    if (!has(part.forms, Form::text) || (is_table && part.table.rows.empty())) continue;
    if ((is_table || after_table) && !out.empty() && !out.ends_with("\n\n") && !(part.line.empty() && !is_table))
      out += '\n';
    out += is_table ? table_text(part.table) : part.line + '\n';
    after_table = is_table;
  }
  return out;
}

std::string Report::csv() const {
  for (const Part& part : parts_)
    if (has(part.forms, Form::csv)) return table_csv(part.table);
  return "";
}

Cell Report::json() const {
  Cell out = Cell::object();
  for (const Part& part : parts_) {
    if (!has(part.forms, Form::json)) continue;
    Cell value = part.table.columns.empty() ? part.value : table_json(part.table);
    (part.id.empty() ? out : part.fact ? out["facts"][part.id] : out[part.id]) = std::move(value);
  }
  return out;
}

std::string Report::printed(Form form) const {
  return form == Form::json ? json_text(json()) + '\n' : form == Form::csv ? csv() : text();
}

std::string json_text(const Cell& value) {
  return value.dump(2, ' ', false, Cell::error_handler_t::replace);
}

}  // namespace headscope::cli
