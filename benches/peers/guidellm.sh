#!/usr/bin/env bash
# GuideLLM on a Mooncake trace, at the trace's own times; benches/peers/README.md has the arguments.
. "$(dirname "$0")/prepare.sh"
need guidellm "pip install guidellm==0.8.1"
make_tokenizer
# Its own default keeps gaps between requests instead, and it counts in seconds.
"${BIN}guidellm" run --disable-console-interactive \
    --backend kind=openai_http,target="$URL",model=bench \
    --profile kind=replay,schedule_turn=timestamp \
    --data kind=mooncake,time_scale=0.001,source.kind=json_file,source.path="$TRACE" \
    --tokenizer kind=huggingface_auto,model="$TOKENIZER" \
    --constraint kind=max_requests,count="$COUNT" \
    --output kind=json,path="$FOLDER/guidellm.json"
# Beyond what it can send it loses count of a few that were answered; the server knows better.
the_report_says "$FOLDER/guidellm.json" benchmarks.0.metrics.request_totals.errored 0
