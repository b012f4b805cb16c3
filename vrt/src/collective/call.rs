//! A call of a collective operation, and the forms that it can have.
//!
//! What an operation is, its [`Description`] says once. A [`Call`] puts one together with the
//! communicator, the buffers and the place in the program, and runs it in one of four forms:
//!
//! | form | bytes | until when |
//! |---|---|---|
//! | [`block`](Call::block) | in the buffers | the call returns |
//! | [`immediate`](Call::immediate) | in the buffers | the request, which borrows them, is done |
//! | [`into_future`](IntoFuture::into_future) | apart from them | whenever: dropped, it goes on |
//! | [`persistent`](Call::persistent) | apart from them | whenever |
//!
//! In all of them what is wrong with the arguments is found at once, when the call is made or started, and
//! the rank has not taken part then.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::Rank;
use crate::collective::buffers::{AllApart, Bytes, Given, GivenMut, Room, Sent};
use crate::collective::caller::Caller;
use crate::collective::checks::expect_root;
use crate::datatype::wire::Apart;
use crate::operation::{
    At, Background, Error, ErrorKind, OrRefuse, Site, background, block_on_at, may_block,
};
use crate::request::{PersistentRequest, Request, Scope, immediate};
use vrt_core::comm::CommunicatorHandle;
use vrt_core::comm::algorithms::{Collective, Combined};
use vrt_core::comm::now::combine_now;

/// What a collective operation is.
pub(super) trait Description: Sized {
    /// The bytes that a rank contributes.
    type From: Bytes;
    /// Room for those that it gets.
    type To: Bytes;

    /// Whether what is in the receive buffer is sent, or a part of it stays as it is.
    const FILLED: bool = false;

    /// The root, if it alone has a send buffer.
    fn sender(&self) -> Option<Rank> {
        None
    }

    /// The root, if it alone has a receive buffer.
    fn receiver(&self) -> Option<Rank> {
        None
    }

    /// Checks the arguments. Gives the operation as PEs combine it, if they ever do.
    ///
    /// # Errors
    /// An argument is wrong.
    fn check(&self, caller: &Caller<'_>, from: &Self::From, to: &mut Self::To) -> Plan;

    /// Does it.
    ///
    /// # Safety
    /// The bytes, which were checked, are valid until the future is ready.
    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Self::From,
        to: &Self::To,
    ) -> Result<(), ErrorKind>;
}

/// How PEs combine an operation, if they ever do; or what is wrong with its arguments.
pub(super) type Plan = Result<Option<Combined>, ErrorKind>;

/// An operation that was begun.
pub(super) struct Running<'c> {
    pub(super) caller: Caller<'c>,
    pub(super) collective: &'c Collective,
}

/// A call of an operation.
pub(super) struct Call<'c, D, S, R> {
    comm: &'c CommunicatorHandle,
    site: Site,
    description: D,
    send: S,
    receive: R,
}

/// A description of an operation on buffers as a caller gives them.
pub(super) trait Takes<S: Given, R: GivenMut>:
    Description<From: Sent<S::Buffer>, To: Room<S::Buffer, R::Buffer>>
{
}

impl<D, S: Given, R: GivenMut> Takes<S, R> for D where
    D: Description<From: Sent<S::Buffer>, To: Room<S::Buffer, R::Buffer>>
{
}

/// The bytes of a call, and the operation as PEs combine it.
type Checked<D> = (<D as Description>::From, <D as Description>::To, Option<Combined>);
type BoxedOperation = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

impl<'c, D: Takes<S, R>, S: Given, R: GivenMut> Call<'c, D, S, R> {
    #[inline(always)]
    pub(super) fn new(
        comm: &'c CommunicatorHandle,
        site: Site,
        description: D,
        send: S,
        receive: R,
    ) -> Self {
        Call { comm, site, description, send, receive }
    }

    /// [`try_block`](Self::try_block), which panics when that gives an error.
    #[inline(always)]
    pub(super) fn block(self) {
        self.try_block().or_refuse();
    }

