// Stored filters of every format, through the page's inputs.
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SCRATCH, TOOL, check, equal, recorded, tool } from './lib.mjs';
import { chooseIn, facts, figures, lookUp, open, page, problem, say } from './chromium.mjs';

say('fixtures: descriptions and recorded answers');
// The kernel is another one; the tool names files by the paths it was given.
const strip = json =>
  JSON.stringify(json, (name, value) => (/^kernel|^file$/.test(name) ? undefined : value));
{
  const cases = recorded();
  let last = '',
    keys = 0,
    wrong = 0,
    described = 0;
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
      const expected = one.expected.slice(at, at + 1000),
        found = await lookUp(one.keys.slice(at, at + 1000));
      const differ = expected.filter((hit, i) => hit !== found[i]).length;
      check(
        !differ && expected.length === found.length,
        `${one.file} ${one.column ?? one.type ?? ''}: ${differ} of ${expected.length} answers ` +
          `differ, ${typeof found === 'string' ? found : ''}`,
      );
      keys += expected.length;
      wrong += differ;
    }
  }
  Object.assign(figures, { cases: cases.length, keys, wrong, described });
}

say('filters of the tool');
{
  const folder = join(SCRATCH, 'native'),
    words = readFileSync(join(SCRATCH, 'words.txt'), 'utf8').trim().split('\n').slice(0, 900);
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
    equal(
      strip(await facts()),
      strip(tool('info', '--json', ...form, join(folder, name))),
      `${name}: described`,
    );
    if (name.endsWith('.sbbf')) await chooseIn('type', 'byte-array');
    const found = await lookUp(words),
      absent = await lookUp(words.map(word => `${word}?`));
    if (!name.endsWith('.planes'))
      equal(
        [found.length, found.filter(hit => hit).length],
        [words.length, words.length],
        `${name}: keys that are in it`,
      );
    if (!name.endsWith('.planes'))
      check(
        absent.filter(hit => hit).length < 0.1 * words.length,
        `${name}: most other keys are absent`,
      );
  }
  // Text, damage, and what is no filter.
  await open(join(SCRATCH, 'words.txt'));
  check(/it is text/.test(await problem()), 'a list of words is not taken for a filter');
  const bytes = readFileSync(join(folder, 'words.bloom'));
  bytes[5000] ^= 1;
  writeFileSync(join(SCRATCH, 'damaged.bloom'), bytes);
  await open(join(SCRATCH, 'damaged.bloom'));
  check(
    (await page.locator('#found .alert').count()) === 1,
    'damaged blocks are said to be damaged',
  );
  writeFileSync(join(SCRATCH, 'cut.bloom'), bytes.subarray(0, 9000));
  await open(join(SCRATCH, 'cut.bloom'));
  check(!!(await problem()), 'a filter that is cut off is an error');
  // What the picture of the blocks shows: too many keys; blocks that no key falls into.
  const picture = () =>
    page.evaluate(() => {
      const middle = element => {
        const box = element.getBoundingClientRect();
        return box.x + box.width / 2;
      };
      const labels = [...document.querySelectorAll('#found svg text[text-anchor=middle]')]
        .slice(0, -1)
        .map(middle);
      return [...document.querySelectorAll('#found rect.counted')].map(bar =>
        Math.min(...labels.map(label => Math.abs(label - middle(bar)))),
      );
    });
  const verdict = () =>
    page.evaluate(() => document.querySelector('#found svg')?.parentElement.textContent ?? '');
  await open(join(folder, 'words.bloom'));
  check(/They agree/.test(await verdict()), `a sound filter: ${await verdict()}`);
  execFileSync(TOOL, [
    'build',
    join(SCRATCH, 'words.txt'),
    '--bits-per-key',
    '2',
    '--probes',
    '6',
    '-q',
    '-o',
    join(SCRATCH, 'full.bloom'),
  ]);
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
  execFileSync(TOOL, ['build', '-', '-q', '-o', join(SCRATCH, 'few.bloom')], {
    input: 'apple\nfig\nplum\n',
  });
  await open(join(SCRATCH, 'few.bloom'));
  const apart = await picture();
  check(apart.length > 0 && Math.max(...apart) < 1.5, `bars are ${apart} px from their labels`);
  execFileSync(TOOL, ['build', '-', '--keys', '1000', '-q', '-o', join(SCRATCH, 'empty.bloom')], {
    input: '',
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await open(join(SCRATCH, 'empty.bloom'));
  check(
    /has no keys/.test(await verdict()) && !/agree/.test(await verdict()),
    `an empty filter: ${await verdict()}`,
  );
  writeFileSync(join(SCRATCH, 'dump.rdb'), 'REDIS0011\xfa\x09redis-ver\x058.0.0', 'latin1');
  await open(join(SCRATCH, 'dump.rdb'));
  check(
    /BF.SCANDUMP.*until that is 0.*iterator and its length.*then its data\.$/.test(await problem()),
    `a database of Redis: ${await problem()}`,
  );
}

say('a dropped file, a file of keys, one key in its block');
{
  const drop = (target, name, text) =>
    page.evaluate(
      ([target, name, text]) => {
        for (const mark of ['opened', 'looked-up']) performance.clearMarks(mark);
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(atob(text), one => one.charCodeAt(0))], name));
        document
          .querySelector(target)
          .dispatchEvent(
            new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }),
          );
      },
      [target, name, Buffer.from(text).toString('base64')],
    );
  await drop('body', 'words.bloom', readFileSync(join(SCRATCH, 'native/words.bloom')));
  await page.waitForFunction(() => performance.getEntriesByName('opened').length);
  check(
    new URL(page.url()).hash === '#inspect' &&
      (await page.locator('#found h3').first().textContent()) !== '',
    'a dropped file is opened',
  );
  await page.click('#to-lookup');
  const words = readFileSync(join(SCRATCH, 'words.txt'), 'utf8');
  await drop('#typed', 'words.txt', words);
  await page.waitForFunction(() => performance.getEntriesByName('looked-up').length);
  const count = words.trim().split('\n').length;
  check(
    (await page.textContent('.tally')).includes(
      `0 certainly absent${count.toLocaleString('en-US')} maybe`,
    ),
    `all words of a file are there: ${await page.textContent('.tally')}`,
  );
  // In the second piece of the file.
  await drop('#typed', 'bad.txt', `${'word\n'.repeat(900_000)}a\0b\n`);
  await page.waitForFunction(() => performance.getEntriesByName('looked-up').length);
  check(
    (await page.textContent('#typed-problem')).includes('line 900001: a NUL byte'),
    `the line of the file: ${await page.textContent('#typed-problem')}`,
  );
  const long = Array.from(
    { length: 3000 },
    (_, at) => `${String(at).padStart(6, '0')}${'x'.repeat(200)}é`,
  );
  await drop('#typed', 'long.txt', `${long.join('\n')}\n`);
  await page.waitForFunction(() => performance.getEntriesByName('looked-up').length);
  const shown = await page.locator('#answers .key').allTextContents();
  check(
    shown.length === 1000 && shown.every((key, at) => key === long[at]),
    `of 3,000 long keys ${shown.length} are shown, the last as ${shown.at(-1)}`,
  );
  await page.click('#to-inspect');
  await page.evaluate(() => performance.clearMarks('opened'));
  await page.click('#example');
  await page.waitForFunction(() => performance.getEntriesByName('opened').length);
  equal(
    await lookUp(['user0', 'user999', 'user1000', 'nobody']),
    [true, true, false, false],
    'the example',
  );
  await lookUp(['user7']);
  equal(
    [
      (await page.locator('rect.hit').count()) > 0,
      await page.locator('rect.miss').count(),
      await page.locator('rect.bit').count(),
    ],
    [true, 0, 512],
    'a key that is there, in its block',
  );
  await lookUp(['nobody']);
  check((await page.locator('rect.miss').count()) > 0, 'a key that is absent, in its block');
  await chooseIn('key-form', 'hex');
  equal(await lookUp([Buffer.from('user1').toString('hex')]), [true], 'hex digits');
  check(/hex/.test(await lookUp(['xyz'])), 'what is no hex is said');
}

