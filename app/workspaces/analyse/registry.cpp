// The list of pages. Each is a file of its own; here stands what it is called and where it is made.

#include "app/workspaces/analyse/page.h"
#include "core/base/words.h"

namespace headscope {

std::unique_ptr<Page> make_findings(JobRunner&);
std::unique_ptr<Page> make_head_ablation(JobRunner&);
std::unique_ptr<Page> make_activation_patching(JobRunner&);
std::unique_ptr<Page> make_head_circuit(JobRunner&);
std::unique_ptr<Page> make_temperature_sweep(JobRunner&);
std::unique_ptr<Page> make_singular_values(JobRunner&);
std::unique_ptr<Page> make_self_adaptation(JobRunner&);
std::unique_ptr<Page> make_expert_comparison(JobRunner&);
std::unique_ptr<Page> make_detector(JobRunner&);
std::unique_ptr<Page> make_alignment(JobRunner&);
std::unique_ptr<Page> make_masks(JobRunner&);
std::unique_ptr<Page> make_key_sharing(JobRunner&);
std::unique_ptr<Page> make_linear_layers(JobRunner&);
std::unique_ptr<Page> make_logit_lens(JobRunner&);
std::unique_ptr<Page> make_attribution(JobRunner&);
std::unique_ptr<Page> make_weighted_attention(JobRunner&);
std::unique_ptr<Page> make_circuits(JobRunner&);
std::unique_ptr<Page> make_rollout(JobRunner&);
std::unique_ptr<Page> make_saliency(JobRunner&);
std::unique_ptr<Page> make_composition(JobRunner&);
std::unique_ptr<Page> make_sinks(JobRunner&);
std::unique_ptr<Page> make_massive_activations(JobRunner&);
std::unique_ptr<Page> make_few_bits(JobRunner&);
std::unique_ptr<Page> make_alternatives(JobRunner&);
std::unique_ptr<Page> make_residual_stream(JobRunner&);
std::unique_ptr<Page> make_norms(JobRunner&);
std::unique_ptr<Page> make_feed_forward(JobRunner&);
std::unique_ptr<Page> make_experts(JobRunner&);
std::unique_ptr<Page> make_state(JobRunner&);
std::unique_ptr<Page> make_patches(JobRunner&);
std::unique_ptr<Page> make_token_path(JobRunner&);
std::unique_ptr<Page> make_token_loss(JobRunner&);

const std::vector<PageEntry>& page_registry() {
  static const std::vector<PageEntry> all = {
      {{"scan", to_say("What is here?"), to_say("Begin here"), "",
        to_say("What is most worth telling of this model on this text? Five findings as sentences, each tested by "
               "running the model again."),
        "scan findings summary overview explain in words what is here insight most important head why this answer "
        "report begin start"},
       make_findings},
      {{"ablate", to_say("Head ablation"), to_say("Cause and effect"), "Michel et al. 2019",
        to_say("Which heads does this text need? Every head is taken out in turn, and the prediction is compared with "
               "the whole model's."),
        "knock out remove heads effect atlas zero mean resample importance pruning ablation knockout lesion head "
        "importance"},
       make_head_ablation},
      {{"patch",
        to_say("Activation patching"),
        to_say("Cause and effect"),
        "Meng et al. 2022",
        to_say("Where does the answer come from? The model reads a corrupted prompt; one activation at a time is taken "
               "from a clean one."),
        "causal tracing mediation layer position resid attention MLP z q k v pattern clean corrupted encoder cross "
        "activation patching interchange intervention ROME path patching denoising",
        {Stack::encoder, Stack::cross}},
       make_activation_patching},
      {{"circuit", to_say("Smallest circuit"), to_say("Cause and effect"), "Wang et al. 2023; Hanna et al. 2024",
        to_say("How few heads are enough for the answer? Heads go one by one, each time the one that is missed least."),
        "minimal set of heads faithfulness greedy prune knock out circuit discovery ACDC IOI"},
       make_head_circuit},
      {{"temperature",
        to_say("Temperature sweep"),
        to_say("Cause and effect"),
        "",
        to_say("How sharp does each head have to look? Entropy and loss against the softmax temperature."),
        "tau softmax entropy loss sharpness temperature per head",
        {},
        true},
       make_temperature_sweep},
      {{"singular", to_say("Singular values"), to_say("Cause and effect"), "Sun, Cetin & Tang 2025: Transformer²",
        to_say("Which directions of a weight matrix does the answer need? Its singular values are scaled by a vector z "
               "while the model follows."),
        "learn z self-adaptive adaptation Transformer2 Transformer² SVF SVD singular value fine-tuning z vector expert "
        "spectrum of weights low rank W_Q "
        "W_K W_V W_O MLP"},
       make_singular_values},
      {{"self-adaptation", to_say("Two passes"), to_say("Cause and effect"), "Sun, Cetin & Tang 2025",
        to_say("Can a model tell which task a prompt is of, and adapt itself to it? Experts of singular values for "
               "several tasks, three ways of choosing between them, and what the second pass answers."),
        "Transformer squared self-adaptation two passes expert vector z-vector SVF mixture of expert vectors "
        "interpolation CEM cross-entropy method few-shot adaptation task classifier"},
       make_self_adaptation},
      {{"expert-comparison", to_say("Experts by reward and by LoRA"), to_say("Cause and effect"),
        "Sun, Cetin & Tang 2025; Hu et al. 2022",
        to_say("Do experts of singular values learn from rewards alone, and are two of them together worth more than "
               "two low-rank adapters together?"),
        "REINFORCE reinforcement learning reward policy gradient LoRA low-rank adapter composing experts composition "
        "of adapters merge adapters SVF expert vectors Transformer squared"},
       make_expert_comparison},
      {{"linear-layers",
        to_say("Linear layers"),
        to_say("Cause and effect"),
        "Gu et al. 2025: Jet-Nemotron",
        to_say("Which layers may become linear, and which need full attention? Each is tried alone; then softmax comes "
               "back layer by layer."),
        "Jet-Nemotron PostNAS post neural architecture search hybrid linear layers which layers need attention full "
        "attention placement linearize linearise convert softmax to linear recurrent layers MiniMax 7:1 every k-th "
        "layer subquadratic",
        {},
        true},
       make_linear_layers},
      {{"detector",
        to_say("Detector"),
        to_say("Patterns"),
        "",
        to_say("Which heads look where you say? A rule or painted cells; every head ranked by its attention there, "
               "beside chance."),
        "rule user-defined class paint pattern match rank previous token induction duplicate head classes induction "
        "head previous-token head coreference syntactic rare word detector find heads",
        {Stack::encoder},
        true},
       make_detector},
      {{"alignment",
        to_say("Alignment"),
        to_say("Patterns"),
        "Och & Ney 2003",
        to_say("Which word of the source does each word of a target stand for? The cells of cross-attention that tell "
               "it, and how far they are from what is known."),
        "cross-attention encoder-decoder translation alignment error rate AER source target word word alignment "
        "seq2seq",
        {Stack::encoder, Stack::cross},
        false,
        true},
       make_alignment},
      {{"masks", to_say("Masks"), to_say("Sparse attention"), "",
        to_say("Who may see whom? Masks are chosen, joined by and, or, not, and painted by hand; numbers say what they "
               "save, the model what they cost."),
        "sparse bidirectional full causal padding random MLM prefix-LM sliding window local dilated atrous strided "
        "Sparse Transformer Longformer BigBird Reformer LSH dual chunk document sink StreamingLLM painted causal mask "
        "padding mask attention mask look-ahead mask triangle block sparse attention masked language global tokens "
        "locality-sensitive hashing hash buckets"},
       make_masks},
      {{"sharing",
        to_say("Shared keys and values"),
        to_say("Heads share K, V"),
        "Ainslie et al. 2023; DeepSeek-V2 2024",
        to_say("What would fewer keys and values cost this model, and what would its cache save? Heads are pooled into "
               "groups, or all read from one latent."),
        "MHA MQA GQA MLA latent KV cache size multi-query grouped-query multi-head multi-query attention grouped-query "
        "attention multi-head latent attention shared heads DeepSeek compression",
        {},
        true},
       make_key_sharing},
      {{"lens", to_say("Logit lens"), to_say("Read"), "nostalgebraist 2020",
        to_say("What would the model answer if it stopped here? Every residual stream through what stands behind the "
               "last block: norm and unembedding."),
        "layers trajectory rank entropy follow token residual early exit tuned lens unembed logit lens"},
       make_logit_lens},
      {{"attribution", to_say("Direct logit attribution"), to_say("Read"), "Elhage et al. 2021",
        to_say("Who wrote the answer? A logit taken apart into what every head and every MLP wrote to it."),
        "DLA parts sum head MLP contribution direct logit attribution decomposition"},
       make_attribution},
      {{"weighted",
        to_say("Weighted attention"),
        to_say("Read"),
        "Kobayashi et al. 2020",
        to_say("How much is really moved? Attention beside what it carries: the norm of the value, and of what is "
               "written."),
        "value weighted norm-based output norm sink",
        {},
        true},
       make_weighted_attention},
      {{"circuits",
        to_say("OV and QK circuits"),
        to_say("Read"),
        "Elhage et al. 2021",
        to_say("A head read as two circuits: QK, which token looks at which, and OV, what is then written. Off its "
               "weights, without a text's positions."),
        "copying score eigenvalues full vocabulary token pairs matching OV circuit QK circuit copying heads eigenvalue "
        "head rewritten mathematical framework W_OV W_QK read a head",
        {},
        true},
       make_circuits},
      {{"rollout", to_say("Attention rollout and flow"), to_say("Read"), "Abnar & Zuidema 2020",
        to_say("Where does a position's information come from, through all layers? And how much more than chance."),
        "max-flow causal normalised attention rollout attention flow information flow"},
       make_rollout},
      {{"gradients", to_say("Gradients"), to_say("Read"), "Michel et al. 2019",
        to_say("What does the answer depend on? One backward pass: gradient × input per token, attention × gradient "
               "per weight."),
        "saliency gradient times x input backward pass attention gradient importance gradient × input integrated "
        "gradients saliency map backward"},
       make_saliency},
      {{"composition",
        to_say("Composition of heads"),
        to_say("Read"),
        "Elhage et al. 2021",
        to_say("Which head reads what an earlier one wrote? Weights alone, beside what random matrices score."),
        "Q-composition K-composition V-composition induction circuit Frobenius",
        {},
        true},
       make_composition},
      {{"sinks",
        to_say("Attention sinks"),
        to_say("Read"),
        "Xiao et al. 2023",
        to_say("Where does attention rest when it has nothing to say, and how little does it carry from there?"),
        "first token value norm V shape StreamingLLM attention sink heads BOS register resting no-op softmax off by "
        "one",
        {},
        true},
       make_sinks},
      {{"massive", to_say("Massive activations"), to_say("Read"), "Sun et al. 2024",
        to_say("Which hidden numbers stand out a hundredfold, and does the sink need them?"),
        "residual stream dimension median outlier zero outlier dimensions outlier features massive activations"},
       make_massive_activations},
      {{"few-bits", to_say("Few bits and outliers"), to_say("Read"), "Dettmers et al. 2022",
        to_say("What do 8 or 4 bits cost this model, matrix by matrix, and how much of it is the fault of a few large "
               "numbers?"),
        "quantization quantisation int8 int4 LLM.int8 absmax rounding precision low-bit outlier dimensions outlier "
        "features vector-wise mixed precision weights and activations"},
       make_few_bits},
      {{"alternatives",
        to_say("Same output, other weights"),
        to_say("Read"),
        "Brunner et al. 2020; Jain & Wallace 2019",
        to_say("Could the head have looked elsewhere and written the same? Slide along the weights that give the same "
               "output."),
        "attention is not explanation identifiability null space slider attention is not not explanation adversarial "
        "counterfactual weights",
        {},
        true},
       make_alternatives},
      {{"residual", to_say("Residual stream"), to_say("The block and the whole model"), "Xiong et al. 2020",
        to_say("How long is the vector that runs through the model, what does each part add to it, and what if the "
               "norms stood elsewhere?"),
        "pre-LN post-LN norm placement depth gradient random initialisation block diagram attention MLP cosine"},
       make_residual_stream},
      {{"norms", to_say("Norms"), to_say("The block and the whole model"), "Ba et al. 2016; Zhang & Sennrich 2019",
        to_say(
            "What do LayerNorm, RMSNorm and BatchNorm make of the same numbers? Typed by hand, or those of the model."),
        "layer normalization batch normalization root mean square gain bias mean variance hello machine learning "
        "LayerNorm RMSNorm BatchNorm pre-norm post-norm batch norm layer norm"},
       make_norms},
      {{"ffn", to_say("Feed-forward layer"), to_say("The block and the whole model"), "Geva et al. 2021; Shazeer 2020",
        to_say("Which neurons fire here, and what do they write? The activation functions, and the share of all "
               "parameters."),
        "MLP FFN neurons ReLU GELU SiLU SwiGLU GLU activation parameters share sparsity feed-forward network key-value "
        "memories activation functions dead neurons"},
       make_feed_forward},
      {{"experts", to_say("Experts"), to_say("The block and the whole model"), "Shazeer et al. 2017; Fedus et al. 2022",
        to_say("Which expert took which token, with what weight, and how evenly are the tokens shared out?"),
        "mixture of experts MoE router gate load balance sparse Mixtral OLMoE GPT-OSS routing expert choice top-k "
        "capacity factor dropped tokens Switch MiniMax-01"},
       make_experts},
      {{"state", to_say("State of a layer"), to_say("The block and the whole model"), "Gu & Dao 2023; Dao & Gu 2024",
        to_say("What does each token write into the state, and how much of it does the state forget?"),
        "state space Mamba Mamba-2 gated delta rule selective scan SSM delta step size dt forget keep B C lanes"},
       make_state},
      {{"patches", to_say("Patches and positions"), to_say("The block and the whole model"), "Dosovitskiy et al. 2021",
        to_say("How does a picture become tokens, and what do learned positions know of its grid?"),
        "ViT vision transformer image patch embedding position similarity grid cosine 16x16 CLS"},
       make_patches},
      {{"path", to_say("The path of a token"), to_say("The block and the whole model"), "Vaswani et al. 2017",
        to_say("From token id to probabilities: every stage of one position, with its shape and its numbers."),
        "embedding unembedding logits softmax weight tying tied shapes whole model forward pass token path LM head "
        "language model head"},
       make_token_path},
      {{"loss", to_say("Loss per token"), to_say("The block and the whole model"), "",
        to_say(
            "How surprised is the model by each token? Cross-entropy and perplexity as they add up, beside baselines."),
        "cross-entropy perplexity negative log likelihood nats bits uniform unigram baselines causal mask predictions "
        "loss surprise surprisal"},
       make_token_loss},
  };
  return all;
}

}  // namespace headscope
