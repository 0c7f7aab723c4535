#pragma once
// GPT-2 writes each byte of a token as one printable character, so that a vocabulary can be a JSON file: printable
// Latin-1 bytes as themselves, the other 68 as U+0100 and up, in order (Radford et al. 2019, encoder.py). Space is "Ġ".

#include <optional>
#include <string>
#include <string_view>

namespace headscope {

/// The character that stands for a byte.
std::string byte_alphabet_symbol(unsigned char byte);

/// The bytes that `spelling` stands for, or nullopt when it holds a character outside the alphabet.
std::optional<std::string> bytes_from_alphabet(std::string_view spelling);

}  // namespace headscope