{
  const two =
    recorded().find(({ file }) => file.endsWith('_2rg.parquet'))?.file ??
    check(false, 'no file of two row groups');
  await open(two);
  // Columns as the file has them, each with its row groups together.
  const chunks = (await facts()).column_chunks,
    names = [...new Set(chunks.map(({ column }) => column))];
  equal(
    chunks.map(({ column, row_group }) => [column, row_group]),
    names.flatMap(name => [
      [name, 0],
      [name, 1],
    ]),
    'chunks by column',
  );
  equal(
    await page.evaluate(() =>
      [...document.querySelectorAll('#column option')].map(option => option.value),
    ),
    [...new Set(chunks.filter(chunk => chunk.filter_offset !== null).map(({ column }) => column))],
    'columns in the order of the file',
  );
  await chooseIn('column', 'i64');
  await chooseIn('row-groups', '0,zz');
  await lookUp(['7']);
  equal(
    [
      await page.locator('#answers > *').count(),
      await page.locator('#row-groups').getAttribute('aria-invalid'),
      await page.locator('#lookup-warnings [role=alert]').count(),
    ],
    [0, 'true', 1],
    'no answer by row groups that are none',
  );
  await chooseIn('row-groups', '');
  // A value of the first row group, and one of none.
  for (const [key, expected, groups] of [
    ['-1000', 'To be read: row group 0 (1 of 2; they are numbered from 0).', [true, false]],
    ['999999999', 'None of the 2 row groups has to be read.', [false, false]],
  ]) {
    await lookUp([key]);
    equal(await page.textContent('#answers p'), expected, key);
    const blocks = await page.locator('#probes .block p').allTextContents();
    equal(
      blocks.map((block, at) => [
        block.startsWith(`Row group ${at}, block`),
        / all \d+ bits are set/.test(block),
      ]),
      groups.map(is => [true, is]),
      `${key}: ${blocks}`,
    );
  }
}
