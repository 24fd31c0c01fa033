//! Runs seeds of the simulator: `tideline-sim FROM [TO]`.

fn main() {
    let mut seeds = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let (Some(Ok(from)), to) = (seeds.next(), seeds.next()) else {
        eprintln!("usage: tideline-sim FROM [TO]");
        std::process::exit(2);
    };
    let to = to.and_then(Result::ok).unwrap_or(from);
    for seed in from..=to {
        println!("seed {seed}: {:?}", tideline_sim::run(seed));
    }
}
