#pragma once
// Strings and what tokenizers must make of them, one JSON object per line.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/text/tokenizer.h"

namespace headscope::testing {

inline std::vector<nlohmann::json> read_cases(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path.string());
  std::vector<nlohmann::json> cases;
  for (std::string line; std::getline(file, line);) cases.push_back(nlohmann::json::parse(line));
  REQUIRE(!cases.empty());
  return cases;
}

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

inline std::vector<std::int32_t> ids_of(const std::vector<Token>& tokens) {
  std::vector<std::int32_t> ids;
  for (const Token& token : tokens) ids.push_back(token.id);
  return ids;
}

/// Whether every byte of the text belongs to exactly one token, in order.
inline bool spans_cover(const std::vector<Token>& tokens, const std::string& text) {
  int at = 0;
  for (const Token& token : tokens) {
    if (token.begin != at || token.end < token.begin) return false;
    at = token.end;
  }
  return tokens.empty() || at == static_cast<int>(text.size());
}

}  // namespace headscope::testing
