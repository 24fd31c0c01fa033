//! Runs seeds of the simulator: `tideline-sim history|danmaku|metadata|streams|crowd FROM [TO]`.

fn main() {
    let mut args = std::env::args().skip(1);
    let product: Option<fn(u64) -> tideline_sim::Report> = match args.next().as_deref() {
        Some("history") => Some(tideline_sim::history::run),
        Some("danmaku") => Some(tideline_sim::danmaku::run),
        Some("metadata") => Some(tideline_sim::metadata::run),
        Some("crowd") => Some(|seed| tideline_sim::metadata::crowd(seed, 10_000)),
        Some("streams") => Some(tideline_sim::streams::run),
        _ => None,
    };
    let mut seeds = args.map(|arg| arg.parse::<u64>());
    let (Some(run), Some(Ok(from)), to) = (product, seeds.next(), seeds.next()) else {
        eprintln!("usage: tideline-sim history|danmaku|metadata|streams|crowd FROM [TO]");
        std::process::exit(2);
    };
    let to = to.and_then(Result::ok).unwrap_or(from);
    for seed in from..=to {
        println!("seed {seed}: {:?}", run(seed));
    }
}
