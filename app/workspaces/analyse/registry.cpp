// The list of pages. Each is a file of its own; here stands what it is called and where it is made.

#include "app/workspaces/analyse/page.h"

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
      {{"scan", "What is here?", "Begin here", "",
        "What is most worth telling of this model on this text? Five findings as sentences, each tested by running the "
        "model again.",
        "scan findings summary overview explain in words what is here insight most important head why this answer "
        "report begin start"},
       make_findings},
      {{"ablate", "Head ablation", "Cause and effect", "Michel et al. 2019",
        "Which heads does this text need? Every head is taken out in turn, and the prediction is compared with the "
        "whole model's.",
        "knock out remove heads effect atlas zero mean resample importance pruning ablation knockout lesion head "
        "importance"},
       make_head_ablation},
      {{"patch",
        "Activation patching",
        "Cause and effect",
        "Meng et al. 2022",
        "Where does the answer come from? The model reads a corrupted prompt; one activation at a time is taken from a "
        "clean one.",
        "causal tracing mediation layer position resid attention MLP z q k v pattern clean corrupted encoder cross "
        "activation patching interchange intervention ROME path patching denoising",
        {Stack::encoder, Stack::cross}},
       make_activation_patching},
      {{"circuit", "Smallest circuit", "Cause and effect", "Wang et al. 2023; Hanna et al. 2024",
        "How few heads are enough for the answer? Heads go one by one, each time the one that is missed least.",
        "minimal set of heads faithfulness greedy prune knock out circuit discovery ACDC IOI"},
       make_head_circuit},
      {{"temperature",
        "Temperature sweep",
        "Cause and effect",
        "",
        "How sharp does each head have to look? Entropy and loss against the softmax temperature.",
        "tau softmax entropy loss sharpness temperature per head",
        {},
        true},
       make_temperature_sweep},
      {{"singular", "Singular values", "Cause and effect", "Sun, Cetin & Tang 2025: Transformer²",
        "Which directions of a weight matrix does the answer need? Its singular values are scaled by a vector z while "
        "the model follows.",
        "learn z self-adaptive adaptation Transformer2 Transformer² SVF SVD singular value fine-tuning z vector expert "
        "spectrum of weights low rank W_Q "
        "W_K W_V W_O MLP"},
       make_singular_values},
      {{"self-adaptation", "Two passes", "Cause and effect", "Sun, Cetin & Tang 2025",
        "Can a model tell which task a prompt is of, and adapt itself to it? Experts of singular values for several "
        "tasks, three ways of choosing between them, and what the second pass answers.",
        "Transformer squared self-adaptation two passes expert vector z-vector SVF mixture of expert vectors "
        "interpolation CEM cross-entropy method few-shot adaptation task classifier"},
       make_self_adaptation},
      {{"expert-comparison", "Experts by reward and by LoRA", "Cause and effect",
        "Sun, Cetin & Tang 2025; Hu et al. 2022",
        "Do experts of singular values learn from rewards alone, and are two of them together worth more than two "
        "low-rank adapters together?",
        "REINFORCE reinforcement learning reward policy gradient LoRA low-rank adapter composing experts composition "
        "of adapters merge adapters SVF expert vectors Transformer squared"},
       make_expert_comparison},
      {{"linear-layers",
        "Linear layers",
        "Cause and effect",
        "Gu et al. 2025: Jet-Nemotron",
        "Which layers may become linear, and which need full attention? Each is tried alone; then softmax comes back "
        "layer by layer.",
        "Jet-Nemotron PostNAS post neural architecture search hybrid linear layers which layers need attention full "
        "attention placement linearize linearise convert softmax to linear recurrent layers MiniMax 7:1 every k-th "
        "layer subquadratic",
        {},
        true},
       make_linear_layers},
      {{"detector",
        "Detector",
        "Patterns",
        "",
        "Which heads look where you say? A rule or painted cells; every head ranked by its attention there, beside "
        "chance.",
        "rule user-defined class paint pattern match rank previous token induction duplicate head classes induction "
        "head previous-token head coreference syntactic rare word detector find heads",
        {Stack::encoder},
        true},
       make_detector},
      {{"alignment",
        "Alignment",
        "Patterns",
        "Och & Ney 2003",
        "Which word of the source does each word of a target stand for? The cells of cross-attention that tell it, and "
        "how far they are from what is known.",
        "cross-attention encoder-decoder translation alignment error rate AER source target word word alignment "
        "seq2seq",
        {Stack::encoder, Stack::cross}},
       make_alignment},
      {{"masks", "Masks", "Sparse attention", "",
        "Who may see whom? Masks are chosen, joined by and, or, not, and painted by hand; numbers say what they save, "
        "the model what they cost.",
        "sparse bidirectional full causal padding random MLM prefix-LM sliding window local dilated atrous strided "
        "Sparse Transformer Longformer BigBird Reformer LSH dual chunk document sink StreamingLLM painted causal mask "
        "padding mask attention mask look-ahead mask triangle block sparse attention masked language global tokens "
        "locality-sensitive hashing hash buckets"},
       make_masks},
      {{"sharing",
        "Shared keys and values",
        "Heads share K, V",
        "Ainslie et al. 2023; DeepSeek-V2 2024",
        "What would fewer keys and values cost this model, and what would its cache save? Heads are pooled into "
        "groups, or all read from one latent.",
        "MHA MQA GQA MLA latent KV cache size multi-query grouped-query multi-head multi-query attention grouped-query "
        "attention multi-head latent attention shared heads DeepSeek compression",
        {},
        true},
       make_key_sharing},
      {{"lens", "Logit lens", "Read", "nostalgebraist 2020",
        "What would the model answer if it stopped here? Every residual stream through what stands behind the last "
        "block: norm and unembedding.",
        "layers trajectory rank entropy follow token residual early exit tuned lens unembed logit lens"},
       make_logit_lens},
      {{"attribution", "Direct logit attribution", "Read", "Elhage et al. 2021",
        "Who wrote the answer? A logit taken apart into what every head and every MLP wrote to it.",
        "DLA parts sum head MLP contribution direct logit attribution decomposition"},
       make_attribution},
      {{"weighted",
        "Weighted attention",
        "Read",
        "Kobayashi et al. 2020",
        "How much is really moved? Attention beside what it carries: the norm of the value, and of what is written.",
        "value weighted norm-based output norm sink",
        {},
        true},
       make_weighted_attention},
      {{"circuits",
        "OV and QK circuits",
        "Read",
        "Elhage et al. 2021",
        "A head read as two circuits: QK, which token looks at which, and OV, what is then written. Off its weights, "
        "without a text's positions.",
        "copying score eigenvalues full vocabulary token pairs matching OV circuit QK circuit copying heads eigenvalue "
        "head rewritten mathematical framework W_OV W_QK read a head",
        {},
        true},
       make_circuits},
      {{"rollout", "Attention rollout and flow", "Read", "Abnar & Zuidema 2020",
        "Where does a position's information come from, through all layers? And how much more than chance.",
        "max-flow causal normalised attention rollout attention flow information flow"},
       make_rollout},
      {{"gradients", "Gradients", "Read", "Michel et al. 2019",
        "What does the answer depend on? One backward pass: gradient × input per token, attention × gradient per "
        "weight.",
        "saliency gradient times x input backward pass attention gradient importance gradient × input integrated "
        "gradients saliency map backward"},
       make_saliency},
      {{"composition",
        "Composition of heads",
        "Read",
        "Elhage et al. 2021",
        "Which head reads what an earlier one wrote? Weights alone, beside what random matrices score.",
        "Q-composition K-composition V-composition induction circuit Frobenius",
        {},
        true},
       make_composition},
      {{"sinks",
        "Attention sinks",
        "Read",
        "Xiao et al. 2023",
        "Where does attention rest when it has nothing to say, and how little does it carry from there?",
        "first token value norm V shape StreamingLLM attention sink heads BOS register resting no-op softmax off by "
        "one",
        {},
        true},
       make_sinks},
      {{"massive", "Massive activations", "Read", "Sun et al. 2024",
        "Which hidden numbers stand out a hundredfold, and does the sink need them?",
        "residual stream dimension median outlier zero outlier dimensions outlier features massive activations"},
       make_massive_activations},
      {{"few-bits", "Few bits and outliers", "Read", "Dettmers et al. 2022",
        "What do 8 or 4 bits cost this model, matrix by matrix, and how much of it is the fault of a few large "
        "numbers?",
        "quantization quantisation int8 int4 LLM.int8 absmax rounding precision low-bit outlier dimensions outlier "
        "features vector-wise mixed precision weights and activations"},
       make_few_bits},
      {{"alternatives",
        "Same output, other weights",
        "Read",
        "Brunner et al. 2020; Jain & Wallace 2019",
        "Could the head have looked elsewhere and written the same? Slide along the weights that give the same output.",
        "attention is not explanation identifiability null space slider attention is not not explanation adversarial "
        "counterfactual weights",
        {},
        true},
       make_alternatives},
      {{"residual", "Residual stream", "The block and the whole model", "Xiong et al. 2020",
        "How long is the vector that runs through the model, what does each part add to it, and what if the norms "
        "stood elsewhere?",
        "pre-LN post-LN norm placement depth gradient random initialisation block diagram attention MLP cosine"},
       make_residual_stream},
      {{"norms", "Norms", "The block and the whole model", "Ba et al. 2016; Zhang & Sennrich 2019",
        "What do LayerNorm, RMSNorm and BatchNorm make of the same numbers? Typed by hand, or those of the model.",
        "layer normalization batch normalization root mean square gain bias mean variance hello machine learning "
        "LayerNorm RMSNorm BatchNorm pre-norm post-norm batch norm layer norm"},
       make_norms},
      {{"ffn", "Feed-forward layer", "The block and the whole model", "Geva et al. 2021; Shazeer 2020",
        "Which neurons fire here, and what do they write? The activation functions, and the share of all parameters.",
        "MLP FFN neurons ReLU GELU SiLU SwiGLU GLU activation parameters share sparsity feed-forward network key-value "
        "memories activation functions dead neurons"},
       make_feed_forward},
      {{"experts", "Experts", "The block and the whole model", "Shazeer et al. 2017; Fedus et al. 2022",
        "Which expert took which token, with what weight, and how evenly are the tokens shared out?",
        "mixture of experts MoE router gate load balance sparse Mixtral OLMoE GPT-OSS routing expert choice top-k "
        "capacity factor dropped tokens Switch MiniMax-01"},
       make_experts},
      {{"state", "State of a state space", "The block and the whole model", "Gu & Dao 2023; Dao & Gu 2024",
        "What does each token write into the state, and how much of it does the state forget?",
        "Mamba Mamba-2 selective scan SSM delta step size dt forget keep B C lanes"},
       make_state},
      {{"patches", "Patches and positions", "The block and the whole model", "Dosovitskiy et al. 2021",
        "How does a picture become tokens, and what do learned positions know of its grid?",
        "ViT vision transformer image patch embedding position similarity grid cosine 16x16 CLS"},
       make_patches},
      {{"path", "The path of a token", "The block and the whole model", "Vaswani et al. 2017",
        "From token id to probabilities: every stage of one position, with its shape and its numbers.",
        "embedding unembedding logits softmax weight tying tied shapes whole model forward pass token path LM head "
        "language model head"},
       make_token_path},
      {{"loss", "Loss per token", "The block and the whole model", "",
        "How surprised is the model by each token? Cross-entropy and perplexity as they add up, beside baselines.",
        "cross-entropy perplexity negative log likelihood nats bits uniform unigram baselines causal mask predictions "
        "loss surprise surprisal"},
       make_token_loss},
  };
  return all;
}

}  // namespace headscope
