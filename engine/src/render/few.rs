//! The first requests of a plan, rendered one by one, apart from those of the run.
//!
//! For what is sent before a run begins. The bytes are those of the run but for the request's own
//! name; each request lies whole in memory of its own, so there should be few.

use onbeat_shared::trace::Trace;
use onbeat_shared::units::RequestIndex;

use super::{Bodies, Part, Preview, RenderError, RenderOptions, check_prompts, fetch, head};
use crate::plan::Plan;

/// Renders the first `count` requests of a plan, or all it has. A turn that is to repeat live
/// replies has null in their places.
///
/// # Errors
/// When a header cannot be sent, or a prompt is too long to be one or cannot be read any more.
///
/// # Panics
/// When a request has 4 GiB or more.
pub fn few(
    plan: &Plan,
    trace: &Trace,
    options: &RenderOptions,
    count: u32,
) -> Result<Bodies, RenderError> {
    head::check_session_header(options)?;
    check_prompts(plan, trace)?;
    let commons: Vec<Vec<u8>> = (options.destinations.iter())
        .map(|destination| head::common(destination, options))
        .collect::<Result<_, _>>()?;
    let mut bodies = Bodies {
        chunks: Vec::new(),
        parts: Vec::new(),
        first_part: vec![0],
        body_bytes: Vec::new(),
        histories: None,
        copied: 0,
    };
    let preview = Preview::new(plan, trace, options)?;
    for (number, row) in (0_u32..count).zip(&plan.rows) {
        let mut body = Vec::new();
        preview.append(RequestIndex(number), &mut body);
        let body_bytes = body.len() as u64;
        let session = &plan.sessions[row.session.as_usize()];
        let mut bytes = commons[usize::from(row.target)].clone();
        let whole = plan.number(row.request).0;
        head::append_own(&mut bytes, options, whole, session, body_bytes);
        bytes.append(&mut body);
        let len = u32::try_from(bytes.len()).expect("a request has less than 4 GiB");
        bodies.parts.push(Part { chunk: number, start: 0, len });
        bodies.chunks.push(bytes.into_boxed_slice());
        bodies.first_part.push(u64::from(number) + 1);
        bodies.body_bytes.push(body_bytes);
    }
    fetch::check(&trace.recorded.texts, &trace.source.name)?;
    Ok(bodies)
}
