#pragma once
// Fixtures of families that have no tokenizer, for a window in which somebody writes.

#include <filesystem>
#include <string>

#include "core/base/file.h"
#include "core/base/json.h"
#include "tests/support/paths.h"

namespace headscope::testing {

/// A fixture's folder with a token for every letter, digit and mark, so that a person can write to it.
inline std::filesystem::path with_letters(const std::string& family) {
  namespace fs = std::filesystem;
  const fs::path folder = scratch_dir("gui-" + family);
  for (const char* file : {"config.json", "model.safetensors"})
    fs::copy_file(reference("families") / family / file, folder / file, fs::copy_options::overwrite_existing);
  nlohmann::json vocab = nlohmann::json::object();
  std::string marks = "abcdefghijklmnopqrstuvwxyz0123456789.,-!?'";
  int id = 0;
  for (const char mark : marks) vocab[std::string(1, mark)] = id++;
  vocab["Ġ"] = id;
  const nlohmann::json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  const nlohmann::json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", nlohmann::json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", level},
      {"post_processor", nullptr},
      {"decoder", level},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
  write_file_atomically(folder / "tokenizer.json", tokenizer.dump());
  return folder;
}

}  // namespace headscope::testing
