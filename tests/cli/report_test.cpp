// The three printers of a report: a text for people, CSV and JSON for scripts.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "app/cli/report.h"

namespace headscope::report_test {

using namespace cli;
using cli::Cell;

namespace {
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// The fields of a line without quotes.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) out.push_back(field);
  return out;
}
}  // namespace

TEST_CASE("report: a number that does not exist is – in a text, an empty field and null; nothing is empty there too") {
  Report report;
  auto& rows = report.table("rows", {"name", "value", "more"});
  rows.add({"there", 0.5, 1});
  rows.add({"unknown", unknown, nullptr});
  rows.add({"beyond", std::numeric_limits<double>::infinity(), nullptr});
  CHECK(report.printed(Form::text) ==
        "name     value  more\n"
        "there      0.5     1\n"
        "unknown      –\n"
        "beyond     inf\n");
  CHECK(report.printed(Form::csv) == "name,value,more\nthere,0.5,1\nunknown,,\nbeyond,,\n");
  const auto json = Cell::parse(report.printed(Form::json));
  CHECK(json["rows"][0]["value"] == 0.5);
  for (const int row : {1, 2}) {
    CHECK(json["rows"][row]["value"].is_null());
    CHECK(json["rows"][row]["more"].is_null());
  }
}

TEST_CASE("report: numbers come back from CSV and JSON to the last bit, and a text rounds them as the column says") {
  const double values[] = {0.1, 1.0 / 3, 1e-300, -2.5e17, static_cast<double>(0.1F), std::nextafter(1.0, 2.0)};
  Report report;
  auto& rows = report.table("rows", {{"value", "value", "{:+.2f}"}, "count"});
  for (const double value : values) rows.add({value, std::int64_t{1} << 60});
  std::istringstream csv(report.printed(Form::csv));
  std::string line;
  std::getline(csv, line);
  CHECK(line == "value,count");
  const auto json = Cell::parse(report.printed(Form::json));
  for (std::size_t i = 0; i < std::size(values); ++i) {
    REQUIRE(std::getline(csv, line));
    CHECK(std::stod(fields(line)[0]) == values[i]);
    CHECK(fields(line)[1] == "1152921504606846976");
    CHECK(json["rows"][i]["value"].get<double>() == values[i]);
    CHECK(json["rows"][i]["count"] == std::int64_t{1} << 60);
  }
  CHECK(report.printed(Form::text).find("+0.33  1152921504606846976\n") != std::string::npos);
}

TEST_CASE("report: words with commas, quotes and new lines are quoted in CSV and whole in JSON") {
  Report report;
  auto& rows = report.table("rows", {"token"});
  for (const char* token : {"plain", "a, b", "say \"no\"", "two\nlines"}) rows.add({token});
  CHECK(report.printed(Form::csv) == "token\nplain\n\"a, b\"\n\"say \"\"no\"\"\"\n\"two\nlines\"\n");
  CHECK(Cell::parse(report.printed(Form::json))["rows"][2]["token"] == "say \"no\"");
}

TEST_CASE("report: titles and units are for people, ids for scripts, and each form has its own columns") {
  Report report;
  auto& rows = report.table("heads", {for_people("head"),
                                      only_in(Form::scripts, "layer"),
                                      only_in(Form::csv, "flat"),
                                      only_in(Form::json, "nested"),
                                      {"forward_ms", "forward", "{:.1f}", "ms"}});
  rows.add({"1.0", 1, 7, {{"deep", 7}}, 2.25});
  CHECK(report.printed(Form::text) == "head  forward ms\n 1.0         2.2\n");
  CHECK(report.printed(Form::csv) == "layer,flat,forward_ms\n1,7,2.25\n");
  CHECK(report.json().dump() == R"({"heads":[{"layer":1,"nested":{"deep":7},"forward_ms":2.25}]})");
}

TEST_CASE("report: people see the largest first and what is unknown last; scripts see the order it came in") {
  Report report;
  auto& rows = report.table("rows", {"name", "score"});
  rows.add({"none", unknown});
  rows.add({"small", 1});
  rows.add({"large", 2.5});
  rows.largest_first = "score";
  CHECK(report.printed(Form::text) == "name   score\nlarge    2.5\nsmall      1\nnone       –\n");
  CHECK(report.printed(Form::csv) == "name,score\nnone,\nsmall,1\nlarge,2.5\n");
}

TEST_CASE("report: parts stand in their order, tables between blank lines, and without rows only in JSON") {
  Report report;
  report.line("headline");
  report.data("model", {{"layers", 2}});
  report.facts({{"loss", "loss", 0.25, "nats"}, {"rows", "rows", 3}});
  report.table("none", {"a"}, Form::text | Form::json);
  report.table("some", {"a"}).add({1});
  report.line("after");
  CHECK(report.printed(Form::text) == "headline\nloss: 0.25 nats\nrows: 3\n\na\n1\n\nafter\n");
  CHECK(report.printed(Form::csv) == "a\n1\n");
  CHECK(report.json().dump() == R"({"model":{"layers":2},"facts":{"loss":0.25,"rows":3},"none":[],"some":[{"a":1}]})");
}

TEST_CASE("report: an appended report goes on with the same facts, and what has no id is the whole document") {
  Report whole, part;
  whole.data("tool", "lens");
  part.fact({"mean", "mean", 1.5});
  part.table("rows", {"a"}).add({1});
  whole.append(std::move(part));
  CHECK(whole.json().dump() == R"({"tool":"lens","facts":{"mean":1.5},"rows":[{"a":1}]})");
  Report list;
  list.table("", {"id"}).add({"entropy"});
  CHECK(list.json().dump() == R"([{"id":"entropy"}])");
}

}  // namespace headscope::report_test
