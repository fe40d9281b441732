//! Generated star and chain joins, over tables like those of TPC-DS and of the Join Order
//! Benchmark. With filters, they return the rows of the plain engine in its order.

use datafusion::arrow::util::pretty::pretty_format_batches;

use self::generated::{query, register, write};
use crate::common::{config, context_of, plan, run};

#[path = "../../examples/cluster/generated.rs"]
pub(crate) mod generated;

#[tokio::test]
async fn stars_and_chains_return_the_rows_of_the_plain_engine() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 8000).unwrap();
    for hash in [true, false] {
        for auto in [true, false] {
            let mut config = config().set_bool("datafusion.optimizer.prefer_hash_join", hash);
            #[cfg(feature = "ballista")]
            if auto {
                // The rule decides by cost, as in Ballista's scheduler.
                let ballista = ballista_core::config::BallistaConfig::default();
                config = config.with_option_extension(ballista);
                let threshold = "ballista.optimizer.broadcast_join_threshold";
                config = config.set_usize(&format!("{threshold}_bytes"), 0);
                config = config.set_usize(&format!("{threshold}_rows"), 0);
            }
            let (filtered, plain) = (context_of(config.clone()).await, context_of(config).await);
            if auto {
                run(&filtered, "SET bloom_join.enabled = auto").await;
                // Tables of a few thousand rows save less than the start of a task costs.
                run(&filtered, "SET bloom_join.max_cost = 1000").await;
            }
            run(&plain, "SET bloom_join.enabled = false").await;
            register(&filtered, directory.path()).await.unwrap();
            register(&plain, directory.path()).await.unwrap();
            let (mut filters, mut chains, mut with_rows) = (0, 0, 0);
            for number in 1..=25 {
                let sql = query(number);
                let explained = plan(&filtered, &sql).await;
                let expected = pretty_format_batches(&run(&plain, &sql).await).unwrap().to_string();
                let answer = pretty_format_batches(&run(&filtered, &sql).await).unwrap();
                assert_eq!(answer.to_string(), expected, "{number}: {sql}\n{explained}");
                let count = explained.matches("BloomProbeExec").count();
                filters += count;
                chains += usize::from(count > 1);
                with_rows += usize::from(!expected.contains("| 0 "));
            }
            println!(
                "hash joins {hash}, auto {auto}: {filters} filters, {chains} queries with several, {with_rows} with rows"
            );
            assert!(filters > 15 && chains > 3 && with_rows > 5, "{filters} {chains} {with_rows}");
        }
    }
}
