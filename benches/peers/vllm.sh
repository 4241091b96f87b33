#!/usr/bin/env bash
# vLLM's benchmark client at a constant rate; benches/peers/README.md has the arguments.
. "$(dirname "$0")/prepare.sh"
need vllm "pip install vllm"
make_tokenizer
# Gaps are gamma distributed: the larger the burstiness, the more equal they are.
"${BIN}vllm" bench serve --backend openai-chat --base-url "$URL" \
    --endpoint /v1/chat/completions --model bench --tokenizer "$TOKENIZER" \
    --dataset-name random --random-input-len "$INPUT" --random-output-len "$OUTPUT" \
    --num-prompts "$COUNT" --request-rate "$RATE" --burstiness 1000000
