//! Ideal cache hits: what an infinite prefix cache would find of each request.
