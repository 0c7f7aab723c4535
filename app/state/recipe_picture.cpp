#include "app/state/recipe_picture.h"

#include "app/state/jobs.h"

namespace headscope {

namespace fs = std::filesystem;

RunRequest request_of(const PictureRecipe& recipe) {
  RunRequest request = request_of(recipe.session->document);
  request.capture.all_logits = false;
  if (shows_scores(recipe.session->view) && !recipe.all_heads) request.capture.maps = MapStorage::factored;
  return request;
}

std::string draw_recipe(const PictureRecipe& recipe, const LoadedModel& model,
                        const std::shared_ptr<const Trace>& whole, const fs::path& out, const PictureNote& note) {
  const Document& document = recipe.session->document;
  const View& view = recipe.session->view;
  const auto trace = jobs::part_of(whole, document.stack);
  ViewSource source{.trace = trace, .document = document, .view = view, .all_heads = recipe.all_heads};
  source.whole = whole, source.target = model.target;
  source.rotary = model.model->config().turns_halves();
  if (shows_words(view, recipe.all_heads) && !trace->between_texts()) source.words = word_groups(trace->tokens);
  return export_view(source, {out, recipe.dpi, recipe.for_print, recipe.all_heads, note});
}

std::string draw_film(const PictureRecipe& recipe, const LoadedModel& model, const fs::path& out, bool with_recipe,
                      const Ctx& ctx) {
  const std::size_t count = recipe.film->values.size();
  const auto draw = [&](std::size_t i, const fs::path& file) {
    if (ctx.progress) *ctx.progress = static_cast<float>(i) / static_cast<float>(count);
    const PictureRecipe picture = picture_of_film(recipe, i);
    const auto whole = run(model, request_of(picture), {ctx.backend, nullptr, ctx.stop, nullptr});
    draw_recipe(picture, model, whole, file, {picture.session->model_note, with_recipe ? to_json(picture) : ""});
  };
  return make_film(
      {out, recipe.film->seconds, recipe.film->back}, count, draw,
      [&](const fs::path&) { return with_recipe ? to_json(recipe) : ""; }, ctx.stop);
}

}  // namespace headscope
