#include "viz/export/recipe_note.h"

#include <png.h>

#include <algorithm>
#include <charconv>
#include <csetjmp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/file.h"
#include "viz/export/animation.h"
#include "viz/export/pdf.h"
#include "viz/export/png.h"
#include "viz/export/svg.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t picture_limit = std::size_t{1} << 30, metadata_limit = std::size_t{64} << 20;

struct ReadFrom {
  std::string_view bytes;
  std::size_t at = 0;
  std::string failure;
};

void give(png_structp png, png_bytep out, png_size_t size) {
  auto* const source = static_cast<ReadFrom*>(png_get_io_ptr(png));
  if (size > source->bytes.size() - source->at) png_error(png, "the file ends too early");
  std::memcpy(out, source->bytes.data() + source->at, size);
  source->at += size;
}
[[noreturn]] void fail_reading(png_structp png, png_const_charp message) {
  try {
    static_cast<ReadFrom*>(png_get_error_ptr(png))->failure = message;
  } catch (...) {  // no exception may cross libpng's C frames
  }
  png_longjmp(png, 1);
}
void ignore_warning(png_structp, png_const_charp) {}

/// Only plain C between setjmp and the last libpng call: a longjmp must not skip a destructor.
bool read_header(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  return true;
}

constexpr const char* csv_key = "urn:headscope:recipe";
}  // namespace

std::string recipe_in_png(std::string_view bytes, const std::string& where) {
  if (!bytes.starts_with("\x89PNG\r\n\x1A\n")) return "";  // a JPEG of another's name
  ReadFrom source{bytes, 0, {}};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, fail_reading, ignore_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (info) {
    png_set_read_fn(png, &source, give);
    // Compressed text may claim any length, and there may be many of it.
    png_set_chunk_malloc_max(png, metadata_limit);
    png_set_chunk_cache_max(png, 32);
  }
  const bool read = info && read_header(png, info);
  std::string recipe;
  png_textp texts = nullptr;
  const int count = read ? png_get_text(png, info, &texts, nullptr) : 0;
  for (int i = 0; i < count; ++i)
    if (std::string_view(texts[i].key) == png_recipe_key) recipe = texts[i].text;
  png_destroy_read_struct(&png, &info, nullptr);
  if (!read) throw Error(where, "a PNG picture", source.failure.empty() ? "no memory" : source.failure);
  return recipe;
}

std::string recipe_in_svg(std::string_view text) {
  const std::size_t begin = text.find(svg_recipe_begin);
  if (begin == std::string_view::npos) return "";
  text.remove_prefix(begin + svg_recipe_begin.size());
  text = text.substr(0, text.find("</metadata>"));
  std::string out;
  static constexpr std::pair<std::string_view, char> names[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  while (!text.empty()) {
    char next = text.front();
    std::size_t length = 1;
    for (const auto& [name, sign] : names)
      if (text.starts_with(name)) next = sign, length = name.size();
    out += next;
    text.remove_prefix(length);
  }
  return out;
}

std::string recipe_in_pdf(std::string_view bytes) {
  const std::size_t at = bytes.starts_with("%PDF-") ? bytes.rfind(pdf_recipe_begin) : std::string_view::npos;
  if (at == std::string_view::npos) return "";
  bytes.remove_prefix(at + pdf_recipe_begin.size());
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == ')') return out;
    if (bytes[i] != '\\') {
      out += bytes[i];
      continue;
    }
    const std::string_view rest = bytes.substr(++i, 3);
    if (rest.empty()) break;
    int code = 0;
    const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), code, 8);
    const bool numbered = failure == std::errc() && end == rest.data() + 3 && code < 256;
    out += numbered ? static_cast<char>(code) : rest.front();
    if (numbered) i += 2;
  }
  return "";
}

namespace {
struct GifExtension {
  std::size_t begin = 0, end = 0;
  std::string content;
};
/// The one of ours, which stands before the first picture.
std::optional<GifExtension> extension_of_gif(std::string_view bytes) {
  constexpr int extension = 0x21, application = 0xFF;
  const auto byte = [&](std::size_t at) { return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0; };
  if (!bytes.starts_with("GIF89a")) return std::nullopt;
  const int flags = byte(10);  // a table of colours comes first, where bit 7 says so
  std::size_t at = 13 + ((flags & 0x80) != 0 ? std::size_t{3} << ((flags & 7) + 1) : 0);
  while (byte(at) == extension) {
    GifExtension found{at, at + 2, {}};
    int parts = 0;
    bool ours = byte(at + 1) == application;
    for (; byte(found.end) > 0; ++parts) {
      const std::string_view part = bytes.substr(found.end + 1, static_cast<std::size_t>(byte(found.end)));
      if (parts == 0)
        ours = ours && part == gif_recipe_name;
      else if (ours)
        found.content += part;
      found.end += 1 + static_cast<std::size_t>(byte(found.end));
    }
    if (found.end >= bytes.size()) return std::nullopt;  // it is cut off
    ++found.end;
    if (ours) return found;
    at = found.end;
  }
  return std::nullopt;
}
}  // namespace

std::string recipe_in_gif(std::string_view bytes) {
  const auto found = extension_of_gif(bytes);
  return found ? found->content : "";
}

std::string gif_without_recipe(std::string_view bytes) {
  std::string out(bytes);
  if (const auto found = extension_of_gif(bytes)) out.erase(found->begin, found->end - found->begin);
  return out;
}

fs::path csv_metadata_path(const fs::path& csv) {
  fs::path out = csv;
  out += "-metadata.json";
  return out;
}

void write_csv_metadata(const fs::path& csv, const Scene& note) {
  const fs::path file = csv_metadata_path(csv);
  std::error_code absent;
  const bool there = fs::exists(file, absent);
  if (there && read_recipe(csv).empty()) return;  // another program's, or the user's own
  if (note.recipe.empty()) {
    fs::remove(file, absent);
    return;
  }
  const nlohmann::ordered_json out{{"@context", "http://www.w3.org/ns/csvw"},
                                   {"url", csv.filename().string()},
                                   {"dc:title", note.title},
                                   {"dc:description", note.description},
                                   {csv_key, note.recipe}};
  write_file_atomically(file, out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string read_recipe(const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".gif" || ending == ".GIF") return recipe_in_gif(read_file(file, picture_limit));
  if (ending == ".png" || ending == ".PNG" || ending == ".apng" || ending == ".APNG")
    return recipe_in_png(read_file(file, picture_limit), file.string());
  if (ending == ".svg" || ending == ".SVG") return recipe_in_svg(read_file(file, picture_limit));
  if (ending == ".pdf" || ending == ".PDF") return recipe_in_pdf(read_file(file, picture_limit));
  if (ending != ".csv" && ending != ".CSV") return "";
  const fs::path companion = csv_metadata_path(file);
  std::error_code absent;
  if (!fs::exists(companion, absent)) return "";
  const auto parsed = nlohmann::json::parse(read_file(companion, metadata_limit), nullptr, false);
  return parsed.is_object() && parsed.contains(csv_key) && parsed[csv_key].is_string()
             ? parsed[csv_key].get<std::string>()
             : "";
}

}  // namespace headscope
