"""Of make_families.py: the decoders. Settings are unusual on purpose (its own words say why)."""

usual = dict(vocab_size=43, num_hidden_layers=2, max_position_embeddings=40, bos_token_id=1, eos_token_id=2)
llama_like = usual | dict(hidden_size=18, num_attention_heads=3, num_key_value_heads=1, intermediate_size=22)
rope = lambda base=100.0, **more: dict(rope_parameters=dict(rope_type="default", rope_theta=base) | more)
# No sparse layer, whatever the experts: those are first_k_dense_replace and after.
latent = usual | dict(hidden_size=18, num_attention_heads=3, num_key_value_heads=3, intermediate_size=22, q_lora_rank=7,
                      kv_lora_rank=5, qk_nope_head_dim=6, qk_rope_head_dim=8, v_head_dim=4)

states = dict(vocab_size=43, num_hidden_layers=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)

# Models of pictures and text: the half that reads text. Tensors of the other are drawn, too, and written: files hold them.
qwen_sees = dict(depth=1, embed_dim=8, hidden_size=8, num_heads=2, patch_size=2, mlp_ratio=1, spatial_merge_size=1)
three = lambda base, sections, **more: dict(rope_parameters=dict(rope_type="default", rope_theta=base, mrope_section=sections) | more)
# Queries that grow along the text, twice and more.
growing = lambda beta, context: dict(rope_parameters=dict(
    rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=context, beta_fast=2.0, beta_slow=0.3,
    mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=beta))
siglip_sees = dict(model_type="siglip_vision_model", hidden_size=6, intermediate_size=5, num_hidden_layers=1,
                   num_attention_heads=1, image_size=4, patch_size=4)
pixtral_sees = dict(model_type="pixtral", hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2,
                    head_dim=4, image_size=4, patch_size=2)
hears = dict(num_mel_bins=4, max_source_positions=4)
clip_sees = siglip_sees | dict(model_type="clip_vision_model", projection_dim=4)
# What a head puts out goes through a norm by itself: where that is nearly 0 a step turns it round, but for a large epsilon.
deltas = dict(linear_num_value_heads=6, linear_num_key_heads=2, linear_key_head_dim=5, linear_value_head_dim=4,
              linear_conv_kernel_dim=3)
# Wider heads where there is no window, three of their five pairs turned.
gemma4 = usual | dict(
    hidden_size=18, num_attention_heads=4, num_key_value_heads=2, intermediate_size=22, head_dim=6, global_head_dim=10,
    num_hidden_layers=3, sliding_window=4, layer_types=["sliding_attention", "full_attention", "full_attention"],
    rope_parameters=dict(
        full_attention=dict(rope_type="proportional", rope_theta=300.0, partial_rotary_factor=0.6, factor=1.5),
        sliding_attention=dict(rope_type="default", rope_theta=50.0)))
llama4 = llama_like | rope() | dict(
    head_dim=8, intermediate_size=7, intermediate_size_mlp=20, num_local_experts=5, rms_norm_eps=0.01, pad_token_id=0)
