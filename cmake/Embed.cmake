# Writes IN's text as a C++ raw string into OUT (see headscope_embed). Text only: no ")embed" inside, under 64 KB.
file(READ ${IN} text)
file(WRITE ${OUT} "#include <string_view>\nnamespace headscope {\nextern const std::string_view ${SYMBOL};\nconst std::string_view ${SYMBOL} = R\"embed(${text})embed\";\n}\n")
