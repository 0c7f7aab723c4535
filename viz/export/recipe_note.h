#pragma once
// How a picture came about, kept where its file can hold it: a compressed iTXt chunk of a PNG, <metadata> of an SVG,
// an entry of a PDF's information dictionary, an application extension of a GIF; a CSV, which has no place for it, gets
// a companion NAME.csv-metadata.json, where CSV on the Web (W3C, Model for Tabular Data and Metadata on the Web, 2015,
// section 5.3) has readers look. What a recipe says is none of this file's business: app/state/picture_recipe.h.

#include <filesystem>
#include <string>
#include <string_view>

#include "viz/scene/scene.h"

namespace headscope {

/// The recipe in the bytes of a PNG, an animated one too, an SVG, a PDF or a GIF; "" = there is none, or this is no
/// such file. Throws Error at `where` on a broken PNG.
std::string recipe_in_png(std::string_view bytes, const std::string& where);
std::string recipe_in_svg(std::string_view text);
std::string recipe_in_pdf(std::string_view bytes);
std::string recipe_in_gif(std::string_view bytes);
/// A GIF without it.
std::string gif_without_recipe(std::string_view bytes);

std::filesystem::path csv_metadata_path(const std::filesystem::path& csv);
/// Writes the companion of a CSV with a scene's title, description and recipe; without a recipe none, and an old one
/// goes, which told of other numbers. One that another program wrote stays as it is. Throws Error (file system).
void write_csv_metadata(const std::filesystem::path& csv, const Scene& note);

/// The recipe that a .png, .svg, .pdf, .gif, .apng or .csv has with it; "" = none. Throws Error on a file that cannot
/// be read.
std::string read_recipe(const std::filesystem::path& file);

}  // namespace headscope
