#include "core/io/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/nearest_names.h"

namespace headscope {

namespace {

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
using Member = std::unique_ptr<zip_file_t, Discard>;

/// A libzip handle is not thread-safe, so each reader opens its own over the shared map: that reads the directory only.
Archive open_archive(const MappedFile& file) {
  const char* const hint = "is it a .npz of numpy.savez, and was it copied whole?";
  zip_error_t error;
  zip_error_init(&error);
  const auto refuse = [&] {
    const std::string message = zip_error_strerror(&error);
    zip_error_fini(&error);
    throw Error(file.path().string(), "a zip archive (.npz)", message, hint);
  };
  zip_source_t* source = zip_source_buffer_create(file.bytes().data(), file.bytes().size(), 0, &error);
  if (!source) refuse();
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
  if (!archive) {
    zip_source_free(source);
    refuse();
  }
  zip_error_fini(&error);
  return Archive(archive);
}

bool starts_with(const MappedFile& file, std::string_view magic) {
  return file.bytes().size() >= magic.size() && std::memcmp(file.bytes().data(), magic.data(), magic.size()) == 0;
}

/// One member, inflated. libzip checks its CRC when the end is reached.
std::vector<std::byte> inflate(const MappedFile& file, std::size_t member, const std::string& where,
                               std::size_t limit) {
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
  if (info.comp_size > file.bytes().size() || info.size / 1032 > info.comp_size)
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
  out.file_ = MappedFile::open(path);
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
    throw Error(where, "every array name once", *twice + " twice");
  return out;
}

bool NpzFile::contains(const std::string& name) const {
  return std::ranges::find(names_, name) != names_.end();
}

NpyArray NpzFile::array(const std::string& name, std::size_t limit) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end())
    throw Error(path().string(), "array " + name, fmt::format("{} arrays, none of that name", names_.size()),
                nearest_names_hint(name, names_));
  const std::string where = path().string() + ": array " + name;
  if (members_.empty()) return parse_npy(file_->bytes(), where);
  const auto place = static_cast<std::size_t>(found - names_.begin());
  return parse_npy(inflate(*file_, members_[place], where, limit), where);
}

}  // namespace headscope
