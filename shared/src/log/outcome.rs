//! What became of a request: ten outcomes people count, and the finer class that names the cause.
//!
//! Server misbehaviour is data, so every way a request can end has a number here and nowhere else.
//! The numbers are part of the log format: add at the end, never reuse. Which event leads to which
//! class is decided where the event is seen (`engine::wire`, `engine::replayer`), not here.

use super::bits::bits;

macro_rules! words {
    ($type:ident: $($variant:ident $name:literal $doc:literal;)*) => {
        impl $type {
            /// The name used in reports and exports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What it says, for whoever reads its name in a table.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $doc,)*
                }
            }
        }
    };
}

macro_rules! outcomes {
    ($($number:literal $variant:ident $name:literal $doc:literal;)*) => {
        /// How a request ended, as the summary counts it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Outcome {
            $(#[doc = $doc] $variant = $number,)*
        }

        impl Outcome {
            /// Every outcome, in the order reports list them.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$variant),*];
        }

        words! { Outcome: $($variant $name $doc;)* }
    };
}

outcomes! {
    0 Ok "ok" "A complete answer with success status.";
    1 Incomplete "incomplete" "The stream stopped politely but unfinished: no finish reason and no `[DONE]`.";
    2 HttpError "http_error" "The server answered with a status other than 2xx.";
    3 ConnectError "connect_error" "No connection could be made.";
    4 Timeout "timeout" "A time limit passed.";
    5 Disconnected "disconnected" "The connection broke before the answer was whole.";
    6 ProtocolError "protocol_error" "The answer broke the rules of HTTP or of the event stream.";
    7 StreamError "stream_error" "The server reported an error inside a 200 stream.";
    8 Cancelled "cancelled" "We ended it on purpose, as the plan or the user wished.";
    9 NeverSent "never_sent" "It was planned and never left.";
}

macro_rules! classes {
    ($($number:literal $variant:ident $outcome:ident $name:literal $doc:literal;)*) => {
        /// The cause of an outcome. One row here is one name in `outcomes.by_class`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Class {
            $(#[doc = $doc] $variant = $number,)*
        }

        impl Class {
            /// Every class with its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The class with this number in a log, if this version knows it.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The outcome this class belongs to.
            #[must_use]
            pub const fn outcome(self) -> Outcome {
                match self {
                    $(Self::$variant => Outcome::$outcome,)*
                }
            }
        }

        words! { Class: $($variant $name $doc;)* }
    };
}

classes! {
    0 Ok Ok "ok" "Complete.";
    1 NoFinish Incomplete "no_finish" "Clean end of the stream without `[DONE]` or a finish reason.";
    2 EmptyAnswer Incomplete "empty_answer"
        "A success status with an empty body, or with `[DONE]` and nothing before it.";
    3 HttpRedirect HttpError "http_redirect" "3xx: redirects are never followed.";
    4 Http4xx HttpError "http_4xx" "4xx other than 429.";
    5 Http429 HttpError "http_429" "429: the server asks for less.";
    6 Http5xx HttpError "http_5xx" "5xx.";
    7 HttpOther HttpError "http_other" "Any other status that is not 2xx.";
    8 ConnectRefused ConnectError "connect_refused" "The server refused the connection.";
    9 ConnectFailed ConnectError "connect_failed" "Any other failure to connect to the server.";
    10 ConnectTimeout Timeout "connect_timeout" "The connect limit passed.";
    11 FirstByteTimeout Timeout "first_byte_timeout" "No whole head of the answer within the limit.";
    12 IdleTimeout Timeout "idle_timeout" "The answer paused for longer than the limit.";
    13 TotalTimeout Timeout "total_timeout" "The whole exchange took longer than the limit.";
    14 ResetBeforeAnswer Disconnected "reset_before_answer" "Closed or reset before any byte of the answer.";
    15 ResetMidAnswer Disconnected "reset_mid_answer" "Reset after the answer began.";
    16 TruncatedBody Disconnected "truncated_body" "Closed before the promised length or last chunk.";
    17 NotHttp ProtocolError "not_http" "The answer is not HTTP/1.x.";
    18 BadHead ProtocolError "bad_head" "A malformed response head.";
    19 BadFraming ProtocolError "bad_framing" "A malformed chunk or contradictory framing.";
    20 OverLimit ProtocolError "over_limit" "The answer passed one of our stated limits.";
    21 BadEvent ProtocolError "bad_event" "An event's data is not the JSON it should be.";
    22 WrongContentType ProtocolError "wrong_content_type" "A 2xx answer that is neither an event stream nor JSON.";
    23 ErrorEvent StreamError "error_event"
        "An error object, `event: error` or `finish_reason: abort` (or its like) inside a 200 answer.";
    24 CancelledByPlan Cancelled "cancelled_by_plan" "The plan asked to cancel it.";
    25 Interrupted Cancelled "interrupted" "In flight when the user stopped the run.";
    26 CutAtEnd Cancelled "cut_at_end" "In flight when the run's own duration and grace ended.";
    27 NotReached NeverSent "not_reached" "The run ended before it was due.";
    28 PredecessorPending NeverSent "predecessor_pending" "The run ended while its predecessor was in flight.";
    29 ClientNoDescriptor ConnectError "client_no_descriptor" "Client side: out of file descriptors.";
    30 ClientNoPort ConnectError "client_no_port" "Client side: out of local ports.";
    31 ClientOther ConnectError "client_other" "Client side: any other local failure.";
    32 TlsExpired ConnectError "tls_expired" "The server's certificate has expired.";
    33 TlsNotYetValid ConnectError "tls_not_yet_valid" "The server's certificate is not valid yet.";
    34 TlsWrongName ConnectError "tls_wrong_name" "The server's certificate is for another name.";
    35 TlsUnknownIssuer ConnectError "tls_unknown_issuer" "No trusted authority issued the certificate.";
    36 TlsSelfSigned ConnectError "tls_self_signed" "The certificate is self-signed and not trusted.";
    37 TlsBadCertificate ConnectError "tls_bad_certificate" "Anything else about the server's certificate.";
    38 TlsNothingInCommon ConnectError "tls_nothing_in_common" "No TLS version, cipher or protocol in common.";
    39 TlsRefused ConnectError "tls_refused" "The server refused our certificate, or the lack of one.";
    40 TlsNotTls ConnectError "tls_not_tls" "The server does not speak TLS on this port.";
    41 TlsClosed ConnectError "tls_closed" "Closed or reset during the handshake.";
    42 TlsFailed ConnectError "tls_failed" "Any other failure of the handshake.";
    43 TlsBroken Disconnected "tls_broken" "A fatal alert or a damaged record in the middle of a session.";
    44 FailedElsewhere Incomplete "failed_elsewhere" "Failed in a run of another tool, which does not say how.";
}

