// node browser.mjs: the page in Chromium, through its own inputs. Pictures of it go to SCRATCH/shots, to be looked at.
import { execFileSync } from 'node:child_process';
import { closeSync, copyFileSync, ftruncateSync, mkdirSync, openSync, readFileSync, readdirSync, writeFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { FIXTURES, PAGE, SCRATCH, TOOL, check, equal, finish, form, recorded, tool } from './lib.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const WASM = join(dirname(PAGE), 'wasm32-unknown-unknown/release/blocked_bloom_page.wasm');
const url = pathToFileURL(PAGE).href, shots = join(SCRATCH, 'shots');
mkdirSync(shots, { recursive: true });
const began = performance.now();
const say = text => console.log(`-- ${text} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
const figures = {};

// Chromium has no sandbox for root.
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: process.getuid() === 0 ? ['--no-sandbox'] : [] });
const requests = [];
async function newPage(options = {}, address = url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.on('pageerror', error => check(false, `error of the page: ${error}`));
  page.on('console', message => check(!['error', 'warning'].includes(message.type()) || /inline script/.test(message.text()), `console: ${message.text()}`));
  page.on('request', request => requests.push(request.url()));
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName('ready').length);
  return page;
}
const page = await newPage();

async function open(path, on = page) {
  await on.evaluate(() => performance.clearMarks('opened'));
  await on.setInputFiles('#file', path);
  await on.waitForFunction(() => performance.getEntriesByName('opened').length, null, { timeout: 60000 });
}
const problem = (on = page) => on.evaluate(() => (document.getElementById('file-problem').hidden ? null : document.getElementById('file-problem').textContent));
async function facts() {
  return JSON.parse(await page.evaluate(() => new Promise(resolve => {
    const details = document.getElementById('as-json');
    details.addEventListener('toggle', () => setTimeout(() => resolve(details.querySelector('pre').textContent)));
    details.open = true;
  })));
}
// What the page says of each key, as true for "maybe there", or its error.
const lookUp = (keys, on = page) => on.evaluate(async text => {
  performance.clearMarks('looked-up');
  const typed = document.getElementById('typed');
  typed.value = text;
  typed.dispatchEvent(new Event('input', { bubbles: true }));
  while (!performance.getEntriesByName('looked-up').length) await new Promise(resolve => setTimeout(resolve, 2));
  const error = document.getElementById('typed-problem').textContent;
  return error || [...document.querySelectorAll('#answers .verdict')].map(verdict => verdict.classList.contains('maybe'));
}, keys.map(key => `${key}\n`).join(''));
const chooseIn = (id, value, on = page) => on.evaluate(async ([id, value]) => {
  const field = document.getElementById(id);
  if (field.value === value) return;
  performance.clearMarks('looked-up');
  field.value = value;
  field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input', { bubbles: true }));
  const until = performance.now() + 5000;
  while (!performance.getEntriesByName('looked-up').length && performance.now() < until) await new Promise(resolve => setTimeout(resolve, 2));
}, [id, value]);

say('fixtures: descriptions and recorded answers');
// The kernel is another one; the tool names files by the paths it was given.
const strip = json => JSON.stringify(json, (name, value) => (/^kernel|^file$/.test(name) ? undefined : value));
{
  const cases = recorded();
  let last = '', keys = 0, wrong = 0, described = 0;
  for (const one of cases) {
    const path = join(SCRATCH, one.name);
    if (one.file !== last) {
      last = one.file;
      copyFileSync(one.file, path);
      await open(path);
      const said = await problem();
      check(!said, `${one.file}: ${said}`);
      if (said) continue;
      equal(strip(await facts()), strip(tool('info', '--json', path)), `${one.file}: described`);
      described++;
    }
    if (one.column) await chooseIn('column', one.column);
    if (one.type !== undefined) await chooseIn('type', one.type);
    await chooseIn('key-form', one.form);
    for (let at = 0; at < one.keys.length; at += 1000) {
      const expected = one.expected.slice(at, at + 1000), found = await lookUp(one.keys.slice(at, at + 1000));
      const differ = expected.filter((hit, i) => hit !== found[i]).length;
      check(!differ && expected.length === found.length, `${one.file} ${one.column ?? one.type ?? ''}: ${differ} of ${expected.length} answers differ, ${typeof found === 'string' ? found : ''}`);
      keys += expected.length;
      wrong += differ;
    }
  }
  Object.assign(figures, { cases: cases.length, keys, wrong, described });
}

say('filters of the tool');
{
  const folder = join(SCRATCH, 'native'), words = readFileSync(join(SCRATCH, 'words.txt'), 'utf8').trim().split('\n').slice(0, 900);
  await page.click('#to-inspect');
  for (const name of readdirSync(folder)) {
    await open(join(folder, name));
    if (name.endsWith('.compact')) {
      check(/compact/.test(await problem()), `${name}: the compact form is offered`);
      await page.evaluate(() => performance.clearMarks('opened'));
      await page.click('#file-problem button');
      await page.waitForFunction(() => performance.getEntriesByName('opened').length);
    }
    equal(await problem(), null, name);
    const form = name.endsWith('.compact') ? ['--format', 'compact'] : [];
    equal(strip(await facts()), strip(tool('info', '--json', ...form, join(folder, name))), `${name}: described`);
    if (name.endsWith('.sbbf')) await chooseIn('type', 'byte-array');
    const found = await lookUp(words), absent = await lookUp(words.map(word => `${word}?`));
    if (!name.endsWith('.planes')) equal([found.length, found.filter(hit => hit).length], [words.length, words.length], `${name}: keys that are in it`);
    if (!name.endsWith('.planes')) check(absent.filter(hit => hit).length < 0.1 * words.length, `${name}: most other keys are absent`);
  }
  // Text, damage, and what is no filter.
  await open(join(SCRATCH, 'words.txt'));
  check(/it is text/.test(await problem()), 'a list of words is not taken for a filter');
  const bytes = readFileSync(join(folder, 'words.bloom'));
  bytes[5000] ^= 1;
  writeFileSync(join(SCRATCH, 'damaged.bloom'), bytes);
  await open(join(SCRATCH, 'damaged.bloom'));
  check(await page.locator('#found .alert').count() === 1, 'damaged blocks are said to be damaged');
  writeFileSync(join(SCRATCH, 'cut.bloom'), bytes.subarray(0, 9000));
  await open(join(SCRATCH, 'cut.bloom'));
  check(!!await problem(), 'a filter that is cut off is an error');
  // What the picture of the blocks shows: too many keys; blocks that no key falls into.
  const picture = () => page.evaluate(() => {
    const middle = element => { const box = element.getBoundingClientRect(); return box.x + box.width / 2; };
    const labels = [...document.querySelectorAll('#found svg text[text-anchor=middle]')].slice(0, -1).map(middle);
    return [...document.querySelectorAll('#found rect.counted')].map(bar => Math.min(...labels.map(label => Math.abs(label - middle(bar)))));
  });
  const verdict = () => page.evaluate(() => document.querySelector('#found svg')?.parentElement.textContent ?? '');
  await open(join(folder, 'words.bloom'));
  check(/They agree/.test(await verdict()), `a sound filter: ${await verdict()}`);
  execFileSync(TOOL, ['build', join(SCRATCH, 'words.txt'), '--bits-per-key', '2', '--probes', '6', '-q', '-o', join(SCRATCH, 'full.bloom')]);
  await open(join(SCRATCH, 'full.bloom'));
  check(/overfull/.test(await verdict()), `an overfull filter: ${await verdict()}`);
  const compact = readFileSync(join(folder, 'words.compact'));
  compact.fill(0, 0, 64 * Math.floor(compact.length / 128));
  writeFileSync(join(SCRATCH, 'half.compact'), compact);
  await open(join(SCRATCH, 'half.compact'));
  await page.evaluate(() => performance.clearMarks('opened'));
  await page.click('#file-problem button');
  await page.waitForFunction(() => performance.getEntriesByName('opened').length);
  check(/far apart/.test(await verdict()), `half of the blocks without keys: ${await verdict()}`);
  // Few bars, each with a label, which it stands over.
  execFileSync(TOOL, ['build', '-', '-q', '-o', join(SCRATCH, 'few.bloom')], { input: 'apple\nfig\nplum\n' });
  await open(join(SCRATCH, 'few.bloom'));
  const apart = await picture();
  check(apart.length > 0 && Math.max(...apart) < 1.5, `bars are ${apart} px from their labels`);
  execFileSync(TOOL, ['build', '-', '--keys', '1000', '-q', '-o', join(SCRATCH, 'empty.bloom')], { input: '', stdio: ['pipe', 'ignore', 'ignore'] });
  await open(join(SCRATCH, 'empty.bloom'));
  check(/has no keys/.test(await verdict()) && !/agree/.test(await verdict()), `an empty filter: ${await verdict()}`);
  writeFileSync(join(SCRATCH, 'dump.rdb'), 'REDIS0011\xfa\x09redis-ver\x058.0.0', 'latin1');
  await open(join(SCRATCH, 'dump.rdb'));
  check(/BF.SCANDUMP.*until that is 0.*iterator and its length.*then its data\.$/.test(await problem()), `a database of Redis: ${await problem()}`);
}

say('a dropped file, a file of keys, one key in its block');
{
  const drop = (target, name, text) => page.evaluate(([target, name, text]) => {
    for (const mark of ['opened', 'looked-up']) performance.clearMarks(mark);
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(text), one => one.charCodeAt(0))], name));
    document.querySelector(target).dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  }, [target, name, Buffer.from(text).toString('base64')]);
  await drop('body', 'words.bloom', readFileSync(join(SCRATCH, 'native/words.bloom')));
  await page.waitForFunction(() => performance.getEntriesByName('opened').length);
  check(new URL(page.url()).hash === '#inspect' && await page.locator('#found h3').first().textContent() !== '', 'a dropped file is opened');
  await page.click('#to-lookup');
  const words = readFileSync(join(SCRATCH, 'words.txt'), 'utf8');
  await drop('#typed', 'words.txt', words.replace(/\n/g, '\r\n'));
  await page.waitForFunction(() => performance.getEntriesByName('looked-up').length);
  const count = words.trim().split('\n').length;
  check((await page.textContent('.tally')).includes(`0 certainly absent${count.toLocaleString('en-US')} maybe`), `all words of a file are there: ${await page.textContent('.tally')}`);
  const long = Array.from({ length: 3000 }, (_, at) => `${String(at).padStart(6, '0')}${'x'.repeat(200)}é`);
  await drop('#typed', 'long.txt', `${long.join('\n')}\n`);
  await page.waitForFunction(() => performance.getEntriesByName('looked-up').length);
  const shown = await page.locator('#answers .key').allTextContents();
  check(shown.length === 1000 && shown.every((key, at) => key === long[at]), `of 3,000 long keys ${shown.length} are shown, the last as ${shown.at(-1)}`);
  await page.click('#to-inspect');
  await page.evaluate(() => performance.clearMarks('opened'));
  await page.click('#example');
  await page.waitForFunction(() => performance.getEntriesByName('opened').length);
  equal(await lookUp(['user0', 'user999', 'user1000', 'nobody']), [true, true, false, false], 'the example');
  await lookUp(['user7']);
  equal([await page.locator('rect.hit').count() > 0, await page.locator('rect.miss').count(), await page.locator('rect.bit').count()], [true, 0, 512], 'a key that is there, in its block');
  await lookUp(['nobody']);
  check(await page.locator('rect.miss').count() > 0, 'a key that is absent, in its block');
  await chooseIn('key-form', 'hex');
  equal(await lookUp([Buffer.from('user1').toString('hex')]), [true], 'hex digits');
  check(/hex/.test(await lookUp(['xyz'])), 'what is no hex is said');
}

{
  const two = recorded().find(({ file }) => file.endsWith('_2rg.parquet'))?.file ?? check(false, 'no file of two row groups');
  await open(two);
  // Columns as the file has them, each with its row groups together.
  const chunks = (await facts()).column_chunks, names = [...new Set(chunks.map(({ column }) => column))];
  equal(chunks.map(({ column, row_group }) => [column, row_group]), names.flatMap(name => [[name, 0], [name, 1]]), 'chunks by column');
  equal(await page.evaluate(() => [...document.querySelectorAll('#column option')].map(option => option.value)), [...new Set(chunks.filter(chunk => chunk.filter_offset !== null).map(({ column }) => column))], 'columns in the order of the file');
  await chooseIn('column', 'i64');
  await chooseIn('row-groups', '0,zz');
  await lookUp(['7']);
  equal([await page.locator('#answers > *').count(), await page.locator('#row-groups').getAttribute('aria-invalid'), await page.locator('#lookup-warnings [role=alert]').count()], [0, 'true', 1], 'no answer by row groups that are none');
  await chooseIn('row-groups', '');
  // A value of the first row group, and one of none.
  for (const [key, expected, groups] of [['-1000', 'To be read: row group 0 (1 of 2; they are numbered from 0).', [true, false]], ['999999999', 'None of the 2 row groups has to be read.', [false, false]]]) {
    await lookUp([key]);
    equal(await page.textContent('#answers p'), expected, key);
    const blocks = await page.locator('#probes .block p').allTextContents();
    equal(blocks.map((block, at) => [block.startsWith(`Row group ${at}, block`), / all \d+ bits are set/.test(block)]), groups.map(is => [true, is]), `${key}: ${blocks}`);
  }
}

say('sizes and levels, as plan has them');
{
  const instance = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(WASM))).exports;
  const answer = (call, given) => {
    const bytes = new TextEncoder().encode(form(given)), at = instance.input(bytes.length) >>> 0;
    new Uint8Array(instance.memory.buffer, at, bytes.length).set(bytes);
    const from = instance[call]() >>> 0;
    return JSON.parse(new TextDecoder().decode(new Uint8Array(instance.memory.buffer, from, instance.answer_len())));
  };
  let same = 0;
  await page.click('#to-size');
  for (const keys of ['1', '100', '12345', '1M', '100M', '1G']) {
    for (const [by, flag, value] of [['bits', '--bits-per-key', '5'], ['bits', '--bits-per-key', '9.9'], ['bits', '--bits-per-key', '16'], ['rate', '--fpr', '1%'], ['rate', '--fpr', '0.0005'], ['bytes', '--max-bytes', '64KiB']]) {
      const planned = tool('plan', '--json', '--keys', keys, flag, value).choices[0];
      equal(answer('size_table', { keys, by, [by]: value }).choice, planned, `${keys} keys, ${flag} ${value}`);
      await page.check(`[name=by][value=${by}]`, { force: true });
      await page.fill('#keys', keys);
      await page.fill(`#${by}`, value);
      const [memory, rate, bits, probes] = await page.locator('#answer dd').allTextContents();
      const isNear = (text, number) => Math.abs(parseFloat(text.replace(' × 10⁻', 'e-').replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹]/g, digit => '⁰¹²³⁴⁵⁶⁷⁸⁹'.indexOf(digit))) / number - 1) < 0.006;
      check(isNear(rate, 100 * planned.false_positive_rate) && bits === planned.bits_per_key.toFixed(2) && probes === String(planned.probes), `${keys} keys, ${flag} ${value}: ${memory} ${rate} ${bits} ${probes} is shown`);
      const unit = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }[memory.split(' ')[1]];
      check(isNear(memory, planned.stored_bytes / unit), `${keys} keys, ${flag} ${value}: ${memory} is shown`);
      same++;
    }
  }
  for (const tree of [['1M', '10M', '100M'], ['100kx4', '1M', '1Gx2'], ['10M=20%', '100M=90%x3', '100M=0.9999']]) {
    for (const budget of ['64MiB', '1GiB']) {
      const planned = tool('plan', '--json', '--levels', tree.join(','), '--budget', budget);
      const levels = Object.fromEntries(tree.flatMap((level, at) => [[`${at}.keys`, /^\w+?(?=[x=]|$)/.exec(level)[0]], [`${at}.runs`, level.split('x')[1] ?? '1'], [`${at}.present`, /=([^x]+)/.exec(level)?.[1] ?? '0']]));
      equal(answer('plan_levels', { budget, ...levels }), planned, `levels ${tree} in ${budget}`);
      const on = await newPage({}, `${url}#size?levels=${encodeURIComponent(tree.join(','))}&budget=${budget}`);
      equal(await on.locator('[data-result$="bits per key"]').allTextContents(), planned.plans[0].levels.map(level => (level.skipped ? 'no filter' : level.bits_per_key.toFixed(2))), `levels ${tree} in ${budget} are shown`);
      same++;
      await on.close();
    }
  }
  figures.plans = same;
}

