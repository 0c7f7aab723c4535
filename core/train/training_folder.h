#pragma once
// The folder that a training leaves its model in: locked while it is at work, replaced whole at the end. Meanwhile it
// holds what was there before and the checkpoint.

#include <filesystem>
#include <memory>

#include "core/base/file_lock.h"
#include "core/train/trainer.h"

namespace headscope {

class TrainingFolder {
 public:
  /// Makes the folder where it is missing, and removes what dead processes left in and beside it. Throws Error when
  /// another process trains into it (who, and since when), when it holds a model and `overwrite` is false, or when it
  /// cannot be replaced: the root of a file system, or where this process stands.
  TrainingFolder(const std::filesystem::path& folder, bool overwrite);
  ~TrainingFolder();  ///< removes the folder again if it is new and nothing was put into it
  TrainingFolder(const TrainingFolder&) = delete;
  TrainingFolder& operator=(const TrainingFolder&) = delete;

  std::filesystem::path checkpoint() const { return folder_ / checkpoint_name; }
  bool has_checkpoint() const;
  /// Puts the trainer's model in the place of what is there, the checkpoint included, and the card that was measured of
  /// it. Files that belong to no model stay. Throws Error; the folder is then as it was.
  void publish(const Trainer& trainer);

  static constexpr const char* checkpoint_name = "checkpoint.safetensors";
  static constexpr const char* lock_name = "training.lock";

 private:
  std::filesystem::path folder_;
  bool made_ = false;
  std::unique_ptr<FileLock> lock_;
};

/// True when there is something in it that makes it a model: configuration or weights.
bool holds_model(const std::filesystem::path& folder);

}  // namespace headscope