impl Class {
    /// The class of a status that is not 2xx.
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            300..=399 => Self::HttpRedirect,
            429 => Self::Http429,
            400..=499 => Self::Http4xx,
            500..=599 => Self::Http5xx,
            _ => Self::HttpOther,
        }
    }

    /// Whether the trouble was on our side of the wire.
    #[must_use]
    pub const fn is_client_side(self) -> bool {
        matches!(self, Self::ClientNoDescriptor | Self::ClientNoPort | Self::ClientOther)
    }
}

/// Why the model stopped, as the answer said. Numbers are part of the log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FinishReason {
    /// The answer did not say.
    Unknown = 0,
    /// `stop`.
    Stop = 1,
    /// `length`.
    Length = 2,
    /// `tool_calls` or `function_call`.
    ToolCalls = 3,
    /// `content_filter`.
    ContentFilter = 4,
    /// Any other text.
    Other = 5,
}

impl FinishReason {
    /// The reason with this number in a log; unknown numbers read as [`FinishReason::Other`].
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Unknown,
            1 => Self::Stop,
            2 => Self::Length,
            3 => Self::ToolCalls,
            4 => Self::ContentFilter,
            _ => Self::Other,
        }
    }

    /// The name used in exports; `None` where the answer did not say.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Unknown => None,
            Self::Stop => Some("stop"),
            Self::Length => Some("length"),
            Self::ToolCalls => Some("tool_calls"),
            Self::ContentFilter => Some("content_filter"),
            Self::Other => Some("other"),
        }
    }
}

/// Rare facts about a request's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoneFlags(pub u8);

impl DoneFlags {
    /// `[DONE]` was seen.
    pub const DONE_MARK: Self = Self(1);
    /// It was sent again once because a reused connection had been closed under it.
    pub const RESENT: Self = Self(2);
    /// Bytes came after the answer's end and were ignored. The connection was dropped, unless they
    /// were events between `[DONE]` and a proper end of the body.
    pub const STRAY_BYTES: Self = Self(4);
    /// Its body was not rendered when it was due.
    pub const UNDERRUN: Self = Self(8);
    /// The answer arrived before the whole request had left.
    pub const EARLY_ANSWER: Self = Self(16);
    /// Later turns repeat the answer, and not all of it: its text found no room, or it has tool
    /// calls.
    pub const REPLY_CUT: Self = Self(32);
}

bits!(DoneFlags);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_names_are_distinct() {
        let mut names = std::collections::BTreeSet::new();
        for &class in Class::ALL {
            assert_eq!(Class::from_number(class as u8), Some(class));
            assert!(names.insert(class.name()), "{} twice", class.name());
        }
        assert_eq!(Class::from_number(200), None);
    }
}
