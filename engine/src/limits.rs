//! Every bound of the engine, with its reason. Nothing here is tunable by a user.
//!
//! A limit is where trouble stops being a surprise: queues are bounded, parsers stop at stated
//! caps, and a number that would overflow a format is refused at the edge.

/// Most requests in one plan: a request index is a `u32` and the top value means "none".
pub const REQUESTS_MAX: usize = u32::MAX as usize - 1;
/// Most slices in one vectored write. The kernel's own bound (`IOV_MAX`) is 1,024.
pub const WRITE_PARTS_MAX: usize = 1_000;
/// Most pacing cores: core numbers are `u16` in the log, and the conductor uses the top value.
pub const CORES_MAX: usize = 1_024;

/// Most machines that can share a run: far more than one server needs, and few enough to be listed.
pub const SHARDS_MAX: u32 = 10_000;

/// Bytes of a trace file mapped at once, a multiple of every page size in use: large enough that a
/// thread for their digest is worth its start, small enough that resident memory stays that of the
/// parsed rows.
pub const TRACE_WINDOW_BYTES: usize = 8 << 20;
/// Most bytes that a compressed trace may unpack to: a hundred times the largest public trace, and
/// a few minutes' reading, so that a file made to unpack without end is told from a large one. The
/// memory that unpacking takes does not depend on it.
pub const TRACE_UNPACKED_BYTES_MAX: u64 = 64 << 30;
/// Most bytes that the packed columns of rows read together may unpack to: the 65,536 rows that
/// pyarrow writes to a batch, with prompts of 64 KiB each.
pub const TRACE_BATCH_BYTES_MAX: u64 = 4 << 30;
/// Bytes that what stands in memory together, rows of columns, a line, a file of one tree, may
/// unpack to in any case.
pub const TRACE_UNPACK_BYTES_FREE: u64 = 128 << 20;
/// How many times their packed size, beyond that: ten times what text with long repeats takes, and
/// a hundredth of what zstd makes of nothing but zeros.
pub const TRACE_UNPACK_RATIO_MAX: u64 = 256;
/// Most values of columns in the pages of rows read together: a list of a million block ids for
/// each of 256 rows.
pub const TRACE_BATCH_VALUES_MAX: u64 = 1 << 28;
/// Most texts of a page of columns whose lengths are all unpacked at once: writers' pages have
/// twenty thousand rows, or as many as there is room for in a megabyte.
pub const TRACE_PAGE_TEXTS_MAX: u64 = 1 << 24;
/// Longest prompt that is made of words: three hundred times the longest of public traces.
pub const PROMPT_TOKENS_MAX: u32 = 1 << 28;
/// Most memory that requests rendered ahead take unless the user says more: a minute of the busiest
/// public trace at a thousand requests a second, and rendered in a few seconds before zero.
pub const RENDER_AHEAD_BYTES: u64 = 4 << 30;
/// Bytes of a reply that later turns repeat, for each token it may have: four times what a token of
/// English takes, so that text of which every character is escaped fits as well.
pub const REPLY_BYTES_PER_TOKEN: u32 = 16;
/// Bytes of a reply beside those: short ones have long words.
pub const REPLY_BYTES_SPARE: u32 = 1 << 10;
/// Tokens of a reply where the request sets no limit.
pub const REPLY_TOKENS: u32 = 4 << 10;
/// Most bytes of a reply: one that is longer is cut for the turns that repeat it.
pub const REPLY_BYTES_MAX: u32 = 4 << 20;
/// Most memory that is reserved for replies unless the user says more: those of fifty thousand
/// sessions at a time, twenty thousand bytes each, and made in less than a second.
pub const REPLIES_BYTES: u64 = 1 << 30;
/// Longest line of a trace: five hundred times the longest of the public ones.
pub const TRACE_LINE_BYTES_MAX: usize = 1 << 30;

/// Longest event of an answer's stream, and longest body of an answer that is not a stream: 16 MiB
/// holds a two-megabyte token with room, and a thousand hostile streams stay inside a big host.
pub const EVENT_BYTES_MAX: usize = 16 << 20;
/// Event bytes a reader keeps room for, so that ordinary events never allocate.
pub const EVENT_BYTES_KEPT: usize = 64 << 10;
/// Longest head of an answer.
pub const HEAD_BYTES_MAX: usize = 256 << 10;
/// Most header lines in a head.
pub const HEADERS_MAX: usize = 256;
/// Most interim (1xx) heads before an answer.
pub const INTERIM_HEADS_MAX: u32 = 16;
/// Most bytes of chunk extensions (and of padding in chunk sizes) in one answer.
pub const CHUNK_EXTENSION_BYTES_MAX: u32 = 64 << 10;
/// Most bytes of trailers behind a chunked answer.
pub const TRAILER_BYTES_MAX: u32 = 256 << 10;
/// Most choices in one event.
pub const CHOICES_MAX: usize = 4_096;
/// Deepest nesting of JSON that is skipped: one bit each.
pub const JSON_DEPTH_MAX: u32 = 128;
/// Bytes of an error answer's body that are looked at for words.
pub const ERROR_BODY_BYTES_KEPT: usize = 16 << 10;
/// Longest request that is looked through for what a server's words repeat of its prompt: some
/// milliseconds, on a core that has others to send.
pub const ECHO_BYTES_MAX: u64 = 1 << 20;
/// Bytes of requests that a core looks through in a second, however many fail, beyond the first
/// [`ECHO_BYTES_MAX`]: less than a hundredth of its time.
pub const ECHO_BYTES_PER_S: u64 = 1 << 20;
/// Longest words about a failure.
pub const ERROR_TEXT_BYTES_MAX: usize = 1 << 10;

const _: () = assert!(TRACE_WINDOW_BYTES.is_multiple_of(64 << 10));
// simd-json counts a document's bytes in 32 bits.
const _: () = assert!(TRACE_LINE_BYTES_MAX < u32::MAX as usize);
/// Most of one file below `/proc` or `/sys` that is read: `/proc/interrupts` grows with the CPUs.
pub const MACHINE_FILE_BYTES_MAX: u64 = 16 << 20;
/// Most threads of the mock: each has a model, a cache and a ring of its own.
pub const MOCK_THREADS_MAX: usize = 1_024;
/// Longest head of a request the mock reads.
pub const MOCK_HEAD_BYTES_MAX: usize = 64 << 10;
/// Most header lines of a request the mock reads.
pub const MOCK_HEADERS_MAX: usize = 128;
/// Longest request body the mock reads: the longest real one seen is 3.6 MB.
pub const MOCK_BODY_BYTES_MAX: usize = 64 << 20;
/// Requests that may wait on one connection of the mock behind the one being answered.
pub const MOCK_PIPELINED_MAX: usize = 64;
/// Bytes of an answer that may wait for a client that does not read; then it is cut off.
pub const MOCK_UNREAD_BYTES_MAX: usize = 64 << 20;

const _: () = assert!(WRITE_PARTS_MAX <= 1_024);
const _: () = assert!(CORES_MAX < u16::MAX as usize);
const _: () = assert!(ERROR_BODY_BYTES_KEPT <= EVENT_BYTES_KEPT);
const _: () = assert!(JSON_DEPTH_MAX == u128::BITS);