say('states, errors and the keyboard');
{
  const on = await newPage({}, `${url}#size?keys=25M&by=rate&rate=0.1%25&load=2M&kind=split-block`);
  const state = () => on.evaluate(() => [document.getElementById('keys').value, document.getElementById('rate').value, document.querySelector('[name=kind]:checked').value, document.getElementById('answer').textContent]);
  const before = await state();
  equal(before.slice(0, 3), ['25M', '0.1%', 'split-block'], 'the state in the fragment');
  await on.fill('#keys', '26,000,000');
  const sent = await on.evaluate(() => location.href), changed = await state();
  check(before[3] !== changed[3], 'another number of keys, another answer');
  const other = await newPage({}, sent);
  equal(await other.evaluate(() => [document.getElementById('keys').value, document.getElementById('rate').value, document.querySelector('[name=kind]:checked').value, document.getElementById('answer').textContent]), changed, 'a state that was sent');
  await on.fill('#keys', 'many');
  check(/whole number/.test(await on.textContent('#keys-problem')) && await on.getAttribute('#keys', 'aria-invalid') === 'true', 'what is no number is said');
  const isStale = () => on.evaluate(() => ['.answer', 'figure', '#kinds', '#code'].every(part => getComputedStyle(document.querySelector(`#size ${part}`)).visibility === 'hidden'));
  check(await isStale(), 'figures of the keys before cannot be read');
  await on.fill('#keys', '50M');
  check(!await isStale(), 'and can when the keys are mended');
  await on.fill('#budget', 'much');
  const hasLevels = () => on.evaluate(() => ['[data-result]', '#levels-sentence', '#levels-code'].some(part => getComputedStyle(document.querySelector(`#levels-view ${part}`)).visibility === 'visible'));
  check(!await hasLevels(), 'nor those of the levels before');
  await on.fill('#budget', '1GiB');
  check(await hasLevels(), 'and those of the levels');
  await on.check('[name=kind][value=blocked]');
  await on.fill('#rate', '1%');
  await on.fill('#load', '100k');
  check((await on.textContent('#sentence')).startsWith('One lookup of an absent key in 100 goes wrong: 1,000 per second of 100,000.'), await on.textContent('#sentence'));
  check((await on.textContent('#code')).includes('BloomFilter(50_000_000, fpr=0.01)'), 'the line of Python is complete');
  const memory = () => on.locator('#answer dd').first().textContent();
  const chosen = await memory();
  for (const by of ['bytes', 'bits', 'rate']) {
    await on.locator(`[name=by][value=${by}]`).dispatchEvent('click');
    equal(await memory(), chosen, `the same filter, sized by ${by}`);
  }
  await on.locator('[name=by][value=bytes]').dispatchEvent('click');
  for (const [bytes, shown] of [['60 MB', '57.2 MiB'], ['64 KiB', '64.0 KiB'], ['20 GiB', '596 MiB']]) {
    await on.fill('#bytes', bytes);
    equal([await on.textContent('#by-problem'), await memory()], ['', shown], bytes);
  }
  check(/rest of the memory is not used/.test(await on.textContent('#sentence')), 'more memory than a filter takes');
  await on.locator('[name=by][value=bits]').dispatchEvent('click');
  await on.fill('#bits', '10');
  await on.fill('#keys', '99999999999999');
  check(/divide them/.test(await on.textContent('#keys-problem')), 'more keys than a filter takes');
  // From the top by Tab: the skip link, three views, then the form.
  await other.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
  const seen = [];
  for (let i = 0; i < 7; i++) {
    await other.keyboard.press('Tab');
    seen.push(await other.evaluate(() => document.activeElement.id || document.activeElement.name || document.activeElement.className));
  }
  equal(seen, ['skip', 'to-size', 'to-inspect', 'to-lookup', 'keys', 'by', 'rate'], 'the order of Tab');
  await other.focus('[name=kind]:checked');
  await other.keyboard.press('ArrowUp');
  equal(await other.evaluate(() => document.activeElement.value), 'classical', 'kinds by arrow keys');
  await on.close();
  await other.close();
}

