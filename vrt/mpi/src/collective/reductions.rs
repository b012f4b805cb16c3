//! Reductions (MPI-4.1 sections 6.9 to 6.11).

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::algorithms::{Collective, Combined};
use vrt_core::comm::bytes::zeroed;

use super::form::{Operation, combined, forms, operation};
use super::inter;
use super::parts::{Source, Target, input_of, output_of};
use super::root::{Root, root_of};
use crate::call::Call;
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole};
use crate::object::Use;
use crate::object::buffer::{is_in_place, not_in_place};
use crate::op::Reduction;

forms! {
    MPI_Reduce / MPI_Reduce_c, MPI_Ireduce / MPI_Ireduce_c, MPI_Reduce_init / MPI_Reduce_init_c(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: N, datatype: MPI_Datatype, op: MPI_Op,
        root: c_int,
    ) = reduce<N> now reduce_now;
    MPI_Allreduce / MPI_Allreduce_c, MPI_Iallreduce / MPI_Iallreduce_c,
    MPI_Allreduce_init / MPI_Allreduce_init_c(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: N, datatype: MPI_Datatype, op: MPI_Op,
    ) = allreduce<N> now allreduce_now;
    MPI_Reduce_scatter / MPI_Reduce_scatter_c, MPI_Ireduce_scatter / MPI_Ireduce_scatter_c,
    MPI_Reduce_scatter_init / MPI_Reduce_scatter_init_c(
        sendbuf: *const c_void, recvbuf: *mut c_void, counts: *const N, datatype: MPI_Datatype,
        op: MPI_Op,
    ) = reduce_scatter<N>;
    MPI_Reduce_scatter_block / MPI_Reduce_scatter_block_c,
    MPI_Ireduce_scatter_block / MPI_Ireduce_scatter_block_c,
    MPI_Reduce_scatter_block_init / MPI_Reduce_scatter_block_init_c(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: N, datatype: MPI_Datatype, op: MPI_Op,
    ) = reduce_scatter_block<N>;
    MPI_Scan / MPI_Scan_c, MPI_Iscan / MPI_Iscan_c, MPI_Scan_init / MPI_Scan_init_c(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: N, datatype: MPI_Datatype, op: MPI_Op,
    ) = scan<N>;
    MPI_Exscan / MPI_Exscan_c, MPI_Iexscan / MPI_Iexscan_c, MPI_Exscan_init / MPI_Exscan_init_c(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: N, datatype: MPI_Datatype, op: MPI_Op,
    ) = exscan<N>;
}

#[inline(always)]
unsafe fn reduce_now<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> Outcome<bool> {
    let comm = call.process.comm(comm)?;
    if comm.is_inter() {
        return Ok(false);
    }
    let Reduction::Predefined(operator) = Reduction::of(call.process, op, datatype)? else {
        return Ok(false);
    };
    let root = root_of(&comm, root)?;
    let (at, out) = match root {
        Root::There(root) => (root, None),
        _ => match Target::of(&call.process.types, recvbuf, count, datatype)?.direct() {
            None => return Ok(false),
            out => (numbers::index(comm.engine.rank), out),
        },
    };
    // The contribution is copied before anything is written, so it may be in place.
    let sendbuf = if root == Root::Here && is_in_place(sendbuf) { recvbuf } else { sendbuf };
    not_in_place(sendbuf)?;
    let Some(data) = Source::of(&call.process.types, sendbuf, count, datatype)?.direct() else {
        return Ok(false);
    };
    // SAFETY: as the program promises.
    unsafe { combined(call, &comm, &Combined::reduce(operator, Some(at), data, out)) }
}

