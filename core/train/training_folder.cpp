#include "core/train/training_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/base/folder.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

bool is_weights(std::string_view name) {
  return name.starts_with("model") && name.ends_with(".safetensors");
}

/// What says something about one model only, and would be wrong or in the way beside another.
bool is_part_of_a_model(std::string_view name) {
  constexpr std::string_view names[] = {"config.json",
                                        "generation_config.json",
                                        "tokenizer.json",
                                        "tokenizer.model",
                                        "vocab.json",
                                        "special_tokens_map.json",
                                        "merges.txt",
                                        "added_tokens.json",
                                        "recipe.json",
                                        "tokenizer_config.json",
                                        "training.json",
                                        "preprocessor_config.json",
                                        "model.safetensors.index.json"};
  return std::ranges::find(names, name) != std::end(names) || is_weights(name);
}

/// A model's card is written as both; a README.md without the other is somebody's own.
constexpr std::string_view card = "card.json", card_in_words = "README.md";

bool goes(std::string_view name, bool has_card) {
  return is_part_of_a_model(name) || name == TrainingFolder::checkpoint_name || name == TrainingFolder::lock_name ||
         (has_card && (name == card || name == card_in_words));
}

/// Why the folder as it is cannot be exchanged for another; "" = it can.
std::string hindrance(const fs::path& folder) {
  std::error_code failed;
  const fs::path place = fs::canonical(folder, failed);
  const fs::path here = fs::current_path(failed);
  const auto inside = std::mismatch(place.begin(), place.end(), here.begin(), here.end());
  if (inside.first == place.end()) return "the folder this was started in";
  struct stat own {
  }, above{};
  if (::stat(place.c_str(), &own) == 0 && ::stat(place.parent_path().c_str(), &above) == 0 &&
      own.st_dev != above.st_dev)
    return "the root of a file system";
  return "";
}

}  // namespace

bool holds_model(const fs::path& folder) {
  std::error_code failed;
  for (auto at = fs::directory_iterator(folder, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name == "config.json" || is_weights(name)) return true;
  }
  return false;
}

TrainingFolder::TrainingFolder(const fs::path& folder, bool overwrite) : folder_(folder) {
  std::error_code failed;
  if (!fs::exists(folder_, failed)) clear_leftovers(folder_);  // which may bring it back
  made_ = fs::create_directories(folder_, failed);
  if (failed) throw Error(folder.string(), "a folder that can be made", failed.message(), "choose another with -o");
  std::string holder;
  lock_ = FileLock::take(folder_ / lock_name, &holder);
  if (!lock_)
    throw Error(folder.string(), "a folder that nobody else trains into", holder + " at it",
                "wait for it or choose another folder; if it is gone, delete " + (folder_ / lock_name).string());
  clear_leftovers(folder_);
  if (const std::string why = hindrance(folder_); !why.empty())
    throw Error(folder.string(), "a folder that can be replaced whole", why, "name a folder of the model's own");
  if (!overwrite && holds_model(folder_))
    throw Error(folder.string(), "a folder without a model", "one with a model in it",
                "choose another folder, or say that it may be overwritten");
}

TrainingFolder::~TrainingFolder() {
  lock_.reset();
  std::error_code failed;
  if (made_) fs::remove(folder_, failed);  // only an empty one goes
}

bool TrainingFolder::has_checkpoint() const {
  std::error_code failed;
  return fs::exists(checkpoint(), failed);
}

void TrainingFolder::publish(const Trainer& trainer) {
  std::error_code failed;
  const bool has_card = fs::exists(folder_ / card, failed);
  write_folder_atomically(
      folder_, [&](const fs::path& part) { trainer.save_model(part); },
      [&](std::string_view name) { return goes(name, has_card); });
}

}  // namespace headscope