TEXT_HALVES = {
    "llama4": ("Llama4Config", dict(
        image_token_index=42, boi_token_index=41, eoi_token_index=40, vision_config=dict(
            hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=5, image_size=4, patch_size=2,
            vision_output_dim=8, projector_input_dim=8, projector_output_dim=8, pixel_shuffle_ratio=1.0),
        text_config=llama4 | dict(num_hidden_layers=2, no_rope_layer_interval=2, floor_scale=2, attention_chunk_size=4))),
    "gemma4": ("Gemma4Config", dict(vision_config=None, audio_config=None, text_config=gemma4 | dict(
        num_hidden_layers=5, num_kv_shared_layers=2, vocab_size_per_layer_input=43, hidden_size_per_layer_input=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"]))),
    "gemma4_unified": ("Gemma4UnifiedConfig", dict(vision_config=None, audio_config=None, text_config=gemma4 | dict(
        attention_k_eq_v=True, num_global_key_value_heads=1))),
    "qwen3_5": ("Qwen3_5Config", dict(
        image_token_id=42, video_token_id=41, vision_config=qwen_sees | dict(
            out_hidden_size=18, intermediate_size=5, num_position_embeddings=4),
        text_config=llama_like | deltas | three(100.0, [2, 1, 0], mrope_interleaved=True, partial_rotary_factor=0.75) | dict(
            num_hidden_layers=3, head_dim=8, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=0.03,
            layer_types=["linear_attention", "full_attention", "linear_attention"]))),
    # As published: all experts of a layer in one tensor, as torch.nn.Linear has them.
    "qwen3_5_moe": ("Qwen3_5MoeConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=qwen_sees | dict(
            out_hidden_size=18, intermediate_size=5, num_position_embeddings=4),
        text_config=usual | deltas | three(100.0, [2, 1, 0], mrope_interleaved=True, partial_rotary_factor=0.75) | dict(
            hidden_size=18, num_hidden_layers=3, head_dim=8, num_attention_heads=6, num_key_value_heads=3, rms_norm_eps=0.03,
            moe_intermediate_size=5, shared_expert_intermediate_size=7, num_experts=6, num_experts_per_tok=3,
            layer_types=["linear_attention", "full_attention", "full_attention"]))),
    "gemma3": ("Gemma3Config", dict(
        image_token_index=42, mm_tokens_per_image=1, vision_config=siglip_sees,
        text_config=llama_like | dict(
            num_hidden_layers=3, head_dim=8, query_pre_attn_scalar=7, sliding_window=4,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            rope_parameters=dict(full_attention=dict(rope_type="linear", factor=3.0, rope_theta=1000.0),
                                 sliding_attention=dict(rope_type="default", rope_theta=50.0))))),
    "qwen2_vl": ("Qwen2VLConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=qwen_sees, tie_word_embeddings=True,
        text_config=llama_like | three(200.0, [1, 1, 1]))),
    # As published: all keys beside each other, tensors not behind "language_model".
    "qwen2_vl-flat": ("Qwen2VLConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=qwen_sees, text_config=llama_like | three(200.0, [1, 1, 1]) | dict(
            num_key_value_heads=3, num_hidden_layers=3, use_sliding_window=True, sliding_window=5, max_window_layers=1))),
    "qwen2_5_vl": ("Qwen2_5_VLConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=qwen_sees | dict(
            out_hidden_size=18, intermediate_size=5, fullatt_block_indexes=[0], window_size=4),
        text_config=llama_like | three(90.0, [2, 1, 0]))),
    "qwen3_vl": ("Qwen3VLConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=qwen_sees | dict(
            out_hidden_size=18, intermediate_size=5, num_position_embeddings=4, deepstack_visual_indexes=[0]),
        text_config=llama_like | three(100.0, [2, 1, 1], mrope_interleaved=True) | dict(
            head_dim=8, num_attention_heads=6, num_key_value_heads=2, attention_bias=True))),
    # As published: tensors behind "language_model.model", no word of tied embeddings.
    "mistral3": ("Mistral3Config", dict(
        image_token_index=42, tie_word_embeddings=False, vision_config=pixtral_sees,
        text_config=llama_like | rope() | dict(model_type="mistral", head_dim=8, sliding_window=None))),
    "mistral3-ministral3": ("Mistral3Config", dict(
        image_token_index=42, tie_word_embeddings=False, vision_config=pixtral_sees,
        text_config=llama_like | growing(0.9, 4) | dict(model_type="ministral3", head_dim=8))),
    "mistral3-mistral4": ("Mistral3Config", dict(
        image_token_index=42, tie_word_embeddings=False, vision_config=pixtral_sees, text_config=latent | dict(
            model_type="mistral4", n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=9,
            rope_parameters=dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=5,
                                 beta_fast=2.0, beta_slow=0.3, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.5)))),
    # As published: all experts of a layer in one tensor, inputs before outputs.
    "qwen3_vl_moe": ("Qwen3VLMoeConfig", dict(
        image_token_id=42, video_token_id=41, tie_word_embeddings=False, vision_config=qwen_sees | dict(
            out_hidden_size=18, intermediate_size=5, num_position_embeddings=4, deepstack_visual_indexes=[0]),
        text_config=llama_like | three(100.0, [2, 1, 1], mrope_interleaved=True) | dict(
            num_hidden_layers=3, head_dim=8, num_attention_heads=6, num_key_value_heads=2, moe_intermediate_size=10,
            num_experts=5, num_experts_per_tok=2, mlp_only_layers=[1], tie_word_embeddings=False))),
    # The library's classes leave out what Cohere 2 multiplies logits by: 1 here.
    "glm4v": ("Glm4vConfig", dict(
        image_token_id=42, video_token_id=41, vision_config=dict(
            depth=1, hidden_size=8, num_heads=2, patch_size=2, spatial_merge_size=1, out_hidden_size=18, intermediate_size=5,
            image_size=4),
        text_config=llama_like | dict(num_attention_heads=3, hidden_size=24, pad_token_id=0, rope_parameters=dict(
            rope_type="default", rope_theta=90.0, partial_rotary_factor=0.5, mrope_section=[1, 1, 0])))),
    "aya_vision": ("AyaVisionConfig", dict(
        image_token_index=42, tie_word_embeddings=True, vision_config=siglip_sees, downsample_factor=1,
        adapter_layer_norm_eps=1e-6, text_config=llama_like | rope() | dict(
            model_type="cohere2", sliding_window=4, logit_scale=1.0, pad_token_id=0, tie_word_embeddings=True))),
    "cohere2_vision": ("Cohere2VisionConfig", dict(
        image_token_id=42, tie_word_embeddings=True, vision_config=siglip_sees, downsample_factor=1,
        alignment_intermediate_size=8, text_config=llama_like | rope() | dict(
            model_type="cohere2", sliding_window=5, logit_scale=1.0, pad_token_id=0, tie_word_embeddings=True,
            layer_types=["sliding_attention", "full_attention"]))),
    # As its text half is called where it is Gemma 2, and in older files, where it is Gemma.
    "paligemma": ("PaliGemmaConfig", dict(
        image_token_index=42, projection_dim=18, hidden_size=18, vision_config=siglip_sees | dict(vision_use_head=False),
        text_config=llama_like | dict(
            model_type="gemma2", head_dim=8, query_pre_attn_scalar=7, sliding_window=4, attn_logit_softcapping=3.0,
            final_logit_softcapping=4.0, layer_types=["full_attention", "sliding_attention"],
            rope_parameters=dict(rope_type="default", rope_theta=60.0)))),
    "paligemma-gemma": ("PaliGemmaConfig", dict(
        image_token_index=42, projection_dim=18, hidden_size=18, vision_config=siglip_sees | dict(vision_use_head=False),
        text_config=llama_like | rope() | dict(model_type="gemma", head_dim=8, num_hidden_layers=3))),
    # What the whole says of tied embeddings counts, not what its half does.
    "paligemma-untied": ("PaliGemmaConfig", dict(
        image_token_index=42, projection_dim=18, hidden_size=18, vision_config=siglip_sees | dict(vision_use_head=False),
        tie_word_embeddings=False,
        text_config=llama_like | rope(50.0) | dict(model_type="gemma", head_dim=8, tie_word_embeddings=True))),
    "paligemma-tied": ("PaliGemmaConfig", dict(
        image_token_index=42, projection_dim=18, hidden_size=18, vision_config=siglip_sees | dict(vision_use_head=False),
        text_config=llama_like | rope(70.0) | dict(model_type="gemma", head_dim=8, tie_word_embeddings=False))),
    "vipllava": ("VipLlavaConfig", dict(
        image_token_index=42, vision_feature_layers=[-1], vision_config=clip_sees,
        text_config=llama_like | rope() | dict(model_type="llama"))),
    "llava_next_video": ("LlavaNextVideoConfig", dict(
        image_token_index=42, video_token_index=41, vision_config=clip_sees,
        text_config=llama_like | rope() | dict(model_type="mistral", head_dim=8, sliding_window=5))),
    "voxtral": ("VoxtralConfig", dict(
        audio_token_id=42, audio_config=hears | dict(
            vocab_size=3, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1),
        text_config=llama_like | rope() | dict(model_type="llama", head_dim=6, pad_token_id=0))),
    "qwen2_audio": ("Qwen2AudioConfig", dict(
        audio_token_index=42, audio_config=hears | dict(
            model_type="qwen2_audio_encoder", d_model=8, encoder_layers=1, encoder_attention_heads=1, encoder_ffn_dim=8),
        text_config=llama_like | rope() | dict(model_type="qwen2", tie_word_embeddings=False))),
    # As published: tensors behind "language_model.model".
    "llava": ("LlavaConfig", dict(
        image_token_index=42, vision_config=clip_sees, text_config=llama_like | rope() | dict(model_type="llama"))),
    "llava_next": ("LlavaNextConfig", dict(
        image_token_index=42, vision_config=clip_sees, text_config=llama_like | rope() | dict(
            model_type="mistral", head_dim=8, sliding_window=5))),
    "llava_onevision": ("LlavaOnevisionConfig", dict(
        image_token_index=42, video_token_index=41, vision_config=siglip_sees, tie_word_embeddings=True,
        text_config=llama_like | rope() | dict(model_type="qwen2"))),
    "internvl": ("InternVLConfig", dict(
        image_token_id=42, vision_config=dict(
            hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2, image_size=[4, 4],
            patch_size=[2, 2]),
        text_config=llama_like | rope() | dict(model_type="qwen3", head_dim=8))),
    "idefics3": ("Idefics3Config", dict(
        image_token_id=42, pad_token_id=0, vision_config=siglip_sees | dict(model_type="idefics3_vision"),
        text_config=llama_like | rope() | dict(model_type="llama", pad_token_id=0, head_dim=8))),
    "smolvlm": ("SmolVLMConfig", dict(
        image_token_id=42, pad_token_id=0, vision_config=siglip_sees | dict(model_type="smolvlm_vision"),
        tie_word_embeddings=True, text_config=llama_like | rope() | dict(model_type="llama", pad_token_id=0))),
}

