#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/run/run_request.h"

namespace headscope::run_request_json_test {

namespace {
RunRequest full_request() {
  RunRequest request;
  request.model = "models/a b";
  request.text = "Quill ☃ \"of\" Fox\n";
  request.ids = {3, 1, 2147483647};
  request.add_bos = false;
  request.parse_special = true;
  request.too_long = RunRequest::TooLong::keep_last;
  request.capture.maps = MapStorage::factored;
  request.capture.sites = {SiteKind::q, SiteKind::resid_post, SiteKind::logits};
  request.capture.layers = {0, 3};
  request.capture.all_logits = false;
  request.capture.byte_budget = std::size_t{5} << 32;
  return request;
}

std::string message_of(const std::string& json) {
  try {
    run_request_from_json(json, "r.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE("a run request comes back from JSON as it was") {
  const RunRequest request = full_request();
  CHECK(run_request_from_json(to_json(request), "r.json") == request);
  RunRequest plain;
  plain.model = "m";
  plain.text = "a";
  CHECK(run_request_from_json(to_json(plain), "r.json") == plain);
  CHECK(run_request_from_json(R"({"model": "m", "text": "a"})", "r.json") == plain);
}

TEST_CASE("every field of a run request changes its hash, and nothing else does") {
  const RunRequest request = full_request();
  CHECK(hash(request) == hash(full_request()));
  CHECK(hash(run_request_from_json(to_json(request), "r.json")) == hash(request));
  std::vector<RunRequest> others(11, request);
  others[0].model = "models/a";
  others[1].text += " ";
  others[2].ids = {3, 1};
  others[3].add_bos = true;
  others[4].add_bos.reset();
  others[5].parse_special = false;
  others[6].too_long = RunRequest::TooLong::refuse;
  others[7].capture.maps = MapStorage::dense;
  others[8].capture.sites.erase(SiteKind::q);
  others[9].capture.layers = {0};
  others[10].capture.byte_budget -= 1;
  std::set<std::uint64_t> hashes{hash(request)};
  for (const RunRequest& other : others) hashes.insert(hash(other));
  CHECK(hashes.size() == 12);
}

TEST_CASE("the hash of a request is the same on every machine") {
  RunRequest request;
  request.model = "m";
  request.text = "a";
  // FNV-1a (64 bits) of the compact JSON, by an independent implementation.
  CHECK(hash(request) == 0x8170C43EDCF3F806ull);
}

TEST_CASE("a broken request names the file, the key and what was found") {
  CHECK(message_of("{") ==
        "r.json: expected valid JSON, found parse error at line 1, column 2: syntax error while parsing object key - "
        "unexpected end of input; expected string literal");
  CHECK(message_of("[]") == "r.json: expected a JSON object, found an array of 0");
  CHECK(message_of(R"({"text": "a"})") == "r.json: expected \"model\", the path of a model folder, found none");
  CHECK(message_of(R"({"model": "m"})") == "r.json: expected \"text\", \"ids\" or \"image\", found neither");
  CHECK(message_of(R"({"model": 3, "text": "a"})") == "r.json: model: expected a text, found 3");
  CHECK(message_of(R"({"model": "m", "ids": [1, "x"]})") ==
        "r.json: ids[1]: expected a whole number of 32 bits, found \"x\"");
  CHECK(message_of(R"({"model": "m", "ids": [4294967296]})") ==
        "r.json: ids[0]: expected a whole number of 32 bits, found 4294967296");
  CHECK(message_of(R"({"model": "m", "ids": [18446744073709551615]})") ==
        "r.json: ids[0]: expected a whole number of 32 bits, found 18446744073709551615");
  CHECK(message_of(R"({"model": "m", "ids": [1.5]})") ==
        "r.json: ids[0]: expected a whole number of 32 bits, found 1.5");
  CHECK(message_of(R"({"model": "m", "text": "a", "add_bos": 1})") ==
        "r.json: add_bos: expected true or false, found 1");
  CHECK(message_of(R"({"model": "m", "text": "a", "too_long": "keep"})") ==
        "r.json: too_long: expected one of refuse, keep_first, keep_last, found \"keep\"");
  CHECK(message_of(R"({"model": "m", "text": "a", "captures": {}})") ==
        "r.json: expected only the keys model, text, ids, image, sound, source, source_ids, add_bos, ids_are_whole, "
        "parse_special, masked, too_long, "
        "capture, "
        "edits, "
        "found \"captures\"");
  CHECK(message_of(R"({"model": "m", "text": "a", "capture": {"sites": ["qq"]}})") ==
        "r.json: capture.sites[0]: expected the name of a kind of site, such as \"pattern\" or \"resid_pre\", found "
        "\"qq\"");
  CHECK(message_of(R"({"model": "m", "text": "a", "capture": {"byte_budget": -1}})") ==
        "r.json: capture.byte_budget: expected a whole number of at least 0, found -1");
  CHECK(message_of(std::string(100000, '[')).find("expected JSON") != std::string::npos);
}

TEST_CASE("a request whose text is not UTF-8 cannot be saved, and says where it breaks") {
  RunRequest request = full_request();
  request.text = "ab\xE2\x82 c";
  CHECK_THROWS_WITH_AS(to_json(request), "text: expected UTF-8, which JSON needs, found an invalid sequence at byte 2",
                       Error);
  CHECK(hash(request) != hash(full_request()));
}

}  // namespace headscope::run_request_json_test
