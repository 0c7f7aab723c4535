// What a corpus is made of, and reading it piece by piece.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/numbered_random.h"
#include "core/base/utf8.h"
#include "core/corpus/corpus.h"
#include "core/io/picture.h"
#include "core/io/shapes.h"
#include "core/train/grammar.h"
#include "core/train/translation.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_bytes_of_piece = 16384;

bool hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

CorpusFile file_of(const fs::path& path) {
  std::error_code failed;
  const auto bytes = fs::file_size(path, failed);
  if (failed) throw Error(path.string(), "a file that can be read", failed.message());
  return {path.generic_string(), static_cast<std::int64_t>(bytes)};
}

bool may_be_of(CorpusKind kind, const fs::path& path) {
  return kind != CorpusKind::pictures || may_be_picture(path);
}

void add_folder(std::vector<CorpusFile>& files, const fs::path& folder, CorpusKind kind) {
  std::error_code failed;
  std::vector<fs::path> found;
  fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied, failed), end;
  if (failed) throw Error(folder.string(), "a folder that can be read", failed.message());
  for (; entries != end; entries.increment(failed)) {
    if (failed) throw Error(folder.string(), "a folder that can be read", failed.message());
    std::error_code ignored;
    if (hidden(entries->path())) {
      if (entries->is_directory(ignored)) entries.disable_recursion_pending();
    } else if (entries->is_regular_file(ignored) && may_be_of(kind, entries->path())) {
      found.push_back(entries->path());
    }
  }
  std::ranges::sort(found);
  for (const fs::path& path : found) files.push_back(file_of(path));
}

/// How long the piece is that `window` begins with, of which `left` bytes are left (all of them when that is near
/// enough). REQUIRES window.size() > most_bytes_of_piece where left is.
std::size_t length_of_piece(std::string_view window, std::size_t left) {
  if (left <= most_bytes_of_piece) return left;
  const std::string_view stretch = window.substr(0, most_bytes_of_piece);
  constexpr std::size_t least = most_bytes_of_piece / 2;
  if (const auto line = stretch.rfind('\n'); line != std::string_view::npos && line >= least) return line + 1;
  if (const auto space = stretch.rfind(' '); space != std::string_view::npos && space >= least) return space;
  std::size_t end = stretch.size();
  while (end > 0 && (static_cast<unsigned char>(window[end]) & 0xC0) == 0x80) --end;
  return end;
}

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

std::shared_ptr<const InputFile> open(const CorpusFile& file) {
  auto opened = InputFile::open(file.path);
  if (static_cast<std::int64_t>(opened->size()) != file.bytes)
    throw Error(file.path, fmt::format("the file of {} bytes that the corpus began with", file.bytes),
                fmt::format("{} bytes", opened->size()), "start again with the file as it is now");
  return opened;
}

/// Of stories; nullptr where none are drawn.
std::unique_ptr<const Language> language_of(const CorpusSource& source) {
  const bool stories = source.drawn > 0 && source.kind == CorpusKind::texts;
  return stories ? std::make_unique<const Language>(Grammar::named(source.grammar, "corpus: grammar")) : nullptr;
}

/// Each has random numbers of its own, so that any of them can be told alone.
std::string drawn_passage(const CorpusSource& source, const Language* language, std::int64_t number) {
  if (source.kind == CorpusKind::pictures) return name_of_shapes(source.seed, number);
  Random random = numbered_random(source.seed, number);
  if (source.kind == CorpusKind::texts) return language->sample(random).text;
  const Translation drawn = draw_translation(random);
  return drawn.source_text() + "\t" + drawn.target_text();
}

/// What a line of a file of pairs is instead of one; "" where it is one.
std::string trouble_of_pair(std::string_view line) {
  if (line.size() > most_bytes_of_piece) return fmt::format("more than {} bytes", most_bytes_of_piece);
  const auto tabs = std::ranges::count(line, '\t');
  if (tabs != 1) return tabs == 0 ? "no tab" : fmt::format("{} tabs", tabs);
  const std::size_t tab = line.find('\t');
  if (blank(line.substr(0, tab))) return "an empty source";
  return blank(line.substr(tab + 1)) ? "an empty target" : "";
}

}  // namespace

CorpusKind corpus_kind_of(const Model& model) {
  if (model.config().vision) return CorpusKind::pictures;
  return model.encoder() ? CorpusKind::pairs : CorpusKind::texts;
}

