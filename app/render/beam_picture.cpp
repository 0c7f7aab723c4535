#include "app/render/beam_picture.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/words.h"

namespace headscope {

BeamTreeOptions beam_tree_options(const BeamTree& tree, const Tokenizer* tokenizer) {
  const auto label = [&](std::int32_t id) {
    return tokenizer && id < tokenizer->vocab_size() ? tokenizer->token(id).label : fmt::format("#{}", id);
  };
  BeamTreeOptions out;
  if (!tree.prompt.empty()) out.prompt = label(tree.prompt.back());
  for (const BeamNode& node : tree.nodes)
    out.nodes.push_back({node.parent, node.step, label(node.token), std::exp(node.log_probability), node.sum,
                         node.fate == BeamNode::Fate::kept       ? BeamTreeNode::Fate::kept
                         : node.fate == BeamNode::Fate::finished ? BeamTreeNode::Fate::finished
                                                                 : BeamTreeNode::Fate::dropped});
  for (std::size_t place = 0; place < tree.beams.size(); ++place) {
    BeamTreeNode& node = out.nodes[tree.beams[place].node];
    node.place = place;
    node.score = tree.beams[place].score;
  }
  return out;
}

std::string words_of(const BeamSettings& settings) {
  return say("{} {}, at most {} {}, score Σ ln p / tokens^{:g}", settings.width,
             settings.width == 1 ? said("beam") : said("beams"), settings.tokens,
             settings.tokens == 1 ? said("token") : said("tokens"), settings.length_penalty);
}

}  // namespace headscope
