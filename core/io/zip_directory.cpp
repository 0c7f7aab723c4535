#include "core/io/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/io/data_spans.h"

namespace headscope {

namespace {

constexpr std::uint64_t largest_directory = std::uint64_t{64} << 20;
constexpr std::size_t end_record = 22, locator = 20, end_record64 = 56, entry_record = 46, local_record = 30;
constexpr std::uint32_t in_zip64 = 0xffffffff;

/// A little-endian number of `bytes`; the caller has made sure that it is there.
template <class T>
T number(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Directory {
  std::uint64_t offset = 0, size = 0;
};

class DirectoryReader {
 public:
  explicit DirectoryReader(const InputFile& file) : file_(file), where_(file.path().string()) {}

  std::map<std::string, ZipMember> members() {
    directory_ = find_directory();
    if (directory_.size > file_.size() || directory_.offset > file_.size() - directory_.size)
      fail("a directory inside the file", fmt::format("{} bytes at {}", directory_.size, directory_.offset));
    if (directory_.size > largest_directory)
      fail(fmt::format("a directory of at most {} bytes", largest_directory), fmt::format("{}", directory_.size));
    const std::string bytes = file_.text(directory_.offset, directory_.size);
    std::map<std::string, ZipMember> found;
    for (std::size_t at = 0; at < bytes.size();) at = read_entry(bytes, at, found);
    std::vector<DataSpan> spans;
    for (const auto& [name, member] : found) spans.push_back({member.offset, member.offset + member.size, &name});
    sort_apart(spans, where_, "member");
    return found;
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    throw Error(where_, expected, found, "the file may be cut short or damaged; fetch it again");
  }

  /// The end record is the last thing in the file but for a comment.
  Directory find_directory() const {
    const auto reach = static_cast<std::size_t>(std::min<std::uint64_t>(file_.size(), end_record + 0xffff));
    const std::string tail = file_.text(file_.size() - reach, reach);
    for (std::size_t at = reach < end_record ? 0 : reach - end_record + 1; at-- > 0;) {
      if (std::string_view(tail).substr(at, 4) != "PK\5\6") continue;
      if (at + end_record + number<std::uint16_t>(tail, at + 20) != reach) continue;
      const Directory small{number<std::uint32_t>(tail, at + 16), number<std::uint32_t>(tail, at + 12)};
      const std::uint64_t end = file_.size() - reach + at;
      if (const auto large = find_directory64(end)) return *large;
      return small;
    }
    fail("a zip archive with a directory at its end", "none");
  }

  std::optional<Directory> find_directory64(std::uint64_t end) const {
    if (end < locator) return std::nullopt;
    const std::string pointer = file_.text(end - locator, locator);
    if (!pointer.starts_with("PK\6\7")) return std::nullopt;
    const auto at = number<std::uint64_t>(pointer, 8);
    if (at > file_.size() || file_.size() - at < end_record64)
      fail("a Zip64 end record inside the file", fmt::format("its place at {}", at));
    const std::string record = file_.text(at, end_record64);
    if (!record.starts_with("PK\6\6")) fail("a Zip64 end record", "something else");
    return Directory{number<std::uint64_t>(record, 48), number<std::uint64_t>(record, 40)};
  }

  /// Returns the place of the next one.
  std::size_t read_entry(const std::string& bytes, std::size_t at, std::map<std::string, ZipMember>& found) const {
    if (bytes.size() - at < entry_record || std::string_view(bytes).substr(at, 4) != std::string_view("PK\1\2", 4))
      fail("an entry of the directory", fmt::format("something else at its byte {}", at));
    const std::size_t name_size = number<std::uint16_t>(bytes, at + 28), extra = number<std::uint16_t>(bytes, at + 30),
                      comment = number<std::uint16_t>(bytes, at + 32);
    const std::size_t next = at + entry_record + name_size + extra + comment;
    if (next > bytes.size()) fail("an entry inside the directory", fmt::format("one that reaches to byte {}", next));
    const std::string name = bytes.substr(at + entry_record, name_size);
    const std::string who = fmt::format("{}: member {}", where_, excerpt(name));
    const auto method = number<std::uint16_t>(bytes, at + 10);
    if (number<std::uint16_t>(bytes, at + 8) & 1) throw Error(who, "a member without a password", "an encrypted one");
    if (method != 0)
      throw Error(who, "a member that is stored as it is", fmt::format("compression method {}", method),
                  "torch.save compresses nothing; unpack the archive and save the tensors anew");
    std::uint64_t stored = number<std::uint32_t>(bytes, at + 20), size = number<std::uint32_t>(bytes, at + 24),
                  header = number<std::uint32_t>(bytes, at + 42);
    read_zip64(std::string_view(bytes).substr(at + entry_record + name_size, extra), who, {&size, &stored, &header});
    if (stored != size)
      throw Error(who, fmt::format("{} bytes, as a stored member has", size), fmt::format("{}", stored));
    if (header > file_.size() || file_.size() - header < local_record)
      throw Error(who, fmt::format("a header inside the file of {} bytes", file_.size()),
                  fmt::format("its place at {}", header));
    const std::string local = file_.text(header, local_record);
    if (!local.starts_with(std::string_view("PK\3\4", 4))) throw Error(who, "a member's header", "something else");
    const std::uint64_t begin =
        header + local_record + number<std::uint16_t>(local, 26) + number<std::uint16_t>(local, 28);
    if (begin > directory_.offset || size > directory_.offset - begin)
      throw Error(who, fmt::format("data in front of the directory at {}", directory_.offset),
                  fmt::format("{} bytes at {}", size, begin), "the file may be cut short or damaged; fetch it again");
    if (!found.emplace(name, ZipMember{begin, size}).second) throw Error(who, "every name once", "this one twice");
    return next;
  }

  /// Numbers that do not fit 32 bits lie in the extra field of kind 1, in this order, each only where it is needed.
  void read_zip64(std::string_view extra, const std::string& who, std::initializer_list<std::uint64_t*> numbers) const {
    while (extra.size() >= 4) {
      const std::size_t kind = number<std::uint16_t>(extra, 0), size = number<std::uint16_t>(extra, 2);
      if (size > extra.size() - 4) break;
      std::string_view field = extra.substr(4, size);
      extra.remove_prefix(4 + size);
      if (kind != 1) continue;
      for (std::uint64_t* each : numbers) {
        if (*each != in_zip64 || field.size() < 8) continue;
        *each = number<std::uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return;
    }
    for (const std::uint64_t* each : numbers)
      if (*each == in_zip64) throw Error(who, "sizes of 64 bits beside those that do not fit 32", "none");
  }

  const InputFile& file_;
  std::string where_;
  Directory directory_;
};

}  // namespace

std::map<std::string, ZipMember> stored_members(const InputFile& archive) {
  return DirectoryReader(archive).members();
}

}  // namespace headscope
