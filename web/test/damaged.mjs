// node damaged.mjs SECONDS [SEED]: damaged files must be an error or a description, and lookups in
// them an answer or an error; never a trap, and never many seconds.
import { readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { FIXTURES, PAGE, SCRATCH, check, finish, form, walk } from './lib.mjs';

const [seconds, seed = '7'] = process.argv.slice(2);
const SMALL = 400_000;
const files = [
  ...walk(FIXTURES).filter(path =>
    /\.(sst|parquet|scandump|bin|sbbf|filter)$|Filter\.db$/.test(path),
  ),
  ...walk(join(SCRATCH, 'native')),
]
  .filter(path => statSync(path).size > 0 && statSync(path).size < SMALL)
  .map(path => [basename(path), readFileSync(path)]);
const module = new WebAssembly.Module(
  readFileSync(join(dirname(PAGE), 'wasm32-unknown-unknown/release/blocked_bloom_page.wasm')),
);

let state = BigInt(seed);
const random = below => {
  state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
  return Number(state >> 33n) % below;
};
const encoder = new TextEncoder(),
  decoder = new TextDecoder();
const FORMATS = [
  'native',
  'compact',
  'growing',
  'partition-index',
  'ribbon',
  'removable',
  'planes',
  'rocksdb-block',
  'rocksdb-sst',
  'parquet-filter',
  'parquet',
  'cassandra',
  'guava',
  'spark',
  'redisbloom',
];

function damaged(original) {
  let bytes = new Uint8Array(original);
  const place = () =>
    [
      () => random(Math.min(100, bytes.length)),
      () => bytes.length - 1 - random(Math.min(2000, bytes.length)),
      () => random(bytes.length),
    ][random(3)]();
  if (random(4) === 0) bytes = bytes.slice(0, random(bytes.length + 1));
  for (let count = random(4); bytes.length && count >= 0; count--) {
    const at = place(),
      values = [0, 255, 127, 128, random(256)];
    for (let i = random(5); i >= 0; i--)
      if (at + i < bytes.length) bytes[at + i] = values[random(5)];
  }
  return bytes;
}

let instance;
function look(name, bytes, format) {
  const e = instance.exports;
  const put = given => {
    const at = e.input(given.length) >>> 0;
    new Uint8Array(e.memory.buffer, at, given.length).set(given);
  };
  const call = (call_, given) => {
    put(
      typeof given === 'string' || given instanceof Uint8Array
        ? given instanceof Uint8Array
          ? given
          : encoder.encode(given)
        : encoder.encode(form(given)),
    );
    const at = e[call_]() >>> 0;
    return JSON.parse(decoder.decode(new Uint8Array(e.memory.buffer, at, e.answer_len())));
  };
  put(encoder.encode(name));
  e.file_begin(bytes.length);
  const insert = ranges => {
    for (const [offset, length] of ranges) {
      put(bytes.subarray(offset, offset + length));
      e.file_insert(offset);
    }
  };
  let answer,
    rounds = 0;
  for (;;) {
    check(rounds++ < 200, `${name}: 200 rounds of ranges`);
    answer = call('file_open', { format, version: format === 'cassandra' ? 'nb' : '' });
    const missing = answer.needs ?? answer.missing ?? [];
    if (!missing.length || rounds > 200) break;
    insert(missing);
  }
  if (answer.error) return 'error';
  for (let part = 0; part < Math.min(answer.parts, 3); part++) call('file_loads', { part });
  const column = answer.columns[0] ?? '';
  for (const type of ['', 'int64']) {
    const chosen = call('file_choose', { column, type, keys: 'text' });
    if (chosen.error || chosen.needs) continue;
    call('file_lookup', '1\n2\n3');
    call('file_probes', '1');
  }
  return 'described';
}

const until = performance.now() + 1000 * Number(seconds),
  counts = { error: 0, described: 0 };
let slowest = 0,
  runs = 0;
while (performance.now() < until) {
  const [name, original] = files[random(files.length)];
  const bytes = random(50) ? damaged(original) : new Uint8Array(original);
  const format = random(8) ? '' : FORMATS[random(FORMATS.length)];
  // Nothing that was inserted is freed: another instance now and then.
  if (runs++ % 200 === 0) instance = new WebAssembly.Instance(module);
  const start = performance.now();
  try {
    counts[look(name, bytes, format)]++;
  } catch (error) {
    check(
      false,
      `${name} as ${format || 'recognised'}, run ${runs} of seed ${seed}: ${error.message}`,
    );
    instance = new WebAssembly.Instance(module);
  }
  slowest = Math.max(slowest, performance.now() - start);
}
check(slowest < 5000, `a damaged file took ${slowest} ms`);
check(counts.described > 100 && counts.error > 100, 'damaged files were described, and refused');
finish({ files: files.length, runs, ...counts, slowest_ms: Math.round(slowest) });
