#pragma once
// What the JSON files of the window begin with: of which kind and version they are.

#include <cstdint>
#include <string>

namespace headscope {

class JsonFields;

/// Reads "type" and "version". Throws Error at `where` unless they are `type` and 1 … `newest`; `what` is what such a
/// file is, "a session".
void expect_kind(JsonFields& fields, const std::string& where, const std::string& what, const std::string& type,
                 std::int64_t newest);

}  // namespace headscope
