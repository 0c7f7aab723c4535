"""Of make_families.py: decoders that were made after those of decoder_cases.py, and what their files call tensors and keys."""

import sys

import torch
from decoder_cases import latent, llama_like, rope, usual

experts = dict(num_experts=5, num_experts_per_tok=2)
granite = dict(sliding_window=4, embedding_multiplier=3.0, logits_scaling=0.7, residual_multiplier=0.4,
               attention_multiplier=0.3)
dbrx = dict(vocab_size=43, d_model=24, n_heads=4, n_layers=2, max_seq_len=40, bos_token_id=1, eos_token_id=2)

sparse = dict(n_routed_experts=6, num_experts_per_tok=3, moe_intermediate_size=10, pad_token_id=0)
growing_yarn = dict(rope_type="yarn", rope_theta=100.0, factor=4.0, beta_fast=2.0, beta_slow=0.3, mscale=0.7,
                    mscale_all_dim=0.9)
lightning = dict(block_size=5, intermediate_size=10, num_local_experts=5, num_experts_per_tok=2, full_attn_alpha_factor=1.7,
                 full_attn_beta_factor=0.8, linear_attn_alpha_factor=0.6, linear_attn_beta_factor=1.2,
                 mlp_alpha_factor=1.3, mlp_beta_factor=0.7)

