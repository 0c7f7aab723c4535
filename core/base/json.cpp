#include "core/base/json.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
HEADSCOPE_JSON_TEMPLATES(, nlohmann::json)
HEADSCOPE_JSON_TEMPLATES(, nlohmann::ordered_json)
