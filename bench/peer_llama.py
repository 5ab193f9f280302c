#!/usr/bin/env python3
"""peer_llama.py decode|prompt MODEL.gguf: one measurement of llama.cpp in this process, as JSON on standard output.

prompt: one llama_decode of N tokens, logits of the last. decode: N tokens one at a time after a short prompt, fixed ids
and no sampling, which favours llama.cpp by a little. Loading is not timed; a whole warm-up comes first.
"""
import argparse
import ctypes
import json
import time

import llama_cpp as llama


def ids_for(count, vocabulary, seed):
    """Fixed ids, spread over the ordinary part of the vocabulary."""
    return [1000 + (seed * 7919 + i * 104729) % (vocabulary - 2000) for i in range(count)]


class Peer:
    def __init__(self, path, threads, window, flash):
        llama.llama_backend_init()
        quiet = llama.llama_log_callback(lambda level, text, data: None)
        llama.llama_log_set(quiet, ctypes.c_void_p(0))
        self._quiet = quiet
        self.model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load {path}")
        options = llama.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = window, 512, 512
        options.n_threads = options.n_threads_batch = threads
        options.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.context = llama.llama_init_from_model(self.model, options)
        if not self.context:
            raise SystemExit("llama.cpp cannot make a context")
        self.vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))

    def clear(self):
        llama.llama_memory_clear(llama.llama_get_memory(self.context), True)

    def step(self, ids):
        """One llama_decode; the batch's default asks for the logits of its last token, and reading them waits for it."""
        tokens = (llama.llama_token * len(ids))(*ids)
        if llama.llama_decode(self.context, llama.llama_batch_get_one(tokens, len(ids))) != 0:
            raise SystemExit("llama_decode failed")
        return llama.llama_get_logits_ith(self.context, -1)[0]

    def measure(self, what, prompt_tokens, reply_tokens):
        self.clear()
        prompt = ids_for(prompt_tokens, self.vocabulary, 1)
        reply = ids_for(reply_tokens, self.vocabulary, 2)
        start = time.perf_counter()
        self.step(prompt)
        middle = time.perf_counter()
        if what == "decode":
            for token in reply:
                self.step([token])
        end = time.perf_counter()
        tokens, seconds = (reply_tokens, end - middle) if what == "decode" else (prompt_tokens, middle - start)
        return tokens / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["decode", "prompt"])
    parser.add_argument("model")
    parser.add_argument("--prompt-tokens", type=int, default=16)
    parser.add_argument("--reply-tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--flash", action="store_true")
    options = parser.parse_args()
    window = options.prompt_tokens + options.reply_tokens + 8
    peer = Peer(options.model, options.threads, max(window, 512), options.flash)
    sizes = (options.what, options.prompt_tokens, options.reply_tokens)
    peer.measure(*sizes)
    print(json.dumps({"tokens_per_second": peer.measure(*sizes), "system": llama.llama_print_system_info().decode()}))


if __name__ == "__main__":
    main()
