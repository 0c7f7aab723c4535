#pragma once
// Runs a model over a corpus, passage by passage, with memory that does not grow with it.
//
// A corpus is files (folders stand for the files in them, in the order of their paths; hidden ones are left out) or
// drawn from the tasks of the bundled models. It is of what the model reads:
//   texts     in pieces: a file in stretches of at most 16 KiB that end at a line break where there is one, else at a
//             space, else at a character; by lines, every line that is not blank; a story. A piece is cut into passages
//             of as many tokens as the model reads at once (or fewer, if asked). Passages of fewer than two tokens say
//             nothing about attention and are left out.
//   pairs     of an encoder-decoder: lines of source<TAB>target. A pair is a passage, never cut: one with more tokens
//             in either text than asked is left out and counted.
//   pictures  PNG and JPEG. A picture is a passage; one that cannot be read is left out and counted.
// A passage is run alone, so that opening it in the window shows the very pass that was measured. Files of texts that
// are not UTF-8 are counted and left out.
//
// Shard i of n takes the pieces whose number leaves i when divided by n. Shards merge to what one run gives, bit for
// bit.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/metrics/corpus_statistics.h"
#include "core/run/run_request.h"
#include "core/train/language.h"

namespace headscope {

enum class CorpusKind { texts, pairs, pictures };
inline constexpr NamedValue<CorpusKind> corpus_kind_names[] = {
    {"texts", CorpusKind::texts}, {"pairs", CorpusKind::pairs}, {"pictures", CorpusKind::pictures}};
/// What it reads.
CorpusKind corpus_kind_of(const Model& model);

struct CorpusFile {
  std::string path;
  std::int64_t bytes = 0;
  bool operator==(const CorpusFile&) const = default;
};

struct CorpusSource {
  CorpusKind kind = CorpusKind::texts;
  std::vector<CorpusFile> files;  ///< in the order they are read
  bool lines = false;             ///< of texts: every line is a piece of its own
  std::int64_t drawn = 0;  ///< > 0: so many stories, sentences with their translation or pictures of shapes; no files
  std::uint64_t seed = 1;  ///< of what is drawn
  std::string grammar = "stories";  ///< of stories: Grammar::named
  bool operator==(const CorpusSource&) const = default;
};

/// The files named, and those in folders named; of pictures those that are named as PNG or JPEG. Throws Error when one
/// is missing or no picture, or when there is none.
CorpusSource corpus_of_files(const std::vector<std::filesystem::path>& paths, bool lines,
                             CorpusKind kind = CorpusKind::texts);
/// 1 … 10⁹ of them; throws Error otherwise.
CorpusSource drawn_corpus(CorpusKind kind, std::int64_t count, std::uint64_t seed);
inline CorpusSource corpus_of_stories(std::int64_t count, std::uint64_t seed) {
  return drawn_corpus(CorpusKind::texts, count, seed);
}
/// "3 files, 1.2 MB, by lines" or "1000 stories, seed 1"
std::string describe(const CorpusSource& source);

/// A passage, read again: its text, "source<TAB>target", or the path of its picture. Throws Error when the file has
/// changed its size or is gone.
std::string passage_text(const CorpusSource& source, const PassagePlace& place);
/// What a model is asked to run of it.
RunRequest passage_request(CorpusKind kind, const std::string& passage);

struct CorpusPiece {
  std::int64_t number = 0;
  std::int32_t file = 0;
  std::int64_t begin = 0;  ///< byte of the file
  std::string text;        ///< of a pair or a picture: the passage
};

/// Pieces one after another.
class CorpusReader {
 public:
  explicit CorpusReader(CorpusSource source);
  ~CorpusReader();
  /// The next one; nullopt at the end. Throws Error when a file cannot be read or has changed its size.
  std::optional<CorpusPiece> next();
  /// Share of the corpus that was handed out, 0 … 1.
  double progress() const;
  std::int64_t pieces() const { return number_; }  ///< handed out so far
  int skipped() const { return skipped_; }         ///< files that are not UTF-8, so far

