//! temporary
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let a: Vec<String> = std::env::args().collect();
    let (from, to): (u64, u64) = (a[1].parse().unwrap(), a[2].parse().unwrap());
    let mut bad = 0;
    let t = std::time::Instant::now();
    let (mut commits, mut crashes, mut checks, mut errors) = (0, 0, 0, 0);
    for seed in from..to {
        let s = holdall_sim::Script::draw(seed);
        match holdall_sim::run(&s) {
            Ok(r) => { commits += r.commits; crashes += r.crashes; checks += r.checks; errors += r.errors; }
            Err(f) => { bad += 1; println!("seed {seed} of {} ops: {f}", s.ops.len()); 
               if a.len() > 3 { println!("{:?}", s.params); for l in &f.trace { println!("{l}"); } println!("{}", f.calls); } }
        }
    }
    println!("{} seeds, {bad} bad, {commits} commits {crashes} crashes {checks} checks {errors} errors, {:?}", to - from, t.elapsed());
}
