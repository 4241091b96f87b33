//! One thread of the mock: its connections, its model and the task that steps it.
//!
//! Everything lives on one monoio thread, so nothing is locked and a step's tokens reach all their
//! connections before the next event is looked at; each connection then writes once. The thread's
//! own work (parsing a prompt of 600 KB takes some two milliseconds) is not part of the model's
//! time: it delays the next wake-up, and the model catches up.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::TcpListener as StdListener;
use std::os::unix::net::UnixStream as StdSocket;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use io_uring::IoUring;
use monoio::io::{AsyncReadRent, Canceller, OwnedWriteHalf, Splitable};
use monoio::net::{TcpListener, TcpStream, UnixStream};
use monoio::{IoUringDriver, LegacyDriver, RuntimeBuilder};
use sha2::{Digest, Sha256};

use super::bell::Bell;
use super::call::{Call, Kind, Refusal};
use super::ledger::Ledger;
use super::link::Link;
use super::model::{JobId, Model, QueueFull, Tally};
use super::reply::{self, Reply};
use super::request::Request;
use super::{MockConfig, Served, exposition};
use crate::clock::monotonic_ns;
use crate::limits::MOCK_UNREAD_BYTES_MAX;
use crate::pacer::Alarm;

/// Submission slots of the ring: one write for every running sequence, and reads.
const RING_ENTRIES: u32 = 4_096;
/// How long the model sleeps when nothing is to come: an hour, or until it is woken.
const IDLE_NS: i64 = 3_600_000_000_000;
/// How long to wait when no connection can be accepted (out of descriptors, say).
const ACCEPT_PAUSE_NS: i64 = 10_000_000;

/// Serves until the other end of `control` is closed.
pub(super) fn serve(
    config: &Arc<MockConfig>,
    ledger: &Arc<Ledger>,
    listener: StdListener,
    control: StdSocket,
    ready: &SyncSender<()>,
) -> io::Result<()> {
    let life = live(config, ledger, listener, control, ready);
    // A ring that can be built may still be one that cannot be entered, and would hang.
    let ring = IoUring::new(RING_ENTRIES).and_then(|ring| ring.submit());
    if ring.is_ok() && monoio::utils::detect_uring() {
        let builder = RuntimeBuilder::<IoUringDriver>::new().with_entries(RING_ENTRIES);
        return builder.build()?.block_on(life);
    }
    RuntimeBuilder::<LegacyDriver>::new().build()?.block_on(life)
}

/// A thread's life, once it has a runtime; `ready` is told when it takes connections.
async fn live(
    config: &Arc<MockConfig>,
    ledger: &Arc<Ledger>,
    listener: StdListener,
    control: StdSocket,
    ready: &SyncSender<()>,
) -> io::Result<()> {
    // Under epoll, monoio wants what it is given to be non-blocking already.
    let is_legacy = monoio::utils::is_legacy();
    listener.set_nonblocking(is_legacy)?;
    control.set_nonblocking(is_legacy)?;
    let listener = TcpListener::from_std(listener)?;
    let mut control = UnixStream::from_std(control)?;
    let server = Rc::new(Server::new(Arc::clone(config), Arc::clone(ledger))?);
    let accepting = Canceller::new();
    let accepter = monoio::spawn(Rc::clone(&server).accept(listener, accepting.handle()));
    let stepper = monoio::spawn(Rc::clone(&server).step());
    // Whoever waits for it may have gone away.
    let _ = ready.try_send(());
    // Nothing is ever written to the control socket: the read ends when the owner lets go.
    let (_, _) = control.read(Vec::with_capacity(1)).await;
    server.stopping.set(true);
    accepting.cancel();
    server.alarm.ring_at(1)?;
    accepter.await?;
    stepper.await?;
    server.hang_up_all().await;
    Ok(())
}

/// The thread's state.
struct Server {
    config: Arc<MockConfig>,
    ledger: Arc<Ledger>,
    model: RefCell<Model>,
    answers: RefCell<HashMap<JobId, Rc<Answering>>>,
    links: RefCell<HashMap<u64, Rc<Link>>>,
    link_gone: Bell,
    alarm: Alarm,
    stopping: Cell<bool>,
    numbers: Cell<u64>,
}

/// A reply under way, and the connection it is for.
struct Answering {
    reply: RefCell<Reply>,
    link: Rc<Link>,
}

/// The client is gone, so the connection is as well.
struct Gone;

type Socket = OwnedWriteHalf<TcpStream>;

