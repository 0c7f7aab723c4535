#include "core/io/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/memory.h"
#include "core/base/nearest_names.h"

namespace headscope {

namespace {

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Member = std::unique_ptr<zip_file_t, Discard>;

/// libzip's source of bytes: an open file, read where libzip asks for it. Owned by libzip, which frees it.
struct ZipSource {
  const InputFile& file;
  zip_uint64_t at = 0;
  zip_error_t error{};
};

/// The callback that libzip calls with a command (zip_source_function(3)). No exception may cross its C frames.
zip_int64_t serve(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  auto& source = *static_cast<ZipSource*>(state);
  const zip_uint64_t size = source.file.size();
  switch (command) {
    case ZIP_SOURCE_OPEN:
      source.at = 0;
      return 0;
    case ZIP_SOURCE_CLOSE:
      return 0;
    case ZIP_SOURCE_READ:
      try {
        const auto count = static_cast<std::size_t>(std::min(length, size - source.at));
        source.file.read(source.at, {static_cast<std::byte*>(data), count});
        source.at += count;
        return static_cast<zip_int64_t>(count);
      } catch (const std::exception&) {  // cut short since it was opened, or a broken disk
        zip_error_set(&source.error, ZIP_ER_READ, EIO);
        return -1;
      }
    case ZIP_SOURCE_SEEK: {
      const zip_int64_t to = zip_source_seek_compute_offset(source.at, size, data, length, &source.error);
      if (to >= 0) source.at = static_cast<zip_uint64_t>(to);
      return to < 0 ? -1 : 0;
    }
    case ZIP_SOURCE_TELL:
      return static_cast<zip_int64_t>(source.at);
    case ZIP_SOURCE_STAT: {
      auto& stat = *static_cast<zip_stat_t*>(data);
      zip_stat_init(&stat);
      stat.valid = ZIP_STAT_SIZE;
      stat.size = size;
      return sizeof stat;
    }
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(&source.error, data, length);
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
                                            ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
                                            ZIP_SOURCE_SUPPORTS, -1);
    case ZIP_SOURCE_FREE:
      delete &source;
      return 0;
    default:
      zip_error_set(&source.error, ZIP_ER_OPNOTSUPP, 0);
      return -1;
  }
}

/// A libzip handle is not thread-safe, so each reader opens its own over the shared file: that reads the directory
/// only.
Archive open_archive(const InputFile& file) {
  const char* const hint = "is it a .npz of numpy.savez, and was it copied whole?";
  zip_error_t error;
  zip_error_init(&error);
  const auto refuse = [&] {
    const std::string message = zip_error_strerror(&error);
    zip_error_fini(&error);
    throw Error(file.path().string(), "a zip archive (.npz)", message, hint);
  };
  auto state = std::make_unique<ZipSource>(ZipSource{file});
  zip_source_t* source = zip_source_function_create(&serve, state.get(), &error);
  if (!source) refuse();
  static_cast<void>(state.release());  // freed with the source
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
  if (!archive) {
    zip_source_free(source);
    refuse();
  }
  zip_error_fini(&error);
  return Archive(archive);
}

bool starts_with(const InputFile& file, std::string_view magic) {
  return file.size() >= magic.size() && file.text(0, magic.size()) == magic;
}

/// One member, inflated. libzip checks its CRC when the end is reached.
std::vector<std::byte> inflate(const InputFile& file, std::size_t member, const std::string& where, std::size_t limit) {
  const Archive archive = open_archive(file);
  zip_stat_t info;
  zip_stat_init(&info);
  constexpr zip_uint64_t needed =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive.get(), member, 0, &info) != 0 || (info.valid & needed) != needed)
    throw Error(where, "a member with sizes", zip_strerror(archive.get()));
  if (info.encryption_method != ZIP_EM_NONE) throw Error(where, "an array without a password", "an encrypted one");
  if (info.comp_method != ZIP_CM_STORE && info.comp_method != ZIP_CM_DEFLATE)
    throw Error(where, "a stored or deflated array", fmt::format("compression method {}", info.comp_method),
                "save it with numpy.savez or savez_compressed");
  if (info.size > limit) throw Error(where, fmt::format("at most {} bytes", limit), fmt::format("{}", info.size));
  // Deflate never reaches 1032 : 1, so a larger claim is a lie and must not decide how much we allocate.
  if (info.comp_size > file.size() || info.size / 1032 > info.comp_size)
    throw Error(where, fmt::format("a size that {} compressed bytes can give", info.comp_size),
                fmt::format("{} bytes", info.size));

  const Member stream(zip_fopen_index(archive.get(), member, 0));
  if (!stream) throw Error(where, "a readable array", zip_strerror(archive.get()));
  std::vector<std::byte> bytes(info.size + 1);  // one more, so that a longer member shows
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const zip_int64_t got = zip_fread(stream.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0)
      throw Error(where, "whole data", zip_file_strerror(stream.get()), "the file is damaged; fetch it again");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled != info.size)
    throw Error(where, fmt::format("{} bytes", info.size), filled > info.size ? "more" : fmt::format("{}", filled));
  bytes.resize(filled);
  return bytes;
}

}  // namespace

NpzFile NpzFile::open(const std::filesystem::path& path) {
  NpzFile out;
  out.file_ = InputFile::open(path);
  if (starts_with(*out.file_, "\x93NUMPY")) {
    out.names_.push_back(path.stem().string());
    return out;
  }
  const std::string where = path.string();
  if (!starts_with(*out.file_, std::string_view("PK\3\4", 4)) &&
      !starts_with(*out.file_, std::string_view("PK\5\6", 4)))
    throw Error(where, "a .npz or .npy file", "something else", "save arrays with numpy.savez");
  const Archive archive = open_archive(*out.file_);
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto member = static_cast<zip_uint64_t>(i);
    const char* const raw = zip_get_name(archive.get(), member, 0);
    std::string name = raw ? raw : "";
    if (!name.ends_with(".npy")) continue;  // archives made by hand may hold notes and folders
    name.resize(name.size() - 4);
    out.names_.push_back(std::move(name));
    out.members_.push_back(member);
  }
  std::vector<std::string> sorted = out.names_;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    throw Error(where, "every array name once", excerpt(*twice) + " twice");
  return out;
}

bool NpzFile::contains(const std::string& name) const {
  return std::ranges::find(names_, name) != names_.end();
}

NpyArray NpzFile::array(const std::string& name, std::size_t limit) const {
  limit = static_cast<std::size_t>(std::min<std::uint64_t>(limit, available_memory()));
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end())
    throw Error(path().string(), "array " + excerpt(name), fmt::format("{} arrays, none of that name", names_.size()),
                nearest_names_hint(name, names_));
  const std::string where = path().string() + ": array " + excerpt(name);
  if (members_.empty()) {
    if (file_->size() > limit)
      throw Error(where, fmt::format("at most {} bytes", limit), fmt::format("{}", file_->size()));
    std::vector<std::byte> bytes(file_->size());
    file_->read(0, bytes);
    return parse_npy(std::move(bytes), where);
  }
  const auto place = static_cast<std::size_t>(found - names_.begin());
  return parse_npy(inflate(*file_, members_[place], where, limit), where);
}

}  // namespace headscope
