//! Admissions as a table: one row for each decision, and each pair of rows in the order of precedence.
#![allow(clippy::unwrap_used)]

use conclave_privacy::accounting::{PrivacyFilter, PrivacyUnit};

use super::*;
use crate::secure::Peers;
use crate::testing::{MEAN_TOML, budget, open_policy, open_request};

/// Everything that an admission rests on, to be changed row by row.
struct World {
    request: v1::OpenJob,
    wrong_digest: bool,
    party: &'static str,
    spoken: u32,
    signature: fn() -> Result<(), NotAdmitted>,
    policy: Policy,
    budget: Budget,
    header: Vec<String>,
    may_be_inert: bool,
    secure: Option<SecureSettings>,
    open_jobs: (usize, bool, u64),
    has_job: bool,
    is_masked: bool,
    idle: fn() -> Result<(), LedgerError>,
    is_open: bool,
    /// Remaining budget, and its part that no open job may still spend.
    room: (u64, u64),
    /// The same of the reserve of delta.
    room_reserve: (u64, u64),
    reserve: ReserveLeft,
}

impl World {
    /// A new job within all limits, to which the policy consents.
    fn new() -> Self {
        Self {
            request: open_request(MEAN_TOML),
            wrong_digest: false,
            party: "hospital-a",
            spoken: conclave_proto::PROTOCOL,
            signature: || Ok(()),
            policy: open_policy(),
            budget: budget(),
            header: vec!["height".into()],
            may_be_inert: false,
            secure: None,
            open_jobs: (0, false, 0),
            has_job: false,
            is_masked: false,
            idle: || Ok(()),
            is_open: false,
            room: (u64::MAX, u64::MAX),
            room_reserve: (u64::MAX, u64::MAX),
            reserve: ReserveLeft { set_aside: 0, left: 0 },
        }
    }

    fn replace(&mut self, from: &str, to: &str) {
        self.request.spec_toml = self.request.spec_toml.replace(from, to);
    }

    /// Has the job's answers leave masked, at an owner who admits that.
    fn mask(&mut self) {
        self.replace("parties = [\"hospital-a\"]", "parties = [\"hospital-a\", \"b\", \"c\"]");
        if !self.request.spec_toml.contains("[aggregation]") {
            self.request.spec_toml += "\n[aggregation]\nmode = \"secure\"\ncolluders = 1\n";
        }
        self.secure.get_or_insert(SecureSettings { allow: true, peers: Peers::Ca, ..SecureSettings::default() });
    }

    fn facts(&mut self) -> Facts<'_> {
        self.request.spec_digest = match self.wrong_digest {
            true => vec![0; 32],
            false => Sha256::digest(self.request.spec_toml.as_bytes()).to_vec(),
        };
        let (number, has_this, columns) = self.open_jobs;
        Facts {
            request: &self.request,
            party: self.party,
            spoken: self.spoken,
            signature: Box::new(self.signature),
            policy: &self.policy,
            budget: &self.budget,
            shard: ShardFacts {
                header: &self.header,
                names: &self.header,
                person_column: None,
                may_be_inert: self.may_be_inert,
                memory: Memory::Copies,
                unit: PrivacyUnit::default(),
                units: 1000,
            },
            precision: Precision::Double,
            secure: self.secure.as_ref(),
            open_jobs: OpenJobs { number, has_this, columns },
            ledger: LedgerFacts {
                has_job: self.has_job,
                is_masked: self.is_masked,
                idle: Box::new(self.idle),
                is_open: self.is_open,
                room: Box::new(|_| Ok(self.room())),
                reserve: self.reserve,
            },
        }
    }

    fn room(&self) -> Room {
        let spent = |units, reserve_units| Spent { units, reserve_units, ..Spent::default() };
        let (left, free) = (spent(self.room.0, self.room_reserve.0), spent(self.room.1, self.room_reserve.1));
        Room { spent: Spent::default(), left, free }
    }

    fn decide(&mut self) -> Decision {
        admit(self.facts())
    }
}

/// One reason not to open a job: the change that brings it about, and the decision.
struct Row {
    change: fn(&mut World),
    decision: &'static str,
    /// Part of the message.
    message: &'static str,
}