MORE_DECODERS = {
    "gpt_neox_japanese": ("GPTNeoXJapaneseConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, intermediate_multiple_size=2, layer_norm_eps=0.01, hidden_act="relu",
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    # Queries, keys and values cut off, and weights of experts as they are.
    "dbrx": ("DbrxConfig", dbrx | rope() | dict(
        attn_config=dict(kv_n_heads=2, clip_qkv=0.8, rope_theta=100.0),
        ffn_config=dict(ffn_hidden_size=10, moe_num_experts=5, moe_top_k=3))),
    "dbrx-bare": ("DbrxConfig", dbrx | rope(60.0) | dict(
        n_heads=3, attn_config=dict(kv_n_heads=1, clip_qkv=1.4, rope_theta=60.0), ffn_config=dict(
            ffn_hidden_size=9, moe_num_experts=4, moe_top_k=2, moe_normalize_expert_weights=None,
            ffn_act_fn=dict(name="gelu")))),
    "iquestcoder": ("IQuestCoderConfig", llama_like | rope() | dict(
        num_hidden_layers=3, head_dim=8, attention_bias=True, mlp_bias=True, rms_norm_eps=0.01)),
    # Layers 1 to 3 have a window; every layer a base of its own, or none.
    "granite_swa": ("GraniteSWAConfig", llama_like | rope() | granite | dict(
        num_hidden_layers=4, layer_rope_theta=[100.0, 0, 60, 30.0], attention_bias=True, mlp_bias=True)),
    "granite_swa-plain": ("GraniteSWAConfig", llama_like | rope(70.0) | granite | dict(
        layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=False)),
    "granitemoe_swa": ("GraniteMoeSWAConfig", llama_like | rope() | granite | dict(
        num_local_experts=5, num_experts_per_tok=3, shared_intermediate_size=7, layer_rope_theta=[0, 90.0],
        layer_types=["full_attention", "sliding_attention"])),
    "mellum": ("MellumConfig", llama_like | experts | dict(
        num_hidden_layers=3, head_dim=8, num_attention_heads=6, num_key_value_heads=2, moe_intermediate_size=10,
        sliding_window=4, attention_bias=True, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        mlp_layer_types=["sparse", "dense", "sparse"], rope_parameters=dict(
            full_attention=dict(rope_type="yarn", rope_theta=300.0, factor=4.0, original_max_position_embeddings=10),
            sliding_attention=dict(rope_type="default", rope_theta=50.0)))),
    # As its makers call tensors, and as the library does.
    "hy_v3": ("HYV3Config", llama_like | rope() | experts | dict(
        num_hidden_layers=3, head_dim=8, moe_intermediate_size=10, num_shared_experts=2, router_scaling_factor=1.7)),
    "hy_v3-biased": ("HYV3Config", llama_like | rope(60.0) | experts | dict(
        head_dim=6, moe_intermediate_size=9, num_experts_per_tok=3, attention_bias=True, mlp_bias=True,
        mlp_layer_types=["sparse", "dense"])),
    # The first layer rotates without a window.
    "cohere2_moe": ("Cohere2MoeConfig", llama_like | experts | dict(
        num_hidden_layers=4, head_dim=8, num_attention_heads=6, num_key_value_heads=2, intermediate_size=10,
        prefix_dense_intermediate_size=21, sliding_window=4, num_shared_experts=2, logit_scale=0.3, rope_theta=100.0,
        pad_token_id=0, attention_bias=True, mlp_layer_types=["dense", "sparse", "sparse", "sparse"],
        layer_types=["full_attention", "sliding_attention", "full_attention", "sliding_attention"])),
    # RMSNorms, sigmoids, an added expert; the first layer is not rotated.
    "cohere2_moe-sum": ("Cohere2MoeConfig", llama_like | experts | dict(
        num_hidden_layers=3, head_dim=6, intermediate_size=10, sliding_window=5, num_shared_experts=1, rms_norm_eps=0.01,
        shared_expert_combination_strategy="sum", expert_selection_fn="sigmoid", prefix_dense_sliding_window_pattern=2,
        rope_theta=60.0, pad_token_id=0, tie_word_embeddings=False, mlp_layer_types=["dense", "sparse", "sparse"],
        layer_types=["full_attention", "sliding_attention", "full_attention"])),
    # Queries that grow, whole; two groups of experts of three. The second turns halves and does not grow.
    "mistral4": ("Mistral4Config", latent | sparse | dict(
        moe_intermediate_size=5,
        num_hidden_layers=3, n_group=3, topk_group=2, first_k_dense_replace=1, routed_scaling_factor=1.3,
        rope_parameters=growing_yarn | dict(llama_4_scaling_beta=0.9, original_max_position_embeddings=4))),
    "mistral4-halves": ("Mistral4Config", latent | sparse | dict(
        moe_intermediate_size=8,
        q_lora_rank=None, attention_bias=True, rope_interleave=False, norm_topk_prob=False, n_shared_experts=2,
        rope_parameters=growing_yarn | dict(llama_4_scaling_beta=0.0, original_max_position_embeddings=10))),
    # Layers of linear attention, first and last; the stream and what is added to it times numbers of their own.
    "minimax": ("MiniMaxConfig", llama_like | rope() | lightning | dict(
        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=6,
        layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention"])),
    # Decays that the file says, in another order of layers: every second one.
    "minimax-slopes": ("MiniMaxConfig", llama_like | rope(60.0) | dict(
        block_size=4, num_hidden_layers=3, head_dim=8, intermediate_size=11, num_local_experts=4, num_experts_per_tok=3, hidden_act="gelu",
        linear_attn_alpha_factor=2.5, mlp_beta_factor=1.4, tie_word_embeddings=True, rms_norm_eps=0.01)),
    "bitnet": ("BitNetConfig", usual | rope() | dict(
        hidden_size=24, num_attention_heads=4, num_key_value_heads=2, intermediate_size=22, rms_norm_eps=0.01,
        attention_bias=True, tie_word_embeddings=True)),
    "sarvam_mla": ("SarvamMLAConfig", latent | rope() | dict(
        q_lora_rank=None, num_hidden_layers=3, n_routed_experts=6, num_experts_per_tok=3, moe_intermediate_size=10,
        n_group=3, topk_group=2, pad_token_id=0)),
    # As its makers call keys.
    "sarvam_mla-older": ("SarvamMLAConfig", latent | dict(
        q_lora_rank=None, n_routed_experts=5, num_experts_per_tok=2, moe_intermediate_size=9, n_shared_experts=2,
        routed_scaling_factor=1.3, pad_token_id=0, rope_parameters=dict(
            rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=10, beta_fast=2.0,
            beta_slow=0.3, mscale=1.0, mscale_all_dim=0.8))),
}


def with_sinks(model):
    """What the library calls attention leaves out the share that a learned sink takes; here it is counted, as where a softmax
    has it."""
    module = sys.modules[type(model).__module__]
    own = module.eager_attention_forward

    def counted(of, query, key, value, mask, scaling, **rest):
        output, weights = own(of, query, key, value, mask, scaling, **rest)
        scores = query @ module.repeat_kv(key, of.num_key_value_groups).transpose(2, 3) * scaling + mask
        share = (torch.logsumexp(scores, dim=-1) - of.sinks.view(1, -1, 1)).sigmoid()
        return output, weights * share.unsqueeze(-1)

    module.eager_attention_forward = counted


def called(name, key):
    """What the published files of these families call a tensor."""
    if name.startswith("minimax"):
        return key.replace(".mlp.gate.", ".block_sparse_moe.gate.")
    if name == "hy_v3":
        for today, then in (("mlp.gate.", "mlp.router.gate."), ("mlp.e_score_correction_bias", "mlp.expert_bias"),
                            ("mlp.shared_experts.", "mlp.shared_mlp.")):
            key = key.replace(today, then)
    return key


def as_said(name, config):
    """config.json as the makers of the family write it, where that is another than the library's."""
    if name == "sarvam_mla-older":
        yarn = {key: value for key, value in config.pop("rope_parameters").items() if key not in ("rope_type", "rope_theta")}
        for today, then in (("n_routed_experts", "num_experts"), ("n_shared_experts", "num_shared_experts")):
            config[then] = config.pop(today)
        del config["q_lora_rank"]
        return config | dict(rope_theta=100.0, rope_scaling=yarn | dict(type="deepseek_yarn"),
                             head_dim=config["kv_lora_rank"] + config["qk_rope_head_dim"])
    return config
