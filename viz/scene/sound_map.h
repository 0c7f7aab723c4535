#pragma once
// Where one query looks in a sound: its row of the map laid over the log-mel spectrogram of which the keys are
// stretches (SoundFrames), and drawn as a curve of its own below. Time runs to the right, pitch upwards.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/metrics/token_times.h"
#include "core/trace/head_id.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/scene.h"

namespace headscope {

/// The words that were written of a sound, to stand where they were said, and in words by what that is known.
struct SpokenWords {
  std::vector<WordTime> words;
  std::string by;
};

struct SoundMapOptions {
  HeadId head = {};
  Index query = 0;
  Badge badge = {};
  double plot = 720;  ///< width that the spectrogram aims at, logical pixels
  /// For a panel: all of it is no larger than this, without title. Then `plot` is not read.
  struct Room {
    double width = 0, height = 0;
  };
  std::optional<Room> room = {};
  std::shared_ptr<const SpokenWords> spoken = {};  ///< may be null
  std::optional<Index> token = {};                 ///< of the target, whose word is marked
};

/// Any number by key, laid over the sound in the same way.
struct SoundValues {
  std::vector<double> by_key;  ///< 0 or more; empty = the spectrogram alone
  std::string title;           ///< of a picture for a file
  std::string name;            ///< "decoder.blocks.1.cross_attn.hook_pattern[2][7, :]"
  std::string unit;            ///< beside the largest
  std::optional<Index> query;  ///< the stretch that looks, framed, where queries are stretches too
  /// What one of them says, for its tooltip; empty = its time and number.
  std::function<std::string(Index key, double value)> says = {};
};

/// Keys that are shown: those of the sound, and a little of the silence behind it.
Index shown_keys(const SoundFrames& sound);

/// Marks "spectrogram" (pixels), "stretch.<key>" (TokenAt of the strongest key of a pixel or more), "weights" (the
/// curve) and "query"; of words "word.<i>" (from when to when it was said) and "word.<i>.begin". Series: the numbers of
/// all keys; beginning and end of every word. Throws Error when the trace has no sound, or `values` are of
/// another number of keys.
Scene sound_values_scene(const Trace& trace, const SoundValues& values, const SoundMapOptions& options,
                         const Style& style);
/// The row of a query. Throws Error also when there is no such map or row.
Scene sound_map_scene(const Trace& trace, const SoundMapOptions& options, const Style& style);

}  // namespace headscope