CorpusSource corpus_of_files(const std::vector<fs::path>& paths, bool lines, CorpusKind kind) {
  const bool pictures = kind == CorpusKind::pictures;
  CorpusSource source;
  source.kind = kind;
  source.lines = lines && kind == CorpusKind::texts;
  for (const fs::path& path : paths) {
    std::error_code failed;
    const auto type = fs::status(path, failed).type();
    if (type == fs::file_type::directory)
      add_folder(source.files, path, kind);
    else if (type != fs::file_type::regular)
      throw Error(path.string(), pictures ? "a picture or a folder" : "a text file or a folder",
                  failed || type == fs::file_type::not_found ? "no such thing" : "a pipe or device");
    else if (!may_be_of(kind, path))
      throw Error(path.string(), "a picture, PNG or JPEG, which the model reads", "a file of another name");
    else
      source.files.push_back(file_of(path));
  }
  if (source.files.empty())
    throw Error(paths.empty() ? "corpus" : paths.front().string(),
                pictures ? "at least one picture, PNG or JPEG" : "at least one file to read", "none");
  return source;
}

namespace {
/// What is drawn, of each kind.
std::string drawn_words(CorpusKind kind, bool one = false) {
  if (kind == CorpusKind::texts) return one ? "story" : "stories";
  return std::string(kind == CorpusKind::pairs ? "drawn pair" : "drawn picture") + (one ? "" : "s");
}
}  // namespace

