#include "app/state/file_kind.h"

#include <fmt/format.h>

#include <limits>

#include "core/base/error.h"
#include "core/io/json_view.h"

namespace headscope {

void expect_kind(JsonFields& fields, const std::string& where, const std::string& what, const std::string& type,
                 std::int64_t newest) {
  std::string found;
  std::int64_t version = 0;
  fields.read("type", found);
  if (found != type)
    throw Error(where, fmt::format("{}, \"type\": \"{}\"", what, type),
                found.empty() ? "no type" : "\"" + found + "\"");
  fields.read("version", version, 0, std::numeric_limits<std::int32_t>::max());
  if (version < 1 || version > newest)
    throw Error(where, fmt::format("{} of version {} or older", what, newest), fmt::format("version {}", version),
                version > newest ? "a newer Headscope wrote it; use that one" : "");
}

}  // namespace headscope