unsafe fn reduce<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    op: MPI_Op,
    root: c_int,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, site) = (call.process.comm(comm)?, *call.site);
    let root = root_of(&comm, root)?;
    let reduction = Reduction::of(call.process, op, datatype)?;
    let target = match root {
        Root::Here => {
            not_in_place(recvbuf)?;
            Some(Target::of(&call.process.types, recvbuf, count, datatype)?)
        }
        _ => None,
    };
    let in_place = is_in_place(sendbuf) && root == Root::Here && !comm.is_inter();
    let contributes = !comm.is_inter() || matches!(root, Root::There(_));
    let sendbuf = if in_place { recvbuf } else { sendbuf };
    if contributes {
        not_in_place(sendbuf)?;
    }
    let source = Source::of(&call.process.types, sendbuf, count, datatype)?;
    operation(move || {
        let (comm, source, target) = (Rc::clone(&comm), source.clone(), target.clone());
        let reduction = reduction.clone();
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    return inter::reduce(&comm, root, &source, target, &reduction, site).await;
                }
                let data = source.copy()?;
                let mut result = zeroed(target.as_ref().map_or(0, Target::len))?;
                let out = target.as_ref().map(|_| output_of(&mut result));
                let at =
                    if let Root::There(at) = root { at } else { numbers::index(comm.engine.rank) };
                let collective = Collective::begin(&comm.engine, site);
                let op = reduction.as_engine();
                collective.reduce(Some(at), &op, input_of(&data), out).await?;
                if let Some(target) = &target {
                    target.fill(&result);
                }
                Ok(())
            }
        }
    })
}

#[inline(always)]
unsafe fn allreduce_now<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Outcome<bool> {
    let comm = call.process.comm(comm)?;
    if comm.is_inter() {
        return Ok(false);
    }
    let Reduction::Predefined(operator) = Reduction::of(call.process, op, datatype)? else {
        return Ok(false);
    };
    not_in_place(recvbuf)?;
    // As in `reduce_now`.
    let sendbuf = if is_in_place(sendbuf) { recvbuf } else { sendbuf };
    let source = Source::of(&call.process.types, sendbuf, count, datatype)?;
    let target = Target::of(&call.process.types, recvbuf, count, datatype)?;
    let (Some(data), Some(out)) = (source.direct(), target.direct()) else { return Ok(false) };
    // SAFETY: as the program promises.
    unsafe { combined(call, &comm, &Combined::reduce(operator, None, data, Some(out))) }
}

unsafe fn allreduce<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, site) = (call.process.comm(comm)?, *call.site);
    let reduction = Reduction::of(call.process, op, datatype)?;
    not_in_place(recvbuf)?;
    let in_place = is_in_place(sendbuf);
    if in_place && comm.is_inter() {
        not_in_place(sendbuf)?;
    }
    let sendbuf = if in_place { recvbuf } else { sendbuf };
    let source = Source::of(&call.process.types, sendbuf, count, datatype)?;
    let target = Target::of(&call.process.types, recvbuf, count, datatype)?;
    operation(move || {
        let (comm, source, target) = (Rc::clone(&comm), source.clone(), target.clone());
        let reduction = reduction.clone();
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    return inter::allreduce(&comm, &source, &target, &reduction, site).await;
                }
                let op = reduction.as_engine();
                let collective = Collective::begin(&comm.engine, site);
                // Long data without gaps is not copied.
                if let (Some(data), Some(out), false) = (source.direct(), target.direct(), in_place)
                {
                    return Ok(collective.reduce(None, &op, data, Some(out)).await?);
                }
                let data = source.copy()?;
                let mut result = zeroed(data.len())?;
                let out = Some(output_of(&mut result));
                collective.reduce(None, &op, input_of(&data), out).await?;
                target.fill(&result);
                Ok(())
            }
        }
    })
}

unsafe fn reduce_scatter<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const N,
    datatype: MPI_Datatype,
    op: MPI_Op,
    on: MPI_Comm,
) -> Outcome<Operation> {
    let size = numbers::index(call.process.comm(on)?.engine.size);
    // SAFETY: the program gives so many counts.
    let counts = unsafe { numbers::counts(counts, size)? };
    // SAFETY: as the program promises.
    unsafe { scatter_result(call, sendbuf, recvbuf, counts, (datatype, op), on) }
}

unsafe fn reduce_scatter_block<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    op: MPI_Op,
    on: MPI_Comm,
) -> Outcome<Operation> {
    let size = numbers::index(call.process.comm(on)?.engine.size);
    let counts = vec![numbers::count(count)?; size];
    // SAFETY: as the program promises.
    unsafe { scatter_result(call, sendbuf, recvbuf, counts, (datatype, op), on) }
}