say('3 GB with holes');
{
  // The footer of an SST file says where the rest is: between them may be anything.
  const source = join(FIXTURES, 'rocksdb/bloom_b10_n5000_partitioned.sst'), bytes = readFileSync(source), FOOTER = 53, LENGTH = 3 * 2 ** 30;
  const path = join(SCRATCH, 'large.sst'), file = openSync(path, 'w');
  writeSync(file, bytes, 0, bytes.length - FOOTER, 0);
  ftruncateSync(file, LENGTH - FOOTER);
  writeSync(file, bytes, bytes.length - FOOTER, FOOTER, LENGTH - FOOTER);
  closeSync(file);
  const on = await newPage();
  // The resident memory of all processes of the browser.
  const processes = () => {
    const parents = new Map();
    for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
      try {
        parents.set(Number(pid), Number(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ')[1]));
      } catch { /* it is gone */ }
    }
    const isOurs = pid => pid && (parents.get(pid) === process.pid || isOurs(parents.get(pid)));
    return [...parents.keys()].filter(isOurs);
  };
  const memory = () => processes().reduce((sum, pid) => {
    try {
      const [, proportional] = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? [0, 0];
      return sum + Number(proportional) / 1024;
    } catch {
      return sum;
    }
  }, 0);
  const before = memory();
  let most = before;
  const watch = setInterval(() => { most = Math.max(most, memory()); }, 50);
  const start = performance.now();
  await open(path, on);
  figures.large_ms = Math.round(performance.now() - start);
  most = Math.max(most, memory());
  clearInterval(watch);
  equal(await problem(on), null, 'an SST file of 3 GiB');
  figures.large_MiB = Math.round(most - before);
  figures.browser_MiB = Math.round(most);
  check(before > 20 && figures.large_MiB < 200, `an SST file of 3 GiB takes ${figures.large_MiB} MiB more than ${before}`);
  await on.click('#to-lookup');
  equal(await lookUp(['user00000000', 'nobody'], on), [true, false], 'an SST file of 3 GiB');
  await on.close();
}

say('accessibility, widths and pictures');
{
  let violations = 0;
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [360, 1280]) {
      const on = await newPage({ viewport: { width, height: 900 }, colorScheme, reducedMotion: 'reduce' });
      const look = async name => {
        await on.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true });
        const [content, window_] = await on.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        check(content <= window_, `${name} at ${width} px is ${content} px wide`);
        const result = await on.evaluate(`${axe}; axe.run(document, { resultTypes: ['violations'] })`);
        violations += result.violations.length;
        for (const { id, nodes } of result.violations) check(false, `${name}, ${width} px, ${colorScheme}: ${id}: ${nodes.map(node => `${node.html} ${node.failureSummary}`).join('\n').slice(0, 600)}`);
      };
      await look('size');
      const long = await on.evaluate(() => document.documentElement.scrollHeight);
      figures[`size_${width}_px`] = long;
      check(width > 400 || long < 3000, `the sizes are ${long} px long at ${width} px`);
      await on.click('#to-inspect');
      await look('inspect');
      for (const [name, path] of [['sst', 'rocksdb/bloom_b10_n5000_partitioned.sst'], ['parquet', 'parquet/pyarrow_n5000_ndv5000_fpp0.01_2rg.parquet']]) {
        await open(join(FIXTURES, path), on);
        await look(name);
      }
      await on.click('#to-lookup');
      await look('columns');
      await on.click('#to-inspect');
      await on.evaluate(() => performance.clearMarks('opened'));
      await on.click('#example');
      await on.waitForFunction(() => performance.getEntriesByName('opened').length);
      await on.click('#to-lookup');
      await lookUp(['nobody', 'user7', 'user999', 'user1000', 'a key that is rather long, and does not fit into one line of a narrow screen'], on);
      await look('lookup');
      await on.close();
    }
  }
  figures.violations = violations;
}