# name → (config class, settings)
DECODERS = {
    "qwen2": ("Qwen2Config", llama_like | rope() | dict(
        num_hidden_layers=3, use_sliding_window=True, sliding_window=5, max_window_layers=1, tie_word_embeddings=True)),
    "qwen2-r1": ("Qwen2Config", llama_like | rope() | dict(num_key_value_heads=3, tie_word_embeddings=False)),
    "qwen3": ("Qwen3Config", llama_like | rope() | dict(head_dim=8, num_attention_heads=6, num_key_value_heads=2)),
    "mistral": ("MistralConfig", llama_like | rope() | dict(head_dim=8, sliding_window=4)),
    "gpt_neox": ("GPTNeoXConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, intermediate_size=20, attention_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.75))),
    "gpt_neox-serial": ("GPTNeoXConfig", usual | dict(
        hidden_size=20, num_attention_heads=5, intermediate_size=20, attention_bias=False, use_parallel_residual=False,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=1.0))),
    "gpt_neo": ("GPTNeoConfig", dict(
        vocab_size=43, num_layers=3, num_heads=3, hidden_size=18, intermediate_size=20, max_position_embeddings=40,
        window_size=5,
        attention_types=[[["global", "local"], 1], [["local"], 1]], bos_token_id=1, eos_token_id=2)),
    "gemma": ("GemmaConfig", llama_like | rope() | dict(head_dim=8)),
    "gemma2": ("Gemma2Config", llama_like | rope() | dict(
        num_hidden_layers=3, head_dim=8, query_pre_attn_scalar=5, sliding_window=4, attn_logit_softcapping=1.5,
        final_logit_softcapping=2.0)),
    "gemma3_text": ("Gemma3TextConfig", llama_like | dict(
        num_hidden_layers=3, head_dim=8, query_pre_attn_scalar=11, sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters=dict(full_attention=dict(rope_type="linear", factor=3.0, rope_theta=1000.0),
                             sliding_attention=dict(rope_type="default", rope_theta=50.0)))),
    # Inputs of every layer's own; late layers with keys of earlier ones, and MLPs twice as wide.
    "gemma4_text": ("Gemma4TextConfig", gemma4 | dict(
        num_hidden_layers=6, num_kv_shared_layers=3, use_double_wide_mlp=True, vocab_size_per_layer_input=47,
        hidden_size_per_layer_input=5, attention_bias=True, final_logit_softcapping=2.0,
        layer_types=["full_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
                     "full_attention"])),
    # Values that are keys; fewer of them where there is no window.
    "gemma4_text-keys": ("Gemma4TextConfig", gemma4 | dict(
        attention_k_eq_v=True, num_global_key_value_heads=1, hidden_size_per_layer_input=0, rms_norm_eps=0.02,
        tie_word_embeddings=False)),
    "gemma4_text-moe": ("Gemma4TextConfig", gemma4 | dict(
        attention_k_eq_v=True, num_global_key_value_heads=4, hidden_size_per_layer_input=0, enable_moe_block=True,
        num_experts=5, top_k_experts=2, moe_intermediate_size=7)),
    "gemma4_unified_text": ("Gemma4UnifiedTextConfig", gemma4 | dict(
        num_hidden_layers=4, num_kv_shared_layers=2, attention_bias=True,
        layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"])),
    "llama4_text": ("Llama4TextConfig", llama4 | dict(
        num_hidden_layers=4, no_rope_layers=[1, 1, 0, 1], moe_layers=[1, 2], num_experts_per_tok=2, attn_scale=0.7,
        floor_scale=3, attention_chunk_size=5)),
    # As Maverick: no norms of queries and keys; here without temperature and chunks too.
    "llama4_text-bare": ("Llama4TextConfig", llama4 | dict(
        num_hidden_layers=3, no_rope_layer_interval=3, interleave_moe_layer_step=2, use_qk_norm=False, attention_bias=True,
        attn_temperature_tuning=False, attention_chunk_size=None, num_key_value_heads=3, tie_word_embeddings=True)),
    "phi": ("PhiConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=1, intermediate_size=20, qk_layernorm=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    "phi3": ("Phi3Config", llama_like | rope() | dict(sliding_window=6, pad_token_id=0)),
    "olmo": ("OlmoConfig", llama_like | rope() | dict(clip_qkv=0.6, attention_bias=True)),
    "olmo2": ("Olmo2Config", llama_like | rope() | dict(num_attention_heads=6, hidden_size=24, num_key_value_heads=2)),
    "olmo3": ("Olmo3Config", llama_like | rope() | dict(
        sliding_window=4, layer_types=["sliding_attention", "full_attention"])),
    "smollm3": ("SmolLM3Config", llama_like | rope() | dict(
        num_hidden_layers=3, no_rope_layers=[1, 0, 1], pad_token_id=0, attention_bias=True)),
    "stablelm": ("StableLmConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=1, intermediate_size=20, use_qkv_bias=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.75))),
    "stablelm-parallel": ("StableLmConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=3, intermediate_size=20, use_parallel_residual=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    # Gains of every head, stored apart.
    "stablelm-heads": ("StableLmConfig", usual | dict(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=20, qk_layernorm=True,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    "opt": ("OPTConfig", dict(
        vocab_size=43, hidden_size=18, num_hidden_layers=2, num_attention_heads=3, ffn_dim=22,
        max_position_embeddings=40, word_embed_proj_dim=18, bos_token_id=1, eos_token_id=2)),
    "opt-350m": ("OPTConfig", dict(
        vocab_size=43, hidden_size=18, num_hidden_layers=2, num_attention_heads=3, ffn_dim=22, do_layer_norm_before=False,
        max_position_embeddings=40, word_embed_proj_dim=11, bos_token_id=1, eos_token_id=2)),
    "bloom": ("BloomConfig", dict(vocab_size=43, hidden_size=18, n_layer=2, n_head=3, bos_token_id=1, eos_token_id=2)),
    "falcon": ("FalconConfig", usual | rope() | dict(hidden_size=18, num_attention_heads=3, bias=False)),
    "falcon-new": ("FalconConfig", usual | rope() | dict(
        hidden_size=24, num_attention_heads=6, num_kv_heads=2, new_decoder_architecture=True, bias=True)),
    "falcon-serial": ("FalconConfig", usual | rope() | dict(
        hidden_size=18, num_attention_heads=3, multi_query=False, parallel_attn=False, bias=True)),
    # Slopes that bfloat16 has not, times positions: the rounding counts.
    "falcon-alibi": ("FalconConfig", usual | dict(
        hidden_size=18, num_attention_heads=9, multi_query=False, parallel_attn=False, bias=True, alibi=True)),
    "gptj": ("GPTJConfig", dict(
        vocab_size=43, n_positions=40, n_embd=18, n_layer=2, n_inner=20, n_head=3, rotary_dim=4, bos_token_id=1, eos_token_id=2)),
    "codegen": ("CodeGenConfig", dict(
        vocab_size=43, n_positions=40, n_ctx=40, n_embd=24, n_layer=2, n_inner=20, n_head=4, rotary_dim=4, bos_token_id=1,
        eos_token_id=2)),
    "mpt": ("MptConfig", dict(
        vocab_size=43, d_model=18, n_heads=6, n_layers=2, max_seq_len=40,
        attn_config=dict(alibi=True, clip_qkv=0.8, softmax_scale=0.6), bos_token_id=1,
        eos_token_id=2)),
    "cohere": ("CohereConfig", llama_like | rope() | dict(logit_scale=0.3, use_qk_norm=True, pad_token_id=0)),
    "granite": ("GraniteConfig", llama_like | rope() | dict(
        embedding_multiplier=3.0, logits_scaling=0.7, residual_multiplier=0.4, attention_multiplier=0.3,
        attention_bias=True, mlp_bias=True)),
    "gpt_bigcode": ("GPTBigCodeConfig", dict(
        vocab_size=43, n_positions=40, n_embd=18, n_layer=2, n_inner=20, n_head=3, bos_token_id=1, eos_token_id=2)),
    "gpt_bigcode-heads": ("GPTBigCodeConfig", dict(
        vocab_size=43, n_positions=40, n_embd=18, n_layer=2, n_inner=20, n_head=3, multi_query=False, bos_token_id=1,
        eos_token_id=2)),
    "apertus": ("ApertusConfig", llama_like | dict(hidden_size=24, pad_token_id=0, rope_parameters=dict(
        rope_type="llama3", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16, low_freq_factor=1.0,
        high_freq_factor=3.0))),
    "apertus-silu": ("ApertusConfig", llama_like | rope() | dict(
        num_key_value_heads=3, pad_token_id=0, attention_bias=True, hidden_act="silu", tie_word_embeddings=True)),
    "deepseek_v2": ("DeepseekV2Config", latent | rope() | dict(first_k_dense_replace=2, mlp_bias=True)),
    "deepseek_v2-lite": ("DeepseekV2Config", latent | dict(
        q_lora_rank=None, first_k_dense_replace=9, rope_parameters=dict(
            rope_type="yarn", rope_theta=100.0, factor=5.0, original_max_position_embeddings=8, beta_fast=1.5,
            beta_slow=0.1, mscale=0.9, mscale_all_dim=0.5))),
    "deepseek_v3": ("DeepseekV3Config", latent | dict(
        attention_bias=True, rms_norm_eps=0.02, first_k_dense_replace=2, rope_parameters=dict(
            rope_type="yarn", rope_theta=80.0, factor=4.0, original_max_position_embeddings=10, beta_fast=2.0,
            beta_slow=0.25, mscale=1.0, mscale_all_dim=0.8))),
    "deepseek_v3-halves": ("DeepseekV3Config", latent | dict(
        q_lora_rank=None, v_head_dim=9, rope_interleave=False, first_k_dense_replace=2, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="yarn", rope_theta=50.0, factor=3.0, original_max_position_embeddings=9,
                             truncate=False, attention_factor=1.3))),
    "deepseek_v2-moe": ("DeepseekV2Config", latent | rope() | dict(
        num_hidden_layers=3, first_k_dense_replace=1, mlp_bias=True, attention_bias=True, moe_intermediate_size=5,
        n_routed_experts=9, n_shared_experts=3, num_experts_per_tok=3, topk_method="group_limited_greedy", n_group=3,
        topk_group=2, routed_scaling_factor=1.7)),
    "deepseek_v2-greedy": ("DeepseekV2Config", latent | rope() | dict(
        first_k_dense_replace=0, q_lora_rank=None, moe_intermediate_size=6, n_routed_experts=4, n_shared_experts=1,
        num_experts_per_tok=2, n_group=1, topk_group=1)),
    "deepseek_v3-moe": ("DeepseekV3Config", latent | rope() | dict(
        num_hidden_layers=3, first_k_dense_replace=1, moe_intermediate_size=5, n_routed_experts=12, n_shared_experts=2,
        num_experts_per_tok=3, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=1.6)),
    "deepseek_v3-whole": ("DeepseekV3Config", latent | rope() | dict(
        first_k_dense_replace=1, moe_intermediate_size=7, n_routed_experts=5, n_shared_experts=1, num_experts_per_tok=2,
        n_group=1, topk_group=1, norm_topk_prob=False, routed_scaling_factor=0.8)),
    "llama-yarn": ("LlamaConfig", llama_like | dict(head_dim=8, rope_parameters=dict(
        rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=30, beta_fast=2.0, beta_slow=0.3,
        truncate=False))),
    "llama-dynamic": ("LlamaConfig", llama_like | dict(rope_parameters=dict(rope_type="dynamic", rope_theta=100.0, factor=3.0))),
    "qwen2-yarn": ("Qwen2Config", llama_like | dict(num_key_value_heads=3, use_sliding_window=False, rope_parameters=dict(
        rope_type="yarn", rope_theta=200.0, factor=4.0, original_max_position_embeddings=10))),
    # The greedy continuation reaches the 16th token, from which on the other list holds.
    "phi3-longrope": ("Phi3Config", llama_like | dict(
        hidden_size=24, pad_token_id=0, original_max_position_embeddings=15, rope_parameters=dict(
            rope_type="longrope", rope_theta=100.0, original_max_position_embeddings=15, short_factor=[1.0, 1.125, 1.25, 1.75],
            long_factor=[1.5, 2.5, 4.0, 6.5]))),
    # As Phi 4 mini: a part of each head turns; a text that is long from the start.
    "phi3-long": ("Phi3Config", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=1, intermediate_size=22, pad_token_id=0,
        original_max_position_embeddings=5, tie_word_embeddings=True, rope_parameters=dict(
            rope_type="longrope", rope_theta=100.0, partial_rotary_factor=0.75, original_max_position_embeddings=5,
            short_factor=[1.0, 1.125, 1.25], long_factor=[1.25, 3.0, 7.0]))),
    "starcoder2": ("Starcoder2Config", llama_like | rope() | dict(sliding_window=5, tie_word_embeddings=True)),
    "mixtral": ("MixtralConfig", llama_like | rope() | dict(
        head_dim=8, num_local_experts=5, num_experts_per_tok=2, sliding_window=6)),
    "qwen3_moe": ("Qwen3MoeConfig", llama_like | rope() | dict(
        num_hidden_layers=4, head_dim=8, num_attention_heads=6, num_key_value_heads=2, moe_intermediate_size=10,
        num_experts=7, num_experts_per_tok=3, norm_topk_prob=True, mlp_only_layers=[2], attention_bias=True)),
    "qwen3_moe-step": ("Qwen3MoeConfig", llama_like | rope() | dict(
        num_hidden_layers=3, moe_intermediate_size=10, num_experts=4, num_experts_per_tok=1, decoder_sparse_step=2,
        tie_word_embeddings=True)),
    "olmoe": ("OlmoeConfig", llama_like | rope() | dict(
        num_experts=6, num_experts_per_tok=2, norm_topk_prob=False, clip_qkv=0.9, pad_token_id=0)),
    "olmoe-norm": ("OlmoeConfig", llama_like | rope() | dict(
        num_experts=6, num_experts_per_tok=4, norm_topk_prob=True, num_key_value_heads=3, pad_token_id=0)),
    "gpt_oss": ("GptOssConfig", llama_like | rope() | dict(
        num_hidden_layers=3, head_dim=8, num_attention_heads=6, num_key_value_heads=2, num_local_experts=5,
        num_experts_per_tok=2, sliding_window=4, swiglu_limit=0.8, swiglu_alpha=1.3)),
    "gpt_oss-bare": ("GptOssConfig", llama_like | rope() | dict(
        head_dim=6, num_local_experts=4, num_experts_per_tok=3, sliding_window=6, attention_bias=False,
        layer_types=["full_attention", "sliding_attention"])),
    "gpt_oss-mxfp4": ("GptOssConfig", usual | rope() | dict(
        hidden_size=32, num_attention_heads=3, num_key_value_heads=1, intermediate_size=32, head_dim=6,
        num_local_experts=3, num_experts_per_tok=2, sliding_window=5)),
    # State spaces: channels (36 of them in 6 groups, 42 in 7), and heads.
    "mamba": ("MambaConfig", states | dict(
        hidden_size=18, state_size=5, conv_kernel=3, time_step_rank=4, use_bias=True, tie_word_embeddings=False)),
    "mamba-bare": ("MambaConfig", states | dict(
        num_hidden_layers=3, hidden_size=14, expand=3, state_size=4, use_conv_bias=False, hidden_act="gelu")),
    "mamba2": ("Mamba2Config", states | dict(
        hidden_size=18, num_heads=6, head_dim=6, n_groups=2, state_size=5, conv_kernel=3, use_bias=True, chunk_size=4,
        time_step_limit=(0.3, 1.1))),
    "mamba2-one": ("Mamba2Config", states | dict(
        hidden_size=15, expand=1, num_heads=5, head_dim=3, n_groups=1, state_size=7, use_conv_bias=False,
        tie_word_embeddings=True)),
    # Layers of both kinds: states with heads of their own number, of which a head of attention is a group.
    "granitemoehybrid": ("GraniteMoeHybridConfig", llama_like | rope() | dict(
        num_hidden_layers=4, num_local_experts=5, num_experts_per_tok=3, shared_intermediate_size=9, embedding_multiplier=3.0,
        logits_scaling=0.7, residual_multiplier=0.4, attention_multiplier=0.3, attention_bias=True,
        position_embedding_type="rope", layer_types=["mamba", "attention", "mamba", "attention"], mamba_n_heads=6,
        mamba_d_head=6, mamba_n_groups=2, mamba_d_state=5, mamba_d_conv=3, mamba_expand=2, mamba_proj_bias=True,
        mamba_chunk_size=4, time_step_limit=(0.3, 1.1))),
    "granitemoehybrid-dense": ("GraniteMoeHybridConfig", llama_like | dict(
        num_hidden_layers=3, num_key_value_heads=3, num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=13,
        residual_multiplier=0.5, attention_multiplier=0.4, layer_types=["attention", "mamba", "mamba"], mamba_n_heads=3,
        mamba_d_head=6, mamba_n_groups=1, mamba_d_state=7, mamba_d_conv=4, mamba_expand=1, mamba_conv_bias=False,
        mamba_chunk_size=4, tie_word_embeddings=True)),
    "granitemoehybrid-attention": ("GraniteMoeHybridConfig", llama_like | rope(60.0) | dict(
        num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=13, position_embedding_type="rope",
        layer_types=["attention", "attention"], mamba_n_heads=6, mamba_d_head=6)),
    # A state space and attention side by side in every block, here two layers. Biases everywhere, and every multiplier.
    "falcon_h1": ("FalconH1Config", llama_like | rope() | dict(
        hidden_size=20, num_attention_heads=4, num_key_value_heads=2, head_dim=6, attention_bias=True, mlp_bias=True,
        mamba_d_ssm=24, mamba_n_heads=8, mamba_d_head=3, mamba_n_groups=2, mamba_d_state=5, mamba_d_conv=3,
        mamba_proj_bias=True, projectors_bias=True, mamba_rms_norm=True, mamba_norm_before_gate=True, rms_norm_eps=0.01,
        embedding_multiplier=1.7, lm_head_multiplier=0.6, attention_in_multiplier=0.8, attention_out_multiplier=1.3,
        key_multiplier=1.2, ssm_in_multiplier=1.1, ssm_out_multiplier=0.7, ssm_multipliers=[0.9, 1.2, 0.8, 1.3, 0.7],
        mlp_multipliers=[1.2, 0.8], time_step_limit=[0.1, 2.5], pad_token_id=0)),
    "falcon_h1-bare": ("FalconH1Config", llama_like | rope() | dict(
        hidden_size=18, num_attention_heads=3, num_key_value_heads=3, mamba_d_ssm=None, mamba_expand=2, mamba_n_heads=6,
        mamba_n_groups=1, mamba_d_state=4, mamba_conv_bias=False, mamba_rms_norm=False, tie_word_embeddings=True,
        ssm_multipliers=[0.9, 1.2, 0.8, 1.3, 0.7], key_multiplier=0.5, pad_token_id=0)),
    # Layers of more heads than attend, and of fewer; a bias in one of the two projections of a state space.
    "falcon_h1-heads": ("FalconH1Config", llama_like | rope(60.0) | dict(
        hidden_size=20, num_attention_heads=5, num_key_value_heads=1, head_dim=6, mamba_d_ssm=24, mamba_n_heads=8,
        mamba_d_head=3, mamba_n_groups=2, mamba_d_state=5, mamba_proj_bias=True, mamba_rms_norm=True,
        mamba_norm_before_gate=False, mlp_bias=True, rms_norm_eps=0.01, key_multiplier=1.3, ssm_out_multiplier=0.8,
        time_step_limit=[0.1, 2.5], pad_token_id=0)),
    "falcon_h1-fewer": ("FalconH1Config", llama_like | rope() | dict(
        hidden_size=18, num_attention_heads=6, num_key_value_heads=2, head_dim=4, mamba_d_ssm=16, mamba_n_heads=4,
        mamba_d_head=4, mamba_n_groups=1, mamba_d_state=6, mamba_d_conv=3, projectors_bias=True, attention_bias=True,
        mamba_conv_bias=False, mamba_rms_norm=False, ssm_multipliers=[0.9, 1.2, 0.8, 1.3, 0.7], pad_token_id=0)),
    "bamba": ("BambaConfig", llama_like | rope(partial_rotary_factor=0.5) | dict(
        hidden_size=24, num_hidden_layers=3, attn_layer_indices=[1], attention_bias=True, mlp_bias=True, mamba_n_heads=6,
        mamba_d_head=8, mamba_n_groups=3, mamba_d_state=5, mamba_d_conv=3, mamba_expand=2, mamba_chunk_size=4)),
    "bamba-tied": ("BambaConfig", llama_like | rope(60.0, partial_rotary_factor=0.5) | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=2, attn_layer_indices=[0],
        mamba_n_heads=3, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=7, mamba_proj_bias=True, mamba_conv_bias=False,
        mamba_chunk_size=4, time_step_limit=(0.2, 1.3), tie_word_embeddings=True)),
    "jamba": ("JambaConfig", llama_like | dict(
        num_hidden_layers=4, attn_layer_period=3, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
        num_experts=5, num_experts_per_tok=3, mamba_d_state=5, mamba_d_conv=3, mamba_dt_rank=4, mamba_proj_bias=True)),
    "jamba-dense": ("JambaConfig", llama_like | dict(
        num_hidden_layers=3, num_key_value_heads=3, attn_layer_period=2, attn_layer_offset=0, num_experts=1,
        num_experts_per_tok=1, mamba_d_state=4, mamba_expand=1, mamba_conv_bias=False, hidden_act="gelu",
        tie_word_embeddings=True)),
    "nemotron_h": ("NemotronHConfig", dict(
        vocab_size=43, hidden_size=18, num_attention_heads=3, num_key_value_heads=1, head_dim=8, intermediate_size=22,
        max_position_embeddings=40, bos_token_id=1, eos_token_id=2, hybrid_override_pattern="M-M*-M-", mlp_bias=True,
        ssm_state_size=5, mamba_num_heads=6, mamba_head_dim=5, n_groups=2, conv_kernel=3, chunk_size=4, use_bias=True,
        time_step_min=0.3)),
    "nemotron_h-bare": ("NemotronHConfig", dict(
        vocab_size=43, hidden_size=20, num_attention_heads=5, num_key_value_heads=5, head_dim=6, intermediate_size=22,
        max_position_embeddings=40, bos_token_id=1, eos_token_id=2, hybrid_override_pattern="*M-", ssm_state_size=7,
        mamba_num_heads=5, mamba_head_dim=7, n_groups=1, chunk_size=4, use_conv_bias=False, mlp_hidden_act="silu",
        mamba_hidden_act="gelu")),
    # Of four layers as blocks two have experts, one has nothing behind it.
    "nemotron_h-experts": ("NemotronHConfig", dict(
        vocab_size=43, hidden_size=18, num_attention_heads=3, num_key_value_heads=1, head_dim=8, intermediate_size=14,
        max_position_embeddings=40, bos_token_id=1, eos_token_id=2, hybrid_override_pattern="ME*E*M-", mlp_bias=True,
        ssm_state_size=5, mamba_num_heads=6, mamba_head_dim=4, n_groups=2, conv_kernel=3, chunk_size=4, time_step_min=0.3,
        n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=5, moe_shared_expert_intermediate_size=7,
        n_group=3, topk_group=2, routed_scaling_factor=1.3)),
    "cohere2": ("Cohere2Config", llama_like | rope() | dict(
        num_hidden_layers=4, sliding_window=4, logit_scale=0.3, pad_token_id=0,
        layer_types=["sliding_attention", "full_attention", "full_attention", "sliding_attention"])),
    "cohere2-biased": ("Cohere2Config", llama_like | rope(60.0) | dict(
        num_key_value_heads=3, num_hidden_layers=3, sliding_window=6, attention_bias=True, pad_token_id=0,
        tie_word_embeddings=False)),
    "glm": ("GlmConfig", usual | dict(
        hidden_size=18, num_attention_heads=6, num_key_value_heads=2, intermediate_size=22, head_dim=8, pad_token_id=0,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    "glm4": ("Glm4Config", usual | dict(
        hidden_size=18, num_attention_heads=3, num_key_value_heads=1, intermediate_size=22, head_dim=8, pad_token_id=0,
        attention_bias=False, tie_word_embeddings=True, rms_norm_eps=0.01,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.75))),
    "seed_oss": ("SeedOssConfig", llama_like | rope() | dict(head_dim=8, pad_token_id=0)),
    "seed_oss-biased": ("SeedOssConfig", llama_like | rope() | dict(
        head_dim=10, num_key_value_heads=3, attention_bias=False, attention_out_bias=True, mlp_bias=True, pad_token_id=0)),
    "ernie4_5": ("Ernie4_5Config", llama_like | rope() | dict(head_dim=8)),
    "ernie4_5-biased": ("Ernie4_5Config", llama_like | rope() | dict(
        head_dim=6, use_bias=True, tie_word_embeddings=False)),
    "helium": ("HeliumConfig", llama_like | rope() | dict(
        head_dim=6, num_key_value_heads=3, attention_bias=True, mlp_bias=True, pad_token_id=0)),
    "exaone4": ("Exaone4Config", llama_like | rope() | dict(
        num_hidden_layers=3, head_dim=8, num_attention_heads=6, num_key_value_heads=2, sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    # As the small one: no windows, all layers turn.
    "exaone4-whole": ("Exaone4Config", llama_like | rope() | dict(
        sliding_window=None, layer_types=["full_attention"] * 2, tie_word_embeddings=True)),
    "arcee": ("ArceeConfig", llama_like | rope() | dict(mlp_bias=True)),
    "nemotron": ("NemotronConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=1, intermediate_size=20,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    "nemotron-biased": ("NemotronConfig", usual | dict(
        hidden_size=18, num_attention_heads=3, num_key_value_heads=3, intermediate_size=20, head_dim=8, mlp_bias=True,
        attention_bias=True, norm_eps=0.02,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.75))),
    "ministral": ("MinistralConfig", llama_like | rope() | dict(
        num_hidden_layers=3, head_dim=8, sliding_window=4,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"])),
    "granitemoe": ("GraniteMoeConfig", llama_like | rope() | dict(
        num_local_experts=5, num_experts_per_tok=3, embedding_multiplier=3.0, logits_scaling=0.7, residual_multiplier=0.4,
        attention_multiplier=0.3, attention_bias=True)),
    "qwen2_moe": ("Qwen2MoeConfig", llama_like | rope() | dict(
        num_hidden_layers=4, moe_intermediate_size=10, shared_expert_intermediate_size=7, num_experts=7,
        num_experts_per_tok=3, mlp_only_layers=[2], use_sliding_window=True, sliding_window=4, max_window_layers=3)),
    "qwen2_moe-norm": ("Qwen2MoeConfig", llama_like | rope() | dict(
        moe_intermediate_size=9, shared_expert_intermediate_size=12, num_experts=5, num_experts_per_tok=2, qkv_bias=False,
        norm_topk_prob=True, decoder_sparse_step=2, num_key_value_heads=3, tie_word_embeddings=True)),
    "dots1": ("Dots1Config", llama_like | rope() | dict(
        num_hidden_layers=3, head_dim=8, num_attention_heads=6, num_key_value_heads=2, first_k_dense_replace=1,
        moe_intermediate_size=5, n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=3, norm_topk_prob=True,
        n_group=2, topk_group=1, routed_scaling_factor=1.7, sliding_window=4, max_window_layers=2, attention_bias=True)),
    "glm4_moe": ("Glm4MoeConfig", usual | dict(
        hidden_size=18, num_attention_heads=6, num_key_value_heads=2, intermediate_size=22, head_dim=8,
        num_hidden_layers=3, first_k_dense_replace=1, moe_intermediate_size=5, n_routed_experts=6, n_shared_experts=1,
        num_experts_per_tok=2, use_qk_norm=True, attention_bias=True, routed_scaling_factor=1.3,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    # Layers with a window have four key heads, others two; of these the first has one MLP. Half of every head turns.
    "mimo_v2_flash": ("MiMoV2FlashConfig", usual | dict(
        hidden_size=18, num_attention_heads=4, num_key_value_heads=2, intermediate_size=22, head_dim=8, v_head_dim=6,
        num_hidden_layers=3, sliding_window=4, moe_intermediate_size=5, n_routed_experts=6, num_experts_per_tok=2,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"], attention_bias=True,
        routed_scaling_factor=1.3, attention_value_scale=0.6, rms_norm_eps=0.01,
        rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=300.0, partial_rotary_factor=0.5),
            sliding_attention=dict(rope_type="default", rope_theta=50.0, partial_rotary_factor=0.5)))),
    # Five of eight dimensions of a head are asked for where there is no window, three where there is: six and four turn.
    "mimo_v2_flash-odd": ("MiMoV2FlashConfig", usual | dict(
        hidden_size=18, num_attention_heads=4, num_key_value_heads=2, intermediate_size=22, head_dim=8, v_head_dim=6,
        sliding_window=4, moe_intermediate_size=5, n_routed_experts=6, num_experts_per_tok=2,
        layer_types=["full_attention", "sliding_attention"], rms_norm_eps=0.01,
        rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=30.0, partial_rotary_factor=0.7),
            sliding_attention=dict(rope_type="default", rope_theta=20.0, partial_rotary_factor=0.4)))),
    "persimmon": ("PersimmonConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, intermediate_size=20,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
    "biogpt": ("BioGptConfig", usual | dict(
        hidden_size=18, num_attention_heads=3, intermediate_size=22, pad_token_id=0)),
    "vaultgemma": ("VaultGemmaConfig", llama_like | rope() | dict(
        num_hidden_layers=3, head_dim=8, query_pre_attn_scalar=5, sliding_window=4, attn_logit_softcapping=1.5,
        final_logit_softcapping=2.0)),
    "cwm": ("CwmConfig", llama_like | dict(
        num_hidden_layers=3, head_dim=8, sliding_window=4, mlp_bias=True,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"], rope_parameters=dict(
            rope_type="llama3", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16, low_freq_factor=1.0,
            high_freq_factor=3.0))),
    "jais2": ("Jais2Config", llama_like | rope() | dict(attention_bias=False)),
    "jais2-biased": ("Jais2Config", llama_like | rope() | dict(
        num_key_value_heads=3, mlp_bias=False, layer_norm_eps=0.02, tie_word_embeddings=True)),
    # Keys and tensors as published.
    "exaone": ("ExaoneConfig", llama_like | rope() | dict(head_dim=8, rms_norm_eps=0.01, hidden_act="gelu")),
    "internlm3": ("InternLM3Config", llama_like | dict(
        head_dim=8, attention_bias=True, mlp_bias=True,
        rope_parameters=dict(rope_type="dynamic", rope_theta=100.0, factor=3.0))),
    "openai_gpt": ("OpenAIGPTConfig", dict(
        vocab_size=43, n_positions=40, n_embd=18, n_layer=3, n_head=3, layer_norm_epsilon=0.01, bos_token_id=1, eos_token_id=2)),
    "openai_gpt-relu": ("OpenAIGPTConfig", dict(
        vocab_size=43, n_positions=40, n_embd=20, n_layer=2, n_head=5, afn="relu", tie_word_embeddings=False, bos_token_id=1,
        eos_token_id=2)),
    "ministral3": ("Ministral3Config", llama_like | growing(0.7, 5) | dict(head_dim=8)),
    "hunyuan_v1_dense": ("HunYuanDenseV1Config", llama_like | dict(
        head_dim=8, num_attention_heads=6, num_key_value_heads=2, pad_token_id=0, attention_bias=True,
        rope_parameters=dict(rope_type="dynamic", rope_theta=50.0, alpha=7.0, factor=1.0))),
    "hunyuan_v1_dense-tied": ("HunYuanDenseV1Config", llama_like | rope() | dict(
        head_dim=6, num_key_value_heads=3, pad_token_id=0, tie_word_embeddings=True, rms_norm_eps=0.02)),
    "nanochat": ("NanoChatConfig", usual | rope() | dict(
        hidden_size=24, num_attention_heads=6, num_key_value_heads=2, intermediate_size=20, rms_norm_eps=0.01,
        final_logit_softcapping=2.0)),
    "nanochat-biased": ("NanoChatConfig", usual | rope(40.0) | dict(
        hidden_size=18, num_attention_heads=3, num_key_value_heads=3, intermediate_size=20, attention_bias=True,
        final_logit_softcapping=3.0, tie_word_embeddings=True)),
    "phimoe": ("PhimoeConfig", llama_like | rope() | dict(
        num_local_experts=6, num_experts_per_tok=2, router_jitter_noise=0.45, attention_bias=True, lm_head_bias=True,
        sliding_window=5)),
    # Both lists alike: what the library takes of them is the short one, whatever the text; its makers' code takes both.
    "phimoe-long": ("PhimoeConfig", llama_like | dict(
        hidden_size=24, num_local_experts=5, num_experts_per_tok=2, router_jitter_noise=0.15, rms_norm_eps=0.01,
        rope_parameters=dict(
            rope_type="longrope", rope_theta=100.0, original_max_position_embeddings=15,
            short_factor=[1.0, 1.125, 1.25, 1.75], long_factor=[1.0, 1.125, 1.25, 1.75], short_mscale=1.25,
            long_mscale=1.5))),
    "hyperclovax": ("HyperCLOVAXConfig", llama_like | rope() | dict(
        embedding_multiplier=3.0, logits_scaling=0.7, residual_multiplier=0.4, attention_multiplier=0.3, head_dim=8,
        attention_bias=True, mlp_bias=True)),
    "hyperclovax-bare": ("HyperCLOVAXConfig", llama_like | rope() | dict(
        use_post_norm=False, residual_multiplier=0.6, num_key_value_heads=3, tie_word_embeddings=True)),
    "ernie4_5_moe": ("Ernie4_5_MoeConfig", llama_like | rope() | dict(
        num_hidden_layers=4, moe_intermediate_size=5, moe_k=3, moe_num_experts=7, moe_num_shared_experts=2,
        moe_layer_start_index=1, moe_layer_end_index=2, use_bias=True, tie_word_embeddings=False)),
    "ernie4_5_moe-step": ("Ernie4_5_MoeConfig", llama_like | rope(60.0) | dict(
        num_hidden_layers=3, moe_intermediate_size=6, moe_k=2, moe_num_experts=4, moe_num_shared_experts=0,
        moe_layer_start_index=0, moe_layer_interval=2, num_key_value_heads=3)),
    "granitemoeshared": ("GraniteMoeSharedConfig", llama_like | rope() | dict(
        num_local_experts=5, num_experts_per_tok=3, embedding_multiplier=3.0, logits_scaling=0.7, residual_multiplier=0.4,
        attention_multiplier=0.3, shared_intermediate_size=9)),
    "flex_olmo": ("FlexOlmoConfig", llama_like | rope() | dict(
        num_attention_heads=6, hidden_size=24, num_key_value_heads=2, num_experts=5, num_experts_per_tok=3,
        norm_topk_prob=True, pad_token_id=0)),
    "qwen3_5_text": ("Qwen3_5TextConfig", llama_like | deltas | rope(partial_rotary_factor=0.5) | dict(
        num_hidden_layers=4, head_dim=8, attention_bias=True, linear_num_key_heads=3, linear_num_value_heads=3,
        tie_word_embeddings=True, rms_norm_eps=0.01)),
    # Four heads with a state beside three that attend.
    "qwen3_5_text-heads": ("Qwen3_5TextConfig", llama_like | deltas | rope(partial_rotary_factor=0.5) | dict(
        num_hidden_layers=3, head_dim=8, linear_num_value_heads=4, rms_norm_eps=0.02,
        layer_types=["linear_attention", "full_attention", "linear_attention"])),
    "qwen3_next": ("Qwen3NextConfig", llama_like | deltas | rope(partial_rotary_factor=0.5) | dict(
        num_hidden_layers=4, head_dim=8, moe_intermediate_size=5, shared_expert_intermediate_size=7, num_experts=6,
        num_experts_per_tok=2, mlp_only_layers=[2], rms_norm_eps=0.1,
        layer_types=["linear_attention", "full_attention", "linear_attention", "full_attention"])),
    "qwen3_5_moe_text": ("Qwen3_5MoeTextConfig", usual | deltas | rope(partial_rotary_factor=0.5) | dict(
        hidden_size=18, num_hidden_layers=3, head_dim=8, num_attention_heads=3, num_key_value_heads=1, attention_bias=True,
        moe_intermediate_size=6, shared_expert_intermediate_size=5, num_experts=5, num_experts_per_tok=2, rms_norm_eps=0.02,
        tie_word_embeddings=True, layer_types=["linear_attention", "linear_attention", "full_attention"])),
    # Sigmoids as small as what is added to their sum; experts in one tensor, as the library of today has them.
    "lfm2_moe": ("Lfm2MoeConfig", usual | rope() | dict(
        hidden_size=24, num_attention_heads=6, num_key_value_heads=2, intermediate_size=20, num_hidden_layers=4, conv_L_cache=3,
        norm_eps=0.01, num_dense_layers=1, moe_intermediate_size=5, num_experts=6, num_experts_per_tok=3,
        routed_scaling_factor=1.4, layer_types=["conv", "full_attention", "conv", "full_attention"])),
    "lfm2_moe-today": ("Lfm2MoeConfig", usual | rope(70.0) | dict(
        hidden_size=18, num_attention_heads=3, num_key_value_heads=3, intermediate_size=20, num_hidden_layers=3, conv_L_cache=3,
        conv_bias=True, num_dense_layers=0, moe_intermediate_size=4, num_experts=5, num_experts_per_tok=2,
        use_expert_bias=False, norm_topk_prob=False, tie_word_embeddings=False, layer_types=["full_attention", "conv", "conv"])),
    "hunyuan_v1_moe": ("HunYuanMoEV1Config", llama_like | dict(
        head_dim=8, num_attention_heads=6, num_key_value_heads=2, intermediate_size=7, pad_token_id=0, attention_bias=True,
        num_experts=5, moe_topk=2, rope_parameters=dict(rope_type="dynamic", rope_theta=50.0, alpha=7.0, factor=1.0))),
    "hunyuan_v1_moe-today": ("HunYuanMoEV1Config", llama_like | rope() | dict(
        head_dim=6, num_key_value_heads=3, intermediate_size=9, pad_token_id=0, num_experts=4, moe_topk=3,
        tie_word_embeddings=True, rms_norm_eps=0.02)),
    "exaone_moe": ("ExaoneMoeConfig", llama_like | rope() | dict(
        head_dim=8, num_attention_heads=6, num_key_value_heads=2, num_hidden_layers=4, sliding_window=4,
        sliding_window_pattern=3, moe_intermediate_size=5, num_experts=6, num_experts_per_tok=2, num_shared_experts=2,
        n_group=3, topk_group=2, routed_scaling_factor=1.7)),
    "exaone_moe-today": ("ExaoneMoeConfig", llama_like | rope(60.0) | dict(
        hidden_size=24, num_key_value_heads=3, num_hidden_layers=3, sliding_window=5, moe_intermediate_size=4,
        num_experts=5, num_experts_per_tok=3, norm_topk_prob=False, rms_norm_eps=0.01, tie_word_embeddings=True,
        mlp_layer_types=["sparse", "dense", "sparse"], layer_types=["full_attention", "sliding_attention", "full_attention"])),
    # Norms of layers that attend stand behind, those of others before. A head is one lane: of two that cancel the slope is
    # no number that a step could find.
    "olmo_hybrid": ("OlmoHybridConfig", usual | deltas | rope(140.0) | dict(
        hidden_size=18, num_attention_heads=3, num_key_value_heads=1, intermediate_size=22, num_hidden_layers=4,
        attention_bias=True, rms_norm_eps=0.02, pad_token_id=0, linear_num_value_heads=3,
        linear_num_key_heads=1, linear_value_head_dim=7,
        layer_types=["full_attention", "linear_attention", "linear_attention", "full_attention"])),
    # Tensors as published, no positions, rates up to 1.
    "olmo_hybrid-older": ("OlmoHybridConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=3, intermediate_size=20, num_hidden_layers=3, pad_token_id=0,
        linear_num_key_heads=3, linear_key_head_dim=4, linear_conv_kernel_dim=2, linear_allow_neg_eigval=False,
        rope_parameters=dict(rope_type="default", rope_theta=None), tie_word_embeddings=True)),
    # Tensors as the library writes them: norms behind attention by the name of those before an MLP, convolutions in thirds.
    "olmo_hybrid-saved": ("OlmoHybridConfig", usual | deltas | rope(60.0) | dict(
        hidden_size=12, num_attention_heads=3, num_key_value_heads=3, intermediate_size=14, num_hidden_layers=2, pad_token_id=0,
        linear_num_key_heads=1, linear_num_value_heads=3, layer_types=["linear_attention", "full_attention"])),
    "falcon_mamba": ("FalconMambaConfig", states | dict(
        hidden_size=10, state_size=3, expand=2, conv_kernel=3, time_step_rank=2, mixer_rms_eps=0.05, tie_word_embeddings=False,
        layer_norm_epsilon=0.01)),
    # As published: expand says one width, intermediate_size another, which counts.
    "falcon_mamba-wide": ("FalconMambaConfig", states | dict(
        hidden_size=8, state_size=4, expand=16, intermediate_size=12, use_bias=True, use_conv_bias=False, num_hidden_layers=3)),
    "sarvam_moe": ("SarvamMoEConfig", llama_like | rope(110.0) | dict(
        head_dim=8, num_attention_heads=6, num_key_value_heads=2, attention_bias=True, moe_intermediate_size=5,
        n_routed_experts=6, n_shared_experts=2, num_experts_per_tok=2, n_group=3, topk_group=2, num_hidden_layers=3)),
    # Keys and tensors as published.
    "sarvam_moe-older": ("SarvamMoEConfig", llama_like | rope(60.0) | dict(
        head_dim=6, num_key_value_heads=3, moe_intermediate_size=4, n_routed_experts=5, n_shared_experts=1,
        num_experts_per_tok=3, first_k_dense_replace=0, routed_scaling_factor=1.3, use_qk_norm=True,
        tie_word_embeddings=True)),
    "lfm2": ("Lfm2Config", usual | rope() | dict(
        hidden_size=24, num_attention_heads=6, num_key_value_heads=2, intermediate_size=20, block_auto_adjust_ff_dim=False,
        num_hidden_layers=4, conv_L_cache=4, conv_bias=True, norm_eps=0.01, layer_types=["conv", "full_attention", "conv", "conv"])),
    "solar_open": ("SolarOpenConfig", usual | rope() | dict(
        hidden_size=18, num_attention_heads=6, num_key_value_heads=2, head_dim=8, moe_intermediate_size=5, n_routed_experts=6,
        n_shared_experts=2, num_experts_per_tok=2, routed_scaling_factor=1.3, n_group=3, topk_group=2, attention_bias=True)),
    "minimax_m2": ("MiniMaxM2Config", llama_like | rope(partial_rotary_factor=0.5) | dict(
        head_dim=8, num_attention_heads=6, num_key_value_heads=2, num_local_experts=6, num_experts_per_tok=3)),
    "minicpm3": ("MiniCPM3Config", {key: value for key, value in latent.items()} | rope() | dict(
        v_head_dim=4, scale_emb=3.0, scale_depth=0.9, dim_model_base=12, tie_word_embeddings=False)),
    "afmoe": ("AfmoeConfig", llama_like | rope() | dict(
        num_hidden_layers=4, head_dim=8, num_attention_heads=6, num_key_value_heads=2, num_dense_layers=1,
        moe_intermediate_size=5, num_experts=6, num_experts_per_tok=2, num_shared_experts=2, route_scale=1.7,
        global_attn_every_n_layers=3, sliding_window=4, mup_enabled=True, attention_bias=True)),
    "afmoe-sparse": ("AfmoeConfig", llama_like | rope(60.0) | dict(
        num_hidden_layers=2, head_dim=6, num_dense_layers=0, moe_intermediate_size=7, num_experts=4, num_experts_per_tok=3,
        num_shared_experts=1, sliding_window=5, layer_types=["full_attention", "sliding_attention"],
        tie_word_embeddings=True, rms_norm_eps=0.01)),
    "xglm": ("XGLMConfig", dict(
        vocab_size=43, d_model=18, ffn_dim=22, num_layers=2, attention_heads=3, max_position_embeddings=40, pad_token_id=1,
        bos_token_id=0, eos_token_id=2)),
    "xglm-relu": ("XGLMConfig", dict(
        vocab_size=43, d_model=20, ffn_dim=22, num_layers=3, attention_heads=5, max_position_embeddings=40,
        scale_embedding=False, activation_function="relu", tie_word_embeddings=False, pad_token_id=1, bos_token_id=0,
        eos_token_id=2)),
    "ctrl": ("CTRLConfig", dict(
        vocab_size=43, n_positions=40, n_embd=18, dff=22, n_layer=2, n_head=3)),
    "modernbert-decoder": ("ModernBertDecoderConfig", usual | dict(
        hidden_size=24, num_attention_heads=3, intermediate_size=22, num_hidden_layers=4, local_attention=8, norm_eps=1e-4,
        pad_token_id=0, cls_token_id=1, sep_token_id=2, rope_parameters=dict(
            full_attention=dict(rope_type="default", rope_theta=300.0),
            sliding_attention=dict(rope_type="default", rope_theta=40.0)))),
    "modernbert-decoder-biased": ("ModernBertDecoderConfig", usual | dict(
        hidden_size=18, num_attention_heads=3, intermediate_size=20, num_hidden_layers=2, local_attention=6,
        norm_bias=True, attention_bias=True, mlp_bias=True, classifier_bias=True, decoder_bias=False,
        classifier_activation="silu", hidden_activation="relu", pad_token_id=0, cls_token_id=1, sep_token_id=2,
        tie_word_embeddings=False, layer_types=["sliding_attention", "full_attention"])),
    "youtu": ("YoutuConfig", {key: value for key, value in latent.items()} | dict(rope_parameters=dict(
        rope_type="yarn", rope_theta=80.0, factor=4.0, original_max_position_embeddings=10, beta_fast=2.0, beta_slow=0.25,
        mscale=1.0, mscale_all_dim=0.8), tie_word_embeddings=False, attention_bias=True)),
    "glm4_moe_lite": ("Glm4MoeLiteConfig", latent | rope() | dict(
        num_hidden_layers=3, mlp_layer_types=["dense", "sparse", "sparse"], moe_intermediate_size=5, n_routed_experts=6,
        n_shared_experts=2, num_experts_per_tok=2, rms_norm_eps=0.01)),
}
