use super::{Gate, SAMPLE_ROWS, SAMPLES_SKIPPED};

#[test]
fn a_sample_of_hits_closes_the_gate_for_a_while() {
    let mut gate = Gate::new(0.9);
    let batch = SAMPLE_ROWS / 4;
    let mut probed = Vec::new();
    for _ in 0..200 {
        let open = gate.is_open(batch);
        if open {
            gate.probed(batch, batch);
        }
        probed.push(open);
    }
    let open = probed.iter().filter(|&&open| open).count();
    assert_eq!(probed[..4], [true; 4]);
    assert_eq!(probed[4..][..4 * SAMPLES_SKIPPED], [false; 4 * SAMPLES_SKIPPED]);
    assert!(probed[4 + 4 * SAMPLES_SKIPPED], "a sample is taken again");
    assert_eq!(open, 12);

    let mut gate = Gate::new(0.9);
    for _ in 0..200 {
        assert!(gate.is_open(batch), "a tenth is dropped");
        gate.probed(batch, batch * 9 / 10);
    }
}