CorpusSource drawn_corpus(CorpusKind kind, std::int64_t count, std::uint64_t seed) {
  if (count < 1 || count > 1'000'000'000)
    throw Error(drawn_words(kind), "1 to 1,000,000,000 of them", std::to_string(count));
  CorpusSource source;
  source.kind = kind;
  source.drawn = count;
  source.seed = seed;
  return source;
}

std::string describe(const CorpusSource& source) {
  if (source.drawn > 0)
    return fmt::format("{} {}, seed {}", source.drawn, drawn_words(source.kind, source.drawn == 1), source.seed);
  double bytes = 0;
  for (const CorpusFile& file : source.files) bytes += static_cast<double>(file.bytes);
  const std::string size = bytes >= 1e6   ? fmt::format("{:.1f} MB", bytes / 1e6)
                           : bytes >= 1e3 ? fmt::format("{:.1f} kB", bytes / 1e3)
                                          : fmt::format("{:.0f} bytes", bytes);
  const std::string things = source.kind == CorpusKind::pictures ? "picture" : "file";
  return fmt::format("{} {}{}, {}{}{}", source.files.size(), things, source.files.size() == 1 ? "" : "s", size,
                     source.kind == CorpusKind::pairs ? ", pairs" : "", source.lines ? ", by lines" : "");
}

RunRequest passage_request(CorpusKind kind, const std::string& passage) {
  RunRequest request;
  if (kind == CorpusKind::pictures) {
    request.image = passage;
  } else {
    const std::size_t tab = kind == CorpusKind::pairs ? passage.find('\t') : std::string::npos;
    if (tab != std::string::npos) request.source = passage.substr(0, tab);
    request.text = passage.substr(tab + 1);  // npos + 1 = 0
  }
  return request;
}

std::string passage_text(const CorpusSource& source, const PassagePlace& place) {
  const auto check_inside = [&](std::uint64_t size, const std::string& where) {
    if (place.begin < 0 || place.begin > place.end || static_cast<std::uint64_t>(place.end) > size)
      throw Error(where, "a passage inside the text", fmt::format("bytes {} to {}", place.begin, place.end));
  };
  const auto begin = static_cast<std::size_t>(place.begin), length = static_cast<std::size_t>(place.end - place.begin);
  if (source.drawn > 0) {
    const std::string text = drawn_passage(source, language_of(source).get(), place.piece);
    check_inside(text.size(), fmt::format("passage {}", place.piece));
    return text.substr(begin, length);
  }
  if (place.file < 0 || static_cast<std::size_t>(place.file) >= source.files.size())
    throw Error("passage", fmt::format("one of {} files", source.files.size()), fmt::format("file {}", place.file));
  const CorpusFile& file = nth(source.files, place.file);
  const auto opened = open(file);
  if (source.kind == CorpusKind::pictures) return file.path;
  check_inside(opened->size(), file.path);
  std::string text = opened->text(begin, length);
  if (first_invalid_utf8(text)) throw Error(file.path, "the text that was measured", "bytes that are not UTF-8");
  return text;
}

/// A file's text, a stretch of it in memory.
class CorpusReader::Text {
 public:
  explicit Text(const CorpusFile& file) : file_(open(file)) {}
  std::size_t size() const { return file_->size(); }

  bool is_utf8() const {
    std::string part;  // a character may lie on both sides of a stretch's end: what is cut off goes with the next
    for (std::size_t at = 0; at < size();) {
      const std::size_t more = std::min(stretch_bytes, size() - at);
      part += file_->text(at, more);
      at += more;
      const std::size_t good = first_invalid_utf8(part).value_or(part.size());
      part.erase(0, good);
      if (part.size() >= 4 || (at == size() && !part.empty())) return false;
    }
    return true;
  }
  std::int64_t lines_before(std::size_t end) const {
    std::int64_t lines = 0;
    for (std::size_t at = 0; at < end; at += stretch_bytes)
      lines += std::ranges::count(file_->text(at, std::min(stretch_bytes, end - at)), '\n');
    return lines;
  }
  /// The text from `at` on: more than a piece, or all there is.
  std::string_view from(std::size_t at) {
    const std::size_t wanted = std::min(most_bytes_of_piece + 1, size() - at);
    if (at < begin_ || at + wanted > begin_ + stretch_.size()) {
      stretch_ = file_->text(at, std::min(stretch_bytes, size() - at));
      begin_ = at;
    }
    return std::string_view(stretch_).substr(at - begin_);
  }

 private:
  static constexpr std::size_t stretch_bytes = std::size_t{1} << 20;
  std::shared_ptr<const InputFile> file_;
  std::string stretch_;
  std::size_t begin_ = 0;
};

CorpusReader::CorpusReader(CorpusSource source)
    : source_(std::move(source)), language_(language_of(source_)), total_(source_.drawn) {
  for (const CorpusFile& file : source_.files) total_ += file.bytes;
}
CorpusReader::~CorpusReader() = default;

double CorpusReader::progress() const {
  return total_ > 0 ? static_cast<double>(before_ + at_) / static_cast<double>(total_) : 1;
}

std::optional<CorpusPiece> CorpusReader::next() {
  if (source_.drawn > 0) {
    if (at_ >= source_.drawn) return std::nullopt;
    CorpusPiece piece{number_++, 0, 0, drawn_passage(source_, language_.get(), at_)};
    ++at_;
    return piece;
  }
  if (source_.kind == CorpusKind::pictures) return next_picture();
  while (file_ < source_.files.size()) {
    if (!open_) {
      open_ = std::make_unique<Text>(source_.files[file_]);
      if (!open_->is_utf8()) {
        ++skipped_;
        at_ = source_.files[file_].bytes;
      }
    }
    if (auto piece = from_file(*open_)) return piece;
    before_ += source_.files[file_].bytes;
    at_ = 0;
    open_.reset();
    ++file_;
  }
  return std::nullopt;
}

std::optional<CorpusPiece> CorpusReader::next_picture() {
  if (file_ >= source_.files.size()) return std::nullopt;
  const CorpusFile& file = source_.files[file_];
  (void)open(file);  // that it is as it was
  before_ += file.bytes;
  return CorpusPiece{number_++, static_cast<std::int32_t>(file_++), 0, file.path};
}

std::optional<CorpusPiece> CorpusReader::from_file(Text& text) {
  while (static_cast<std::size_t>(at_) < text.size()) {
    const auto begin = static_cast<std::size_t>(at_);
    const std::string_view window = text.from(begin);
    std::size_t left = text.size() - begin;
    const bool pairs = source_.kind == CorpusKind::pairs, lines = source_.lines || pairs;
    if (lines) left = std::min(window.find('\n'), left);
    const std::size_t length = pairs ? std::min(left, window.size()) : length_of_piece(window, left);
    at_ = static_cast<std::int64_t>(begin + length + (lines && length == left ? 1 : 0));
    if (blank(window.substr(0, length))) continue;
    CorpusPiece piece{number_++, static_cast<std::int32_t>(file_), static_cast<std::int64_t>(begin),
                      std::string(window.substr(0, length))};
    if (lines && piece.text.ends_with('\r')) piece.text.pop_back();
    if (const std::string found = pairs ? trouble_of_pair(piece.text) : ""; !found.empty())
      throw Error(fmt::format("{}, line {}", source_.files[file_].path, 1 + text.lines_before(begin)),
                  "source<TAB>target, a pair in each line", found);
    return piece;
  }
  at_ = std::min(at_, static_cast<std::int64_t>(text.size()));
  return std::nullopt;
}

}  // namespace headscope