impl Server {
    fn new(config: Arc<MockConfig>, ledger: Arc<Ledger>) -> io::Result<Self> {
        Ok(Self {
            model: RefCell::new(Model::new(&config)),
            config,
            ledger,
            answers: RefCell::default(),
            links: RefCell::default(),
            link_gone: Bell::default(),
            alarm: Alarm::new()?,
            stopping: Cell::new(false),
            numbers: Cell::new(0),
        })
    }

    /// Accepts connections until it is cancelled.
    async fn accept(
        self: Rc<Self>,
        listener: TcpListener,
        cancelled: monoio::io::CancelHandle,
    ) -> io::Result<()> {
        let pause = Alarm::new()?;
        while !self.stopping.get() {
            match listener.cancelable_accept(cancelled.clone()).await {
                Ok((stream, _)) => {
                    monoio::spawn(Rc::clone(&self).connection(stream));
                }
                Err(_) if self.stopping.get() => {}
                Err(_) => pause.until(monotonic_ns() + ACCEPT_PAUSE_NS).await?,
            }
        }
        Ok(())
    }

    /// Lets the model's time pass, and hands its tokens to the connections.
    async fn step(self: Rc<Self>) -> io::Result<()> {
        let mut told = Tally::default();
        while !self.stopping.get() {
            let now_ns = monotonic_ns();
            self.model.borrow_mut().advance(now_ns, &mut |token| {
                let mut answers = self.answers.borrow_mut();
                // A client that left has no answer any more.
                let Some(answering) = answers.get(&token.job) else { return };
                answering.reply.borrow_mut().token(&token);
                answering.link.news.ring();
                if token.last {
                    answers.remove(&token.job);
                }
            });
            let (tally, next_ns) = {
                let model = self.model.borrow();
                (model.tally(), model.next_ns())
            };
            if tally != told {
                self.ledger.tally(&told, &tally);
                told = tally;
            }
            self.alarm.wait(next_ns.unwrap_or(now_ns + IDLE_NS)).await?;
        }
        Ok(())
    }

    /// One connection from its first to its last byte.
    async fn connection(self: Rc<Self>, stream: TcpStream) {
        // A socket that refuses this option still works, only slower.
        let _ = stream.set_nodelay(true);
        let number = self.next_number();
        self.ledger.count(|counts| counts.connections += 1);
        let link = Rc::new(Link::new());
        self.links.borrow_mut().insert(number, Rc::clone(&link));
        let (read, mut write) = stream.into_split();
        let reading = monoio::spawn(Rc::clone(&link).read_all(read));
        let Gone = self.answer_all(&link, &mut write).await;
        link.hang_up();
        reading.await;
        drop(write);
        self.links.borrow_mut().remove(&number);
        self.link_gone.ring();
    }

    async fn hang_up_all(&self) {
        for link in self.links.borrow().values() {
            link.hang_up();
        }
        while !self.links.borrow().is_empty() {
            self.link_gone.heard().await;
        }
    }

    /// Answers requests in their order until the connection ends.
    async fn answer_all(&self, link: &Rc<Link>, socket: &mut Socket) -> Gone {
        loop {
            let request = link.requests.borrow_mut().next();
            if let Some(request) = request {
                link.room.ring();
                let keep_alive = request.keep_alive;
                self.ledger.count(|counts| counts.requests += 1);
                let went = self.answer(request, link, socket).await;
                if went.is_err() || !keep_alive {
                    return Gone;
                }
                continue;
            }
            let fault = link.requests.borrow().fault();
            if let Some(fault) = fault {
                let refusal = Refusal { status: fault.status, message: fault.words.to_owned() };
                let _ = self.refuse(&refusal, false, link, socket).await;
                return Gone;
            }
            if link.is_gone() || self.stopping.get() {
                return Gone;
            }
            let asked = link.requests.borrow_mut().take_continue();
            if asked {
                let go_on = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
                if link.write_all(socket, go_on).await.is_err() {
                    return Gone;
                }
            }
            link.news.heard().await;
        }
    }

