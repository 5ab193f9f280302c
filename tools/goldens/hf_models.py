"""Configurations of the small random models that the Hugging Face goldens are made of: {name: (class, config, extras)}.
extras: tokens of the prompt, greedy tokens, and whether the checkpoint takes the multimodal form."""

HYBRID = {"hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "linear_conv_kernel_dim": 4,
          "tie_word_embeddings": False, "attention_bias": False,
          "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25,
                              "mrope_section": [11, 11, 10], "mrope_interleaved": True}}


def hybrid(vocab, hidden, inner, layers, heads, kv, dim, nk, nv, dk, dv, interval=4, **more):
    return {**HYBRID, "vocab_size": vocab, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": dim, "linear_num_key_heads": nk,
            "linear_num_value_heads": nv, "linear_key_head_dim": dk, "linear_value_head_dim": dv,
            "full_attention_interval": interval, **more}


def dense(vocab, hidden, inner, layers, heads, kv, theta, **more):
    scaling = more.pop("scaling", {"rope_type": "default"})
    return {"vocab_size": vocab, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": kv, "hidden_act": "silu", "tie_word_embeddings": False,
            "max_position_embeddings": 4096, "rope_parameters": {"rope_theta": theta, **scaling}, **more}


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "factor": 4.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}

MODELS = {
    # hybrid: head dims, head counts, tied, key heads equal to value heads, the real model's head sizes
    "hybrid-b-dim64-equal-heads": ("hybrid", hybrid(160, 64, 128, 4, 4, 1, 64, 2, 2, 64, 64), {"tokens": 300}),
    "hybrid-c-dim128-tied": ("hybrid", hybrid(192, 96, 160, 4, 3, 1, 128, 1, 3, 32, 32, tie_word_embeddings=True), {"tokens": 320}),
    "hybrid-d-dim256-one-to-four": ("hybrid", hybrid(128, 64, 96, 4, 2, 2, 256, 1, 4, 128, 128), {"tokens": 200}),
    "hybrid-e-unequal-dims": ("hybrid", hybrid(160, 80, 112, 6, 5, 5, 32, 3, 6, 16, 24, interval=2), {"tokens": 257}),
    "hybrid-f-multimodal-form": ("hybrid", hybrid(192, 64, 128, 4, 4, 2, 32, 2, 6, 32, 32, tie_word_embeddings=True),
                                 {"tokens": 130, "multimodal": True}),
    "hybrid-g-yarn": ("hybrid", hybrid(128, 64, 96, 4, 4, 2, 64, 2, 4, 32, 32, rope_parameters={
        **HYBRID["rope_parameters"], "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}), {"tokens": 256}),
    # dense
    "dense-llama-llama3-rope": ("llama", dense(192, 96, 160, 3, 6, 2, 5e5, rms_norm_eps=1e-5, scaling=LLAMA3), {"tokens": 240}),
    "dense-llama-linear-rope": ("llama", dense(192, 96, 160, 2, 3, 3, 1e5, rms_norm_eps=1e-5, tie_word_embeddings=True, scaling=LINEAR), {"tokens": 240}),
    "dense-llama-yarn-bias": ("llama", dense(160, 80, 128, 2, 5, 1, 1e4, rms_norm_eps=1e-6, attention_bias=True, mlp_bias=True, scaling=YARN), {"tokens": 240}),
    "dense-qwen2-bias-odd": ("qwen2", dense(192, 112, 144, 3, 7, 1, 1e6, rms_norm_eps=1e-6, tie_word_embeddings=True), {"tokens": 220}),
    "dense-qwen3-untied-odd": ("qwen3", dense(192, 72, 136, 3, 9, 3, 1e6, rms_norm_eps=1e-6, head_dim=32), {"tokens": 220}),
    "dense-qwen3-tied-yarn": ("qwen3", dense(160, 64, 128, 2, 5, 5, 1e6, rms_norm_eps=1e-6, head_dim=64, tie_word_embeddings=True, scaling=YARN), {"tokens": 260}),
}