    /// Waits until it is done. What is small and lies in the buffers is done without a future.
    #[inline(always)]
    pub(super) fn try_block(self) -> Result<(), Error> {
        self.expect_root()?;
        let Call { comm, site, description, send, mut receive } = self;
        let elements = D::From::elements(send.given());
        let caller = Caller::new(comm, &elements);
        let (from, to, combined) = check(&caller, site, &description, &send, &mut receive, None)?;
        let done = match combined {
            Some(combined) if from.lie_in_buffers() && to.lie_in_buffers() => {
                // SAFETY: the buffers are borrowed for the blocking call.
                unsafe { combine_now(may_block(site), comm, &site, &combined) }
            }
            _ => Ok(false),
        };
        match done {
            Ok(true) => Ok(()),
            // SAFETY: as above.
            Ok(false) => unsafe { block(caller, site, description, from, to) },
            Err(kind) => Err(kind).at(site),
        }
    }

    /// Makes it a task of the rank.
    pub(super) fn immediate<'a, Sc>(self, scope: Sc) -> Request<'a, <(S, R) as Lent<'a>>::Data, Sc>
    where
        D: 'a,
        (S, R): Lent<'a>,
        Sc: Scope<'a>,
    {
        self.expect_root().or_refuse();
        let Call { comm, site, description, send, mut receive } = self;
        let elements = D::From::elements(send.given());
        let caller = Caller::new(comm, &elements);
        let (from, to, _) =
            check(&caller, site, &description, &send, &mut receive, None).or_refuse();
        // SAFETY: the request borrows the buffers, and what the description borrows, until it is
        // done.
        unsafe {
            let future = operation(caller, site, description, from, to);
            immediate(scope, (send, receive).data(), future, site)
        }
    }

    /// Keeps the arguments, to start it any number of times. Buffers that only the root has are not
    /// looked at elsewhere.
    pub(super) fn persistent<'a>(self) -> PersistentRequest<'a, S, R>
    where
        D: Clone + 'static,
        S: 'a,
        R: 'a,
    {
        let Call { comm, site, description, send, receive } = self;
        let comm = comm.clone();
        PersistentRequest::collective(send, receive, site, move |send: &mut S, receive: &mut R| {
            let (future, came) = apart(&comm, site, description.clone(), send, receive);
            let settle = move |receive: &mut R| settle::<D, S, R>(receive, came);
            (future, Some(Box::new(settle)))
        })
    }

    /// Checks that those who have no buffer for the root give none.
    #[inline(always)]
    fn expect_root(&self) -> Result<(), Error> {
        let (sender, receiver) = (self.description.sender(), self.description.receiver());
        if let Some(root) = sender {
            expect_root(self.comm, root, self.send.given().is_some()).at(self.site)?;
        }
        if let Some(root) = receiver {
            expect_root(self.comm, root, self.receive.given().is_some()).at(self.site)?;
        }
        Ok(())
    }
}

/// The bytes of a call, checked.
#[inline(always)]
fn check<D: Takes<S, R>, S: Given, R: GivenMut>(
    caller: &Caller<'_>,
    site: Site,
    description: &D,
    send: &S,
    receive: &mut R,
    apart: AllApart<'_>,
) -> Result<Checked<D>, Error> {
    let send = send.given().filter(|_| caller.is(description.sender()));
    let receive = receive.given_mut().filter(|_| caller.is(description.receiver()));
    let from = D::From::of(send, apart.is_some());
    let mut to = D::To::of(receive, send, D::FILLED, apart);
    let combined = description.check(caller, &from, &mut to).at(site)?;
    Ok((from, to, combined))
}

/// The operation on checked bytes.
///
/// # Safety
/// The bytes, and what the description borrows, are valid until the future is ready.
unsafe fn operation<D: Description>(
    Caller { comm, elements }: Caller<'_>,
    site: Site,
    description: D,
    from: D::From,
    mut to: D::To,
) -> impl Future<Output = Result<(), Error>> + use<D> {
    let (collective, elements) = (Collective::begin(comm, site), elements.to_owned_type());
    async move {
        let caller = Caller { comm: &collective.comm, elements: elements.datatype_ref() };
        let begun = Running { caller, collective: &collective };
        // SAFETY: as the caller promises.
        unsafe { description.run(&begun, &from, &to) }.await.at(site)?;
        to.finish_all().at(site)
    }
}