fn row(decision: &'static str, message: &'static str, change: fn(&mut World)) -> Row {
    Row { change, decision, message }
}

/// The decisions in their order of precedence.
fn rows() -> Vec<Row> {
    vec![
        row("InvalidInput", "a job id is 1 to 64 letters", |w| w.request.job = "a job".into()),
        row("InvalidInput", "is not an analyst's name", |w| w.request.analyst = "no name".into()),
        row("InvalidInput", "the job's digest is not that of its text", |w| w.wrong_digest = true),
        row("Unauthenticated", "it is not signed", |w| {
            w.signature = || Err(NotAdmitted::Unsigned(Fault::new(ErrorCode::Unauthenticated, "it is not signed")));
        }),
        row("Revoked", "the certificate is revoked", |w| {
            w.signature = || Err(NotAdmitted::Revoked(Fault::new(ErrorCode::Unauthenticated, "the certificate is revoked")));
        }),
        row("Full", "64 jobs are open there already", |w| w.open_jobs.0 = MAX_OPEN_JOBS),
        row("InvalidInput", "chains", |w| w.replace("chains = 2", "chains = 0")),
        row("InvalidInput", "the job's `parties` do not name \"elsewhere\"", |w| w.party = "elsewhere"),
        row("InvalidInput", "speak protocol 0, and", |w| w.spoken = 0),
        row("Policy", "the owner's max_memory_mib of 0: ask the owner", |w| w.policy.max_memory_mib = Some(0)),
        row("Full", "max_memory_mib of 1 leaves room for", |w| {
            (w.policy.max_memory_mib, w.open_jobs.2) = (Some(1), 1 << 20);
        }),
        row("Conflict", "opened for nothing", |w| w.idle = || Err(LedgerError::Job("opened for nothing".into()))),
        row("Policy", "is not among those whom the owner's policy admits", |w| w.policy.analysts = Some(Vec::new())),
        row("Policy", "the owner's policy admits the models", |w| w.policy.models = Some(Vec::new())),
        row("Policy", "does not admit column \"height\"", |w| w.policy.columns = Some(Vec::new())),
        row("InvalidInput", "the data have no column \"height\"", |w| w.header.clear()),
        row("Policy", "limit of 0.5 (max_epsilon_per_job)", |w| w.policy.max_epsilon_per_job = Some(0.5)),
        row("Policy", "limit of 1 (max_iterations_per_job)", |w| w.policy.max_iterations_per_job = Some(1)),
        row("Policy", "policy.releases does not admit", |w| w.policy.releases = Some(Vec::new())),
        row("Policy", "limit of 1000000 (min_noise_sd)", |w| w.policy.min_noise_sd = 1e6),
        row("Policy", "the owner admits no job whose answers leave masked", |w| {
            w.mask();
            w.secure = None;
        }),
        row("Policy", "secure.colluders_at_least", |w| {
            w.mask();
            w.secure.as_mut().unwrap().colluders_at_least = Some(2);
        }),
        row("Policy", "secure.pinned", |w| {
            w.mask();
            w.secure.as_mut().unwrap().peers = Peers::Pinned;
        }),
        row("Budget", "less is left there for alice: lower privacy.epsilon", |w| w.room = (0, 0)),
        row("Policy", "the owner has set none aside", |w| {
            w.replace("\"penalty\"", "\"barker\"");
            w.replace("draws = 10", "draws = 10\nbatch = 0.5");
            w.replace("noise_sd = 1.0", "");
            w.replace("delta = 1e-6", "delta = 1e-6\ndelta_reserve = 1e-7\nblocks = 4\nclip = 0.5");
        }),
        row("InvalidInput", "its bad_rows is \"drop\"", |w| w.may_be_inert = true),
        row("Full", "may still spend the budget that this one asks for", |w| w.room.1 = 0),
    ]
}

/// The decision's kind and its words.
fn shown(decision: Decision) -> (String, String) {
    match decision {
        Decision::Refused(fault) => (format!("{:?}", fault.code), fault.message),
        Decision::Revoked(fault) => ("Revoked".into(), fault.message),
        Decision::Full(why) => ("Full".into(), why),
        Decision::AskOwner(admitted) => ("AskOwner".into(), admitted.spec.name),
    }
}