/// A reduction of whose result each rank gets a part with a given number of elements.
///
/// # Safety
/// The buffers are valid when the operation runs.
unsafe fn scatter_result(
    call: Call,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: Vec<usize>,
    (datatype, op): (MPI_Datatype, MPI_Op),
    on: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, site) = (call.process.comm(on)?, *call.site);
    let reduction = Reduction::of(call.process, op, datatype)?;
    not_in_place(recvbuf)?;
    if is_in_place(sendbuf) && comm.is_inter() {
        not_in_place(sendbuf)?;
    }
    let total = numbers::sum(&counts)?;
    let sendbuf = if is_in_place(sendbuf) { recvbuf } else { sendbuf };
    let datatype = Use::of(&call.process.types, datatype)?;
    let source = Source::of_elements(sendbuf, total, datatype.clone())?;
    let own = counts[numbers::index(comm.engine.rank)];
    let lengths: Vec<usize> =
        counts.iter().map(|count| datatype.bytes(*count)).collect::<Outcome<_>>()?;
    let target = Target::of_elements(recvbuf.cast(), own, datatype)?;
    operation(move || {
        let (comm, source, target) = (Rc::clone(&comm), source.clone(), target.clone());
        let (reduction, lengths) = (reduction.clone(), lengths.clone());
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    return inter::reduce_scatter(
                        &comm, &source, &target, &lengths, &reduction, site,
                    )
                    .await;
                }
                let data = source.copy()?;
                let mut result = zeroed(target.len())?;
                let collective = Collective::begin(&comm.engine, site);
                let (op, out) = (reduction.as_engine(), output_of(&mut result));
                collective.reduce_scatter(&op, input_of(&data), &lengths, out).await?;
                target.fill(&result);
                Ok(())
            }
        }
    })
}

macro_rules! scan {
    ($($name:ident is exclusive: $exclusive:literal;)*) => {$(
        unsafe fn $name<N: Whole>(
            call: Call,
            sendbuf: *const c_void,
            recvbuf: *mut c_void,
            count: N,
            datatype: MPI_Datatype,
            op: MPI_Op,
            comm: MPI_Comm,
        ) -> Outcome<Operation> {
            // SAFETY: as the program promises.
            unsafe { prefix(call, (sendbuf, recvbuf), count, (datatype, op), $exclusive, comm) }
        }
    )*};
}
scan! {
    scan is exclusive: false;
    exscan is exclusive: true;
}

/// The reduction of the ranks up to this one, or up to the previous one.
///
/// # Safety
/// The buffers are valid when the operation runs.
unsafe fn prefix<N: Whole>(
    call: Call,
    (sendbuf, recvbuf): (*const c_void, *mut c_void),
    count: N,
    (datatype, op): (MPI_Datatype, MPI_Op),
    exclusive: bool,
    on: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, site) = (call.process.comm(on)?, *call.site);
    if comm.is_inter() {
        refuse!(MPI_ERR_COMM, "there are no scans between two groups");
    }
    let reduction = Reduction::of(call.process, op, datatype)?;
    not_in_place(recvbuf)?;
    let sendbuf = if is_in_place(sendbuf) { recvbuf } else { sendbuf };
    let source = Source::of(&call.process.types, sendbuf, count, datatype)?;
    let target = Target::of(&call.process.types, recvbuf, count, datatype)?;
    operation(move || {
        let (comm, source, target) = (Rc::clone(&comm), source.clone(), target.clone());
        let reduction = reduction.clone();
        async move {
            // SAFETY: as the program promises.
            unsafe {
                let data = source.copy()?;
                let mut result = zeroed(data.len())?;
                let collective = Collective::begin(&comm.engine, site);
                let (op, out) = (reduction.as_engine(), output_of(&mut result));
                collective.scan(&op, input_of(&data), out, exclusive).await?;
                // Before the first rank there is nothing: its buffer stays as it is.
                if !exclusive || comm.engine.rank > 0 {
                    target.fill(&result);
                }
                Ok(())
            }
        }
    })
}
