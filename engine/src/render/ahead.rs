//! Rendering during the run: a window of whole requests that moves through the plan.
//!
//! One thread renders each core's requests in plan order, as far ahead as the core's share of the
//! budget reaches, and takes the memory back when the core is done with a request. What a request
//! waits for before it is sent comes before it in the plan, so whoever holds memory depends only on
//! requests that are rendered: the window always moves on. A share holds at least its core's
//! largest request; a plan for which the budget cannot do that is refused. The bytes are those of
//! [`render`](super::render). Nothing here waits or starts a thread: that is the conductor's.

use std::sync::Arc;

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::recorded::Content;

use crate::plan::Plan;
use crate::prompt::TextKey;
use crate::render::around::{Around, Closings};
use crate::render::body::texts;
use crate::render::page::{Filling, PAGE_BYTES, Pages, Rendered, pages_for};
use crate::render::supply::{Source, Window};
use crate::render::{Budget, RenderError, RenderOptions, fetch, head};

/// What a page takes besides its bytes: its places in two queues, the request it belongs to, the
/// allocator's own.
const PAGE_COST: u64 = PAGE_BYTES as u64 + 256;
/// What a planned request takes for the whole run: its place, its entry in the core's table and its
/// room among those that wait.
const REQUEST_COST: u64 = 4 + 8 + 16;
/// Requests rendered before zero between two questions whether the user still wants the run.
const FILL_STEP: usize = 256;

/// Renders a plan ahead of the cores that send it.
#[derive(Debug)]
pub struct Renderer {
    plan: Arc<Plan>,
    trace: Trace,
    options: RenderOptions,
    /// For each server, what all heads start with.
    commons: Vec<Vec<u8>>,
    /// For each output limit, what stands behind the text.
    closings: Closings,
    lanes: Vec<Lane>,
    /// The head's own half of the request at hand.
    own: Vec<u8>,
    /// What stands around its text.
    around: Around,
}

/// What is kept for one core.
#[derive(Debug)]
struct Lane {
    core: u16,
    window: Arc<Window>,
    pages: Pages,
    /// Requests given back whose memory is free again.
    shells: Vec<Arc<Rendered>>,
    /// Requests given back that the kernel still reads.
    lent: Vec<Arc<Rendered>>,
    /// The next request to render, and the most pages it can take; the plan's length at the end.
    next: usize,
    needs: usize,
}

/// What one step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request was rendered.
    Rendered,
    /// The budget is used up until a core gives something back.
    Full,
    /// Every request of the plan has been rendered.
    Finished,
    /// A recorded text cannot be read any more: see [`Renderer::check`].
    Unreadable,
}

/// What one core's requests take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Demand {
    largest: u64,
    all: u64,
}

impl Renderer {
    /// Shares the budget among the cores; nothing is rendered yet.
    ///
    /// # Errors
    /// When the budget cannot hold the largest request of every core, or a header cannot be sent.
    pub(super) fn new(
        plan: Arc<Plan>,
        trace: Trace,
        options: RenderOptions,
        cores: u16,
        budget: Budget,
    ) -> Result<Self, RenderError> {
        head::check_session_header(&options)?;
        let commons: Vec<Vec<u8>> = options
            .destinations
            .iter()
            .map(|destination| head::common(destination, &options))
            .collect::<Result<_, _>>()?;
        let closings = Closings::of(&plan, &trace, &options);
        let mut renderer = Self {
            plan,
            trace,
            options,
            commons,
            closings,
            lanes: Vec::new(),
            own: Vec::new(),
            around: Around::default(),
        };
        let shares = renderer.shares(cores, budget)?;
        let (places, requests) = Window::places(&renderer.plan.rows, usize::from(cores));
        for (core, (pages, requests)) in (0..).zip(shares.into_iter().zip(requests)) {
            let (next, needs) = renderer.next_of(core, 0);
            renderer.lanes.push(Lane {
                core,
                window: Arc::new(Window::new(&places, requests, pages)),
                pages: Pages::new(pages),
                shells: Vec::new(),
                lent: Vec::new(),
                next,
                needs,
            });
        }
        Ok(renderer)
    }

    /// The cores' ends.
    #[must_use]
    pub fn source(&self) -> Source {
        Source::Ahead(self.lanes.iter().map(|lane| Arc::clone(&lane.window)).collect())
    }

