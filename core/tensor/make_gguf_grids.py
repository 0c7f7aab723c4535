#!/usr/bin/env python3
"""Writes gguf_grid_codes.h beside it: the grids of GGUF's IQ types, from the tables of the gguf package.

    python3 -m pip install gguf clang-format && core/tensor/make_gguf_grids.py
"""
import pathlib
import subprocess

import numpy as np
from gguf import quants

FILE = pathlib.Path(__file__).with_name("gguf_grid_codes.h")
HEAD = """#pragma once
// Grids of GGUF's IQ types, written by make_gguf_grids.py from the tables of the gguf package (llama.cpp's gguf-py, MIT):
// constants of the format, which ggml-common.h calls iq2xxs_grid and so on. A point is four hexadecimal digits, a number
// of 16 bits; of them number j of the point takes the j-th two (of a grid of eight numbers a point) or the j-th four (of
// a grid of four), and they are its place among the grid's values in their order. Private to gguf_grids.cpp.

namespace headscope::stored::codes {
"""


def points(kind):
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape)
    places = np.argmax(grid[..., None] == np.array(kind.grid_map, np.float32), -1)
    assert (np.array(kind.grid_map, np.float32)[places] == grid).all()
    bits = 16 // grid.shape[1]
    return [sum(int(place) << bits * j for j, place in enumerate(point)) for point in places]


def main():
    parts = [HEAD]
    for name in ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"):
        kind = getattr(quants, name)
        digits = "".join(f"{point:04x}" for point in points(kind))
        values = ", ".join(str(value) for value in kind.grid_map)
        lines = "\n".join(f'    "{digits[i : i + 112]}"' for i in range(0, len(digits), 112))
        parts.append(f"/// {kind.grid_shape[0]} points of {kind.grid_shape[1]} numbers: {values}\n"
                     f"inline constexpr char {name.lower()}[] =\n{lines};\n")
    parts.append("}  // namespace headscope::stored::codes\n")
    FILE.write_text("\n".join(parts))
    subprocess.run(["clang-format-16", "-i", FILE], check=True)


if __name__ == "__main__":
    main()
