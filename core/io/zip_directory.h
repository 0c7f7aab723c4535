#pragma once
// Where the members of a zip archive lie in it (APPNOTE.TXT, with Zip64), for archives whose members are stored as they
// are: then they are read in place, like the tensors of any other format. PyTorch writes its files so.

#include <cstdint>
#include <map>
#include <string>

#include "core/base/file.h"

namespace headscope {

struct ZipMember {
  std::uint64_t offset = 0, size = 0;  ///< its bytes in the archive
};

/// By name. Throws Error naming file and member when the directory is cut short or lies: members outside the file,
/// over one another or over the directory, twice of one name, compressed or encrypted.
std::map<std::string, ZipMember> stored_members(const InputFile& archive);

}  // namespace headscope