    /// What is about to happen, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let pages: usize = self.lanes.iter().map(|lane| lane.pages.most()).sum();
        format!(
            "requests are rendered during the run, up to {} MB of them ahead",
            (pages * PAGE_BYTES).div_ceil(1_000_000)
        )
    }

    /// Renders until the budget is used up or nothing is left to render, or `go_on`, which is asked
    /// now and then, says no.
    pub fn fill(&mut self, go_on: &mut dyn FnMut() -> bool) {
        while go_on() {
            for _ in 0..FILL_STEP {
                if self.step() != Step::Rendered {
                    return;
                }
            }
        }
    }

    /// Takes back what the cores have given back and renders one request, if there is room: of all
    /// cores whose next request fits, the one that comes first in the plan.
    pub fn step(&mut self) -> Step {
        let end = self.plan.rows.len();
        let mut chosen: Option<usize> = None;
        let mut finished = true;
        for place in 0..self.lanes.len() {
            let lane = &mut self.lanes[place];
            lane.take_back();
            finished &= lane.next == end;
            let fits = lane.next < end && lane.needs <= lane.pages.available();
            if fits && chosen.is_none_or(|other| self.lanes[other].next > self.lanes[place].next) {
                chosen = Some(place);
            }
        }
        match chosen {
            Some(place) if self.render_next(place) => Step::Rendered,
            Some(_) => Step::Unreadable,
            None if finished => Step::Finished,
            None => Step::Full,
        }
    }

    /// Whether every text could be read so far.
    ///
    /// # Errors
    /// When one could not; no request is rendered any more.
    pub fn check(&self) -> Result<(), RenderError> {
        fetch::check(&self.trace.recorded.texts, &self.trace.source.name)
    }

    /// Bytes of request memory there are by now, in use or free: never more than the budget.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let made = |lane: &Lane| lane.pages.made() as u64;
        let pages: u64 = self.lanes.iter().map(made).sum();
        pages * PAGE_COST + self.plan.rows.len() as u64 * REQUEST_COST
    }

    /// Renders the next request of a lane; whether it could be read.
    fn render_next(&mut self, place: usize) -> bool {
        let lane = &mut self.lanes[place];
        let row = &self.plan.rows[lane.next];
        let session = &self.plan.sessions[row.session.as_usize()];
        let common = &self.commons[usize::from(row.target)];
        self.own.clear();
        let number = self.plan.number(row.request).0;
        head::append_own(&mut self.own, &self.options, number, session, u64::MAX);
        let mut shell = lane.shells.pop().unwrap_or_default();
        let rendered = Arc::get_mut(&mut shell).expect("a shell is nobody else's");
        let head_room = common.len() + self.own.len();
        let mut filling = Filling::new(rendered, &mut lane.pages, head_room);
        self.around.fill(&self.plan, &self.trace, &self.options, &self.closings, row.request);
        filling.put(&self.around.before);
        let record = self.plan.record_of[row.request.as_usize()];
        self.own.clear();
        self.trace.recorded.append_text(record, &mut self.own);
        filling.put(&self.own);
        for (key, words) in texts(&self.plan, &self.trace, &self.options, row.request) {
            filling.text(key, words);
        }
        filling.put(&self.around.after);
        let body_bytes = filling.body_bytes();
        self.own.clear();
        head::append_own(&mut self.own, &self.options, number, session, body_bytes);
        filling.end([common, &self.own]);
        if self.trace.recorded.texts.fault().is_some() {
            return false;
        }
        lane.window.hand_over(row.request, shell);
        let (core, behind) = (lane.core, lane.next + 1);
        let (next, needs) = self.next_of(core, behind);
        (self.lanes[place].next, self.lanes[place].needs) = (next, needs);
        true
    }

    /// The first request of a core at `from` or behind it, and the most pages it can take.
    fn next_of(&self, core: u16, from: usize) -> (usize, usize) {
        let rows = &self.plan.rows;
        let own = rows[from..].iter().position(|row| row.core.0 == core);
        let next = own.map_or(rows.len(), |ahead| from + ahead);
        let needs = rows.get(next).map_or(0, |row| self.pages_at_most(row));
        (next, usize::try_from(needs).expect("a share holds its largest request"))
    }

    /// The most pages a request can take: its words at their longest.
    fn pages_at_most(&self, row: &PlanRow) -> u64 {
        let place = self.plan.record_of[row.request.as_usize()];
        let session = &self.plan.sessions[row.session.as_usize()];
        let mut around = Around::default();
        around.fill(&self.plan, &self.trace, &self.options, &self.closings, row.request);
        let around = self.commons[usize::from(row.target)].len()
            + head::own_bytes_at_most(&self.options, session)
            + around.bytes();
        let text = match self.trace.recorded.content_of(place) {
            Content::Words => {
                TextKey::room(self.trace.records[place as usize].input_tokens as usize)
            }
            _ => self.trace.recorded.text_len(place),
        };
        pages_for((around + text) as u64)
    }

    /// How many pages each core gets: enough for its largest request, and of the rest as its part
    /// of the plan asks for.
    fn shares(&self, cores: u16, budget: Budget) -> Result<Vec<usize>, RenderError> {
        let mut demands = vec![Demand::default(); usize::from(cores)];
        for row in &self.plan.rows {
            let pages = self.pages_at_most(row);
            let demand = &mut demands[usize::from(row.core.0)];
            demand.largest = pages.max(demand.largest);
            demand.all += pages;
        }
        let fixed = self.plan.rows.len() as u64 * REQUEST_COST;
        let least: u64 = demands.iter().map(|demand| demand.largest).sum();
        let needed = fixed + least * PAGE_COST;
        if needed > budget.bytes {
            let (named, needed, budget) = (budget.named, needed + budget.held, budget.told());
            return Err(RenderError::WindowOverBudget { needed, budget, named });
        }
        let spare = (budget.bytes - fixed) / PAGE_COST - least;
        Ok(divide(spare, &demands))
    }
}