 private:
  class Text;
  std::optional<CorpusPiece> next_picture();
  std::optional<CorpusPiece> from_file(Text& text);
  CorpusSource source_;
  std::unique_ptr<const Language> language_;  // of stories
  std::unique_ptr<Text> open_;
  std::size_t file_ = 0;
  std::int64_t at_ = 0, number_ = 0, before_ = 0, total_ = 0;
  int skipped_ = 0;
};

/// What was run, how far it got, and what came out.
struct CorpusResults {
  std::string model;            ///< name of the folder
  std::int64_t parameters = 0;  ///< of the model: together they tell whether it is the same
  CorpusSource source;
  int window = 0;                ///< most tokens of a passage, in each text of a pair
  bool bos = false;              ///< the model's beginning-of-sequence token stands in front of every passage
  int shard = 0, shards = 1;     ///< merged results are shard 0 of 1
  std::int64_t next_piece = 0;   ///< pieces before it are done …
  std::int32_t next_window = 0;  ///< … and of it these passages
  bool finished = false;
  int skipped = 0;                                 ///< files that are not UTF-8
  std::int64_t left_out = 0;                       ///< pairs longer than `window`, pictures that cannot be read
  CorpusStatistics statistics;                     ///< of an encoder-decoder: its decoder's
  std::optional<CorpusStatistics> encoder, cross;  ///< of an encoder-decoder
  bool operator==(const CorpusResults&) const = default;

  /// As Trace::part(): `statistics` for `only`, and for every stack of results of one.
  const CorpusStatistics& part(Stack stack) const;
  std::vector<Stack> stacks() const;
  std::uint64_t tokens() const;  ///< that were read, of both texts of a pair
  bool same_shape(const CorpusResults& other) const;
};
/// "3 pairs left out: longer than 64 tokens"; "" where nothing was.
std::string left_out_words(const CorpusResults& results);

std::string to_json(const CorpusResults& results);
/// Throws Error at `where` on a file of another kind, a newer version, other metrics than this program's, or numbers
/// that contradict one another.
CorpusResults corpus_results_from_json(const std::string& json, const std::string& where);
CorpusResults load_corpus_results(const std::filesystem::path& file);
void save_corpus_results(const CorpusResults& results, const std::filesystem::path& file);

/// All shards of one corpus, in any order, as one run would have made them. Throws Error naming what is missing, twice
/// there, unfinished, or of another corpus or model. `names` (for errors) has one entry per part.
CorpusResults merge(const std::vector<CorpusResults>& parts, const std::vector<std::string>& names);

/// One thread at a time.
class CorpusRun {
 public:
  /// Begins anew. `window` 0 = the model's context. Throws Error when the model reads something else or has no
  /// tokenizer for it, or numbers make no sense.
  CorpusRun(LoadedModel model, const std::string& name, CorpusSource source, int window = 0, int shard = 0,
            int shards = 1);
  /// Goes on where `results` stopped. Throws Error when they are of another model.
  CorpusRun(LoadedModel model, const std::string& name, CorpusResults results);
  CorpusRun(const CorpusRun&) = delete;
  CorpusRun& operator=(const CorpusRun&) = delete;

  /// Runs one passage; false when none is left. Throws Error or Cancelled; what came before stays, and step() can be
  /// called again.
  bool step(const Ctx& ctx);
  const CorpusResults& results() const { return results_; }
  double progress() const { return results_.finished ? 1 : reader_->progress(); }

 private:
  struct Passage {
    std::string text;
    PassagePlace place;
    std::size_t tokens = 0;  ///< of a text
  };
  bool next_piece();
  std::optional<Passage> next_passage();
  std::optional<Passage> cut_passage();
  bool can_be_run(const RunRequest& request) const;
  LoadedModel model_;
  CorpusResults results_;
  std::unique_ptr<CorpusReader> reader_;
  std::optional<CorpusPiece> piece_;
  std::vector<Token> tokens_;       // of the piece, where it is cut
  std::size_t token_ = 0;           // where the next passage begins
  std::int32_t window_ = 0;         // its number
  std::optional<Passage> passage_;  // the next one to run
};

}  // namespace headscope
