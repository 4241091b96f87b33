#!/usr/bin/env bash
# AIPerf on a Mooncake trace, at the trace's own times; benches/peers/README.md has the arguments.
. "$(dirname "$0")/prepare.sh"
need aiperf "pip install aiperf==0.13.0"
make_tokenizer
# Offline it takes names of its cache only, not folders.
[ -n "${PEER_TOKENIZER:-}" ] || TOKENIZER=local/tok
"${BIN}aiperf" profile --model bench --tokenizer "$TOKENIZER" --url "$URL" \
    --endpoint-type chat --streaming --input-file "$TRACE" \
    --custom-dataset-type mooncake_trace --fixed-schedule --random-seed 1 \
    --ui simple --no-gpu-telemetry --no-server-metrics --artifact-dir "$FOLDER/artifacts"
the_report_says "$FOLDER/artifacts/profile_export_aiperf.json" request_count.avg "$COUNT"