/// Divides `spare` pages, beyond the largest request of each, among cores as they demand.
fn divide(spare: u64, demands: &[Demand]) -> Vec<usize> {
    let wanted: u64 = demands.iter().map(|demand| demand.all - demand.largest).sum();
    let share = |demand: &Demand| {
        let wish = demand.all - demand.largest;
        let part = u128::from(spare) * u128::from(wish) / u128::from(wanted.max(1));
        let part = u64::try_from(part).map_or(wish, |part| part.min(wish));
        usize::try_from(demand.largest + part).expect("it fits the budget, which fits memory")
    };
    demands.iter().map(share).collect()
}

impl Lane {
    /// Takes in what the core has given back, but for what the kernel still reads.
    fn take_back(&mut self) {
        while let Some(rendered) = self.window.back.pop() {
            self.lent.push(rendered);
        }
        let mut place = 0;
        while place < self.lent.len() {
            if let Some(rendered) = Arc::get_mut(&mut self.lent[place]) {
                self.pages.take_back(rendered);
                self.shells.push(self.lent.swap_remove(place));
            } else {
                place += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use onbeat_shared::units::{CoreIndex, RequestIndex};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::plan::{PlanOptions, build};
    use crate::render::supply::Supply;
    use crate::render::tests::{request, trace, traces, with_prompts};
    use crate::render::{When, prepare, render};

    fn on_cores(trace: &Trace, cores: u16) -> Arc<Plan> {
        let options = PlanOptions { cores, ..PlanOptions::default() };
        Arc::new(build(trace, &options).expect("a plan"))
    }

    fn renderer(plan: &Arc<Plan>, trace: &Trace, cores: u16, bytes: u64) -> Renderer {
        let (options, budget) = (RenderOptions::default(), Budget { bytes, held: 0, named: true });
        Renderer::new(Arc::clone(plan), trace.clone(), options, cores, budget).expect("it fits")
    }

    /// The smallest budget that is not refused.
    fn least(plan: &Arc<Plan>, trace: &Trace, cores: u16) -> u64 {
        let (options, budget) =
            (RenderOptions::default(), Budget { bytes: 0, held: 0, named: true });
        let refused = Renderer::new(Arc::clone(plan), trace.clone(), options, cores, budget);
        match refused {
            Err(RenderError::WindowOverBudget { needed, .. }) => needed,
            other => panic!("{other:?}"),
        }
    }

    fn bytes_of(supply: &Supply, request: RequestIndex) -> Vec<u8> {
        let parts = supply.parts(request);
        assert_eq!(parts.len(), parts.clone().count());
        let bytes: Vec<u8> = parts.flatten().copied().collect();
        assert_eq!(supply.request_bytes(request), bytes.len() as u64);
        bytes
    }

    fn supplies(source: &Source, cores: u16) -> Vec<Supply> {
        (0..cores).map(|core| Supply::of(source, CoreIndex(core))).collect()
    }

    #[test]
    fn recorded_prompts_are_rendered_ahead_as_they_are_at_once() {
        let prompt = "tab\t and \"quotes\" ".repeat(2_000);
        let rows = [(9, vec![1, 2]), (3, vec![]), (8, vec![4; 900])];
        let trace = with_prompts(trace(&rows, 16), &[&prompt, "", "short"]);
        let options = PlanOptions { cores: 2, copies: 3, ..PlanOptions::default() };
        let plan = Arc::new(build(&trace, &options).expect("a plan"));
        let bodies = render(&plan, &trace, &RenderOptions::default()).expect("rendered");
        let budget = least(&plan, &trace, 2);
        let sent = send_all(&mut renderer(&plan, &trace, 2, budget), 2, budget);
        for (number, bytes) in (0..).zip(&sent) {
            assert!(*bytes == request(&bodies, number), "request {number}");
        }
    }

    /// Sends everything, each core what it has as soon as it has it, and gives what was sent.
    fn send_all(renderer: &mut Renderer, cores: u16, budget: u64) -> Vec<Vec<u8>> {
        let plan = Arc::clone(&renderer.plan);
        let mut supplies = supplies(&renderer.source(), cores);
        let mut sent = vec![Vec::new(); plan.rows.len()];
        let mut waiting: Vec<RequestIndex> = plan.rows.iter().map(|row| row.request).collect();
        loop {
            renderer.fill(&mut || true);
            assert!(renderer.memory_bytes() <= budget, "{} {budget}", renderer.memory_bytes());
            let before = waiting.len();
            waiting.retain(|&request| {
                let supply = &mut supplies[usize::from(plan.rows[request.as_usize()].core.0)];
                let ready = supply.ready(request);
                if ready {
                    sent[request.as_usize()] = bytes_of(supply, request);
                    supply.done(request);
                    supply.done(request);
                }
                !ready
            });
            if waiting.is_empty() {
                assert_eq!(renderer.step(), Step::Finished);
                return sent;
            }
            assert!(waiting.len() < before, "the window moves on");
        }
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_rendering_at_once(
            trace in traces(), seed in any::<u64>(), cores in 1_u16..4, copies in 1_u32..3,
            spare in 0_u64..100_000,
        ) {
            let options = PlanOptions { cores, copies, ..PlanOptions::default() };
            let plan = Arc::new(build(&trace, &options).expect("a plan"));
            let budget = least(&plan, &trace, cores) + spare;
            let mut ahead = renderer(&plan, &trace, cores, budget);
            ahead.options.seed = seed;
            let options = RenderOptions { seed, ..RenderOptions::default() };
            let whole = render(&plan, &trace, &options).expect("small");
            let sent = send_all(&mut ahead, cores, budget);
            for (number, bytes) in (0..).zip(sent) {
                prop_assert!(bytes == request(&whole, number), "request {number}");
            }
        }

        #[test]
        fn shares_hold_the_largest_and_add_up(
            cores in proptest::collection::vec((0_u64..100, 0_u64..10_000), 1..8),
            spare in 0_u64..20_000,
        ) {
            let demands: Vec<Demand> = cores
                .iter()
                .map(|&(largest, more)| Demand { largest, all: largest + more })
                .collect();
            let shares = divide(spare, &demands);
            let least: u64 = demands.iter().map(|demand| demand.largest).sum();
            prop_assert!(shares.iter().sum::<usize>() as u64 <= least + spare);
            for (&share, demand) in shares.iter().zip(&demands) {
                prop_assert!((demand.largest..=demand.all).contains(&(share as u64)));
            }
            let all: u64 = demands.iter().map(|demand| demand.all).sum();
            if all <= least + spare {
                prop_assert_eq!(shares.iter().sum::<usize>() as u64, all);
            }
        }
    }

    #[test]
    fn the_longest_bodies_pass_through_a_budget_of_two() {
        // 3.6 MB each, but for the small ones between them.
        let rows: Vec<(u32, Vec<u64>)> = (0_u32..12)
            .map(|row| (if row % 3 == 1 { 40 } else { 720_000 }, (0..u64::from(row)).collect()))
            .collect();
        let trace = trace(&rows, 512);
        let plan = on_cores(&trace, 1);
        let budget = 2 * least(&plan, &trace, 1);
        let mut ahead = renderer(&plan, &trace, 1, budget);
        let whole = render(&plan, &trace, &RenderOptions::default()).expect("fifty megabytes");
        let sent = send_all(&mut ahead, 1, budget);
        assert!(sent[0].len() > 3_500_000);
        assert!((0..).zip(&sent).all(|(number, bytes)| *bytes == request(&whole, number)));
        assert!(ahead.memory_bytes() < 12_000_000, "pages are used again");
    }

    #[test]
    fn what_the_kernel_still_reads_is_not_written_over() {
        let trace = trace(&[(2_000, vec![]), (2_000, vec![])], 16);
        let plan = on_cores(&trace, 1);
        let mut ahead = renderer(&plan, &trace, 1, least(&plan, &trace, 1));
        let [first, second] = [0, 1].map(RequestIndex);
        let mut supply = Supply::of(&ahead.source(), CoreIndex(0));
        assert!(!supply.ready(first), "nothing is rendered yet");
        assert_eq!((ahead.step(), ahead.step()), (Step::Rendered, Step::Full));
        assert!(supply.ready(first) && !supply.ready(second));
        let bytes = bytes_of(&supply, first);
        let shares: Vec<_> =
            (0..supply.parts(first).len()).map(|part| supply.share(first, part)).collect();
        supply.done(first);
        assert_eq!(ahead.step(), Step::Full);
        let lent: Vec<u8> = shares.iter().flat_map(|share| share.bytes()).copied().collect();
        assert_eq!(lent, bytes);
        drop(shares);
        assert_eq!((ahead.step(), ahead.step()), (Step::Rendered, Step::Finished));
        assert!(supply.ready(second));
    }

    #[test]
    fn a_core_that_holds_its_share_leaves_the_others_theirs() {
        let trace = trace(&vec![(2_000, vec![]); 12], 16);
        let plan = on_cores(&trace, 2);
        let mut ahead = renderer(&plan, &trace, 2, least(&plan, &trace, 2));
        let mut supplies = supplies(&ahead.source(), 2);
        let of_core = |core: u16| {
            plan.rows.iter().filter(move |row| row.core.0 == core).map(|row| row.request)
        };
        assert!(of_core(0).count() > 0 && of_core(1).count() > 1);
        for request in of_core(1) {
            ahead.fill(&mut || true);
            assert!(supplies[1].ready(request));
            supplies[1].done(request);
        }
    }

    #[test]
    fn a_budget_below_the_largest_request_is_refused_with_its_size() {
        let trace = trace(&[(100_000, vec![]), (10, vec![])], 16);
        let plan = on_cores(&trace, 1);
        let needed = least(&plan, &trace, 1);
        assert!((700_000..740_000).contains(&needed), "{needed}");
        let with = |when, budget_bytes| {
            let options = RenderOptions { when, budget_bytes, ..RenderOptions::default() };
            prepare(Plan::clone(&plan), trace.clone(), options, 1)
        };
        let small = with(When::Auto, Some(400_000)).expect_err("too small for either");
        assert!(matches!(small, RenderError::WindowOverBudget { budget: 400_000, .. }), "{small}");
        let below = with(When::Ahead, Some(needed - 1)).expect_err("a byte too small");
        assert!(below.to_string().contains(&format!("needs {needed} bytes")), "{below}");
        assert!(with(When::Ahead, Some(needed)).expect("just enough").renderer.is_some());
    }

    #[test]
    fn what_fits_is_rendered_at_once_unless_told_otherwise() {
        let trace = trace(&vec![(20_000, vec![]); 20], 16);
        let plan = on_cores(&trace, 1);
        let with = |when, budget_bytes| {
            let options = RenderOptions { when, budget_bytes, ..RenderOptions::default() };
            prepare(Plan::clone(&plan), trace.clone(), options, 1)
        };
        for (when, budget, ahead) in [
            (When::Auto, None, false),
            (When::Auto, Some(1_000_000), true),
            (When::All, None, false),
            (When::Ahead, None, true),
        ] {
            let prepared = with(when, budget).expect("it fits one way");
            assert_eq!(prepared.renderer.is_some(), ahead, "{when:?}");
            let bytes = prepared.plan.rows[0].body_bytes.map(NonZero::get);
            assert_eq!(bytes.is_some_and(|bytes| bytes > 100_000), !ahead, "{when:?}");
        }
        let refused = with(When::All, Some(1_000_000)).expect_err("two megabytes");
        assert!(refused.to_string().contains("--render ahead"), "{refused}");
    }
}