say('the first plot');
{
  const times = [];
  for (let i = 0; i < 5; i++) {
    const on = await newPage();
    times.push(await on.evaluate(() => performance.getEntriesByName('ready')[0].startTime));
    check(await on.locator('#plot polyline').count() === 4, 'the plot is there');
    await on.close();
  }
  figures.first_plot_ms = times.map(Math.round);
  check(Math.min(...times) < 500, `the first plot after ${times} ms`);
}

say('what the page requests');
{
  // By HTTP, too: a server sees one request.
  const seen = [];
  const server = createServer((request, response) => {
    seen.push(request.url);
    response.setHeader('Content-Type', 'text/html');
    response.end(request.url === '/' ? readFileSync(PAGE) : '');
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const on = await newPage({}, `http://127.0.0.1:${server.address().port}/`);
  await open(join(FIXTURES, 'rocksdb/bloom_b10_n5000_str.sst'), on);
  // What a script in the page, however it came there, may connect to: nothing.
  const violation = await on.evaluate(() => new Promise(resolve => {
    addEventListener('securitypolicyviolation', event => resolve(event.effectiveDirective));
    const script = document.createElement('script');
    script.textContent = 'fetch("/stolen")';
    document.body.append(script);
  })).catch(error => String(error));
  check(/script-src/.test(violation), `a script that is not the page's does not run: ${violation}`);
  server.close();
  equal(seen, ['/'], 'requests to the server');
  await on.close();
  const left = requests.filter(request => request !== url && !request.startsWith(`${url}#`) && !/^(blob|data):/.test(request) && !/^http:\/\/127\.0\.0\.1:\d+\/$/.test(request));
  equal(left, [], 'requests that leave the page');
  figures.requests = requests.length;
}

await browser.close();
finish({ ...figures, seconds: Math.round((performance.now() - began) / 1000) });
