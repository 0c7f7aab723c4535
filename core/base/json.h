#pragma once
// nlohmann/json, its templates compiled once (json.cpp) instead of in each of the many files that read or write it.

#include <nlohmann/json.hpp>
#include <string>

/// What is compiled once of a kind of document: itself, its printer, and its parser of a string and of a view.
#define HEADSCOPE_JSON_TEMPLATES(EXTERN, DOCUMENT)                     \
  EXTERN template class nlohmann::detail::serializer<DOCUMENT>;        \
  HEADSCOPE_JSON_PARSER(EXTERN, DOCUMENT, std::string::const_iterator) \
  HEADSCOPE_JSON_PARSER(EXTERN, DOCUMENT, const char*)
#define HEADSCOPE_JSON_PARSER(EXTERN, DOCUMENT, ITERATOR)                                                      \
  EXTERN template class nlohmann::detail::lexer<DOCUMENT, nlohmann::detail::iterator_input_adapter<ITERATOR>>; \
  EXTERN template class nlohmann::detail::parser<DOCUMENT, nlohmann::detail::iterator_input_adapter<ITERATOR>>;

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
HEADSCOPE_JSON_TEMPLATES(extern, nlohmann::json)
HEADSCOPE_JSON_TEMPLATES(extern, nlohmann::ordered_json)