/// Waits for the operation; not inlined, because most are small.
///
/// # Safety
/// The bytes are valid during the call.
#[inline(never)]
unsafe fn block<D: Description>(
    caller: Caller<'_>,
    site: Site,
    description: D,
    from: D::From,
    to: D::To,
) -> Result<(), Error> {
    // SAFETY: as the caller promises; the future is ready before this returns.
    block_on_at(unsafe { operation(caller, site, description, from, to) }, site)
}

/// The operation with bytes of its own, and where those that come for the buffer are kept.
fn apart<D: Takes<S, R> + 'static, S: Given, R: GivenMut>(
    comm: &CommunicatorHandle,
    site: Site,
    description: D,
    send: &S,
    receive: &mut R,
) -> (BoxedOperation, Vec<Apart>) {
    let mut came = Vec::new();
    let elements = D::From::elements(send.given());
    let caller = Caller::new(comm, &elements);
    let (from, to, _) =
        check(&caller, site, &description, send, receive, Some(&mut came)).or_refuse();
    // SAFETY: the future has all bytes that it uses, and the description borrows nothing.
    (Box::pin(unsafe { operation(caller, site, description, from, to) }), came)
}

/// Puts what has come apart into the receive buffer.
fn settle<D, S, R>(receive: &mut R, came: Vec<Apart>) -> Result<(), ErrorKind>
where
    D: Takes<S, R>,
    S: Given,
    R: GivenMut,
{
    match receive.given_mut() {
        Some(buffer) => D::To::settle(buffer, came),
        None => Ok(()),
    }
}

/// What a request gives back of the buffers that were lent to it: the one that is received into, if
/// there is one.
pub(super) trait Lent<'a> {
    type Data: 'a + ?Sized;

    fn data(self) -> &'a Self::Data;
}

impl<'a, S, R: 'a + ?Sized> Lent<'a> for (S, &'a mut R) {
    type Data = R;

    fn data(self) -> &'a R {
        self.1
    }
}

impl<'a, S: 'a + ?Sized> Lent<'a> for (&'a S, ()) {
    type Data = S;

    fn data(self) -> &'a S {
        self.0
    }
}

impl<'a> Lent<'a> for ((), ()) {
    type Data = ();

    fn data(self) -> &'a () {
        &()
    }
}

impl<D, S, R> IntoFuture for Call<'_, D, S, R>
where
    D: Takes<S, R> + 'static,
    S: Given,
    R: GivenMut + Unpin,
{
    type Output = ();
    type IntoFuture = CallFuture<R>;

    fn into_future(self) -> CallFuture<R> {
        self.expect_root().or_refuse();
        let Call { comm, site, description, send, mut receive } = self;
        let (future, came) = apart(comm, site, description, &send, &mut receive);
        let (operation, settle) = (background(OrPanic(future)), settle::<D, S, R>);
        CallFuture { operation, receive, came, settle, site }
    }
}

/// Awaits an operation that has bytes of its own; what has come is put into the buffer at the end.
///
/// It can be dropped or forgotten. Others wait for this rank's part in the operation, so one that has
/// begun and is dropped goes on by itself, with a result that nobody sees.
pub(super) struct CallFuture<R> {
    operation: Background<OrPanic>,
    receive: R,
    came: Vec<Apart>,
    settle: fn(&mut R, Vec<Apart>) -> Result<(), ErrorKind>,
    site: Site,
}

impl<R: Unpin> Future for CallFuture<R> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.operation).poll(context));
        (this.settle)(&mut this.receive, mem::take(&mut this.came)).at(this.site).or_refuse();
        Poll::Ready(())
    }
}

/// An operation whose error is not passed over when it goes on by itself.
struct OrPanic(BoxedOperation);

impl Future for OrPanic {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context).map(OrRefuse::or_refuse)
    }
}