fn assert_decides(world: &mut World, row: &Row, beside: &str) {
    let (decision, message) = shown(world.decide());
    assert!(decision == row.decision && message.contains(row.message), "{}, {beside}: {decision}: {message}", row.message);
}

#[test]
fn each_reason_not_to_open_a_job_has_its_decision() {
    for row in rows() {
        let mut world = World::new();
        (row.change)(&mut world);
        assert_decides(&mut world, &row, "alone");
    }
}

#[test]
fn of_two_reasons_the_earlier_one_decides() {
    let rows = rows();
    let mut pairs = 0;
    for (at, earlier) in rows.iter().enumerate() {
        for later in &rows[at + 1..] {
            let mut world = World::new();
            (later.change)(&mut world);
            (earlier.change)(&mut world);
            // Texts that two changes make unreadable together are decided on as unreadable, by another row.
            if earlier.message != "chains" && JobSpec::parse(&world.request.spec_toml).is_err() && later.message != "chains" {
                continue;
            }
            assert_decides(&mut world, earlier, later.message);
            pairs += 1;
        }
    }
    assert!(pairs > rows.len() * (rows.len() - 1) / 2 - 10, "{pairs} pairs");
}

/// A job that is open already takes no more room, one that is entered is bound to its data, and one that is open in the ledger has its cap
/// and its part of the reserve of delta promised.
#[test]
fn a_job_that_is_known_passes_the_limits_on_new_ones() {
    let passes = |known: fn(&mut World), messages: &[&str]| {
        let rows = rows();
        for message in messages {
            let row = rows.iter().find(|row| row.message == *message).unwrap();
            let mut world = World::new();
            (row.change)(&mut world);
            known(&mut world);
            assert_eq!(shown(world.decide()).0, "AskOwner", "{message}");
        }
    };
    let room = [
        "64 jobs are open there already",
        "the owner's max_memory_mib of 0: ask the owner",
        "max_memory_mib of 1 leaves room for",
        "opened for nothing",
    ];
    passes(|w| w.open_jobs.1 = true, &room);
    passes(|w| w.has_job = true, &["its bad_rows is \"drop\""]);
    passes(|w| (w.has_job, w.is_open) = (true, true), &["the owner has set none aside"]);
    let open = |w: &mut World| (w.has_job, w.is_open) = (true, true);
    let reserved = ["less is left there for alice: lower privacy.epsilon", "may still spend the budget that this one asks for"];
    passes(open, &reserved);
}

/// Units of mu² that the test job's cap holds.
fn cap_units() -> u64 {
    let spec = JobSpec::parse(MEAN_TOML).unwrap();
    PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units()
}

/// The admissions by room: remaining budget, its free part, the job, the policy, and the decision with the limit beside the cap.
#[test]
fn a_cap_that_open_jobs_may_still_spend_is_waited_for() {
    let cap = cap_units();
    let of = |room: (u64, u64), change: fn(&mut World)| {
        let mut world = World::new();
        world.room = room;
        change(&mut world);
        match world.decide() {
            Decision::AskOwner(admitted) => Ok(admitted.room.map(|room| room.units)),
            refused => Err(shown(refused)),
        }
    };
    let force: fn(&mut World) = |w| w.replace("[sampler]\n", "[sampler]\nforce = true\n");
    let full = |room, change| matches!(of(room, change), Err((decision, _)) if decision == "Full");
    assert_eq!(of((cap, cap), |_| ()), Ok(Some(cap)));
    assert!(full((cap, cap - 1), |_| ()));
    assert_eq!(of((cap - 1, cap - 1), |_| ()).unwrap_err().0, "Budget");
    // A job that was closed has no cap reserved: it waits, and is refused, as a new one.
    assert!(full((cap, cap - 1), |w| w.has_job = true));
    assert_eq!(of((cap - 1, 5), |w| w.has_job = true).unwrap_err().0, "Budget");
    // A forced job takes what is free and no more, however often it is opened.
    assert_eq!(of((cap, cap - 1), force), Ok(Some(cap - 1)));
    assert_eq!(of((cap, 0), |w| (w.has_job, w.is_open) = (true, true)), Ok(None));
    let forced_and_open: fn(&mut World) = |w| {
        w.replace("[sampler]\n", "[sampler]\nforce = true\n");
        (w.has_job, w.is_open) = (true, true);
    };
    assert_eq!(of((cap, 7), forced_and_open), Ok(Some(7)));
    // Only the owner's explicit setting over-commits.
    assert_eq!(of((cap, 0), |w| w.policy.over_commit = true), Ok(None));
    assert_eq!(of((cap - 1, 0), |w| w.policy.over_commit = true).unwrap_err().0, "Budget");
}