    async fn answer(
        &self,
        request: Request,
        link: &Rc<Link>,
        socket: &mut Socket,
    ) -> Result<(), Gone> {
        let keep_alive = request.keep_alive;
        let bytes = match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/v1/completions") => {
                return self.generate(Kind::Completion, request, link, socket).await;
            }
            ("POST", "/v1/chat/completions") => {
                return self.generate(Kind::Chat, request, link, socket).await;
            }
            ("GET", "/health") => reply::document(200, "text/plain", "", keep_alive),
            ("GET", "/v1/models") => reply::models(&self.config, keep_alive),
            ("GET", "/metrics") => {
                let (load, usage) = {
                    let model = self.model.borrow();
                    (model.load(), model.cache_usage())
                };
                let page = exposition::page(&self.ledger.counts(), load, usage, &self.config.model);
                reply::document(200, "text/plain; version=0.0.4", &page, keep_alive)
            }
            (
                method,
                path @ ("/v1/completions"
                | "/v1/chat/completions"
                | "/v1/models"
                | "/health"
                | "/metrics"),
            ) => {
                let message = format!("{path} does not know {method}");
                let refusal = Refusal { status: 405, message };
                return self.refuse(&refusal, keep_alive, link, socket).await;
            }
            (_, path) => {
                let refusal = Refusal { status: 404, message: format!("{path}: not found") };
                return self.refuse(&refusal, keep_alive, link, socket).await;
            }
        };
        link.write_all(socket, bytes).await.map_err(|_left| Gone)
    }

    /// Queues a job for the model and passes its tokens on as they come.
    async fn generate(
        &self,
        kind: Kind,
        request: Request,
        link: &Rc<Link>,
        socket: &mut Socket,
    ) -> Result<(), Gone> {
        let keep_alive = request.keep_alive;
        let call = match Call::read(kind, &request.body, &self.config) {
            Ok(call) => call,
            Err(refusal) => return self.refuse(&refusal, keep_alive, link, socket).await,
        };
        let mut record = self.record(request, &call);
        let reply = Reply::new(&call, &self.config, self.next_number(), keep_alive);
        let arrived = self.model.borrow_mut().arrive(monotonic_ns(), call.job);
        let job = match arrived {
            Ok(job) => job,
            Err(QueueFull) => {
                let refusal = Refusal { status: 503, message: "the queue is full".into() };
                return self.refuse(&refusal, keep_alive, link, socket).await;
            }
        };
        let answering = Rc::new(Answering { reply: RefCell::new(reply), link: Rc::clone(link) });
        self.answers.borrow_mut().insert(job, Rc::clone(&answering));
        let next_ns = self.model.borrow().next_ns();
        if let Some(next_ns) = next_ns
            && self.alarm.ring_at(next_ns).is_err()
        {
            return Err(Gone);
        }
        let delivered = self.deliver(&answering, &mut record, socket).await;
        if delivered.is_err() {
            self.answers.borrow_mut().remove(&job);
            self.model.borrow_mut().cancel(job);
        }
        delivered
    }

    /// Writes an answer as it grows, once for all tokens of a step.
    async fn deliver(
        &self,
        answering: &Answering,
        record: &mut Served,
        socket: &mut Socket,
    ) -> Result<(), Gone> {
        let Answering { reply, link } = answering;
        loop {
            let (bytes, finished) = {
                let mut reply = reply.borrow_mut();
                let over = reply.unwritten() > MOCK_UNREAD_BYTES_MAX;
                record.completion_tokens = reply.tokens();
                record.cached_tokens = reply.cached_tokens();
                record.complete = reply.is_finished() && !over;
                if link.is_gone() || over {
                    record.complete = false;
                    self.ledger.ended(record.clone(), self.config.keep_served);
                    return Err(Gone);
                }
                (reply.take_bytes(), reply.is_finished())
            };
            let place =
                finished.then(|| self.ledger.ended(record.clone(), self.config.keep_served));
            let written = link.write_all(socket, bytes).await;
            match (place, written) {
                (Some(_), Ok(())) => return Ok(()),
                (Some(place), Err(_)) => {
                    self.ledger.abandoned(place);
                    return Err(Gone);
                }
                (None, Ok(())) => link.news.heard().await,
                // The loop counts what was generated, and ends.
                (None, Err(_)) => link.hang_up(),
            }
        }
    }

    /// The record of a request of which nothing has been answered.
    fn record(&self, request: Request, call: &Call) -> Served {
        let keep = self.config.keep_served;
        let digest = if keep { Sha256::digest(&request.body).into() } else { [0; 32] };
        Served {
            request_id: request.request_id,
            session: request.session,
            arrived_mono_ns: request.arrived_ns,
            prompt_tokens: call.job.prompt.tokens(),
            completion_tokens: 0,
            cached_tokens: 0,
            body_bytes: request.body.len() as u64,
            body_digest: digest,
            complete: false,
        }
    }

    async fn refuse(
        &self,
        refusal: &Refusal,
        keep_alive: bool,
        link: &Link,
        socket: &mut Socket,
    ) -> Result<(), Gone> {
        self.ledger.count(|counts| counts.refused += 1);
        let bytes = reply::refusal(refusal, keep_alive);
        link.write_all(socket, bytes).await.map_err(|_left| Gone)
    }

    fn next_number(&self) -> u64 {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        number
    }
}
