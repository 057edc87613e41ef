use std::collections::HashMap;

#[inline(always)]
fn mix(h: u64, b: u8) -> u64 {
    (h ^ b as u64).wrapping_mul(0x100000001b3)
}

#[inline]
fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf29ce484222325, mix)
}

#[inline(never)]
pub fn count(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for w in text.split_whitespace() {
        *words.entry(w.to_lowercase()).or_insert(0) += 1;
    }
    words
}

fn main() {
    let text = "the quick brown fox jumps over the lazy dog and the cat";
    let words = count(text);
    let sum = words.keys().map(|w| hash(w) % 1000).sum::<u64>();
    println!("{} {}", words.len(), sum > 0);
}
