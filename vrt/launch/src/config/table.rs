//! The table of options: [`Config`], its `with_*` methods, flags, variables and help come from here.
//!
//! A new option is an entry of this table, plus what its module does with it; `docs/options.md` is generated from the
//! table.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::choices::{Core, Net};
use crate::config::entry::{Entry, Field, config_options};
use vrt_balance::{LbReport, MovePinned};
use vrt_core::exchange::Protocol;
use vrt_core::migrate::MoveBy;
use vrt_core::options::{Size, Watch};

config_options! {
    // Documented where it is exported.
    #[expect(missing_docs, reason = "see above")]
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Config {
        pes: Option<NonZeroU32> {
            "--pes N", "VRT_PES";
            "Processing elements: processes that run ranks [default: one per available core, at most \
             one per rank]";
            /// Sets the number of PEs; 0 means one per available core,
            /// but no more than ranks.
            with_pes(pes: u32) = NonZeroU32::new(pes)
        }

        ranks: Option<NonZeroU32> {
            "--ranks N", "VRT_RANKS";
            "Virtual ranks in the job [default: 4 per PE]";
            /// Sets the number of ranks; 0 means 4 per PE.
            with_ranks(ranks: u32) = NonZeroU32::new(ranks)
        }

        node_size: Option<NonZeroU32> {
            "--node-size N", "VRT_NODE_SIZE";
            "Treat every N PEs as a node that shares no memory with others [default: all PEs are one \
             node]";
            /// Sets the number of PEs per node; 0 means that all PEs are one node.
            with_node_size(pes: u32) = NonZeroU32::new(pes)
        }

        net: Option<Net> {
            "--net HOW", "VRT_NET";
            "Transport between PEs [default: mpi under a launcher such as mpirun, else local]";
            /// Sets what carries messages between PEs.
            with_net(net: Net) = Some(net)
        }

        stack: Option<Size> {
            "--stack SIZE", "VRT_STACK";
            "Stack of a rank, such as 512K or 8M [default: 8M; less with more than 4,000 ranks]";
            /// Sets the stack of a rank, in bytes.
            with_stack(bytes: usize) = Some(Size(bytes))
        }

        slot: Option<Size> {
            "--slot SIZE", "VRT_SLOT";
            "Address space for the heap of a rank, such as 1G [default: as much as fits, up to 64G]";
            /// Sets the address space for the heap of a rank, in bytes.
            with_slot(bytes: usize) = Some(Size(bytes))
        }

        eager: Option<Size> {
            "--eager SIZE", "VRT_EAGER";
            "Longest message that is sent before its receive is known [default: 8K; 32K to other PEs of \
             the machine if there are more ranks than PEs]";
            /// Sets the length, in bytes, of the longest message that is sent before its receive is known.
            with_eager(bytes: usize) = Some(Size(bytes))
        }

        unexpected: Option<Size> {
            "--unexpected SIZE", "VRT_UNEXPECTED";
            "Memory for messages that a rank has not asked for yet, such as 64M; beyond it, sends to \
             the rank wait for their receives [default: a rank's share of an eighth of the memory, at \
             least 4M]";
            /// Sets how much memory, in bytes, messages without a matching receive may take per rank. Further sends to
            /// that rank then wait for their receives.
            with_unexpected(bytes: usize) = Some(Size(bytes))
        }

        lb: Option<String> {
            "--lb NAME", "VRT_LB";
            "Move ranks while the job runs: `auto` tries what helps, other names are strategies, such \
             as greedy-refine; `list` shows all [default: ranks stay]";
            /// Sets the strategy that moves ranks while the job runs.
            with_lb(name: impl Into<String>) = Some(name.into())
        }

        lb_arg: Vec<String> {
            "--lb-arg K=V", "VRT_LB_ARG";
            "A parameter of the strategy, such as home-bias=0.1; may be repeated";
            /// Adds a parameter of the strategy, such as `home-bias=0.1`.
            with_lb_arg(argument: impl Into<String>) += argument.into()
        }

        lb_period: Option<Duration> {
            "--lb-period TIME", "VRT_LB_PERIOD";
            "Time between balancing steps, such as 500ms [default: `auto` chooses; other strategies \
             balance when all ranks have called `migrate`]";
            /// Sets the time between two balancing steps.
            with_lb_period(period: Duration) = Some(period)
        }

        move_by: Option<MoveBy> {
            "--move HOW", "VRT_MOVE";
            "How ranks move [default: memory]";
            /// Sets how ranks move.
            with_move(move_by: MoveBy) = Some(move_by)
        }

        lb_predict: Option<String> {
            "--lb-predict NAME", "VRT_LB_PREDICT";
            "How loads are predicted from earlier ones: last, mean, median or linear, with arguments \
             after a colon, such as median:n=5; `list` shows all [default: last]";
            /// Sets how loads are predicted from earlier ones: `last`, `mean`, `median` or `linear`,
            /// with arguments behind a colon, such as `median:n=5`.
            with_lb_predict(name: impl Into<String>) = Some(name.into())
        }

        lb_dump: Option<PathBuf> {
            "--lb-dump FILE", "VRT_LB_DUMP";
            "Write the loads of all balancing steps to FILE.PE.json, in the format of DARMA vt's load \
             data";
            /// Sets the file that the loads of all steps are written to, as `FILE.PE.json`.
            with_lb_dump(file: impl Into<PathBuf>) = Some(file.into())
        }

        lb_learn: Option<PathBuf> {
            "--lb-learn FILE", "VRT_LB_LEARN";
            "With --lb auto: start with what earlier runs with the same arguments found, and save what \
             this run finds";
            /// Sets the file in which `auto` keeps its findings for the next run.
            with_lb_learn(file: impl Into<PathBuf>) = Some(file.into())
        }

        move_pinned: Option<MovePinned> {
            "--move-pinned WHAT", "VRT_MOVE_PINNED";
            "What to do when ranks cannot move because of what they hold [default: warn]";
            /// Sets what to do if ranks cannot be moved.
            with_move_pinned(what: MovePinned) = Some(what)
        }

        lb_report: Option<LbReport> {
            "--lb-report WHEN", "VRT_LB_REPORT";
            "When to report on balancing [default: end]";
            /// Sets what is reported about balancing.
            with_lb_report(report: LbReport) = Some(report)
        }

        private_thread_locals: bool {
            "--private-thread-locals", "VRT_PRIVATE_THREAD_LOCALS";
            "Give each rank its own thread-locals, such as those of `thread_local!` and of rand; \
             otherwise the ranks of a PE share those of its thread";
            /// Sets whether each rank gets its own thread-locals.
            with_private_thread_locals(yes: bool) = yes
        }

        no_huge_pages: bool {
            "--no-huge-pages", "VRT_NO_HUGE_PAGES";
            "Use pages of 4 KiB only; otherwise large heaps get pages of 2 MiB where the system allows \
             it";
            /// Sets whether only pages of 4 KiB are used.
            with_no_huge_pages(yes: bool) = yes
        }

        exchange: Option<String> {
            "--exchange NAME", "VRT_EXCHANGE";
            "Protocol of sparse exchanges: auto, pex, pcx, rsx, nbx or nbx-node; `list` explains them \
             [default: auto]";
            /// Sets how sparse exchanges find out who receives from whom.
            with_exchange(protocol: Protocol) = Some(protocol.name().to_owned())
        }

        loggp: Option<PathBuf> {
            "--loggp FILE", "VRT_LOGGP";
            "Network parameters for --exchange auto, as written by `sparse-mini loggp` [default: as \
             measured between PEs]";
            /// Sets the file that describes the network for which exchange protocols are chosen.
            with_loggp(file: impl Into<PathBuf>) = Some(file.into())
        }

        no_bind: bool {
            "--no-bind", "VRT_NO_BIND";
            "Do not bind PEs to cores [default: bound if there are enough cores]";
            /// Sets whether PEs are left unbound instead of bound to cores.
            with_no_bind(yes: bool) = yes
        }

        core: Option<Core> {
            "--core WHAT", "VRT_CORE";
            "What to add to core files of crashed PEs: `rank`, the stack and heap of the crashed rank; \
             a core is then written if the system allows any [default: as the system is set up, without \
             ranks]";
            /// Sets what core files of crashed PEs contain in addition to the usual contents.
            with_core(what: Core) = Some(what)
        }

        check_leaks: bool {
            "--check-leaks", "VRT_CHECK_LEAKS";
            "Report memory that ranks leave behind in their heaps";
            /// Sets whether memory that ranks leave in their heaps is reported.
            with_check_leaks(yes: bool) = yes
        }

        check_stacks: bool {
            "--check-stacks", "VRT_CHECK_STACKS";
            "Look for pointers into a PE's heap on the stacks of suspended ranks (slow)";
            /// Sets whether the stacks of suspended ranks are searched for pointers into a PE's heap.
            with_check_stacks(yes: bool) = yes
        }

        check_moves: bool {
            "--check-moves", "VRT_CHECK_MOVES";
            "Before each move, search all memory of the rank and report references to memory that is \
             not its own";
            /// Sets whether all memory of a rank is searched before each move.
            with_check_moves(yes: bool) = yes
        }

        watchdog: Option<Watch> {
            "--watchdog TIME", "VRT_WATCHDOG";
            "Name a rank that keeps its PE's thread for this long while others wait for it, such as 2s; \
             or `off` [default: 10s]";
            /// Sets the time after which the watchdog names a rank that keeps its PE's thread from others; `None`:
            /// never.
            with_watchdog(period: Option<Duration>) = Some(Watch(period))
        }

        trace: Option<PathBuf> {
            "--trace FILE", "VRT_TRACE";
            "Record what ranks and PEs do in FILE, for vrt-trace";
            /// Sets the file that events of ranks and PEs are recorded in.
            with_trace(file: impl Into<PathBuf>) = Some(file.into())
        }

        trace_limit: Option<Size> {
            "--trace-limit SIZE", "VRT_TRACE_LIMIT";
            "Size of the trace of all PEs together, such as 200M; beyond it only moves, balancing steps \
             and ends are recorded [default: 1G]";
            /// Sets how many bytes of trace all PEs together record.
            with_trace_limit(bytes: usize) = Some(Size(bytes))
        }

        monitor: Option<String> {
            "--monitor ADDRESS", "VRT_MONITOR";
            "Show the running job as a web page at this port (0: any free port), or at this address of \
             the machine, with a port. `vrtrun top` shows it on a terminal, without this option";
            /// Sets the port, or address of this machine with a port, at which a web page shows the running job.
            with_monitor(address: impl Into<String>) = Some(address.into())
        }

        statistics: bool {
            "--statistics", "VRT_STATISTICS";
            "Print at the end what each PE did and what its ranks used";
            /// Sets whether statistics of each PE are printed when the job ends.
            with_statistics(yes: bool) = yes
        }
    }
}
