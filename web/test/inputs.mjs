// Files that are not lines of text, keys that are not text, and how they are shown.
import { execFileSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { FIXTURES, SCRATCH, TOOL, check, equal } from './lib.mjs';
import { chooseIn, lookUp, newPage, open, page, problem, say } from './chromium.mjs';

say('input of another kind');
const path = name => join(SCRATCH, name);
const write = (name, bytes) => { writeFileSync(path(name), bytes); return path(name); };
const build = (name, input, ...args) => {
  execFileSync(TOOL, ['build', '-', '-q', '-o', path(name), ...args], { input });
  return path(name);
};
const KEYS = 'apple\nbanana\n';

// The answers for a file of keys: how many may be there, or the error.
async function lookUpFile(file) {
  await page.evaluate(() => performance.clearMarks('looked-up'));
  await page.setInputFiles('#keys-file', file);
  await page.waitForFunction(() => performance.getEntriesByName('looked-up').length);
  return page.evaluate(
    () =>
      document.getElementById('typed-problem').textContent ||
      document.querySelectorAll('#answers .verdict.maybe').length,
  );
}
await open(build('fruit.bloom', KEYS));
await page.click('#to-lookup');
equal(await lookUpFile(write('plain.txt', KEYS)), 2, 'plain text');
equal(await lookUpFile(write('mark.txt', `\ufeff${KEYS}`)), 2, 'UTF-8 with a mark');
for (const [name, bytes, command] of [
  ['keys.gz', gzipSync(KEYS), /gzip.*zcat/],
  ['le.txt', Buffer.from(`\ufeff${KEYS}`, 'utf16le'), /UTF-16.*iconv -f UTF-16 /],
  ['bare.txt', Buffer.from(KEYS, 'utf16le'), /UTF-16.*iconv -f UTF-16LE/],
  ['nul.txt', 'apple\0banana\0', /line 1: a NUL byte/],
  ['zip.txt', 'PK\x03\x04\x14\0', /ZIP archive.*unzip -p/],
  ['duck.txt', 'PAR1\x15\x04', /Parquet file.*text file/],
]) {
  const said = await lookUpFile(write(name, bytes));
  check(command.test(said), `${name}: ${said}`);
}

// Carriage returns are part of keys, as in the tool.
equal(await lookUpFile(write('windows.txt', 'apple\r\nbanana\r\n')), 0, 'lines of Windows');
const warned = await page.textContent('#answers');
check(warned.includes('Keys end in a carriage return, which is part of the key.'), warned);
const mac = await lookUpFile(write('mac.txt', 'apple\rbanana\r'));
check(/one line with carriage returns in it/.test(mac), `lines of an old Mac: ${mac}`);
equal(await lookUpFile(write('latin.txt', Buffer.from('gr\xfcn\n', 'latin1'))), 0, 'Latin-1');
const latin = await page.textContent('#answers');
check(latin.includes('Keys are not UTF-8, and are looked up as they are.'), latin);
// A browser does not report the same name again as a change.
const wide = () => Buffer.from('\u4e2d\u6587\n\u6587\n', 'utf16le');
for (const [name, file] of [['wide-le.txt', wide()], ['wide-be.txt', wide().swap16()]]) {
  const said = await lookUpFile(write(name, file));
  check(/a NUL byte/.test(said), `UTF-16 that is not ASCII: ${said}`);
}

// Files that are not filters.
await page.click('#to-inspect');
for (const [name, bytes, what] of [
  ['picture.png', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR', /a PNG picture, not a filter/],
  ['f.gz', gzipSync('a'), /compressed with gzip: unpack it first \(zcat\)/],
  ['table.db', 'SQLite format 3\0', /an SQLite database/],
  ['files.index', '\x89BBFIDX\n\x01\0', /an index of files of blocked-bloom/],
]) {
  await open(write(name, Buffer.from(bytes, 'latin1')));
  const said = await problem();
  check(what.test(said) && !/give its format/.test(said), `${name}: ${said}`);
}

// Integers and UUIDs.
const numbers = Array.from({ length: 500 }, (_, at) => at).join('\n');
for (const type of ['int64', 'int32', 'int16-be']) {
  await open(build(`${type}.bloom`, numbers, '--type', type));
  equal(await lookUp(['5', '499']), [false, false], `${type} as text`);
  const hint = await page.textContent('#answers');
  check(hint.includes(`No key is found as text, and 2 of 2 as ${type}`), hint);
  await chooseIn('key-form', type);
  equal(await lookUp(['5', '499']), [true, true], type);
  check(!(await page.textContent('#answers')).includes('as text'), 'no hint');
}
const uuid = '00112233-4455-6677-8899-aabbccddeeff';
await open(build('uuid.bloom', uuid, '--type', 'uuid'));
await chooseIn('key-form', 'uuid');
equal(await lookUp([uuid, uuid.replace('00', '01')]), [true, false], 'UUIDs');

// Text that is looked up as numbers, and hex digits that are looked up as text.
await open(build('digits.bloom', '1234\n5678'));
await chooseIn('key-form', 'int64');
equal(await lookUp(['1234', '5678']), [false, false], 'text as int64');
const asText = await page.textContent('#answers');
check(asText.includes('No key is found as chosen, and 2 of 2 as text'), asText);
await open(build('hex.bloom', '00ffab12\n9f86d081', '--hex'));
equal(await lookUp(['00ffab12', '9f86d081']), [false, false], 'hex digits as text');
const asHex = await page.textContent('#answers');
check(asHex.includes('No key is found as text, and 2 of 2 as hex'), asHex);
await open(build('quoted.bloom', KEYS));
equal(await lookUp(['"apple"', ' banana']), [false, false], 'quotes and blanks as text');
const asTrimmed = await page.textContent('#answers');
check(asTrimmed.includes('No key is found as text, and 2 of 2 as trimmed'), asTrimmed);
await chooseIn('key-form', 'trimmed');
equal(await lookUp(['"apple"', ' banana', 'fig']), [true, true, false], 'trimmed keys');

// Blanks around keys.
await open(build('blanks.bloom', ' apple \n'));
await chooseIn('key-form', 'text');
equal(await lookUp([' apple ', 'apple', '\tfig']), [true, false, false], 'blanks are part of keys');
equal(
  await page.locator('#answers .key').allTextContents(), ['·apple·', 'apple', '→fig'],
  'blanks at the ends of keys are shown',
);

// The first sentence, few blocks, a line for each column.
await open(build('sentence.bloom', numbers));
const summary = await page.textContent('#summary');
const holds = /^Holds about \d{3} keys; 1 in [\d,]+ absent keys passes; undamaged\.$/;
check(holds.test(summary), summary);
await open(build('few.bloom', Array.from({ length: 1600 }, (_, at) => at).join('\n')));
const loads = await page.textContent('#found');
check(/too few blocks to compare/.test(loads) && !/They agree/.test(loads), loads);
const two = join(FIXTURES, 'parquet/pyarrow_n5000_ndv5000_fpp0.01_2rg.parquet');
copyFileSync(two, path('two.parquet'));
await open(path('two.parquet'));
const columns = await page.locator('#found > div > table tbody tr').allTextContents();
check(columns.length > 0, 'columns are listed');
const cells = page.locator('#found > div > table tbody tr td:first-child');
const names = new Set(await cells.allTextContents());
equal(columns.length, names.size, 'a line for each column');
const sentence = await page.textContent('#summary');
check(/^Has filters for \d+ columns/.test(sentence), 'the sentence of Parquet');

// Right to left.
for (const width of [1280, 360]) {
  const on = await newPage({ viewport: { width, height: 800 } });
  await on.evaluate(() => { document.documentElement.dir = 'rtl'; });
  for (const view of ['size', 'inspect', 'lookup']) {
    await on.click(`#to-${view}`);
    const [inner, outer] = await on.evaluate(() => [
      document.documentElement.scrollWidth, document.documentElement.clientWidth,
    ]);
    check(inner <= outer, `${view}, right to left, ${width} px: ${inner} px wide`);
  }
  await on.close();
}