/// The reserve of delta is promised to open jobs as the budget is, and no analyst can force it.
#[test]
fn a_reserve_that_open_jobs_may_still_take_is_waited_for() {
    let decide_on = |reserve: (u64, u64), force: &str, has_job: bool| {
        let mut world = World::new();
        world.has_job = has_job;
        world.replace("\"penalty\"", "\"barker\"");
        world.replace("draws = 10", &format!("draws = 10\nbatch = 0.5{force}"));
        world.replace("noise_sd = 1.0", "");
        world.replace("delta = 1e-6", "delta = 1e-6\ndelta_reserve = 1e-7\nblocks = 4\nclip = 0.5");
        world.reserve = ReserveLeft { set_aside: u64::MAX, left: reserve.0 };
        world.room_reserve = reserve;
        shown(world.decide())
    };
    let decide = |reserve, force: &str| decide_on(reserve, force, false);
    assert_eq!(decide((u64::MAX, u64::MAX), "").0, "AskOwner");
    for force in ["", "\nforce = true"] {
        let (decision, why) = decide((u64::MAX, 0), force);
        assert!(decision == "Full" && !why.contains("room for one more"), "{decision}: {why}");
        // Blocks have taken the reserve: no job that ends frees it, so a closed job that is asked for again does not wait for one.
        let (decision, why) = decide_on((0, 0), force, true);
        assert!(decision == "Policy" && why.contains("has less left of what was set aside"), "{decision}: {why}");
    }
}

/// An owner who keeps the budget private publishes no figure of it to a job that waits.
#[test]
fn the_room_is_told_where_the_owner_allows_it() {
    let why = |tell_budget| {
        let mut world = World::new();
        (world.policy.tell_budget, world.room.1) = (tell_budget, cap_units() / 2);
        shown(world.decide()).1
    };
    assert!(why(true).contains("there is room for one more job of epsilon "), "{}", why(true));
    assert!(!why(false).contains("epsilon"), "{}", why(false));
}

/// The policy consents only where the owner said so, and to no masked job whose members the owner does not know.
#[test]
fn the_policy_consents_within_its_limits() {
    let is_automatic = |change: fn(&mut World)| {
        let mut world = World::new();
        change(&mut world);
        let Decision::AskOwner(admitted) = world.decide() else { panic!("it is within all limits") };
        admitted.is_automatic
    };
    assert!(is_automatic(|_| ()));
    assert!(!is_automatic(|w| w.policy.approve = Approve::Manual));
    assert!(!is_automatic(World::mask));
}

/// No signature is checked, and no file read for it, before the request's own identity holds.
#[test]
fn facts_are_looked_up_only_when_they_decide() {
    let mut world = World::new();
    world.request.job.clear();
    (world.signature, world.idle) = (|| panic!("the signature is looked at"), || panic!("the ledger is looked at"));
    assert_eq!(shown(world.decide()).0, "InvalidInput");
}

#[test]
fn the_owners_decision_sets_the_course() {
    let course = |standing, change: fn(&mut World)| {
        let mut world = World::new();
        change(&mut world);
        let Decision::AskOwner(admitted) = world.decide() else { panic!("it is within all limits") };
        admitted.course(standing)
    };
    assert_eq!(course(Standing::Awaiting, |_| ()), Course::Pending);
    assert_eq!(course(Standing::Approved, |_| ()), Course::Open);
    assert_eq!(course(Standing::Approved, |w| w.has_job = true), Course::Open);
    assert_eq!(course(Standing::Approved, |w| w.open_jobs.1 = true), Course::Reopened);
    for standing in [Standing::Rejected, Standing::Revoked] {
        assert_eq!(course(standing, |_| ()), Course::Closed { standing, has_key: false });
        assert_eq!(course(standing, |w| w.is_masked = true), Course::Closed { standing, has_key: true });
    }
}
