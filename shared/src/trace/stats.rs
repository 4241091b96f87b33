//! What a trace is like, in numbers: rates, burstiness, lengths, sessions, ideal cache hits.
